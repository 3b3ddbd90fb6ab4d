//! Questions that a server asks during a call. They are answered by the client that made the call; otherwise by the
//! wearer, if yes or no is an answer; otherwise by nobody.

use std::{collections::BTreeMap, sync::Arc};

use gateway_core::vocab::ApprovalOutcome;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    caller::Caller,
    consent,
    ports::{Consent, ConsentRequest},
};

/// The party for whom a call is made.
#[derive(Clone, Default)]
pub(crate) struct OnBehalf {
    /// The client that made the call, if it is an MCP client.
    pub(crate) caller: Option<Arc<dyn Caller>>,
    /// Who may be asked; `None`: nobody.
    pub(crate) wearer: Option<Wearer>,
}

/// The wearer, as the recipient of a server's questions.
#[derive(Clone)]
pub(crate) struct Wearer {
    pub(crate) server: String,
    pub(crate) consent: Arc<dyn Consent>,
    /// The call; its question is filled in later.
    pub(crate) call: ConsentRequest,
    pub(crate) cancel: CancellationToken,
}

impl OnBehalf {
    /// The supported kinds of questions: MCP's client capabilities.
    pub(super) fn capabilities(&self) -> Value {
        match (&self.caller, &self.wearer) {
            (Some(caller), _) => caller.capabilities(),
            (None, Some(_)) => json!({ "elicitation": { "form": {} } }),
            (None, None) => json!({}),
        }
    }

    /// Answers requests by key. `None`: one of them cannot be answered, not even with a refusal.
    pub(super) async fn answer(&self, requests: BTreeMap<String, Value>) -> Option<BTreeMap<String, Value>> {
        if let Some(caller) = &self.caller
            && let Ok(answers) = caller.ask(requests.clone()).await
        {
            return Some(answers);
        }
        let mut answers = BTreeMap::new();
        for (key, request) in requests {
            if request.get("method").and_then(Value::as_str) != Some("elicitation/create") {
                return None;
            }
            answers.insert(key, self.elicit(request.get("params").unwrap_or(&Value::Null)).await);
        }
        Some(answers)
    }

    /// Answers a single request.
    pub(super) async fn one(&self, request: Value) -> Option<Value> {
        self.answer(BTreeMap::from([("input".to_owned(), request)])).await?.remove("input")
    }

    async fn elicit(&self, params: &Value) -> Value {
        let decline = json!({ "action": "decline" });
        let (Some(wearer), Some(content)) = (&self.wearer, yes(params)) else {
            return decline;
        };
        let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
        let mut call = wearer.call.clone();
        call.question = consent::from_server(&wearer.server, message);
        match wearer.consent.ask(call, wearer.cancel.clone()).await.outcome {
            ApprovalOutcome::Approved => json!({ "action": "accept", "content": content }),
            ApprovalOutcome::Denied => decline,
            ApprovalOutcome::Expired | ApprovalOutcome::Unasked | ApprovalOutcome::Cancelled => {
                json!({ "action": "cancel" })
            }
        }
    }
}

/// The form contents that a yes stands for, if the form asks for no more than a yes: it has no property, or a single
/// boolean one.
fn yes(params: &Value) -> Option<Map<String, Value>> {
    if params.get("url").is_some() {
        return None;
    }
    let empty = Map::new();
    let properties = match params.get("requestedSchema")?.get("properties") {
        None => &empty,
        Some(properties) => properties.as_object()?,
    };
    let mut content = Map::new();
    match properties.iter().collect::<Vec<_>>().as_slice() {
        [] => {}
        [(name, schema)] if schema.get("type").and_then(Value::as_str) == Some("boolean") => {
            content.insert((*name).clone(), Value::Bool(true));
        }
        _ => return None,
    }
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_or_no_is_for_the_wearer() {
        let form = |properties: Value| {
            yes(&json!({ "message": "?", "requestedSchema": { "type": "object", "properties": properties } }))
        };
        assert_eq!(form(json!({})), Some(Map::new()));
        assert_eq!(form(json!({ "ok": { "type": "boolean" } })).unwrap()["ok"], true);
        assert_eq!(form(json!({ "name": { "type": "string" } })), None);
        assert_eq!(form(json!({ "a": { "type": "boolean" }, "b": { "type": "boolean" } })), None);
        assert_eq!(yes(&json!({ "mode": "url", "url": "https://x", "message": "?" })), None);
    }
}
