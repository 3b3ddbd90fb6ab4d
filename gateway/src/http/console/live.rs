//! Live updates: parts of pages, sent as server-sent events when they have changed.
//!
//! Only pages that are looked at cost anything. A part is rendered once every two seconds for all pages that show the same,
//! and sent to each when it differs. A stream ends with its session, and does not keep it from being idle.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Extension, Router,
    body::Body,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use maud::Markup;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, Interval, interval, timeout_at},
};

use super::{
    Pages, approvals, devices, firmware, invitation, logs, mcp, overview, sessions, turns,
    visit::{Fields, Visit},
};
use crate::{
    approvals::Looking,
    apps::feed::{Event, Listener, Wants},
    clock,
    http::reply::Text,
    runtime::spawn,
};

/// Streams of live updates at once; further pages are without.
const STREAMS_MAX: usize = 32;
/// Those of one session: a browser has six connections to a host, and that one was closed is not known at once.
const OF_SESSION_MAX: usize = 12;
/// How often a part is looked at, and whether a session goes on.
const EVERY: Duration = Duration::from_secs(2);
/// After so long without a change a line is sent all the same, so that a lost connection is noticed.
const QUIET_MAX: Duration = Duration::from_secs(16);

pub(super) fn routes() -> Router<Pages> {
    Router::new().route("/console/live/{part}", get(follow)).route("/console/live/words/{device}", get(words))
}

/// A part of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Overview,
    Sessions,
    Devices,
    Firmware,
    Invitation,
    Approvals,
    Turns,
    Logs,
    Mcp,
}

impl Part {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "overview" => Self::Overview,
            "sessions" => Self::Sessions,
            "devices" => Self::Devices,
            "firmware" => Self::Firmware,
            "invitation" => Self::Invitation,
            "approvals" => Self::Approvals,
            "turns" => Self::Turns,
            "logs" => Self::Logs,
            "mcp" => Self::Mcp,
            _ => return None,
        })
    }

    /// What pages that get the same have in common.
    fn key(self, visit: &Visit) -> Key {
        let session = match self {
            Self::Overview | Self::Sessions | Self::Turns | Self::Logs => None,
            // Their forms have the session's token.
            Self::Devices | Self::Firmware | Self::Invitation | Self::Approvals | Self::Mcp => {
                Some(visit.visitor.number)
            }
        };
        let query = if self == Self::Logs { visit.query.clone() } else { Fields::default() };
        Key { part: self, session, query }
    }

    async fn render(self, pages: &Pages, visit: &Visit) -> Markup {
        match self {
            Self::Overview => overview::part(pages).await,
            Self::Sessions => sessions::part(pages).await,
            Self::Devices => devices::part(pages, visit).await,
            Self::Firmware => firmware::part(pages, visit).await,
            Self::Invitation => invitation::part(pages, visit),
            Self::Approvals => approvals::part(pages, visit).await,
            Self::Turns => turns::part(pages).await,
            Self::Logs => logs::part(pages, visit).await,
            Self::Mcp => mcp::part(pages, visit).await,
        }
    }
}

/// What a part shows, and to whom.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    part: Part,
    /// `None`: all sessions get the same.
    session: Option<u32>,
    query: Fields,
}

/// A stream under way.
struct Follower {
    pages: Pages,
    visit: Visit,
    part: Part,
    /// The rendering that it shares with other pages.
    latest: watch::Receiver<Bytes>,
    /// `None`: nothing yet.
    sent: Option<Sent>,
    /// Of an operator who looks at questions.
    _looks: Option<Looking>,
}

impl Follower {
    /// The next event; `None`: the session is over, or the gateway stops.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        let stop = self.pages.admin.services.admission.stop.clone();
        let event = tokio::select! {
            event = self.coming() => event?,
            () = stop.cancelled() => return None,
        };
        let goes_on = self.pages.operators().goes_on(clock::mono_us(), &self.visit.visitor);
        goes_on.then_some((event, self))
    }

    /// What is sent next; `None`: the part is over.
    async fn coming(&mut self) -> Option<Bytes> {
        if let Some(sent) = &mut self.sent {
            return sent.next(&mut self.latest).await;
        }
        let first = rendered(&self.pages, &self.visit, self.part).await;
        // What the others have been sent meanwhile may be older.
        self.latest.mark_unchanged();
        self.sent = Some(Sent::first(first.clone()));
        Some(first)
    }
}

/// What a page was sent of its part, and when anything was.
struct Sent {
    last: Bytes,
    at: Instant,
}

impl Sent {
    fn first(last: Bytes) -> Self {
        Self { last, at: Instant::now() }
    }

