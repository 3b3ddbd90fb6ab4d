//! The steps of a call, from its tool to its result.

use std::{sync::Arc, time::Duration};

use gateway_core::vocab::{ErrorCode, ToolCall, ToolResult};
use serde_json::Value;

use super::{
    Executor, Facts, arguments_hash, outcomes,
    program::{Program, ProgramEffects},
};
use crate::{
    arguments::Refusal,
    attempt,
    call::CallContext,
    consent::{self, cancelled},
    deadline::Deadline,
    journal::{self, Entry, Intent, Journal, OpenQuestion, Past},
    ledger::Approval,
    limits::{ARGUMENTS_BYTES_MAX, CALL_MS_MAX, NAME_BYTES_MAX, NESTED_ARGUMENTS_BYTES_MAX},
    nested::{NestedCalls, redacted},
    order::Slot,
    permissions,
    ports::{Decision, PortError},
    programs::Run,
    rates::too_often,
    registry::{Registered, RunContext, Snapshot},
    reply,
    sides::is_for_operators,
    source::Source,
};

/// A call on its way from its name to its result.
pub(super) struct CallInProgress {
    pub(super) context: CallContext,
    pub(super) offered: Arc<Snapshot>,
    pub(super) call: ToolCall,
    /// The program that makes it.
    pub(super) program: Option<Arc<Program>>,
    /// When it came.
    pub(super) called_wall_ms: i64,
    /// Key of the record that it has already, of a process before this one.
    pub(super) key: Option<journal::Key>,
}

type Refused = Box<ToolResult>;

impl Executor {
    pub(super) async fn decide(
        &self,
        in_progress: CallInProgress,
        tool: Option<&Registered>,
        facts: &mut Facts,
    ) -> ToolResult {
        let Some(tool) = tool else {
            let name = reply::cut(&in_progress.call.name, NAME_BYTES_MAX);
            let message = format!("No tool named '{name}' is offered.");
            return ToolResult::failed(ErrorCode::ToolNotFound, message, false);
        };
        if let Err(refused) = self.check(&in_progress, tool, facts) {
            return *refused;
        }
        let Some((journal, intent)) = self.intent(&in_progress, tool) else {
            return self.ask_and_run(in_progress, tool, None, facts).await;
        };
        // The same call may be running now, or may have run before.
        let place = match self.running.enter(&intent) {
            Entry::First(place) => place,
            Entry::Same(other) => return journal::wait(other).await,
        };
        let result = match journal.recall(&intent) {
            Ok(None) => self.ask_and_run(in_progress, tool, Some((journal, &intent)), facts).await,
            Ok(Some(Past::Done(result))) => *result,
            Ok(Some(Past::Unknown)) if tool.is_program() => match journal.made_by(&intent) {
                Ok(calls) => outcomes::recalled(calls),
                Err(error) => not_written(error),
            },
            Ok(Some(Past::Unknown)) => journal::unknown(),
            Err(error) => not_written(error),
        };
        place.tell(&result);
        result
    }

    /// Whether this client may make the call.
    fn check(&self, in_progress: &CallInProgress, tool: &Registered, facts: &mut Facts) -> Result<(), Refused> {
        let CallInProgress { context, call, program, .. } = in_progress;
        let refuse = |message: &str| Err(Box::new(ToolResult::failed(ErrorCode::PermissionDenied, message, false)));
        if !permissions::is_for(&tool.spec, context.client) {
            return refuse("This tool is not for this kind of client.");
        }
        if context.turn.is_some() && is_for_operators(&tool.spec) {
            return refuse("This tool is for the gateway's operator, not for a conversation.");
        }
        if permissions::is_denied(&self.switches.denied(&context.user), &tool.spec.name) {
            return Err(switched_off());
        }
        if program.is_some() && tool.is_program() {
            return refuse("A program cannot run a program: call the tools that it would call.");
        }
        if let Some(program) = program
            && let Err(message) = program.check(&tool.spec.name, tool.definition_id())
        {
            return refuse(&message);
        }
        facts.bytes_in = check_arguments(tool, &call.arguments)?;
        Ok(())
    }

    /// Whether the call may still be made, after other calls have run and, if it was so, the wearer was `asked`: about the tool as
    /// it was.
    fn check_again(&self, in_progress: &CallInProgress, tool: &Registered, asked: bool) -> Result<(), Refused> {
        let CallContext { user, device, .. } = &in_progress.context;
        if permissions::is_denied(&self.switches.denied(user), &tool.spec.name) {
            return Err(switched_off());
        }
        let now = self.registry.snapshot(user, device.as_deref());
        let now = now.find(&tool.spec.name).filter(|now| now.source == tool.source);
        let is_same = now.is_some_and(|now| match asked {
            true => now.definition_hash() == tool.definition_hash(),
            // Another description, as of a server that has its state there, makes no other call.
            false => now.spec.input_schema == tool.spec.input_schema && now.spec.flags == tool.spec.flags,
        });
        if is_same { Ok(()) } else { Err(Box::new(consent::changed(&tool.spec.name))) }
    }

