//! Dictated text is kept verbatim.

use chat_models::intents::Engine;

use super::{decide, tables};

/// No miss is allowed in either half.
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
