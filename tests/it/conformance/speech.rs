//! `lorgnette conformance --listen` judges the simulator and the client in C, which play and speak in real time.

use std::{path::Path, process::Stdio, time::Duration};

use device_protocol::Codecs;
use firmware_sim::{Glasses, Options};
use gateway::conformance::{Judge, Judgement, Progress, Rule, Verdict};
use tokio::{process::Command, sync::mpsc};

use super::devices::{failed, judge, passed};
use crate::{c_code::compiled, world::WAIT};

/// Rules that simulated glasses may not come across here: they show a code, send sound all the time, may have opened another
/// connection while the judge was silent, and may close over QUIC after the judge has.
const NOT_DONE: [Rule; 4] = [Rule::Invitation, Rule::Pause, Rule::Retry, Rule::Goodbye];

/// Wears simulated glasses as the judge asks, and switches them on again for the last step.
async fn wear(options: Options, mut steps: mpsc::Receiver<&'static str>) {
    let mut glasses = Glasses::start(options.clone()).expect("an identity");
    while let Some(what) = steps.recv().await {
        if what.starts_with("switch the microphone") {
            glasses.mute(true).await.expect("a session");
            glasses.mute(false).await.expect("a session");
        } else if what == "another gateway's key" {
            drop(glasses);
            glasses = Glasses::start(options.clone()).expect("an identity");
        }
    }
}

async fn simulated(scheme: &str, lc3: Option<(u16, u16)>) -> Judgement {
    let folder = tempfile::tempdir().expect("a folder");
    let mut judge: Judge = judge(folder.path()).await;
    let address = match scheme {
        "quic" => format!("quic://{}", judge.quic.expect("QUIC is on")),
        scheme => format!("{scheme}://{}/glasses", judge.web),
    };
    let mut options = Options::new(address.parse().expect("an address"), &folder.path().join("glasses"));
    if let Some(lc3) = lc3 {
        (options.profile.codecs, options.profile.lc3) = (Codecs::LC3, lc3);
    }
    let (told, steps) = mpsc::channel(64);
    let wearing = tokio::spawn(wear(options, steps));
    let mut told = |progress| {
        if let Progress::Step { what, .. } = progress {
            told.try_send(what).expect("room");
        }
    };
    let judged = tokio::time::timeout(3 * WAIT, judge.next(&mut told)).await;
    wearing.abort();
    judged.expect("in time").expect("a device")
}

fn assert_all_done(judgement: &Judgement) {
    assert_eq!(failed(judgement), []);
    let missing = judgement.judged.iter().filter(|one| matches!(one.verdict, Verdict::NotDone(_)));
    let missing: Vec<_> = missing.filter(|one| !NOT_DONE.contains(&one.rule)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_simulator_conforms_over_websocket() {
    assert_all_done(&simulated("wss", None).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_simulator_conforms_with_lc3() {
    assert_all_done(&simulated("wss", Some((7_500, 30))).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_simulator_conforms_over_quic() {
    assert_all_done(&simulated("quic", None).await);
}

/// How long its owner takes to start the client again: longer than the judge asks a device to stay away.
const AWAY: Duration = Duration::from_secs(3);

/// Starts the client again whenever it has ended: it leaves a gateway behind each speech.
async fn run_again(client: &Path, state: &Path, address: String) {
    loop {
        let mut command = Command::new(client);
        command.arg(state).arg(&address).args(["--wait", "60"]);
        command.stdin(Stdio::null()).kill_on_drop(true).output().await.expect("it runs");
        tokio::time::sleep(AWAY).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_in_c_passes_what_it_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut judge = judge(folder.path()).await;
    let client = compiled(folder.path(), &["client.c", "link.c", "lorgnette.c"], &["-lssl", "-lcrypto"]);
    let (state, address) = (folder.path().join("c"), judge.web.to_string());
    let running = tokio::spawn(async move { run_again(&client, &state, address).await });
    let judged = tokio::time::timeout(3 * WAIT, judge.next(&mut |_| ())).await;
    running.abort();
    let judgement = judged.expect("in time").expect("a device");
    assert_eq!(failed(&judgement), []);
    let passed = passed(&judgement);
    for rule in [
        Rule::Proof,
        Rule::UnknownLink,
        Rule::Again,
        Rule::PlayedClause,
        Rule::Finished,
        Rule::Hush,
        Rule::Gap,
        Rule::Pin,
    ] {
        assert!(passed.contains(&rule), "{rule:?}: {judgement:?}");
    }
}