    /// The next rendering that differs from the last one that was sent, or a quiet line; `None`: there will be none. Cancel
    /// safe.
    async fn next(&mut self, latest: &mut watch::Receiver<Bytes>) -> Option<Bytes> {
        loop {
            let Ok(changed) = timeout_at(self.at + QUIET_MAX, latest.changed()).await else {
                self.at = Instant::now();
                return Some(Bytes::from_static(QUIET));
            };
            changed.ok()?;
            let rendered = latest.borrow_and_update().clone();
            if rendered != self.last {
                *self = Self::first(rendered.clone());
                return Some(rendered);
            }
        }
    }
}

/// An event with the part as it is now.
async fn rendered(pages: &Pages, visit: &Visit, part: Part) -> Bytes {
    event(&part.render(pages, visit).await.into_string())
}

/// The places of streams. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Streams(Arc<Mutex<BTreeMap<u32, usize>>>);

/// The place of a stream. It is given back when this is dropped.
struct Place {
    streams: Streams,
    session: u32,
}

impl Streams {
    /// A place for a stream of this session; `None`: all are taken, or all that one session may have.
    fn place(&self, session: u32) -> Option<Place> {
        let mut taken = self.taken();
        let own = taken.get(&session).copied().unwrap_or_default();
        if own >= OF_SESSION_MAX || taken.values().sum::<usize>() >= STREAMS_MAX {
            return None;
        }
        taken.insert(session, own + 1);
        drop(taken);
        Some(Place { streams: self.clone(), session })
    }

    /// How many are taken, by the number of the session.
    fn taken(&self) -> MutexGuard<'_, BTreeMap<u32, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.streams.taken();
        if let Some(own) = taken.get_mut(&self.session) {
            *own = own.saturating_sub(1);
        }
        taken.retain(|_, own| *own > 0);
    }
}

