//! Runs one program: QuickJS, the modules that it may import, and its calls.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use rquickjs::{
    Array, CatchResultExt as _, CaughtError, Context, Ctx, Error, Function, IntoJs, Module, Object, Persistent,
    Promise, Runtime, Value, context::EvalOptions, promise::PromiseState,
};
use serde_json::Value as Json;

use crate::{
    clock::ComputeClock,
    failure::{PROGRAM, failure, internal, thrown},
    protocol::{
        CALLS_MAX, Call, CallError, Cut, Done, Failure, FailureKind, LOG_BYTES_MAX, LOG_LINES_MAX, MEMORY_BYTES_MAX,
        NAME_BYTES_MAX, RESULT_BYTES_MAX, Run, ToParent, VALUE_BYTES_MAX, beginning, is_shallow,
    },
    strip::strip,
};

mod modules;
#[cfg(test)]
mod std_tests;
mod task;
#[cfg(test)]
mod task_tests;
#[cfg(test)]
mod tests;

/// Bytes of a program's stack: some hundred calls within calls.
const STACK_BYTES_MAX: usize = 256 * 1024;
const PRELUDE: &str = include_str!("../prelude.js");
/// The module that passes calls on.
const BRIDGE: &str = "@lorgnette/bridge";
const BRIDGE_SOURCE: &str =
    "const { call, ToolError } = globalThis.$bridge;\ndelete globalThis.$bridge;\nexport { call, ToolError };\n";

/// The parent has gone, or what it sends makes no sense.
#[derive(Debug)]
pub struct Closed;

/// The way to the parent.
pub trait Channel {
    /// Sends a message.
    fn send(&mut self, message: &ToParent) -> Result<(), Closed>;
    /// Waits for the answer to one of the calls.
    fn answer(&mut self) -> Result<(u32, Result<Json, CallError>), Closed>;
}

/// Why a run stops.
enum Stop {
    Failed(Failure),
    Closed,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Closed> for Stop {
    fn from(Closed: Closed) -> Self {
        Self::Closed
    }
}

type Rejection = (Persistent<Value<'static>>, Persistent<Value<'static>>);

/// What the engine and the functions of the prelude share.
struct State {
    channel: Box<dyn ChannelCell>,
    clock: ComputeClock,
    closed: Cell<bool>,
    calls: Cell<u32>,
    /// Calls without an answer.
    waiting: Cell<u32>,
    lines: Cell<usize>,
    printed: Cell<usize>,
    /// Lines that are left out.
    left_out: Cell<u64>,
    /// Rejected promises that nothing handles, with the reasons.
    rejections: RefCell<Vec<Rejection>>,
}

/// A channel that several can use, one after the other.
trait ChannelCell {
    fn send(&self, message: &ToParent) -> Result<(), Closed>;
    fn answer(&self) -> Result<(u32, Result<Json, CallError>), Closed>;
}

impl<C: Channel> ChannelCell for RefCell<C> {
    fn send(&self, message: &ToParent) -> Result<(), Closed> {
        self.try_borrow_mut().map_err(|_| Closed)?.send(message)
    }

    fn answer(&self) -> Result<(u32, Result<Json, CallError>), Closed> {
        self.try_borrow_mut().map_err(|_| Closed)?.answer()
    }
}

impl State {
    fn new(channel: impl Channel + 'static) -> Self {
        Self {
            channel: Box::new(RefCell::new(channel)),
            clock: ComputeClock::default(),
            closed: Cell::default(),
            calls: Cell::default(),
            waiting: Cell::default(),
            lines: Cell::default(),
            printed: Cell::default(),
            left_out: Cell::default(),
            rejections: RefCell::default(),
        }
    }

    fn send(&self, message: &ToParent) {
        if self.channel.send(message).is_err() {
            self.closed.set(true);
        }
    }

