//! Capabilities at work for a wearer who speaks.

use serde_json::json;

use super::{
    examples::world,
    programs::{self, BOTH, TRAINS, answers, asks, read},
    servers::Servers,
};
use crate::{
    assistant::provider::{Answer, Provider},
    world::{answered, floor, say, understood},
};

#[tokio::test(flavor = "multi_thread")]
async fn the_wearer_asks_for_trains_by_voice() {
    let _floor = floor().await;
    let (provider, servers) = (Provider::start().await, Servers::start().await);
    let world = world(&provider, &servers, "").await;
    let mut glasses = world.glasses("wss", "glasses").await;
    provider.then("one", Answer::Calls("trainSchedule.getTrainDetails", json!({"trainId": "t1"})));
    provider.then("one", Answer::Says("Alpine Rail runs it.", 60, 6));
    say(&mut glasses, "Hey Mentra, who runs the next train?").await;
    let heard = understood(&mut glasses).await;
    assert!(heard.contains("train"), "{heard}");
    let told = answered(&mut glasses).await;
    assert!(told.contains("alpine rail"), "{told}");
    let asked = provider.until(2).await.body["messages"].to_string();
    assert!(asked.contains("Alpine Rail") && asked.contains("Thun"), "{asked}");
    assert_eq!(*servers.asked.lock().unwrap(), ["GET /trains/t1"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capability_in_json_and_a_composition_of_two_are_called_by_voice() {
    let _floor = floor().await;
    let (provider, servers) = (Provider::start().await, Servers::start().await);
    let world = programs::world(&provider, &servers).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    answers(&provider, TRAINS, "Alpine Rail runs it.");
    say(&mut glasses, "Hey Mentra, who runs the next train?").await;
    let heard = understood(&mut glasses).await;
    assert!(heard.contains("train"), "{heard}");
    let told = answered(&mut glasses).await;
    assert!(told.contains("alpine rail"), "{told}");
    assert_eq!(read(&provider, 1).await, "Train operated by: Alpine Rail");

    answers(&provider, BOTH, "The morning trains are noted.");
    asks(&mut glasses, "note the morning trains", "are noted").await;
    // The model reads neither the schedule nor what was noted.
    assert!(!read(&provider, 2).await.contains("Bern"));
    assert_eq!(
        *servers.called.lock().unwrap(),
        [
            r#"getSchedule {"station":"Central"}"#,
            r#"getTrainDetails {"trainId":"t1"}"#,
            "getSchedule {}",
            r#"create {"content":"8:00 - Bern","title":"Morning Trains"}"#,
        ]
    );
    world.stop().await;
}
