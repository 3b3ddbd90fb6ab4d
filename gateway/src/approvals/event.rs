//! What admin clients are told of questions.

use gateway_core::vocab::{AnsweredBy, ApprovalOutcome, absent};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tools::{ports::ConsentRequest, registry::Registry, source::Source};

use crate::clock;

/// What admin clients are told: a question was asked, or settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// `approvalRequired` or `approvalSettled`.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// When, RFC 3339.
    pub timestamp: String,
    /// Always `capability`: what is asked about is a function of a capability.
    pub source: EventSource,
    /// Number of the question: what `approve` and `deny` take.
    pub id: u64,
    /// Name of the user who is to consent.
    pub user: String,
    /// The glasses that are asked; `None`: none are there, and only an operator can answer.
    #[serde(with = "absent")]
    pub device: Option<String>,
    /// Who provides the tool: `built_in`, `device`, `app`, `mcp` or `capability`.
    pub provider: String,
    /// The app, server or device of it; `lorgnette` for what is built in.
    pub capability: String,
    /// What the tool is called there.
    pub function: String,
    /// Exactly the arguments that were asked about.
    pub params: Value,
    /// `code`, if a program makes the call.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub origin: Option<String>,
    /// Id of the call that runs this program.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub run: Option<String>,
    /// The question, as the wearer is asked it.
    pub message: String,
    /// How it ended, where it has: `approved`, `denied`, `expired`, `unasked` or `cancelled`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outcome: Option<String>,
    /// Who settled it: `voice`, `text`, `tap`, `operator` or `nobody`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub by: Option<String>,
}

/// What an event's question is about: always a function of a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EventSource {
    /// A function of a capability.
    Capability,
}

/// What happened to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EventKind {
    /// It was asked.
    ApprovalRequired,
    /// It has its answer.
    ApprovalSettled,
}

impl Event {
    /// A question is asked.
    pub(super) fn required(registry: &Registry, id: u64, request: &ConsentRequest) -> Self {
        let offered = registry.snapshot(&request.user, request.device.as_deref());
        let (provider, capability, function) = match offered.find(&request.tool) {
            Some(tool) => {
                let (provider, capability) = provider_words(&tool.source);
                (provider, capability, tool.local_name.clone())
            }
            None => ("unknown", String::new(), request.tool.clone()),
        };
        Self {
            kind: EventKind::ApprovalRequired,
            timestamp: now(),
            source: EventSource::Capability,
            id,
            user: request.user.clone(),
            device: request.device.clone(),
            provider: provider.to_owned(),
            capability,
            function,
            params: request.arguments.clone(),
            origin: request.program.as_ref().map(|_| "code".to_owned()),
            run: request.program.clone(),
            message: request.question.whole(),
            outcome: None,
            by: None,
        }
    }

    /// The same question is settled.
    pub(super) fn settled(self, outcome: ApprovalOutcome, by: AnsweredBy) -> Self {
        Self {
            kind: EventKind::ApprovalSettled,
            timestamp: now(),
            outcome: Some(outcome_word(outcome).to_owned()),
            by: Some(answered_by_word(by).to_owned()),
            ..self
        }
    }
}

fn now() -> String {
    jiff::Timestamp::from_millisecond(clock::wall_ms()).unwrap_or_default().to_string()
}

pub(super) fn outcome_word(outcome: ApprovalOutcome) -> &'static str {
    match outcome {
        ApprovalOutcome::Approved => "approved",
        ApprovalOutcome::Denied => "denied",
        ApprovalOutcome::Expired => "expired",
        ApprovalOutcome::Unasked => "unasked",
        ApprovalOutcome::Cancelled => "cancelled",
    }
}

pub(super) fn answered_by_word(by: AnsweredBy) -> &'static str {
    match by {
        AnsweredBy::Voice => "voice",
        AnsweredBy::Text => "text",
        AnsweredBy::Tap => "tap",
        AnsweredBy::Operator => "operator",
        AnsweredBy::Client => "client",
        AnsweredBy::Nobody => "nobody",
    }
}

fn provider_words(source: &Source) -> (&'static str, String) {
    match source {
        Source::BuiltIn => ("built_in", "lorgnette".to_owned()),
        Source::Device(id) => ("device", id.clone()),
        Source::App(package) => ("app", package.clone()),
        Source::Mcp(name) => ("mcp", name.clone()),
        Source::Capability(name) => ("capability", name.clone()),
    }
}
