//! Many glasses at once: the gateway's own share of a turn, processor time, and bytes per session.
//!
//! `cargo xtask bench load [--glasses 50] [--duty 20] [--seconds 120] [--typed 0] [--users GLASSES] [--pages 0]`
//!
//! Each pair of glasses has a user of its own, unless there are to be fewer: turns of one user wait for one another. A sentence
//! is said at its own time, whatever became of the one before, so that what is lost takes no load away.
//!
//! With `--typed`, the glasses type the sum instead, one after the other and so many times each: nothing is recognised,
//! so that what is left of a turn can be timed, and counted by a profiler, undisturbed.
//!
//! `--pages`: so many pages of the console with all sessions are looked at meanwhile.
//!
//! The glasses run in a second process, from packets that were coded beforehand, so that their processor
//! time is told apart from the gateway's. Half of them use QUIC. They say a sum and hear the answer.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use common::second::Second;
use common::voices::Speaker;
use common::{ANY_SILENCE, House, argument, clip, resident, row};
use firmware_sim::microphone::Clip;
use firmware_sim::random::Random;
use firmware_sim::transport::{Scheme, Target};
use firmware_sim::{Glasses, Options, Seen};
use gateway::telemetry::TurnRecord;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

/// Computes without touching anything that another turn would see.
const SENTENCE: &str = "Hey Mentra, what is fifteen percent of eighty?";
/// The same, typed.
const TYPED: &str = "What is fifteen percent of eighty?";
const ANSWER_MAX: Duration = Duration::from_secs(30);

fn main() -> Result<()> {
    if argument("--generator").is_some() {
        return common::runtime()?.block_on(generate());
    }
    if number("--typed", 0)? > 0 {
        return common::runtime()?.block_on(run());
    }
    common::calibrate("before")?;
    common::runtime()?.block_on(run())?;
    common::calibrate("after")
}

fn number(name: &str, otherwise: usize) -> Result<usize> {
    Ok(usize::try_from(common::number(name, otherwise as u64)?)?)
}

/// The second process, on this house.
fn generator(house: &House, glasses: usize, duty: usize) -> Result<Second> {
    Second::start(&[
        ("--generator", house.target(Scheme::Ws)?.to_string()),
        ("--quic", house.target(Scheme::Quic)?.to_string()),
        ("--glasses", glasses.to_string()),
        ("--duty", duty.to_string()),
        ("--folder", house.folder.path().display().to_string()),
    ])
}

/// Lets its glasses in one by one.
async fn connect(generator: &mut Second, house: &House, glasses: usize, users: usize) -> Result<()> {
    for number in 0..glasses {
        let fingerprint = generator.line().await?;
        house.pair(&fingerprint, &format!("user-{}", number % users));
        ensure!(generator.line().await? == "welcomed", "glasses {number} were not welcomed");
    }
    Ok(())
}

