//! Executes calls; each call has exactly one result. The steps: find the tool, check permissions, validate arguments,
//! look up earlier calls, apply rate limits, ask for consent, wait for other changes of the turn, activate the app,
//! record the intent, run, enforce limits on the result, record the call. The rules are in docs/tools.md.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use gateway_core::vocab::{AnsweredBy, ApprovalOutcome, Attachment, ClientClass, ErrorCode, ToolCall, ToolResult};
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    arguments::Refusal,
    attempt,
    call::CallContext,
    consent::{self, cancelled},
    in_flight::InFlight,
    intents::{self, Entry, Intent, Journal, OpenQuestion, Past, Running},
    ledger::{Approval, Ledger, Record},
    limits::{ARGUMENTS_BYTES_MAX, CALL_MS_MAX, CONSENT_MS_MAX, NAME_BYTES_MAX},
    order::Order,
    permissions::{self, AllOn, Switches},
    ports::{ConsentRequest, Decision, PortError, Ports},
    rates::{Limits, Rates, too_often},
    registry::{Registered, Registry, RunContext, Snapshot, Specs},
    reply,
    secret::Secrets,
    source::Source,
    spoken,
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
}

/// Data for the ledger in addition to the result.
#[derive(Default)]
struct Facts {
    asked: bool,
    approval: Option<Approval>,
    bytes_in: u64,
}

