//! Many glasses at once: the gateway's own share of a turn, processor time, and bytes per session.
//!
//! `cargo xtask bench load [--glasses 50|1,10,50] [--duty 20] [--seconds 120] [--typed 0] [--users GLASSES] [--pages 0] [--rounds 8]
//! [--wake-head FILE] [--clips 60] [--require]`
//! `cargo xtask bench load --idle [--glasses 2000] [--muted] [--noise AMPLITUDE]`
//!
//! Each pair of glasses has a user of its own, unless there are to be fewer: turns of one user wait for one another. A sentence
//! is said at its own time, whatever became of the one before, so that what is lost takes no load away. Several numbers of glasses
//! are measured one after the other, each in processes of its own.
//!
//! With `--typed`, the glasses type the sum instead, one after the other and so many times each: nothing is recognised,
//! so that what is left of a turn can be timed, and counted by a profiler, undisturbed.
//!
//! `--pages`: so many pages of the console with all sessions are looked at in every other of `--rounds` (8) rounds of the run.
//! The gateway's own share of a turn and the processor time of the runtime's threads are compared with those of the other rounds;
//! with `--require` it ends with an error where either is more than 1.10 times as much. The seconds are divided among the rounds,
//! and one before and one behind them, when glasses begin and cease to speak.
//!
//! With `--wake-head`, the gateway listens for the phrase of this head by its sound (a path in the folder `tests`, or a whole one;
//! `data/wake/hey_mentra.onnx` is one), and the glasses say read speech that names nobody: so many of the clips that `bench speech`
//! holds out, in random order, at the same duty. What is decoded then is what the head took for the phrase.
//!
//! With `--idle`, the glasses connect, and send digital silence, white noise of this amplitude (of 32,768), or nothing (`--muted`).
//! Their memory is that of the second half of them, with which nothing else is made for the first time.
//!
//! The delay of a frame: from the end of a packet in the glasses to the acknowledgement of its processing, for one packet in
//! twenty; so it has the way back in it, and what the generator itself waits for a processor. With `--require` it ends with an error
//! where 99 % of these are over 40 ms, or a session was lost.
//!
//! The glasses run in a second process, from packets that were coded beforehand, so that their processor
//! time is told apart from the gateway's. Half of them use QUIC. They say a sum and hear the answer.

mod common;
#[path = "load/frames.rs"]
mod frames;
#[path = "load/idle.rs"]
mod idle;
#[path = "load/rounds.rs"]
mod rounds;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use audio::asr::Shed;
use audio::wake::Head;
use common::aims::Aims;
use common::second::{Second, once_for_each};
use common::voices::Speaker;
use common::{ANY_SILENCE, TestGateway, argument, clip, clips, resident, row};
use firmware_sim::delays::Delays;
use firmware_sim::microphone::Clip;
use firmware_sim::random::Random;
use firmware_sim::transport::{Scheme, Target};
use firmware_sim::{Glasses, Options, Seen};
use frames::Frames;
use gateway::telemetry::TurnRecord;
use rounds::{Rounds, own_share_us};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

/// Computes without touching anything that another turn would see.
const SENTENCE: &str = "Hey Mentra, what is fifteen percent of eighty?";
/// The same, typed.
const TYPED: &str = "What is fifteen percent of eighty?";
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// How often it is looked at what there is.
const LOOKED: Duration = Duration::from_millis(500);
/// Clips of read speech, unless said.
const CLIPS: usize = 60;
/// How long memory is left alone before it is taken.
const SETTLED: Duration = Duration::from_secs(5);

fn main() -> Result<()> {
    if argument("--generator").is_some() {
        return common::runtime()?.block_on(generate());
    }
    if let Some(counts) = argument("--glasses").filter(|counts| counts.contains(',')) {
        return once_for_each("--glasses", &counts);
    }
    if common::flag("--idle") {
        return common::runtime()?.block_on(idle::run())?.judge();
    }
    if number("--typed", 0)? > 0 {
        return common::runtime()?.block_on(run())?.judge();
    }
    common::calibrate("before")?;
    let aims = common::runtime()?.block_on(run())?;
    common::calibrate("after")?;
    aims.judge()
}

fn number(name: &str, otherwise: usize) -> Result<usize> {
    Ok(usize::try_from(common::number(name, otherwise as u64)?)?)
}

