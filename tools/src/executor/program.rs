//! Programs: tools whose runs make calls of their own. The executor carries these calls out beside the program, so
//! that each one comes to its result whatever becomes of the program.

use std::{
    fmt::{self, Debug, Formatter},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use gateway_core::vocab::ToolResult;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{Executor, Origin, outcomes};
use crate::{
    call::CallContext,
    caller::{Caller, OfProgram},
    deadline::Suspended,
    journal::{self, Intent, Journal, Key},
    limits::{NESTED_AT_ONCE_MAX, NESTED_SETTLE_MS_MAX},
    nested::{Effects, NestedCalls, Request},
    order::Order,
    ports::{Clock, PortError},
};

/// A program that runs.
pub(super) struct Program {
    /// The context of its calls.
    context: CallContext,
    /// Identifies the call that runs it, if that is recorded.
    key: Option<Key>,
    calls: NestedCalls,
    /// The client that runs it, if it can be contacted.
    client: Option<Arc<dyn Caller>>,
    /// Its changes run one after another.
    order: Order,
    /// Fires when it is stopped.
    stop: CancellationToken,
}

impl Program {
    /// The program that a call with this context runs.
    pub(super) fn new(context: CallContext, key: Option<Key>, calls: NestedCalls) -> Self {
        let stop = context.cancel.child_token();
        let client = context.caller.clone();
        let caller = client.clone().map(|caller| Arc::new(OfProgram(caller)) as Arc<dyn Caller>);
        Self { context: CallContext { caller, ..context }, key, calls, client, order: Order::default(), stop }
    }

    /// Id of the call that runs it.
    pub(super) fn id(&self) -> &str {
        self.calls.parent()
    }

    pub(super) fn key(&self) -> Option<Key> {
        self.key
    }

    pub(super) fn order(&self) -> &Order {
        &self.order
    }

    /// Whether it may call a tool with this definition.
    pub(super) fn check(&self, tool: &str, definition: &str) -> Result<(), String> {
        self.calls.check(tool, definition)
    }

    /// Its deadline stands still while this is held: the wearer is asked about one of its calls.
    pub(super) fn suspend(&self) -> Suspended {
        self.calls.deadline().suspend()
    }

    /// Tells those who watch it what its call of this number does.
    fn tell(&self, number: usize, line: String) {
        if let Some(client) = &self.client {
            client.progress(number as f64, None, Some(line.clone()));
        }
        if let Some(watcher) = &self.context.watcher {
            watcher.doing(self.id(), line);
        }
    }

    /// The context of one of its calls.
    fn context(&self) -> CallContext {
        CallContext { cancel: self.stop.child_token(), ..self.context.clone() }
    }
}

impl Executor {
    /// Lets a program run and carries out its calls. Once it is interrupted or late, none is begun; those under way
    /// have a moment to end, and the result tells what was done.
    pub(super) async fn accompany(
        &self,
        program: Arc<Program>,
        mut requests: mpsc::Receiver<Request>,
        running: impl Future<Output = ToolResult>,
    ) -> ToolResult {
        let mut running = pin!(running);
        let mut open = FuturesUnordered::new();
        let mut result = None;
        // Until when calls under way are waited for; `None`: it is not being stopped.
        let mut until: Option<Instant> = None;
        let result = loop {
            if open.is_empty()
                && let Some(result) = result.take()
            {
                break result;
            }
            tokio::select! {
                biased;
                ended = &mut running, if result.is_none() => {
                    refuse(&mut requests);
                    result = Some(ended);
                }
                () = program.stop.cancelled(), if until.is_none() => {
                    refuse(&mut requests);
                    until = Some(Instant::now() + Duration::from_millis(NESTED_SETTLE_MS_MAX));
                }
                () = program.calls.deadline().passed(), if until.is_none() => program.stop.cancel(),
                () = settled(until), if result.is_some() => {
                    if let Some(result) = result.take() {
                        break result;
                    }
                }
                Some(request) = requests.recv(), if open.len() < NESTED_AT_ONCE_MAX && until.is_none() => {
                    open.push(self.nested(Arc::clone(&program), request));
                }
                Some(()) = open.next() => {}
            }
        };
        let result = outcomes::told(result, &program.calls.entries());
        program.calls.settled();
        if !open.is_empty() {
            // Changes are never left half done: they come to their end, and are recorded.
            self.late.spawn(async move { while open.next().await.is_some() {} });
        }
        result
    }

    /// One call of a program, through all steps. Boxed, since the steps of a program's call contain those of its calls.
    fn nested(&self, program: Arc<Program>, request: Request) -> BoxFuture<'static, ()> {
        let executor = self.clone();
        Box::pin(async move {
            let Request { number, call, reply } = request;
            if reply.is_closed() {
                return;
            }
            let context = program.context();
            let offered = executor.registry.snapshot(&context.user, context.device.as_deref());
            let (title, changes, definition) = match offered.find(&call.name) {
                Some(tool) => {
                    program.tell(number, executor.doing(tool, &call));
                    (tool.title(), !tool.spec.flags.read_only, tool.definition_id().into())
                }
                None => (call.name.clone(), false, Arc::default()),
            };
            program.calls.begin(number, title, changes, definition);
            let began_us = executor.ports.clock.now().mono_us;
            let origin = Origin { again: None, program: Some((Arc::clone(&program), number)) };
            let (result, facts) = executor.pass(context, call, origin).await;
            let took_us = executor.ports.clock.now().mono_us.saturating_sub(began_us);
            program.calls.end(number, &result, facts.begun, took_us / 1_000);
            drop(reply.send(result));
        })
    }
}

