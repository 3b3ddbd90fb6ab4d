//! Glasses that scan the picture of an operator's page.

use firmware_sim::{Glasses, identity::Trust, invitation::Invitation};
use gateway::identity::operators::Role;

use super::Visitor;
use crate::world::World;

const PAGE: &str = "/console/devices/invitation";

impl Visitor {
    /// Asks for an invitation, and reads its text from the page.
    async fn invites(&self, name: &str) -> Invitation {
        let fields = [("invited-user", "ann"), ("invited-name", name), ("invited-address", "")];
        let answer = self.post("/console/devices/invite", &fields).await;
        assert_eq!((answer.status().as_u16(), answer.headers()["location"].as_bytes()), (303, PAGE.as_bytes()));
        let page = self.text(PAGE).await;
        assert!(page.contains("<svg class=\"qr\""), "{page}");
        let (_, text) = page.split_once("<pre>").expect("the text");
        let text = text.split("</pre>").next().expect("its end").replace("&amp;", "&");
        text.parse().expect("the simulator reads it")
    }
}

/// Glasses that have scanned it.
fn scanned(world: &World, name: &str, invitation: &Invitation) -> Glasses {
    let mut options = world.options("ws", name);
    options.trust = Trust::Invitation(invitation.fingerprint.clone(), invitation.code);
    Glasses::start(options).expect("an identity")
}

#[tokio::test(flavor = "multi_thread")]
async fn glasses_that_scan_the_picture_are_paired_and_the_page_says_so() {
    let world = World::start().await;
    let operator = Visitor::signed_in(&world, Role::Operator).await;
    let other = Visitor::signed_in(&world, Role::Operator).await;
    let invitation = operator.invites("Hall").await;
    assert!(other.text(PAGE).await.contains("No invitation is open"), "it is its operator's own");
    let mut follows = operator.get("/console/live/invitation").await;
    scanned(&world, "hall", &invitation).welcomed().await.expect("a session");
    let mut seen = String::new();
    while !seen.contains("paired ") {
        let chunk = follows.chunk().await.expect("a stream").expect("it goes on");
        seen.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert!(seen.contains(" for ann, called Hall"), "{seen}");
    assert!(operator.text("/console/devices").await.contains("Hall"));
    scanned(&world, "thief", &invitation).welcomed().await.expect_err("it was used");

    // The next one takes the place of an earlier one, and is withdrawn by a button, or with the session.
    let second = operator.invites("second").await;
    let third = operator.invites("third").await;
    scanned(&world, "second", &second).welcomed().await.expect_err("it was withdrawn");
    operator.post("/console/devices/withdraw", &[]).await;
    scanned(&world, "third", &third).welcomed().await.expect_err("it was withdrawn");
    let answer = operator.post("/console/devices/invite", &[("invited-user", ""), ("invited-address", "a/b")]).await;
    let form = answer.headers()["location"].to_str().unwrap().to_owned();
    assert_eq!(form, "/console/devices?invited-address=a%2Fb", "back to the form");
    let page = operator.text(&form).await;
    assert!(page.contains("notice bad") && page.contains("<details open>"), "{page}");
    assert!(page.contains("name=\"invited-address\" value=\"a/b\""), "{page}");
    world.stop().await;
}
