//! Spoken commands in synthetic voices, three unless others are asked for: the right tool with the right arguments; and sound that must lead to none.
//!
//! `cargo xtask bench commands [--transport ws|quic] [--table development|held-out] [--voices others|NAME,NAME]`
//!
//! Both tables (`data/commands*.tsv`) were written before anything was said. The engine was improved on the
//! development table, whose misses are printed; of the held-out table only numbers are, so that nobody tunes to
//! it. Each sentence is said behind "Hey Mentra," to a gateway with the settings that are shipped. What counts
//! is the tool calls in the user's stored conversation, once the turn is over.

mod common;

use std::time::Duration;

use anyhow::{Context as _, Result};
use audio::asr::normalise::for_commands;
use audio::wav;
use common::clips::{self, CLIP_HZ};
use common::voices::Speaker;
use common::{TestGateway, argument, until};
use firmware_sim::microphone::Background;
use firmware_sim::transport::Scheme;
use firmware_sim::{Glasses, Seen};
use gateway_core::vocab::ToolCall;
use serde_json::Value;
use tokio::task::JoinSet;

const DEVELOPMENT: &str = include_str!("data/commands.tsv");
const HELD_OUT: &str = include_str!("data/commands-held-out.tsv");
/// How long a turn may take, its spoken answer included.
const TURN_MAX: Duration = Duration::from_secs(40);
/// The conversation is stored behind the turn.
const STORED_MAX: Duration = Duration::from_secs(2);
/// Length of each sound that must lead to nothing.
const NOTHING_S: usize = 60;
const AFTER: Duration = Duration::from_secs(8);

#[derive(Clone)]
struct Command {
    sentence: String,
    tool: String,
    arguments: Value,
}

/// Whether the table is judged by, and its lines stay unseen.
fn judges() -> bool {
    argument("--table").as_deref() == Some("held-out")
}

fn table() -> Result<Vec<Command>> {
    let mut commands = Vec::new();
    let table = if judges() { HELD_OUT } else { DEVELOPMENT };
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split('\t').map(str::to_owned);
        let mut next = || fields.next().with_context(|| format!("three fields in {line:?}"));
        commands.push(Command { sentence: next()?, tool: next()?, arguments: serde_json::from_str(&next()?)? });
    }
    Ok(commands)
}

fn main() -> Result<()> {
    common::calibrate("before")?;
    common::runtime()?.block_on(run())?;
    common::calibrate("after")
}

async fn run() -> Result<()> {
    let scheme = match argument("--transport").as_deref() {
        Some("quic") => Scheme::Quic,
        _ => Scheme::Ws,
    };
    let gateway = std::sync::Arc::new(TestGateway::start("").await?);
    let before = common::busy();
    let (mut right, mut said) = (0, 0);
    // As many at a time as there are by default; more at once would be heard by a busier box.
    for speakers in Speaker::asked_for()?.chunks(Speaker::ALL.len()) {
        let mut tasks = JoinSet::new();
        for speaker in speakers {
            tasks.spawn(say_all(gateway.clone(), scheme, *speaker));
        }
        while let Some(done) = tasks.join_next().await {
            let (speaker, lines, of_one, of) = done??;
            for line in lines.iter().filter(|_| !judges()) {
                println!("  {}: {line}", speaker.name());
            }
            println!("{}: {of_one} of {of} right", speaker.name());
            right += of_one;
            said += of;
        }
    }
    println!(
        "commands: {right} of {said} led to the right tool with the right arguments; processor {:.0} % busy",
        common::busy_percent(before)
    );
    nothing(&gateway, scheme).await?;
    std::sync::Arc::into_inner(gateway).context("glasses that still speak")?.running.stop().await;
    Ok(())
}

type Score = (Speaker, Vec<String>, usize, usize);

