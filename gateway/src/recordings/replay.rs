//! A recording, played again: the timeline, and whether the conversation did the same.

use gateway_core::{
    recording::{Difference, Entry, Replay},
    vocab::Timestamp,
};

use super::{Recording, file::turn_of};

/// How far before a turn was requested its timeline begins at most: what was said is older than its end.
const BEFORE_US: u64 = 30_000_000;

/// A line of a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// On the gateway's clock.
    pub(crate) at_us: u64,
    /// `>`: in, `<`: out, `.`: a timer.
    pub(crate) mark: char,
    /// The debug form; holds what was said.
    pub(crate) text: String,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub(crate) lines: Vec<Line>,
    /// Inputs and timers.
    pub(crate) given: usize,
    pub(crate) outputs: usize,
    /// Where it differed first: index in `lines` of what was next.
    pub(crate) difference: Option<(usize, Difference)>,
}

/// Gives a conversation again what is recorded, until it differs.
pub(crate) fn replay(recording: &Recording) -> Replayed {
    let mut replay: Option<Replay> = None;
    let mut now = Timestamp::default();
    let mut replayed = Replayed { lines: Vec::new(), given: 0, outputs: 0, difference: None };
    for entry in &recording.entries {
        let line = |now: Timestamp, mark, text: String| Line { at_us: now.mono_us, mark, text };
        let step = match (&mut replay, entry) {
            (None, Entry::Settings(settings)) => {
                replay = Some(Replay::new(settings.clone()));
                continue;
            }
            (None, _) => continue,
            (Some(replay), entry) => replay.step(entry),
        };
        if replayed.difference.is_none()
            && let Err(difference) = step
        {
            replayed.difference = Some((replayed.lines.len(), difference));
        }
        match entry {
            Entry::Settings(_) => {}
            Entry::Input(at, input) => {
                now = *at;
                replayed.given += 1;
                replayed.lines.push(line(now, '>', format!("{input:?}")));
            }
            Entry::Timeout(at) => {
                now = *at;
                replayed.given += 1;
                replayed.lines.push(line(now, '.', "a timer is due".to_owned()));
            }
            Entry::Output(text) => {
                replayed.outputs += 1;
                replayed.lines.push(line(now, '<', text.clone()));
            }
        }
    }
    // The last outputs may be missing: a gateway that is killed, or a full file, ends a recording anywhere.
    replayed
}

/// The lines of a turn: from the end of the one before it, or half a minute before it was requested, to its end.
pub(crate) fn of_turn(lines: &[Line], turn: u32) -> Option<std::ops::Range<usize>> {
    let is = |line: &Line, what: &str, of: &dyn Fn(u32) -> bool| {
        line.mark == '<' && line.text.starts_with(what) && turn_of(&line.text).is_some_and(of)
    };
    let requested = lines.iter().position(|line| is(line, "RequestTurn", &|id| id == turn))?;
    let before = lines[..requested].iter().rposition(|line| is(line, "TurnDone", &|_| true)).map_or(0, |at| at + 1);
    let earliest_us = lines[requested].at_us.saturating_sub(BEFORE_US);
    let begin = (before..requested).find(|at| lines[*at].at_us >= earliest_us).unwrap_or(requested);
    let done = lines[requested..].iter().position(|line| is(line, "TurnDone", &|id| id == turn));
    Some(begin..done.map_or(lines.len(), |at| requested + at + 1))
}
