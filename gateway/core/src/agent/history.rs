//! The messages of a turn that are kept: the request, the calls, and the text that was *heard*.

use alloc::{string::String, vec, vec::Vec};

use super::{
    calls::Step,
    pictures::{self, ImagePolicy},
};
use crate::{
    limits::IMAGES_PER_TURN_MAX,
    vocab::{Message, Role},
};

/// Appended to the heard part of an interrupted answer.
pub(crate) const CUT_MARK: &str = "[interrupted]";

/// How much of the answer reached the wearer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    All,
    /// The text of each step as far as it was heard.
    Part(Vec<String>),
}

/// The messages of a turn, with images according to `images`. Every tool call has its result.
pub(super) fn messages(request: &str, steps: &[Step], heard: &Heard, images: ImagePolicy) -> Vec<Message> {
    let mut pictures_left = if images == ImagePolicy::Attach { IMAGES_PER_TURN_MAX } else { 0 };
    let mut messages = vec![Message::text(Role::User, request)];
    for (index, step) in steps.iter().enumerate() {
        let text = match heard {
            Heard::All => step.text.trim(),
            Heard::Part(texts) => texts.get(index).map_or("", |text| text.trim()),
        };
        messages.extend(step.messages(text, images));
        messages.extend(pictures::message(step.results(), &mut pictures_left));
    }
    if matches!(heard, Heard::Part(_)) {
        mark_as_cut(&mut messages);
    }
    messages
}

/// Appends [`CUT_MARK`] to the last text of the assistant, or adds it as a message.
fn mark_as_cut(messages: &mut Vec<Message>) {
    use crate::vocab::Part;
    if let Some(last) = messages.last_mut()
        && last.role == Role::Assistant
        && let [rest @ .., Part::Text { text }] = last.parts.as_mut_slice()
        && rest.iter().all(|part| matches!(part, Part::Thinking { .. }))
    {
        text.push(' ');
        text.push_str(CUT_MARK);
        return;
    }
    messages.push(Message::text(Role::Assistant, CUT_MARK));
}
