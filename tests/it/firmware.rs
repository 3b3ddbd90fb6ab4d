//! Firmware over the air: images that a maker has signed reach simulated glasses, whatever happens on the way.

use std::path::{Path, PathBuf};

use device_protocol::{Decoded, Down, Frame, UpdateAnswer, decode_down, up};
use firmware_sim::{
    Event, Glasses, Options, Seen,
    firmware::{
        Updates,
        maker::{self, Wanted},
    },
};
use gateway::{
    control::{Answer, Request, firmware::FirmwareRequest},
    firmware::{Scope, Stage, facts::Facts},
    identity::operators::Role,
};

use crate::{
    console::Visitor,
    peer::{Peer, capabilities},
    process::{Process, configure, fails, succeeds},
    world::{self, World, answered, ask, floor, text, until},
};

const MODEL: &str = "Example One";
/// Seed of the maker's key.
const MAKER: [u8; 32] = [7; 32];

/// The settings of a gateway that knows the maker.
pub fn settings() -> String {
    let key: String = maker::public(MAKER).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("[firmware]\nrate_kib_s = 150\n[[firmware.makers]]\nmodel = \"{MODEL}\"\nkey = \"{key}\"\n")
}

fn image(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

/// Writes an image and its manifest; the files.
fn files(folder: &Path, image: &[u8], version: &str) -> (PathBuf, PathBuf) {
    let (manifest, file) = (folder.join("image.manifest"), folder.join("image.bin"));
    std::fs::write(&file, image).unwrap();
    std::fs::write(&manifest, maker::sign(MAKER, image, &Wanted::new(MODEL, version)).unwrap()).unwrap();
    (manifest, file)
}

/// Adds an image and rolls it out to all.
async fn roll_out(data: &Path, folder: &Path, image: &[u8], version: &str) {
    let (manifest, image) = files(folder, image, version);
    request(data, FirmwareRequest::Add { manifest, image }).await;
    let (model, version) = (MODEL.to_owned(), version.to_owned());
    request(data, FirmwareRequest::RollOut { model, version, scope: Scope::All, again: false }).await;
}

async fn request(data: &Path, request: FirmwareRequest) -> Answer {
    ask(data, Request::Firmware { request }).await.expect("it is done")
}

async fn state(data: &Path) -> Facts {
    match request(data, FirmwareRequest::State).await {
        Answer::Firmware { firmware } => *firmware,
        answer => panic!("{answer:?}"),
    }
}

/// Waits until the gateway's state is as wanted: a device's event comes before the gateway has handled what it tells.
async fn state_until(data: &Path, wanted: impl Fn(&Facts) -> bool) -> Facts {
    let waiting = async {
        loop {
            let facts = state(data).await;
            if wanted(&facts) {
                return facts;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(world::WAIT, waiting).await.expect("the state in time")
}

/// Glasses that take images, version 1.0.0.
fn updated(mut options: Options, tune: impl FnOnce(&mut Updates)) -> Options {
    let mut updates = Updates::new(options.state.with_extension("flash"), maker::public(MAKER), "1.0.0");
    tune(&mut updates);
    options.profile.model = MODEL.to_owned();
    options.updates = Some(updates);
    options
}

async fn reported(glasses: &mut Glasses, wanted: &str) {
    let is_wanted = |event: &Event| matches!(&event.seen, Seen::FirmwareReported { outcome, .. } if outcome == wanted);
    until(glasses, wanted, is_wanted).await;
}

/// Glasses whose image does not start, so that its roll-out stops.
pub async fn glasses_that_roll_back(world: &World, name: &str) -> Glasses {
    let mut bad = image(20_000);
    bad[..13].copy_from_slice(b"does not boot");
    roll_out(&world.data(), world.folder(), &bad, "1.1.0").await;
    let mut glasses = world.connect(updated(world.options("wss", name), |_| ())).await;
    reported(&mut glasses, "rolled_back").await;
    state_until(&world.data(), |facts| facts.rollouts[0].stage != Stage::Running).await;
    glasses
}

/// Places of the chunks that came.
fn chunks(events: &[Event]) -> Vec<(u32, usize)> {
    let chunks = events.iter().filter_map(|event| match event.seen {
        Seen::FirmwareChunk { offset, bytes } => Some((offset, bytes)),
        _ => None,
    });
    chunks.collect()
}

/// The power is lost in the middle; over this transport the image goes on where it was.
async fn power_is_lost(scheme: &str) {
    let world = World::with(&settings()).await;
    let image = image(100_000);
    roll_out(&world.data(), world.folder(), &image, "1.1.0").await;
    let losing = updated(world.options(scheme, "glasses"), |updates| updates.lose_power_at = Some(40_500));
    let mut glasses = world.connect(losing).await;
    until(&mut glasses, "no power", |event| matches!(event.seen, Seen::PowerLost { stored: 40_500 })).await;
    let log = glasses.log().since(0);
    assert!(!log.iter().any(|event| matches!(event.seen, Seen::Goodbye { .. } | Seen::Violation { .. })), "{log:?}");
    drop(glasses);
    let mut glasses = world.connect(updated(world.options(scheme, "glasses"), |_| ())).await;
    let offered = until(&mut glasses, "an offer", |event| matches!(event.seen, Seen::FirmwareOffered { .. })).await;
    let Seen::FirmwareOffered { version, answer, offset } = offered else { unreachable!("it was picked") };
    assert_eq!((version.as_str(), answer.as_str(), offset), ("1.1.0", "accepted", 40_500));
    reported(&mut glasses, "verified").await;
    reported(&mut glasses, "applied").await;
    let facts = state_until(&world.data(), |facts| facts.rollouts[0].counts.applied == 1).await;
    assert_eq!((facts.devices[0].version.as_str(), facts.devices[0].connected), ("1.1.0", true));
    let log = glasses.goodbye().await.since(0);
    let chunks = chunks(&log);
    assert_eq!(chunks[0].0, 40_500, "nothing is sent again");
    assert_eq!(chunks.iter().map(|(_, bytes)| bytes).sum::<usize>(), 100_000 - 40_500);
    assert!(!log.iter().any(|event| matches!(event.seen, Seen::Violation { .. })), "{log:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn power_lost_in_the_middle_over_websocket() {
    power_is_lost("wss").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn power_lost_in_the_middle_over_quic() {
    power_is_lost("quic").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn firmware_waits_for_the_conversation() {
    let _floor = floor().await;
    let world = World::with(&settings()).await;
    roll_out(&world.data(), world.folder(), &image(1_000_000), "1.1.0").await;
    let mut glasses = world.connect(updated(world.options("wss", "glasses"), |_| ())).await;
    until(&mut glasses, "a piece", |event| matches!(event.seen, Seen::FirmwareStored { .. })).await;
    text(&mut glasses, "what is two plus two?").await;
    let from = glasses.mark();
    answered(&mut glasses).await;
    let (till, all) = (glasses.mark(), glasses.log().since(from));
    let turn = &all[..usize::try_from(till - from).unwrap()];
    let is_busy = |event: &Event| matches!(&event.seen, Seen::Listening { state, .. } if state == "thinking" || state == "speaking");
    let began = turn.iter().position(is_busy).expect("it works on the answer");
    assert_eq!(chunks(&turn[began..]), [], "from there to the end of the answer nothing of the image came");
    until(&mut glasses, "more of it", |event| matches!(event.seen, Seen::FirmwareStored { .. })).await;
    glasses.goodbye().await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_image_stops_its_roll_out_and_old_glasses_are_offered_nothing() {
    let world = World::with(&settings()).await;
    let mut old = world.options("ws", "old");
    old.profile.model = MODEL.to_owned();
    old.profile.firmware = "1.0.0".to_owned();
    let old = world.connect(old).await;
    let mut bad = image(20_000);
    bad[..13].copy_from_slice(b"does not boot");
    roll_out(&world.data(), world.folder(), &bad, "1.1.0").await;
    let mut glasses = world.connect(updated(world.options("wss", "glasses"), |_| ())).await;
    reported(&mut glasses, "rolled_back").await;
    let facts = state_until(&world.data(), |facts| facts.rollouts[0].stage != Stage::Running).await;
    assert!(matches!(&facts.rollouts[0].stage, Stage::Stopped(why) if why.starts_with("1 of 1 ")), "{facts:?}");
    assert_eq!(facts.rollouts[0].counts.bad, 1);
    assert_eq!(facts.devices.len(), 1, "{facts:?}");
    let (_, report) = &facts.devices[0].reports[0];
    assert_eq!((report.version.as_str(), report.failure.as_deref()), ("1.0.0", Some("boot: the image does not start")));
    // It holds after a restart of the gateway.
    glasses.goodbye().await;
    let log = old.goodbye().await.since(0);
    assert!(!log.iter().any(|event| matches!(event.seen, Seen::FirmwareOffered { .. } | Seen::Violation { .. })));
    let world = world.again_with(&settings()).await;
    let facts = state(&world.data()).await;
    assert!(matches!(facts.rollouts[0].stage, Stage::Stopped(_)) && facts.images.len() == 1, "{facts:?}");
    world.stop().await;
}

/// What the command tells, for people with a browser; why an image failed is the device's own text, which viewers do not get.
#[tokio::test(flavor = "multi_thread")]
async fn the_console_shows_what_is_offered_and_how_updates_stand() {
    const PAGE: &str = "/console/firmware";
    let world = World::with(&settings()).await;
    let old = world.glasses("ws", "old").await;
    let viewer = Visitor::signed_in(&world, Role::Viewer).await;
    let operator = Visitor::signed_in(&world, Role::Operator).await;
    let has = |page: &str, words: &[&str]| words.iter().for_each(|word| assert!(page.contains(word), "{word}: {page}"));
    has(&viewer.text(PAGE).await, &["Nothing is offered", "None is kept", "takes none"]);
    let mut bad = image(20_000);
    bad[..13].copy_from_slice(b"does not boot");
    roll_out(&world.data(), world.folder(), &bad, "1.1.0").await;
    // Paused before anybody takes it.
    has(&viewer.text(PAGE).await, &[MODEL, "1.1.0", "running", "20 KiB", "signed"]);
    assert!(!viewer.text(PAGE).await.contains("action=\"/console/firmware"), "a viewer has no form");
    assert_eq!(operator.post("/console/firmware/pause", &[("model", MODEL)]).await.status(), 303);
    has(&operator.text(PAGE).await, &["nothing is offered to Example One any more", "paused"]);
    let (model, version) = (MODEL.to_owned(), "1.1.0".to_owned());
    request(&world.data(), FirmwareRequest::RollOut { model, version, scope: Scope::All, again: false }).await;
    let mut glasses = world.connect(updated(world.options("wss", "glasses"), |_| ())).await;
    reported(&mut glasses, "rolled_back").await;
    state_until(&world.data(), |facts| facts.rollouts[0].stage != Stage::Running).await;
    let of = format!("/console/devices/of/{}", glasses.fingerprint());
    for page in [PAGE, &of] {
        let (seen, all) = (viewer.text(page).await, operator.text(page).await);
        has(&seen, &["1.0.0", "1.1.0: rolled back"]);
        assert!(!seen.contains("the image does not start"), "{seen}");
        has(&all, &["boot: the image does not start"]);
    }
    has(&viewer.text(PAGE).await, &["stopped", "1 of 1 devices report failure"]);
    glasses.goodbye().await;
    old.goodbye().await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_device_gets_nothing_more() {
    let world = World::with(&settings()).await;
    roll_out(&world.data(), world.folder(), &image(1_000_000), "1.1.0").await;
    let mut glasses = world.connect(updated(world.options("wss", "glasses"), |_| ())).await;
    until(&mut glasses, "a piece", |event| matches!(event.seen, Seen::FirmwareStored { .. })).await;
    let device = glasses.fingerprint().to_owned();
    world.ask(Request::Revoke { device }).await.expect("it is revoked");
    until(&mut glasses, "the end", |event| matches!(&event.seen, Seen::Goodbye { reason, .. } if reason == "revoked"))
        .await;
    let log = glasses.goodbye().await.since(0);
    let end = log.iter().position(|event| matches!(event.seen, Seen::Goodbye { .. })).unwrap();
    assert!(chunks(&log[end..]).is_empty() && chunks(&log).len() < 900);
    let refused = Glasses::connect(updated(world.options("wss", "glasses"), |_| ())).await;
    assert!(refused.is_err(), "it does not come in any more");
    assert!(state(&world.data()).await.devices.iter().all(|device| !device.connected));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_killed_goes_on_with_its_roll_out() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let config = configure(&data, &settings());
    let config = config.to_str().unwrap();
    let gateway = Process::start(&data, &settings(), &[]).await;
    let (manifest, file) = files(folder.path(), &image(300_000), "1.1.0");
    let (manifest, file) = (manifest.to_str().unwrap(), file.to_str().unwrap());
    // An image that is not the one of the manifest.
    let why = fails(&["firmware", "add", manifest, manifest, "--config", config]).await;
    assert!(why.contains("its manifest says 300000"), "{why}");
    let added = succeeds(&["firmware", "add", manifest, file, "--config", config]).await;
    assert!(added.contains("Example One 1.1.0 is kept"), "{added}");
    let why = fails(&["firmware", "rollout", MODEL, "1.2.0", "--all", "--config", config]).await;
    assert!(why.contains("there is no image of `Example One` 1.2.0"), "{why}");
    succeeds(&["firmware", "rollout", MODEL, "1.1.0", "--percent", "100", "--config", config]).await;
    let list = succeeds(&["firmware", "list", "--config", config]).await;
    assert!(list.contains("Example One  1.1.0  300000 bytes"), "{list}");
    let mut glasses = world::connect(&data, updated(gateway.options(), |_| ())).await;
    until(&mut glasses, "a piece", |event| matches!(event.seen, Seen::FirmwareStored { offset: 20_000.. })).await;
    gateway.kill().await;
    until(&mut glasses, "a lost link", |event| matches!(event.seen, Seen::LinkLost { .. })).await;
    let gateway = Process::start(&data, &settings(), &[]).await;
    glasses.reconnect(Some(gateway.options().target)).await.expect("it tries");
    let offered = until(&mut glasses, "an offer", |event| matches!(event.seen, Seen::FirmwareOffered { .. })).await;
    assert!(matches!(offered, Seen::FirmwareOffered { offset: 20_000.., .. }), "{offered:?}");
    reported(&mut glasses, "applied").await;
    state_until(&data, |facts| facts.rollouts[0].counts.applied == 1).await;
    let status = succeeds(&["firmware", "status", "--config", config]).await;
    assert!(status.contains("to 100 percent  running  (applied 1,") && status.contains("1.1.0: applied"), "{status}");
    succeeds(&["firmware", "pause", MODEL, "--config", config]).await;
    succeeds(&["firmware", "remove", MODEL, "1.1.0", "--config", config]).await;
    let status = succeeds(&["firmware", "status", "--json", "--config", config]).await;
    assert!(status.contains("\"images\":[]"), "{status}");
    glasses.goodbye().await;
    gateway.kill().await;
}

/// The next message about firmware.
async fn about_firmware(peer: &mut Peer) -> (&'static str, u32, u32) {
    loop {
        let bytes = peer.receive().await.expect("the session goes on");
        let Ok(Decoded::Frame(Frame { message, .. })) = decode_down(&bytes) else { continue };
        match message {
            Down::FirmwareOffer(offer) => return ("offer", offer.update, 0),
            Down::FirmwareChunk(chunk) => return ("chunk", chunk.update, chunk.offset),
            Down::FirmwareCancel(cancel) => return ("cancel", cancel.update, 0),
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_claims_what_cannot_be_is_sent_nothing_more() {
    let world = World::with(&settings()).await;
    roll_out(&world.data(), world.folder(), &image(50_000), "1.1.0").await;
    for (name, offset, stored) in [("more than there is", 50_001, None), ("more than was sent", 0, Some(49_999))] {
        world.glasses("wss", name).await.goodbye().await;
        let mut peer = Peer::connect(&world, "wss", name).await;
        peer.capabilities = up::Capabilities { image_bytes_max: 60_000, ..capabilities() };
        (peer.model, peer.firmware) = (MODEL.to_owned(), "1.0.0".to_owned());
        peer.shake().await;
        assert_eq!(about_firmware(&mut peer).await, ("offer", 1, 0), "{name}");
        // One about another offer means nothing.
        let answer = UpdateAnswer::NotWanted;
        peer.control(up::FirmwareAnswer { update: 9, answer, offset: 0 }.into()).await;
        let answer = UpdateAnswer::Accepted;
        peer.control(up::FirmwareAnswer { update: 1, answer, offset }.into()).await;
        if let Some(offset) = stored {
            assert_eq!(about_firmware(&mut peer).await, ("chunk", 1, 0), "{name}");
            peer.control(up::FirmwareProgress { update: 1, offset }.into()).await;
        }
        while about_firmware(&mut peer).await != ("cancel", 1, 0) {}
    }
    world.stop().await;
}
