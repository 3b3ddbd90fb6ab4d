//! A browser that disconnects while something is done for it.

use gateway::identity::operators::Role;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::mpsc,
    time::timeout,
};

use super::Visitor;
use crate::world::{WAIT, World};

/// Waits until this is the case.
async fn comes(what: &str, mut is_so: impl FnMut() -> bool) {
    let coming = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    timeout(WAIT, coming).await.unwrap_or_else(|_| panic!("never: {what}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_is_stored_though_its_browser_has_disconnected() {
    let world = World::start().await;
    let operator = Visitor::signed_in(&world, Role::Operator).await;
    let glasses = world.glasses("ws", "lost").await;
    let device = glasses.fingerprint().to_owned();
    let services = world.gateway().services();
    // In the place of their session, one that ends only when the test lets it: the revocation waits for that.
    let mut present = services.roster.get(&device).expect("a session");
    glasses.goodbye().await;
    comes("the session ends", || services.roster.get(&device).is_none()).await;
    let (mailbox, received) = mpsc::channel(1);
    present.mailbox = mailbox;
    assert!(services.roster.enter(&device, present, 1).is_ok());

    let web = world.web();
    let cookie = operator.cookie.as_deref().expect("a session");
    let form = format!("device={device}&token={}", operator.token);
    let request = format!(
        "POST /console/devices/revoke HTTP/1.1\r\nhost: {web}\r\norigin: http://{web}\r\ncookie: {cookie}\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
        form.len()
    );
    let mut browser = TcpStream::connect(web).await.expect("a connection");
    browser.write_all(request.as_bytes()).await.expect("sent");
    comes("it is kept out", || services.admission.pairings.is_revoked(&device)).await;
    browser.shutdown().await.expect("its end");
    // The gateway gives the connection up, without an answer.
    let mut answer = Vec::new();
    drop(timeout(WAIT, browser.read_to_end(&mut answer)).await.expect("in time"));
    assert!(answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
    drop(received);
    comes("it is stored", || {
        let devices = services.store.disk().devices().unwrap();
        devices.iter().any(|(id, record)| *id == device && record.revoked)
    })
    .await;
    world.stop().await;
}
