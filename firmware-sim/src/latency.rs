//! Latencies of one turn as seen by the glasses. t0 is the capture time of the last voiced sample.

use serde::Serialize;

use crate::seen::{Event, Seen};

/// Microseconds from t0; `None`: it did not happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Until the end of the turn was decided: the state leaves `listening`.
    pub end_us: Option<i64>,
    /// Until the final transcript.
    pub final_us: Option<i64>,
    /// Until the first text on the display that is no caption of what is said.
    pub display_us: Option<i64>,
    /// Until the first sample from the speaker.
    pub sound_us: Option<i64>,
}

impl Latency {
    /// Stages with their names, in order.
    pub fn stages(&self) -> [(&'static str, Option<i64>); 4] {
        [
            ("end of turn", self.end_us),
            ("final transcript", self.final_us),
            ("first display", self.display_us),
            ("first sound", self.sound_us),
        ]
    }
}

/// Measures the latencies of the turn that `t0_us` belongs to, from the events since its beginning.
pub fn measure(events: &[Event], t0_us: u64) -> Latency {
    let from_t0 = |at_us: u64| i64::try_from(at_us).unwrap_or(i64::MAX) - i64::try_from(t0_us).unwrap_or(i64::MAX);
    // Partial transcripts may arrive and be shown while the sentence is still spoken; an end cannot.
    let first = |wanted: &dyn Fn(&Seen) -> bool| {
        events.iter().find(|event| event.at_us >= t0_us && wanted(&event.seen)).map(|event| from_t0(event.at_us))
    };
    let transcripts: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.seen {
            Seen::Transcript { text, .. } => Some(text.split_whitespace().collect()),
            _ => None,
        })
        .collect();
    Latency {
        end_us: first(
            &|seen| matches!(seen, Seen::Listening { state, .. } if state == "thinking" || state == "speaking" || state == "idle"),
        ),
        final_us: first(&|seen| matches!(seen, Seen::Transcript { is_final: true, .. })),
        display_us: first(&|seen| match seen {
            Seen::Display { text, .. } => !text.trim().is_empty() && !is_caption(text, &transcripts),
            _ => false,
        }),
        sound_us: first(&|seen| matches!(seen, Seen::FirstSound { .. })),
    }
}

/// Whether a text on the display is one of these transcripts, which are without their spaces. Captions are broken into lines; with a
/// dash begins what somebody said after somebody else, and of what is above it the beginning may have left the display.
fn is_caption(text: &str, transcripts: &[String]) -> bool {
    let mut turns: Vec<(bool, String)> = Vec::new();
    for line in text.lines() {
        let begun = line.strip_prefix('–');
        match turns.last_mut().filter(|_| begun.is_none()) {
            Some((_, words)) => words.extend(line.split_whitespace()),
            None => turns.push((begun.is_some(), begun.unwrap_or(line).split_whitespace().collect())),
        }
    }
    // Of an earlier turn the transcript may have come before these events.
    turns.iter().filter(|(_, words)| !words.is_empty()).any(|(has_dash, words)| {
        transcripts.iter().any(|said| if *has_dash { said.contains(words) } else { said.ends_with(words) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at_us: u64, seen: Seen) -> Event {
        Event { at_us, seen }
    }

    fn transcript(text: &str, is_final: bool) -> Seen {
        Seen::Transcript { turn: 1, utterance: 1, revision: 1, is_final, addressed: true, text: text.into() }
    }

    fn display(text: &str) -> Seen {
        Seen::Display { turn: 1, view: "main".into(), text: text.into(), lines: Vec::new() }
    }

    #[test]
    fn stages_are_read_from_the_events() {
        let listening = |state: &str| Seen::Listening { turn: 1, state: state.into() };
        let events = [
            at(500, listening("listening")),
            at(600, transcript("set a", false)),
            at(1_100, display("set a")),
            at(1_450, listening("thinking")),
            at(1_460, transcript("set a timer", true)),
            at(1_461, display("set a timer")),
            at(1_470, display("Timer set.")),
            at(1_600, Seen::FirstSound { turn: 1, speech: 1 }),
        ];
        let latency = measure(&events, 1_000);
        assert_eq!(latency.stages().map(|(_, us)| us), [Some(450), Some(460), Some(470), Some(600)]);
    }

    #[test]
    fn captions_are_not_the_first_display() {
        let events = [
            at(1_100, display("– Do you want tea?\n– No, set a\ntimer")),
            at(1_200, transcript("No, set a timer", false)),
            at(1_300, transcript("No, set a timer for ten minutes.", true)),
            at(1_310, display("timer for ten\nminutes.")),
            at(1_400, display("– 10 minutes\nare set.")),
        ];
        assert_eq!(measure(&events, 1_000).display_us, Some(400));
    }

    #[test]
    fn what_did_not_happen_has_no_time() {
        assert_eq!(measure(&[at(10, display("alarm"))], 1_000), Latency::default());
    }
}
