//! What a person dictates is kept word for word.

use chat_models::intents::Engine;

use super::{decide, tables};

/// The rules leave no room for a miss in either half.
#[test]
fn dictated_texts_are_kept_word_for_word() {
    let rows = tables::rows(include_str!("../../data/intents/dictated.tsv"));
    let engine = Engine::new();
    let halves = tables::misses(&rows, |sentence| decide(&engine, sentence));
    for (sentences, missed) in halves {
        assert!(sentences >= 40, "both halves are filled");
        assert_eq!(missed, 0);
    }
}