    /// The intent to record before the call.
    fn intent(&self, in_progress: &CallInProgress, tool: &Registered) -> Option<(&dyn Journal, Intent)> {
        let CallInProgress { context, call, program, key, .. } = in_progress;
        let flags = tool.spec.flags;
        let journal = self.journal.as_deref().filter(|_| !flags.read_only || flags.requires_approval)?;
        let wall_ms = self.ports.clock.now().wall_ms;
        let session = context.session.as_deref();
        let number = if session.is_none() { self.number() } else { 0 };
        let own = || {
            journal::key(&[
                session.unwrap_or_default().as_bytes(),
                &number.to_be_bytes(),
                // Numbers restart with the process, and so may the wall time of a box whose clock has no battery.
                if session.is_none() { &self.boot } else { &[] },
                context.device.as_deref().unwrap_or_default().as_bytes(),
                &context.turn.map_or(0, |turn| turn.id).to_be_bytes(),
                call.id.as_bytes(),
                &arguments_hash(&call.name, &call.arguments).to_be_bytes(),
            ])
        };
        let key = key.unwrap_or_else(own);
        let run = tool.is_program().then(|| self.begun(in_progress, tool)).flatten();
        let (user, tool) = (context.user.clone(), tool.spec.name.clone());
        let arguments = program.as_ref().map(|_| redacted(&self.secrets, &call.arguments, NESTED_ARGUMENTS_BYTES_MAX));
        let program = program.as_ref().and_then(|program| program.key());
        let (arguments, of_turn) = (arguments.unwrap_or_default(), context.turn.is_some());
        Some((journal, Intent { user, key, tool, wall_ms, program, arguments, of_turn, run }))
    }

    /// The beginning of the record of a program's run.
    fn begun(&self, in_progress: &CallInProgress, tool: &Registered) -> Option<Box<Run>> {
        let CallInProgress { context, call, called_wall_ms, .. } = in_progress;
        let run = Run {
            wall_ms: *called_wall_ms,
            call: call.id.clone(),
            device: context.device.clone(),
            session: context.session.clone(),
            turn: context.turn.map(|turn| turn.id),
            ..tool.runner.run_of(call)?
        };
        self.secrets.redacted(run).map(Box::new)
    }

