//! A gateway that is replaced by another process under its glasses.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Output,
};

use firmware_sim::{Event, Glasses, Options, Seen};
use tokio::process::Command;

use crate::{
    process::{Process, binary, configure, lorgnette, succeeds},
    restart::{is_listening, notes},
    world::{self, answered, floor, text, understood, until},
};

/// Glasses that come back by themselves, as real ones do.
fn options(gateway: &Process, scheme: &str) -> Options {
    let mut options = gateway.options();
    options.reconnect = true;
    if scheme == "quic" {
        options.target = format!("quic://{}", gateway.quic).parse().expect("an address");
    }
    options
}

pub async fn upgrade(data: &Path, more: &[&str]) -> Output {
    let config = data.with_extension("toml");
    let mut arguments = vec!["upgrade", "--config", config.to_str().expect("UTF-8")];
    arguments.extend(more);
    lorgnette(&arguments).await
}

/// The process that serves now, by the words of the command.
fn new_process(output: &Output) -> String {
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{errors}");
    let last = said.lines().last().expect("a line");
    last.strip_prefix("process ").and_then(|rest| rest.strip_suffix(" serves")).expect(last).to_owned()
}

pub async fn signal(process: &str, signal: &str) {
    assert!(Command::new("kill").args([signal, process]).status().await.expect("kill").success());
}

fn is_welcome(event: &Event) -> bool {
    matches!(event.seen, Seen::Welcome { .. })
}

async fn is_answered(glasses: &mut Glasses) {
    text(glasses, "what is twelve times three?").await;
    let answer = answered(glasses).await;
    assert!(answer.contains("36"), "{answer}");
}

