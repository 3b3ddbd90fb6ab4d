//! Where the program's own log is tapped: a layer of `tracing` that hands each line over to the writer, and waits for
//! nothing. What comes before the file is opened waits here.

use std::{
    collections::VecDeque,
    fmt::{self, Write as _},
    sync::{Arc, Mutex, PoisonError, RwLock, TryLockError, Weak, mpsc::SyncSender},
};

use tools::{inspection::logs::LogLevel, mcp::client::SERVER_LINES};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer,
    filter::{FilterExt as _, LevelFilter, filter_fn},
    layer::Context,
    registry::LookupSpan,
};

use super::{
    dropped,
    row::{GATEWAY, Line, Row},
    writer::Job,
};
use crate::{clock, text::crop};

/// Lines that wait until the file is opened: those of a start have a dozen.
const EARLY_MAX: usize = 256;
/// Bytes of a stored text: a long error with its causes.
const MESSAGE_BYTES_MAX: usize = 1_024;
/// Bytes of a name in a line.
const NAME_BYTES_MAX: usize = 160;

/// The process has one log, as it has one subscriber.
static TAP: Tap = Tap { outlet: RwLock::new(None), early: Mutex::new(VecDeque::new()) };

struct Tap {
    /// Does not keep the writer alive, which ends with its last handle.
    outlet: RwLock<Option<Weak<SyncSender<Job>>>>,
    early: Mutex<VecDeque<Line>>,
}

/// Leads all lines to this writer from now on, those first that have waited.
pub(super) fn attach(outlet: &Arc<SyncSender<Job>>) {
    let mut place = TAP.outlet.write().unwrap_or_else(PoisonError::into_inner);
    for line in TAP.early.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        put(outlet, line);
    }
    *place = Some(Arc::downgrade(outlet));
}

/// Lines wait here again, if they are led to this writer.
pub(super) fn detach(outlet: &Arc<SyncSender<Job>>) {
    let mut place = TAP.outlet.write().unwrap_or_else(PoisonError::into_inner);
    place.take_if(|attached| attached.ptr_eq(&Arc::downgrade(outlet)));
}

fn put(outlet: &SyncSender<Job>, line: Line) {
    if outlet.try_send(Job::Line(line)).is_err() {
        dropped::add(1);
    }
}

fn take(line: Line) {
    let outlet = match TAP.outlet.try_read() {
        Ok(outlet) => outlet,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        // It is being attached, which takes microseconds.
        Err(TryLockError::WouldBlock) => return dropped::add(1),
    };
    if let Some(outlet) = outlet.as_ref().and_then(Weak::upgrade) {
        return put(&outlet, line);
    }
    match TAP.early.try_lock() {
        Ok(mut early) if early.len() < EARLY_MAX => early.push_back(line),
        _ => dropped::add(1),
    }
}

/// Whether lines of this origin are stored: nothing below INFO, where a wearer's words may stand; nothing that others
/// have written, who do not know that rule; and nothing about the log itself, which would cause the next line.
fn is_stored(meta: &Metadata<'_>) -> bool {
    let (level, target) = (*meta.level(), meta.target());
    let is_of = |part: &str| target.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    // The library for MCP logs whole messages.
    let is_rmcp = is_of("rmcp") && level != Level::ERROR;
    level <= Level::INFO && target != SERVER_LINES && !is_rmcp && !is_of("gateway::telemetry::log")
}

/// The layer of `tracing` that stores lines in the log that is open.
pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    Storing.with_filter(LevelFilter::INFO.and(filter_fn(is_stored)))
}

struct Storing;

impl<S: Subscriber> Layer<S> for Storing {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let level = match *event.metadata().level() {
            Level::ERROR => LogLevel::Error,
            Level::WARN => LogLevel::Warn,
            _ => LogLevel::Info,
        };
        let mut values = Values::default();
        event.record(&mut values);
        let row = values.into_row(event.metadata().target());
        take(Line { wall_ms: clock::wall_ms(), level, row });
    }
}

/// The values of an event.
#[derive(Default)]
struct Values {
    message: String,
    values: String,
    context: Option<String>,
    user: Option<String>,
    device: Option<String>,
    package: Option<String>,
    server: Option<String>,
}

impl Values {
    fn into_row(self, target: &str) -> Row {
        let Self { mut message, values, context, user, device, package, server } = self;
        message.push_str(&values);
        let source = match (&package, &server, &device) {
            (Some(package), _, _) => format!("app:{package}"),
            (_, Some(server), _) => format!("mcp:{server}"),
            (_, _, Some(device)) => format!("device:{device}"),
            _ => GATEWAY.to_owned(),
        };
        let context = context.unwrap_or_else(|| crop(target, NAME_BYTES_MAX).to_owned());
        Row { context, source, user, device, message: crop(&message, MESSAGE_BYTES_MAX).to_owned() }
    }

