//! Tests of the ranking by meaning, with a fake model; the real model is tested in `tests/it`.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::router::{Query, Reason, Router};

/// Embeddings with three directions: water, fire, and everything else. Counts its requests.
#[derive(Default)]
struct Fake {
    asked: AtomicUsize,
    fails: bool,
}

impl Embedder for Fake {
    fn embed(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.fails {
            return Err(EmbedError { reason: "broken".into() });
        }
        let has = |words: &[&str]| words.iter().any(|word| text.to_lowercase().contains(word));
        Ok(match (has(&["rain", "wet", "umbrella"]), has(&["oven", "bake"])) {
            (true, _) => vec![1.0, 0.0, 0.0],
            (_, true) => vec![0.0, 1.0, 0.0],
            _ => vec![0.0, 0.0, 1.0],
        })
    }
}

fn tool(name: &str, description: &str) -> Arc<ToolSpec> {
    Arc::new(ToolSpec { name: name.into(), description: description.into(), ..ToolSpec::default() })
}

fn fixture() -> Specs {
    let mut tools = vec![tool("oven.start", "Heats the oven."), tool("sky.now", "Rain and clouds.")];
    tools.extend((0..30).map(|number| tool(&format!("zoo.{number:02}"), &format!("Feeds animal x{number}."))));
    tools.into()
}

fn learnt(tools: &Specs) -> (Arc<Fake>, Sentences) {
    let fake = Arc::new(Fake::default());
    let sentences = Sentences::new(fake.clone());
    for sentence in sentences.settle(tools) {
        sentences.learn(&sentence).unwrap();
    }
    (fake, sentences)
}

fn names(tools: &Specs) -> Vec<&str> {
    tools.iter().map(|tool| tool.name.as_str()).collect()
}

#[test]
fn a_tool_is_learnt_once_and_forgotten_with_the_catalogue() {
    let fixture = fixture();
    let (fake, sentences) = learnt(&fixture);
    assert_eq!(fake.asked.load(Ordering::Relaxed), fixture.len());
    // The same tools as new objects, under another revision.
    let again: Vec<_> = fixture.iter().map(|tool| Arc::new(ToolSpec::clone(tool))).collect();
    assert!(sentences.settle(&again).is_empty());
    let mut changed = again.clone();
    changed[0] = tool("oven.start", "Cools the oven.");
    assert_eq!(sentences.settle(&changed), ["oven start: Cools the oven."]);
    assert_eq!(sentences.points().len(), fixture.len() - 1);
}

#[test]
fn words_that_no_tool_has_find_it_by_meaning() {
    let fixture = fixture();
    let (_, sentences) = learnt(&fixture);
    let said = Query { now: "Will I get wet?".into(), ..Query::default() };
    let near = sentences.rank(&fixture, &said.now).unwrap().unwrap();
    assert_eq!(near, [(1, 1.0)]);
    let choice = Router::default().choose_with(&fixture, &said, &near, 128);
    assert_eq!((names(&choice.tools), choice.reason), (vec!["sky.now"], Reason::Words));
    assert_eq!(Router::default().choose(&fixture, &said, 128).reason, Reason::Doubt);
}

#[test]
fn a_weak_likeness_is_doubt_and_all_are_offered() {
    let said = Query { now: "Will I get wet?".into(), ..Query::default() };
    let choice = Router::default().choose_with(&fixture(), &said, &[(1, 0.2)], 128);
    assert_eq!((choice.tools.len(), choice.reason), (32, Reason::Doubt));
    // The best match is still first if a provider takes few tools.
    let choice = Router::default().choose_with(&fixture(), &said, &[(1, 0.2)], 3);
    assert_eq!(names(&choice.tools), ["sky.now", "oven.start", "zoo.00"]);
}

#[test]
fn a_tool_that_is_not_learnt_yet_makes_the_ranking_wait() {
    let fixture = fixture();
    let (_, sentences) = learnt(&fixture[..31].into());
    assert_eq!(sentences.rank(&fixture, "rain"), Ok(None));
    let broken = Sentences::new(Arc::new(Fake { fails: true, ..Fake::default() }));
    assert_eq!(broken.settle(&fixture).len(), fixture.len());
    assert!(broken.learn("rain").is_err() && broken.points().is_empty());
    assert!(broken.rank(&fixture[..0].into(), "rain").is_err());
}

#[test]
fn what_has_no_word_is_not_asked_about() {
    let fixture = fixture();
    let (fake, sentences) = learnt(&fixture);
    let before = fake.asked.load(Ordering::Relaxed);
    for words in ["", " \n", "🙂🙂", "?!"] {
        assert_eq!(sentences.rank(&fixture, words), Ok(Some(Vec::new())), "{words:?}");
    }
    assert_eq!(fake.asked.load(Ordering::Relaxed), before);
}

#[test]
fn ten_thousand_tools_are_too_many_to_learn_and_words_choose() {
    let many: Specs = (0..10_000).map(|number| tool(&format!("x.{number:05}"), "Does a thing.")).collect();
    let (fake, sentences) = learnt(&many);
    assert_eq!(fake.asked.load(Ordering::Relaxed), TOOLS_MAX);
    assert!(sentences.settle(&many).is_empty());
    assert_eq!(sentences.points().len(), TOOLS_MAX);
    assert_eq!(sentences.rank(&many, "rain"), Ok(None));
    // The maximum holds for every number of learnt texts.
    sentences.learn("one more").unwrap();
    assert_eq!(sentences.points().len(), TOOLS_MAX);
}

#[test]
fn places_count_in_a_fusion_and_not_scores() {
    let fused = fused(4, [&[(2, 900.0), (0, 1.0)], &[(0, 0.9), (3, 0.1), (9, 0.1)]]);
    assert_eq!(fused.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 2, 3]);
}

#[test]
fn a_sentence_is_short_and_in_words() {
    let long = tool("google.gmail_searchMail", &"ä".repeat(10_000));
    let sentence = sentence(&long);
    assert!(sentence.starts_with("google gmail search mail: ä") && sentence.chars().count() < 600, "{sentence}");
}
