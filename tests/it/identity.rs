//! Which devices are accepted: keys, proofs, pairing, revocation, and man-in-the-middle attacks.

mod invitations;
pub mod relay;

use firmware_sim::{
    Error, Glasses, Seen, handshake,
    identity::{Identity, random_bytes},
};
use gateway::{
    control::{Answer, Paired, Request, memory::MemoryRequest},
    store::{self, DeviceRecord, NoteRecord, Write},
    users::UserMessage,
};
use gateway_core::{
    input::UserInput,
    vocab::{Due, ScheduleChange, ScheduleEntry, ScheduleKind},
};
use tokio::sync::oneshot;

use crate::{
    peer::{Peer, Said},
    process::{configure, succeeds},
    world::{USER, WAIT, World, pairing_code, until},
};

/// The code of a refusal.
fn refused(outcome: Result<(), Error>) -> String {
    refused_until(outcome).0
}

/// The code of a refusal, and the milliseconds until the glasses may retry.
fn refused_until(outcome: Result<(), Error>) -> (String, u32) {
    match outcome {
        Err(Error::Handshake(handshake::Error::Rejected { code, retry_after_ms, .. })) => (code, retry_after_ms),
        other => panic!("{other:?}"),
    }
}

async fn paired(world: &World) -> Vec<Paired> {
    match world.ask(Request::Devices).await {
        Ok(Answer::Devices { paired, .. }) => paired,
        other => panic!("{other:?}"),
    }
}

/// Waits until the glasses wait for the operator; returns their code if they show one.
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
        let told = if left == 1 { "1 try is left".to_owned() } else { format!("{left} tries are left") };
        assert!(error.contains(&told), "{error}");
        // The glasses are informed.
        until(
            &mut glasses,
            "what is left",
            |event| matches!(event.seen, Seen::PairingCode { tries_left, .. } if tries_left == left),
        )
        .await;
    }
    let error = world.ask(pair(wrong)).await.unwrap_err();
    assert!(error.contains("too many wrong codes"), "{error}");
    let (code, retry_after_ms) = refused_until(glasses.welcomed().await);
    assert_eq!(code, "pairing_failed");
    // Pairing is closed for two minutes.
    assert!((100_000..=120_000).contains(&retry_after_ms), "{retry_after_ms}");
    // Now even the right code is refused.
    let error = world.ask(pair(&right)).await.unwrap_err();
    assert!(error.contains("too many wrong codes"), "{error}");
    let mut again = Glasses::start(world.options("wss", "glasses")).unwrap();
    let (code, later_ms) = refused_until(again.welcomed().await);
    assert_eq!(code, "rate_limited");
    assert!(later_ms % 1_000 == 0 && later_ms <= 120_000 && later_ms > 0, "{later_ms}");
}

