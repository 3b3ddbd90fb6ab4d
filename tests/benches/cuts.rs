//! Random cuts of the link in the middle of everything: what is lost, what is done twice, and how soon a session goes on.
//!
//! `cargo xtask bench cuts [--cuts 1000] [--glasses 12] [--seed 1] [--delay MS] [--silent PERCENT]`
//!
//! Each pair of glasses does one thing after the other. At a random moment its link breaks: in a spoken sentence or its
//! answer, while the wearer is asked, while a tool or a mini-app is at work, or while it is muted. It comes back after a
//! random time over WebSocket or QUIC, whichever is drawn; one of five links breaks again within 0.3 s, and of one of five
//! the address changes then, where it is QUIC. Three groups: 85 of 100 cuts are as long as all glasses keep their sound (10 s,
//! less what was not acknowledged when the link broke, and the handshake); 10 last up to 25 s; 5 last longer than a session
//! waits, and begin while an answer is owed. `--delay`: one-way delay of the network in milliseconds. `--silent`: of so many
//! cuts of the first two groups nothing tells the gateway; it sees the end of the others.
//!
//! The figures of a turn without a cut are taken first, from the same glasses and the same packets. It ends with an error
//! where a cut of the first group loses a packet, changes a transcript or an answer, or takes longer to resume than the
//! transport's handshake and 100 ms (at 95 %); where one of the second group does not resume, changes the answer to a
//! sentence that was understood, or leaves a request unanswered without a word about it; where one of the third is not told;
//! and where a turn does not end, a part of what is said does not come, a tool runs twice, a session of an app begins anew,
//! glasses are not answered any more, or a session stays behind.

mod common;
#[path = "cuts/plan.rs"]
mod plan;
#[path = "cuts/stage.rs"]
mod stage;
#[path = "cuts/turn.rs"]
mod turn;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use common::{ANY_SILENCE, TestGateway, coded, number, quantile, until};
use firmware_sim::Glasses;
use firmware_sim::microphone::Clip;
use firmware_sim::random::Random;
use firmware_sim::transport::Scheme;
use plan::{Group, Plan, State, network, scheme};
use stage::Done;
use tokio::task::JoinSet;
use turn::{Outcome, Wearer, compare};

/// A note is kept by each of the first two, whose answers are the longest: what is done twice shows in their number.
const SENTENCES: [(&str, bool); 4] = [
    ("Hey Mentra, take a note: buy oat milk.", true),
    ("Hey Mentra, take a note: call the dentist tomorrow.", true),
    ("Hey Mentra, what is fifteen percent of eighty?", false),
    ("Hey Mentra, what is twelve times three?", false),
];
/// The sentence after all cuts.
const LAST: usize = 2;
/// Users that a gateway has. Each pair of glasses of each of the three groups has one of its own.
const USERS_MAX: u64 = 64;
/// How long a session waits for its glasses, in seconds.
const RESUME_S: u64 = 30;
/// How long a session may stay when its glasses are switched off: as long as one waits whose glasses were given up.
const GONE_MAX: Duration = Duration::from_secs(RESUME_S + 10);
/// Sound that all glasses keep; these keep more.
const KEPT_MS: u64 = 10_000;
/// What of it was not acknowledged when the link broke, and what else takes its time.
const UNACKNOWLEDGED_MS: u64 = 500;
const LONG_MS: u64 = 25_000;
/// Round trips of the handshakes, those of TCP, TLS and QUIC included.
const ROUNDS: [(Scheme, u64); 2] = [(Scheme::Quic, 3), (Scheme::Wss, 5)];
/// How much longer than the handshake's rounds a resume may take, in microseconds.
const MORE_US_MAX: i64 = 100_000;
/// Of 100 cuts of the last group, how many have to come while an answer is owed.
const OWED_MIN: usize = 80;

/// Of 100 cuts, how many are of each group, and how long they last, in milliseconds.
fn groups(delay_ms: u64) -> [(Group, u64, [u64; 2]); 3] {
    let rounds = ROUNDS.iter().map(|(_, rounds)| rounds * 2 * delay_ms).max().unwrap_or(0);
    let kept = KEPT_MS.saturating_sub(UNACKNOWLEDGED_MS + rounds).max(400);
    [
        (Group::Kept, 85, [200, kept]),
        (Group::Long, 10, [kept, LONG_MS]),
        (Group::Expired, 5, [RESUME_S * 1_000 + 2_000, RESUME_S * 1_000 + 5_000]),
    ]
}