    async fn ask_and_run(
        &self,
        in_progress: CallInProgress,
        tool: &Registered,
        intent: Option<(&dyn Journal, &Intent)>,
        facts: &mut Facts,
    ) -> ToolResult {
        let cancel = in_progress.context.cancel.clone();
        if let Err(early) = self.rates.check(&in_progress.context.user, tool) {
            return too_often(early);
        }
        let question = match self.agree(&in_progress, tool, intent, facts).await {
            Ok(question) => question,
            Err(refused) => return *refused,
        };
        if cancel.is_cancelled() {
            return cancelled();
        }
        let _slot = if tool.spec.flags.read_only {
            None
        } else {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return cancelled(),
                slot = self.slot(&in_progress) => slot,
            }
        };
        if (facts.asked || !tool.spec.flags.read_only)
            && let Err(refused) = self.check_again(&in_progress, tool, facts.asked)
        {
            return *refused;
        }
        // The timeout starts only here: waiting for the wearer and for other calls does not count.
        let span = tool
            .spec
            .timeout_ms
            .map_or(in_progress.context.default_timeout, |ms| Duration::from_millis(u64::from(ms)))
            .min(Duration::from_millis(CALL_MS_MAX));
        let deadline = if tool.is_program() { Deadline::suspendable(span) } else { Deadline::fixed(span) };
        let activated = match self.activate(&in_progress.context, tool, &deadline).await {
            Ok(activated) => activated,
            Err(refused) => return *refused,
        };
        let key = intent.map(|(_, intent)| intent.key);
        let intent = intent.filter(|_| !tool.spec.flags.read_only);
        if let Some((journal, intent)) = intent {
            if let Err(error) = journal.begin(intent).await {
                return not_written(error);
            }
            OpenQuestion::begun(question);
            if cancel.is_cancelled() {
                let result = cancelled();
                journal.finish(intent, &result);
                return result;
            }
        }
        facts.begun = true;
        self.tell(&in_progress, tool);
        let mut result = self.run(in_progress, tool, (span, deadline), activated, key).await;
        check_output(tool, &result);
        if let Some((journal, intent)) = intent {
            // The result that is stored for repetitions is limited and redacted like the one that is returned.
            result = reply::finish(result, tool.spec.reply.as_deref());
            self.secrets.redact_result(&mut result);
            journal.finish(intent, &result);
        }
        result
    }

    /// Asks the wearer if that is required; returns the record of the question.
    async fn agree<'a>(
        &self,
        in_progress: &CallInProgress,
        tool: &Registered,
        intent: Option<(&'a dyn Journal, &'a Intent)>,
        facts: &mut Facts,
    ) -> Result<Option<OpenQuestion<'a>>, Refused> {
        if !tool.spec.flags.requires_approval {
            return Ok(None);
        }
        facts.asked = true;
        let began_us = self.ports.clock.now().mono_us;
        // After a restart nobody asks again on behalf of a program: it is gone.
        let question = intent.filter(|_| in_progress.program.is_none()).and_then(|(journal, intent)| {
            OpenQuestion::record(journal, intent, &in_progress.context, tool, &in_progress.call)
        });
        let Decision { outcome, by, device } = self.ask(in_progress, tool).await;
        let now = self.ports.clock.now();
        let took_ms = now.mono_us.saturating_sub(began_us) / 1_000;
        facts.approval = Some(Approval { outcome, by, device, wall_ms: now.wall_ms, took_ms });
        match consent::refusal(outcome, by) {
            Some(refused) => Err(Box::new(refused)),
            None => Ok(question),
        }
    }

    /// The place of a change among the others.
    async fn slot(&self, in_progress: &CallInProgress) -> Option<Slot> {
        match &in_progress.program {
            Some(program) => Some(program.order().wait_in_program().await),
            None => self.order.wait(&in_progress.context).await,
        }
    }

    async fn run(
        &self,
        in_progress: CallInProgress,
        tool: &Registered,
        (span, deadline): (Duration, Deadline),
        activated: bool,
        key: Option<journal::Key>,
    ) -> ToolResult {
        let CallInProgress { context, offered, call, program, called_wall_ms, .. } = in_progress;
        let offered = self.seen(&context, tool, offered);
        let run = RunContext {
            user: context.user.clone(),
            device: context.device.clone(),
            session: context.session.clone(),
            called_wall_ms,
            turn: context.turn,
            local_name: tool.local_name.clone(),
            flags: tool.spec.flags,
            activated,
            deadline: span,
            cancel: context.cancel.clone(),
            ports: self.ports.clone(),
            offered,
            conversation: Arc::clone(&context.conversation),
            language: context.language.clone(),
            caller: context.caller.clone(),
            program: program.map(|program| program.id().to_owned()),
            calls: None,
        };
        if !tool.is_program() {
            let mut result = attempt::run(tool, run, call, &deadline).await;
            // Only of programs it is known what they have done.
            result.mark_partly_done(false);
            return result;
        }
        let effects = ProgramEffects::new(self, &context, key);
        let (calls, requests) =
            NestedCalls::new(call.id.clone(), deadline.clone(), self.secrets.clone(), Arc::new(effects));
        let program = Arc::new(Program::new(context, key, calls.clone()));
        let run = RunContext { calls: Some(calls), ..run };
        self.accompany(program, requests, attempt::run(tool, run, call, &deadline)).await
    }

    /// Tells who watches what a call does, if its tool has words of its own for that. A program tells of its calls.
    fn tell(&self, in_progress: &CallInProgress, tool: &Registered) {
        let CallInProgress { context, call, program: None, .. } = in_progress else { return };
        if let (Some(watcher), Some(_)) = (&context.watcher, &tool.spec.progress) {
            watcher.doing(&call.id, self.doing(tool, call));
        }
    }

    /// What a call does, in a line without secrets.
    pub(super) fn doing(&self, tool: &Registered, call: &ToolCall) -> String {
        let mut line = tool.doing(&call.arguments);
        self.secrets.redact(&mut line);
        line
    }

    /// The tools that a tool may list; only built-in tools may list others.
    fn seen(&self, context: &CallContext, tool: &Registered, offered: Arc<Snapshot>) -> Arc<Snapshot> {
        if tool.source != Source::BuiltIn {
            return offered;
        }
        offered.callable(context.client, &self.switches.denied(&context.user))
    }
}

fn switched_off() -> Refused {
    let message = "The user has switched this tool off; nothing was done.";
    Box::new(ToolResult::failed(ErrorCode::PermissionDenied, message, false))
}

/// Validates the arguments and returns their size in bytes.
fn check_arguments(tool: &Registered, arguments: &Value) -> Result<u64, Refused> {
    let refuse = |message: String| {
        let code = ErrorCode::InvalidArguments;
        Err(Box::new(ToolResult::failed(code, message, false)))
    };
    if let Err(violation) = tool.schema.check(arguments) {
        return refuse(format!("The arguments do not fit {violation}."));
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
        && let Err(violation) = schema.check_any(data)
    {
        tracing::warn!(tool = tool.spec.name, %violation, "a result does not fit the tool's output schema");
    }
}

/// The result if the intent could not be recorded: the call is not made.
fn not_written(error: PortError) -> ToolResult {
    tracing::error!(%error, "an intent could not be written down");
    let say = match error {
        PortError::Full(_) => "I can't do that: the storage is full.",
        PortError::ReadOnly(_) => "I can't do that: the storage can't be written to.",
        _ => "I can't do that right now.",
    };
    Refusal { say: say.to_owned(), ..Refusal::from(error) }.into_result()
}
