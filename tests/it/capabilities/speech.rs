//! A handler at work for a wearer who speaks.

use serde_json::json;

use super::{examples::world, servers::Servers};
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
