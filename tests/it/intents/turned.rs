//! What changes the meaning of a command: negations and questions, repetitions and days, fractions, in all languages.

use chat_models::{
    Request,
    intents::{Decision, Engine},
};
use serde_json::Value;

use super::{fixture::request, tools_once};

#[test]
fn a_negation_or_a_question_is_never_repaired_to_a_command() {
    each_row(include_str!("../../data/intents/turned.tsv"));
}

#[test]
fn a_reminder_is_for_one_time_on_the_day_that_was_said() {
    each_row(include_str!("../../data/intents/repeated.tsv"));
}

#[test]
fn what_merely_has_the_words_of_a_command_is_none() {
    each_row(include_str!("../../data/intents/no_commands.tsv"));
}

#[test]
fn signs_of_fractions_are_read_or_not_understood() {
    each_row(include_str!("../../data/intents/fractions.tsv"));
}

/// Checks a table of language, utterance, tool or "-", and arguments. No miss is allowed.
fn each_row(table: &str) {
    let (engine, tools) = (Engine::new(), tools_once());
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let &[language, sentence, name, arguments] = &cells[..] else { panic!("four cells: {line}") };
        let asked = Request { language: language.to_owned(), ..request(sentence, &tools) };
        let got = match engine.decide(&asked) {
            Decision::Calls(calls) => calls.into_iter().map(|call| (call.name, call.arguments)).collect(),
            Decision::Ask(..) | Decision::Say(_) => Vec::new(),
        };
        let arguments: Value = serde_json::from_str(arguments).expect(line);
        let expected = if name == "-" { Vec::new() } else { vec![(name.to_owned(), arguments)] };
        assert_eq!(got, expected, "{language}: {sentence}");
    }
}
