//! The stages and durations of turns, from their stored records, and percentiles of them: for `lorgnette turns` and the
//! console.

use serde_json::Value;

/// Stages: title and the field whose distance from the last voiced sample is shown, or from the text where the turn was
/// typed.
pub(crate) const STAGES: [(&str, &str); 8] = [
    ("end", "end_decided_us"),
    ("final", "final_us"),
    ("request", "request_sent_us"),
    ("model", "model_first_us"),
    ("tool", "tool_end_us"),
    ("display", "first_display_us"),
    ("speech", "first_frame_us"),
    ("heard", "heard_us"),
];
/// Durations: title and field. `ask` has none of its own: from the accepted words to the request on its way.
pub(crate) const DURATIONS: [(&str, &str); 4] =
    [("decode", "asr_decode_us"), ("queue", "asr_queue_us"), ("ask", ""), ("tts", "tts_us")];

/// The stages and durations of a turn in microseconds, in the order of their titles.
pub(crate) fn spans(turn: &Value) -> impl Iterator<Item = Option<u64>> {
    let at = |key: &str| turn.get(key).and_then(Value::as_u64);
    let between = |from: Option<u64>, to: &str| at(to).zip(from).map(|(to, from)| to.saturating_sub(from));
    let began = at("last_voice_us").or(at("final_us"));
    let duration = |field: &str| if field.is_empty() { between(at("final_us"), "request_sent_us") } else { at(field) };
    let stages = STAGES.map(|(_, field)| between(began, field));
    stages.into_iter().chain(DURATIONS.map(|(_, field)| duration(field)))
}

/// Heads of columns for [`spans`], in the same order.
pub(crate) fn titles() -> impl Iterator<Item = &'static str> {
    STAGES.into_iter().chain(DURATIONS).map(|(title, _)| title)
}

/// Turns that began alike: their times count from the same moment.
pub(crate) struct Kind<'t> {
    /// How they began, in a word.
    pub(crate) name: &'static str,
    /// The moment, in words.
    pub(crate) from: &'static str,
    pub(crate) turns: Vec<&'t Value>,
}

/// The spoken turns and the typed ones. Who types waits for no end of speech and no recogniser, so that percentiles of both would
/// be those of neither.
pub(crate) fn kinds(turns: &[Value]) -> [Kind<'_>; 2] {
    let is_spoken = |turn: &&Value| turn.get("last_voice_us").is_some_and(Value::is_u64);
    let (spoken, typed) = turns.iter().partition(is_spoken);
    [
        Kind { name: "spoken", from: "the last word", turns: spoken },
        Kind { name: "typed", from: "the text", turns: typed },
    ]
}

/// Of each stage and duration, by its title: the times of the turns that came through it, in microseconds, sorted.
pub(crate) fn columns<'t>(turns: impl IntoIterator<Item = &'t Value>) -> Vec<(&'static str, Vec<u64>)> {
    let mut columns: Vec<(&str, Vec<u64>)> = titles().map(|title| (title, Vec::new())).collect();
    for turn in turns {
        for ((_, column), span) in columns.iter_mut().zip(spans(turn)) {
            column.extend(span);
        }
    }
    columns.iter_mut().for_each(|(_, column)| column.sort_unstable());
    columns
}

/// The value below which so many percent of sorted values are: nearest rank.
pub(crate) fn share(sorted: &[u64], percent: usize) -> Option<u64> {
    sorted.get((sorted.len() * percent).div_ceil(100).max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn percentiles_are_those_of_the_turns_that_came_through() {
        let typed = |ms: u64| json!({"final_us": 1_000, "first_display_us": 1_000 + ms * 1_000, "heard_us": null});
        let turns: Vec<Value> =
            (1..=100).map(typed).chain([json!({"last_voice_us": 5, "end_decided_us": 9})]).collect();
        let columns = columns(&turns);
        let of = |title: &str| &columns.iter().find(|(other, _)| *other == title).unwrap().1;
        assert_eq!(
            [50, 90, 95, 99].map(|percent| share(of("display"), percent)),
            [50, 90, 95, 99].map(|ms| Some(ms * 1_000))
        );
        assert_eq!((share(of("end"), 99), share(of("heard"), 50)), (Some(4), None));
        assert_eq!((of("final").len(), of("ask").len()), (100, 0));
        let [spoken, typed] = kinds(&turns);
        assert_eq!(
            [&spoken, &typed].map(|kind| (kind.name, kind.turns.len())),
            [("spoken", 1), ("typed", 100)],
            "what was typed is no part of the times of speech"
        );
    }
}
