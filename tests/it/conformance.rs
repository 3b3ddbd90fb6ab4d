//! The judge of gateways, and the gateway as the first to be judged.

mod device;
mod devices;
mod speech;

use device_protocol::Codecs;
use firmware_sim::Options;
use firmware_sim::conformance::{Verdict, judge};

use crate::world::World;

/// Judges the gateway over a transport; nothing may fail, and nothing that the product has may be left out.
async fn judged(scheme: &str) {
    let world = World::start().await;
    let options = world.options(scheme, "glasses");
    world.connect(options.clone()).await.goodbye().await;
    let all = judge(&options, |_| ()).await;
    let others: Vec<_> = all.iter().filter(|judged| judged.verdict != Verdict::Passed).collect();
    assert!(others.is_empty() && all.len() >= 19, "{others:#?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_conforms_over_websocket() {
    judged("wss").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_conforms_over_quic() {
    judged("quic").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_gateway_leaves_out_is_no_fault() {
    let world = World::with("[limits]\nresume_s = 0\n").await;
    let mut options = world.options("ws", "glasses");
    // It is judged by glasses like these: what they do not offer it must not welcome them with.
    options.profile.codecs = Codecs::PCM16;
    world.connect(options.clone()).await.goodbye().await;
    let all = judge(&options, |_| ()).await;
    let missing = all.iter().filter(|judged| matches!(judged.verdict, Verdict::NotOffered(_)));
    assert!(missing.clone().all(|judged| [4, 5, 7, 9].contains(&judged.section)) && missing.count() >= 4, "{all:#?}");
    assert!(!all.iter().any(|judged| matches!(judged.verdict, Verdict::Failed(_))), "{all:#?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_gateway_fails_every_check() {
    // It takes connections, and closes them.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let target = format!("ws://{}/glasses", listener.local_addr().expect("its address")).parse().expect("an address");
    let closing = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(stream)
        }
    });
    let folder = tempfile::tempdir().expect("a folder");
    let all = judge(&Options::new(target, folder.path()), |_| ()).await;
    closing.abort();
    assert!(all.iter().all(|judged| matches!(judged.verdict, Verdict::Failed(_))) && all.len() >= 19, "{all:#?}");
}
