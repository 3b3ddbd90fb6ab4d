//! How soon the glasses are silent when the wearer speaks over an answer, and how often an "okay" over it ends it.
//!
//! `cargo xtask bench bargein [--rounds 1] [--only none|residual|claimed|echo] [--transport ws|quic] [--voices others|NAME,NAME] [--require]`
//!
//! One pair of glasses at a time has a long answer read out. One to three seconds after its first sound the wearer speaks over it: to
//! interrupt it, or as a listener does ("okay", "mhm"). The glasses cancel their echo (`none`); or that too, but some of it is left
//! (`residual`); or they say that they do, and do not (`claimed`); or they do not, and say so (`echo`), where a wake or cancel word is
//! needed. All is counted from the first voiced sample of the clip by its energy: the arrival of the last packet of sound, and the last
//! sample that was not silence (60 dB below full scale), as the simulator received and played them. The core's decision is the hush that
//! it puts out, with the time of the input that it follows from: sessions are recorded (`[recordings]`), and both clocks run in this
//! process. An answer that fell into one of its own pauses by then is silent before the decision: below 0.
//!
//! An answer counts as ended by an "okay" where its turn is not completed; the voice alone may pause it for a while.
//!
//! Needs flite and espeak-ng, unless `--voices hibari`, and what `cargo xtask fetch` fetches. Nothing else may run. `--require`: it ends with
//! an error where an aim is missed.

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use common::aims::Aims;
use common::planted::{self, RECITE};
use common::voices::Speaker;
use common::{TestGateway, argument, heard, number, rest, row, until};
use firmware_sim::acoustics::Echo;
use firmware_sim::random::Random;
use firmware_sim::record::{self, Interruption};
use firmware_sim::speaker::Heard;
use firmware_sim::transport::Scheme;
use firmware_sim::{Glasses, Seen};
use gateway::clock;
use gateway_core::recording::Entry;
use tokio::time::sleep;

/// All outputs of the core, and room for an hour of them.
const RECORDED: &str = "[recordings]\nsessions = true\nsize_max_mib = 1024\n";
/// How long nothing is said into an answer, and how much later it may be, in milliseconds.
const BEFORE_MS: u64 = 1_000;
const LATER_MS: u64 = 2_000;
const SEED: u64 = 15;
/// The aim: from the first voiced sample to the last packet of sound, at 95 %.
const PACKET_MS_MAX: i64 = 400;
const TURN_MAX: Duration = Duration::from_secs(60);

const ANYTHING: &[&str] = &[
    "Stop.",
    "What time is it?",
    "Wait, what is twelve times three?",
    "How much battery is left?",
    "Hey Mentra, stop.",
];
/// Each has a wake word, or is a cancel word.
const CALLS: &[&str] = &["Stop.", "Cancel that.", "Hey Mentra, stop.", "Hey Mentra, what time is it?"];
const BACKCHANNELS: &[&str] = &["Okay.", "Mhm.", "Right.", "I see.", "Yeah.", "Uh-huh."];

/// The sound around the glasses, and what is said over their answers.
struct World {
    name: &'static str,
    echo: Option<Echo>,
    /// Whether the glasses say that they cancel their echo.
    cancels: bool,
    interruptions: &'static [&'static str],
}

const WORLDS: [World; 4] = [
    World { name: "none", echo: None, cancels: true, interruptions: ANYTHING },
    World { name: "residual", echo: Some(echo(45.0)), cancels: true, interruptions: ANYTHING },
    World { name: "claimed", echo: Some(echo(12.0)), cancels: true, interruptions: ANYTHING },
    World { name: "echo", echo: Some(echo(12.0)), cancels: false, interruptions: CALLS },
];

const fn echo(attenuation_db: f64) -> Echo {
    Echo { delay_ms: 80.0, attenuation_db, tail_ms: 0.0 }
}

/// An answer that was spoken over. Times are in microseconds of the glasses' clock.
struct Trial {
    /// What was said over it, and in which voice.
    said: String,
    /// The transcripts of it, partial and final.
    heard: Vec<String>,
    is_backchannel: bool,
    onset_us: i64,
    speech: u32,
    /// When the glasses were told to be silent.
    hush_us: Option<i64>,
    /// Whether the turn came to its end.
    is_completed: bool,
}

/// What is known of the speeches of a session once it is over.
struct Speeches {
    heard: Vec<Heard>,
    interruptions: Vec<Interruption>,
    /// When the core decided to stop each.
    decided_us: BTreeMap<u32, i64>,
}