/// The gateway's configuration: places for all, and a wake phrase that is heard in its sound.
fn settings(glasses: usize, users: usize, head: Option<&str>) -> Result<String> {
    // More than there are: half of them at most may be of glasses that are not known yet.
    let connections = 4 * glasses + 1_024;
    let limits = format!(
        "[limits]\nsessions = {}\nusers = {}\nconnections = {connections}\n{ANY_SILENCE}",
        glasses + 8,
        users + 8
    );
    let Some(file) = head else { return Ok(limits) };
    let file = std::fs::canonicalize(file).with_context(|| format!("--wake-head {file}"))?;
    let head = Head::load(&file)?;
    let phrase = &head.settings().phrase;
    Ok(format!("{limits}wake = \"acoustic\"\nwake_phrases = [{phrase:?}]\nwake_heads = [{file:?}]"))
}

/// The second process, on this gateway.
fn generator(gateway: &TestGateway, glasses: usize, duty: usize, head: Option<&str>) -> Result<Second> {
    let mut options = vec![
        ("--generator", gateway.target(Scheme::Ws)?.to_string()),
        ("--quic", gateway.target(Scheme::Quic)?.to_string()),
        ("--glasses", glasses.to_string()),
        ("--duty", duty.to_string()),
        ("--folder", gateway.folder.path().display().to_string()),
    ];
    if let Some(head) = head {
        options.extend([("--wake-head", head.to_owned()), ("--clips", number("--clips", CLIPS)?.to_string())]);
    }
    options.push(("--noise", number("--noise", 0)?.to_string()));
    options.extend(common::flag("--muted").then(|| ("--muted", String::new())));
    Second::start(&options)
}

/// What the gateway has counted up to a moment.
struct Counts {
    shed: Shed,
    /// Utterances lost: addressed, and others.
    lost: (u64, u64),
    /// Decodes by the first weights.
    decodes: u64,
    /// Wake phrases in the sound: heard, verified and denied by the text; utterances without one; and those not listened to.
    wake: [u64; 5],
}

impl Counts {
    fn now(gateway: &TestGateway) -> Self {
        let services = gateway.running.services();
        let engines = &services.engines;
        let wake = engines.wake_counts.get();
        Self {
            shed: engines.asr.shed(),
            lost: services.telemetry.losses.get(),
            decodes: engines.elsewhere.local.as_ref().map_or(0, |meter| meter.read().count),
            wake: [wake.heard, wake.verified, wake.vetoed, wake.unheard, wake.skipped],
        }
    }

    /// Prints what was counted in the seconds since then.
    fn report(&self, gateway: &TestGateway, turns: usize, seconds: f64) {
        let (before, now) = (self, Self::now(gateway));
        println!(
            "{turns} turns; decodes left out: {} partial, {} second passes, {} overheard, {} unsure, {} addressed",
            now.shed.partial - before.shed.partial,
            now.shed.second_pass - before.shed.second_pass,
            now.shed.overheard - before.shed.overheard,
            now.shed.unsure - before.shed.unsure,
            now.shed.addressed - before.shed.addressed
        );
        let (addressed, others) = (now.lost.0 - before.lost.0, now.lost.1 - before.lost.1);
        println!("utterances lost: {addressed} addressed and told, {others} others");
        let decodes = now.decodes - before.decodes;
        println!("{decodes} decodes by the first weights, {:.2} a second", decodes as f64 / seconds);
        if gateway.running.services().engines.wake.is_some() {
            let [heard, verified, vetoed, unheard, skipped]: [u64; 5] =
                std::array::from_fn(|index| now.wake[index] - before.wake[index]);
            println!(
                "wake phrases in the sound: {heard} heard, {verified} verified and {vetoed} denied by the text; \
                 {unheard} utterances without one, {skipped} not listened to in full"
            );
        }
    }
}

/// Lets its glasses in one by one.
async fn connect(generator: &mut Second, gateway: &TestGateway, numbers: Range<usize>, users: usize) -> Result<()> {
    for number in numbers {
        let fingerprint = generator.line().await?;
        gateway.pair(&fingerprint, &format!("user-{}", number % users));
        ensure!(generator.line().await? == "welcomed", "glasses {number} were not welcomed");
    }
    Ok(())
}

/// Prints what a session takes, in bytes: idle, and in the middle of a sentence. `alone`: without any session.
async fn report_memory(generator: &mut Second, alone: u64, glasses: usize) -> Result<()> {
    sleep(SETTLED).await;
    let idle = resident();
    generator.tell("once").await?;
    sleep(Duration::from_millis(2_500)).await;
    let streaming = resident();
    println!(
        "resident bytes per session over {glasses} sessions: idle {}, in the middle of a sentence {}",
        idle.saturating_sub(alone) / glasses as u64,
        streaming.saturating_sub(alone) / glasses as u64
    );
    while generator.line().await? != "done" {}
    Ok(())
}

