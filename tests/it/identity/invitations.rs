//! Invitations: one pair of glasses is paired by what it scans, once, and for a while.

use std::path::Path;

use firmware_sim::{Error, Glasses, handshake, identity::Trust, invitation::Invitation};
use gateway::control::{Answer, Request, socket_path};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    time::timeout,
};

use super::{paired, refused};
use crate::{
    process::{configure, succeeds},
    world::{USER, WAIT, World},
};

/// An operator's `devices invite`.
struct Inviting(BufReader<UnixStream>);

impl Inviting {
    /// Invites glasses; the text for them.
    async fn start(data: &Path, user: &str, name: &str) -> (Self, Invitation) {
        let mut stream = UnixStream::connect(socket_path(data)).await.expect("the gateway");
        let request = Request::Invite { user: user.to_owned(), name: name.to_owned(), addresses: Vec::new() };
        let line = serde_json::to_string(&request).expect("JSON") + "\n";
        stream.write_all(line.as_bytes()).await.expect("sent");
        let mut inviting = Self(BufReader::new(stream));
        let Some(Answer::Invited { text, expires_s }) = inviting.next().await else { panic!("no invitation") };
        assert_eq!(expires_s, 600);
        (inviting, text.parse().expect("the simulator reads it"))
    }

    async fn next(&mut self) -> Option<Answer> {
        let mut line = String::new();
        let read = timeout(WAIT, self.0.read_line(&mut line)).await;
        (read.expect("an answer in time").expect("read") > 0).then(|| serde_json::from_str(&line).expect("an answer"))
    }

    /// What became of it.
    async fn told(mut self) -> String {
        match self.next().await {
            Some(Answer::Done { message }) => message,
            other => panic!("{other:?}"),
        }
    }

    /// As Ctrl-C does; returns when the gateway has seen it.
    async fn withdraw(mut self) {
        self.0.get_mut().shutdown().await.expect("ended");
        assert!(self.next().await.is_none());
    }
}

/// Glasses that have scanned the invitation.
fn scanned(world: &World, scheme: &str, name: &str, invitation: &Invitation) -> Glasses {
    let mut options = world.options(scheme, name);
    options.trust = Trust::Invitation(invitation.fingerprint.clone(), invitation.code);
    Glasses::start(options).expect("an identity")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_pairs_one_pair_of_glasses_and_the_operator_sees_which() {
    let world = World::start().await;
    for (scheme, name) in [("wss", "ring"), ("quic", "other ring")] {
        let (inviting, invitation) = Inviting::start(&world.data(), "ann", name).await;
        assert_eq!(invitation.name, "Lorgnette");
        assert!(invitation.targets.iter().any(|target| target.to_string() == world.address(scheme)), "{invitation:?}");
        let mut glasses = scanned(&world, scheme, name, &invitation);
        glasses.welcomed().await.expect("a session");
        let told = inviting.told().await;
        assert!(told.contains(glasses.fingerprint()) && told.contains(&format!("called {name}")), "{told}");
        // It was good once.
        let thief = scanned(&world, scheme, &format!("thief of {name}"), &invitation).welcomed().await;
        assert_eq!(refused(thief), "pairing_failed");
        // The glasses know their gateway, and need the invitation no more.
        glasses.goodbye().await;
        scanned(&world, scheme, name, &invitation).welcomed().await.expect("a session");
    }
    let devices = paired(&world).await;
    assert!(devices.len() == 2 && devices.iter().all(|device| device.user == "ann"), "{devices:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_or_invented_invitation_admits_nobody() {
    let world = World::start().await;
    let (inviting, invitation) = Inviting::start(&world.data(), USER, "").await;
    let invented = Invitation { code: [7; 16], ..invitation.clone() };
    assert_eq!(refused(scanned(&world, "wss", "guesser", &invented).welcomed().await), "pairing_failed");
    inviting.withdraw().await;
    assert_eq!(refused(scanned(&world, "wss", "ring", &invitation).welcomed().await), "pairing_failed");
    assert!(paired(&world).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn invited_glasses_accept_only_the_gateway_that_has_invited_them() {
    let (world, other) = (World::start().await, World::start().await);
    let (_inviting, invitation) = Inviting::start(&world.data(), USER, "").await;
    let elsewhere = scanned(&other, "wss", "ring", &invitation).welcomed().await;
    assert!(matches!(elsewhere, Err(Error::Handshake(handshake::Error::UnexpectedGateway { .. }))), "{elsewhere:?}");
    assert!(paired(&other).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn revoked_glasses_stay_out_whoever_invites_them() {
    let world = World::start().await;
    let glasses = world.glasses("wss", "ring").await;
    let device = glasses.fingerprint().to_owned();
    world.ask(Request::Revoke { device }).await.expect("revoked");
    // As if they had forgotten their gateway.
    std::fs::remove_file(world.folder().join("ring/gateway.pub")).expect("the pin");
    let (inviting, invitation) = Inviting::start(&world.data(), USER, "").await;
    assert_eq!(refused(scanned(&world, "wss", "ring", &invitation).welcomed().await), "revoked");
    // It is not used up.
    scanned(&world, "wss", "new ring", &invitation).welcomed().await.expect("a session");
    assert!(inviting.told().await.contains("paired"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_invites_and_the_simulator_scans() {
    let world = World::start().await;
    let config = configure(&world.data(), "").display().to_string();
    let mut command = tokio::process::Command::new(crate::process::binary());
    command.args(["devices", "invite", "--user", "ann", "--name", "ring", "--config", &config]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut line = async || {
        let line = timeout(WAIT, lines.next_line()).await.expect("a line in time");
        line.expect("a line").expect("a line")
    };
    let text = line().await;
    let pair = async || {
        let state = world.folder().join("scanned");
        let mut command = tokio::process::Command::new(crate::process::simulator());
        command.args(["pair", "--invite", &text, "--state"]).arg(state).kill_on_drop(true);
        let output = timeout(WAIT, command.output()).await.expect("it ends in time").expect("it runs");
        let words = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(words).expect("UTF-8"))
    };
    let (is_paired, words) = pair().await;
    assert!(is_paired && words.contains("the glasses belong to ann"), "{words}");
    assert!(line().await.contains("called ring"));
    assert!(child.wait().await.expect("a status").success());
    let (is_paired, words) = pair().await;
    assert!(!is_paired && words.contains("paired already"), "{words}");
    assert!(succeeds(&["devices", "list", "--config", &config]).await.contains("ring"));
}
