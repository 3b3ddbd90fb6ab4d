//! The tool router by sentence embeddings, with the real model: the model against its reference, the selection on the
//! table of utterances, hostile texts, and a gateway that offers the intended tools.

#[path = "../../tools/tests/router/table.rs"]
#[allow(dead_code)]
mod table;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use async_trait::async_trait;
use audio::models;
use gateway_core::vocab::{ToolCall, ToolResult, ToolSpec};
use serde::Deserialize;
use tools::{
    registry::{RunContext, Runner},
    router::{
        Index, Router,
        minilm::{DIMENSIONS, MiniLm},
        sentences::{Embedder, Sentences, fused},
    },
    source::{Scope, Source},
};

use self::table::{Half, Table};
use crate::{
    assistant::provider::{Answer, Provider, names},
    process,
    world::{World, answered, text},
};

static MODEL: LazyLock<Arc<MiniLm>> = LazyLock::new(|| {
    let model = MiniLm::load(&models::default_dir());
    Arc::new(model.unwrap_or_else(|error| panic!("{error}; fetch the models first (cargo xtask fetch)")))
});

fn point(text: &str) -> Vec<f32> {
    MODEL.embed(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/router")
}

/// The output of `onnxruntime` and the tokenizer of Hugging Face for a text, cut to 64 tokens.
#[derive(Deserialize)]
struct Reference {
    text: String,
    embedding: Vec<f32>,
}

#[test]
fn embeddings_are_those_of_the_reference() {
    let file = fs::read(data().join("reference.json")).unwrap();
    let references: Vec<Reference> = serde_json::from_slice(&file).unwrap();
    assert_eq!(references.len(), 3);
    for reference in references {
        assert_eq!(reference.embedding.len(), DIMENSIONS);
        let alike = cosine(&point(&reference.text), &reference.embedding);
        assert!(alike > 0.999, "{:?}: {alike}", reference.text);
    }
}

#[test]
fn a_paraphrase_is_nearer_than_something_else() {
    for (said, same, other) in [
        ("will I get wet", "is it going to rain today", "play some music"),
        ("how far did I walk", "steps taken by the wearer", "turn on the light"),
        ("put milk on the list", "add an item to the groceries", "what does this word mean"),
    ] {
        let said = point(said);
        let (near, far) = (cosine(&said, &point(same)), cosine(&said, &point(other)));
        assert!(near > far + 0.1, "{same:?} {near}, {other:?} {far}");
    }
}

#[test]
fn hostile_texts_have_points_too() {
    let long = "rain ".repeat(2_000);
    // Only the beginning counts, so that a long dictation takes no longer than 64 tokens.
    assert!(cosine(&point(&long), &point(&long[..1_000])) > 0.999);
    let one_word = "x".repeat(10_000);
    let marks = "\u{0301}".repeat(10_000);
    for text in ["", " ", "\0\u{1}\u{7f}", "🙂👩‍👩‍👧‍👦", "漢字かな", "[CLS] [SEP] [MASK]", "\u{202e}abc\u{200b}", "ﷺ"]
        .into_iter()
        .chain([one_word.as_str(), &marks])
    {
        let length = cosine(&point(text), &point(text));
        assert!((length - 1.0).abs() < 1e-3, "{length}");
    }
}

#[test]
fn a_model_that_is_not_there_or_lies_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = || MiniLm::load(folder.path()).err().expect("refused").to_string();
    assert!(refused().contains("tokenizer.json"), "{}", refused());
    let files = folder.path().join("all-minilm-l6-v2");
    fs::create_dir(&files).unwrap();
    for words in ["", "{}", "{\"model\": {\"vocab\": {\"a\": 1}}}", "{\"model\": {\"vocab\": {\"a\": -1}}}"] {
        fs::write(files.join("tokenizer.json"), words).unwrap();
        assert!(refused().contains("tokenizer.json"), "{}", refused());
    }
    let real = models::default_dir().join("all-minilm-l6-v2");
    fs::copy(real.join("tokenizer.json"), files.join("tokenizer.json")).unwrap();
    let model = fs::read(real.join("model.onnx")).unwrap();
    let other = fs::read(models::default_dir().join("silero-v6-16k.onnx")).unwrap();
    for bytes in [Vec::new(), b"nothing of this kind".to_vec(), model[..model.len() / 2].to_vec(), other] {
        fs::write(files.join("model.onnx"), bytes).unwrap();
        assert!(refused().contains("model.onnx"), "{}", refused());
    }
}