/// The rounds that `--pages` asks for.
fn wanted_rounds(seconds: usize) -> Result<Option<Rounds>> {
    let (pages, count) = (number("--pages", 0)?, number("--rounds", 8)?);
    let length = Duration::from_secs_f64(seconds as f64 / (count + 2) as f64);
    Ok((pages > 0).then(|| Rounds::new(pages, length)))
}

/// Puts the load on a gateway; its aims.
async fn run() -> Result<Aims> {
    let (glasses, duty, seconds) = (number("--glasses", 50)?, number("--duty", 20)?, number("--seconds", 120)?);
    let typed = number("--typed", 0)?;
    let users = number("--users", glasses)?.max(1);
    let head = argument("--wake-head");
    let gateway = TestGateway::start(&settings(glasses, users, head.as_deref())?).await?;
    let is_acoustic = gateway.running.services().engines.wake.is_some();
    ensure!(is_acoustic == head.is_some(), "wake phrases are known by their text: the log says why");
    if typed == 0 && head.is_none() {
        warm_up(&gateway).await?;
    }
    let mut generator = generator(&gateway, glasses, duty, head.as_deref())?;
    let process = generator.id()?;

    let alone = resident();
    connect(&mut generator, &gateway, 0..glasses, users).await?;
    if typed == 0 {
        report_memory(&mut generator, alone, glasses).await?;
    }
    let known = keys(&gateway.running.services().telemetry.turns.last(usize::MAX));
    let counts = Counts::now(&gateway);
    let mut records = BTreeMap::new();
    let (busy, own, theirs) = (common::busy(), common::cpu_us("self"), common::cpu_us(&process));
    let threads = common::cpu_by_thread("self");
    let (began, mut rounds) = (Instant::now(), wanted_rounds(seconds)?);
    generator.tell(&if typed > 0 { format!("type {typed}") } else { format!("run {seconds}") }).await?;
    // All say their sentences in the second half of the starts.
    let (half, full) = (Duration::from_secs(seconds as u64 / 2), Duration::from_secs(seconds as u64));
    let (mut from, mut between) = (None, None);
    let summary = loop {
        // The gateway keeps the latest records only.
        match timeout(LOOKED, generator.line()).await {
            Err(_) => collect(&gateway, &mut records),
            Ok(line) => break line?,
        }
        if let Some(rounds) = rounds.as_mut().filter(|_| typed > 0 || began.elapsed() < full) {
            rounds.go_on(&gateway).await?;
        }
        if began.elapsed() < full {
            if began.elapsed() >= half && from.is_none() {
                from = Some(common::busy());
            }
            between = from.map(common::busy_percent);
        }
    };
    collect(&gateway, &mut records);
    let frames = if typed > 0 { None } else { Some(Frames::read(&generator.line().await?)?) };
    let elapsed = began.elapsed().as_secs_f64();
    println!("{glasses} glasses, {duty} % speech, {elapsed:.0} s: {summary}");
    println!(
        "processor: machine {:.0} % busy ({:.0} % in the second half of the starts), gateway {:.2} cores, generator {:.2} cores",
        common::busy_percent(busy),
        between.unwrap_or(f64::NAN),
        (common::cpu_us("self") - own) as f64 / 1e6 / elapsed,
        (common::cpu_us(&process) - theirs) as f64 / 1e6 / elapsed
    );
    let before: BTreeMap<String, u64> = threads.into_iter().collect();
    for (name, us) in common::cpu_by_thread("self") {
        let cores = us.saturating_sub(before.get(&name).copied().unwrap_or(0)) as f64 / 1e6 / elapsed;
        if cores >= 0.001 {
            println!("  gateway threads {name:16} {cores:.3} cores");
        }
    }
    records.retain(|key, _| !known.contains(key));
    counts.report(&gateway, records.len(), elapsed);
    let (turns, mut aims) = (records.into_values().collect::<Vec<_>>(), Aims::default());
    report(&turns);
    if let Some(frames) = frames {
        frames.report(&mut aims);
    }
    if let Some(rounds) = rounds {
        rounds.compare(&turns, &mut aims).await?;
    }
    generator.tell("quit").await?;
    generator.ended().await?;
    gateway.running.stop().await;
    Ok(aims)
}

type Key = (String, u32);

fn keys(records: &[TurnRecord]) -> Vec<Key> {
    records.iter().map(|record| (record.device.clone(), record.turn)).collect()
}

fn collect(gateway: &TestGateway, records: &mut BTreeMap<Key, TurnRecord>) {
    for record in gateway.running.services().telemetry.turns.last(usize::MAX) {
        records.insert((record.device.clone(), record.turn), record);
    }
}

