//! `lorgnette setup`: the answers of a terminal or a script become a configuration that the gateway takes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::{io::AsyncWriteExt as _, process::Command};

use crate::{
    process::{binary, succeeds},
    world::WAIT,
};

/// Runs it with these options and answers: whether it succeeded, and what it said.
async fn setup(folder: &Path, options: &[&str], answers: &str) -> (bool, String) {
    let mut child = Command::new(binary())
        .arg("setup")
        .arg("--output")
        .arg(file(folder))
        .arg("--data-dir")
        .arg(folder.join("data"))
        .args(options)
        .env_remove("LORGNETTE_CONFIG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it runs");
    let mut input = child.stdin.take().expect("piped");
    // It may end without having read them all.
    drop(input.write_all(answers.as_bytes()).await);
    drop(input);
    let output = tokio::time::timeout(WAIT, child.wait_with_output()).await.expect("it ends").expect("output");
    let words = [output.stdout, output.stderr].concat();
    let words = String::from_utf8(words).expect("UTF-8");
    assert!(!words.contains("panicked"), "{words}");
    (output.status.success(), words)
}

fn file(folder: &Path) -> PathBuf {
    folder.join("etc/gateway.toml")
}

#[tokio::test]
async fn five_answers_make_a_configuration_that_check_accepts() {
    let folder = tempfile::tempdir().unwrap();
    // A mistake is told and asked again.
    let (done, words) = setup(folder.path(), &[], "Ann\nnowhere\nhere\n\nfast\nno\n").await;
    assert!(done, "{words}");
    for wanted in
        ["no address and port", "1.", "2.", "3.", "4.", "5.", "devices invite --user Ann", "this machine only"]
    {
        assert!(words.contains(wanted), "{wanted}: {words}");
    }
    let path = file(folder.path()).display().to_string();
    let told = succeeds(&["check", &path]).await;
    assert!(told.contains("is valid") && told.contains("web     127.0.0.1:8460"), "{told}");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("name = \"Lorgnette of Ann\"") && text.contains("speed = 1.2"), "{text}");
    // The comments of the example are there.
    let comments = |text: &str| text.lines().filter(|line| line.starts_with("# ") && !line.contains(" = ")).count();
    assert_eq!(comments(&text), comments(&succeeds(&["check", "--example"]).await));
}

#[tokio::test]
async fn nothing_is_replaced_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path());
    let (done, words) = setup(folder.path(), &["--yes", "--autostart", "no"], "").await;
    assert!(done && fs::read_to_string(&path).unwrap().contains("web = \"[::]:8460\""), "{words}");
    fs::write(&path, "name = \"mine\"\n").unwrap();
    for (options, answers) in [(&["--yes"][..], ""), (&[], "no\n"), (&[], "")] {
        let (done, words) = setup(folder.path(), options, answers).await;
        assert!(!done && !words.contains("wrote"), "{words}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "name = \"mine\"\n");
    }
    let (done, words) = setup(folder.path(), &["--yes", "--autostart", "no", "--replace"], "").await;
    assert!(done, "{words}");
    assert_eq!(fs::read_to_string(path.with_extension("toml.old")).unwrap(), "name = \"mine\"\n");
    assert!(succeeds(&["check", &path.display().to_string()]).await.contains("is valid"));
}

#[tokio::test]
async fn what_a_package_brought_is_replaced_and_its_folders_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (path, kept) = (file(folder.path()), folder.path().join("kept"));
    let example = succeeds(&["check", "--example"]).await;
    let folders = format!("data_dir = {0:?}\nmodels_dir = {0:?}\n", kept.display().to_string());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("{folders}{example}")).unwrap();
    let output = Command::new(binary())
        .arg("setup")
        .args(["--yes", "--autostart", "no", "--user", "Ann", "--output"])
        .arg(&path)
        .env_remove("LORGNETTE_CONFIG")
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("Lorgnette of Ann") && folders.lines().all(|line| text.contains(line)), "{text}");
}

#[tokio::test]
async fn answers_that_make_no_configuration_write_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for (options, why) in [
        (&["--yes", "--voice", "loud"][..], "no speed"),
        (&["--yes", "--user", " "], "a name has"),
        (&["--yes", "--model", "oracle"], "there is no `oracle`"),
        (&["--yes", "--model", "chat_completions", "--model-name", "m"], "base_url"),
    ] {
        let (done, words) = setup(folder.path(), options, "").await;
        assert!(!done && words.contains(why), "{options:?}: {words}");
        assert!(!file(folder.path()).exists());
    }
}