fn main() -> Result<()> {
    common::calibrate("before")?;
    common::runtime()?.block_on(run())?;
    common::calibrate("after")
}

async fn run() -> Result<()> {
    let (rounds, only) = (number("--rounds", 1)?, argument("--only"));
    let worlds: Vec<World> =
        WORLDS.into_iter().filter(|world| only.as_ref().is_none_or(|only| only == world.name)).collect();
    ensure!(!worlds.is_empty(), "--only: {}", WORLDS.map(|world| world.name).join(", "));
    let gateway = TestGateway::start(RECORDED).await?;
    planted::plant(&gateway)?;
    let mut aims = Aims::default();
    for world in &worlds {
        for scheme in common::schemes()? {
            let before = common::busy();
            let mut tally = Tally::default();
            for speaker in Speaker::asked_for()? {
                let (trials, speeches) = session(&gateway, world, scheme, speaker, rounds).await?;
                trials.iter().for_each(|trial| tally.take(trial, &speeches));
            }
            let name = format!("{}, {}", world.name, scheme.name());
            println!("{name}: processor {:.0} % busy", common::busy_percent(before));
            tally.report(&name, &mut aims);
        }
    }
    gateway.running.stop().await;
    aims.judge()
}

/// All that one voice says, over answers of one session.
async fn session(
    gateway: &TestGateway,
    world: &World,
    scheme: Scheme,
    speaker: Speaker,
    rounds: u64,
) -> Result<(Vec<Trial>, Speeches)> {
    let user = format!("{}-{}-{}", world.name, scheme.name(), speaker.name());
    let mut options = gateway.options(scheme, &user)?;
    options.profile.echo_cancelled = world.cancels;
    options.acoustics.echo = world.echo;
    let glasses = gateway.glasses(options, &user).await?;
    let mut random = Random::new(SEED);
    let mut trials = Vec::new();
    for _ in 0..rounds {
        let interruptions = world.interruptions.iter().map(|words| (*words, false));
        for (words, is_backchannel) in interruptions.chain(BACKCHANNELS.iter().map(|words| (*words, true))) {
            let pcm = gateway.spoken(speaker, words).await?;
            let delay = Duration::from_millis(BEFORE_MS + random.below(LATER_MS));
            let trial = trial(gateway, &glasses, (words, pcm.as_slice()), is_backchannel, delay).await?;
            trials.push(Trial { said: format!("{words:?} by {}, heard {:?}", speaker.name(), trial.heard), ..trial });
        }
    }
    let offset_us = clock::mono_us() as i64 - glasses.now_us() as i64;
    let heard = glasses.heard();
    let interruptions = record::interruptions(&glasses.log().since(0), &heard);
    glasses.goodbye().await;
    let decided = decisions(gateway, &user)?.into_iter();
    let decided_us = decided.map(|(speech, at_us)| (speech, at_us as i64 - offset_us)).collect();
    Ok((trials, Speeches { heard, interruptions, decided_us }))
}

/// Has the answer read out, and says these words over it.
async fn trial(
    gateway: &TestGateway,
    glasses: &Glasses,
    (words, pcm): (&str, &[i16]),
    is_backchannel: bool,
    delay: Duration,
) -> Result<Trial> {
    let mark = glasses.log().mark();
    let (event, _) = planted::sounds(glasses, RECITE).await?;
    let Seen::FirstSound { turn, speech } = event.seen else { bail!("not looked for: {event:?}") };
    sleep(delay).await;
    let said = glasses.say_pcm(words, pcm, None).await?;
    let record = || gateway.turns(glasses).into_iter().find(|record| record.turn == turn);
    until(TURN_MAX, || record().is_some()).await;
    let is_completed = record().is_some_and(|record| record.outcome == "completed");
    rest(glasses, mark, TURN_MAX).await;
    let hush_us = glasses.log().since(mark).iter().find_map(|event| match event.seen {
        Seen::Hush { speech: hushed, .. } if hushed == speech => Some(event.at_us as i64),
        _ => None,
    });
    let (heard, onset_us) = (heard(glasses, mark, said.onset_us), said.onset_us as i64);
    Ok(Trial { said: String::new(), heard, is_backchannel, onset_us, speech, hush_us, is_completed })
}