/// What became of a group.
#[derive(Default)]
struct Tally {
    outcomes: Vec<Outcome>,
    /// What went wrong beside the cuts. Glasses that could not go on make no further ones.
    failures: Vec<String>,
    /// Notes that were asked for, and that there are.
    notes: (u64, u64),
    /// Packets of the microphones that were heard, and lost.
    sound: (u64, u64),
    /// Sessions that stayed behind.
    left: usize,
}

/// Tells how far a run is.
struct Progress {
    began: Instant,
    done: AtomicU64,
    all: u64,
}

impl Progress {
    fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of((self.all / 20).max(1)) {
            println!("  {done} of {} cuts, {:.0} s", self.all, self.began.elapsed().as_secs_f64());
        }
    }
}

/// The cuts of one group.
#[derive(Clone, Copy)]
struct Share {
    group: Group,
    cuts: u64,
    /// The least and the most that one lasts.
    gap_ms: [u64; 2],
}

/// What all glasses share.
struct Shared {
    gateway: TestGateway,
    done: Done,
    clips: Vec<Clip>,
    silence: Arc<[Bytes]>,
    progress: Progress,
    /// Pairs of glasses of a group.
    count: u64,
    seed: u64,
    delay_ms: u64,
    /// Percent of the cuts of which nothing tells the gateway.
    silent: u64,
}

fn main() -> Result<()> {
    common::calibrate("before")?;
    common::runtime()?.block_on(run())
}

async fn run() -> Result<()> {
    let (cuts, count, seed) = (number("--cuts", 1_000)?, number("--glasses", 12)?, number("--seed", 1)?);
    ensure!(cuts > 0 && count > 0, "there must be a cut, and glasses");
    ensure!(3 * count <= USERS_MAX, "there may be {} pairs of glasses at most", USERS_MAX / 3);
    let (delay_ms, silent) = (number("--delay", 0)?, number("--silent", 0)?);
    let gateway = TestGateway::start(&format!("[limits]\nresume_s = {RESUME_S}\n{ANY_SILENCE}")).await?;
    let clips = SENTENCES.iter().map(|(text, _)| coded(text, gateway.folder.path())).collect::<Result<_>>()?;
    let done = stage::set(&gateway).await?;
    let [kept, long, expired] =
        groups(delay_ms).map(|(group, share, gap_ms)| Share { group, gap_ms, cuts: (cuts * share).div_ceil(100) });
    let all = kept.cuts + long.cuts + expired.cuts;
    let progress = Progress { began: Instant::now(), done: AtomicU64::new(0), all };
    let silence = common::silence()?;
    let shared = Arc::new(Shared { gateway, done, clips, silence, progress, count, seed, delay_ms, silent });
    println!("{all} cuts, {count} glasses, seed {seed}, one-way delay {delay_ms} ms, {silent} % silent");
    // Packets are counted of all glasses together, and those of the first group may lose none.
    let first = live_all(&shared, kept).await?;
    let (second, third) = tokio::try_join!(live_all(&shared, long), live_all(&shared, expired))?;
    let mut broken = Vec::new();
    for (share, tally) in [(kept, first), (long, second), (expired, third)] {
        report(share.group, &tally);
        let what = judge(share.group, &tally, delay_ms)?;
        broken.extend(what.into_iter().map(|what| format!("{:?}: {what}", share.group)));
    }
    if let Some(shared) = Arc::into_inner(shared) {
        shared.gateway.running.stop().await;
    }
    for what in &broken {
        println!("BROKEN: {what}");
    }
    ensure!(broken.is_empty(), "{} requirements broken", broken.len());
    Ok(())
}

/// Name of a pair of glasses of this group, and of its user.
fn name_of(group: Group, one: &str) -> String {
    format!("{group:?}-{one}").to_lowercase()
}

