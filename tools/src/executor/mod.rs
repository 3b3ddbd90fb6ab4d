//! Executes calls; each call has exactly one result. The steps: find the tool, check permissions, validate arguments,
//! look up earlier calls, apply rate limits, ask for consent, wait for other changes of the turn, activate the app,
//! record the intent, run, enforce limits on the result, record the call. The rules are in docs/tools.md.

mod before;
mod outcomes;
mod program;
mod steps;

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures_util::FutureExt;
use gateway_core::vocab::{Attachment, ClientClass, ErrorCode, ToolCall, ToolResult};
use tokio_util::task::TaskTracker;

use self::{program::Program, steps::CallInProgress};
use crate::{
    call::CallContext,
    consent,
    in_flight::InFlight,
    journal::{AskedCall, Intent, Journal, Key, LeftQuestion, Running},
    ledger::{Approval, CallMeter, Ledger, OfProgram, Record},
    order::Order,
    permissions::{AllOn, Switches},
    ports::Ports,
    rates::{Limits, Rates},
    registry::{Registry, Snapshot, Specs},
    reply,
    secret::Secrets,
};

pub use crate::canonical::arguments_hash;

/// Stores and limits for calls. Every part is optional.
#[derive(Clone, Default)]
pub struct CallRecords {
    /// Intents of calls that change something.
    pub journal: Option<Arc<dyn Journal>>,
    /// Calls of persistent tools.
    pub ledger: Option<Arc<dyn Ledger>>,
    /// What users have switched off.
    pub switches: Option<Arc<dyn Switches>>,
    /// Told of the time of each call.
    pub meter: Option<Arc<dyn CallMeter>>,
    /// Rate limits.
    pub limits: Limits,
    /// Work in progress by user, including work other than calls.
    pub in_flight: InFlight,
    /// Random bytes of this run of the program: no call of it is taken for one of another run.
    pub boot: [u8; 16],
}

/// Runs calls.
#[derive(Clone)]
pub struct Executor {
    registry: Arc<Registry>,
    ports: Ports,
    journal: Option<Arc<dyn Journal>>,
    ledger: Option<Arc<dyn Ledger>>,
    meter: Option<Arc<dyn CallMeter>>,
    switches: Arc<dyn Switches>,
    rates: Arc<Rates>,
    secrets: Secrets,
    in_flight: InFlight,
    running: Running,
    order: Order,
    /// Random bytes of this run, part of the keys of calls without a session.
    boot: [u8; 16],
    /// Number of the next call that has no session to identify it.
    next: Arc<AtomicU64>,
    /// Calls of programs that were stopped before these calls had ended.
    late: TaskTracker,
}

/// What is known of a call in addition to its result.
#[derive(Default)]
struct Facts {
    asked: bool,
    approval: Option<Approval>,
    bytes_in: u64,
    /// Whether the tool itself was called.
    begun: bool,
}

/// Where a call comes from, apart from its context.
#[derive(Clone, Default)]
struct Origin {
    /// Of a question that is asked again: the key of its record, and the tool's definition at its time.
    again: Option<(Key, u64)>,
    /// The program that makes the call, and the number that the call has there.
    program: Option<(Arc<Program>, usize)>,
}

impl Executor {
    /// An executor of the registry's tools without any records.
    pub fn new(registry: Arc<Registry>, ports: Ports) -> Self {
        Self::with_records(registry, ports, CallRecords::default())
    }

    /// An executor of the registry's tools.
    pub fn with_records(registry: Arc<Registry>, ports: Ports, records: CallRecords) -> Self {
        let rates = Rates::new(records.limits, Arc::clone(&ports.clock));
        Self {
            secrets: registry.secrets().clone(),
            registry,
            ports,
            journal: records.journal,
            ledger: records.ledger,
            meter: records.meter,
            switches: records.switches.unwrap_or_else(|| Arc::new(AllOn)),
            rates: Arc::new(rates),
            in_flight: records.in_flight,
            running: Running::default(),
            order: Order::default(),
            boot: records.boot,
            next: Arc::default(),
            late: TaskTracker::new(),
        }
    }

