//! How soon the gateway replies: to complete commands, other requests, a yes or no to a question, and "stop" over an answer.
//!
//! `cargo xtask bench replies [--rounds 1] [--transport ws|quic] [--voices others|NAME,NAME] [--only complete|other|answer|stop] [--require]`
//!
//! One pair of glasses at a time, which cancels its echo, says each request of `data/replies.tsv` behind "Hey Mentra," in each voice,
//! to a gateway with the settings that are shipped and the offline engine. Then it says yes and no by turns to the question of a tool, once
//! that has been said to its end, and "stop" over a long answer. All times are the simulator's own, from the last voiced sample by the
//! clip's energy, as in `latency.rs`: until the first sound of the answer; until the question is settled as it was answered; until the
//! glasses are told that the turn is over (state `idle`). The voice alone pauses an answer, so that the hush may come before the
//! last voiced sample: below 0. What did not happen is told with what was heard instead.
//!
//! Needs flite and espeak-ng, unless `--voices hibari`, and what `cargo xtask fetch` fetches. Nothing else may run. `--require`: it ends with
//! an error where an aim is missed.

mod common;

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use common::aims::Aims;
use common::planted::{self, RECITE, WIPE};
use common::voices::Speaker;
use common::{TestGateway, argument, heard, number, rest, row};
use firmware_sim::microphone::ClipTimes;
use firmware_sim::transport::Scheme;
use firmware_sim::{Glasses, Seen};
use tokio::time::{sleep, timeout};

const TABLE: &str = include_str!("data/replies.tsv");
/// What is said to a question, and how it is settled then.
const ANSWERS: [(&str, &str); 2] = [("Yes.", "yes"), ("No.", "no")];
/// How often each short word is said in a round.
const SHORT_TIMES: usize = 4;
/// From the first sound of an answer to the "stop" over it.
const STOP_AFTER: Duration = Duration::from_millis(1_500);
const REPLY_MAX: Duration = Duration::from_secs(20);
const TURN_MAX: Duration = Duration::from_secs(60);

/// What is said, and what is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Complete,
    Other,
    Answer,
    Stop,
    Hush,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Complete, Self::Other, Self::Answer, Self::Stop, Self::Hush];

    /// Its name behind `--only`; a hush is of a stop.
    fn label(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Other => "other",
            Self::Answer => "answer",
            Self::Stop | Self::Hush => "stop",
        }
    }

    fn is_wanted(self, only: Option<&str>) -> bool {
        only.is_none_or(|only| only == self.label())
    }

    /// The name of its row.
    fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete command -> first sound",
            Self::Other => "other request -> first sound",
            Self::Answer => "yes or no to a question -> settled",
            Self::Stop => "stop over an answer -> turn over",
            Self::Hush => "stop over an answer -> hush",
        }
    }

    /// The quantile that is to be so many milliseconds at most.
    fn aim(self) -> Option<(f64, i64)> {
        match self {
            Self::Complete => Some((0.5, 400)),
            Self::Other => Some((0.5, 650)),
            Self::Answer | Self::Stop => Some((0.95, 350)),
            Self::Hush => None,
        }
    }
}

/// Microseconds from the last voiced sample; `None`: it did not happen.
type Sample = (Kind, Option<i64>);

fn main() -> Result<()> {
    common::calibrate("before")?;
    common::runtime()?.block_on(run())?;
    common::calibrate("after")
}

async fn run() -> Result<()> {
    let (rounds, only) = (number("--rounds", 1)?, argument("--only"));
    ensure!(Kind::ALL.iter().any(|kind| kind.is_wanted(only.as_deref())), "--only {only:?}: no such kind");
    let gateway = TestGateway::start("").await?;
    planted::plant(&gateway)?;
    let mut aims = Aims::default();
    for scheme in common::schemes()? {
        let before = common::busy();
        let mut samples = Vec::new();
        for speaker in Speaker::asked_for()? {
            let user = format!("{}-{}", scheme.name(), speaker.name());
            let mut options = gateway.options(scheme, &user)?;
            options.profile.echo_cancelled = true;
            let glasses = gateway.glasses(options, &user).await?;
            let wearer = Wearer { gateway: &gateway, glasses: &glasses, speaker };
            for _ in 0..rounds {
                samples.extend(wearer.round().await?);
            }
            glasses.goodbye().await;
        }
        println!("{}: processor {:.0} % busy", scheme.name(), common::busy_percent(before));
        report(scheme, &samples, &mut aims);
    }
    gateway.running.stop().await;
    aims.judge()
}

/// The requests of the table, in their order.
fn requests() -> Result<Vec<(Kind, &'static str)>> {
    let rows = TABLE.lines().filter(|line| !line.starts_with('#'));
    let request = |line: &'static str| match line.split_once('\t') {
        Some(("complete", sentence)) => Ok((Kind::Complete, sentence)),
        Some(("other", sentence)) => Ok((Kind::Other, sentence)),
        _ => bail!("no kind and request: {line:?}"),
    };
    rows.map(request).collect()
}