    /// Sends a call; returns its id, or why it is none.
    fn call(&self, module: String, function: String, arguments: &str) -> Result<u32, String> {
        if self.calls.get() >= CALLS_MAX {
            return Err(format!(
                "a program may make {CALLS_MAX} calls: ask for more with each call, or run another one"
            ));
        }
        if module.len() > NAME_BYTES_MAX || function.len() > NAME_BYTES_MAX {
            return Err("there is no function of this name".to_owned());
        }
        if arguments.len() > VALUE_BYTES_MAX {
            let bytes = arguments.len();
            return Err(format!("the arguments have {bytes} bytes, {VALUE_BYTES_MAX} are the maximum"));
        }
        let value: Option<Json> = serde_json::from_str(arguments).ok();
        let Some(arguments) = value.filter(is_shallow) else {
            return Err("the arguments nest too deeply, or a text in them is no valid Unicode".to_owned());
        };
        let id = self.calls.get() + 1;
        self.calls.set(id);
        self.waiting.set(self.waiting.get() + 1);
        self.send(&ToParent::Call { id, call: Call { module, function, arguments } });
        Ok(id)
    }

    /// Sends a printed line, or counts it if there are too many.
    fn print(&self, line: &str) {
        let room = LOG_BYTES_MAX - self.printed.get();
        let sent = beginning(line, room);
        if self.lines.get() >= LOG_LINES_MAX || (sent.is_empty() && !line.is_empty()) {
            self.left_out.set(self.left_out.get() + 1);
            return;
        }
        self.lines.set(self.lines.get() + 1);
        self.printed.set(self.printed.get() + sent.len());
        self.send(&ToParent::Log(sent.to_owned()));
        if sent.len() < line.len() {
            self.left_out.set(self.left_out.get() + 1);
        }
    }

    /// Says how much of what was printed is missing.
    fn note_left_out(&self) {
        let count = self.left_out.get();
        if count > 0 {
            self.send(&ToParent::Log(format!(
                "[{count} lines are cut or left out: {LOG_LINES_MAX} lines, {LOG_BYTES_MAX} bytes are the maximum]"
            )));
        }
    }

    /// A promise was rejected without anything that handles it, or something handles it now.
    fn track<'js>(&self, ctx: &Ctx<'js>, promise: Value<'js>, reason: Value<'js>, is_handled: bool) {
        let mut rejections = self.rejections.borrow_mut();
        if is_handled {
            rejections.retain(|(other, _)| other.clone().restore(ctx).map_or(true, |other| other != promise));
        } else if rejections.len() < 64 {
            rejections.push((Persistent::save(ctx, promise), Persistent::save(ctx, reason)));
        }
    }

    fn check(&self) -> Result<(), Stop> {
        if self.closed.get() {
            return Err(Stop::Closed);
        }
        if self.clock.is_over() {
            return Err(Stop::Failed(failure(
                FailureKind::TimedOut,
                "the program computed for too long: look for a loop without end, or do less at a time",
            )));
        }
        Ok(())
    }
}

/// An engine that is ready for one program.
pub struct Engine {
    // Values go before their runtime.
    settle: Persistent<Function<'static>>,
    finish: Persistent<Function<'static>>,
    context: Context,
    runtime: Runtime,
    state: Rc<State>,
}

