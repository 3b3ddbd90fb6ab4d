//! Why a call to an app failed: error code, whether it may be repeated, and the text for the wearer.

use gateway_core::vocab::{ErrorCode, ToolResult};

use crate::{limits::MESSAGE_BYTES_MAX, reply::cut, spoken};

/// Maximum bytes of an app's name in a spoken sentence: longer names are cut.
const NAME_BYTES_MAX: usize = 48;

/// A failure between the gateway and an app's server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No connection was established. Nothing was sent.
    NotReached(String),
    /// The connection broke after the request had begun.
    Lost(String),
    /// No response within this time.
    TimedOut {
        /// The time waited, in milliseconds.
        ms: u64,
        /// Whether the request had begun.
        sent: bool,
    },
    /// A redirect. The key and the wearer's words are only sent to the app's own origin.
    Redirected {
        /// Where it leads, as the app has written it.
        to: String,
    },
    /// An error status, with the message in the body if there was one.
    Status {
        /// HTTP status.
        status: u16,
        /// The app's message.
        message: Option<String>,
    },
    /// The response's content type is not JSON.
    ContentType(String),
    /// The response exceeds the limit.
    TooLarge {
        /// Announced or received bytes.
        bytes: u64,
        /// Allowed bytes.
        max: usize,
    },
    /// The response has none of the known formats.
    InvalidResponse(String),
}

impl Failure {
    /// The result of the call. `repeatable`: the tool is read-only or idempotent.
    pub fn result(&self, app: &str, repeatable: bool) -> ToolResult {
        let (code, message, retryable) = self.told(app, repeatable);
        let mut result = ToolResult::failed(code, cut(&message, MESSAGE_BYTES_MAX), retryable);
        result.say = Some(self.spoken(&cut(app.trim(), NAME_BYTES_MAX), repeatable));
        result
    }

    fn told(&self, app: &str, repeatable: bool) -> (ErrorCode, String, bool) {
        let unknown = if repeatable { "" } else { "; whether it was done is unknown. Do not repeat it" };
        match self {
            Self::NotReached(why) => (
                ErrorCode::AppNotAvailable,
                format!("The server of {app} cannot be reached ({why}); nothing was done."),
                true,
            ),
            Self::Lost(why) => {
                (ErrorCode::AppNotAvailable, format!("The connection to {app} broke ({why}){unknown}."), repeatable)
            }
            Self::TimedOut { ms, sent: true } => {
                (ErrorCode::Timeout, format!("{app} did not answer within {ms} ms{unknown}."), repeatable)
            }
            Self::TimedOut { ms, sent: false } => {
                (ErrorCode::Timeout, format!("{app} was not ready within {ms} ms; nothing was done."), true)
            }
            Self::Redirected { to } => {
                (ErrorCode::HttpError, format!("{app} redirects to {to}, which is not followed."), false)
            }
            Self::Status { status: 429, .. } => {
                (ErrorCode::RateLimited, format!("{app} says that it was called too often."), true)
            }
            Self::Status { status, message } => {
                let why = message.as_ref().map_or_else(String::new, |message| format!(": {message}"));
                let retryable = *status >= 500 && repeatable;
                (
                    ErrorCode::HttpError,
                    spoken::sentence(&format!("{app} answered with status {status}{why}")),
                    retryable,
                )
            }
            Self::ContentType(kind) => (
                ErrorCode::HttpError,
                format!("{app} answered with '{kind}' instead of application/json{unknown}."),
                false,
            ),
            Self::TooLarge { bytes, max } => (
                ErrorCode::HttpError,
                format!("{app} answered with {bytes} bytes or more; at most {max} are accepted{unknown}."),
                false,
            ),
            Self::InvalidResponse(why) => {
                let why = spoken::clause(why);
                (ErrorCode::HttpError, format!("The answer of {app} is not understood: {why}{unknown}."), false)
            }
        }
    }

