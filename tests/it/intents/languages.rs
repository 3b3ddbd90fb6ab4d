//! Commands in German, Spanish and French.

use chat_models::{
    Request,
    intents::{Decision, Engine},
};
use serde_json::{Value, json};

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

#[test]
fn sentences_that_help_lists_are_understood() {
    let (engine, tools) = (Engine::new(), tools());
    for language in ["en", "de-CH", "es", "fr"] {
        for tool in tools.iter() {
            let (name, Some(sentence)) = (&tool.name, tools::phrases::example(tool, language)) else { continue };
            let asked = Request { language: language.to_owned(), ..request(&sentence, &tools) };
            let decided = engine.decide(&asked);
            let Decision::Calls(calls) = &decided else { panic!("{language}: {sentence}: {decided:?}") };
            assert_eq!(calls[0].name, *name, "{language}: {sentence}");
        }
    }
}

#[test]
fn a_timer_is_cancelled_by_its_length_in_any_unit() {
    let (engine, tools) = (Engine::new(), tools());
    for (language, sentence, seconds) in [
        ("en", "Cancel the 90 minute timer.", 5_400),
        ("en", "Stop my half hour timer.", 1_800),
        ("en", "Delete the timer for twenty minutes.", 1_200),
        ("en", "Turn the 60 second timer off.", 60),
        ("en", "Cancel the one hour and thirty minute timer, please.", 5_400),
        ("de", "Lösche den 90 Minuten Timer.", 5_400),
        ("de", "Stoppe den Timer über anderthalb Stunden.", 5_400),
        ("de", "Brich den zehn Minuten Timer ab.", 600),
        ("es", "Cancela el temporizador de veinte minutos.", 1_200),
        ("es", "Para el temporizador de media hora.", 1_800),
        ("fr", "Annule le minuteur de vingt minutes.", 1_200),
        ("fr", "Arrête le minuteur d'une heure et demie.", 5_400),
    ] {
        let asked = Request { language: language.to_owned(), ..request(sentence, &tools) };
        let Decision::Calls(calls) = engine.decide(&asked) else { panic!("{sentence}") };
        let calls: Vec<_> = calls.into_iter().map(|call| (call.name, call.arguments)).collect();
        assert_eq!(calls, [("timer.cancel".to_owned(), json!({"seconds": seconds}))], "{sentence}");
    }
    // Set, not cancelled.
    for (language, sentence) in [
        ("en", "Start the ten minute timer."),
        ("de", "Starte den 10 Minuten Timer."),
        ("de", "Stell den Timer auf zehn Minuten."),
    ] {
        let asked = Request { language: language.to_owned(), ..request(sentence, &tools) };
        let Decision::Calls(calls) = engine.decide(&asked) else { panic!("{sentence}") };
        assert_eq!(calls[0].name, "timer.set", "{sentence}");
    }
}
