//! A long conversation is summarised; the summary survives a restart, is accounted for, shown, and erased.

use std::time::Duration;

use gateway::control::{Answer as Told, Request, memory::MemoryRequest};
use gateway_core::{
    user::Compaction,
    vocab::{Message, Role},
};
use serde_json::{Value, json};

use super::{
    ask, in_order, model,
    photos::stands,
    provider::{Answer, Provider},
};
use crate::world::{USER, WAIT, World};

const SUMMARY: &str = "The wearer counts herons at the lake.";
const REPLY: &str = "Noted, dear wearer.";

async fn records(world: &World, request: MemoryRequest) -> Vec<Value> {
    match world.ask(Request::Memory { request }).await.expect("an answer") {
        Told::Records { records } => records,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_outlives_a_restart_and_is_paid_for() {
    let provider = Provider::start().await;
    let settings = format!("[model]\n{}", model(&provider, "chat_completions", "one"));
    let world = World::with(&settings).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    // Until the history exceeds the budget of a model.
    let (mut tokens, mut turns) = (0, 0);
    while tokens <= Compaction::default().tokens_max {
        turns += 1;
        let request = format!("Day {turns} of herons: {}", "one more heron came ".repeat(180));
        let messages = [(Role::User, request.trim()), (Role::Assistant, REPLY)];
        tokens += messages.map(|(role, text)| Message::text(role, text).tokens()).iter().sum::<u32>();
        provider.then("one", Answer::Says(REPLY, 10, 5));
        if tokens > Compaction::default().tokens_max {
            provider.then("one", Answer::Says(SUMMARY, 2_100, 70));
        }
        ask(&mut glasses, &request).await;
    }
    assert!(turns > 2, "{turns}");
    let asked = provider.until(turns + 1).await;
    in_order(&asked, &["You keep the memory", "Wearer: Day 1 of herons"]);
    let show = || MemoryRequest::Conversation { user: USER.into(), id: 1 };
    let kept = async {
        loop {
            let shown = records(&world, show()).await.remove(0);
            if shown["summary"]["text"] == json!(SUMMARY) {
                return shown;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let shown = tokio::time::timeout(WAIT, kept).await.expect("it is kept");
    let covers = shown["summary"]["covers"].as_u64().expect("a number");
    assert!(covers >= 2 && covers % 2 == 0 && covers < shown["messages"].as_array().expect("messages").len() as u64);
    let spent = records(&world, MemoryRequest::Spending { user: Some(USER.into()), days: 1 }).await;
    let taken: Vec<u64> =
        ["input_tokens", "output_tokens"].map(|kind| spent.iter().filter_map(|day| day[kind].as_u64()).sum()).to_vec();
    assert_eq!(taken, [turns as u64 * 10 + 2_100, turns as u64 * 5 + 70], "{spent:?}");
    assert!(stands(&world.data(), SUMMARY.as_bytes()));
    glasses.goodbye().await;

    let world = world.again_with(&settings).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    provider.then("one", Answer::Says("Many.", 10, 5));
    ask(&mut glasses, "How many were there?").await;
    let asked = provider.until(turns + 2).await;
    let newest = format!("Day {turns} of herons");
    in_order(&asked, &["What was said before, summed up:", SUMMARY, &newest, "How many were there?"]);
    assert!(!asked.body.to_string().contains("Day 1 of herons"), "the summary stands for it");

    let request = MemoryRequest::EraseUser { user: USER.into(), devices: false };
    world.ask(Request::Memory { request }).await.expect("erased");
    assert!(!stands(&world.data(), SUMMARY.as_bytes()));
    world.stop().await;
}
