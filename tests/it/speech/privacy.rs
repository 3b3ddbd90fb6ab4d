//! Transcripts stay out of the log and off the disk.

use std::path::Path;

use serde_json::Value;

use crate::{
    process::Process,
    world::{self, answered, floor, say, text, understood},
};

/// Lines of the log above DEBUG, and the number of lines at or below it.
fn split(lines: &[String]) -> (Vec<&str>, usize) {
    let mut above = Vec::new();
    for line in lines {
        let level = serde_json::from_str::<Value>(line).ok();
        let level = level.as_ref().and_then(|line| line["level"].as_str().map(str::to_owned));
        // A line that is no JSON did not come through the log: it counts as above.
        if !matches!(level.as_deref(), Some("DEBUG" | "TRACE")) {
            above.push(line.as_str());
        }
    }
    let below = lines.len() - above.len();
    (above, below)
}

fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_was_said_is_logged_above_debug() {
    let _floor = floor().await;
    for level in ["info", "trace"] {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let gateway = Process::start(&data, "", &[("RUST_LOG", level)]).await;
        let mut glasses = world::connect(&data, gateway.options()).await;
        say(&mut glasses, "Hey Mentra, take a note: buy a red umbrella.").await;
        let transcript = understood(&mut glasses).await;
        assert!(transcript.contains("umbrella"), "{transcript}");
        answered(&mut glasses).await;
        text(&mut glasses, "take a note visit the elephant").await;
        answered(&mut glasses).await;
        // Not addressed, not understood, and a failing command.
        text(&mut glasses, "the walrus sings at midnight").await;
        answered(&mut glasses).await;
        glasses.goodbye().await;
        let (status, log) = gateway.terminate().await;
        assert!(status.success(), "{status}");
        let (above, below) = split(&log);
        assert!(!above.is_empty(), "the log was not caught");
        assert_eq!(below > 0, level == "trace");
        for word in ["umbrella", "elephant", "walrus"] {
            let told: Vec<_> = above.iter().filter(|line| line.to_lowercase().contains(word)).collect();
            assert!(told.is_empty(), "{level}: {told:#?}");
        }
        let mut found = Vec::new();
        files(&data, &mut found);
        for path in found {
            let bytes = std::fs::read(&path).unwrap_or_default();
            let sound = bytes.starts_with(b"RIFF") || bytes.starts_with(b"OggS");
            let name = path.extension().and_then(|name| name.to_str()).unwrap_or_default();
            assert!(!sound && !["wav", "opus", "pcm", "raw", "ogg"].contains(&name), "{}", path.display());
        }
    }
}
