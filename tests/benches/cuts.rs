//! Random cuts of the link in the middle of everything: what is lost, what is done twice, and how soon a session goes on.
//!
//! `cargo xtask bench cuts [--cuts 1000] [--glasses 12] [--seed 1] [--delay MS]`
//!
//! Each pair of glasses says one sentence after the other, from packets that were coded beforehand. At a random moment
//! of each turn its link breaks, and comes back after a random time over WebSocket or QUIC, whichever is drawn. Three
//! groups: 85 of 100 cuts last 0.2 to 10 s, the time for which glasses keep their sound; 10 last up to 25 s; 5 last
//! longer than a session waits. `--delay`: one-way delay of the network in milliseconds.
//!
//! The figures of a turn without a cut are taken first, from the same glasses and the same packets.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use common::{FRAME_US, House, coded, number, quantile};
use firmware_sim::microphone::Clip;
use firmware_sim::network::{Conditions, Profile};
use firmware_sim::random::Random;
use firmware_sim::transport::Scheme;
use firmware_sim::{Event, Glasses, Seen};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// A note is kept by each of the first two: what is done twice shows in their number.
const SENTENCES: [(&str, bool); 4] = [
    ("Hey Mentra, take a note: buy oat milk.", true),
    ("Hey Mentra, take a note: call the dentist tomorrow.", true),
    ("Hey Mentra, what is fifteen percent of eighty?", false),
    ("Hey Mentra, what is twelve times three?", false),
];
/// The sentence after all cuts.
const LAST: usize = 2;
/// Words of the sentences by which a wearer is told of a loss.
const TOLD: [&str; 2] = ["did not catch that", "connection was lost"];
/// How long a session waits for its glasses, in seconds.
const RESUME_S: u64 = 30;
/// When in a turn the link may break, in milliseconds from the first sample: the answer is over by then.
const TURN_MS: u64 = 7_000;
/// Rounds of the longer handshake, WebSocket's with TCP and TLS.
const HANDSHAKE_ROUNDS: u64 = 5;
/// How much longer than the handshake's rounds a resume may take, in microseconds.
const MORE_US_MAX: i64 = 100_000;
/// How long a turn may take beyond its cut.
const TURN_MAX: Duration = Duration::from_secs(60);

/// How long links stay broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// Not longer than glasses keep their sound.
    Kept,
    /// Longer, but the session waits.
    Long,
    /// Longer than the session waits.
    Expired,
}

impl Group {
    const ALL: [(Self, u64, [u64; 2]); 3] = [
        (Self::Kept, 85, [200, 9_500]),
        (Self::Long, 10, [10_500, 25_000]),
        (Self::Expired, 5, [RESUME_S * 1_000 + 2_000, RESUME_S * 1_000 + 5_000]),
    ];
}

/// What became of a turn.
#[derive(Clone, Debug, Default)]
struct Outcome {
    group: Option<Group>,
    gap_ms: u64,
    cut_ms: u64,
    over: &'static str,
    /// From the moment at which the network was there again to the welcome, in microseconds.
    back_us: i64,
    resumed: bool,
    transcripts: Vec<String>,
    /// Speeches: how much was played, and whether it was all.
    heard: Vec<(u64, bool)>,
    violations: Vec<String>,
    /// What is other than in the turn without a cut.
    differences: Vec<&'static str>,
    /// The wearer was told that something was not heard, or that the answer was cut.
    told: bool,
    /// The last turn, after all cuts, had no answer.
    stuck: bool,
}

fn main() -> Result<()> {
    common::calibrate("before")?;
    common::runtime()?.block_on(run())
}

