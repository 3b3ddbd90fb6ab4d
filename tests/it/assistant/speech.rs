//! The wearer uses a suggested follow-up, by voice.

use gateway_core::vocab::ToolResult;
use serde_json::json;

use super::{
    preamble::{NEXT, shown, weather, world},
    provider::{Answer, Provider},
    record,
};
use crate::world::{answered, floor, say, text, understood, until};

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tool_suggests_is_offered_and_needs_no_wake_word() {
    let _floor = floor().await;
    let provider = Provider::start().await;
    // As long as the machine may need to synthesise and recognise the sentence.
    let world = world(&provider, "[hearing]\nfollow_up_ms = 300000\n").await;
    let mut glasses = world.glasses("wss", "glasses").await;
    let follow_ups = vec!["What about tomorrow".to_owned()];
    weather(&world, ToolResult { follow_ups, ..ToolResult::said("It rains in Paris.") }).send_replace(true);
    provider.then("one", Answer::Calls("weather.look", json!({})));
    provider.then("one", Answer::Says("Paris is wet.", 5, 5));
    let from = glasses.mark();
    text(&mut glasses, "how is the weather").await;
    let offer = format!("paris is wet. you can say: \"{NEXT}\"");
    until(&mut glasses, "the offer", |event| shown(event).is_some_and(|shown| shown.contains(&offer))).await;
    assert_eq!(record(&world, 1).await["follow_ups"], json!(1));
    let events = glasses.log().since(from);
    assert!(events.iter().filter_map(shown).all(|shown| !shown.starts_with("you can say")), "{events:?}");

    provider.then("one", Answer::Says("Tomorrow is dry.", 5, 5));
    say(&mut glasses, NEXT).await;
    let heard = understood(&mut glasses).await;
    assert!(heard.contains("tomorrow"), "{heard}");
    assert!(answered(&mut glasses).await.contains("tomorrow is dry"));
    let asked = provider.until(3).await.body["messages"].to_string().to_lowercase();
    let (wet, next) = (asked.find("paris is wet"), asked.rfind("tomorrow"));
    assert!(wet.is_some() && wet < next, "{asked}");
    world.stop().await;
}
