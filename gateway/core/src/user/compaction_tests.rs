//! Tests of what a model is given of a long conversation.

use alloc::{format, vec};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::vocab::{Part, ToolCall, ToolResult};

const CONFIG: Config = Config { tokens_max: 200, summarise: true, summary_ms_max: 1_000, again_ms: 5_000 };

/// A turn with this many calls.
fn turn(number: usize, calls: usize) -> Vec<Message> {
    let mut messages = vec![Message::text(Role::User, format!("question {number}"))];
    for call in 0..calls {
        let id = format!("{number}.{call}");
        let call = ToolCall { id: id.clone(), name: "x.y".into(), arguments: json!({}) };
        messages.push(Message { role: Role::Assistant, parts: vec![Part::ToolCall { call }] });
        let result = Part::ToolResult { call_id: id, result: ToolResult::said("done") };
        messages.push(Message { role: Role::Tool, parts: vec![result] });
    }
    messages.push(Message::text(Role::Assistant, format!("answer {number}")));
    messages
}

fn conversation(turns: usize, calls: usize) -> Messages {
    let messages = (0..turns).flat_map(|number| turn(number, calls));
    messages.map(|message| (message.clone(), message.tokens())).collect()
}

fn tokens(messages: &[Message]) -> u32 {
    messages.iter().map(Message::tokens).sum()
}

#[test]
fn within_the_budget_everything_is_given() {
    let mut compaction = Compaction::default();
    let messages = conversation(3, 1);
    assert_eq!(compaction.for_model(&CONFIG, &messages).len(), messages.len());
    assert_eq!(compaction.consider(0, &CONFIG, &messages), None);
}

#[test]
fn beyond_it_the_newest_turns_are_given_until_the_old_ones_are_summed_up() {
    let mut compaction = Compaction::default();
    let messages = conversation(40, 0);
    let trimmed = compaction.for_model(&CONFIG, &messages);
    assert!(trimmed.len() <= HISTORY_FOR_MODEL_MAX && tokens(&trimmed) <= CONFIG.tokens_max);
    assert_eq!(trimmed.first().map(Message::plain_text), Some(format!("question {}", 40 - trimmed.len() / 2)));
    let (request, old) = compaction.consider(0, &CONFIG, &messages).expect("it is time");
    assert_eq!(old.first().map(Message::plain_text), Some("question 0".into()));
    assert_eq!(compaction.consider(0, &CONFIG, &messages), None, "one at a time");
    let said = Some("They talked of numbers.".into());
    compaction.handle_summarised(1, &CONFIG, request, said, &messages);
    let given = compaction.for_model(&CONFIG, &messages);
    assert_eq!(given[0].role, Role::System);
    assert!(given[0].plain_text().ends_with("They talked of numbers."));
    assert_eq!(given.len(), 1 + 80 - old.len());
    assert!(tokens(&given) <= CONFIG.tokens_max);
}

#[test]
fn a_second_summary_is_made_of_the_first_and_what_came_since() {
    let mut compaction = Compaction::default();
    let mut messages = conversation(40, 0);
    let (request, _) = compaction.consider(0, &CONFIG, &messages).expect("the first");
    compaction.handle_summarised(1, &CONFIG, request, Some("First.".into()), &messages);
    messages.extend(conversation(40, 0));
    let (_, old) = compaction.consider(2, &CONFIG, &messages).expect("the second");
    assert_eq!((old[0].role, old[0].plain_text()), (Role::System, "First.".into()));
    assert_eq!(old[1].role, Role::User);
}

#[test]
fn who_fails_or_is_late_is_not_asked_again_at_once() {
    for text in [None, Some("  ".into())] {
        let mut compaction = Compaction::default();
        let messages = conversation(40, 0);
        let (request, _) = compaction.consider(0, &CONFIG, &messages).expect("it is time");
        compaction.handle_summarised(1, &CONFIG, request, text, &messages);
        assert!(compaction.summary.is_none());
        assert_eq!(compaction.consider(4_999_999, &CONFIG, &messages), None);
        assert!(compaction.consider(5_000_001, &CONFIG, &messages).is_some());
    }
    let mut compaction = Compaction::default();
    let messages = conversation(40, 0);
    let (request, _) = compaction.consider(0, &CONFIG, &messages).expect("it is time");
    assert_eq!(compaction.consider(1_000_000, &CONFIG, &messages), None, "it was lost");
    compaction.handle_summarised(1_000_001, &CONFIG, request, Some("Late.".into()), &messages);
    assert!(compaction.summary.is_none());
    assert!(compaction.consider(6_000_000, &CONFIG, &messages).is_some());
}

#[test]
fn without_a_model_there_is_no_summary() {
    let config = Config { summarise: false, ..CONFIG };
    assert_eq!(Compaction::default().consider(0, &config, &conversation(40, 0)), None);
}