/// Prints what a session takes, in bytes: idle, and in the middle of a sentence. `alone`: without any session.
async fn report_memory(generator: &mut Second, alone: u64, glasses: usize) -> Result<()> {
    sleep(Duration::from_secs(5)).await;
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

async fn run() -> Result<()> {
    let (glasses, duty, seconds) = (number("--glasses", 50)?, number("--duty", 20)?, number("--seconds", 120)?);
    let (typed, looked_at) = (number("--typed", 0)?, number("--pages", 0)?);
    let users = number("--users", glasses)?.max(1);
    let limits = format!("[limits]\nsessions = {}\nusers = {}\n", glasses + 8, users + 8);
    let house = House::start(&(limits + ANY_SILENCE)).await?;
    if typed == 0 {
        warm_up(&house).await?;
    }
    let mut generator = generator(&house, glasses, duty)?;
    let process = generator.id()?;

    let alone = resident();
    connect(&mut generator, &house, glasses, users).await?;
    if typed == 0 {
        report_memory(&mut generator, alone, glasses).await?;
    }
    let pages = common::pages::open(&house, looked_at).await?;

    let services = house.running.services();
    let known = keys(&services.telemetry.turns.last(usize::MAX));
    let (shed, lost) = (services.engines.asr.shed(), services.telemetry.losses.get());
    let mut records = BTreeMap::new();
    let (busy, own, theirs) = (common::busy(), common::cpu_us("self"), common::cpu_us(&process));
    let threads = common::cpu_by_thread("self");
    let began = Instant::now();
    generator.tell(&if typed > 0 { format!("type {typed}") } else { format!("run {seconds}") }).await?;
    // All say their sentences in the second half of the starts.
    let (half, full) = (Duration::from_secs(seconds as u64 / 2), Duration::from_secs(seconds as u64));
    let (mut from, mut between) = (None, None);
    let summary = loop {
        // The gateway keeps the latest records only.
        match timeout(Duration::from_secs(2), generator.line()).await {
            Err(_) => collect(&house, &mut records),
            Ok(line) => break line?,
        }
        if began.elapsed() < full {
            if began.elapsed() >= half && from.is_none() {
                from = Some(common::busy());
            }
            between = from.map(common::busy_percent);
        }
    };
    collect(&house, &mut records);
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
    let (before, now) = (shed, services.engines.asr.shed());
    println!(
        "{} turns; decodes left out: {} partial, {} second passes, {} overheard, {} unsure, {} addressed",
        records.len(),
        now.partial - before.partial,
        now.second_pass - before.second_pass,
        now.overheard - before.overheard,
        now.unsure - before.unsure,
        now.addressed - before.addressed
    );
    let (addressed, others) = services.telemetry.losses.get();
    println!("utterances lost: {} addressed and told, {} others", addressed - lost.0, others - lost.1);
    report(&records.into_values().collect::<Vec<_>>());
    generator.tell("quit").await?;
    generator.ended().await?;
    house.running.stop().await;
    for page in pages.join_all().await {
        println!("a page of the console received {page} bytes");
    }
    Ok(())
}

type Key = (String, u32);

fn keys(records: &[TurnRecord]) -> Vec<Key> {
    records.iter().map(|record| (record.device.clone(), record.turn)).collect()
}

fn collect(house: &House, records: &mut BTreeMap<Key, TurnRecord>) {
    for record in house.running.services().telemetry.turns.last(usize::MAX) {
        records.insert((record.device.clone(), record.turn), record);
    }
}

/// The gateway's own share: from the accepted final to the first speech frame, less the synthesis itself.
/// That holds the turn's way through the user's task, the offline engine, the tool, every queue of the
/// runtime and the wait for the synthesis thread. The wait for recognition is told apart.
fn report(records: &[TurnRecord]) {
    let since = |later: Option<u64>, earlier: Option<u64>| Some(later? as i64 - earlier? as i64);
    let all = |pick: &dyn Fn(&TurnRecord) -> Option<i64>| records.iter().filter_map(pick).collect::<Vec<_>>();
    row(
        "the gateway's own share of a turn",
        all(&|turn| Some(since(turn.first_frame_us, turn.final_us)? - turn.tts_us? as i64)),
    );
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
    row("end decided -> final (recognition)", all(&|turn| since(turn.final_us, turn.end_decided_us)));
    row("wait for a recognition thread", all(&|turn| Some(turn.asr_queue_us? as i64)));
    row("final decode", all(&|turn| Some(turn.asr_decode_us? as i64)));
    row("last voice -> first speech frame", all(&|turn| since(turn.first_frame_us, turn.last_voice_us)));
}

/// One turn, so that what is made once is not counted to the first session.
async fn warm_up(house: &House) -> Result<()> {
    let glasses = house.glasses(house.options(Scheme::Ws, "warm-up")?, "warm-up").await?;
    let pcm = Speaker::FLITE.say(SENTENCE, house.folder.path())?;
    for _ in 0..2 {
        let known = house.turns(&glasses).len();
        glasses.say_pcm(SENTENCE, &pcm, None).await?;
        common::until(ANSWER_MAX, || house.turns(&glasses).len() > known).await;
    }
    glasses.goodbye().await;
    Ok(())
}

// The second process.

async fn generate() -> Result<()> {
    let folder = std::path::PathBuf::from(argument("--folder").context("--folder")?);
    let (count, duty) = (number("--glasses", 50)?, number("--duty", 20)?);
    let targets: [Target; 2] =
        [argument("--generator").context("--generator")?.parse()?, argument("--quic").context("--quic")?.parse()?];
    let pcm = Speaker::FLITE.say(SENTENCE, &folder)?;
    let clip = clip("sum", &pcm)?;
    let period = Duration::from_secs_f64(clip.voiced_us as f64 / 1e6 * 100.0 / duty as f64);
    let silence = common::silence()?;
    let mut glasses = Vec::new();
    for number in 0..count {
        let target = targets.iter().cycle().nth(number).context("two targets")?.clone();
        let mut options = Options::new(target, &folder.join(format!("glasses-{number}")));
        options.decode = false;
        options.silence = Some(silence.clone());
        options.seed = number as u64;
        let mut one = Glasses::start(options)?;
        println!("{}", one.fingerprint());
        one.welcomed().await?;
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
        let mut tasks = JoinSet::new();
        for (number, one) in glasses.iter().enumerate() {
            tasks.spawn(live(one.clone(), clip.clone(), number as u64, ends, period));
        }
        let (mut said, mut answered) = (0, 0);
        while let Some(done) = tasks.join_next().await {
            let (of_one, of_those) = done??;
            said += of_one;
            answered += of_those;
        }
        let lost = glasses.iter().flat_map(|one| one.log().since(0));
        let lost = lost.filter(|event| {
            matches!(event.seen, Seen::LinkLost { .. } | Seen::Goodbye { .. } | Seen::Violation { .. })
        });
        let lost = lost.count();
        if ends.is_some() {
            println!("{said} sentences, {answered} answered aloud, {lost} sessions lost or in violation");
        } else {
            println!("done");
        }
    }
    Ok(())
}

/// Asks and waits for the first sound of the answer; the rest of it sounds while others ask.
async fn answer<T>(one: &Glasses, asking: impl Future<Output = Result<T, firmware_sim::Error>>) -> Result<()> {
    let mark = one.log().mark();
    asking.await?;
    let heard = one.log().find(mark, |event| matches!(event.seen, Seen::FirstSound { .. }));
    timeout(ANSWER_MAX, heard).await.context("no answer was heard")?;
    Ok(())
}

/// Says the sentence once, or again and again at its own times.
async fn live(
    glasses: Arc<Glasses>,
    clip: Clip,
    seed: u64,
    ends: Option<Instant>,
    period: Duration,
) -> Result<(usize, usize)> {
    let mut random = Random::new(seed + 1);
    let mut next = Instant::now();
    if ends.is_some() {
        // Glasses that all spoke at once would measure a queue that no house has.
        next += period.mul_f64(random.unit());
    }
    let (mut said, mut answered) = (0, 0);
    loop {
        sleep_until(next).await;
        if ends.is_some_and(|ends| next >= ends) {
            return Ok((said, answered));
        }
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
            return Ok((said, answered + usize::from(timeout(ANSWER_MAX, sound).await.is_ok())));
        }
        next = (next + period).max(Instant::now());
        answered += usize::from(timeout_at(next, sound).await.is_ok());
    }
}