#[tokio::test(flavor = "multi_thread")]
async fn glasses_without_a_display_are_paired_by_their_fingerprint() {
    let world = World::start().await;
    for opened_before in [true, false] {
        let mut options = world.options("quic", if opened_before { "first" } else { "second" });
        options.profile.display = None;
        let fingerprint = Identity::load_or_make(&options.state).unwrap().fingerprint();
        let name = if opened_before { "ring" } else { "other ring" };
        let request = || Request::PairFingerprint {
            fingerprint: fingerprint.to_uppercase(),
            user: USER.to_owned(),
            name: name.to_owned(),
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
        assert!(
            known.iter().any(|device| device.device == fingerprint && device.name == name && device.session.is_some())
        );
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
    assert_eq!((list[0].device.as_str(), list[0].name.as_str()), (&*fingerprint, "blue"));
    let session = list[0].session.as_ref().expect("it is connected");
    assert_eq!((session.transport.as_str(), session.peer.starts_with("127.0.0.1:")), ("wss", true), "{session:?}");
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
        // After the operator's answer nothing that the device sends is acted on: the session's end precedes it in the
        // queue, on any machine.
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
async fn a_device_that_is_paired_already_is_not_awaited_once_more() {
    let world = World::start().await;
    let glasses = world.glasses("wss", "glasses").await;
    let fingerprint = glasses.fingerprint().to_owned();
    glasses.goodbye().await;
    let request = || Request::PairFingerprint {
        fingerprint: fingerprint.to_uppercase(),
        user: "ann".to_owned(),
        name: String::new(),
    };
    let error = world.ask(request()).await.unwrap_err();
    assert!(error.contains(&format!("{fingerprint} is paired already, for {USER}: revoke it first")), "{error}");
    world.ask(Request::Revoke { device: fingerprint.clone() }).await.unwrap();
    world.ask(request()).await.unwrap();
    let mut again = Glasses::start(world.options("wss", "glasses")).unwrap();
    again.welcomed().await.unwrap();
    assert_eq!(paired(&world).await[0].user, "ann");
    again.goodbye().await;
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
    // Without TLS there is no binding: only the gateway's nonce differs.
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
    // A device that does not verify the gateway's signature: its own proof still names its own connection.
    let mut peer = Peer::connect_to(&format!("wss://{relay}/glasses"), &world.folder().join("peer")).await;
    let handshake = peer.hello().await;
    peer.prove(&handshake).await;
    let said = peer.next().await;
    assert!(matches!(&said, Said::Reject(code, words) if code == "bad_proof" && words.contains("relayed")), "{said:?}");
    // The relay itself works: only the proof fails.
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

#[tokio::test(flavor = "multi_thread")]
async fn what_a_stranger_says_of_itself_cannot_act_on_a_terminal() {
    let world = World::start().await;
    for model in ["Good\u{1b}[2J\u{1b}]0;pwned\u{7}", "two\nlines", "\u{202e}desrever", "\u{9b}31mred"] {
        let mut peer = Peer::connect(&world, "wss", "peer").await;
        peer.model = model.to_owned();
        peer.say_hello().await;
        let said = peer.next().await;
        assert!(
            matches!(&said, Said::Reject(code, words) if code == "malformed" && words.contains("`model`")),
            "{said:?}"
        );
    }
    let Ok(Answer::Devices { waiting, .. }) = world.ask(Request::Devices).await else { panic!() };
    assert!(waiting.is_empty(), "{waiting:?}");
    // Names stored by an older gateway are printed.
    let record = DeviceRecord {
        key: [7; 32],
        name: "Good\u{1b}[2J\nfake line".to_owned(),
        user: USER.to_owned(),
        model: "\u{202e}G1".to_owned(),
        paired_wall_ms: 0,
        revoked: false,
    };
    world.gateway().services().store.write(Write::PutDevice { id: "ab".repeat(16), device: record }).await.unwrap();
    let config = configure(&world.data(), "").display().to_string();
    let list = succeeds(&["devices", "list", "--config", &config]).await;
    assert!(list.contains(r"Good\u001b[2J\u000afake line") && list.contains(r"\u202eG1"), "{list}");
    assert_eq!(list.lines().count(), 1, "{list}");
    assert!(!list.contains(['\u{1b}', '\u{202e}']), "{list}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_two_devices_have_one_name() {
    let world = World::start().await;
    for name in ["first", "second", "third"] {
        world.glasses("wss", name).await.goodbye().await;
    }
    let names = |list: &[Paired]| {
        let mut names: Vec<String> = list.iter().map(|device| device.name.clone()).collect();
        names.sort();
        names
    };
    let list = paired(&world).await;
    let model = list[0].model.clone();
    assert_eq!(names(&list), [model.clone(), format!("{model} 2"), format!("{model} 3")]);
    let rename = |device: &str, name: &str| Request::Rename { device: device.to_owned(), name: name.to_owned() };
    world.ask(rename(&list[0].device, "Anna's glasses")).await.unwrap();
    world.ask(rename(&list[0].device, "Anna's glasses")).await.expect("its own name");
    let error = world.ask(rename(&list[1].device, "Anna's glasses")).await.unwrap_err();
    assert!(error.contains("another device is called `Anna's glasses`"), "{error}");
    let request = Request::PairFingerprint {
        fingerprint: "ab".repeat(16),
        user: USER.to_owned(),
        name: "Anna's glasses".to_owned(),
    };
    let error = world.ask(request).await.unwrap_err();
    assert!(error.contains("another device is called"), "{error}");
    // A revoked device does not reserve its name, and is not found by it.
    world.ask(Request::Revoke { device: "Anna's glasses".to_owned() }).await.unwrap();
    world.ask(rename(&list[1].device, "Anna's glasses")).await.unwrap();
    world.ask(rename("Anna's glasses", "Anna's")).await.unwrap();
    assert!(names(&paired(&world).await).contains(&"Anna's".to_owned()));
    world.stop().await;
}

/// Waits until a user has a task, which may need another one to come to rest first.
async fn has_task(world: &World, user: &str) {
    let running = async {
        while world.gateway().services().users.mailbox(user).is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, running).await.expect("a place");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_user_too_many_is_refused_at_pairing_and_the_gateway_starts() {
    let user = |number: usize| format!("user{number:02}");
    let record = |number: usize| DeviceRecord {
        key: [7; 32],
        name: format!("glasses {number}"),
        user: user(number),
        model: "G1".to_owned(),
        paired_wall_ms: 0,
        revoked: false,
    };
    let reminder = |user: String| {
        let kind = ScheduleKind::Reminder { text: "oven".to_owned() };
        Write::PutEntry { user, entry: ScheduleEntry { id: 1, kind, due_wall_ms: i64::MAX, duration_ms: None } }
    };
    let world = World::start().await;
    let users_max = world.gateway().services().settings.limits.users_max;
    // As an older gateway has left them: one more than it serves, and some that were revoked.
    for number in 0..users_max + 4 {
        let revoked = number > users_max;
        let device = record(number);
        let id = format!("{number:032x}");
        let store = &world.gateway().services().store;
        store.write(Write::PutDevice { id: id.clone(), device: device.clone() }).await.unwrap();
        store.write(Write::PutDevice { id, device: DeviceRecord { revoked, ..device } }).await.unwrap();
    }
    for number in [3, users_max, users_max + 1] {
        world.gateway().services().store.write(reminder(user(number))).await.unwrap();
    }
    let world = world.again().await;
    // Only those are started who have something to be told and a device for it.
    assert_eq!(world.gateway().services().users.count(), 2);
    for number in 0..=users_max {
        has_task(&world, &user(number)).await;
    }
    assert_eq!(world.gateway().services().users.count(), users_max);
    let mut glasses = Glasses::start(world.options("wss", "late")).unwrap();
    let code = waiting(&mut glasses).await.expect("a code");
    let pair = || Request::PairCode { code: code.clone(), user: "one-more".to_owned(), name: String::new() };
    let error = world.ask(pair()).await.unwrap_err();
    assert!(error.contains("serves 64 users") && error.contains("lorgnette users erase"), "{error}");
    // The code is still valid, and there are two commands that free a place.
    let request = Request::Memory { request: MemoryRequest::EraseUser { user: user(0), devices: true } };
    world.ask(request).await.unwrap();
    assert!(world.ask(pair()).await.is_err(), "as many as may");
    world.ask(Request::Revoke { device: format!("{:032x}", 1) }).await.unwrap();
    world.ask(pair()).await.expect("there is room");
    glasses.welcomed().await.unwrap();
    glasses.goodbye().await;
    world.stop().await;
}

/// What is asked for users without devices takes no place from those who have some.
#[tokio::test(flavor = "multi_thread")]
async fn users_that_were_addressed_once_lock_nobody_out() {
    let world = World::with("[limits]\nusers = 2\n").await;
    let services = world.gateway().services();
    for user in ["a", "b", "c", "d", "e"] {
        // Even one that has something to wait for, but no device.
        let (reply, added) = oneshot::channel();
        let change =
            ScheduleChange::Add { due: Due::In { duration_ms: 3_600_000 }, kind: ScheduleKind::timer(user.to_owned()) };
        has_task(&world, user).await;
        let mailbox = services.users.mailbox(user).expect("it has a task");
        assert!(mailbox.send(UserMessage::Schedule { change, reply }).await.is_ok());
        drop(mailbox);
        added.await.expect("an answer").expect("added");
    }
    has_task(&world, USER).await;
    let glasses = world.glasses("wss", "glasses").await;
    assert!(services.users.count() <= 2);
    // What was stored of the first is there when it is addressed again, and its task is one of two.
    has_task(&world, "a").await;
    let (reply, listed) = oneshot::channel();
    let mailbox = services.users.mailbox("a").expect("it has a task");
    assert!(mailbox.send(UserMessage::List { reply }).await.is_ok());
    assert_eq!(listed.await.expect("an answer")[0].entry.kind.text(), "a");
    // With glasses connected and a sender held, nobody gives way.
    let other = services.users.mailbox("b");
    assert!(matches!(other, Err(store::Error::TooManyUsers(2))));
    drop(mailbox);
    has_task(&world, "b").await;
    glasses.goodbye().await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_anything_to_do_has_no_task_until_the_next_use() {
    let world = World::tuned("", |config| config.limits.user_idle_ms = 1).await;
    let users = &world.gateway().services().users;
    world.glasses("wss", "glasses").await.goodbye().await;
    drop(users.mailbox("ann").unwrap());
    let ended = async {
        while users.count() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, ended).await.expect("they end");
    let (reply, listed) = oneshot::channel();
    assert!(users.mailbox("ann").unwrap().send(UserMessage::List { reply }).await.is_ok());
    assert!(listed.await.expect("it is started again").is_empty());
    world.stop().await;
}

/// On one thread, so that nobody empties the mailbox meanwhile.
#[tokio::test]
async fn a_user_who_is_barred_has_no_task_left_however_full_its_mailbox_is() {
    let world = World::start().await;
    let users = &world.gateway().services().users;
    let mailbox = users.mailbox("ann").unwrap();
    while mailbox.try_send(UserInput::NewConversation.into()).is_ok() {}
    users.bar("ann");
    tokio::time::timeout(WAIT, mailbox.closed()).await.expect("it ends");
    world.stop().await;
}

/// Likewise: a user's task that takes nothing does not keep the store from others.
#[tokio::test]
async fn a_users_task_that_hangs_stops_no_write() {
    let world = World::start().await;
    let services = world.gateway().services();
    let note = || {
        let note = NoteRecord { text: "x".to_owned(), created_wall_ms: 0 };
        Write::AddNote { user: "bob".to_owned(), note }
    };
    // The store's thread waits while the user's task hands it something.
    let (go_on, released) = std::sync::mpsc::sync_channel::<()>(1);
    services.store.submit(note(), move |_| _ = released.recv()).unwrap();
    let mailbox = services.users.mailbox("ann").unwrap();
    let (reply, _added) = oneshot::channel();
    let due = Due::In { duration_ms: 3_600_000 };
    let change = ScheduleChange::Add { due, kind: ScheduleKind::timer("tea".to_owned()) };
    assert!(mailbox.send(UserMessage::Schedule { change, reply }).await.is_ok());
    while mailbox.capacity() < mailbox.max_capacity() {
        tokio::task::yield_now().await;
    }
    // From here on no task runs on this thread, which is the only one.
    while mailbox.try_send(UserInput::NewConversation.into()).is_ok() {}
    let (written, is_written) = std::sync::mpsc::sync_channel(1);
    services.store.submit(note(), move |result| _ = written.send(result.is_ok())).unwrap();
    go_on.send(()).unwrap();
    assert_eq!(is_written.recv_timeout(WAIT), Ok(true));
    world.stop().await;
}