/// A body of these events. A task of its own feeds it until `over` ends: nobody polls a body whose client does not read, so
/// that it would keep its place.
fn fed(
    place: Place,
    events: impl Stream<Item = Bytes> + Send + 'static,
    over: impl Future<Output = ()> + Send + 'static,
) -> Body {
    let (send, mut coming) = mpsc::channel(1);
    spawn("console-stream", async move {
        let _place = place;
        let mut events = pin!(events);
        let feeding = async {
            while let Some(event) = events.next().await {
                if send.send(Ok::<_, Infallible>(event)).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = feeding => {}
            () = over => {}
            // The client has gone.
            () = send.closed() => {}
        }
    });
    Body::from_stream(stream::poll_fn(move |context| coming.poll_recv(context)))
}

/// Ends with the visitor's session, or when the gateway stops.
async fn over(pages: Pages, visit: Visit) {
    let mut ticks = interval(EVERY);
    let stop = &pages.admin.services.admission.stop;
    while pages.operators().goes_on(clock::mono_us(), &visit.visitor) {
        tokio::select! {
            _ = ticks.tick() => {}
            () = stop.cancelled() => return,
        }
    }
}

/// A line that is no event.
const QUIET: &[u8] = b":\n\n";

/// An event with these lines.
fn event(text: &str) -> Bytes {
    let mut event = String::with_capacity(text.len() + 16);
    for line in text.split(['\n', '\r']) {
        event.push_str("data: ");
        event.push_str(line);
        event.push('\n');
    }
    event.push('\n');
    event.into()
}

fn stream_of(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

const CROWDED: Text = (StatusCode::SERVICE_UNAVAILABLE, "too many pages are updated already\n");

async fn follow(State(pages): State<Pages>, Extension(visit): Extension<Visit>, Path(part): Path<String>) -> Response {
    let Some(part) = Part::named(&part) else { return super::layout::missing() };
    let Some(place) = pages.streams.place(visit.visitor.number) else { return CROWDED.into_response() };
    let shown = (pages.clone(), visit.clone());
    let latest = pages.shared.follow(part.key(&visit), EVERY, move || {
        let (pages, visit) = shown.clone();
        async move { rendered(&pages, &visit, part).await }
    });
    let over = over(pages.clone(), visit.clone());
    // A viewer cannot answer.
    let looks = (part == Part::Approvals && visit.is_operator()).then(|| pages.admin.services.approvals.look());
    let follower = Follower { pages, visit, part, latest, sent: None, _looks: looks };
    stream_of(fed(place, stream::unfold(follower, Follower::next), over))
}

/// Words of a user while they are recognised.
struct Captions {
    pages: Pages,
    visit: Visit,
    listener: Listener,
    ticks: Interval,
}

impl Captions {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        loop {
            let event = tokio::select! {
                event = self.listener.next() => Some(event),
                _ = self.ticks.tick() => None,
                () = self.pages.admin.services.admission.stop.cancelled() => return None,
            };
            if !self.pages.operators().goes_on(clock::mono_us(), &self.visit.visitor) {
                return None;
            }
            if let Some(Event::Transcript { utterance, text, last, .. }) = event {
                let words = serde_json::json!({"utterance": *utterance, "text": *text, "last": last}).to_string();
                return Some((self::event(&words), self));
            }
        }
    }
}

/// The words of a device's user: those that are recognised anyway. For operators who ask for them; that is logged.
async fn words(State(pages): State<Pages>, Extension(visit): Extension<Visit>, Path(device): Path<String>) -> Response {
    if !visit.is_operator() {
        return super::operators_only();
    }
    let services = &pages.admin.services;
    let Some(present) = services.roster.get(&device) else {
        return (StatusCode::NOT_FOUND, "this device is not connected\n").into_response();
    };
    let Some(place) = pages.streams.place(visit.visitor.number) else { return CROWDED.into_response() };
    pages.note(&visit, "read words", Some(&present.user));
    let listener = services.apps.feeds.of(&present.user).listen(Wants::default());
    let over = over(pages.clone(), visit.clone());
    let captions = Captions { pages, visit, listener, ticks: interval(EVERY) };
    stream_of(fed(place, stream::unfold(captions, Captions::next), over))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::operators::{Operators, Role};

    #[test]
    fn an_event_ends_where_it_ends_whatever_is_in_it() {
        assert_eq!(event("a\nb\r\n\nevent: x"), "data: a\ndata: b\ndata: \ndata: \ndata: event: x\n\n");
    }

    #[test]
    fn pages_share_what_is_the_same_for_all_and_nothing_with_a_token_of_one_session() {
        let visit = |session: u32, query: &str| {
            let operators = Operators::default();
            let here = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
            let mut visitor = None;
            for _ in 0..session {
                let link = operators.link(0, Role::Viewer).unwrap();
                let (secret, ..) = operators.redeem(0, here, &link).unwrap();
                visitor = operators.visit(0, &secret, true);
            }
            Visit { visitor: visitor.unwrap(), query: Fields::parse(query.as_bytes()), form: Fields::default() }
        };
        let (one, other) = (visit(1, "level=warn"), visit(2, "level=error"));
        for (name, for_all) in [
            ("overview", true),
            ("sessions", true),
            ("turns", true),
            ("devices", false),
            ("firmware", false),
            ("invitation", false),
            ("approvals", false),
            ("mcp", false),
            // By its query.
            ("logs", false),
        ] {
            let part = Part::named(name).unwrap();
            assert_eq!(part.key(&one) == part.key(&other), for_all, "{name}");
            assert_eq!(part.key(&one), part.key(&visit(1, "level=warn")), "{name}");
        }
        assert_eq!(Part::Logs.key(&one), Part::Logs.key(&visit(2, "level=warn")), "the same lines");
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_sent_what_it_does_not_have_and_a_quiet_line_where_there_is_nothing() {
        let of = |text: &'static str| Bytes::from_static(text.as_bytes());
        let (latest, mut follower) = watch::channel(Bytes::new());
        let (mut sent, began) = (Sent::first(of("one")), Instant::now());
        for _ in 0..7 {
            latest.send_replace(of("one"));
            let same = tokio::time::timeout(EVERY, sent.next(&mut follower)).await;
            assert!(same.is_err(), "it has that already: {same:?}");
        }
        assert_eq!(sent.next(&mut follower).await, Some(Bytes::from_static(QUIET)));
        assert!((QUIET_MAX..QUIET_MAX + EVERY).contains(&began.elapsed()), "{:?}", began.elapsed());
        latest.send_replace(of("two"));
        assert_eq!(sent.next(&mut follower).await, Some(of("two")));
        drop(latest);
        assert_eq!(sent.next(&mut follower).await, None);
    }

    #[test]
    fn a_session_leaves_streams_to_others() {
        let streams = Streams::default();
        let own: Vec<Place> = (0..OF_SESSION_MAX).map(|_| streams.place(1).unwrap()).collect();
        assert!(streams.place(1).is_none() && streams.place(2).is_some());
        drop(own);
        assert!(streams.taken().is_empty());
        let all: Vec<Place> = (0..).map_while(|session| streams.place(session)).collect();
        assert_eq!(all.len(), STREAMS_MAX);
    }

    #[tokio::test]
    async fn a_stream_that_nobody_reads_gives_its_place_back_when_its_session_is_over() {
        let (streams, over) = (Streams::default(), tokio_util::sync::CancellationToken::new());
        let events = || stream::repeat(Bytes::from_static(b"data: x\n\n"));
        let unread = fed(streams.place(1).unwrap(), events(), over.clone().cancelled_owned());
        let left = fed(streams.place(2).unwrap(), events(), std::future::pending());
        drop(left);
        while streams.taken().contains_key(&2) {
            tokio::task::yield_now().await;
        }
        assert_eq!(streams.taken().get(&1), Some(&1));
        over.cancel();
        while !streams.taken().is_empty() {
            tokio::task::yield_now().await;
        }
        drop(unread);
    }
}
