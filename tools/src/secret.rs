//! Keys, headers and passwords: values that must not appear in logs, results or prompts.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use gateway_core::vocab::{Content, Message, Part, ToolResult};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::limits::{SECRET_BYTES_MIN, SECRETS_MAX};

/// Replacement for a secret in text.
pub const REDACTED: &str = "[secret]";

/// A secret. It prints as `[secret]`, and there is no way to serialise it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<Arc<str>>) -> Self {
        Self(value.into())
    }

    /// The value, for the code that has to use it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

/// Secrets in use. If an app or a server quotes one in an answer, it must not get into a result, and from there into
/// a prompt: the executor redacts them in everything that comes back.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Arc<RwLock<Vec<Secret>>>);

impl Secrets {
    /// Redacts this secret in all results from now on. A secret that is too short to be distinguished from ordinary
    /// words is not kept.
    pub fn keep(&self, secret: &Secret) {
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if secret.expose().len() >= SECRET_BYTES_MIN && kept.len() < SECRETS_MAX && !kept.contains(secret) {
            kept.push(secret.clone());
            // Longer ones first: one secret may be a prefix of another.
            kept.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        }
    }

    /// Redacts the secrets in a text.
    pub fn redact(&self, text: &mut String) {
        redact(&self.0.read().unwrap_or_else(PoisonError::into_inner), text);
    }

    /// Redacts the secrets in a value, including the keys of objects.
    pub fn redact_value(&self, value: &mut Value) {
        let kept = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if !kept.is_empty() {
            redact_value(&kept, value);
        }
    }

    /// Redacts the secrets in anything that has a JSON form. Returns `None` if the redacted JSON is no longer a valid
    /// value of the type.
    pub(crate) fn redacted<T: Serialize + DeserializeOwned>(&self, value: T) -> Option<T> {
        if self.0.read().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return Some(value);
        }
        let before = serde_json::to_value(&value).ok()?;
        let mut after = before.clone();
        self.redact_value(&mut after);
        if after == before { Some(value) } else { serde_json::from_value(after).ok() }
    }

    /// Redacts the secrets in the messages of a request to a model: the wearer may have said one, and an old result may
    /// quote one that became known later. Pictures and thoughts are left as they are.
    pub fn redact_messages(&self, messages: &mut [Message]) {
        for part in messages.iter_mut().flat_map(|message| &mut message.parts) {
            match part {
                Part::Text { text } => self.redact(text),
                Part::ToolCall { call } => self.redact_value(&mut call.arguments),
                Part::ToolResult { result, .. } => self.redact_result(result),
                Part::Image { .. } | Part::Thinking { .. } => {}
            }
        }
    }

    /// Redacts the secrets in a result.
    pub(crate) fn redact_result(&self, result: &mut ToolResult) {
        let kept = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if kept.is_empty() {
            return;
        }
        redact(&kept, &mut result.content);
        result.notes.iter_mut().for_each(|text| redact(&kept, text));
        result.say.iter_mut().for_each(|text| redact(&kept, text));
        result.follow_ups.iter_mut().for_each(|text| redact(&kept, text));
        if let Some(error) = &mut result.error {
            redact(&kept, &mut error.message);
        }
        match &mut result.show {
            Some(Content::Text { text } | Content::Bitmap { text, .. } | Content::Countdown { title: text, .. }) => {
                redact(&kept, text)
            }
            Some(
                Content::Card { title: one, text: two }
                | Content::Double { top: one, bottom: two }
                | Content::Dashboard { left: one, right: two },
            ) => {
                redact(&kept, one);
                redact(&kept, two);
            }
            None => {}
        }
        if let Some(data) = &mut result.data {
            redact_value(&kept, data);
        }
        for attachment in &mut result.attachments {
            if let gateway_core::vocab::Attachment::Resource { block } = attachment {
                redact_value(&kept, block);
            }
        }
    }
}

fn redact(secrets: &[Secret], text: &mut String) {
    for secret in secrets {
        if text.contains(secret.expose()) {
            *text = text.replace(secret.expose(), REDACTED);
        }
    }
}

/// The recursion is bounded: the depth was checked before.
fn redact_value(secrets: &[Secret], value: &mut Value) {
    match value {
        Value::String(text) => redact(secrets, text),
        Value::Array(items) => items.iter_mut().for_each(|item| redact_value(secrets, item)),
        Value::Object(fields) => {
            let quoted = |key: &String| secrets.iter().any(|secret| key.contains(secret.expose()));
            if fields.keys().any(quoted) {
                let taken = std::mem::take(fields);
                fields.extend(taken.into_iter().map(|(mut key, value)| {
                    redact(secrets, &mut key);
                    (key, value)
                }));
            }
            fields.values_mut().for_each(|item| redact_value(secrets, item));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::vocab::{Role, ToolCall};
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_in_no_message_of_a_request() {
        const PLANTED: &str = "sk-planted-4711";
        let secrets = Secrets::default();
        secrets.keep(&Secret::new(PLANTED));
        let call = ToolCall { id: "c".into(), name: "t".into(), arguments: json!({"text": PLANTED}) };
        let result = ToolResult { data: Some(json!({"key": PLANTED})), ..ToolResult::said(PLANTED) };
        let picture = Part::Image { mime: "image/jpeg".into(), data: PLANTED.into() };
        let parts = vec![
            Part::Text { text: format!("my key is {PLANTED}.") },
            Part::ToolCall { call },
            Part::ToolResult { call_id: "c".into(), result },
            picture.clone(),
        ];
        let mut messages = [Message { role: Role::User, parts }];
        secrets.redact_messages(&mut messages);
        let [Part::Text { text }, Part::ToolCall { call }, Part::ToolResult { result, .. }, last] =
            messages[0].parts.as_slice()
        else {
            panic!("{messages:?}")
        };
        assert_eq!((text.as_str(), &call.arguments), ("my key is [secret].", &json!({"text": "[secret]"})));
        assert_eq!((result.content.as_str(), &result.data), ("[secret]", &Some(json!({"key": "[secret]"}))));
        assert_eq!(*last, picture);
    }
}
