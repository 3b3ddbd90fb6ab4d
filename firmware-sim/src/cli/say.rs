//! `lorgnette-sim say`: one or several spoken turns.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use audio::wav;
use firmware_sim::latency::{self, Latency};
use firmware_sim::microphone::{CLIP_HZ, Clip};
use firmware_sim::{Event, Glasses, Seen};

use super::options::Common;
use super::{pair, show};

/// Say sentences.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// WAV files to say, one turn each, before the texts.
    files: Vec<PathBuf>,
    /// A sentence to say with the simulator's own voice; may be given several times.
    #[arg(long)]
    text: Vec<String>,
    /// Where the voice ends in the (only) file, in milliseconds from its beginning; default: by its energy.
    #[arg(long)]
    voiced_ms: Option<u64>,
    /// Seconds to wait for an answer.
    #[arg(long, default_value_t = 15)]
    wait_s: u64,
    /// Fail when a turn gets no answer.
    #[arg(long)]
    expect_answer: bool,
}

pub(super) async fn run(common: &Common, arguments: &Arguments) -> Result<()> {
    let clips = clips(arguments).await?;
    ensure!(!clips.is_empty(), "say what? give WAV files or --text \"...\"");
    let mut glasses = pair::connect(common.options()?, common).await?;
    let mut printer = Printer::new(common);
    let mut rows = Vec::new();
    let mut silent = 0;
    for clip in clips {
        let label = clip.label.clone();
        let turn = take_turn(&mut glasses, clip, Duration::from_secs(arguments.wait_s), &mut printer).await?;
        silent += usize::from(!turn.answered);
        rows.push((format!("“{label}”"), turn.latency));
    }
    if let Some(path) = &common.heard {
        let seconds = glasses.write_heard(path)?;
        if !common.json && !common.quiet {
            println!("heard {seconds:.1} s: {}", path.display());
        }
    }
    printer.drain(&glasses, None);
    let interruptions = glasses.interruptions();
    glasses.goodbye().await;
    if common.json {
        let turns: Vec<_> =
            rows.iter().map(|(said, latency)| serde_json::json!({"said": said, "latency": latency})).collect();
        println!("{}", serde_json::json!({ "summary": turns, "interruptions": interruptions }));
    } else {
        println!("{}", show::table(printer.style, &rows));
        show::interruptions(&interruptions);
    }
    if arguments.expect_answer && silent > 0 {
        bail!("{silent} turns got no answer");
    }
    Ok(())
}

async fn clips(arguments: &Arguments) -> Result<Vec<Clip>> {
    let mut clips = Vec::new();
    for file in &arguments.files {
        let is_text = !file.exists() && file.extension().is_none();
        ensure!(!is_text, "there is no file {:?}; a sentence is said with --text {0:?}", file.display().to_string());
        let pcm = wav::read(file, CLIP_HZ)?;
        let voiced_us = arguments.voiced_ms.map(|ms| ms.saturating_mul(1_000));
        clips.push(Clip::new(&file.display().to_string(), &pcm, voiced_us));
    }
    for text in &arguments.text {
        clips.push(spoken(text).await?);
    }
    Ok(clips)
}

/// A clip of a sentence in the simulator's own voice.
#[cfg(feature = "tts")]
pub(super) async fn spoken(text: &str) -> Result<Clip> {
    let pcm = firmware_sim::voice::speak(text).await.map_err(anyhow::Error::msg);
    Ok(Clip::new(text, &pcm.context("the simulator's own voice")?, None))
}

/// Without the `tts` feature there is no voice.
#[cfg(not(feature = "tts"))]
pub(super) async fn spoken(_text: &str) -> Result<Clip> {
    bail!("this build has no voice; build with the feature `tts`, or say WAV files")
}

/// Prints events as they occur.
pub(super) struct Printer {
    pub(super) style: show::Style,
    json: bool,
    quiet: bool,
    next: u64,
    /// The state of the conversation that was printed last.
    state: String,
}

impl Printer {
    pub(super) fn new(common: &Common) -> Self {
        Self { style: show::Style::detect(), json: common.json, quiet: common.quiet, next: 0, state: String::new() }
    }

    /// An event in words; `None`: it is none for people, or says the last state again, as a welcome does.
    fn line(&mut self, event: &Event, t0_us: Option<u64>) -> Option<String> {
        if let Seen::Listening { state, .. } = &event.seen {
            if self.state == *state {
                return None;
            }
            self.state.clone_from(state);
        }
        show::line(self.style, event, t0_us)
    }

