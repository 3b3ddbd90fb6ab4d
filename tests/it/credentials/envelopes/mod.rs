//! The envelopes of coding assistants, as sent between a running gateway and a local server: address, headers, a
//! request, the call that answers it, and the request that carries its result.
//!
//! The expected values are in one file per envelope, which names the source of each. None was recorded from a service.

mod expected;

use serde_json::{Value, json};

use super::{Accounts, Answer, Provider, log_in, settings};
use crate::world::{World, answered, text};

/// Asks twice with the envelope of this file, with a call between; checks both requests.
async fn judge(fixture: &str, stream: &str) {
    let fixture: Value = serde_json::from_str(fixture).expect("JSON");
    assert!(fixture["sources"].as_array().is_some_and(|sources| !sources.is_empty()));
    let text_of = |key: &str| fixture[key].as_str().unwrap_or_else(|| panic!("no {key}"));
    let (accounts, provider) = (Accounts::start().await, Provider::start().await);
    // The built-in address has its own test; here the rest is checked.
    let base_url = provider.url(&format!("one{}", text_of("base_path")));
    let written = settings(&accounts, text_of("kind"), &base_url, text_of("settings"));
    let written = match fixture["model"].as_str() {
        Some(model) => written.replace("\"scripted\"", &format!("\"{model}\"")),
        None => written,
    };
    let world = World::with(&written).await;
    let config = crate::process::configure(&world.data(), &written);
    log_in(&accounts, &config).await;
    let mut glasses = world.glasses("wss", "glasses").await;

    let answers: Vec<String> = stream.split("=====\n").map(str::to_owned).collect();
    assert_eq!(answers.len(), 2);
    for answer in answers {
        provider.then("one", Answer::Streams(answer));
    }
    text(&mut glasses, "remember the milk").await;
    let told = answered(&mut glasses).await;
    assert!(told.contains("it is noted"), "{told}");
    assert_eq!(world.notes(), ["buy oat milk"]);

    let asked = provider.asked();
    assert_eq!(asked.len(), 2);
    for (number, asked) in asked.iter().enumerate() {
        let target = match asked.query.as_str() {
            "" => asked.path.clone(),
            query => format!("{}?{query}", asked.path),
        };
        assert_eq!(target.strip_prefix("/one"), Some(text_of("target")));
        let headers = serde_json::to_value(&asked.headers).expect("headers");
        expected::judge(&fixture["headers"], &headers, "headers");
        expected::judge(&fixture["requests"][number], &asked.body, &format!("request {number}"));
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chatgpt() {
    judge(include_str!("chatgpt.json"), include_str!("chatgpt.sse")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code() {
    judge(include_str!("claude_code.json"), include_str!("claude_code.sse")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cloud_code() {
    judge(include_str!("cloud_code.json"), include_str!("cloud_code.sse")).await;
}

/// A mismatch with a fixture must be reported.
#[test]
fn the_judge_can_say_no() {
    let body = json!({"a": [1, 2, 3], "b": {"c": "x"}, "id": "0b6a4c2e-0000-4000-a000-000000000000"});
    let fits = [
        json!({"b": {"c": "x"}}),
        json!({"a": {"$some": 2}}),
        json!({"a": {"$within": [2, 3]}}),
        json!({"$keys": ["a", "b", "id"], "id": "$uuid", "b": "$any", "z": "$absent"}),
    ];
    for wanted in fits {
        assert_eq!(expected::differs(&wanted, &body, "x"), None, "{wanted}");
    }
    let misses = [
        json!({"b": {"c": "y"}}),
        json!({"a": {"$some": 4}}),
        json!({"a": {"$within": [1, 3]}}),
        json!({"a": [1, 2]}),
        json!({"$keys": ["a", "b"]}),
        json!({"b": "$uuid"}),
        json!({"z": "$any"}),
        json!({"a": "$absent"}),
    ];
    for wanted in misses {
        assert!(expected::differs(&wanted, &body, "x").is_some(), "{wanted}");
    }
}
