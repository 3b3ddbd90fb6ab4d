//! Checks what a child sends: lines, what is in them, and whether it may come now. A child that breaks a rule was
//! taken over by its program, and is killed.

use code_sandbox::protocol::{
    CALLS_MAX, LOG_BYTES_MAX, LOG_LINES_MAX, MESSAGE_BYTES_MAX, MESSAGES_MAX, TO_PARENT_BYTES_MAX, ToParent, VERSION,
    beginning,
};

pub use code_sandbox::protocol::ToParent as Message;

/// A rule that a child broke.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(String);

fn violation(what: impl Into<String>) -> Violation {
    Violation(what.into())
}

/// The messages of one child.
#[derive(Debug, Default)]
pub struct Bridge {
    arrived: Vec<u8>,
    /// Bytes of it that hold no end of a line.
    searched: usize,
    messages: usize,
    calls: u32,
    lines: usize,
    printed: usize,
    has_greeted: bool,
    has_ended: bool,
}

impl Bridge {
    /// Bytes have arrived. Take all messages with [`message`](Self::message) before the following ones.
    pub fn arrived(&mut self, bytes: &[u8]) {
        self.arrived.extend_from_slice(bytes);
    }

    /// The next message, if it is complete.
    pub fn message(&mut self) -> Result<Option<ToParent>, Violation> {
        let fresh = self.arrived.get(self.searched..).unwrap_or_default();
        let Some(end) = fresh.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.arrived.len();
            if self.searched > TO_PARENT_BYTES_MAX {
                return Err(violation(format!("a line has more than {TO_PARENT_BYTES_MAX} bytes")));
            }
            return Ok(None);
        };
        let line: Vec<u8> = self.arrived.drain(..=self.searched + end).collect();
        self.searched = 0;
        let message = ToParent::parse(line.strip_suffix(b"\n").unwrap_or(&line));
        let message =
            message.map_err(|error| violation(format!("a line is no message: {}", beginning(&error.0, 200))))?;
        self.check(&message)?;
        Ok(Some(message))
    }

    /// Whether the message may come now.
    fn check(&mut self, message: &ToParent) -> Result<(), Violation> {
        self.messages += 1;
        if self.has_ended {
            return Err(violation("a message came after the end"));
        }
        if self.messages > MESSAGES_MAX {
            return Err(violation(format!("more than {MESSAGES_MAX} messages")));
        }
        if !self.has_greeted && !matches!(message, ToParent::Hello(_) | ToParent::Failed(_)) {
            return Err(violation("a message came before the greeting"));
        }
        match message {
            ToParent::Hello(hello) => {
                if self.has_greeted {
                    return Err(violation("a second greeting"));
                }
                if hello.version != VERSION {
                    let other = hello.version;
                    return Err(violation(format!(
                        "version {other} of the protocol, {VERSION} is ours: restart the gateway"
                    )));
                }
                self.has_greeted = true;
            }
            ToParent::Call { id, .. } => {
                self.calls += 1;
                if *id != self.calls || *id > CALLS_MAX {
                    return Err(violation(format!("call {id} came as number {} of {CALLS_MAX}", self.calls)));
                }
            }
            ToParent::Log(line) => {
                self.lines += 1;
                self.printed += line.len();
                // One more line says that lines are missing.
                if self.lines > LOG_LINES_MAX + 1 || self.printed > LOG_BYTES_MAX + MESSAGE_BYTES_MAX {
                    return Err(violation("more was printed than programs can print"));
                }
            }
            ToParent::Done(_) | ToParent::Failed(_) => self.has_ended = true,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HELLO: &str = r#"{"hello":{"version":1,"landlock":"full","seccomp":"full"}}"#;

    /// The first complaint about these lines, or the number of messages.
    fn judge(lines: &[String]) -> Result<usize, String> {
        let mut bridge = Bridge::default();
        let mut count = 0;
        for line in lines {
            // Split in the middle, as a socket may.
            let (first, second) = line.as_bytes().split_at(line.len() / 2);
            bridge.arrived(first);
            assert_eq!(bridge.message().map_err(|error| error.to_string())?, None);
            bridge.arrived(second);
            bridge.arrived(b"\n");
            while bridge.message().map_err(|error| error.to_string())?.is_some() {
                count += 1;
            }
        }
        Ok(count)
    }

    fn call(id: u32) -> String {
        json!({"id": id, "call": {"module": "m", "function": "f", "arguments": {}}}).to_string()
    }

    #[test]
    fn what_an_intact_child_sends() {
        let mut lines = vec![HELLO.to_owned()];
        lines.extend((1..=CALLS_MAX).map(call));
        lines.extend((0..=LOG_LINES_MAX).map(|_| json!({"log": "x"}).to_string()));
        lines.push(json!({"done": {"result": null}}).to_string());
        assert_eq!(judge(&lines), Ok(lines.len()));
        assert_eq!(lines.len(), MESSAGES_MAX);
        assert_eq!(judge(&[json!({"failed": {"message": "m", "kind": "internal"}}).to_string()]), Ok(1));
    }

    #[test]
    fn what_breaks_a_rule() {
        let done = json!({"done": {}}).to_string();
        let long = |bytes: usize| json!({"log": "x".repeat(bytes)}).to_string();
        let bad: &[(&[String], &str)] = &[
            (&[call(1)], "before the greeting"),
            (&[HELLO.into(), HELLO.into()], "second greeting"),
            (&[HELLO.replace(":1", ":2")], "version 2"),
            (&[HELLO.into(), call(2)], "call 2 came as number 1"),
            (&[HELLO.into(), call(1), call(1)], "call 1 came as number 2"),
            (&[HELLO.into(), done.clone(), done.clone()], "after the end"),
            (&[HELLO.into(), done, call(1)], "after the end"),
            (&[HELLO.into(), long(LOG_BYTES_MAX), long(LOG_BYTES_MAX)], "can print"),
            (&[HELLO.into(), long(LOG_BYTES_MAX + 1)], "maximum"),
            (&[HELLO.into(), long(TO_PARENT_BYTES_MAX * 3)], "a line has more"),
            (&[HELLO.into(), json!({"id": 1, "log": "x"}).to_string()], "neither one message"),
            (&[HELLO.into(), json!({"done": {}, "log": "x"}).to_string()], "neither one message"),
            (&[HELLO.into(), json!({"ok": 1}).to_string()], "unknown field"),
            (&[HELLO.into(), json!({"done": {"more": 1}}).to_string()], "unknown field"),
            (&[HELLO.into(), String::new()], "no message"),
            (&[HELLO.into(), "\u{0}".into()], "no message"),
            (&[HELLO.into(), "[".repeat(100_000)], "no message"),
        ];
        for (lines, expected) in bad {
            let error = judge(lines).expect_err(expected);
            assert!(error.contains(expected), "{expected}: {error}");
        }
        let mut lines = vec![HELLO.to_owned()];
        lines.extend((1..=CALLS_MAX + 1).map(call));
        assert!(judge(&lines).expect_err("too many").contains("call 65"));
    }
}