async fn run() -> Result<()> {
    let (cuts, count, seed) = (number("--cuts", 1_000)?, number("--glasses", 12)?, number("--seed", 1)?);
    let delay_us = number("--delay", 0)? * 1_000;
    let house = Arc::new(House::start(&format!("[limits]\nresume_s = {RESUME_S}\n")).await?);
    let clips: Vec<Clip> = SENTENCES.iter().map(|(text, _)| coded(text, house.folder.path())).collect::<Result<_>>()?;
    let silence = common::silence()?;
    println!("{cuts} cuts, {count} glasses, seed {seed}, one-way delay {} ms", delay_us / 1_000);
    let mut whole = true;
    for (group, share, gap_ms) in Group::ALL {
        let wanted = (cuts * share).div_ceil(100);
        let mut tasks = JoinSet::new();
        let before = house.running.services().telemetry.sound.get();
        let mut turns = 0;
        for one in 0..count.min(wanted) {
            let quota = wanted / count.min(wanted) + u64::from(one < wanted % count.min(wanted));
            turns += quota;
            let name = format!("{group:?}-{one}").to_lowercase();
            let mut options = house.options(scheme(&mut Random::new(seed + one)), &name)?;
            options.decode = false;
            options.silence = Some(silence.clone());
            let delay = Duration::from_micros(delay_us);
            options.network = (delay_us > 0).then(|| Profile::steady(Conditions { delay, ..Conditions::default() }));
            options.seed = seed ^ one;
            let glasses = house.glasses(options, &name).await?;
            let (house, clips) = (house.clone(), clips.clone());
            let random = Random::new(seed.wrapping_mul(1_000_003) ^ (one << 8) ^ gap_ms[1]);
            tasks.spawn(live(house, glasses, name, clips, (group, gap_ms, quota), random));
        }
        let (mut outcomes, mut notes) = (Vec::new(), (0, 0));
        while let Some(done) = tasks.join_next().await {
            let (of_one, said, kept) = done??;
            outcomes.extend(of_one);
            notes = (notes.0 + said, notes.1 + kept);
        }
        let after = house.running.services().telemetry.sound.get();
        let most_back_us = i64::try_from(HANDSHAKE_ROUNDS * 2 * delay_us)? + MORE_US_MAX;
        let sound = (after.0 - before.0, after.1 - before.1);
        whole &= report(group, turns, &outcomes, notes, sound, most_back_us);
    }
    println!("sessions left over: {}", house.running.services().roster.all().len());
    ensure!(whole, "not as required");
    Ok(())
}

fn scheme(random: &mut Random) -> Scheme {
    if random.below(2) == 0 { Scheme::Wss } else { Scheme::Quic }
}

/// The life of one pair of glasses; its outcomes, and the notes that were asked for and that there are.
async fn live(
    house: Arc<House>,
    mut glasses: Glasses,
    user: String,
    clips: Vec<Clip>,
    (group, gap_ms, quota): (Group, [u64; 2], u64),
    mut random: Random,
) -> Result<(Vec<Outcome>, u64, u64)> {
    let mut whole = BTreeMap::new();
    let mut outcomes = Vec::new();
    let mut notes = 0;
    for (index, clip) in clips.iter().enumerate() {
        let mark = glasses.log().mark();
        let outcome = turn(&house, &mut glasses, clip, None).await?;
        if outcome.transcripts.is_empty() {
            bail!("{user}: no transcript without a cut: {:#?}", glasses.log().since(mark));
        }
        notes += u64::from(SENTENCES[index].1);
        whole.insert(index, outcome);
    }
    for _ in 0..quota {
        let index = random.below(clips.len() as u64) as usize;
        let (cut, gap) = (random.below(TURN_MS), gap_ms[0] + random.below(gap_ms[1] - gap_ms[0]));
        let plan = (Duration::from_millis(cut), Duration::from_millis(gap), scheme(&mut random));
        let mut outcome = turn(&house, &mut glasses, &clips[index], Some(plan)).await?;
        outcome.group = Some(group);
        notes += u64::from(SENTENCES[index].1);
        if group == Group::Kept {
            compare(&whole[&index], &mut outcome);
        }
        outcomes.push(outcome);
    }
    // Whatever was lost before: who speaks now is answered.
    let last = turn(&house, &mut glasses, &clips[LAST], None).await?;
    if let Some(outcome) = outcomes.last_mut() {
        outcome.stuck = !last.heard.iter().any(|(_, all)| *all);
    }
    notes += u64::from(SENTENCES[LAST].1);
    glasses.goodbye().await;
    let kept = house.running.services().store.disk().notes(&user, 100_000, |_| true)?.len() as u64;
    Ok((outcomes, notes, kept))
}

