//! What the calls of a program have done, if the program itself has failed: an account for the model, so that nothing
//! is repeated, and a sentence for the wearer.

use gateway_core::vocab::{ErrorCode, ToolError, ToolResult};

use crate::{
    journal::{Made, Past},
    limits::{MESSAGE_BYTES_MAX, NESTED_ARGUMENTS_BYTES_MAX, NESTED_SAID_MAX, TITLE_CHARS_MAX},
    nested::{Entry, Outcome, State, title},
    programs::RunCall,
    reply::cut,
    spoken,
};

/// The changes among the calls of a program.
struct Account<'a> {
    done: Vec<&'a Entry>,
    failed: Vec<(&'a Entry, &'a ToolError)>,
    unknown: Vec<&'a Entry>,
    /// The number of calls that were not begun, whatever their tools.
    waiting: usize,
}

impl<'a> Account<'a> {
    fn of(calls: &'a [Entry]) -> Self {
        let mut account = Self { done: Vec::new(), failed: Vec::new(), unknown: Vec::new(), waiting: 0 };
        for call in calls {
            match &call.state {
                State::Waiting | State::Ended { outcome: Outcome::NotBegun, .. } => account.waiting += 1,
                _ if !call.changes => {}
                State::Ended { outcome: Outcome::Failed, error: Some(error), .. } => account.failed.push((call, error)),
                State::Running | State::Ended { outcome: Outcome::Unknown, .. } => account.unknown.push(call),
                State::Ended { .. } => account.done.push(call),
            }
        }
        account
    }

    /// Whether anything may have been changed.
    fn is_partly_done(&self) -> bool {
        !self.done.is_empty() || !self.unknown.is_empty()
    }

    /// In a sentence, for the model.
    fn summary(&self) -> String {
        let them = |count| if count == 1 { "it" } else { "them" };
        let (done, unknown) = (self.done.len(), self.unknown.len());
        let made = (done > 0).then(|| format!("It has made {}: do not repeat {}.", changes(done), them(done)));
        let open = (unknown > 0).then(|| {
            let (count, them) = (changes(unknown), them(unknown));
            format!("Whether it has made {count} more is unknown: do not repeat {them} either.")
        });
        let summary: Vec<String> = [made, open].into_iter().flatten().collect();
        if summary.is_empty() { "Its calls have changed nothing.".to_owned() } else { summary.join(" ") }
    }

    /// All calls, for the model.
    fn lines(&self) -> String {
        let mut text = String::new();
        let mut add = |title: &str, lines: Vec<String>| {
            if !lines.is_empty() {
                text.push_str(&format!("\n{title}:\n{}", lines.join("\n")));
            }
        };
        add("Done", self.done.iter().map(|call| line(call)).collect());
        add("Unknown", self.unknown.iter().map(|call| line(call)).collect());
        let failed = |(call, error): &(&Entry, &ToolError)| format!("{}: {}", line(call), cut(&error.message, 160));
        add("Failed", self.failed.iter().map(failed).collect());
        if self.waiting > 0 {
            text.push_str(&format!("\nNot begun: {}", self.waiting));
        }
        text
    }

    /// In a sentence or two, for the wearer.
    fn said(&self) -> String {
        let done = (!self.done.is_empty()).then(|| format!("Already done: {}.", titles(&self.done)));
        let unknown = (!self.unknown.is_empty())
            .then(|| format!("I don't know whether this was done: {}.", titles(&self.unknown)));
        let said: Vec<String> = [done, unknown].into_iter().flatten().collect();
        if said.is_empty() { "Nothing was changed.".to_owned() } else { said.join(" ") }
    }
}

/// The result of a program: of one that failed it tells what its calls have done.
pub(super) fn told(mut result: ToolResult, calls: &[Entry]) -> ToolResult {
    let account = Account::of(calls);
    let Some(error) = &mut result.error else {
        // The program has not waited for the results of all of its calls.
        if !account.unknown.is_empty() {
            result.notes.push(format!("{}{}", account.summary(), account.lines()));
        }
        return result;
    };
    let summary = account.summary();
    let room = MESSAGE_BYTES_MAX.saturating_sub(summary.len() + 1);
    let said = result.say.take().unwrap_or_else(|| match error.code {
        ErrorCode::Cancelled => "I stopped that.".to_owned(),
        ErrorCode::Timeout => "That took too long, so I stopped it.".to_owned(),
        other => other.apology().to_owned(),
    });
    result.say = Some(format!("{said} {}", account.said()));
    result.content = format!("{}\n{summary}{}", result.content, account.lines());
    error.message = format!("{} {summary}", cut(&error.message, room));
    if account.is_partly_done() {
        error.retryable = false;
        // The core tells the wearer of this even if the turn was interrupted.
        result.mark_partly_done(true);
    }
    result
}

/// The result of a program that was begun before the gateway was restarted. `calls`: the changes that it had begun.
pub(super) fn recalled(calls: Vec<Made>) -> ToolResult {
    let message = "This program was begun before and was cut off. It is not run again.";
    let mut result = ToolResult::failed(ErrorCode::ExecutionError, message, false);
    result.say = Some("I began that before, and was cut off.".to_owned());
    let calls: Vec<Entry> = calls.into_iter().map(recalled_call).collect();
    told(result, &calls)
}

impl From<Made> for RunCall {
    fn from(made: Made) -> Self {
        recalled_call(made).into()
    }
}

fn recalled_call(made: Made) -> Entry {
    let Made { tool, arguments, past } = made;
    let state = match past {
        Past::Done(result) => {
            State::Ended { outcome: Outcome::of(&result, true), error: result.error, ms: 0, begun: true }
        }
        Past::Unknown => State::Running,
    };
    let title = title(&tool);
    Entry { id: String::new(), tool, title, arguments, definition: None, changes: true, state }
}

fn changes(count: usize) -> String {
    spoken::count(count, "change")
}

fn line(call: &Entry) -> String {
    format!("- {} {}", call.tool, cut(&call.arguments, NESTED_ARGUMENTS_BYTES_MAX)).trim_end().to_owned()
}

/// The calls by their titles, each with its number: "add note, 3 times".
fn titles(calls: &[&Entry]) -> String {
    let mut counted: Vec<(String, usize)> = Vec::new();
    for call in calls {
        let title: String = call.title.chars().take(TITLE_CHARS_MAX).collect();
        match counted.iter_mut().find(|(other, _)| *other == title) {
            Some((_, count)) => *count += 1,
            None => counted.push((title, 1)),
        }
    }
    let others: usize = counted.iter().skip(NESTED_SAID_MAX).map(|(_, count)| count).sum();
    let mut said: Vec<String> = counted
        .into_iter()
        .take(NESTED_SAID_MAX)
        .map(|(title, count)| match count {
            1 => title,
            2 => format!("{title}, twice"),
            more => format!("{title}, {more} times"),
        })
        .collect();
    if others > 0 {
        said.push(format!("{others} more"));
    }
    said.join("; ")
}
