//! Glasses that an operator pairs on the page of devices.

use firmware_sim::{Glasses, Seen};
use gateway::identity::operators::Role;

use super::Visitor;
use crate::world::{World, pairing_code, until};

const PAGE: &str = "/console/devices";

#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_is_refused_is_all_that_is_typed_again() {
    let world = World::start().await;
    let operator = Visitor::signed_in(&world, Role::Operator).await;
    let mut glasses = Glasses::start(world.options("ws", "glasses")).expect("an identity");
    let (shown, _) = glasses.log().find(0, |event| pairing_code(event).is_some()).await;
    let code = pairing_code(&shown).expect("a code");
    let pair = async |code: &str| {
        let answer = operator.post("/console/devices/pair", &[("code", code), ("user", "ann"), ("name", "Hall")]).await;
        answer.headers()["location"].to_str().expect("a path").to_owned()
    };
    let back = pair("12").await;
    assert_eq!(back, format!("{PAGE}?user=ann&name=Hall"));
    let page = operator.text(&back).await;
    assert!(page.contains("a pairing code has six digits"), "{page}");
    assert!(page.contains("name=\"user\" value=\"ann\"") && page.contains("name=\"name\" value=\"Hall\""), "{page}");

    assert_eq!(pair(&code).await, PAGE);
    glasses.welcomed().await.expect("a session");
    let page = operator.text(PAGE).await;
    assert!(page.contains(&format!("paired {} for ann, called Hall", glasses.fingerprint())), "{page}");
    assert!(page.contains("name=\"user\" value=\"wearer\""), "{page}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn glasses_that_show_no_code_are_paired_behind_a_question_with_their_fingerprint_and_for_a_named_user() {
    let world = World::start().await;
    let operator = Visitor::signed_in(&world, Role::Operator).await;
    let mut options = world.options("ws", "ring");
    options.profile.display = None;
    let mut ring = Glasses::start(options).expect("an identity");
    until(&mut ring, "it waits", |event| matches!(event.seen, Seen::PairingCode { .. })).await;
    let fingerprint = ring.fingerprint().to_owned();
    let page = operator.text(PAGE).await;
    let (_, folded) = page.split_once("<details class=\"confirm\">").expect("it is folded");
    let (folded, _) = folded.split_once("</details>").expect("its end");
    assert!(folded.contains("action=\"/console/devices/window\"") && folded.contains("name=\"user\""), "{folded}");
    assert!(folded.contains(&format!("<button class=\"danger\">Pair {fingerprint}</button>")), "{folded}");
    operator.post("/console/devices/window", &[("fingerprint", &fingerprint), ("user", "ann")]).await;
    ring.welcomed().await.expect("a session");
    assert!(operator.text(PAGE).await.contains(&format!("paired {fingerprint} for ann, called ")));
    world.stop().await;
}