/// One sentence and its answer; `plan`: when the link breaks, for how long, and over what it comes back.
async fn turn(
    house: &House,
    glasses: &mut Glasses,
    clip: &Clip,
    plan: Option<(Duration, Duration, Scheme)>,
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    glasses.forget();
    let mark = glasses.log().mark();
    let saying = glasses.say(clip.clone());
    let breaking = async {
        let Some((cut, gap, scheme)) = plan else { return Ok(None) };
        sleep(cut).await;
        glasses.cut().await?;
        sleep(gap).await;
        let began_us = glasses.now_us();
        glasses.reconnect(Some(house.target(scheme)?)).await?;
        let welcome = |event: &Event| event.at_us >= began_us && matches!(event.seen, Seen::Welcome { .. });
        let found = timeout(TURN_MAX, glasses.log().find(mark, welcome)).await;
        let (event, _) = found.with_context(|| format!("no welcome; seen: {:#?}", glasses.log().since(mark)))?;
        let resumed = matches!(event.seen, Seen::Welcome { resumed: true, .. });
        anyhow::Ok(Some((event.at_us - began_us, resumed)))
    };
    let (said, broke) = tokio::join!(saying, breaking);
    said?;
    if let (Some((back_us, resumed)), Some((cut, gap, scheme))) = (broke?, plan) {
        outcome.back_us = i64::try_from(back_us)?;
        outcome.resumed = resumed;
        outcome.cut_ms = cut.as_millis().try_into()?;
        outcome.gap_ms = gap.as_millis().try_into()?;
        outcome.over = scheme.name();
    }
    let whole = |event: &Event| matches!(event.seen, Seen::SpeechHeard { complete: true, .. });
    // Of a sentence that was too old to be kept nothing may come.
    drop(timeout(TURN_MAX, glasses.log().find(mark, whole)).await);
    // What comes twice comes soon.
    sleep(Duration::from_millis(1_500)).await;
    for event in glasses.log().since(mark) {
        match event.seen {
            Seen::Transcript { is_final: true, addressed: true, text, .. } => outcome.transcripts.push(text),
            Seen::SpeechHeard { played_us, complete, text, .. } => {
                outcome.told |= TOLD.iter().any(|words| text.contains(words));
                outcome.heard.push((played_us, complete));
            }
            Seen::Violation { what } => outcome.violations.push(what),
            _ => {}
        }
    }
    Ok(outcome)
}

/// Notes what is other than in the turn without a cut.
fn compare(whole: &Outcome, cut: &mut Outcome) {
    if whole.transcripts != cut.transcripts {
        println!(
            "cut at {} ms for {} ms over {}: transcripts {:?}, without a cut {:?}",
            cut.cut_ms, cut.gap_ms, cut.over, cut.transcripts, whole.transcripts
        );
        cut.differences.push("transcript");
    }
    let differs = match (whole.heard.as_slice(), cut.heard.as_slice()) {
        ([(whole_us, true)], [(cut_us, true)]) => whole_us.abs_diff(*cut_us) > FRAME_US,
        _ => true,
    };
    if differs {
        println!(
            "cut at {} ms for {} ms over {}: heard {:?}, without a cut {:?}",
            cut.cut_ms, cut.gap_ms, cut.over, cut.heard, whole.heard
        );
        cut.differences.push("answer");
    }
}

/// Prints what became of a group; whether it is as required. `most_back_us`: bound of 95 % of the times from reachable to
/// resumed.
fn report(
    group: Group,
    turns: u64,
    outcomes: &[Outcome],
    notes: (u64, u64),
    sound: (u64, u64),
    most_back_us: i64,
) -> bool {
    let count = |which: &dyn Fn(&Outcome) -> bool| outcomes.iter().filter(|one| which(one)).count();
    let mut back: Vec<i64> = outcomes.iter().map(|one| one.back_us).collect();
    let ms = |us: Option<i64>| us.unwrap_or(0) as f64 / 1e3;
    println!("\n{group:?}: {turns} cuts");
    println!("  resumed {}, new session {}", count(&|one| one.resumed), count(&|one| !one.resumed));
    println!(
        "  one transcript {}, none {}, several {}",
        count(&|one| one.transcripts.len() == 1),
        count(&|one| one.transcripts.is_empty()),
        count(&|one| one.transcripts.len() > 1)
    );
    println!(
        "  answers heard to their end {}, of these told of the loss {}, no answer {}; glasses stuck at the end {}",
        count(&|one| one.heard.iter().any(|(_, all)| *all)),
        count(&|one| one.told),
        count(&|one| !one.heard.iter().any(|(_, all)| *all)),
        count(&|one| one.stuck)
    );
    println!(
        "  other transcripts {}, answers of another length {}, protocol violations {}",
        count(&|one| one.differences.contains(&"transcript")),
        count(&|one| one.differences.contains(&"answer")),
        count(&|one| !one.violations.is_empty())
    );
    println!("  notes asked for {}, notes there {}", notes.0, notes.1);
    println!("  packets heard {}, lost {}", sound.0, sound.1);
    println!(
        "  from reachable to resumed: median {:.0} ms, 95 % {:.0} ms, longest {:.0} ms",
        ms(quantile(&mut back, 0.5)),
        ms(quantile(&mut back, 0.95)),
        ms(quantile(&mut back, 1.0))
    );
    let nothing_lost = group != Group::Kept
        || (notes.0 == notes.1
            && sound.1 == 0
            && quantile(&mut back, 0.95).is_some_and(|us| us <= most_back_us)
            && outcomes.iter().all(|one| one.resumed && one.transcripts.len() == 1 && one.differences.is_empty()));
    nothing_lost && notes.1 <= notes.0 && outcomes.iter().all(|one| !one.stuck && one.violations.is_empty())
}
