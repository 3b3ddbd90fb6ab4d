//! The reference client in C performs a turn with a real gateway, over TLS.

use std::process::Stdio;

use audio::wav;
use firmware_sim::{microphone::CLIP_HZ, voice};
use gateway::control::Request;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::Command,
};

use super::ear;
use crate::{
    c_code::compiled,
    world::{USER, WAIT, World, floor},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_client_in_c_pairs_and_speaks_a_turn() {
    let _floor = floor().await;
    let world = World::start().await;
    let client = compiled(world.folder(), &["client.c", "link.c", "lorgnette.c"], &["-lssl", "-lcrypto"]);
    let (said, heard) = (world.folder().join("said.wav"), world.folder().join("heard.wav"));
    let pcm = voice::speak("Hey Mentra, set a timer for ten minutes.").await.expect("the voice");
    wav::write(&said, &pcm, CLIP_HZ).expect("a WAV");
    // The second time it is paired, and knows its gateway.
    for is_known in [false, true] {
        let mut child = Command::new(&client)
            .arg(world.folder().join("c"))
            .arg(world.web().to_string())
            .arg("--say")
            .arg(&said)
            .arg("--heard")
            .arg(&heard)
            .args(["--wait", "30"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it runs");
        let mut out = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut words = String::new();
        let talking = async {
            while let Some(line) = out.next_line().await.expect("a line") {
                if let Some(code) = line.strip_prefix("pairing code ") {
                    assert!(!is_known, "it is paired");
                    let (user, name) = (USER.to_owned(), String::new());
                    world
                        .ask(Request::PairCode { code: code.to_owned(), user, name })
                        .await
                        .expect("the code is taken");
                }
                words += &line;
                words.push('\n');
            }
            child.stderr.take().expect("piped").read_to_string(&mut words).await.expect("its errors");
            child.wait().await.expect("a status")
        };
        let status = tokio::time::timeout(2 * WAIT, talking).await.expect("it ends in time");
        assert!(status.success(), "{status}: {words}");
        assert!(words.contains("welcomed by Lorgnette; the glasses belong to wearer"), "{words}");
        let shown = words.to_lowercase();
        assert!(shown.contains("heard: ") && shown.contains("timer") && shown.contains("display: "), "{words}");
        let pcm = wav::read(&heard, audio::frame::RATE_HZ).expect("what was heard");
        let sound = ear::words(&pcm, audio::frame::RATE_HZ);
        assert!(sound.contains("10 minutes") || sound.contains("ten minutes"), "{sound}: {words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_in_c_refuses_another_gateway() {
    let (world, other) = (World::start().await, World::start().await);
    let client = compiled(world.folder(), &["client.c", "link.c", "lorgnette.c"], &["-lssl", "-lcrypto"]);
    let state = world.folder().join("c");
    std::fs::create_dir(&state).unwrap();
    std::fs::write(state.join("gateway.key"), other.gateway().public_key).unwrap();
    let ended = Command::new(&client).arg(&state).arg(world.web().to_string()).kill_on_drop(true).output();
    let output = tokio::time::timeout(WAIT, ended).await.expect("it ends").expect("it runs");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("another gateway"), "{words}");
}
