//! `lorgnette conformance --listen` judges devices that are written by hand: a right one, and others with one fault each.

use std::{path::Path, time::Duration};

use gateway::{
    config,
    conformance::{Judge, Judgement, Options, Rule, Verdict},
};

use super::device::{self, Fault};
use crate::world::{WAIT, basics};

/// A judge with keys in this folder. It plays a tone, so that it costs little.
pub async fn judge(folder: &Path) -> Judge {
    let config = config::check(&basics(&folder.join("data")), "judge").expect("the settings");
    let mut options = Options::new(&config, &folder.join("judge"));
    options.voice = folder.join("no-voice");
    options.grace = Duration::from_secs(5);
    options.heartbeat = Duration::from_secs(1);
    options.patience = Duration::from_secs(10);
    options.measure = Duration::from_millis(1_500);
    Judge::start(options).await.expect("the judge")
}

pub fn failed(judgement: &Judgement) -> Vec<(Rule, &str)> {
    let failed = judgement.judged.iter().filter_map(|one| match &one.verdict {
        Verdict::Failed(what) => Some((one.rule, what.as_str())),
        _ => None,
    });
    failed.collect()
}

pub fn passed(judgement: &Judgement) -> Vec<Rule> {
    judgement.judged.iter().filter(|one| one.verdict == Verdict::Passed).map(|one| one.rule).collect()
}

async fn judged(fault: Fault) -> Judgement {
    let folder = tempfile::tempdir().expect("a folder");
    let mut judge = judge(folder.path()).await;
    let address = format!("ws://{}/glasses", judge.web);
    let device = tokio::spawn(device::run(address, folder.path().join("device"), fault));
    let judgement = tokio::time::timeout(2 * WAIT, judge.next(&mut |_| ())).await.expect("in time").expect("a device");
    device.abort();
    judgement
}

/// Exactly this rule fails.
async fn fails(fault: Fault, rule: Rule) {
    let judgement = judged(fault).await;
    let failed = failed(&judgement);
    assert!(failed.len() == 1 && failed[0].0 == rule, "{fault:?}: {failed:?}");
}

#[tokio::test]
async fn a_small_device_that_is_right_passes() {
    let judgement = judged(Fault::Nothing).await;
    assert_eq!(failed(&judgement), []);
    let missing: Vec<_> = judgement.judged.iter().filter(|one| matches!(one.verdict, Verdict::NotDone(_))).collect();
    let missing: Vec<Rule> = missing.iter().map(|one| one.rule).collect();
    // It has no tools, sends PCM, was not invited, and resumes nothing.
    let may_miss = [
        Rule::Invitation,
        Rule::Introduction,
        Rule::Tool,
        Rule::ToolAgain,
        Rule::Pause,
        Rule::Resume,
        Rule::Replay,
        Rule::ReplayPace,
    ];
    assert_eq!(missing, may_miss);
}

#[tokio::test]
async fn a_control_sequence_that_is_left_out_is_found() {
    fails(Fault::Sequence, Rule::Control).await;
}

#[tokio::test]
async fn a_report_ahead_of_playback_is_found() {
    fails(Fault::Ahead, Rule::PlayedTime).await;
}

#[tokio::test]
async fn a_report_with_the_latest_turn_is_found() {
    fails(Fault::Turn, Rule::Turn).await;
}

#[tokio::test]
async fn sound_of_a_muted_device_is_found() {
    fails(Fault::Muted, Rule::Mute).await;
}

#[tokio::test]
async fn a_device_that_plays_on_at_a_hush_is_found() {
    fails(Fault::Hush, Rule::Hush).await;
}

#[tokio::test]
async fn other_lc3_frames_than_agreed_are_found() {
    fails(Fault::Frames, Rule::SoundFormat).await;
}

#[tokio::test]
async fn lc3_frames_that_do_not_exist_are_found() {
    fails(Fault::Lc3, Rule::Hello).await;
}

#[tokio::test]
async fn a_device_without_heartbeats_is_found() {
    fails(Fault::Heartbeat, Rule::Heartbeat).await;
}

#[tokio::test]
async fn a_device_that_takes_a_gap_is_found() {
    fails(Fault::Gap, Rule::Gap).await;
}

#[tokio::test]
async fn a_device_that_trusts_any_gateway_is_found() {
    fails(Fault::Pin, Rule::Pin).await;
}