/// The gateway's own share holds the turn's way through the user's task, the offline engine, the tool, every queue of the
/// runtime and the wait for the synthesis thread. The wait for recognition is told apart.
fn report(records: &[TurnRecord]) {
    let since = |later: Option<u64>, earlier: Option<u64>| Some(later? as i64 - earlier? as i64);
    let all = |pick: &dyn Fn(&TurnRecord) -> Option<i64>| records.iter().filter_map(pick).collect::<Vec<_>>();
    row("the gateway's own share of a turn", all(&own_share_us));
    row("  final -> first event of the model", all(&|turn| since(turn.model_first_us, turn.final_us)));
    row("  first event -> tool called", all(&|turn| since(turn.tool_start_us, turn.model_first_us)));
    row("  tool called -> result", all(&|turn| since(turn.tool_end_us, turn.tool_start_us)));
    row("  result -> first clause", all(&|turn| since(turn.first_clause_us, turn.tool_end_us)));
    row(
        "  first clause -> frame, less synthesis",
        all(&|turn| Some(since(turn.first_frame_us, turn.first_clause_us)? - turn.tts_us? as i64)),
    );
    row("synthesis", all(&|turn| Some(turn.tts_us? as i64)));
    row("wait for a synthesis thread", all(&|turn| Some(turn.tts_queue_us? as i64)));
    row("last voice -> final", all(&|turn| since(turn.final_us, turn.last_voice_us)));
    row("end decided -> final (recognition)", all(&|turn| since(turn.final_us, turn.end_decided_us)));
    row("wait for a recognition thread", all(&|turn| Some(turn.asr_queue_us? as i64)));
    row("final decode", all(&|turn| Some(turn.asr_decode_us? as i64)));
    row("last voice -> first speech frame", all(&|turn| since(turn.first_frame_us, turn.last_voice_us)));
}

/// One turn, so that what is made once is not counted to the first session.
async fn warm_up(gateway: &TestGateway) -> Result<()> {
    let glasses = gateway.glasses(gateway.options(Scheme::Ws, "warm-up")?, "warm-up").await?;
    let pcm = Speaker::FLITE.say(SENTENCE, gateway.folder.path())?;
    for _ in 0..2 {
        let known = gateway.turns(&glasses).len();
        glasses.say_pcm(SENTENCE, &pcm, None).await?;
        common::until(ANSWER_MAX, || gateway.turns(&glasses).len() > known).await;
    }
    glasses.goodbye().await;
    Ok(())
}

// The second process.

async fn generate() -> Result<()> {
    let folder = PathBuf::from(argument("--folder").context("--folder")?);
    let (count, duty) = (number("--glasses", 50)?, number("--duty", 20)?);
    let targets: [Target; 2] =
        [argument("--generator").context("--generator")?.parse()?, argument("--quic").context("--quic")?.parse()?];
    let speech = Arc::new(Speech::load(&folder, duty)?);
    let (silence, delays) = (common::quiet(u16::try_from(number("--noise", 0)?)?)?, Arc::new(Delays::default()));
    let mut glasses = Vec::new();
    for number in 0..count {
        let target = targets.iter().cycle().nth(number).context("two targets")?.clone();
        let mut options = Options::new(target, &folder.join(format!("glasses-{number}")));
        options.decode = false;
        options.silence = Some(silence.clone());
        options.delays = Some(delays.clone());
        options.seed = number as u64;
        let mut one = Glasses::start(options)?;
        println!("{}", one.fingerprint());
        one.welcomed().await?;
        if common::flag("--muted") {
            one.mute(true).await?;
        }
        println!("welcomed");
        glasses.push(Arc::new(one));
    }
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    while let Some(command) = commands.next_line().await? {
        let mut words = command.split_whitespace();
        let ends = match (words.next(), words.next()) {
            (Some("once"), _) => None,
            (Some("type"), Some(times)) => {
                let times: usize = times.parse()?;
                for _ in 0..times {
                    for one in &glasses {
                        answer(one, one.text(TYPED)).await?;
                    }
                }
                println!("{} sentences typed and answered aloud", times * count);
                continue;
            }
            (Some("run"), Some(seconds)) => Some(Instant::now() + Duration::from_secs(seconds.parse()?)),
            _ => break,
        };
        delays.clear();
        let mut tasks = JoinSet::new();
        for (number, one) in glasses.iter().enumerate() {
            tasks.spawn(live(one.clone(), speech.clone(), number as u64, ends));
        }
        let (mut said, mut answered) = (0, 0);
        while let Some(done) = tasks.join_next().await {
            let (of_one, of_those) = done??;
            said += of_one;
            answered += of_those;
        }
        let lost: usize = glasses.iter().map(|one| lost_sessions(one)).sum();
        if ends.is_some() {
            println!("{said} sentences, {answered} answered aloud, {lost} sessions lost or in violation");
            let within = |share| delays.quantile_ms(share).unwrap_or(0);
            let (count, median_ms, p99_ms) = (delays.count(), within(0.5), within(0.99));
            println!("{}", Frames { count, median_ms, p99_ms, lost: lost as u64 }.tell());
        } else {
            println!("done");
        }
    }
    Ok(())
}

