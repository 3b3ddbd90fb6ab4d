//! Every provider is tested by the same properties: requests are legal and complete, answers are parsed or rejected,
//! with no third outcome.
//!
//! A witness ([`witness::Witness`]) reads a provider's requests and writes its answers without any code of the adapter;
//! the properties use only the witness.

mod anthropic;
mod chat_completions;
mod conversation;
mod gemini;
mod responses;
mod witness;

use std::collections::BTreeSet;

use chat_models::{Request, kinds::Kind};
use conversation::{any_answer, any_messages, any_request, expected, offering, orderly, spoken};
use gateway_core::vocab::{Message, ModelEvent, Part, Role, StopReason, ToolResult};
use proptest::prelude::*;
use serde_json::Value;
use witness::{Item, Seen, Witness, joined};

/// One line for each provider.
fn witnesses() -> Vec<Box<dyn Witness>> {
    vec![Box::new(chat_completions::Wire), Box::new(responses::Wire), Box::new(anthropic::Wire), Box::new(gemini::Wire)]
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() }
}

/// Invalid for every provider.
fn check_legal(witness: &dyn Witness, body: &Value) -> Result<(), TestCaseError> {
    let tools = witness.tools(body);
    let unique: BTreeSet<&String> = tools.iter().collect();
    prop_assert_eq!(unique.len(), tools.len(), "a tool is offered twice");
    for name in &tools {
        let letter = name.starts_with(|c: char| c.is_ascii_alphabetic());
        let legal = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
        prop_assert!(letter && legal && name.len() <= 63, "the name {}", name);
        prop_assert!(witness.takes_dots() || !name.contains('.'), "the name {}", name);
    }
    let seen = witness.seen(body);
    for pair in seen.windows(2) {
        let same = pair[0].role == pair[1].role;
        prop_assert!(!same || witness.may_repeat(&pair[0], &pair[1]), "two of a role: {:?}", pair);
    }
    for message in &seen {
        prop_assert!(!message.items.is_empty(), "an empty message");
        for item in &message.items {
            if let Item::Text(text) | Item::Result { text, .. } = item {
                prop_assert!(!text.trim().is_empty(), "a blank text in {:?}", message);
            }
        }
    }
    check_pairs(&seen)
}

/// Every batch of calls is followed immediately by its results, one for each, in order; no id is used twice.
fn check_pairs(seen: &[Seen]) -> Result<(), TestCaseError> {
    let mut ids = BTreeSet::new();
    let mut open: Vec<&str> = Vec::new();
    let mut answered = 0;
    for item in seen.iter().flat_map(|message| &message.items) {
        match item {
            Item::Call { id, .. } => {
                prop_assert_eq!(answered, 0, "a call among results");
                prop_assert!(ids.insert(id), "the id {} twice", id);
                let legal = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
                prop_assert!(legal && (1..=40).contains(&id.len()), "the id {}", id);
                open.push(id);
            }
            Item::Result { id, .. } => {
                prop_assert_eq!(open.get(answered), Some(&id.as_str()), "an orphaned result");
                answered += 1;
                if answered == open.len() {
                    open.clear();
                    answered = 0;
                }
            }
            _ => prop_assert!(open.is_empty(), "something between a call and its result: {:?}", item),
        }
    }
    prop_assert!(open.is_empty(), "an orphaned call");
    Ok(())
}

/// All events of an answer that arrives in these pieces.
fn parse(witness: &dyn Witness, request: &Request, pieces: &[&[u8]]) -> Vec<ModelEvent> {
    let provider = witness.provider();
    let mut parser = provider.parser(provider.render(request).names);
    let mut events: Vec<ModelEvent> = pieces.iter().flat_map(|piece| parser.push(piece)).collect();
    events.extend(parser.finish());
    assert!(parser.is_finished());
    assert!(parser.push(b"data: {}\n\n").is_empty() && parser.finish().is_empty(), "events after the last one");
    events
}

fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

fn check_ends_once(events: &[ModelEvent]) -> Result<(), TestCaseError> {
    let is_last = |event: &ModelEvent| matches!(event, ModelEvent::Done { .. } | ModelEvent::Failed { .. });
    prop_assert_eq!(events.iter().filter(|event| is_last(event)).count(), 1, "{:?}", events);
    prop_assert!(events.last().is_some_and(is_last));
    Ok(())
}