/// The cuts of one group, by glasses of its own.
async fn live_all(shared: &Arc<Shared>, share: Share) -> Result<Tally> {
    let (gateway, seed) = (&shared.gateway, shared.seed);
    let mut tasks = JoinSet::new();
    let before = gateway.running.services().telemetry.sound.get();
    let count = shared.count.min(share.cuts);
    for one in 0..count {
        let quota = share.cuts / count + u64::from(one < share.cuts % count);
        let name = name_of(share.group, &one.to_string());
        let mut options = gateway.options(scheme(&mut Random::new(seed + one)), &name)?;
        options.decode = false;
        options.silence = Some(shared.silence.clone());
        let is_shaped = shared.delay_ms > 0 || shared.silent > 0;
        options.network = is_shaped.then(|| network(Duration::from_millis(shared.delay_ms), false));
        options.seed = seed ^ one;
        let glasses = gateway.glasses(options, &name).await?;
        let random = Random::new(seed.wrapping_mul(1_000_003) ^ (one << 8) ^ share.gap_ms[1]);
        tasks.spawn(live(shared.clone(), glasses, name, (share, quota), random));
    }
    let mut tally = Tally::default();
    while let Some(done) = tasks.join_next().await {
        let of_one = done??;
        tally.outcomes.extend(of_one.outcomes);
        tally.failures.extend(of_one.failures);
        tally.notes = (tally.notes.0 + of_one.notes.0, tally.notes.1 + of_one.notes.1);
    }
    let users = name_of(share.group, "");
    let present = || {
        let all = gateway.running.services().roster.all();
        all.iter().filter(|(_, present)| present.user.starts_with(&users)).count()
    };
    tally.left = if until(GONE_MAX, || present() == 0).await { 0 } else { present() };
    // Sound is counted when its session is over.
    let after = gateway.running.services().telemetry.sound.get();
    tally.sound = (after.0 - before.0, after.1 - before.1);
    Ok(tally)
}

/// The life of one pair of glasses.
async fn live(
    shared: Arc<Shared>,
    glasses: Glasses,
    user: String,
    of: (Share, u64),
    mut random: Random,
) -> Result<Tally> {
    let Shared { gateway, done, clips, .. } = &*shared;
    let mut tally = Tally::default();
    let delay = Duration::from_millis(shared.delay_ms);
    let wearer = Wearer { gateway, done, user: &user, clips, glasses: &glasses, delay };
    if let Err(error) = turns(&shared, &wearer, of, &mut random, &mut tally).await {
        tally.failures.push(format!("{user}: {error:#}"));
    }
    glasses.goodbye().await;
    tally.notes.1 = gateway.running.services().store.disk().notes(&user, 100_000, |_| true)?.len() as u64;
    Ok(tally)
}

/// All turns of one pair of glasses.
async fn turns(
    shared: &Shared,
    wearer: &Wearer<'_>,
    (share, quota): (Share, u64),
    random: &mut Random,
    tally: &mut Tally,
) -> Result<()> {
    let (user, sentences) = (wearer.user, wearer.clips.len() as u64);
    let mut whole = BTreeMap::new();
    for _ in 0..quota {
        let plan = Plan::drawn(random, share.group, share.gap_ms, (sentences, shared.silent));
        let sentence = plan.state.sentence();
        if let Some(index) = sentence.filter(|index| share.group != Group::Expired && !whole.contains_key(index)) {
            tally.notes.0 += u64::from(SENTENCES[index].1);
            let outcome = wearer.undisturbed(index).await?;
            if outcome.is_plain() {
                whole.insert(index, outcome);
            } else {
                tally.failures.push(format!("{user}: not as it has to be without a cut: {outcome:?}"));
            }
        }
        tally.notes.0 += sentence.map_or(0, |index| u64::from(SENTENCES[index].1));
        let mut outcome = wearer.cut(&plan).await.with_context(|| format!("{plan:?}"))?;
        if let Some(whole) = sentence.and_then(|index| whole.get(&index)) {
            compare(share.group, whole, &mut outcome);
        }
        tally.outcomes.push(outcome);
        shared.progress.step();
    }
    // Whatever was lost before: who speaks now is answered.
    tally.notes.0 += u64::from(SENTENCES[LAST].1);
    if !wearer.undisturbed(LAST).await?.is_answered() {
        tally.failures.push(format!("{user} is not answered any more"));
    }
    Ok(())
}

