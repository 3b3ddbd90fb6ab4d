//! Shared code of the note tools.

use serde_json::{Value, json};

use crate::{limits::ITEM_CHARS_MAX, ports::Note, registry::RunContext, reply::cut, spoken};

/// A note for a model.
pub(super) fn describe(context: &RunContext, note: &Note) -> Value {
    let taken = spoken::local(note.created_wall_ms, context.ports.clock.zone());
    json!({
        "id": note.id,
        "text": note.text,
        "taken": taken.strftime("%Y-%m-%dT%H:%M").to_string(),
    })
}

/// A note as one of several.
pub(super) fn short(note: &Note) -> String {
    cut(&note.text, ITEM_CHARS_MAX)
}

/// Reads notes out, one sentence each.
pub(super) fn read_out(notes: &[Note]) -> String {
    let sentences: Vec<_> = notes.iter().map(|note| spoken::sentence(&spoken::capitalised(&short(note)))).collect();
    sentences.join(" ")
}

/// For small displays: one line each.
pub(super) fn lines(notes: &[Note]) -> String {
    let lines: Vec<_> = notes.iter().map(short).collect();
    lines.join("\n")
}