impl Engine {
    /// Prepares an engine.
    pub fn new(channel: impl Channel + 'static) -> Result<Self, Failure> {
        let runtime = Runtime::new().map_err(internal)?;
        runtime.set_memory_limit(MEMORY_BYTES_MAX);
        runtime.set_max_stack_size(STACK_BYTES_MAX);
        let context = Context::full(&runtime).map_err(internal)?;
        let state = Rc::new(State::new(channel));
        let tracked = Rc::clone(&state);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, is_handled| {
            tracked.track(&ctx, promise, reason, is_handled);
        })));
        let functions = context.with(|ctx| prelude(&ctx, &state).catch(&ctx).map_err(internal));
        let (settle, finish) = functions?;
        Ok(Self { settle, finish, context, runtime, state })
    }

    /// Runs a program to its end. No message comes back if there is nobody any more to send it to.
    pub fn run(&self, run: Run) -> Option<ToParent> {
        self.limit(Duration::from_millis(run.compute_ms));
        let ended = self.program(run);
        self.state.rejections.borrow_mut().clear();
        self.state.note_left_out();
        match ended {
            Ok(done) => Some(ToParent::Done(done)),
            Err(Stop::Failed(failure)) => Some(ToParent::Failed(failure)),
            Err(Stop::Closed) => None,
        }
    }

    /// Sends the end of a program.
    pub fn send(&self, message: &ToParent) {
        self.state.send(message);
    }

    fn limit(&self, compute: Duration) {
        self.state.clock.limit(compute);
        let state = Rc::clone(&self.state);
        self.runtime.set_interrupt_handler(Some(Box::new(move || state.closed.get() || state.clock.is_over())));
    }

    fn program(&self, run: Run) -> Result<Done, Stop> {
        if let Some(task) = run.task {
            return self.task(&run.source, run.modules, task);
        }
        let source = strip(&run.source)?;
        let refused = modules::provide(&self.runtime, run.modules, modules::Importer::Program);
        let namespace = self.evaluate(source).map_err(|stop| modules::placed(stop, &refused, &run.source))?;
        let value = self.with(|ctx| {
            let value: Value<'_> = namespace.restore(ctx)?.get("default")?;
            Ok(Persistent::save(ctx, value))
        })?;
        Ok(done(self.finished(value)?)?)
    }

    /// Runs the program itself; its exports.
    fn evaluate(&self, source: String) -> Result<Persistent<Object<'static>>, Stop> {
        let (namespace, promise) = self.with(|ctx| {
            let (module, promise) = Module::declare(ctx.clone(), PROGRAM, source)?.eval()?;
            Ok((Persistent::save(ctx, module.namespace()?), Persistent::save(ctx, promise)))
        })?;
        self.drive(&promise)?;
        Ok(namespace)
    }

    /// The JSON of a value, or of what it is a promise of, when all calls have ended; `None` for `undefined`.
    fn finished(&self, value: Persistent<Value<'static>>) -> Result<Option<String>, Stop> {
        let json = self.with(|ctx| {
            let value = value.restore(ctx)?;
            let json: Promise<'_> = self.finish.clone().restore(ctx)?.call((value,))?;
            Ok(Persistent::save(ctx, json))
        })?;
        self.drive(&json)?;
        // What still runs was not awaited, but has its effect: the program ends after it.
        while self.state.waiting.get() > 0 {
            self.answer()?;
            self.jobs()?;
        }
        self.unhandled()?;
        self.with(|ctx| {
            let result: Option<rquickjs::Result<Value<'_>>> = json.clone().restore(ctx)?.result();
            match result.transpose()?.and_then(|value| value.into_string()) {
                Some(json) => json.to_string().map(Some),
                None => Ok(None),
            }
        })
    }

    /// Runs until a promise is settled; an error if it is rejected, or if nothing can settle it any more.
    fn drive(&self, promise: &Persistent<Promise<'static>>) -> Result<(), Stop> {
        loop {
            self.jobs()?;
            let state = self.with(|ctx| {
                let promise = promise.clone().restore(ctx)?;
                promise.result::<Value<'_>>().transpose()?;
                Ok(promise.state())
            })?;
            if !matches!(state, PromiseState::Pending) {
                return Ok(());
            }
            if self.state.waiting.get() == 0 {
                return Err(Stop::Failed(failure(
                    FailureKind::Error,
                    "the program waits for a promise that nothing settles: each promise needs a call, a resolve or a \
                     reject",
                )));
            }
            self.answer()?;
        }
    }

    /// Runs what is ready to run.
    fn jobs(&self) -> Result<(), Stop> {
        loop {
            self.state.check()?;
            match self.runtime.execute_pending_job() {
                Ok(true) => {}
                Ok(false) => return self.state.check(),
                Err(exception) => {
                    self.state.check()?;
                    return Err(Stop::Failed(exception.0.with(|ctx| thrown(&ctx, ctx.catch()))));
                }
            }
        }
    }

    /// Waits for an answer and gives it to the program.
    fn answer(&self) -> Result<(), Stop> {
        let (id, result) = self.state.channel.answer()?;
        self.state.waiting.set(self.state.waiting.get().checked_sub(1).ok_or(Stop::Closed)?);
        self.with(|ctx| {
            let settle = self.settle.clone().restore(ctx)?;
            match result {
                Ok(value) => settle.call::<_, ()>((id, value.to_string())),
                Err(error) => settle.call((id, (), error.message, error.code, error.retryable)),
            }
        })
    }

    /// An error if a promise was rejected and nothing has handled that.
    fn unhandled(&self) -> Result<(), Stop> {
        let first = self.state.rejections.borrow_mut().drain(..).next();
        let Some((_, reason)) = first else { return Ok(()) };
        let mut failure = self.context.with(|ctx| reason.restore(&ctx).map_or_else(internal, |it| thrown(&ctx, it)));
        let hint = "nothing handled this error, \"await\" is missing: ";
        failure.message =
            beginning(&format!("{hint}{}", failure.message), crate::protocol::MESSAGE_BYTES_MAX).to_owned();
        self.state.check()?;
        Err(Stop::Failed(failure))
    }

    /// Uses the context; an exception is the program's failure.
    fn with<T>(&self, action: impl FnOnce(&Ctx<'_>) -> rquickjs::Result<T>) -> Result<T, Stop> {
        let result = self.context.with(|ctx| match action(&ctx) {
            Ok(value) => Ok(value),
            Err(Error::Exception) => Err(thrown(&ctx, ctx.catch())),
            Err(Error::Allocation) => Err(failure(FailureKind::OutOfMemory, "the program ran out of memory")),
            Err(Error::Utf8(_)) => Err(failure(FailureKind::Error, "the result has text that is no valid Unicode")),
            Err(other) => Err(internal(CaughtError::Error(other))),
        });
        self.state.check()?;
        Ok(result?)
    }
}

