//! The choice among several things that a tool has found, where the wearer meant one of them.
//!
//! A tool asks by its result: its data has `ask_which`, a list of objects with an `id` and a `label`, and it takes the `id` as an
//! argument. The wearer's answer is read against the labels.

use gateway_core::vocab::{Message, Part, Pending, PendingCall, Role, ToolCall};
use serde_json::{Value, json};

use super::{
    Decision, reply,
    utterance::{Utterance, View},
};

/// Most things to choose from: as many as a result lists.
const CHOICES_MAX: usize = 50;

/// What follows the results at the end of the conversation; `None` if the last message is of another kind.
pub(super) fn after_results(messages: &[Message]) -> Option<Decision> {
    let said = reply::to_results(messages)?;
    Some(match pending(messages) {
        Some(pending) => Decision::Ask(said, pending),
        None => Decision::Say(said),
    })
}

/// The calls between which the only result at the end asks the wearer to choose.
fn pending(messages: &[Message]) -> Option<Pending> {
    let (last, before) = messages.split_last()?;
    let [Part::ToolResult { call_id, result }] = last.parts.as_slice() else { return None };
    let call = before.iter().rev().flat_map(|message| &message.parts).find_map(|part| match part {
        Part::ToolCall { call } if call.id == *call_id => Some(call),
        _ => None,
    })?;
    let choices = result.data.as_ref()?.get("ask_which")?.as_array()?;
    let calls: Vec<PendingCall> = choices.iter().take(CHOICES_MAX).filter_map(|choice| chosen(call, choice)).collect();
    let words = before.iter().rev().find(|message| message.role == Role::User).map(Message::plain_text);
    (calls.len() > 1).then(|| Pending { words: words.unwrap_or_default(), calls, done: Vec::new(), asked: 1 })
}

/// The same call for one of the things.
fn chosen(call: &ToolCall, choice: &Value) -> Option<PendingCall> {
    let (id, label) = (choice.get("id")?.as_u64()?, choice.get("label")?.as_str()?);
    let mut arguments = call.arguments.as_object().cloned().unwrap_or_default();
    arguments.insert("id".to_owned(), json!(id));
    Some(PendingCall {
        name: call.name.clone(),
        arguments: Value::Object(arguments),
        label: label.to_owned(),
        ..PendingCall::default()
    })
}

/// The one call whose label has all that was said: "the pasta one". A few words of it are enough if no other label has them.
pub(super) fn by_part<'a>(
    said: &Utterance<'_>,
    labels: &[(Utterance<'_>, &'a PendingCall)],
) -> Option<&'a PendingCall> {
    let places = said.language.answer.places;
    let said = keys(said);
    // "The second one" is one by its place, and not a timer of so many seconds.
    if said.len() == 1 && places.iter().any(|(place, _)| said[0] == *place) {
        return None;
    }
    let is_meant = |label: &Utterance<'_>| {
        let label = keys(label);
        said.iter().all(|word| label.contains(word))
    };
    let mut meant = labels.iter().filter(|(label, _)| is_meant(label)).map(|(_, call)| *call);
    match (said.is_empty(), meant.next(), meant.next()) {
        (false, Some(only), None) => Some(only),
        _ => None,
    }
}

/// Whether the word "one" at `at` counts nothing: it is the last one, or what follows only links.
fn is_pronoun(view: View<'_>, at: usize) -> bool {
    let next = view.text(at + 1);
    next.is_empty() || view.language().is_small(next) || view.language().is_skippable(next)
}