    /// Prints everything since the last call.
    pub(super) fn drain(&mut self, glasses: &Glasses, t0_us: Option<u64>) {
        let (first, events) = glasses.log().kept_since(self.next);
        self.next = first;
        for event in events {
            self.next += 1;
            if self.json {
                if !matches!(event.seen, Seen::PairingCode { .. }) {
                    show::json_line(&event);
                }
            } else if !self.quiet
                && let Some(line) = self.line(&event, t0_us)
            {
                println!("{line}");
            }
        }
    }
}

/// Outcome of a turn.
pub(super) struct Turn {
    pub(super) latency: Latency,
    pub(super) answered: bool,
}

/// Interval at which events are printed during a turn.
pub(super) const PRINT_EVERY: Duration = Duration::from_millis(50);

/// Says a clip and waits until the answer was shown and played.
pub(super) async fn take_turn(
    glasses: &mut Glasses,
    clip: Clip,
    wait: Duration,
    printer: &mut Printer,
) -> Result<Turn> {
    let mark = glasses.log().mark();
    glasses.forget();
    let said = {
        let saying = glasses.say(clip);
        tokio::pin!(saying);
        loop {
            tokio::select! {
                said = &mut saying => break said?,
                () = tokio::time::sleep(PRINT_EVERY) => printer.drain(glasses, None),
            }
        }
    };
    let answered = {
        let log = glasses.log().clone();
        let over = tokio::time::timeout(wait, async move { answered(&log, mark, said.t0_us).await });
        tokio::pin!(over);
        loop {
            tokio::select! {
                outcome = &mut over => break outcome.unwrap_or(false),
                () = tokio::time::sleep(PRINT_EVERY) => printer.drain(glasses, Some(said.t0_us)),
            }
        }
    };
    printer.drain(glasses, Some(said.t0_us));
    let events = glasses.log().since(mark);
    Ok(Turn { latency: latency::measure(&events, said.t0_us), answered })
}

/// Waits until a speech that began after `t0_us` was played; returns false if the gateway disconnects. A timer that
/// rang while the wearer spoke does not count as an answer.
async fn answered(log: &firmware_sim::seen::Log, mark: u64, t0_us: u64) -> bool {
    let mut answers = Vec::new();
    let (event, _) = log
        .find(mark, |event| match &event.seen {
            Seen::SpeechStart { speech, .. } => {
                if event.at_us > t0_us {
                    answers.push(*speech);
                }
                false
            }
            Seen::SpeechHeard { speech, .. } => answers.contains(speech),
            Seen::Goodbye { resumes: false, .. } | Seen::Rejected { .. } | Seen::Violation { .. } => true,
            _ => false,
        })
        .await;
    matches!(event.seen, Seen::SpeechHeard { .. })
}

#[cfg(test)]
mod tests {
    use firmware_sim::seen::Log;

    use super::*;

    fn started(speech: u32) -> Seen {
        Seen::SpeechStart { turn: 0, speech, text: String::new() }
    }

    fn heard(speech: u32) -> Seen {
        Seen::SpeechHeard { turn: 0, speech, text: String::new(), played_us: 1, complete: true }
    }

    #[test]
    fn a_state_that_is_told_again_is_printed_once() {
        let style = show::Style::detect();
        let mut printer = Printer { style, json: false, quiet: false, next: 0, state: String::new() };
        let mut printed = |seen| printer.line(&Event { at_us: 0, seen }, None);
        let state = |state: &str| Seen::Listening { turn: 0, state: state.to_owned() };
        let lines = ["idle", "idle", "thinking", "idle"].map(|name| printed(state(name)).is_some());
        assert_eq!(lines, [true, false, true, true]);
        let told = printed(Seen::LinkSound { sound: "lost" }).unwrap();
        assert!(told.contains("chime       the link is lost"), "{told}");
    }

    #[tokio::test]
    async fn what_began_before_the_wearer_was_done_is_no_answer() {
        let log = Log::default();
        for (at_us, seen) in [(5, started(1)), (20, heard(1)), (25, started(2))] {
            log.push(at_us, seen);
        }
        {
            let waiting = answered(&log, 0, 10);
            tokio::pin!(waiting);
            assert!(futures_util::poll!(waiting.as_mut()).is_pending());
            log.push(30, heard(2));
            assert!(waiting.await);
        }
        let goodbye = |resumes| Seen::Goodbye { reason: "shutting_down".to_owned(), message: String::new(), resumes };
        let log = Log::default();
        log.push(1, goodbye(true));
        log.push(2, started(1));
        log.push(3, goodbye(false));
        log.push(4, heard(1));
        assert!(!answered(&log, 0, 0).await);
        let log = Log::default();
        for (at_us, seen) in [(1, goodbye(true)), (2, started(1)), (3, heard(1))] {
            log.push(at_us, seen);
        }
        assert!(answered(&log, 0, 0).await);
    }
}
