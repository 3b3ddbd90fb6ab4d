//! Starting and stopping mini-apps by name, and sentences that must not be mistaken for it.

use std::sync::Arc;

use chat_models::{
    Request,
    intents::{Decision, Engine},
};
use gateway_core::vocab::{AppPresence, Scene, SceneApp};
use serde_json::Value;

use super::{fixture::request, tables, tools_once};

const INSTALLED: [&str; 9] =
    ["Chess", "Todo", "Kitchen Clock", "Captions", "Moby Dick", "Weather", "Translate", "Merge Me", "Timer"];

fn scene(names: &[&str]) -> Arc<Scene> {
    let app = |name: &&str| SceneApp {
        package: format!("com.example.{}", name.to_lowercase()),
        name: (*name).into(),
        presence: AppPresence::Idle,
    };
    Arc::new(Scene { apps: names.iter().map(app).collect(), ..Scene::default() })
}

fn decide(engine: &Engine, sentence: &str, scene: &Arc<Scene>) -> Option<(String, Value)> {
    let request = Request { scene: scene.clone(), ..request(sentence, &tools_once()) };
    match engine.decide(&request) {
        Decision::Say(_) | Decision::Ask(..) => None,
        Decision::Calls(calls) => {
            let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
            Some((names.join("+"), calls[0].arguments.clone()))
        }
    }
}

#[test]
fn apps_are_started_and_stopped_by_their_names() {
    let rows = tables::rows(include_str!("../../data/intents/apps.tsv"));
    let (engine, scene) = (Engine::new(), scene(&INSTALLED));
    let halves = tables::misses(&rows, |sentence| decide(&engine, sentence, &scene));
    for (sentences, missed) in halves {
        assert!(sentences >= 50, "both halves are filled");
        assert!(missed * 100 <= sentences * 3, "{missed} of {sentences}");
    }
}

#[test]
fn where_no_app_has_the_name_nothing_is_started() {
    let (engine, none) = (Engine::new(), scene(&[]));
    for sentence in ["Start chess.", "Play chess.", "Stop chess.", "Open to do."] {
        assert_eq!(decide(&engine, sentence, &none), None, "{sentence}");
    }
    // Two names that sound alike: the tool asks which one is meant.
    let both = scene(&["Todo", "To Do"]);
    let expected = Some(("app.start".to_owned(), serde_json::json!({"app": "to do"})));
    assert_eq!(decide(&engine, "Open to do.", &both), expected);
}