    /// The tools that can be called. Sources of tools register them here.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The secrets that are redacted in all results. Components that use a secret register it here.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Calls in progress, by user.
    pub fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }

    /// The tools that a client of this user is offered on this device, and the revision, which grows with every change
    /// of them: the tools of the client's class that the user has not switched off.
    pub fn offered(&self, user: &str, device: Option<&str>, client: ClientClass) -> (u64, Specs) {
        let snapshot = self.registry.snapshot(user, device);
        let denied = self.switches.denied(user);
        if denied.is_empty() {
            return (snapshot.revision, snapshot.for_client(client));
        }
        let callable = snapshot.callable(client, &denied);
        (callable.revision, Arc::clone(&callable.specs))
    }

    /// The same tools with their sources.
    pub(crate) fn callable(&self, user: &str, device: Option<&str>, client: ClientClass) -> Arc<Snapshot> {
        self.registry.snapshot(user, device).callable(client, &self.switches.denied(user))
    }

    /// The tools that such clients of every user are offered, unless the user has switched them off.
    pub fn common(&self, client: ClientClass) -> Specs {
        self.registry.common().for_client(client)
    }

    /// Runs a call and returns exactly one result.
    ///
    /// The future must be driven to completion. An interruption is signalled through `context.cancel`: a read-only tool
    /// is stopped, any other tool is notified and allowed to finish, so that no change stays half done and unreported.
    /// Only if all data of the user are erased, the call is dropped at its current await point, and nothing is recorded
    /// about it.
    pub async fn call(&self, context: CallContext, call: ToolCall) -> ToolResult {
        self.pass(context, call, Origin::default()).await.0
    }

    /// As [`call`](Self::call), for a call about which the wearer was asked before a restart: the wearer is asked again,
    /// and a tool is refused that is not as it was then.
    pub async fn call_again(&self, context: CallContext, question: LeftQuestion) -> ToolResult {
        let AskedCall { call, definition, .. } = question.asked.clone();
        let user = context.user.clone();
        let origin = Origin { again: Some((question.key, definition)), program: None };
        let (result, facts) = self.pass(context, call, origin).await;
        if !facts.asked {
            self.give_up(&user, &question);
        }
        result
    }

    /// The wearer is not asked again about this call: the record of the question goes, unless the call was begun.
    pub fn give_up(&self, user: &str, question: &LeftQuestion) {
        let intent = Intent {
            user: user.to_owned(),
            key: question.key,
            tool: question.asked.call.name.clone(),
            wall_ms: 0,
            program: None,
            arguments: String::new(),
            of_turn: true,
            run: None,
        };
        if let Some(journal) = &self.journal
            && matches!(journal.recall(&intent), Ok(None))
        {
            journal.withdraw(&intent);
        }
    }

    /// Passes a call through all steps, and records it.
    async fn pass(&self, context: CallContext, call: ToolCall, origin: Origin) -> (ToolResult, Facts) {
        let mut facts = Facts::default();
        // Held until the call is recorded.
        let lease = match &context.session_lease {
            Some(session) => session.enter(),
            None => self.in_flight.enter(&context.user),
        };
        let Some(lease) = lease else { return (erased(), facts) };
        let began = self.ports.clock.now();
        let offered = self.registry.snapshot(&context.user, context.device.as_deref());
        let tool = offered.find(&call.name).cloned();
        let is_changed = |(_, before)| tool.as_ref().is_none_or(|tool| tool.definition_hash() != before);
        if origin.again.is_some_and(is_changed) {
            return (consent::changed(&call.name), facts);
        }
        let (user, device, client, turn) =
            (context.user.clone(), context.device.clone(), context.client, context.turn.map(|turn| turn.id));
        let of_program = match &origin.program {
            Some((program, number)) => {
                Some(OfProgram { id: program.id().to_owned(), call: u32::try_from(*number).ok() })
            }
            None if tool.as_ref().is_some_and(|tool| tool.is_program()) => {
                Some(OfProgram { id: call.id.clone(), call: None })
            }
            None => None,
        };
        let is_nested = origin.program.is_some();
        let key = origin.again.map(|(key, _)| key);
        let program = origin.program.map(|(program, _)| program);
        let in_progress = CallInProgress { context, offered, call, program, called_wall_ms: began.wall_ms, key };
        let deciding = AssertUnwindSafe(self.decide(in_progress, tool.as_deref(), &mut facts));
        let Some(decided) = lease.within(deciding.catch_unwind()).await else { return (erased(), facts) };
        let result = decided.unwrap_or_else(|_panic| {
            tracing::error!("a part of the executor panicked");
            let message = "The call crashed; whether anything was done is unknown.";
            ToolResult::failed(ErrorCode::AppNotAvailable, message, false)
        });
        let template = tool.as_deref().and_then(|tool| tool.spec.reply.as_deref());
        let mut result =
            if is_nested { reply::finish_for_program(result, template) } else { reply::finish(result, template) };
        self.secrets.redact_result(&mut result);
        let took_us = self.ports.clock.now().mono_us.saturating_sub(began.mono_us);
        if let (Some(meter), Some(tool)) = (&self.meter, &tool) {
            meter.called(&tool.source, result.error.as_ref().map(|error| error.code), took_us);
        }
        if let (Some(ledger), Some(tool)) =
            (&self.ledger, tool.filter(|tool| tool.spec.flags.persistent || facts.asked))
        {
            ledger.record(Record {
                wall_ms: began.wall_ms,
                user,
                device,
                client,
                turn,
                tool: tool.spec.name.clone(),
                source: tool.source.to_string(),
                took_ms: took_us / 1_000,
                error: result.error.as_ref().map(|error| error.code),
                asked: facts.asked,
                approval: facts.approval.clone(),
                program: of_program,
                bytes_in: facts.bytes_in,
                bytes_out: bytes_of(&result),
            });
        }
        (result, facts)
    }

    /// The number of a call that no session identifies.
    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

/// The result of a call whose user was erased.
fn erased() -> ToolResult {
    let message = "Everything of this user is being erased; whether the call was done is unknown.";
    ToolResult::failed(ErrorCode::Cancelled, message, false)
}

fn bytes_of(result: &ToolResult) -> u64 {
    let attached = result.attachments.iter().map(|part| match part {
        Attachment::Image { data, .. } | Attachment::Audio { data, .. } => data.len(),
        Attachment::Resource { block } => block.to_string().len(),
    });
    let data = result.data.as_ref().map_or(0, |data| data.to_string().len());
    (result.content.len() + data + attached.sum::<usize>()) as u64
}

#[cfg(test)]
mod call_tests;
#[cfg(test)]
mod question_tests;
#[cfg(test)]
mod tests;
