//! Who is let in: keys, proofs, pairing, revocation, and nobody in the middle.

mod relay;

use firmware_sim::{
    Glasses, Seen,
    glasses::Error,
    handshake,
    identity::{Identity, random_bytes},
};
use gateway::control::{Answer, Paired, Request};

use crate::{
    peer::{Peer, Said},
    world::{USER, WAIT, World, pairing_code, until},
};

/// The code of a refusal.
fn refused(outcome: Result<(), Error>) -> String {
    match outcome {
        Err(Error::Handshake(handshake::Error::Rejected { code, .. })) => code,
        other => panic!("{other:?}"),
    }
}

async fn paired(world: &World) -> Vec<Paired> {
    match world.ask(Request::Devices).await {
        Ok(Answer::Devices { paired, .. }) => paired,
        other => panic!("{other:?}"),
    }
}

/// Waits until the glasses wait for the operator; their code where they show one.
async fn waiting(glasses: &mut Glasses) -> Option<String> {
    let seen = until(glasses, "the pairing opens", |event| matches!(event.seen, Seen::PairingCode { .. }));
    match seen.await {
        Seen::PairingCode { code, .. } => code,
        _ => unreachable!("it was picked"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_a_session_before_the_operator_paired_them() {
    let world = World::start().await;
    let mut glasses = Glasses::start(world.options("wss", "unknown")).unwrap();
    assert!(waiting(&mut glasses).await.is_some());
    assert!(paired(&world).await.is_empty());
    let Ok(Answer::Devices { waiting, .. }) = world.ask(Request::Devices).await else { panic!() };
    assert_eq!((waiting.len(), waiting[0].fingerprint.as_str()), (1, glasses.fingerprint()));
    let log = glasses.goodbye().await;
    assert!(!log.since(0).iter().any(|event| matches!(event.seen, Seen::Welcome { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn five_wrong_codes_turn_everybody_away() {
    let world = World::start().await;
    let mut glasses = Glasses::start(world.options("wss", "glasses")).unwrap();
    let right = waiting(&mut glasses).await.unwrap();
    let wrong = if right == "000000" { "000001" } else { "000000" };
    let pair = |code: &str| Request::PairCode { code: code.to_owned(), user: USER.to_owned(), name: String::new() };
    for left in (1..5).rev() {
        let error = world.ask(pair(wrong)).await.unwrap_err();
        assert!(error.contains(&format!("{left} tries")), "{error}");
    }
    let error = world.ask(pair(wrong)).await.unwrap_err();
    assert!(error.contains("too many wrong codes"), "{error}");
    assert_eq!(refused(glasses.welcomed().await), "pairing_failed");
    // Not even the right code helps now.
    let error = world.ask(pair(&right)).await.unwrap_err();
    assert!(error.contains("too many wrong codes"), "{error}");
    let mut again = Glasses::start(world.options("wss", "glasses")).unwrap();
    assert_eq!(refused(again.welcomed().await), "rate_limited");
}

#[tokio::test(flavor = "multi_thread")]
async fn glasses_without_a_display_are_paired_by_their_fingerprint() {
    let world = World::start().await;
    for opened_before in [true, false] {
        let mut options = world.options("quic", if opened_before { "first" } else { "second" });
        options.profile.display = None;
        let fingerprint = Identity::load_or_make(&options.state).unwrap().fingerprint();
        let request = || Request::PairFingerprint {
            fingerprint: fingerprint.to_uppercase(),
            user: USER.to_owned(),
            name: "ring".to_owned(),
        };
        if opened_before {
            world.ask(request()).await.unwrap();
        }
        let mut glasses = Glasses::start(options).unwrap();
        assert_eq!(waiting(&mut glasses).await, None);
        if !opened_before {
            world.ask(request()).await.unwrap();
        }
        glasses.welcomed().await.unwrap();
        let known = paired(&world).await;
        assert!(known.iter().any(|device| device.device == fingerprint && device.name == "ring" && device.connected));
        glasses.goodbye().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_are_listed_and_renamed() {
    let world = World::start().await;
    let glasses = world.glasses("wss", "glasses").await;
    let fingerprint = glasses.fingerprint().to_owned();
    world.ask(Request::Rename { device: fingerprint[..8].to_owned(), name: "blue".to_owned() }).await.unwrap();
    let list = paired(&world).await;
    assert_eq!((list[0].device.as_str(), list[0].name.as_str(), list[0].connected), (&*fingerprint, "blue", true));
    let error = world.ask(Request::Rename { device: "red".to_owned(), name: "x".to_owned() }).await.unwrap_err();
    assert!(error.contains("no device is called `red`"), "{error}");
    glasses.goodbye().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_device_is_cut_and_stays_out_until_it_is_named_again() {
    let world = World::start().await;
    for scheme in ["wss", "quic"] {
        let mut glasses = world.glasses(scheme, scheme).await;
        glasses.forget();
        let mark = glasses.mark();
        world.ask(Request::Revoke { device: glasses.fingerprint().to_owned() }).await.unwrap();
        // From the operator's answer on, nothing that the device says is acted on: the session's end
        // is ahead of it in the queue, whatever the machine's speed.
        drop(glasses.text("what time is it").await);
        let event = glasses.wait_for(WAIT, |event| matches!(event.seen, Seen::Goodbye { .. })).await.unwrap();
        assert!(matches!(&event.seen, Seen::Goodbye { reason, .. } if reason == "revoked"), "{event:?}");
        let answered: Vec<_> = glasses
            .log()
            .since(mark)
            .into_iter()
            .filter(|event| {
                matches!(event.seen, Seen::Transcript { .. } | Seen::Display { .. } | Seen::SpeechStart { .. })
            })
            .collect();
        assert!(answered.is_empty(), "{scheme}: {answered:?}");
        let mut again = Glasses::start(world.options(scheme, scheme)).unwrap();
        assert_eq!(refused(again.welcomed().await), "revoked");
        let fingerprint = again.fingerprint().to_owned();
        let request = Request::PairFingerprint { fingerprint, user: USER.to_owned(), name: scheme.to_owned() };
        world.ask(request).await.unwrap();
        let mut forgiven = Glasses::start(world.options(scheme, scheme)).unwrap();
        forgiven.welcomed().await.unwrap();
        forgiven.goodbye().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn glasses_refuse_a_gateway_with_another_key() {
    let (home, other) = (World::start().await, World::start().await);
    home.glasses("wss", "glasses").await.goodbye().await;
    let mut options = home.options("wss", "glasses");
    options.target = other.address("wss").parse().unwrap();
    let outcome = Glasses::connect(options).await.err();
    assert!(matches!(outcome, Some(Error::Handshake(handshake::Error::WrongGateway { .. }))), "{outcome:?}");
    assert!(paired(&other).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_signature_is_refused() {
    let world = World::start().await;
    for scheme in ["ws", "wss", "quic"] {
        let mut peer = Peer::connect(&world, scheme, "peer").await;
        let handshake = peer.hello().await;
        let mut signature = peer.identity.sign(&handshake.device_proof(&peer.nonce));
        signature[40] ^= 1;
        peer.proof(signature).await;
        assert!(matches!(peer.next().await, Said::Reject(code, _) if code == "bad_proof"), "{scheme}");
        assert_eq!(peer.next().await, Said::Closed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nonce_that_was_not_committed_to_is_refused() {
    let world = World::start().await;
    let mut peer = Peer::connect(&world, "wss", "peer").await;
    let handshake = peer.hello().await;
    peer.nonce = random_bytes().unwrap();
    peer.prove(&handshake).await;
    assert!(matches!(peer.next().await, Said::Reject(code, _) if code == "bad_proof"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replayed_proof_is_refused() {
    let world = World::start().await;
    world.glasses("ws", "peer").await.goodbye().await;
    // Without TLS there is no binding: the gateway's nonce alone must make the difference.
    let mut honest = Peer::connect(&world, "ws", "peer").await;
    let handshake = honest.hello().await;
    let signature = honest.identity.sign(&handshake.device_proof(&honest.nonce));
    honest.proof(signature).await;
    assert_eq!(honest.next().await, Said::Other("welcome"));

    let mut replay = Peer::connect(&world, "ws", "peer").await;
    replay.nonce = honest.nonce;
    replay.hello().await;
    replay.proof(signature).await;
    assert!(matches!(replay.next().await, Said::Reject(code, _) if code == "bad_proof"));
}

#[tokio::test(flavor = "multi_thread")]
async fn glasses_notice_a_relay() {
    let world = World::start().await;
    let relay = relay::start(world.web()).await;
    for known in [false, true] {
        if known {
            world.glasses("wss", "glasses").await.goodbye().await;
        }
        let mut options = world.options("wss", "glasses");
        options.target = format!("wss://{relay}/glasses").parse().unwrap();
        let outcome = Glasses::connect(options).await.err();
        assert!(matches!(outcome, Some(Error::Handshake(handshake::Error::BadSignature))), "{outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_notices_a_relay() {
    let world = World::start().await;
    world.glasses("wss", "peer").await.goodbye().await;
    let relay = relay::start(world.web()).await;
    // A device that does not look at the gateway's signature: its own proof still names its own connection.
    let mut peer = Peer::connect_to(&format!("wss://{relay}/glasses"), &world.folder().join("peer")).await;
    let handshake = peer.hello().await;
    peer.prove(&handshake).await;
    let said = peer.next().await;
    assert!(matches!(&said, Said::Reject(code, words) if code == "bad_proof" && words.contains("relayed")), "{said:?}");
    // The relay itself works: what fails is the proof alone.
    let mut direct = Peer::connect(&world, "wss", "peer").await;
    direct.shake().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_code_pairs_only_the_glasses_that_show_it() {
    let world = World::start().await;
    let mut first = Glasses::start(world.options("wss", "first")).unwrap();
    let mut second = Glasses::start(world.options("quic", "second")).unwrap();
    waiting(&mut first).await;
    let (event, _) = second.log().find(0, |event| pairing_code(event).is_some()).await;
    let request =
        Request::PairCode { code: pairing_code(&event).unwrap(), user: "ann".to_owned(), name: "second".to_owned() };
    world.ask(request).await.unwrap();
    second.welcomed().await.unwrap();
    let known = paired(&world).await;
    assert_eq!((known.len(), known[0].device.as_str(), known[0].user.as_str()), (1, second.fingerprint(), "ann"));
    first.goodbye().await;
    second.goodbye().await;
}