async fn a_sentence_is_heard_over_an_upgrade(scheme: &str) {
    let _floor = floor().await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let old = gateway.id().to_string();
    let mut glasses = world::connect(&data, options(&gateway, scheme)).await;
    let pcm = firmware_sim::voice::speak("Hey Mentra, take a note: buy oat milk.").await.expect("a voice");
    let upgrading = async {
        glasses.log().find(0, is_listening).await;
        upgrade(&data, &[]).await
    };
    let (said, output) = tokio::join!(glasses.say_pcm("a note", &pcm, None), upgrading);
    said.expect("said");
    let new = new_process(&output);
    assert_ne!(new, old);
    until(&mut glasses, "a welcome of the new process", is_welcome).await;
    let transcript = understood(&mut glasses).await;
    assert!(transcript.contains("note") && transcript.contains("milk"), "{transcript}");
    answered(&mut glasses).await;
    is_answered(&mut glasses).await;
    // The process that took over can be replaced as well. It waits for the end of an answer.
    text(&mut glasses, "what is twelve times three?").await;
    until(&mut glasses, "an answer", |event| matches!(event.seen, Seen::SpeechStart { .. })).await;
    let (answer, output) = tokio::join!(answered(&mut glasses), upgrade(&data, &[]));
    assert!(!answer.contains("restarted"), "{answer}");
    let newer = new_process(&output);
    assert_ne!(newer, new);
    until(&mut glasses, "a welcome of the newer process", is_welcome).await;
    is_answered(&mut glasses).await;
    glasses.goodbye().await;
    signal(&newer, "-TERM").await;
    let (status, log) = gateway.ended().await;
    assert!(status.success(), "{status} {log:#?}");
    assert_eq!(notes(&data).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentence_over_websocket_is_heard_over_an_upgrade() {
    a_sentence_is_heard_over_an_upgrade("wss").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentence_over_quic_is_heard_over_an_upgrade() {
    a_sentence_is_heard_over_an_upgrade("quic").await;
}

/// A program whose version is that of the real one, and which does `rest` in place of serving.
pub fn program(folder: &Path, name: &str, version: &str, rest: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\nif [ \"$1\" = version ]; then {version}; exit; fi\n{rest}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_cannot_replace_the_gateway_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, options(&gateway, "wss")).await;
    is_answered(&mut glasses).await;
    let real = format!("{} version --json", binary().display());
    let cases = [
        ("echo hello", "", "is no program that can replace this gateway"),
        ("echo '{\"version\":\"0.0.1\",\"wire\":1,\"store\":1}'", "", "reads stores up to version 1"),
        ("echo '{\"version\":\"9.0.0\",\"wire\":2,\"store\":2}'", "", "version 2 of the device protocol"),
        (real.as_str(), "exit 3", "ended without a word"),
        (real.as_str(), "echo '{\"failed\":\"no models\"}' >&0", "no models"),
        (real.as_str(), "echo nonsense >&0; exec sleep 100", "what is no message"),
        (real.as_str(), "exec sleep 100", "was not ready within 1 s"),
    ];
    for (number, (version, rest, told)) in cases.iter().enumerate() {
        let program = program(folder.path(), &format!("program-{number}"), version, rest);
        let output = upgrade(&data, &[program.to_str().unwrap(), "--wait", "1"]).await;
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && words.contains(told), "{rest}: {words}");
    }
    is_answered(&mut glasses).await;
    let resumed = glasses.log().since(0).into_iter().filter(is_welcome).count();
    assert_eq!(resumed, 1, "its link was never cut");
    glasses.goodbye().await;
    let (status, _) = gateway.terminate().await;
    assert!(status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_with_the_data_folder_in_its_hands_is_replaced_by_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, options(&gateway, "wss")).await;
    is_answered(&mut glasses).await;
    let real = format!("{} version --json", binary().display());
    // It waits for "go", and is gone.
    let program = program(folder.path(), "program", &real, "echo '\"loaded\"' >&0; read line; exit 1");
    let output = upgrade(&data, &[program.to_str().unwrap()]).await;
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("the old one serves again"), "{words}");
    until(&mut glasses, "a welcome of the old process", is_welcome).await;
    is_answered(&mut glasses).await;
    glasses.goodbye().await;
    let (status, _) = gateway.terminate().await;
    assert!(status.success());
}

/// Listens as a service manager does for a socket unit, and gives the sockets to the program that follows.
const SERVICE_MANAGER: &str = "
import os, socket, sys
tcp = socket.create_server(('127.0.0.1', 0))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(('127.0.0.1', 0))
descriptors = [os.dup(udp.fileno()), os.dup(tcp.fileno())]
os.closerange(3, min(descriptors))
for number, descriptor in enumerate(descriptors):
    os.dup2(descriptor, 3 + number, inheritable=True)
os.environ.update(LISTEN_FDS='2', LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[1], sys.argv[1:])
";

#[tokio::test(flavor = "multi_thread")]
async fn sockets_of_a_service_manager_are_used_and_handed_over() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    // Neither is bound: nobody may listen on these.
    let settings = "";
    let mut command = Command::new("python3");
    command.args(["-c", SERVICE_MANAGER]).arg(binary());
    let file = configure(&data, settings);
    let text_of = fs::read_to_string(&file).unwrap();
    fs::write(&file, text_of.replace("127.0.0.1:0", "192.0.2.1:9")).unwrap();
    let gateway = Process::spawn(command, &data, &file, &[]).await;
    for scheme in ["wss", "quic"] {
        let mut glasses = world::connect(&data, options(&gateway, scheme)).await;
        is_answered(&mut glasses).await;
        glasses.goodbye().await;
    }
    let new = new_process(&upgrade(&data, &[]).await);
    let mut glasses = world::connect(&data, options(&gateway, "quic")).await;
    is_answered(&mut glasses).await;
    glasses.goodbye().await;
    signal(&new, "-TERM").await;
    assert!(gateway.ended().await.0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_versions_are_told_before_anything_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let config = data.with_extension("toml");
    let told = succeeds(&["version", "--check", "--config", config.to_str().unwrap()]).await;
    assert!(told.contains("can replace it without dropping a session"), "{told}");
    gateway.kill().await;
}