/// What a call gets at once: its id, or why it is not made.
enum CallId {
    Sent(u32),
    Refused(String),
}

impl<'js> IntoJs<'js> for CallId {
    fn into_js(self, ctx: &Ctx<'js>) -> rquickjs::Result<Value<'js>> {
        match self {
            Self::Sent(id) => id.into_js(ctx),
            Self::Refused(why) => why.into_js(ctx),
        }
    }
}

/// The end of a program whose default export has this JSON.
fn done(json: Option<String>) -> Result<Done, Failure> {
    let Some(json) = json else { return Ok(Done::default()) };
    if json.len() > RESULT_BYTES_MAX {
        let cut = Cut { text: beginning(&json, RESULT_BYTES_MAX / 4).to_owned(), bytes: json.len() };
        return Ok(Done { result: None, cut: Some(cut) });
    }
    match serde_json::from_str(&json) {
        Ok(value) if is_shallow(&value) => Ok(Done { result: Some(value), cut: None }),
        _ => Err(failure(
            FailureKind::Error,
            "the default export nests too deeply, or has text that is no valid Unicode",
        )),
    }
}

type Functions = (Persistent<Function<'static>>, Persistent<Function<'static>>);

/// Puts in place what a program finds besides the language.
fn prelude(ctx: &Ctx<'_>, state: &Rc<State>) -> rquickjs::Result<Functions> {
    let caller = Rc::clone(state);
    let send = Function::new(ctx.clone(), move |module: String, name: String, arguments: String| {
        caller.call(module, name, &arguments).map_or_else(CallId::Refused, CallId::Sent)
    });
    let printer = Rc::clone(state);
    let print = Function::new(ctx.clone(), move |line: String| printer.print(&line));
    let mut options = EvalOptions::default();
    options.filename = Some("bridge".to_owned());
    let prelude: Function<'_> = ctx.eval_with_options(PRELUDE, options)?;
    let functions: Array<'_> = prelude.call((send?, print?))?;
    Module::evaluate(ctx.clone(), BRIDGE, BRIDGE_SOURCE)?.finish::<()>()?;
    let left: Option<Object<'_>> = ctx.globals().get("$bridge")?;
    if left.is_some() {
        return Err(Error::Unknown);
    }
    let (settle, finish): (Function<'_>, Function<'_>) = (functions.get(0)?, functions.get(1)?);
    Ok((Persistent::save(ctx, settle), Persistent::save(ctx, finish)))
}