/// One byte is changed, doubled, removed or inserted.
fn mutate(bytes: &mut Vec<u8>, changes: &[(prop::sample::Index, u8, u8)]) {
    for (at, kind, byte) in changes {
        if bytes.is_empty() {
            return;
        }
        let at = at.index(bytes.len());
        match kind % 4 {
            0 => bytes[at] ^= byte | 1,
            1 => bytes.insert(at, *byte),
            2 => drop(bytes.remove(at)),
            _ => {
                let end = (at + usize::from(*byte)).min(bytes.len());
                let slice = bytes[at..end].to_vec();
                bytes.splice(at..at, slice);
            }
        }
    }
}

proptest! {
    #![proptest_config(config())]

    /// Any stored conversation: orphans, blanks, repeated ids, unexpected roles.
    #[test]
    fn any_conversation_makes_a_legal_request(request in any_request(any_messages())) {
        for witness in witnesses() {
            let body = witness.provider().render(&request).body.to_value().expect("JSON");
            check_legal(&*witness, &body).map_err(|error| named(&*witness, error))?;
        }
    }

    /// Nothing of an orderly conversation is lost or reordered, and all names map back.
    #[test]
    fn orderly_conversations_are_rendered_whole(request in any_request(orderly())) {
        for witness in witnesses() {
            let rendered = witness.provider().render(&request);
            let body = rendered.body.to_value().expect("JSON");
            check_legal(&*witness, &body).map_err(|error| named(&*witness, error))?;
            let back = |name: &str| rendered.names.tool(name).map(str::to_owned);
            let seen: Vec<Item> = witness
                .seen(&body)
                .into_iter()
                .flat_map(|message| joined(message.items))
                .map(|item| match item {
                    Item::Call { name, arguments, .. } => Item::Call { id: String::new(), name: back(&name).expect("known"), arguments },
                    Item::Result { text, .. } => Item::Result { id: String::new(), text },
                    item => item,
                })
                .collect();
            prop_assert_eq!(seen, expected(&request.messages), "{}", witness.name());
        }
    }

    /// An answer in the provider's own stream is parsed as intended, however the network splits it; and the next
    /// request contains it.
    #[test]
    fn answers_come_back_whole(
        request in any_request(orderly()),
        said in any_answer(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let request = offering(request, &said);
        for witness in witnesses() {
            let provider = witness.provider();
            let mut names = provider.render(&request).names;
            let stream = witness.stream(&said, &mut names);
            let events = parse(&*witness, &request, &pieces(stream.as_bytes(), &cuts));
            let (told, thoughts, calls) = spoken(&events);
            prop_assert_eq!(&told, &said.text(), "{}", witness.name());
            prop_assert_eq!(thoughts.len(), usize::from(said.thinks && witness.thought().is_some()));
            let meant: Vec<(&str, &Value)> = said.calls.iter().map(|call| (call.name.as_str(), &call.arguments)).collect();
            let got: Vec<(&str, &Value)> = calls.iter().map(|call| (call.name.as_str(), &call.arguments)).collect();
            prop_assert_eq!(got, meant, "{}", witness.name());
            let stop = if said.calls.is_empty() { StopReason::End } else { StopReason::ToolCalls };
            prop_assert_eq!(events.last(), Some(&ModelEvent::Done { stop, usage: said.usage }), "{}", witness.name());
            check_next(&*witness, &request, &events)?;
        }
    }

    /// A stream truncated at any byte, and corrupted anywhere.
    #[test]
    fn any_prefix_and_any_mutation_ends_exactly_once(
        request in any_request(orderly()),
        said in any_answer(),
        cut in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<u8>()), 0..4),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let request = offering(request, &said);
        for witness in witnesses() {
            let mut names = witness.provider().render(&request).names;
            let mut bytes = witness.stream(&said, &mut names).into_bytes();
            let end = cut.index(bytes.len() + 1);
            let prefix = parse(&*witness, &request, &pieces(&bytes[..end], &cuts));
            check_ends_once(&prefix)?;
            // A prefix gives nothing that the whole does not.
            let (told, ..) = spoken(&prefix);
            prop_assert!(said.text().starts_with(&told), "{}: {:?}", witness.name(), told);
            mutate(&mut bytes, &changes);
            check_ends_once(&parse(&*witness, &request, &pieces(&bytes, &cuts)))?;
            let mut parser = witness.provider().parser(names);
            check_ends_once(&parser.push_document(&bytes))?;
        }
    }
}

