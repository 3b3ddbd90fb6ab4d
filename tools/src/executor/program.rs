//! Programs: tools whose runs make calls of their own. The executor carries these calls out beside the program, so
//! that each one comes to its result whatever becomes of the program.

use std::{pin::pin, sync::Arc, time::Duration};

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
    intents::Key,
    limits::{NESTED_AT_ONCE_MAX, NESTED_SETTLE_MS_MAX},
    nested::{NestedCalls, Request},
    order::Order,
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
            let (title, changes) = match offered.find(&call.name) {
                Some(tool) => {
                    program.tell(number, tool.doing());
                    (tool.title(), !tool.spec.flags.read_only)
                }
                None => (call.name.clone(), false),
            };
            program.calls.begin(number, title, changes);
            let began_us = executor.ports.clock.now().mono_us;
            let origin = Origin { definition: None, program: Some((Arc::clone(&program), number)) };
            let (result, facts) = executor.pass(context, call, origin).await;
            let took_us = executor.ports.clock.now().mono_us.saturating_sub(began_us);
            program.calls.end(number, &result, facts.begun, took_us / 1_000);
            drop(reply.send(result));
        })
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
