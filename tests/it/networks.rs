//! Shaped networks: what is said is understood and answered, whatever lies between the glasses and the gateway.

mod virtual_time;
mod world;

use firmware_sim::{
    Event, Glasses, Seen,
    network::{Conditions, Phase, Profile},
};

use crate::world::{World, answered, floor, understood};

fn network(name: &str) -> Profile {
    Profile::named(name).expect("a network")
}

/// A named network that repeats, from this phase on.
fn network_from(name: &str, phase: usize) -> Profile {
    let mut profile = network(name);
    profile.phases.rotate_left(phase);
    profile
}

/// The phases of a named network from this one on, once: its last one stays.
fn end_of(name: &str, phase: usize) -> Profile {
    let mut profile = network(name);
    profile.phases.drain(..phase);
    Profile { repeats: false, ..profile }
}

/// The phase of a named network in which it begins, for as long as it lasts.
fn beginning_of(name: &str) -> Profile {
    let mut profile = network(name);
    profile.phases.truncate(1);
    Profile { repeats: false, ..profile }
}

fn phase(ms: u64, conditions: Conditions) -> Phase {
    Phase { lasts_ms: (ms, ms), conditions }
}

/// After a moment nothing passes for so long, then all is well.
fn outage(ms: u64) -> Profile {
    let well = Conditions::default();
    let gap = Conditions { outage: true, ..well };
    Profile { phases: vec![phase(1_000, well), phase(ms, gap), phase(0, well)], ..Profile::steady(well) }
}

/// Glasses in this network, which come back by themselves.
async fn glasses(world: &World, scheme: &str, network: Profile) -> Glasses {
    let mut options = world.options(scheme, scheme);
    options.network = Some(network);
    options.reconnect = true;
    world.connect(options).await
}

/// Says a sentence; as soon as the gateway listens, another network begins, if there is one. Returns the transcript.
async fn sentence(glasses: &mut Glasses, then: Option<Profile>) -> String {
    glasses.forget();
    let before = glasses.mark();
    let pcm = firmware_sim::voice::speak("Hey Mentra, set a timer for twenty five minutes.").await.expect("a voice");
    let disturbing = async {
        let is_listening = |event: &Event| matches!(&event.seen, Seen::Listening { state, .. } if state == "listening");
        if let Some(profile) = then {
            glasses.log().find(before, is_listening).await;
            glasses.network(profile).await.expect("another network");
        }
    };
    let (said, ()) = tokio::join!(glasses.say_pcm("a timer", &pcm, None), disturbing);
    said.expect("said");
    let transcript = understood(glasses).await;
    answered(glasses).await;
    let events = glasses.log().since(before);
    let is_final = |event: &&Event| matches!(event.seen, Seen::Transcript { is_final: true, addressed: true, .. });
    assert_eq!(events.iter().filter(is_final).count(), 1, "one sentence, and not two halves: {events:#?}");
    transcript
}

fn is_the_timer(transcript: &str) -> bool {
    transcript.contains("timer") && (transcript.contains("25") || transcript.contains("twenty"))
}

/// Sessions that the glasses were in.
fn sessions(glasses: &Glasses) -> Vec<(u32, bool)> {
    let welcomes = glasses.log().since(0).into_iter().filter_map(|event| match event.seen {
        Seen::Welcome { session, resumed, .. } => Some((session, resumed)),
        _ => None,
    });
    welcomes.collect()
}

/// When the display first showed this, and when sound was first heard.
fn shown_and_heard(glasses: &Glasses, from: u64, words: &str) -> (u64, u64) {
    let events = glasses.log().since(from);
    let first =
        |wanted: &dyn Fn(&Seen) -> bool| events.iter().find(|event| wanted(&event.seen)).map(|event| event.at_us);
    let shown = first(&|seen| matches!(seen, Seen::Display { text, .. } if text.to_lowercase().contains(words)));
    let heard = first(&|seen| matches!(seen, Seen::FirstSound { .. }));
    (shown.expect("shown"), heard.expect("heard"))
}