fn report(scheme: Scheme, samples: &[Sample], aims: &mut Aims) {
    let only = argument("--only");
    for kind in Kind::ALL.into_iter().filter(|kind| kind.is_wanted(only.as_deref())) {
        let all: Vec<Option<i64>> = samples.iter().filter(|(one, _)| *one == kind).map(|(_, us)| *us).collect();
        let times: Vec<i64> = all.iter().copied().flatten().collect();
        row(kind.name(), times.clone());
        if times.len() < all.len() {
            println!("    {} of {} without", all.len() - times.len(), all.len());
        }
        if let Some((share, most_ms)) = kind.aim() {
            aims.at_most_ms(&format!("{}, {}", scheme.name(), kind.name()), &times, share, most_ms);
        }
    }
}

/// Who speaks.
struct Wearer<'a> {
    gateway: &'a TestGateway,
    glasses: &'a Glasses,
    speaker: Speaker,
}

impl Wearer<'_> {
    /// Each request once, and the short words.
    async fn round(&self) -> Result<Vec<Sample>> {
        let (mut samples, only) = (Vec::new(), argument("--only"));
        let is_wanted = |kind: Kind| kind.is_wanted(only.as_deref());
        for (kind, sentence) in requests()?.into_iter().filter(|(kind, _)| is_wanted(*kind)) {
            samples.push((kind, self.request(sentence).await?));
        }
        for _ in 0..SHORT_TIMES {
            for (words, choice) in ANSWERS.into_iter().filter(|_| is_wanted(Kind::Answer)) {
                samples.push((Kind::Answer, self.answer(words, choice).await?));
            }
            if is_wanted(Kind::Stop) {
                let (over, hush) = self.stop().await?;
                samples.extend([(Kind::Stop, over), (Kind::Hush, hush)]);
            }
        }
        Ok(samples)
    }

    /// Says a request, until its answer sounds.
    async fn request(&self, sentence: &str) -> Result<Option<i64>> {
        let pcm = self.gateway.spoken(self.speaker, &format!("Hey Mentra, {sentence}")).await?;
        let mark = self.glasses.log().mark();
        let said = self.glasses.say_pcm(sentence, &pcm, None).await?;
        let sound = self.until(mark, &said, |seen| matches!(seen, Seen::FirstSound { .. })).await;
        rest(self.glasses, mark, TURN_MAX).await;
        Ok(sound)
    }

    /// Answers a question that was said to its end, until it is settled so.
    async fn answer(&self, words: &str, choice: &str) -> Result<Option<i64>> {
        let pcm = self.gateway.spoken(self.speaker, words).await?;
        let (_, mark) = planted::sounds(self.glasses, WIPE).await?;
        let is_silent = |seen: &Seen| matches!(seen, Seen::Listening { state, .. } if state != "speaking");
        let silent = self.glasses.log().find(mark, |event| is_silent(&event.seen));
        timeout(REPLY_MAX, silent).await.context("the question does not end")?;
        let said = self.glasses.say_pcm(words, &pcm, None).await?;
        let is_settled = |seen: &Seen| matches!(seen, Seen::ApprovalSettled { choice: made, .. } if made == choice);
        let settled = self.until(mark, &said, is_settled).await;
        rest(self.glasses, mark, TURN_MAX).await;
        Ok(settled)
    }

    /// Says "stop" over an answer: until the turn is over, and until the speaker is told to be silent.
    async fn stop(&self) -> Result<(Option<i64>, Option<i64>)> {
        let pcm = self.gateway.spoken(self.speaker, "Stop.").await?;
        let (_, mark) = planted::sounds(self.glasses, RECITE).await?;
        sleep(STOP_AFTER).await;
        let said = self.glasses.say_pcm("Stop.", &pcm, None).await?;
        let is_over = |seen: &Seen| matches!(seen, Seen::Listening { state, .. } if state == "idle");
        let over = self.until(mark, &said, is_over).await;
        let hush = self.until(mark, &said, |seen| matches!(seen, Seen::Hush { .. })).await;
        rest(self.glasses, mark, TURN_MAX).await;
        Ok((over, hush))
    }

    /// From the last voiced sample to the first event that is wanted, of those since the voice began, in microseconds.
    async fn until(&self, mark: u64, said: &ClipTimes, wanted: impl Fn(&Seen) -> bool) -> Option<i64> {
        let found = self.glasses.log().find(mark, |event| event.at_us >= said.onset_us && wanted(&event.seen));
        match timeout(REPLY_MAX, found).await {
            Ok((event, _)) => Some(event.at_us as i64 - said.t0_us as i64),
            Err(_) => {
                let heard = heard(self.glasses, mark, said.onset_us);
                println!("    {:?} by {} came to nothing; heard: {heard:?}", said.label, self.speaker.name());
                None
            }
        }
    }
}