#[test]
fn a_summary_of_a_conversation_that_is_gone_is_not_taken() {
    let mut compaction = Compaction::default();
    let messages = conversation(40, 0);
    let (request, _) = compaction.consider(0, &CONFIG, &messages).expect("it is time");
    compaction.clear();
    let text = Some("Old.".into());
    compaction.handle_summarised(1, &CONFIG, request, text, &Messages::new());
    assert!(compaction.for_model(&CONFIG, &Messages::new()).is_empty());
}

#[test]
fn half_of_the_budget_stays_as_it_was_said() {
    let mut compaction = Compaction::default();
    let messages = conversation(40, 0);
    let (request, _) = compaction.consider(0, &CONFIG, &messages).expect("it is time");
    compaction.handle_summarised(1, &CONFIG, request, Some("Numbers.".into()), &messages);
    let said = tokens(&compaction.for_model(&CONFIG, &messages)[1..]);
    let one = tokens(&turn(39, 0));
    assert!(said <= CONFIG.tokens_max / 2 && said + one > CONFIG.tokens_max / 2, "{said}");
}

#[test]
fn beyond_the_budget_twenty_messages_are_given_at_most() {
    let messages = conversation(40, 0);
    let all: u32 = messages.iter().map(|(_, tokens)| tokens).sum();
    let config = Config { tokens_max: all - 1, ..CONFIG };
    assert_eq!(Compaction::default().for_model(&config, &messages).len(), HISTORY_FOR_MODEL_MAX);
}

#[test]
fn what_is_dropped_at_the_front_moves_what_a_summary_stands_for() {
    // Dropped before the summary arrives, or after.
    for early in [true, false] {
        let mut compaction = Compaction::default();
        let mut messages = conversation(40, 0);
        let (request, old) = compaction.consider(0, &CONFIG, &messages).expect("it is time");
        let left: Vec<Message> = messages.iter().skip(old.len()).map(|(message, _)| message.clone()).collect();
        let sums_up = |compaction: &mut Compaction, messages: &Messages| {
            compaction.handle_summarised(1, &CONFIG, request, Some("Numbers.".into()), messages);
        };
        if !early {
            sums_up(&mut compaction, &messages);
        }
        for count in [2, old.len() - 2] {
            messages.drain(..count);
            compaction.dropped(count);
        }
        if early {
            sums_up(&mut compaction, &messages);
        }
        let given = compaction.for_model(&CONFIG, &messages);
        assert_eq!(given[0].role, Role::System, "{early}");
        assert_eq!(given[1..], left, "{early}");
    }
}

#[test]
fn a_summary_of_less_than_what_is_gone_is_not_taken() {
    let mut compaction = Compaction::default();
    let mut messages = conversation(40, 0);
    let (request, old) = compaction.consider(0, &CONFIG, &messages).expect("it is time");
    messages.drain(..old.len() + 2);
    compaction.dropped(old.len() + 2);
    compaction.handle_summarised(1, &CONFIG, request, Some("Numbers.".into()), &messages);
    assert!(compaction.for_model(&CONFIG, &messages).iter().all(|message| message.role != Role::System));
}

proptest! {
    /// Whatever is added, dropped and summarised: turns are whole and in order, and within the budget except for the
    /// newest turn.
    #[test]
    fn turns_are_given_whole(
        turns in prop::collection::vec((0..4_usize, any::<bool>(), 0..3_usize), 1..60),
        tokens_max in 20_u32..400,
    ) {
        let config = Config { tokens_max, ..CONFIG };
        let mut compaction = Compaction::default();
        let mut messages = Messages::new();
        for (number, (calls, summed, dropped)) in turns.into_iter().enumerate() {
            messages.extend(turn(number, calls).into_iter().map(|message| (message.clone(), message.tokens())));
            let dropped = dropped.min(messages.len().saturating_sub(4));
            messages.drain(..dropped);
            compaction.dropped(dropped);
            if let Some((request, _)) = compaction.consider(0, &config, &messages).filter(|_| summed) {
                let text = Some("Short.".into());
                compaction.handle_summarised(0, &config, request, text, &messages);
                prop_assert!(compaction.summary.is_some());
            }
            let mut given = compaction.for_model(&config, &messages);
            if given.first().is_some_and(|first| first.role == Role::System) {
                given.remove(0);
            }
            if given.is_empty() {
                continue;
            }
            prop_assert_eq!(given[0].role, Role::User);
            let last: Vec<Message> = messages.iter().map(|(message, _)| message.clone()).collect();
            prop_assert!(last.ends_with(&given));
            let turns = given.iter().filter(|message| message.role == Role::User).count();
            prop_assert!(turns == 1 || tokens(&given) <= tokens_max);
        }
    }
}