/// Sessions that were lost, or in violation, each printed. One that goes on over another link is not lost.
fn lost_sessions(one: &Glasses) -> usize {
    let (mut lost, mut is_linked) = (0, true);
    for event in one.log().since(0) {
        match &event.seen {
            Seen::Welcome { resumed, .. } => {
                lost += usize::from(!is_linked && !resumed);
                is_linked = true;
                continue;
            }
            Seen::LinkLost { .. } => is_linked = false,
            Seen::Goodbye { .. } | Seen::Violation { .. } => lost += 1,
            _ => continue,
        }
        eprintln!("after {} ms: {:?}", event.at_us / 1_000, event.seen);
    }
    lost + usize::from(!is_linked)
}

/// Asks and waits for the first sound of the answer; the rest of it sounds while others ask.
async fn answer<T>(one: &Glasses, asking: impl Future<Output = Result<T, firmware_sim::Error>>) -> Result<()> {
    let mark = one.log().mark();
    asking.await?;
    let heard = one.log().find(mark, |event| matches!(event.seen, Seen::FirstSound { .. }));
    timeout(ANSWER_MAX, heard).await.context("no answer was heard")?;
    Ok(())
}

/// What the glasses say, coded once for all of them.
struct Speech {
    clips: Vec<Clip>,
    /// Percent of the time.
    duty: usize,
    /// Whether an answer follows.
    is_answered: bool,
}

impl Speech {
    /// The sum; or read speech that names nobody, if the gateway listens for its wake phrase by its sound.
    fn load(folder: &Path, duty: usize) -> Result<Self> {
        if argument("--wake-head").is_none() {
            let clips = vec![clip("sum", &Speaker::FLITE.say(SENTENCE, folder)?)?];
            return Ok(Self { clips, duty, is_answered: true });
        }
        let mut read = clips::all()?;
        read.retain(|clip| !clip.development);
        read.truncate(number("--clips", CLIPS)?);
        ensure!(!read.is_empty(), "there is nothing to say");
        let clips = read.iter().map(|read| clip(&read.name, &read.pcm)).collect::<Result<_>>()?;
        Ok(Self { clips, duty, is_answered: false })
    }

    /// The next clip, and the time from its beginning to that of the one behind it.
    fn draw(&self, random: &mut Random) -> (&Clip, Duration) {
        let clip = &self.clips[random.below(self.clips.len() as u64) as usize];
        (clip, Duration::from_secs_f64(clip.voiced_us as f64 / 1e6 * 100.0 / self.duty as f64))
    }
}

/// Says something once, or again and again at its own times.
async fn live(glasses: Arc<Glasses>, speech: Arc<Speech>, seed: u64, ends: Option<Instant>) -> Result<(usize, usize)> {
    let mut random = Random::new(seed + 1);
    let mut next = Instant::now();
    if ends.is_some() {
        // Glasses that all spoke at once would measure a queue that no household has.
        let (_, period) = speech.draw(&mut random);
        next += period.mul_f64(random.unit());
    }
    let (mut said, mut answered) = (0, 0);
    loop {
        sleep_until(next).await;
        if ends.is_some_and(|ends| next >= ends) {
            return Ok((said, answered));
        }
        let (clip, period) = speech.draw(&mut random);
        let mark = glasses.log().mark();
        // A session that was lost says no more, and is counted.
        let Ok(spoken) = glasses.say(clip.clone()).await else {
            return Ok((said, answered));
        };
        said += 1;
        let sound = glasses
            .log()
            .find(mark, |event| event.at_us > spoken.t0_us && matches!(event.seen, Seen::SpeechHeard { .. }));
        if ends.is_none() {
            let within = if speech.is_answered { ANSWER_MAX } else { Duration::ZERO };
            return Ok((said, answered + usize::from(timeout(within, sound).await.is_ok())));
        }
        next = (next + period).max(Instant::now());
        answered += usize::from(timeout_at(next, sound).await.is_ok());
    }
}