    fn note(&mut self, field: &Field, value: &str) {
        let name = || Some(crop(value, NAME_BYTES_MAX).to_owned());
        match field.name() {
            "message" => return self.message.push_str(crop(value, MESSAGE_BYTES_MAX)),
            "log.target" => return self.context = name(),
            other if other.starts_with("log.") => return,
            // A command of an operator is about a user, too.
            "user" | "about" => self.user = name(),
            "device" => self.device = name(),
            "package" | "app" => self.package = name(),
            "server" => self.server = name(),
            _ => {}
        }
        if self.values.len() < MESSAGE_BYTES_MAX {
            // Writing to a string cannot fail.
            let _written = write!(self.values, " {}={}", field.name(), crop(value, MESSAGE_BYTES_MAX));
        }
    }
}

impl Visit for Values {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.note(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.note(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, sync_channel};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// Attaching is for the whole process: the tests of this module take turns.
    static ONE: Mutex<()> = Mutex::new(());

    fn outlet(size: usize) -> (Arc<SyncSender<Job>>, Receiver<Job>) {
        let (outlet, waiting) = sync_channel(size);
        (Arc::new(outlet), waiting)
    }

    fn lines(waiting: &Receiver<Job>) -> Vec<Line> {
        let line = |job| match job {
            Job::Line(line) => line,
            _ => panic!("only lines come from here"),
        };
        waiting.try_iter().map(line).collect()
    }

    #[test]
    fn lines_are_taken_with_what_they_are_about() {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let subscriber = tracing_subscriber::registry().with(layer());
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(target: "gateway::mcp", server = "files", why = "it went", "an MCP server is down");
            let (outlet, waiting) = self::outlet(64);
            attach(&outlet);
            tracing::info!(target: "gateway::photos", device = "ab12", user = Some("ann"), bytes = 7, "photo received");
            tracing::error!(target: "gateway::apps", package = "com.a", device = "ab12", "it failed");
            tracing::info!(target: "turn", count = 1, "turn");
            // What is not stored.
            tracing::debug!(target: "gateway::apps", "the words of a wearer");
            tracing::trace!(target: "gateway::apps", "the words of a wearer");
            tracing::warn!(target: SERVER_LINES, server = "files", "an argument of a wearer");
            tracing::info!(target: "rmcp::service", "a whole message");
            tracing::error!(target: "gateway::telemetry::log::writer", "about itself");
            detach(&outlet);
            let told: Vec<_> =
                lines(&waiting).into_iter().map(|line| (line.level, line.row.source, line.row.message)).collect();
            let line = |level, source: &str, message: &str| (level, source.to_owned(), message.to_owned());
            assert_eq!(
                told,
                [
                    line(LogLevel::Warn, "mcp:files", "an MCP server is down server=files why=it went"),
                    line(LogLevel::Info, "device:ab12", "photo received device=ab12 user=ann bytes=7"),
                    line(LogLevel::Error, "app:com.a", "it failed package=com.a device=ab12"),
                    line(LogLevel::Info, "gateway", "turn count=1"),
                ]
            );
        });
    }

    #[test]
    fn whoever_logs_never_waits() {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let subscriber = tracing_subscriber::registry().with(layer());
        tracing::subscriber::with_default(subscriber, || {
            let (outlet, waiting) = self::outlet(2);
            attach(&outlet);
            let before = dropped::count();
            for _ in 0..5 {
                tracing::info!(target: "gateway::apps", text = "x".repeat(100_000), "{}", "é".repeat(100_000));
            }
            assert!(dropped::count() - before >= 3, "two have room");
            detach(&outlet);
            let taken = lines(&waiting);
            assert_eq!(taken.len(), 2);
            assert!(taken.iter().all(|line| line.row.message.len() <= MESSAGE_BYTES_MAX));
            // The writer is gone: nothing waits for it either, and lines wait for the next one.
            let (outlet, waiting) = self::outlet(2);
            drop(waiting);
            attach(&outlet);
            tracing::info!(target: "gateway::apps", "nobody takes it");
            drop(outlet);
            tracing::info!(target: "gateway::apps", "early");
            let (outlet, waiting) = self::outlet(2);
            attach(&outlet);
            detach(&outlet);
            assert_eq!(lines(&waiting)[0].row.message, "early");
        });
    }
}
