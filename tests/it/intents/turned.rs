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
fn a_reminder_is_not_for_a_time_that_was_not_meant() {
    each_row(include_str!("../../data/intents/moments.tsv"));
}

#[test]
fn what_is_said_on_an_ordinary_day_is_understood() {
    each_row(include_str!("../../data/intents/everyday.tsv"));
}

/// Held out: only numbers are printed, so that nobody makes rules for its rows.
#[test]
fn of_further_such_times_few_lead_to_a_call() {
    let (engine, tools) = (Engine::new(), tools_once());
    let table = include_str!("../../data/intents/moments_held_out.tsv");
    let (mut meant, mut missed, mut not_meant, mut taken) = (0, 0, 0, 0);
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let &[language, sign, sentence] = &cells[..] else { panic!("three cells: {line}") };
        let asked = Request { language: language.to_owned(), ..request(sentence, &tools) };
        let is_call = matches!(engine.decide(&asked), Decision::Calls(_));
        if sign == "+" {
            (meant, missed) = (meant + 1, missed + u32::from(!is_call));
        } else {
            (not_meant, taken) = (not_meant + 1, taken + u32::from(is_call));
        }
    }
    println!("{taken} of {not_meant} times that are not meant led to a call, {missed} of {meant} others did not");
    assert!(not_meant > 20 && taken * 5 <= not_meant && meant > 10 && missed * 10 <= meant);
}

/// Held out: only the number of calls is printed, so that nobody makes rules for its rows.
#[test]
fn of_further_such_sentences_few_lead_to_a_call() {
    let (engine, tools) = (Engine::new(), tools_once());
    let rows =
        include_str!("../../data/intents/no_commands_held_out.tsv").lines().filter(|line| !line.starts_with('#'));
    let rows: Vec<(&str, &str)> = rows.filter_map(|line| line.split_once('\t')).collect();
    let is_call = |(language, sentence): &&(&str, &str)| {
        let asked = Request { language: (*language).to_owned(), ..request(sentence, &tools) };
        matches!(engine.decide(&asked), Decision::Calls(_))
    };
    let calls = rows.iter().filter(is_call).count();
    println!("{calls} of {} sentences that are no commands led to a call", rows.len());
    assert!(rows.len() > 150 && calls * 10 <= rows.len(), "{calls} of {}", rows.len());
}

#[test]
fn what_is_written_in_signs_is_read_as_it_stands_or_not_at_all() {
    each_row(include_str!("../../data/intents/written.tsv"));
}

#[test]
fn signs_of_fractions_are_read_or_not_understood() {
    each_row(include_str!("../../data/intents/fractions.tsv"));
}

/// Checks a table of language, utterance, tool or "-", and arguments. No miss is allowed.
fn each_row(table: &str) {
    let (engine, tools) = (Engine::new(), tools_once());
    let mut misses = Vec::new();
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
        if got != expected {
            misses.push(format!("{language}: {sentence}\n   want {expected:?}\n   got  {got:?}"));
        }
    }
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}