/// When the core decided to stop each speech, in microseconds of the gateway's clock: in a recording each output stands behind
/// the input, or the timer, from which it follows.
fn decisions(gateway: &TestGateway, user: &str) -> Result<BTreeMap<u32, u64>> {
    let folder = gateway.folder.path().join("gateway").join("recordings").join(user);
    let mut decisions = BTreeMap::new();
    for file in std::fs::read_dir(folder).context("the session is not recorded")? {
        let text = std::fs::read_to_string(file?.path())?;
        let mut now_us = 0;
        // The first line is about the session, and the last one may still be written.
        for entry in text.lines().skip(1).filter_map(|line| serde_json::from_str::<Entry>(line).ok()) {
            match entry {
                Entry::Settings(_) => {}
                Entry::Input(at, _) | Entry::Timeout(at) => now_us = at.mono_us,
                Entry::Output(output) => {
                    if let Some(speech) = hushed(&output) {
                        decisions.entry(speech).or_insert(now_us);
                    }
                }
            }
        }
    }
    Ok(decisions)
}

/// The speech that an output stops, from its debug form.
fn hushed(output: &str) -> Option<u32> {
    output.strip_prefix("Hush { speech: ")?.strip_suffix(" }")?.parse().ok()
}

/// Times in microseconds, and counts of answers.
#[derive(Default)]
struct Tally {
    decided: Vec<i64>,
    hush: Vec<i64>,
    packet: Vec<i64>,
    silent: Vec<i64>,
    packet_after: Vec<i64>,
    silent_after: Vec<i64>,
    /// Stopped before anybody spoke.
    early: usize,
    /// Not ended by what was to interrupt them.
    missed: usize,
    backchannels: usize,
    /// Of these, paused and gone on, and ended.
    paused: usize,
    ended: Vec<String>,
    /// What stopped the sound later than it is to, and did not interrupt.
    late: Vec<String>,
}

impl Tally {
    fn take(&mut self, trial: &Trial, speeches: &Speeches) {
        let Trial { onset_us, speech, hush_us, .. } = *trial;
        if hush_us.is_some_and(|at_us| at_us < onset_us) {
            self.early += 1;
            return;
        }
        if trial.is_backchannel {
            self.backchannels += 1;
            self.ended.extend((!trial.is_completed).then(|| trial.said.clone()));
            self.paused += usize::from(trial.is_completed && hush_us.is_some());
            return;
        }
        let Some(hush_us) = hush_us.filter(|_| !trial.is_completed) else {
            self.missed += 1;
            self.late.push(trial.said.clone());
            return;
        };
        if hush_us - onset_us > PACKET_MS_MAX * 1_000 {
            self.late.push(format!("{} {} ms", trial.said, (hush_us - onset_us) / 1_000));
        }
        let decided_us = speeches.decided_us.get(&speech).copied();
        let heard = speeches.heard.iter().find(|heard| heard.speech == speech);
        let packet_us = heard.and_then(|heard| heard.arrived_us).map(|at_us| at_us as i64);
        let mut silences = speeches.interruptions.iter();
        let silent_us = silences.find(|silence| silence.speech == speech).map(|silence| silence.silent_us as i64);
        let after = |at_us: Option<i64>, from_us: Option<i64>| Some(at_us? - from_us?);
        self.hush.push(hush_us - onset_us);
        self.decided.extend(after(decided_us, Some(onset_us)));
        self.packet.extend(after(packet_us, Some(onset_us)));
        self.silent.extend(after(silent_us, Some(onset_us)));
        self.packet_after.extend(after(packet_us, decided_us));
        self.silent_after.extend(after(silent_us, decided_us));
    }

    fn report(&self, name: &str, aims: &mut Aims) {
        row("onset -> the core decides", self.decided.clone());
        row("onset -> hush received", self.hush.clone());
        row("onset -> last packet received", self.packet.clone());
        row("onset -> speaker silent", self.silent.clone());
        row("decision -> last packet received", self.packet_after.clone());
        row("decision -> speaker silent", self.silent_after.clone());
        println!(
            "  not ended {}, stopped before anybody spoke {}; of {} answers with an \"okay\" over them {} were \
             paused and went on",
            self.missed, self.early, self.backchannels, self.paused
        );
        for (what, said) in [("late or not at all", &self.late), ("ended by an \"okay\"", &self.ended)] {
            println!("  {what}: {}", if said.is_empty() { "nothing".to_owned() } else { said.join(", ") });
        }
        let times = [
            ("onset -> last packet", &self.packet, PACKET_MS_MAX),
            ("onset -> silent", &self.silent, 500),
            ("decision -> last packet", &self.packet_after, 60),
            ("decision -> silent", &self.silent_after, 150),
        ];
        for (what, us, most_ms) in times {
            aims.at_most_ms(&format!("{name}, {what}"), us, 0.95, most_ms);
        }
        aims.at_most_percent(&format!("{name}, ended by an okay"), self.ended.len(), self.backchannels, 5.0);
    }
}
