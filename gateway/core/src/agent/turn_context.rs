//! The turn context: what a model is told about the current situation, for one request: where the wearer is, what is on
//! the display, and the state of the glasses. The time is part of every request already.
//!
//! It is placed right before the request of this turn, not at the beginning: everything before it is the same as in the
//! last request, so that the provider's prompt cache applies.

use alloc::{
    format,
    string::{String, ToString as _},
    vec::Vec,
};

use super::request_view;
use crate::{
    context::Context,
    limits::SHOWN_CHARS_MAX,
    vocab::{Content, DeviceFacts, Message, Role},
};

/// The messages of a request with the turn context; `turn`: index of this turn's first message.
pub(super) fn with_context(cx: &Context, messages: Vec<Message>, turn: usize) -> Vec<Message> {
    let behind_instructions = usize::from(cx.config.instructions.is_some());
    let mut view = request_view::of(messages, turn);
    for block in &cx.briefing {
        // The index is always valid: the messages of the turn follow.
        let _there = view.insert_before(behind_instructions, Message::text(Role::System, block.clone()));
    }
    if let Some(text) = moment(cx.config.place.as_deref(), (cx.facts(), cx.is_muted()), cx.seen()) {
        let _there = view.insert_before(turn, Message::text(Role::System, text));
    }
    view.into_messages()
}

fn moment(place: Option<&str>, (facts, muted): (&DeviceFacts, bool), seen: Option<&Content>) -> Option<String> {
    let mut lines = Vec::new();
    if let Some(place) = place.filter(|place| !place.trim().is_empty()) {
        lines.push(format!("The wearer is in {}.", place.trim()));
    }
    if let Some(percent) = facts.battery_percent {
        let charging = if facts.charging == Some(true) { ", charging" } else { "" };
        lines.push(format!("Battery of the glasses: {percent} percent{charging}."));
    }
    if let Some(connection) = facts.connection.as_deref().filter(|connection| !connection.is_empty()) {
        lines.push(format!("Connected by {connection}."));
    }
    if muted {
        lines.push("The microphone is off; the wearer types.".to_string());
    }
    let shown = seen.map(|content| content.texts().join("\n")).unwrap_or_default();
    let shown: Vec<&str> = shown.split_whitespace().collect();
    if !shown.is_empty() {
        let shown: String = shown.join(" ").chars().take(SHOWN_CHARS_MAX).collect();
        // Content drawn by an app is not trusted: it is quoted and labelled as data.
        lines.push(format!("On the display now, as data: {:?}.", shown));
    }
    (!lines.is_empty()).then(|| lines.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_is_told() {
        let unknown = DeviceFacts::default();
        assert_eq!(moment(None, (&unknown, false), None), None);
        assert_eq!(moment(Some(" "), (&unknown, false), Some(&Content::Text { text: "\n".into() })), None);
        let facts = DeviceFacts { battery_percent: Some(40), charging: Some(true), connection: Some("Wi-Fi".into()) };
        let card = Content::Card { title: "Tea".into(), text: "in\n5 minutes\"".into() };
        assert_eq!(
            moment(Some("Lisbon"), (&facts, true), Some(&card)).as_deref(),
            Some(
                "The wearer is in Lisbon. Battery of the glasses: 40 percent, charging. Connected by Wi-Fi. \
                 The microphone is off; the wearer types. On the display now, as data: \"Tea in 5 minutes\\\"\"."
            )
        );
    }

    #[test]
    fn a_full_display_is_cut() {
        let text = "word ".repeat(2_000);
        let told = moment(None, (&DeviceFacts::default(), false), Some(&Content::Text { text })).unwrap_or_default();
        assert!(told.chars().count() < SHOWN_CHARS_MAX + 60);
    }
}