    fn spoken(&self, app: &str, repeatable: bool) -> String {
        match self {
            Self::NotReached(_) => format!("I can't reach {app} right now."),
            Self::TimedOut { sent: false, .. } => format!("{app} didn't get ready in time."),
            Self::Lost(_) | Self::TimedOut { .. } if !repeatable => {
                format!("{app} didn't answer, so I don't know whether it was done.")
            }
            Self::Lost(_) | Self::TimedOut { .. } => format!("{app} didn't answer."),
            Self::Status { status: 429, .. } => format!("{app} is busy. Please try again in a moment."),
            Self::Redirected { .. } | Self::Status { .. } => format!("{app} reported a problem."),
            Self::ContentType(_) | Self::InvalidResponse(_) => format!("I couldn't understand the answer from {app}."),
            Self::TooLarge { .. } => format!("The answer from {app} was too long for me."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nested::Outcome;

    /// Failure, code, retryable for a tool that must not be repeated, and for one that may be.
    #[test]
    fn each_has_its_code_and_tells_truthfully_what_may_be_repeated() {
        let status = |status| Failure::Status { status, message: None };
        let table = [
            (Failure::Status { status: 500, message: Some("No list.".into()) }, ErrorCode::HttpError, false, true),
            (Failure::NotReached("refused".into()), ErrorCode::AppNotAvailable, true, true),
            (Failure::Lost("reset".into()), ErrorCode::AppNotAvailable, false, true),
            (Failure::TimedOut { ms: 10, sent: true }, ErrorCode::Timeout, false, true),
            (Failure::TimedOut { ms: 10, sent: false }, ErrorCode::Timeout, true, true),
            (Failure::Redirected { to: "http://evil".into() }, ErrorCode::HttpError, false, false),
            (status(404), ErrorCode::HttpError, false, false),
            (status(429), ErrorCode::RateLimited, true, true),
            (status(500), ErrorCode::HttpError, false, true),
            (Failure::ContentType("text/html".into()), ErrorCode::HttpError, false, false),
            (Failure::TooLarge { bytes: 9, max: 8 }, ErrorCode::HttpError, false, false),
            (Failure::InvalidResponse("no JSON".into()), ErrorCode::HttpError, false, false),
        ];
        for (failure, code, once, repeatable) in table {
            for (may_repeat, wanted) in [(false, once), (true, repeatable)] {
                let result = failure.result("Todo", may_repeat);
                let error = result.error.unwrap();
                assert_eq!((error.code, error.retryable), (code, wanted), "{failure:?} {may_repeat}");
                assert!(error.message.ends_with('.') && !error.message.contains(".."), "{}", error.message);
                let say = result.say.unwrap();
                assert!(say.contains("Todo") && say.len() < 100, "{say}");
                // The wearer must not hear codes, numbers or addresses.
                assert!(!say.contains(|c: char| c.is_ascii_digit() || "/:_{".contains(c)), "{say}");
            }
        }
    }

    #[test]
    fn an_unknown_outcome_is_told_as_such() {
        let invalid = [
            Failure::ContentType("text/html".into()),
            Failure::TooLarge { bytes: 9, max: 8 },
            Failure::InvalidResponse("no JSON".into()),
        ];
        for failure in [Failure::Lost("reset".into()), Failure::TimedOut { ms: 10, sent: true }].iter().chain(&invalid)
        {
            assert_eq!(Outcome::of(&failure.result("Todo", false), true), Outcome::Unknown, "{failure:?}");
        }
        let never_sent = Failure::NotReached("refused".into()).result("Todo", false);
        assert_eq!(Outcome::of(&never_sent, true), Outcome::Failed);
        for failure in [Failure::Lost("reset".into()), Failure::TimedOut { ms: 10, sent: true }] {
            let result = failure.result("Todo", false);
            assert!(result.content.contains("unknown"), "{}", result.content);
            assert!(result.say.unwrap().contains("don't know"));
        }
    }
}