/// What is not as it has to be.
fn judge(group: Group, tally: &Tally, delay_ms: u64) -> Result<Vec<String>> {
    let mut broken = tally.failures.clone();
    if tally.left > 0 {
        broken.push(format!("{} sessions stayed behind", tally.left));
    }
    let (owed, all) = (tally.outcomes.iter().filter(|one| one.owed).count(), tally.outcomes.len());
    if group == Group::Expired && owed * 100 < all * OWED_MIN {
        broken.push(format!("only {owed} of {all} cuts came while an answer was owed"));
    }
    for outcome in &tally.outcomes {
        let mut what = outcome.broken.clone();
        let state = outcome.plan.as_ref().map(|plan| plan.state);
        let is_asked = matches!(state, Some(State::Question | State::SlowTool | State::App));
        if group != Group::Expired && !outcome.resumed {
            what.push("it began anew".to_owned());
        }
        let is_once = (outcome.runs, outcome.answers) == (1, 1);
        let is_well = match group {
            Group::Kept => is_once,
            Group::Long => is_once || (outcome.runs <= 1 && outcome.told),
            Group::Expired => outcome.runs <= 1,
        };
        if is_asked && !is_well {
            what.push(format!("the tool ran {} times, {} answers were heard", outcome.runs, outcome.answers));
        }
        if group == Group::Expired && outcome.owed && !outcome.told {
            what.push("an answer was owed, and the wearer was not told".to_owned());
        }
        broken.extend(what.into_iter().map(|what| format!("{what}; {:?}", outcome.plan)));
    }
    let (asked, there) = tally.notes;
    if there > asked || (group == Group::Kept && there != asked) {
        broken.push(format!("{asked} notes asked for, {there} there"));
    }
    if group != Group::Kept {
        return Ok(broken);
    }
    if tally.sound.1 > 0 {
        broken.push(format!("{} packets of the microphones lost", tally.sound.1));
    }
    for (scheme, rounds) in ROUNDS {
        let most_us = i64::try_from(rounds * 2 * delay_ms * 1_000)? + MORE_US_MAX;
        let back_us = quantile(&mut back(tally, scheme), 0.95).unwrap_or(0);
        if back_us > most_us {
            let (back, most) = (back_us / 1_000, most_us / 1_000);
            broken.push(format!("{}: from reachable to resumed {back} ms at 95 %, of {most}", scheme.name()));
        }
    }
    Ok(broken)
}

/// Times from reachable to welcomed over this transport, in microseconds.
fn back(tally: &Tally, scheme: Scheme) -> Vec<i64> {
    tally.outcomes.iter().filter(|one| one.over == scheme.name()).map(|one| one.back_us).collect()
}

/// Prints what became of a group.
fn report(group: Group, tally: &Tally) {
    let outcomes = &tally.outcomes;
    let count = |which: &dyn Fn(&Outcome) -> bool| outcomes.iter().filter(|one| which(one)).count();
    let ms = |us: Option<i64>| us.unwrap_or(0) as f64 / 1e3;
    println!("\n{group:?}: {} cuts", outcomes.len());
    let mut states = BTreeMap::<&str, usize>::new();
    for plan in outcomes.iter().filter_map(|one| one.plan.as_ref()) {
        *states.entry(plan.state.name()).or_default() += 1;
    }
    println!("  in the middle of: {states:?}");
    println!("  resumed {}, new session {}", count(&|one| one.resumed), count(&|one| !one.resumed));
    let spoken = |one: &Outcome| one.plan.as_ref().is_some_and(|plan| plan.state.sentence().is_some());
    println!(
        "  of sentences: one transcript {}, none {}, several {}",
        count(&|one| spoken(one) && one.transcripts.len() == 1),
        count(&|one| spoken(one) && one.transcripts.is_empty()),
        count(&|one| spoken(one) && one.transcripts.len() > 1)
    );
    println!(
        "  answers heard to their end {}, no answer {}; told of the loss {}, of {} whose answer was owed",
        count(&|one| one.is_answered()),
        count(&|one| !one.is_answered()),
        count(&|one| one.told),
        count(&|one| one.owed)
    );
    println!("  with something that is not as it has to be {}", count(&|one| !one.broken.is_empty()));
    println!("  sentences that lost sound, and of which other words were acted upon {}", count(&|one| one.in_part));
    println!("  cuts of which nothing told the gateway {}", count(&is_silent));
    println!("  sessions that stayed behind {}", tally.left);
    println!("  notes asked for {}, notes there {}", tally.notes.0, tally.notes.1);
    if group == Group::Kept {
        println!("  packets heard {}, lost {}", tally.sound.0, tally.sound.1);
    }
    for (scheme, _) in ROUNDS {
        let mut back = back(tally, scheme);
        println!(
            "  from reachable to resumed over {}, {} times: median {:.0} ms, 95 % {:.0} ms, longest {:.0} ms",
            scheme.name(),
            back.len(),
            ms(quantile(&mut back, 0.5)),
            ms(quantile(&mut back, 0.95)),
            ms(quantile(&mut back, 1.0))
        );
    }
}

fn is_silent(outcome: &Outcome) -> bool {
    outcome.plan.as_ref().is_some_and(|plan| plan.is_silent)
}
