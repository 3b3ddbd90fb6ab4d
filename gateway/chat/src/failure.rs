//! Maps providers' errors to the kinds of failure that the agent handles.
//!
//! Sources: OpenAI's, Anthropic's and Google's lists of API errors, and the codes of google.rpc.Code. No code has
//! different meanings at two providers, so one table serves all.

use gateway_core::vocab::FailureKind;
use serde_json::Value;

/// A kind, and a message for the log.
pub type Failure = (FailureKind, String);

/// A failure caused by a bug of the gateway or the server.
pub fn bug(message: impl Into<String>) -> Failure {
    (FailureKind::Bug, message.into())
}

/// The kind of a provider's error object, if one of its codes is known. The object is the value of `error`: its `code`,
/// `type`, `status` and the reasons in its `details` are checked, the most specific first.
pub fn kind_of(error: &Value) -> Option<FailureKind> {
    let details = error.get("details").and_then(Value::as_array).into_iter().flatten();
    let reasons = details.filter_map(|detail| detail.get("reason"));
    let codes = ["code", "type", "status"].iter().filter_map(|key| error.get(*key));
    reasons.chain(codes).find_map(|word| match word {
        Value::String(word) => kind_of_word(word),
        Value::Number(number) => kind_of_word(&number.to_string()),
        _ => None,
    })
}

/// Whether a rate-limit error is an exhausted quota, for which waiting does not help.
pub fn is_used_up(error: &Value) -> bool {
    ["code", "type"].iter().any(|key| {
        let word = error.get(*key).and_then(Value::as_str);
        matches!(word, Some("insufficient_quota" | "usage_limit_reached" | "usage_not_included" | "billing_error"))
    })
}

fn kind_of_word(word: &str) -> Option<FailureKind> {
    Some(match word {
        "rate_limit_exceeded"
        | "rate_limit_error"
        | "tokens"
        | "requests"
        | "insufficient_quota"
        | "usage_limit_reached"
        | "usage_not_included"
        | "billing_error"
        | "RESOURCE_EXHAUSTED"
        | "429"
        | "402" => FailureKind::Limited,
        "content_filter" | "content_policy_violation" | "cyber_policy" | "SAFETY" => FailureKind::Refused,
        "invalid_api_key"
        | "authentication_error"
        | "permission_error"
        | "UNAUTHENTICATED"
        | "PERMISSION_DENIED"
        | "API_KEY_INVALID"
        | "401"
        | "403" => FailureKind::Auth,
        "invalid_request_error"
        | "invalid_prompt"
        | "context_length_exceeded"
        | "not_found_error"
        | "request_too_large"
        | "INVALID_ARGUMENT"
        | "FAILED_PRECONDITION"
        | "NOT_FOUND"
        | "400"
        | "404"
        | "413"
        | "422" => FailureKind::Bug,
        "overloaded_error" | "api_error" | "server_error" | "timeout_error" | "UNAVAILABLE" | "INTERNAL"
        | "DEADLINE_EXCEEDED" | "500" | "502" | "503" | "504" | "529" => FailureKind::Transient,
        _ => return None,
    })
}

/// An error within a stream. An unknown one counts as transient.
pub fn in_stream(error: &Value) -> Failure {
    let kind = kind_of(error).unwrap_or(FailureKind::Transient);
    (kind, format!("the provider broke off: {}", words(error)))
}

/// The message of a provider's error, bounded.
pub fn words(error: &Value) -> String {
    const ERROR_CHARS_MAX: usize = 200;
    let message = error.get("message").unwrap_or(error);
    let text = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
    text.chars().filter(|c| !c.is_control()).take(ERROR_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_of_all_providers_have_a_kind() {
        use FailureKind::{Auth, Bug, Limited, Refused, Transient};
        let cases = [
            // OpenAI
            (json!({"type": "invalid_request_error", "code": "invalid_api_key"}), Some(Auth)),
            (json!({"type": "insufficient_quota", "code": "insufficient_quota"}), Some(Limited)),
            (json!({"type": "invalid_request_error", "code": "content_filter"}), Some(Refused)),
            (json!({"type": "invalid_request_error", "code": null}), Some(Bug)),
            (json!({"code": "server_error"}), Some(Transient)),
            // Anthropic
            (json!({"type": "overloaded_error"}), Some(Transient)),
            (json!({"type": "rate_limit_error"}), Some(Limited)),
            // Google
            (json!({"code": 429, "status": "RESOURCE_EXHAUSTED"}), Some(Limited)),
            (
                json!({"code": 400, "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}),
                Some(Auth),
            ),
            (json!({"message": "?"}), None),
            (json!("text"), None),
        ];
        for (error, kind) in cases {
            assert_eq!(kind_of(&error), kind, "{error}");
        }
        assert!(words(&json!({"message": "x\n".repeat(1000)})).len() <= 200);
    }
}