/// What distinguishes one thing from another: its words without small ones, numbers as digits, plurals as the singular.
fn keys(utterance: &Utterance<'_>) -> Vec<String> {
    let view = utterance.view(usize::MAX);
    let (mut keys, mut at) = (Vec::new(), 0);
    while let Some(word) = view.word(at) {
        let language = view.language();
        match view.number(at) {
            // "The pasta one", "the one about milk".
            Some(_) if language.is_english() && word.text == "one" && is_pronoun(view, at) => {}
            Some((end, value)) => {
                keys.push(value.to_string());
                at = end;
                continue;
            }
            None if language.is_small(&word.text) || language.is_skippable(&word.text) => {}
            None => keys.push(word.text.strip_suffix('s').unwrap_or(&word.text).to_owned()),
        }
        at += 1;
    }
    keys
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gateway_core::vocab::{Phrases, ToolResult, ToolSpec};

    use super::*;
    use crate::{Request, intents::Engine};

    fn tool(name: &str, template: &str) -> Arc<ToolSpec> {
        let phrases = vec![Phrases { language: "en".into(), templates: vec![template.into()] }];
        let seconds = json!({"type": "object", "properties": {"seconds": {"type": "integer"}}});
        Arc::new(ToolSpec { name: name.into(), input_schema: seconds, phrases, ..ToolSpec::default() })
    }

    fn asked(data: Value) -> Vec<Message> {
        let call = ToolCall { id: "c1".into(), name: "timer.cancel".into(), arguments: json!({}) };
        let result = ToolResult { data: Some(data), ..ToolResult::said("Which one?") };
        vec![
            Message::text(Role::User, "cancel the timer"),
            Message { role: Role::Assistant, parts: vec![Part::ToolCall { call }] },
            Message { role: Role::Tool, parts: vec![Part::ToolResult { call_id: "c1".into(), result }] },
        ]
    }

    #[test]
    fn the_wearers_answer_chooses_one_of_the_things_and_calls_the_tool_for_it() {
        let tools: crate::Tools =
            Arc::new([tool("timer.cancel", "cancel the timer"), tool("timer.set", "[a] {seconds:duration} timer")]);
        let which = json!([
            {"id": 7, "label": "the pasta timer"},
            {"id": 9, "label": "the ten minute timer"},
            {"id": 11, "label": "the 15 minute timer"},
            {"id": 13, "label": "the 30 second timer"},
            {"id": 15, "label": "milk, no sugar at nine"},
        ]);
        let Some(Decision::Ask(said, pending)) = after_results(&asked(json!({"ask_which": which}))) else { panic!() };
        assert_eq!((said.as_str(), pending.words.as_str(), pending.calls.len()), ("Which one?", "cancel the timer", 5));
        let engine = Engine::new();
        for (answer, id) in [
            ("The pasta timer.", Some(7)),
            ("The pasta one, please.", Some(7)),
            ("Pasta.", Some(7)),
            ("The ten minute timer.", Some(9)),
            ("10 minutes", Some(9)),
            ("The fifteen minute one.", Some(11)),
            ("The first one.", Some(7)),
            ("The second.", Some(9)),
            ("The second one.", Some(9)),
            ("The thirty second timer.", Some(13)),
            ("The one at nine.", Some(15)),
            ("The one with sugar.", Some(15)),
            ("No.", None),
            ("The timer.", None),
            ("The egg timer.", None),
        ] {
            let request = Request {
                messages: vec![Message::text(Role::User, answer)],
                tools: tools.clone(),
                pending: Some(pending.clone()),
                ..Request::default()
            };
            let got = match engine.decide(&request) {
                Decision::Calls(calls) => Some((calls[0].name.clone(), calls[0].arguments.clone())),
                _ => None,
            };
            let expected = id.map(|id| ("timer.cancel".to_owned(), json!({"id": id})));
            assert_eq!(got, expected, "{answer}");
        }
    }

    #[test]
    fn where_nothing_is_to_be_chosen_nothing_is_asked() {
        for data in [
            json!({}),
            json!({"ask_which": []}),
            json!({"ask_which": [{"id": 7, "label": "x"}]}),
            json!({"ask_which": 3}),
        ] {
            assert!(matches!(after_results(&asked(data)), Some(Decision::Say(said)) if said == "Which one?"));
        }
        assert!(after_results(&[Message::text(Role::User, "hello")]).is_none());
    }
}