async fn in_a_thin_network(scheme: &str, name: &str) {
    let _floor = floor().await;
    let world = World::start().await;
    let mut glasses = glasses(&world, scheme, network(name)).await;
    for _ in 0..2 {
        let from = glasses.mark();
        let transcript = sentence(&mut glasses, None).await;
        assert!(is_the_timer(&transcript), "{transcript}: {:#?}", glasses.log().since(from));
        let (shown_us, heard_us) = shown_and_heard(&glasses, from, "timer");
        let events = glasses.log().since(from);
        assert!(shown_us < heard_us, "the display ({shown_us}) waits for the sound ({heard_us}): {events:#?}");
    }
    assert_eq!(sessions(&glasses).len(), 1, "one link");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_32_kbits_the_glasses_are_understood_and_answered() {
    in_a_thin_network("quic", "throttle").await;
    in_a_thin_network("wss", "throttle").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_queue_of_seconds_the_glasses_are_understood_and_answered() {
    in_a_thin_network("quic", "bufferbloat").await;
    in_a_thin_network("wss", "bufferbloat").await;
}

/// The phases of the networks `elevator` and `office-roam` in which the signal fades; nothing passes in the next one.
const FADING: usize = 1;

#[tokio::test(flavor = "multi_thread")]
async fn a_sentence_survives_the_ride_in_an_elevator() {
    assert!(network("elevator").phases[FADING + 1].conditions.outage);
    for scheme in ["quic", "wss"] {
        let _floor = floor().await;
        let world = World::start().await;
        let mut glasses = glasses(&world, scheme, beginning_of("elevator")).await;
        // The doors close in the middle of the sentence.
        let transcript = sentence(&mut glasses, Some(end_of("elevator", FADING))).await;
        assert!(is_the_timer(&transcript), "{scheme}: {transcript}");
        let sessions = sessions(&glasses);
        assert!(sessions.iter().all(|(session, _)| *session == sessions[0].0), "{scheme}: {sessions:?}");
    }
}

/// The phase of the network `train` that is a tunnel.
const TUNNEL: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn a_sentence_survives_the_tunnel_of_a_train() {
    assert!(network("train").phases[TUNNEL].conditions.outage);
    for scheme in ["quic", "wss"] {
        let _floor = floor().await;
        let world = World::start().await;
        let mut glasses = glasses(&world, scheme, beginning_of("train")).await;
        // The tunnel begins in the middle of the sentence; behind it, the answer comes at the edge of a cell.
        let transcript = sentence(&mut glasses, Some(network_from("train", TUNNEL))).await;
        assert!(is_the_timer(&transcript), "{scheme}: {transcript}");
        let sessions = sessions(&glasses);
        assert!(sessions.iter().all(|(session, _)| *session == sessions[0].0), "{scheme}: {sessions:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_hotel_the_session_goes_on_over_websocket_when_datagrams_vanish() {
    let _floor = floor().await;
    let world = World::start().await;
    let mut options = world.options("quic", "glasses");
    options.other = Some(world.address("wss").parse().expect("an address"));
    options.network = Some(beginning_of("hotel-wifi"));
    options.reconnect = true;
    let mut glasses = world.connect(options).await;
    let transcript = sentence(&mut glasses, Some(end_of("hotel-wifi", 1))).await;
    assert!(is_the_timer(&transcript), "{transcript}");
    // And the next one, over what is left.
    let transcript = sentence(&mut glasses, None).await;
    assert!(is_the_timer(&transcript), "{transcript}");
    let welcomes = glasses.log().since(0).into_iter().filter_map(|event| match event.seen {
        Seen::Welcome { session, resumed, transport, .. } => Some((session, resumed, transport)),
        _ => None,
    });
    let welcomes: Vec<_> = welcomes.collect();
    let [(first, false, over), (second, true, then)] = welcomes.as_slice() else { panic!("{welcomes:?}") };
    assert!(first == second && (*over, *then) == ("quic", "wss"), "{welcomes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_that_the_connection_survives_costs_no_word() {
    let _floor = floor().await;
    let world = World::start().await;
    let mut options = world.options("quic", "quic");
    options.network = Some(network("home"));
    // This connection is the only one.
    options.reconnect = false;
    let mut glasses = world.connect(options).await;
    let transcript = sentence(&mut glasses, Some(outage(1_500))).await;
    assert!(is_the_timer(&transcript), "{transcript}");
    assert_eq!(sessions(&glasses).len(), 1, "one connection");
    assert!(
        glasses.log().since(0).iter().any(|event| matches!(event.seen, Seen::SentAgain { .. })),
        "it was asked for"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_through_the_office_goes_on_in_the_same_session() {
    let [gap, behind] = [1, 2].map(|after| network("office-roam").phases[FADING + after].conditions);
    assert!(gap.outage && behind.new_address);
    for scheme in ["quic", "wss"] {
        let _floor = floor().await;
        let world = World::start().await;
        let mut glasses = glasses(&world, scheme, beginning_of("office-roam")).await;
        // From the edge of one access point to the next one in the middle of the sentence.
        let transcript = sentence(&mut glasses, Some(end_of("office-roam", FADING))).await;
        assert!(is_the_timer(&transcript), "{scheme}: {transcript}");
        let sessions = sessions(&glasses);
        // A stream ends with its address, and QUIC goes on.
        assert_eq!(sessions.len(), if scheme == "quic" { 1 } else { 2 }, "{sessions:?}");
        assert!(sessions.iter().all(|(session, _)| *session == sessions[0].0), "{scheme}: {sessions:?}");
    }
}
