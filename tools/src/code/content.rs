//! What a model reads of a program's outcome, and what a program that called the tool does.

use code_sandbox::protocol::beginning;
use gateway_core::vocab::{ErrorCode, ToolResult};
use serde_json::{Map, Value, json};

use super::{Ended, Outcome, PROGRAM_CONTENT_BYTES_MAX, ProgramError};
use crate::{limits::DATA_BYTES_MAX, nested::NestedCalls};

/// Bytes that are left for a note where something is cut.
const NOTE_BYTES: usize = 160;
/// Bytes of the data of a result that are left for the program's own: the rest is for the list of its calls.
const OUTCOME_BYTES_MAX: usize = DATA_BYTES_MAX - 16 * 1024;

const ANSWER_SAID: &str = "The program has ended.";

impl ProgramError {
    /// The message with its place.
    fn text(&self) -> String {
        match (self.line, self.column) {
            (Some(line), Some(column)) => format!("Error in line {line}, column {column}: {}", self.message),
            (Some(line), None) => format!("Error in line {line}: {}", self.message),
            _ => format!("Error: {}", self.message),
        }
    }
}

impl Outcome {
    /// What was printed, then the JSON of the result, then the error: at most [`PROGRAM_CONTENT_BYTES_MAX`] bytes. A note
    /// says what is cut.
    pub fn content(&self) -> String {
        let mut body = self.logs.join("\n");
        let result = match (&self.result, &self.cut) {
            (Some(result), _) => Some((result.to_string(), 0)),
            (None, Some((text, bytes))) => Some((text.clone(), bytes.saturating_sub(text.len()))),
            (None, None) => None,
        };
        let mut missing = 0;
        if let Some((text, cut)) = result {
            missing = cut;
            if !body.is_empty() {
                body.push('\n');
            }
            body.push_str(&text);
        }
        let error = self.error.as_ref().map(ProgramError::text).unwrap_or_default();
        let room = PROGRAM_CONTENT_BYTES_MAX.saturating_sub(error.len() + NOTE_BYTES);
        let kept = beginning(&body, room).len();
        missing += body.len() - kept;
        body.truncate(kept);
        if missing > 0 {
            body.push_str(&format!(
                "\n[{missing} bytes are cut: print or export less, {PROGRAM_CONTENT_BYTES_MAX} bytes are the maximum]"
            ));
        }
        if !error.is_empty() {
            if !body.is_empty() {
                body.push('\n');
            }
            body.push_str(&error);
        }
        if body.is_empty() {
            body.push_str("The program ended without printing or exporting anything.");
        }
        body
    }

    /// `{result, logs, error}` in at most so many bytes of JSON: the last lines are left out first, then the result.
    pub fn data(&self, bytes_max: usize) -> Value {
        let mut data = Map::from_iter([("result".to_owned(), json!(self.result)), ("logs".to_owned(), json!([]))]);
        if let Some(error) = &self.error {
            let error = json!({"message": error.message, "line": error.line, "column": error.column});
            data.insert("error".to_owned(), error);
        }
        if let Some((_, bytes)) = &self.cut {
            data.insert("note".to_owned(), format!("the result has {bytes} bytes and is left out").into());
        }
        let bytes = |data: &Map<String, Value>| Value::from(data.clone()).to_string().len() + NOTE_BYTES;
        if bytes(&data) > bytes_max {
            data.insert("result".to_owned(), Value::Null);
            data.insert("note".to_owned(), "the result is too long and is left out".into());
        }
        let mut room = bytes_max.saturating_sub(bytes(&data));
        let mut logs = Vec::new();
        for line in &self.logs {
            let line = Value::from(line.as_str());
            let Some(left) = room.checked_sub(line.to_string().len() + 1) else {
                data.insert("left_out".to_owned(), (self.logs.len() - logs.len()).into());
                break;
            };
            room = left;
            logs.push(line);
        }
        data.insert("logs".to_owned(), logs.into());
        data.into()
    }
}

/// The kind of failure; `None`: it ran to its end.
pub(super) fn failure(ended: Ended) -> Option<ErrorCode> {
    match ended {
        Ended::Finished => None,
        Ended::Failed | Ended::OutOfMemory | Ended::Crashed => Some(ErrorCode::ExecutionError),
        Ended::TimedOut => Some(ErrorCode::Timeout),
        Ended::Cancelled => Some(ErrorCode::Cancelled),
        Ended::Unavailable => Some(ErrorCode::AppNotAvailable),
    }
}

/// The result of a program for a model.
pub(super) fn result(outcome: &Outcome, calls: &NestedCalls) -> ToolResult {
    let content = outcome.content();
    let mut data = outcome.data(OUTCOME_BYTES_MAX);
    let done = calls.done();
    if let Some(data) = data.as_object_mut() {
        let calls = done.iter().map(|call| json!({"tool": call.tool, "ok": call.ok, "ms": call.ms}));
        data.insert("calls".to_owned(), calls.collect());
    }
    let mut result = match failure(outcome.ended) {
        None => ToolResult { content, say: Some(ANSWER_SAID.to_owned()), ..ToolResult::default() },
        Some(code) => {
            let message =
                outcome.error.as_ref().map_or_else(|| "the program failed".to_owned(), |it| it.message.clone());
            // To repeat it would repeat all of its calls.
            ToolResult { content, ..ToolResult::failed(code, message, false) }
        }
    };
    result.data = Some(data);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_lines_come_first_and_the_error_last() {
        let mut outcome = Outcome::early(Ended::Failed, "no such train");
        outcome.logs = vec!["one".into(), "two".into()];
        assert_eq!(outcome.content(), "one\ntwo\nError: no such train");
        outcome.error = Some(ProgramError { message: "no".into(), line: Some(3), column: Some(7) });
        outcome.result = Some(json!({"a": 1}));
        assert_eq!(outcome.content(), "one\ntwo\n{\"a\":1}\nError in line 3, column 7: no");
        assert!(Outcome::new(Ended::Finished).content().contains("without printing"));
    }

    #[test]
    fn long_ones_are_cut_with_a_note() {
        let mut outcome = Outcome::early(Ended::Failed, "why".repeat(600));
        outcome.logs = vec!["é".repeat(1000); 20];
        outcome.result = Some("x".repeat(60_000).into());
        let content = outcome.content();
        assert!(content.len() <= PROGRAM_CONTENT_BYTES_MAX && content.len() > PROGRAM_CONTENT_BYTES_MAX - 300);
        assert!(content.contains("bytes are cut") && content.ends_with("whywhy"), "{content}");
        for max in [2_000, 30_000, 65_536] {
            let data = outcome.data(max);
            assert!(data.to_string().len() <= max, "{max}");
            assert_eq!(data["left_out"].is_null(), data["logs"].as_array().map(Vec::len) == Some(20));
        }
        assert_eq!(outcome.data(2_000)["result"], Value::Null);
        assert_eq!(outcome.data(200_000)["result"], outcome.result.clone().unwrap());
        outcome.result = None;
        outcome.cut = Some(("abc".into(), 100_000));
        outcome.logs.clear();
        outcome.error = None;
        assert_eq!(outcome.content(), "abc\n[99997 bytes are cut: print or export less, 8192 bytes are the maximum]");
        assert!(outcome.data(2_000)["note"].as_str().unwrap().contains("100000"));
    }
}
