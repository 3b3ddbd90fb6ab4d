//! Microphones with faults, through the real gateway: what their wearers and its operator are told.

use firmware_sim::{
    Seen,
    acoustics::{Acoustics, Change, Fault},
};
use gateway::control::{Answer, Request};

use crate::world::{World, answered, floor, say, understood, until};

/// A microphone is dead after two seconds.
const HEARING: &str = "[hearing]\ndead_microphone_s = 2\n";

/// The faults of the only session, and what `/metrics` has of this fault.
async fn told(world: &World, fault: &str) -> (Vec<String>, String) {
    let Ok(Answer::Status { status }) = world.ask(Request::Status).await else { panic!("a status") };
    let [(_, _, session)] = status.sessions.as_slice() else { panic!("{:?}", status.sessions) };
    let metrics = reqwest::get(format!("http://{}/metrics", world.web())).await.expect("an answer");
    let metrics = metrics.text().await.expect("a text");
    let name = format!("lorgnette_microphone_faults{{fault=\"{fault}\"}} ");
    let count = metrics.lines().find_map(|line| line.strip_prefix(&name)).expect("a count");
    (session.microphone.clone(), count.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_microphone_is_told_to_its_wearer_and_one_that_lives_again_is_heard() {
    let _floor = floor().await;
    let world = World::with(HEARING).await;
    let mut options = world.options("wss", "glasses");
    options.acoustics = Acoustics { fault: Some(Fault::Dead), ..Acoustics::default() };
    let mut glasses = world.connect(options).await;
    let told_of = answered(&mut glasses).await;
    assert!(told_of.contains("no sound from the microphone"), "{told_of}");
    assert_eq!(told(&world, "dead").await, (vec!["dead".to_owned()], "1".to_owned()));

    glasses.acoustics(Change::Fault(None)).await.expect("repaired");
    say(&mut glasses, "Hey Mentra, what is twelve times three?").await;
    understood(&mut glasses).await;
    let answer = answered(&mut glasses).await;
    assert!(answer.contains("36"), "{answer}");
    assert_eq!(told(&world, "dead").await, (Vec::new(), "0".to_owned()));
    let notices = glasses.log().since(0);
    let count = notices.iter().filter(|event| matches!(&event.seen, Seen::Chime { sound } if sound == "error")).count();
    assert_eq!(count, 1, "{notices:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voice_that_is_cut_off_is_told_to_its_wearer() {
    let _floor = floor().await;
    let world = World::with(HEARING).await;
    let mut options = world.options("quic", "glasses");
    options.acoustics = Acoustics { fault: Some(Fault::Clipping(36.0)), ..Acoustics::default() };
    let mut glasses = world.connect(options).await;
    say(
        &mut glasses,
        "The captain has not found the island, and his ship is slow in the wind that comes from the north.",
    )
    .await;
    until(&mut glasses, "a sign of trouble", |event| matches!(&event.seen, Seen::Chime { sound } if sound == "error"))
        .await;
    let told_of = answered(&mut glasses).await;
    assert!(told_of.contains("microphone is too loud"), "{told_of}");
    assert_eq!(told(&world, "clipping").await, (vec!["clipping".to_owned()], "1".to_owned()));
}
