//! The doors: which connections are let in, in which form, and how many.

use firmware_sim::Glasses;

use crate::{
    peer::{Peer, Said},
    world::{WAIT, World, connect, outside, until},
};

async fn get(url: &str) -> (u16, String) {
    // This gateway's certificate is its own.
    let client = reqwest::Client::builder().danger_accept_invalid_certs(true).build().expect("a client");
    let reply = client.get(url).send().await.unwrap_or_else(|error| panic!("{url}: {error}"));
    (reply.status().as_u16(), reply.text().await.expect("its text"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_for_both_kinds_of_addresses_knows_its_own_machine() {
    let world = World::tuned("", |config| config.listen.web = "[::]:0".parse().expect("an address")).await;
    let port = world.web().port();
    for host in ["127.0.0.1", "[::1]"] {
        assert_eq!(get(&format!("http://{host}:{port}/healthz")).await, (200, "ok\n".to_owned()), "{host}");
        assert_eq!(get(&format!("http://{host}:{port}/try")).await.0, 200, "{host}");
    }
    let mut options = world.options("ws", "glasses");
    options.target = format!("ws://127.0.0.1:{port}/glasses").parse().expect("an address");
    connect(&world.data(), options).await.goodbye().await;
    // From outside it is encrypted, or told why not.
    let Some(outside) = outside() else { return world.stop().await };
    for path in ["healthz", "try", "glasses"] {
        let (status, told) = get(&format!("http://{outside}:{port}/{path}")).await;
        assert_eq!(status, 403, "{path}: {told}");
        assert!(told.contains("https://") && told.contains("listen.plain"), "{path}: {told}");
    }
    assert_eq!(get(&format!("https://{outside}:{port}/healthz")).await, (200, "ok\n".to_owned()));
    world.stop().await;
}

/// Two connections, of which one may be on its way into a session.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgraded_connection_keeps_its_place() {
    let world = World::tuned("", |config| {
        config.listen.web = "0.0.0.0:0".parse().expect("an address");
        config.limits.connections_max = 2;
    })
    .await;
    let port = world.web().port();
    let mut glasses = world.connect(target(&world, "127.0.0.1")).await;
    // One that says nothing has the only place of those that come, and the last one of all.
    let silent = Peer::connect_to(&format!("wss://127.0.0.1:{port}/glasses"), &world.folder().join("silent")).await;
    let mut crowded =
        Peer::connect_to(&format!("wss://127.0.0.1:{port}/glasses"), &world.folder().join("crowded")).await;
    let said = crowded.next().await;
    assert!(matches!(&said, Said::Reject(code, _) if code == "busy"), "{said:?}");
    assert_eq!(crowded.next().await, Said::Closed);
    if let Some(outside) = outside() {
        let refused = reqwest::Client::builder().danger_accept_invalid_certs(true).build().expect("a client");
        let refused = refused.get(format!("https://{outside}:{port}/healthz")).send().await;
        assert!(refused.is_err(), "{refused:?}");
    }
    // This machine is still heard, and so are those in a session.
    assert_eq!(get(&format!("http://127.0.0.1:{port}/healthz")).await, (200, "ok\n".to_owned()));
    glasses.text("what is two plus two").await.expect("sent");
    until(&mut glasses, "an answer", |event| matches!(event.seen, firmware_sim::Seen::SpeechStart { .. })).await;
    drop(silent);
    // Its place is free again, and so it goes on.
    let again = async {
        loop {
            let mut other = Glasses::start(target(&world, "127.0.0.1")).expect("an identity");
            if other.welcomed().await.is_ok() {
                return;
            }
        }
    };
    tokio::time::timeout(WAIT, again).await.expect("a place");
    world.stop().await;
}

fn target(world: &World, host: &str) -> firmware_sim::Options {
    let mut options = world.options("wss", "glasses");
    options.target = format!("wss://{host}:{}/glasses", world.web().port()).parse().expect("an address");
    options
}
