//! What a call needs before it runs: the wearer's consent, and its app.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;
use gateway_core::vocab::{AnsweredBy, ApprovalOutcome, ErrorCode, Question, ToolResult};
use tokio::time::timeout;

use super::{Executor, arguments_hash, steps::CallInProgress};
use crate::{
    call::CallContext,
    consent::{self, cancelled},
    deadline::Deadline,
    limits::{CONSENT_MS_MAX, QUESTION_MS_MAX},
    ports::{ConsentRequest, Decision},
    registry::{Asking, Registered, Words},
    reply,
    source::Source,
    spoken,
};

impl Executor {
    /// Asks the wearer. The program that makes the call has as much more time.
    pub(super) async fn ask(&self, in_progress: &CallInProgress, tool: &Registered) -> Decision {
        let CallInProgress { context, call, program, .. } = in_progress;
        let _suspended = program.as_ref().map(|program| program.suspend());
        let mut request = ConsentRequest {
            user: context.user.clone(),
            device: context.device.clone(),
            turn: context.turn,
            call_id: call.id.clone(),
            tool: tool.spec.name.clone(),
            question: self.question(in_progress, tool).await,
            arguments: call.arguments.clone(),
            arguments_hash: arguments_hash(&call.name, &call.arguments),
            program: program.as_ref().map(|program| program.id().to_owned()),
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

    /// The question in the words of the tool's source, if it finds any in time, and otherwise of the definition or the
    /// gateway. A call is never made without a question because there are no words.
    async fn question(&self, in_progress: &CallInProgress, tool: &Registered) -> Question {
        let CallInProgress { context, call, called_wall_ms, .. } = in_progress;
        let local_name = tool.local_name.as_str();
        let asking = Asking { context, call, local_name, called_wall_ms: *called_wall_ms, ports: &self.ports };
        let asking = AssertUnwindSafe(async { tool.runner.words(&asking).await });
        let words = tokio::select! {
            biased;
            () = context.cancel.cancelled() => None,
            words = timeout(Duration::from_millis(QUESTION_MS_MAX), asking.catch_unwind()) => {
                words.ok().and_then(Result::ok).flatten()
            }
        };
        let usual = || consent::question(tool, &call.arguments);
        match words {
            Some(Words::Whole(words)) => consent::computed(tool, &call.arguments, &words).unwrap_or_else(usual),
            Some(Words::Added(more)) if tool.source == Source::BuiltIn => consent::with_more(usual(), &more),
            Some(Words::Added(_)) | None => usual(),
        }
    }

    /// Ensures that the tool's app runs. Returns whether it had to be started for this call.
    pub(super) async fn activate(
        &self,
        context: &CallContext,
        tool: &Registered,
        deadline: &Deadline,
    ) -> Result<bool, Box<ToolResult>> {
        let Some(package) = &tool.spec.app else {
            return Ok(false);
        };
        let left = deadline.left();
        let starting = AssertUnwindSafe(self.ports.apps.activate(&context.user, package, left)).catch_unwind();
        let started = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(Box::new(cancelled())),
            started = starting => Some(started),
            () = deadline.passed() => None,
        };
        let reason = match started {
            Some(Ok(Ok(activated))) => return Ok(activated),
            Some(Ok(Err(error))) => error.why().to_owned(),
            Some(Err(_panic)) => "starting it crashed".to_owned(),
            None => format!("it was not ready within {}", reply::seconds(left)),
        };
        let reason = spoken::clause(&reason);
        let message = format!("The app could not be started, and nothing was done: {reason}.");
        let mut result = ToolResult::failed(ErrorCode::AppNotAvailable, message, true);
        result.say = Some("I couldn't start the app for that.".to_owned());
        Err(Box::new(result))
    }
}