/// The answer becomes part of the conversation: the next request is legal, and contains the provider's own thoughts and
/// every call.
fn check_next(witness: &dyn Witness, request: &Request, events: &[ModelEvent]) -> Result<(), TestCaseError> {
    let mut next = request.clone();
    let mut parts = Vec::new();
    let mut results = Vec::new();
    for event in events {
        match event {
            ModelEvent::Text(text) | ModelEvent::Question { text, .. } => {
                parts.push(Part::Text { text: text.clone() });
            }
            ModelEvent::Thinking { provider, data } => {
                parts.push(Part::Thinking { provider: provider.clone(), data: data.clone() });
            }
            ModelEvent::ToolCall(call) => {
                results.push(Part::ToolResult { call_id: call.id.clone(), result: ToolResult::said("fine") });
                parts.push(Part::ToolCall { call: call.clone() });
            }
            ModelEvent::Done { .. }
            | ModelEvent::Failed { .. }
            | ModelEvent::Chosen(_)
            | ModelEvent::NotUnderstood { .. } => {}
        }
    }
    next.messages.push(Message { role: Role::Assistant, parts });
    next.messages.push(Message { role: Role::Tool, parts: results });
    next.messages.push(Message::text(Role::User, "go on"));
    let body = witness.provider().render(&next).body.to_value().expect("JSON");
    check_legal(witness, &body).map_err(|error| named(witness, error))?;
    let thoughts = |witness: &dyn Witness, body: &Value| {
        let items = witness.seen(body).into_iter().flat_map(|message| message.items);
        items.filter(|item| matches!(item, Item::Thought(_))).collect::<Vec<_>>()
    };
    let (told, own, calls) = spoken(events);
    let kept = !own.is_empty() && (!told.trim().is_empty() || !calls.is_empty());
    let wanted: Vec<Item> = witness.thought().filter(|_| kept).map(Item::Thought).into_iter().collect();
    prop_assert_eq!(thoughts(witness, &body), wanted, "{}", witness.name());
    for other in witnesses().iter().filter(|other| other.name() != witness.name()) {
        let body = other.provider().render(&next).body.to_value().expect("JSON");
        check_legal(&**other, &body).map_err(|error| named(&**other, error))?;
        prop_assert!(thoughts(&**other, &body).is_empty(), "{} is given thoughts of {}", other.name(), witness.name());
    }
    Ok(())
}

fn named(witness: &dyn Witness, error: TestCaseError) -> TestCaseError {
    match error {
        TestCaseError::Fail(reason) => TestCaseError::fail(format!("{}: {reason}", witness.name())),
        reject => reject,
    }
}

/// Every configurable provider is tested, under its own name.
#[test]
fn every_provider_has_a_witness() {
    let witnesses: BTreeSet<&str> = witnesses().iter().map(|witness| witness.name()).collect();
    assert_eq!(witnesses, Kind::ALL.iter().map(|kind| kind.name()).collect());
}

/// The same properties must detect errors.
#[test]
fn illegal_requests_are_found() {
    let call = |id: &str| Item::Call { id: id.into(), name: "t".into(), arguments: Value::Null };
    let result = |id: &str| Item::Result { id: id.into(), text: "x".into() };
    let seen = |items: Vec<Item>| vec![Seen { role: "any".into(), items }];
    assert!(check_pairs(&seen(vec![call("a"), call("b"), result("a"), result("b")])).is_ok());
    for bad in [
        vec![call("a")],
        vec![result("a")],
        vec![call("a"), result("b")],
        vec![call("a"), Item::Text("x".into()), result("a")],
        vec![call("a"), call("b"), result("b"), result("a")],
        vec![call("a"), result("a"), call("a"), result("a")],
        vec![call("a"), result("a"), result("a")],
        vec![call("\u{e4}"), result("\u{e4}")],
    ] {
        assert!(check_pairs(&seen(bad.clone())).is_err(), "{bad:?}");
    }
    assert!(check_ends_once(&[ModelEvent::Text("x".into())]).is_err());
}
