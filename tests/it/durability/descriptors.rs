//! No file descriptor is left: who is connected stays so, an operator's commands get through, nothing spins, and it passes.

use std::{net::TcpStream, time::Instant};

use firmware_sim::Seen;
use gateway::control::{Answer, Request};

use crate::{
    process::Process,
    world::{self, WAIT, answered, ask, text, until},
};

/// Descriptors beyond those that a gateway with two sessions has: fewer than one address may have connections.
const MORE: u64 = 48;
/// The gateway says that this many are too few.
const FEW: u64 = 32;
/// Milliseconds between two tries to accept a connection.
const PAUSE_MS: u128 = 50;

async fn descriptors(data: &std::path::Path) -> (u64, u64) {
    let Ok(Answer::Status { status }) = ask(data, Request::Status).await else { panic!("a status") };
    status.descriptors.expect("counted")
}

#[tokio::test(flavor = "multi_thread")]
async fn without_descriptors_sessions_go_on_and_glasses_are_revoked() {
    // Only the first call counts.
    drop(rustls::crypto::ring::default_provider().install_default());
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let lost = folder.path().join("lost");
    let mut options = gateway.options();
    let target = options.target.clone();
    options.state = lost.clone();
    let _glasses = (world::connect(&data, gateway.options()).await, world::connect(&data, options).await);
    let (base, _) = descriptors(&data).await;
    gateway.kill().await;

    let gateway = Process::start_within(&data, base + MORE).await;
    let mut options = gateway.options();
    assert_ne!(options.target, target);
    let mut glasses = world::connect(&data, options.clone()).await;
    options.state = lost;
    let mut lost = world::connect(&data, options.clone()).await;
    // They get few.
    let health = format!("http://{}/healthz", gateway.web);
    let connect = || TcpStream::connect(gateway.web).expect("a place in the queue");
    let mut silent = Vec::new();
    silent.extend((FEW - 4..MORE).map(|_| connect()));
    let told = async {
        loop {
            let answer = reqwest::get(&health).await.expect("an answer");
            if answer.status() == 503 {
                return answer.text().await.expect("words");
            }
        }
    };
    let told = tokio::time::timeout(WAIT, told).await.expect("it says so");
    assert!(told.contains("\"part\":\"descriptors\"") && told.contains("file descriptors are open"), "{told}");
    assert!(base + MORE - descriptors(&data).await.0 <= FEW + 2);
    // None is left: those that are not accepted wait in the system's queue.
    let began = Instant::now();
    silent.extend((0..MORE + 16).map(|_| connect()));
    for question in ["what is two plus two", "what is twelve times three"] {
        text(&mut glasses, question).await;
        answered(&mut glasses).await;
    }
    let revoked = ask(&data, Request::Revoke { device: lost.fingerprint().to_owned() }).await;
    let Ok(Answer::Done { message }) = revoked else { panic!("{revoked:?}") };
    assert!(message.contains("its session was ended"), "{message}");
    until(&mut lost, "the goodbye", |event| matches!(&event.seen, Seen::Goodbye { reason, .. } if reason == "revoked"))
        .await;
    // It passes.
    let lasted_ms = began.elapsed().as_millis();
    drop(silent);
    let healthy = async {
        while !reqwest::get(&health).await.is_ok_and(|answer| answer.status() == 200) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, healthy).await.expect("it is healthy again");
    let error = firmware_sim::Glasses::start(options).unwrap().welcomed().await.expect_err("it is kept out");
    assert!(error.to_string().contains("revoked"), "{error}");
    let log = gateway.kill().await;
    let failed = log.iter().filter(|line| line.contains("accepting a connection failed")).count();
    assert!(failed > 0, "descriptors were left: {log:#?}");
    assert!(failed as u128 <= lasted_ms / PAUSE_MS + 20, "{failed} tries in {lasted_ms} ms");
    assert!(!log.iter().any(|line| line.contains("panicked")), "{log:#?}");
}
