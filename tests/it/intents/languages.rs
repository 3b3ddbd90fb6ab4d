//! Commands in German, Spanish and French.

use chat_models::{
    Request,
    intents::{Decision, Engine},
};
use serde_json::Value;

use super::{
    fixture::{request, tools},
    tables,
};

const TABLES: [(&str, &str); 3] = [
    ("de", include_str!("../../data/intents/languages/de.tsv")),
    ("es", include_str!("../../data/intents/languages/es.tsv")),
    ("fr", include_str!("../../data/intents/languages/fr.tsv")),
];

/// As for English: of each half nine in ten commands are right. Of the few other sentences at most one in four is taken for a
/// command.
#[test]
fn sentences_of_other_languages_lead_to_the_right_tool() {
    let (engine, tools) = (Engine::new(), tools());
    for (language, table) in TABLES {
        println!("{language}:");
        let decide = |sentence: &str| -> Option<(String, Value)> {
            let asked = Request { language: language.to_owned(), ..request(sentence, &tools) };
            match engine.decide(&asked) {
                Decision::Calls(mut calls) if calls.len() == 1 => calls.pop().map(|call| (call.name, call.arguments)),
                Decision::Calls(calls) => panic!("{sentence}: {calls:?}"),
                Decision::Ask(..) | Decision::Say(_) => None,
            }
        };
        let (commands, others): (Vec<_>, Vec<_>) =
            tables::rows(table).into_iter().partition(|row| row.expected.is_some());
        for (sentences, missed) in tables::misses(&commands, decide) {
            assert!(sentences >= 30, "both halves are filled");
            assert!(missed * 10 <= sentences, "{language}: {missed} of {sentences} missed");
        }
        for (sentences, fired) in tables::misses(&others, decide) {
            assert!(sentences >= 2 && fired * 4 <= sentences, "{language}: {fired} of {sentences} fired");
        }
    }
}