type Refused = Box<ToolResult>;

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
            switches: records.switches.unwrap_or_else(|| Arc::new(AllOn)),
            rates: Arc::new(rates),
            in_flight: records.in_flight,
            running: Running::default(),
            order: Order::default(),
            boot: records.boot,
            next: Arc::default(),
        }
    }

    /// The registry.
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
        self.call_as_defined(context, call, None).await
    }

    /// As [`call`](Self::call), for a call about which the wearer was asked before a restart: the wearer is asked again,
    /// and a tool is refused that is not as it was then. `definition`: as recorded with the question.
    pub async fn call_again(&self, context: CallContext, call: ToolCall, definition: u64) -> ToolResult {
        self.call_as_defined(context, call, Some(definition)).await
    }

    async fn call_as_defined(&self, context: CallContext, call: ToolCall, definition: Option<u64>) -> ToolResult {
        // Held until the call is recorded.
        let lease = match &context.session_lease {
            Some(session) => session.enter(),
            None => self.in_flight.enter(&context.user),
        };
        let Some(lease) = lease else { return erased() };
        let began = self.ports.clock.now();
        let offered = self.registry.snapshot(&context.user, context.device.as_deref());
        let tool = offered.find(&call.name).cloned();
        if definition.is_some_and(|before| tool.as_ref().is_none_or(|tool| tool.definition_hash() != before)) {
            return consent::changed(&call.name);
        }
        let (user, device, client, turn) =
            (context.user.clone(), context.device.clone(), context.client, context.turn.map(|turn| turn.id));
        let mut facts = Facts::default();
        let deciding = AssertUnwindSafe(self.decide(context, offered, tool.as_deref(), call, &mut facts));
        let Some(decided) = lease.within(deciding.catch_unwind()).await else { return erased() };
        let result = decided.unwrap_or_else(|_panic| {
            tracing::error!("a part of the executor panicked");
            let message = "The call crashed; whether anything was done is unknown.";
            ToolResult::failed(ErrorCode::ExecutionError, message, false)
        });
        let template = tool.as_deref().and_then(|tool| tool.spec.reply.as_deref());
        let mut result = reply::finish(result, template);
        self.secrets.blot_result(&mut result);
        if let (Some(ledger), Some(tool)) =
            (&self.ledger, tool.filter(|tool| tool.spec.flags.persistent || facts.asked))
        {
            let took_us = self.ports.clock.now().mono_us.saturating_sub(began.mono_us);
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
                approval: facts.approval,
                bytes_in: facts.bytes_in,
                bytes_out: bytes_of(&result),
            });
        }
        result
    }

    async fn decide(
        &self,
        context: CallContext,
        offered: Arc<Snapshot>,
        tool: Option<&Registered>,
        call: ToolCall,
        facts: &mut Facts,
    ) -> ToolResult {
        let Some(tool) = tool else {
            let name = reply::cut(&call.name, NAME_BYTES_MAX);
            let message = format!("No tool named '{name}' is offered.");
            return ToolResult::failed(ErrorCode::ToolNotFound, message, false);
        };
        if let Err(refused) = self.check(&context, tool, &call, facts) {
            return *refused;
        }
        let Some((journal, intent)) = self.intent(&context, tool, &call) else {
            return self.ask_and_run(context, offered, tool, call, None, facts).await;
        };
        // The same call may be running now, or may have run before.
        let place = match self.running.enter(&intent) {
            Entry::First(place) => place,
            Entry::Same(other) => return intents::wait(other).await,
        };
        let result = match journal.recall(&intent) {
            Ok(None) => self.ask_and_run(context, offered, tool, call, Some((journal, &intent)), facts).await,
            Ok(Some(Past::Done(result))) => *result,
            Ok(Some(Past::Unknown)) => intents::unknown(),
            Err(error) => not_written(error),
        };
        place.tell(&result);
        result
    }

    /// Whether this client may make the call.
    fn check(
        &self,
        context: &CallContext,
        tool: &Registered,
        call: &ToolCall,
        facts: &mut Facts,
    ) -> Result<(), Refused> {
        let refuse = |message: &str| Err(Box::new(ToolResult::failed(ErrorCode::PermissionDenied, message, false)));
        if !permissions::is_for(&tool.spec, context.client) {
            return refuse("This tool is not for this kind of client.");
        }
        if permissions::is_denied(&self.switches.denied(&context.user), &tool.spec.name) {
            return refuse("The user has switched this tool off.");
        }
        facts.bytes_in = check_arguments(tool, &call.arguments)?;
        Ok(())
    }

    /// The intent to record before the call.
    fn intent(&self, context: &CallContext, tool: &Registered, call: &ToolCall) -> Option<(&dyn Journal, Intent)> {
        let flags = tool.spec.flags;
        let journal = self.journal.as_deref().filter(|_| !flags.read_only || flags.requires_approval)?;
        let wall_ms = self.ports.clock.now().wall_ms;
        let session = context.session.as_deref();
        let number = if session.is_none() { self.next.fetch_add(1, Ordering::Relaxed) } else { 0 };
        let key = intents::key(&[
            session.unwrap_or_default().as_bytes(),
            &number.to_be_bytes(),
            // Numbers restart with the process, and so may the wall time of a box whose clock has no battery.
            if session.is_none() { &self.boot } else { &[] },
            context.device.as_deref().unwrap_or_default().as_bytes(),
            &context.turn.map_or(0, |turn| turn.id).to_be_bytes(),
            call.id.as_bytes(),
            &arguments_hash(&call.name, &call.arguments).to_be_bytes(),
        ]);
        Some((journal, Intent { user: context.user.clone(), key, tool: tool.spec.name.clone(), wall_ms }))
    }

    async fn ask_and_run(
        &self,
        context: CallContext,
        offered: Arc<Snapshot>,
        tool: &Registered,
        call: ToolCall,
        intent: Option<(&dyn Journal, &Intent)>,
        facts: &mut Facts,
    ) -> ToolResult {
        if let Err(early) = self.rates.check(&context.user, tool) {
            return too_often(early);
        }
        let mut question = None;
        if tool.spec.flags.requires_approval {
            facts.asked = true;
            let began_us = self.ports.clock.now().mono_us;
            question =
                intent.and_then(|(journal, intent)| OpenQuestion::record(journal, intent, &context, tool, &call));
            let Decision { outcome, by, device } = self.ask(&context, tool, &call).await;
            let now = self.ports.clock.now();
            let took_ms = now.mono_us.saturating_sub(began_us) / 1_000;
            facts.approval = Some(Approval { outcome, by, device, wall_ms: now.wall_ms, took_ms });
            if let Some(refused) = consent::refusal(outcome) {
                return refused;
            }
        }
        if context.cancel.is_cancelled() {
            return cancelled();
        }
        let _slot = if tool.spec.flags.read_only {
            None
        } else {
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => return cancelled(),
                slot = self.order.wait(&context) => slot,
            }
        };
        // The timeout starts only here: waiting for the wearer and for other calls does not count.
        let deadline = tool
            .spec
            .timeout_ms
            .map_or(context.default_timeout, |ms| Duration::from_millis(u64::from(ms)))
            .min(Duration::from_millis(CALL_MS_MAX));
        let until = Instant::now() + deadline;
        let activated = match self.activate(&context, tool, until).await {
            Ok(activated) => activated,
            Err(refused) => return *refused,
        };
        let intent = intent.filter(|_| !tool.spec.flags.read_only);
        if let Some((journal, intent)) = intent {
            if let Err(error) = journal.begin(intent).await {
                return not_written(error);
            }
            OpenQuestion::begun(question.take());
            if context.cancel.is_cancelled() {
                let result = cancelled();
                journal.finish(intent, &result);
                return result;
            }
        }
        let offered = self.seen(&context, tool, offered);
        let run = RunContext {
            user: context.user,
            device: context.device,
            turn: context.turn,
            local_name: tool.local_name.clone(),
            flags: tool.spec.flags,
            activated,
            deadline,
            cancel: context.cancel,
            ports: self.ports.clone(),
            offered,
            conversation: context.conversation,
            caller: context.caller,
        };
        let mut result = attempt::run(tool, run, call, until).await;
        check_output(tool, &result);
        if let Some((journal, intent)) = intent {
            // The result that is stored for repetitions is limited and redacted like the one that is returned.
            result = reply::finish(result, tool.spec.reply.as_deref());
            self.secrets.blot_result(&mut result);
            journal.finish(intent, &result);
        }
        result
    }

    /// The tools that a tool may list; only built-in tools may list others.
    fn seen(&self, context: &CallContext, tool: &Registered, offered: Arc<Snapshot>) -> Arc<Snapshot> {
        if tool.source != Source::BuiltIn {
            return offered;
        }
        offered.callable(context.client, &self.switches.denied(&context.user))
    }

    /// Asks the wearer.
    async fn ask(&self, context: &CallContext, tool: &Registered, call: &ToolCall) -> Decision {
        let mut request = ConsentRequest {
            user: context.user.clone(),
            device: context.device.clone(),
            turn: context.turn,
            call_id: call.id.clone(),
            tool: tool.spec.name.clone(),
            question: consent::question(tool, &call.arguments),
            arguments: call.arguments.clone(),
            arguments_hash: arguments_hash(&call.name, &call.arguments),
        };
        let asking = async {
            // The client that made the call is asked; if it cannot be asked, the wearer is.
            if let Some(caller) = &context.caller
                && let Some(outcome) = caller.consent(&request, &context.cancel).await
            {
                return Decision { outcome, by: AnsweredBy::Client, device: None };
            }
            if request.turn.is_none() {
                request.question = consent::from_outside(request.question, context.caller.is_some());
            }
            self.ports.consent.ask(request, context.cancel.clone()).await
        };
        let limit = Duration::from_millis(CONSENT_MS_MAX);
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => ApprovalOutcome::Cancelled.into(),
            decision = timeout(limit, AssertUnwindSafe(asking).catch_unwind()) => match decision {
                Ok(Ok(decision)) => decision,
                // If the question panics, this counts as a refusal: nothing runs without an approval.
                Ok(Err(_panic)) => ApprovalOutcome::Denied.into(),
                Err(_elapsed) => ApprovalOutcome::Expired.into(),
            },
        }
    }

    /// Ensures that the tool's app runs. Returns whether it had to be started for this call.
    async fn activate(&self, context: &CallContext, tool: &Registered, until: Instant) -> Result<bool, Refused> {
        let Some(package) = &tool.spec.app else {
            return Ok(false);
        };
        let left = until.saturating_duration_since(Instant::now());
        let starting = AssertUnwindSafe(self.ports.apps.activate(&context.user, package, left)).catch_unwind();
        let started = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(Box::new(cancelled())),
            started = timeout_at(until, starting) => started,
        };
        let reason = match started {
            Ok(Ok(Ok(activated))) => return Ok(activated),
            Ok(Ok(Err(error))) => error.why().to_owned(),
            Ok(Err(_panic)) => "starting it crashed".to_owned(),
            Err(_elapsed) => format!("it was not ready within {}", reply::seconds(left)),
        };
        let reason = spoken::clause(&reason);
        let message = format!("The app could not be started, and nothing was done: {reason}.");
        let mut result = ToolResult::failed(ErrorCode::AppNotAvailable, message, true);
        result.say = Some("I couldn't start the app for that.".to_owned());
        Err(Box::new(result))
    }
}

