//! Glasses find the gateway on the network: two machines, each in a network namespace of its own.

mod home;

use std::{net::SocketAddr, path::Path};

use firmware_sim::identity::fingerprint;
use gateway::{
    config,
    control::{Answer, Request},
    serve::{self, Running},
};
use mdns_sd::{ServiceDaemon, ServiceEvent, ServiceInfo};

use self::home::{HERE, Home, STRANGER};
use crate::{
    namespaces::again_in,
    world::{USER, WAIT, ask},
};

/// Its service over WebSocket.
const WEB: &str = "_lorgnette._tcp.local.";

/// A gateway at this address, whose data are in the folder.
async fn gateway(folder: &Path, address: &str) -> Running {
    let settings = format!(
        "data_dir = {:?}\nname = \"Hearth\"\n[listen]\nweb = \"{address}:8460\"\nquic = \"{address}:8460\"\n",
        folder.display().to_string()
    );
    let config = config::check(&settings, "discovery").expect("the settings");
    serve::start(config).await.expect("the gateway starts")
}

#[tokio::test(flavor = "multi_thread")]
async fn glasses_find_their_gateway_and_no_other() {
    if again_in(&["--net"], "discovery::glasses_find_their_gateway_and_no_other") {
        return;
    }
    let home = Home::new().await;
    let folder = tempfile::tempdir().unwrap();
    let (own, other) = (folder.path().join("own"), folder.path().join("other"));
    let running = gateway(&own, HERE).await;
    assert_eq!(running.announced.as_deref(), Some("Hearth"));
    let key = fingerprint(&running.public_key);

    // Nobody has said which gateway is meant.
    let glasses = folder.path().join("glasses");
    let (failed, words) = home.simulator(&glasses, &["pair", "--discover"]).await.ended().await;
    assert!(!failed, "{words}");
    assert!(words.contains("compare the fingerprint") || words.contains("Compare the fingerprint"), "{words}");
    assert!(words.contains(&format!("{key}  Hearth  wss://{HERE}:8460/glasses")), "{words}");

    let mut pairing = home.simulator(&glasses, &["pair", "--discover", "--gateway-key", &key]).await;
    let code = pairing.line("pairing code ").await;
    let request = Request::PairCode { code, user: USER.to_owned(), name: String::new() };
    assert!(matches!(ask(&own, request).await, Ok(Answer::Done { .. })));
    let (paired, words) = pairing.ended().await;
    assert!(paired && words.contains("welcomed by Hearth"), "{words}");
    let Ok(Answer::Status { status }) = ask(&own, Request::Status).await else { panic!("no status") };
    assert!(
        matches!(&status.announced, Some(told) if format!("{told:?}") == "As(\"Hearth\")"),
        "{:?}",
        status.announced
    );
    // They know it from now on, over either transport.
    for transport in ["wss", "quic"] {
        let (met, words) =
            home.simulator(&glasses, &["pair", "--discover", "--transport", transport]).await.ended().await;
        assert!(met && words.contains("welcomed by Hearth"), "{transport}: {words}");
    }

    // It says goodbye, and is gone from everybody's memory at once.
    let watching = ServiceDaemon::new().unwrap();
    let events = watching.browse(WEB).unwrap();
    let seen = async |wanted: fn(&ServiceEvent) -> bool| {
        let found = async { while !wanted(&events.recv_async().await.expect("an event")) {} };
        tokio::time::timeout(WAIT, found).await.expect("it is seen in time");
    };
    seen(|event| matches!(event, ServiceEvent::ServiceResolved(_))).await;
    running.stop().await;
    seen(|event| matches!(event, ServiceEvent::ServiceRemoved(..))).await;
    watching.shutdown().unwrap();

    // A stranger under its name.
    let stranger = gateway(&other, STRANGER).await;
    let (met, words) = home.simulator(&glasses, &["pair", "--discover", "--look-s", "3"]).await.ended().await;
    let theirs = fingerprint(&stranger.public_key);
    assert!(!met && words.contains("is not found") && words.contains(&format!("{theirs}  Hearth")), "{words}");

    // One that claims its key, too.
    let lies = ServiceDaemon::new().unwrap();
    let address: SocketAddr = format!("{STRANGER}:8460").parse().unwrap();
    let records = [("txtvers", "1"), ("v", "1"), ("fp", key.as_str()), ("name", "Hearth")];
    let mut lie =
        ServiceInfo::new(WEB, "Hearth, too", "liar.local.", address.ip(), address.port(), &records[..]).unwrap();
    lie.set_requires_probe(false);
    lies.register(lie).unwrap();
    let (met, words) = home.simulator(&glasses, &["pair", "--discover"]).await.ended().await;
    assert!(!met && words.contains(&format!("this is gateway {theirs}")), "{words}");
    let Ok(Answer::Devices { paired, waiting }) = ask(&other, Request::Devices).await else { panic!() };
    assert!(paired.is_empty() && waiting.is_empty(), "the stranger learnt nothing: {paired:?} {waiting:?}");

    // With the lie in the network, the glasses still find their own.
    let running = gateway(&own, HERE).await;
    let watching = ServiceDaemon::new().unwrap();
    let events = watching.browse(WEB).unwrap();
    let is_here = |event: &ServiceEvent| match event {
        ServiceEvent::ServiceResolved(found) => found.addresses.iter().any(|ip| ip.to_ip_addr().to_string() == HERE),
        _ => false,
    };
    let announced = async { while !is_here(&events.recv_async().await.expect("an event")) {} };
    tokio::time::timeout(WAIT, announced).await.expect("it is announced in time");
    watching.shutdown().unwrap();
    let (met, words) = home.simulator(&glasses, &["pair", "--discover"]).await.ended().await;
    assert!(met && words.contains("welcomed by Hearth"), "{words}");
    lies.shutdown().unwrap();
    running.stop().await;
    stranger.stop().await;
}
