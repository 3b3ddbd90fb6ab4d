//! A conversation is recorded into a file, read, and played again.

use std::{fs, io::Write as _, os::unix::fs::PermissionsExt as _, sync::mpsc};

use gateway_core::{
    conversation::{Config, Conversation},
    driver::Driver,
    input::{Button, Input},
    recording::Entry,
    vocab::{DeviceInfo, Timestamp},
};

use super::*;
use crate::{
    private::FILE_MODE,
    recordings::replay::{of_turn, replay},
};

/// Tells when it is dropped.
struct Held(mpsc::SyncSender<()>);

impl Drop for Held {
    fn drop(&mut self) {
        let _told = self.0.send(());
    }
}

fn settings(bytes_max: u64) -> RecordingSettings {
    RecordingSettings { sessions: true, bytes_max }
}

/// A session in which the wearer types this; returns when it is written.
fn session(data: &Path, bytes_max: u64, began_wall_ms: i64, texts: &[&str]) {
    let recordings = Recordings::new(data, settings(bytes_max)).unwrap();
    let (driver, told) = under_way(&recordings, began_wall_ms, texts);
    drop(driver);
    told.recv().unwrap();
}

/// A session in which the wearer has typed this; when it is dropped and written, the receiver is told.
fn under_way(
    recordings: &Recordings,
    began_wall_ms: i64,
    texts: &[&str],
) -> (Driver<Conversation>, mpsc::Receiver<()>) {
    let (dropped, told) = mpsc::sync_channel(1);
    let about = About::new("ann", "3f9a61c0", 7, began_wall_ms);
    let mut driver = Driver::new(Conversation::new(Config::default()));
    driver.watch(Box::new(recordings.begin(&about, &Config::default(), Held(dropped))));
    let inputs = texts.iter().map(|text| Input::Text((*text).to_owned()));
    let device = DeviceInfo {
        id: about.device.clone(),
        user: about.user.clone(),
        display: None,
        bitmaps: false,
        speaker: true,
        echo_cancelled: true,
        captions: false,
    };
    let connected = Input::Connected { device, resumed: false };
    for (at, input) in
        [connected].into_iter().chain(inputs).chain([Input::Button(Button::LongPress), Input::Shutdown]).enumerate()
    {
        driver.push(input);
        let now = Timestamp { mono_us: at as u64 * 1_000, ..Timestamp::default() };
        while driver.poll_output(now).is_some() {}
    }
    (driver, told)
}

#[test]
fn a_session_is_recorded_and_does_the_same_again() {
    let folder = tempfile::tempdir().unwrap();
    session(folder.path(), 4 << 20, 5, &["what time is it"]);
    let all = list(folder.path()).unwrap();
    let [one] = &all[..] else { panic!("{all:?}") };
    assert_eq!(one.turns, [1]);
    assert_eq!(fs::metadata(&one.path).unwrap().permissions().mode() & 0o777, FILE_MODE);
    let recording = Recording::read(&one.path).unwrap();
    assert_eq!((recording.about.user.as_str(), recording.is_cut), ("ann", false));
    let replayed = replay(&recording);
    assert_eq!(replayed.difference, None);
    assert_eq!(replayed.given, 4);
    assert!(
        of_turn(&replayed.lines, 1).is_some_and(|lines| !lines.is_empty()) && of_turn(&replayed.lines, 2).is_none()
    );

    // Where the text was another one, so is what follows.
    let mut other = Recording::read(&one.path).unwrap();
    for entry in &mut other.entries {
        if let Entry::Input(_, Input::Text(text)) = entry {
            *text = "what day is it".to_owned();
        }
    }
    let (at, difference) = replay(&other).difference.expect("it differs");
    assert!(difference.recorded.unwrap().contains("what time is it") && at > 0);

    erase(folder.path(), "ann").unwrap();
    assert!(list(folder.path()).unwrap().is_empty());
}

#[test]
fn what_is_damaged_is_refused_with_its_line_and_a_cut_end_is_none() {
    let folder = tempfile::tempdir().unwrap();
    session(folder.path(), 4 << 20, 5, &[]);
    let path = list(folder.path()).unwrap().remove(0).path;
    let whole = fs::read_to_string(&path).unwrap();
    let put = |text: &str| fs::File::create(&path).unwrap().write_all(text.as_bytes()).unwrap();
    put(&whole[..whole.len() - 5]);
    let cut = Recording::read(&path).unwrap();
    assert!(cut.is_cut && replay(&cut).difference.is_none());
    let lines: Vec<&str> = whole.lines().collect();
    for (text, why) in [
        (String::new(), "empty"),
        ("{}\n".to_owned(), "is no recording"),
        (lines[0].replace(&format!("\"format\":{FORMAT}"), "\"format\":99"), "is no recording"),
        (format!("{}\n{}\n", lines[0], lines[2]), "no settings"),
        (format!("{}\n{}\nnone\n{}\n", lines[0], lines[1], lines[2]), "line 3"),
        (format!("{}\n{}", lines[0], "x".repeat(3 << 20)), "longer than"),
    ] {
        put(&text);
        let error = format!("{:#}", Recording::read(&path).unwrap_err());
        assert!(error.contains(why), "{why}: {error}");
    }
}

#[test]
fn the_oldest_go_first_and_none_is_longer_than_its_share() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(2_000);
    for began in 1..=8 {
        session(folder.path(), 16_000, began, &[&long]);
    }
    let all = list(folder.path()).unwrap();
    assert!(all.iter().map(|one| one.bytes).sum::<u64>() <= 16_000 && all.len() > 1, "{all:?}");
    assert_eq!(all[0].about.began_wall_ms, 8);
    assert!(all.iter().all(|one| one.bytes <= 4_000 && one.about.began_wall_ms > 1), "{all:?}");
}

#[test]
fn recordings_at_the_same_time_have_no_more_room_together() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(2_000);
    for began in 10..=12 {
        session(folder.path(), 16_000, began, &[&long]);
    }
    // Each may have a quarter.
    let recordings = Recordings::new(folder.path(), settings(16_000)).unwrap();
    let open: Vec<_> = (13..=24).map(|began| under_way(&recordings, began, &[&long])).collect();
    for (driver, told) in open {
        drop(driver);
        told.recv().unwrap();
    }
    let paths = super::file::paths(&folder.path().join(FOLDER)).unwrap();
    let bytes: u64 = paths.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert!(bytes > 8_000 && bytes <= 16_000, "{bytes}");
    let all = list(folder.path()).unwrap();
    assert!(all.iter().all(|one| one.about.began_wall_ms > 12), "the closed ones go first: {all:?}");
    assert!(all.iter().any(|one| Recording::read(&one.path).is_ok()), "{all:?}");
}

#[test]
fn nothing_is_recorded_unless_it_is_wanted() {
    let off = RecordingSettings { sessions: false, bytes_max: 1 << 20 };
    assert!(Recordings::new(Path::new("/none"), off).is_none());
}