/// Records the effects of a program that are no calls of tools.
pub(super) struct ProgramEffects {
    journal: Option<Arc<dyn Journal>>,
    clock: Arc<dyn Clock>,
    user: String,
    of_turn: bool,
    /// Identifies the call that runs the program, if that is recorded.
    key: Option<Key>,
}

impl ProgramEffects {
    pub(super) fn new(executor: &Executor, context: &CallContext, key: Option<Key>) -> Self {
        let (journal, clock) = (executor.journal.clone(), Arc::clone(&executor.ports.clock));
        Self { journal, clock, user: context.user.clone(), of_turn: context.turn.is_some(), key }
    }

    fn intent(&self, number: usize, name: &str, arguments: &str) -> Option<(&dyn Journal, Intent)> {
        let (journal, program) = (self.journal.as_deref()?, self.key?);
        let key = journal::key(&[&program, &number.to_be_bytes(), name.as_bytes()]);
        let (user, tool, arguments) = (self.user.clone(), name.to_owned(), arguments.to_owned());
        let wall_ms = self.clock.now().wall_ms;
        Some((
            journal,
            Intent { user, key, tool, wall_ms, program: Some(program), arguments, of_turn: self.of_turn, run: None },
        ))
    }
}

impl Debug for ProgramEffects {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramEffects").field("key", &self.key).finish_non_exhaustive()
    }
}

#[async_trait]
impl Effects for ProgramEffects {
    async fn begin(&self, number: usize, name: &str, arguments: &str) -> Result<(), PortError> {
        match self.intent(number, name, arguments) {
            Some((journal, intent)) => journal.begin(&intent).await,
            None => Ok(()),
        }
    }

    fn end(&self, number: usize, name: &str, arguments: &str, result: &ToolResult) {
        if let Some((journal, intent)) = self.intent(number, name, arguments) {
            journal.finish(&intent, result);
        }
    }

    fn now_us(&self) -> u64 {
        self.clock.now().mono_us
    }
}

/// No further call is made: those that wait are told.
fn refuse(requests: &mut mpsc::Receiver<Request>) {
    requests.close();
    while requests.try_recv().is_ok() {}
}

/// Returns at this time; never, if there is none.
async fn settled(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