/// Validates the arguments and returns their size in bytes.
fn check_arguments(tool: &Registered, arguments: &Value) -> Result<u64, Refused> {
    let refuse = |message: String| {
        let code = ErrorCode::InvalidArguments;
        Err(Box::new(ToolResult::failed(code, message, false)))
    };
    if let Err(misfit) = tool.schema.check(arguments) {
        return refuse(format!("The arguments do not fit {misfit}."));
    }
    let bytes = arguments.to_string().len();
    if bytes > ARGUMENTS_BYTES_MAX {
        return refuse(format!("The arguments have {bytes} bytes; at most {ARGUMENTS_BYTES_MAX} are accepted."));
    }
    Ok(bytes as u64)
}

/// A result that violates its own schema is still the result of completed work: the violation is logged, and the
/// result is returned.
fn check_output(tool: &Registered, result: &ToolResult) {
    if let (Some(schema), Some(data)) = (&tool.output_schema, &result.data)
        && let Err(misfit) = schema.check_any(data)
    {
        tracing::warn!(tool = tool.spec.name, %misfit, "a result does not fit the tool's output schema");
    }
}

/// The result of a call whose user was erased.
fn erased() -> ToolResult {
    let message = "Everything of this user is being erased; whether the call was done is unknown.";
    ToolResult::failed(ErrorCode::Cancelled, message, false)
}

/// The result if the intent could not be recorded: the call is not made.
fn not_written(error: PortError) -> ToolResult {
    tracing::error!(%error, "an intent could not be written down");
    let say = match error {
        PortError::Full(_) => "I can't do that: the storage is full.",
        _ => "I can't do that right now.",
    };
    Refusal { say: say.to_owned(), ..Refusal::from(error) }.into_result()
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
#[path = "executor_tests.rs"]
mod tests;
