//! A running gateway reads its configuration again.

use std::{fs, path::Path};

use firmware_sim::{Glasses, Seen};
use tokio::process::Command;

use crate::{
    process::{Process, binary, fails, succeeds},
    upgrade::{program, upgrade},
    world::{self, WAIT, until},
};

/// The gateway's name as glasses are told it.
async fn name_told(gateway: &Process, data: &Path) -> String {
    let mut glasses: Glasses = world::connect(data, gateway.options()).await;
    glasses.forget();
    let log = glasses.log().since(0);
    let name = log.into_iter().find_map(|event| match event.seen {
        Seen::Welcome { gateway, .. } => Some(gateway),
        _ => None,
    });
    glasses.goodbye().await;
    name.expect("a welcome")
}

#[tokio::test(flavor = "multi_thread")]
async fn new_sessions_have_the_new_settings_and_what_needs_a_restart_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "name = \"Before\"\n", &[]).await;
    let mut stays = world::connect(&data, gateway.options()).await;
    let file = data.with_extension("toml");
    let config = file.display().to_string();
    let text = fs::read_to_string(&file).unwrap();
    let told = succeeds(&["reload", "--config", &config]).await;
    assert!(told.contains("nothing has changed in the configuration file; the files that it names"), "{told}");

    let changed = text.replace("Before", "After") + "[hearing]\nworkers = 1\nwake_phrases = [\"hey robin\"]\n";
    fs::write(&file, &changed).unwrap();
    let told = succeeds(&["reload", "--config", &config]).await;
    for line in [
        "name: counts for sessions that begin from now on",
        "hearing.wake_phrases: counts for sessions that begin from now on",
        "hearing.workers: needs a restart",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    // Sessions go on as they were.
    stays.text("what is two plus two").await.unwrap();
    until(&mut stays, "an answer", |event| matches!(event.seen, Seen::SpeechHeard { complete: true, .. })).await;
    stays.goodbye().await;
    assert_eq!(name_told(&gateway, &data).await, "After");

    // The command reads the file that the gateway was started with, and so names it, too.
    fs::write(&file, changed.replace("name =", "naem =")).unwrap();
    let other = data.with_extension("other.toml");
    fs::write(&other, &text).unwrap();
    let refused = fails(&["reload", "--config", &other.display().to_string()]).await;
    assert!(refused.contains("naem") && refused.contains("nothing was changed"), "{refused}");
    assert_eq!(name_told(&gateway, &data).await, "After");

    // The signal of service managers does the same, and is no reason to end.
    fs::write(&file, changed.replace("After", "Last")).unwrap();
    let sent = Command::new("kill").args(["-HUP", &gateway.id().to_string()]).status().await;
    assert!(sent.expect("kill").success());
    let seen = async { while name_told(&gateway, &data).await != "Last" {} };
    tokio::time::timeout(WAIT, seen).await.expect("it was read again");
    let (status, log) = gateway.terminate().await;
    assert!(status.success() && log.iter().any(|line| line.contains("the configuration was read again")), "{log:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_reloaded_counts_also_after_an_upgrade_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "name = \"Before\"\n", &[]).await;
    let file = data.with_extension("toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("Before", "After")).unwrap();
    succeeds(&["reload", "--config", &file.display().to_string()]).await;
    // Written since then, and not reloaded.
    fs::write(&file, text.replace("Before", "Later")).unwrap();
    let real = format!("{} version --json", binary().display());
    // It waits for "go", and is gone.
    let program = program(folder.path(), "program", &real, "echo '\"loaded\"' >&0; read line; exit 1");
    let output = upgrade(&data, &[program.to_str().unwrap()]).await;
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("the old one serves again"), "{words}");
    assert_eq!(name_told(&gateway, &data).await, "After");
    assert!(gateway.terminate().await.0.success());
}
