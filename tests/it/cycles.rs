//! Devices that leave anywhere: nothing of them stays. A small run of `cargo xtask bench cycles`.

use firmware_sim::{Event, Glasses, Seen, transport};
use gateway::{config::Config, store::Kind};
use tokio::net::UdpSocket;

use crate::{
    namespaces::{OUTSIDE, again_outside},
    world::{USER, WAIT, World, answered, pairing_code, text, until},
};

/// What the gateway holds for devices: sessions, tools, leases, devices that wait for pairing, and stored sessions.
fn held(world: &World) -> [usize; 5] {
    let services = world.gateway().services();
    let survivors = services.store.disk().rows(Kind::DeviceSessions, USER, b"", 64).expect("the store");
    [
        services.roster.all().len(),
        services.registry.specs().len(),
        services.executor.in_flight().held(),
        services.admission.pairings.waiting(gateway::clock::mono_us()).len(),
        survivors.len(),
    ]
}

async fn is_given_back(world: &World, start: [usize; 5]) {
    let given_back = async {
        while held(world) != start {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(WAIT, given_back).await;
    assert!(waited.is_ok(), "at first {start:?}, now {:?}", held(world));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_devices_that_leave_anywhere() {
    let world = World::tuned("", |config: &mut Config| config.conversation.resume_ms_max = 300).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    text(&mut glasses, "what is twelve times three?").await;
    answered(&mut glasses).await;
    glasses.goodbye().await;
    // Its place is given back before its lease is.
    let is_gone = |held: [usize; 5]| held[0] == 0 && held[2] == 0;
    while !is_gone(held(&world)) {
        tokio::task::yield_now().await;
    }
    world.gateway().services().store.settled().await.expect("the store");
    let start = held(&world);
    // The row of a device stays when its session is over.
    assert_eq!((start[0], start[2], start[3], start[4]), (0, 0, 0, 1), "{start:?}");
    for scheme in ["wss", "quic"] {
        let target = world.address(scheme).parse().expect("an address");
        // In front of the handshake, and in its middle.
        drop(transport::open(&target).await.expect("a link"));
        let glasses = Glasses::start(world.options(scheme, "glasses")).expect("an identity");
        glasses.cut().await.expect("cut");
        glasses.goodbye().await;
        // While it waits for its pairing.
        let stranger = Glasses::start(world.options(scheme, "stranger")).expect("an identity");
        stranger.log().find(0, |event| pairing_code(event).is_some()).await;
        stranger.cut().await.expect("cut");
        stranger.goodbye().await;
        // In the middle of a turn, and of an answer.
        let is_sound = |event: &Event| matches!(event.seen, Seen::FirstSound { .. });
        for in_the_answer in [false, true] {
            let mut glasses = world.glasses(scheme, "glasses").await;
            text(&mut glasses, "what is fifteen percent of eighty?").await;
            if in_the_answer {
                until(&mut glasses, "sound", is_sound).await;
            }
            glasses.cut().await.expect("cut");
            glasses.goodbye().await;
            is_given_back(&world, start).await;
        }
    }
}

/// The first datagram of a device that opens a QUIC connection.
async fn first_datagram() -> Vec<u8> {
    let gateway = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("quic://{}", gateway.local_addr().expect("its address")).parse().expect("an address");
    let opening = tokio::spawn(async move { transport::open(&address).await.map(drop) });
    let mut bytes = vec![0; 2_048];
    let length = gateway.recv(&mut bytes).await.expect("a datagram");
    opening.abort();
    bytes.truncate(length);
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn who_vanishes_in_the_handshake_of_quic_gives_the_place_back() {
    if again_outside("cycles::who_vanishes_in_the_handshake_of_quic_gives_the_place_back") {
        return;
    }
    let world = World::tuned("", |config| {
        let anywhere = "0.0.0.0:0".parse().expect("an address");
        (config.listen.web, config.listen.quic) = (anywhere, Some(anywhere));
        // One address has one place for newcomers. While it is taken, others from there must prove their address.
        config.limits.connections_max = 8;
    })
    .await;
    let quic = (OUTSIDE, world.gateway().quic.expect("QUIC is on").port());
    // Whether the answer to a first datagram is a retry (RFC 9000, section 17.2.5), and no handshake.
    let must_prove = async || {
        let stranger = UdpSocket::bind((OUTSIDE, 0)).await.expect("a port");
        stranger.send_to(&first_datagram().await, quic).await.expect("sent");
        let mut answer = [0; 2_048];
        let answered = tokio::time::timeout(WAIT, stranger.recv(&mut answer)).await;
        answered.expect("an answer").expect("a datagram");
        answer[0] & 0xf0 == 0xf0
    };
    assert!(!must_prove().await, "the handshake goes on, and takes the place");
    assert!(must_prove().await, "the place is taken");
    let free = async { while must_prove().await {} };
    tokio::time::timeout(WAIT, free).await.expect("a place");
    world.stop().await;
}