async fn say_all(gateway: std::sync::Arc<TestGateway>, scheme: Scheme, speaker: Speaker) -> Result<Score> {
    let user = speaker.name();
    let glasses = gateway.glasses(gateway.options(scheme, user)?, user).await?;
    let folder = gateway.folder.path().to_owned();
    let (mut lines, mut right) = (Vec::new(), 0);
    let commands = table()?;
    for command in &commands {
        let text = format!("Hey Mentra, {}", command.sentence);
        let folder = folder.clone();
        let pcm = tokio::task::spawn_blocking(move || speaker.say(&text, &folder)).await??;
        let calls_before = gateway.calls(user)?.len();
        let turns_before = gateway.turns(&glasses).len();
        let mark = glasses.log().mark();
        glasses.say_pcm(&command.sentence, &pcm, None).await?;
        let over = until(TURN_MAX, || gateway.turns(&glasses).len() > turns_before).await;
        until(STORED_MAX, || gateway.calls(user).is_ok_and(|calls| calls.len() > calls_before)).await;
        let calls = gateway.calls(user)?.split_off(calls_before);
        if over && is_right(command, &calls) {
            right += 1;
        } else {
            lines.push(format!(
                "WRONG {:?}: heard {:?}, calls {:?}",
                command.sentence,
                last_final(&glasses, mark),
                calls.iter().map(|call| format!("{} {}", call.name, call.arguments)).collect::<Vec<_>>()
            ));
        }
    }
    glasses.goodbye().await;
    Ok((speaker, lines, right, commands.len()))
}

fn last_final(glasses: &Glasses, mark: u64) -> Vec<String> {
    let events = glasses.log().since(mark);
    let finals = events.into_iter().filter_map(|event| match event.seen {
        Seen::Transcript { text, is_final: true, .. } => Some(text),
        _ => None,
    });
    finals.collect()
}

fn is_right(command: &Command, calls: &[ToolCall]) -> bool {
    let [call] = calls else { return false };
    let (Some(expected), Some(given)) = (command.arguments.as_object(), call.arguments.as_object()) else {
        return false;
    };
    call.name == command.tool
        && expected.len() == given.len()
        && expected.iter().all(|(key, value)| given.get(key).is_some_and(|given| same(value, given)))
}

/// Texts are the same when they read the same aloud; spaces in a sum mean nothing.
fn same(expected: &Value, given: &Value) -> bool {
    match (expected.as_str(), given.as_str()) {
        (Some(expected), Some(given)) => {
            let bare = |text: &str| text.replace(' ', "");
            for_commands(expected) == for_commands(given)
                && (!expected.contains(['*', '/', '-', '%']) || bare(expected) == bare(given))
        }
        _ => expected == given,
    }
}

/// Noise, silence, and read speech that does not name the assistant.
async fn nothing(gateway: &TestGateway, scheme: Scheme) -> Result<()> {
    let length = NOTHING_S * CLIP_HZ as usize;
    let noise = clips::path("alsa-utils", "usr/share/sounds/alsa/Noise.wav")?;
    let noise = wav::read(&noise, CLIP_HZ)?;
    let mut read: Vec<i16> = Vec::new();
    for clip in clips::all()? {
        if read.len() < length {
            read.extend(clip.pcm);
            read.extend(std::iter::repeat_n(0, CLIP_HZ as usize / 2));
        }
    }
    read.truncate(length);
    let cases = [
        ("Noise.wav", noise, Background::Noise(8)),
        ("60 s of silence", vec![0; length], Background::Zeros),
        ("60 s of read speech", read, Background::Noise(8)),
    ];
    let mut tasks = JoinSet::new();
    for (name, pcm, background) in cases {
        let user = format!("nothing {name}");
        let mut options = gateway.options(scheme, &user.replace([' ', '.'], "-"))?;
        options.background = background;
        let glasses = gateway.glasses(options, &user).await?;
        tasks.spawn(async move {
            let clip_length = Duration::from_secs_f64(pcm.len() as f64 / f64::from(CLIP_HZ));
            let begins = tokio::time::Instant::now();
            // Silence has no last voiced sample: it counts as said at its end.
            let voiced = u64::try_from(clip_length.as_micros()).ok();
            glasses.say_pcm(name, &pcm, voiced).await?;
            tokio::time::sleep_until(begins + clip_length + AFTER).await;
            anyhow::Ok((name, user, glasses))
        });
    }
    while let Some(done) = tasks.join_next().await {
        let (name, user, glasses) = done??;
        let calls = gateway.calls(&user)?;
        let turns = gateway.turns(&glasses).len();
        let utterances = last_final(&glasses, 0).len();
        println!(
            "{name}: {} tool calls, {turns} turns, {utterances} final transcripts sent to the glasses",
            calls.len()
        );
        glasses.goodbye().await;
    }
    Ok(())
}