/// Lower limits slightly below the measured values (docs/measurements.md), as for words alone.
#[test]
fn words_and_meaning_find_more_tools_than_words() {
    let table = Table::load();
    let sentences = Sentences::new(MODEL.clone());
    for sentence in sentences.settle(&table.tools) {
        sentences.learn(&sentence).unwrap();
    }
    let (router, words) = (Router::default(), Index::new(&table.tools));
    let near = |said: &str| sentences.rank(&table.tools, said).unwrap().unwrap();
    for (half, floor) in [(Half::Development, 0.94), (Half::HeldOut, 0.88)] {
        let recall = table.recall(half, 5, |said| {
            let fused = fused(table.tools.len(), [&words.rank(said), &near(said)]);
            fused.into_iter().map(|(at, _)| at).collect()
        });
        assert!(recall >= floor, "{half:?}: {recall}");
        let offered = table.offered(half, |said| router.choose_with(&table.tools, said, &near(&said.now), 128));
        assert!(offered.recall >= 0.95 && offered.share_of_bytes < 0.5, "{half:?}: {offered:?}");
    }
}

struct Nothing;

#[async_trait]
impl Runner for Nothing {
    async fn run(&self, _: RunContext, _: ToolCall) -> ToolResult {
        ToolResult::said("Done.")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_offers_what_was_meant() {
    let provider = Provider::start().await;
    let model = format!("kind = \"chat_completions\"\nbase_url = \"{}\"\nmodel = \"scripted\"\n", provider.url("one"));
    let world = World::with(&format!("[model]\n{model}[router]\nby = \"sentences\"\nsentences_ms = 5000\n")).await;
    let file = fs::read(data().join("tools.json")).unwrap();
    let mut specs: Vec<ToolSpec> = serde_json::from_slice(&file).unwrap();
    let registry = &world.gateway().services().registry;
    let own = registry.snapshot("wearer", None);
    specs.retain(|spec| own.find(&spec.name).is_none());
    assert!(specs.len() > 40);
    registry.register(Source::App("house".into()), Scope::Global, specs, Arc::new(Nothing)).unwrap();
    // Those that are only for operators are offered to no assistant.
    let all = registry.snapshot("wearer", None);
    let all = all.specs.iter().filter(|spec| !tools::sides::is_for_operators(spec)).count();
    let mut glasses = world.glasses("wss", "glasses").await;
    // No tool contains these words: until all embeddings are computed, all tools are offered.
    let offered = async {
        for count in 1.. {
            provider.then("one", Answer::Says("I see.", 5, 5));
            text(&mut glasses, "sweep the kitchen floor").await;
            let offered = names(&provider.until(count).await.body);
            answered(&mut glasses).await;
            assert!(offered.iter().any(|name| name.contains("vacuum_start")), "{offered:?}");
            if offered.len() < all {
                return offered;
            }
        }
        Vec::new()
    };
    let offered = tokio::time::timeout(crate::world::WAIT, offered).await.expect("a choice");
    assert!(offered.len() < all / 2 + 5, "{} of {all}: {offered:?}", offered.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_model_is_told_with_the_command_that_fetches_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lorgnette.toml");
    let settings = format!("models_dir = {:?}\n[router]\nby = \"sentences\"\n", folder.path().display().to_string());
    fs::write(&file, settings).unwrap();
    let told = process::fails(&["check", &file.display().to_string()]).await;
    assert!(told.contains("all-minilm-l6-v2") && told.contains("lorgnette models fetch"), "{told}");
}
