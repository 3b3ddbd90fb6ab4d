//! QUIC in the middle of a sentence: the device's address changes, or its datagrams vanish. Whether the sentence is understood.
//!
//! `cargo xtask bench moves [--moves 50] [--holes 50] [--glasses 4] [--seed 1]`
//!
//! Each pair of glasses says one sentence after the other, from packets that were coded beforehand. At a random moment
//! between the first and the last sound of each it moves to another address (`--moves`; on Linux to another one of
//! 127.0.0.0/8, elsewhere to another port), or all datagrams vanish from then on, so that it goes on over WebSocket (`--holes`).
//! When they pass again, it goes back to QUIC by itself. Each sentence is said once undisturbed first: with a disturbance it
//! has to be heard as one sentence, with the same answer, spoken to its end. A move must not need a handshake, and the
//! session over WebSocket must be there a second after the last datagram.
//!
//! It ends with an error where one of these is not so.

mod common;

use std::collections::{BTreeMap, btree_map::Entry};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use common::relay::Relay;
use common::{ANY_SILENCE, TestGateway, coded, number, quantile};
use firmware_sim::microphone::Clip;
use firmware_sim::random::Random;
use firmware_sim::transport::{Scheme, Target};
use firmware_sim::{Event, Glasses, Seen};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const SENTENCES: [&str; 4] = [
    "Hey Mentra, take a note: buy oat milk.",
    "Hey Mentra, take a note: call the dentist tomorrow.",
    "Hey Mentra, what is fifteen percent of eighty?",
    "Hey Mentra, what is twelve times three?",
];
/// How long it may take from the last datagram to the session over WebSocket, in microseconds.
const BACK_US_MAX: i64 = 1_000_000;
/// How long WebSocket is used before QUIC is tried again: sooner than glasses do it, so that a run does not wait for it.
const FIRST_AGAIN_AFTER: Duration = Duration::from_secs(3);
/// How long a turn may take on a busy machine.
const TURN_MAX: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disturbance {
    /// The device's address changes.
    Move,
    /// Datagrams vanish.
    Hole,
}

/// What became of a sentence.
#[derive(Clone, Debug, Default)]
struct Outcome {
    transcripts: Vec<String>,
    /// What was spoken to its end.
    answers: Vec<String>,
    violations: Vec<String>,
    /// Sessions opened or resumed during the turn: whether resumed, and over what.
    welcomes: Vec<(bool, &'static str)>,
    /// From the disturbance to the next welcome.
    back_us: Option<i64>,
    /// Addresses that it moved to.
    moves: Vec<String>,
    at_ms: u64,
}

fn main() -> Result<()> {
    common::calibrate("before")?;
    common::runtime()?.block_on(run())
}

async fn run() -> Result<()> {
    let (moves, holes) = (number("--moves", 50)?, number("--holes", 50)?);
    let (count, seed) = (number("--glasses", 4)?, number("--seed", 1)?);
    ensure!(count > 0, "there must be glasses");
    let gateway = Arc::new(TestGateway::start(ANY_SILENCE).await?);
    let clips: Arc<[Clip]> = SENTENCES.iter().map(|text| coded(text, gateway.folder.path())).collect::<Result<_>>()?;
    println!("{moves} moves, {holes} black holes, {count} glasses, seed {seed}");
    let mut understood = true;
    for (kind, wanted) in [(Disturbance::Move, moves), (Disturbance::Hole, holes)] {
        let mut tasks = JoinSet::new();
        for one in 0..count.min(wanted) {
            let quota = wanted / count.min(wanted) + u64::from(one < wanted % count.min(wanted));
            let random = Random::new(seed.wrapping_mul(1_000_003) ^ (one << 8) ^ wanted);
            let name = format!("{kind:?}-{one}").to_lowercase();
            tasks.spawn(live(gateway.clone(), name, clips.clone(), (kind, quota), random));
        }
        let mut outcomes = Vec::new();
        while let Some(done) = tasks.join_next().await {
            match done? {
                Ok(of_one) => outcomes.extend(of_one),
                Err(error) => println!("{kind:?}: {error:#}"),
            }
        }
        understood &= report(kind, &outcomes) && outcomes.len() as u64 == wanted;
    }
    if let Some(gateway) = Arc::into_inner(gateway) {
        gateway.running.stop().await;
    }
    ensure!(understood, "a requirement is broken");
    Ok(())
}

/// The life of one pair of glasses: whether each sentence was answered as without a disturbance, and its outcome.
async fn live(
    gateway: Arc<TestGateway>,
    name: String,
    clips: Arc<[Clip]>,
    (kind, quota): (Disturbance, u64),
    mut random: Random,
) -> Result<Vec<(bool, Outcome)>> {
    let relay = Relay::to(gateway.running.quic.context("QUIC is off")?).await?;
    let mut options = gateway.options(Scheme::Quic, &name)?;
    let way: Target = match kind {
        Disturbance::Move => options.target.clone(),
        Disturbance::Hole => format!("quic://{}", relay.address).parse()?,
    };
    options.target = way;
    options.other = (kind == Disturbance::Hole).then(|| gateway.target(Scheme::Wss)).transpose()?;
    options.first_again_after = FIRST_AGAIN_AFTER;
    options.decode = false;
    options.silence = Some(common::silence()?);
    let mut glasses = gateway.glasses(options, &name).await?;
    let mut undisturbed = BTreeMap::new();
    let mut outcomes = Vec::new();
    for _ in 0..quota {
        let index = random.below(clips.len() as u64) as usize;
        let clip = &clips[index];
        if let Entry::Vacant(entry) = undisturbed.entry(index) {
            entry.insert(turn(&mut glasses, clip, None).await?.answers);
        }
        // After the first sound, before the last.
        let at_ms = 200 + random.below((clip.voiced_us / 1_000).saturating_sub(400));
        let outcome = turn(&mut glasses, clip, Some((kind, at_ms, &relay))).await?;
        let same = undisturbed[&index].len() == 1 && undisturbed[&index] == outcome.answers;
        if !same {
            println!("answered {:?}, undisturbed {:?}", outcome.answers, undisturbed[&index]);
        }
        outcomes.push((same, outcome));
        if kind == Disturbance::Hole {
            let mark = glasses.log().mark();
            relay.block(false);
            let back = |event: &Event| matches!(event.seen, Seen::Welcome { transport: "quic", .. });
            let (event, _) =
                timeout(TURN_MAX, glasses.log().find(mark, back)).await.context("it does not go back to QUIC")?;
            ensure!(matches!(event.seen, Seen::Welcome { resumed: true, .. }), "back on QUIC it began anew");
        }
    }
    glasses.goodbye().await;
    Ok(outcomes)
}

/// One sentence and its answer.
async fn turn(glasses: &mut Glasses, clip: &Clip, disturbed: Option<(Disturbance, u64, &Relay)>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mark = glasses.log().mark();
    let disturbing = async {
        let Some((kind, at_ms, relay)) = disturbed else { return Ok(None) };
        sleep(Duration::from_millis(at_ms)).await;
        match kind {
            Disturbance::Move => glasses.rebind().await?,
            Disturbance::Hole => relay.block(true),
        }
        anyhow::Ok(Some((glasses.now_us(), at_ms)))
    };
    let (said, disturbed) = tokio::join!(glasses.say(clip.clone()), disturbing);
    said?;
    let disturbed = disturbed?;
    let whole = |event: &Event| matches!(event.seen, Seen::SpeechHeard { complete: true, .. });
    drop(timeout(TURN_MAX, glasses.log().find(mark, whole)).await);
    // What comes twice comes soon.
    sleep(Duration::from_millis(1_500)).await;
    for event in glasses.log().since(mark) {
        match event.seen {
            Seen::Transcript { is_final: true, addressed: true, text, .. } => outcome.transcripts.push(text),
            Seen::SpeechHeard { complete: true, text, .. } => outcome.answers.push(text),
            Seen::Violation { what } => outcome.violations.push(what),
            Seen::Moved { address } => outcome.moves.push(address),
            Seen::Welcome { resumed, transport, .. } => {
                outcome.welcomes.push((resumed, transport));
                let since = |(at_us, _)| i64::try_from(event.at_us.saturating_sub(at_us)).ok();
                outcome.back_us = outcome.back_us.or(disturbed.and_then(since));
            }
            _ => {}
        }
    }
    outcome.at_ms = disturbed.map_or(0, |(_, at_ms)| at_ms);
    Ok(outcome)
}

/// Whether this is another address than that from which a socket without one sends to this machine.
fn is_elsewhere(address: &str) -> bool {
    let address = address.parse::<std::net::SocketAddr>();
    address.is_ok_and(|address| !cfg!(target_os = "linux") || address.ip() != std::net::Ipv4Addr::LOCALHOST)
}

/// Prints a table; whether all is as it has to be.
fn report(kind: Disturbance, outcomes: &[(bool, Outcome)]) -> bool {
    let goes_on = |outcome: &Outcome| match kind {
        Disturbance::Move => outcome.welcomes.is_empty(),
        Disturbance::Hole => outcome.welcomes == [(true, "wss")],
    };
    let is_met = |outcome: &Outcome| match kind {
        Disturbance::Move => matches!(outcome.moves.as_slice(), [address] if is_elsewhere(address)),
        Disturbance::Hole => outcome.back_us.is_some_and(|us| us <= BACK_US_MAX),
    };
    for (same, outcome) in outcomes {
        let is_well = outcome.transcripts.len() == 1 && goes_on(outcome) && is_met(outcome);
        if !same || !is_well || !outcome.violations.is_empty() {
            println!("{kind:?}: {outcome:?}");
        }
    }
    let count = |which: &dyn Fn(&(bool, Outcome)) -> bool| outcomes.iter().filter(|one| which(one)).count();
    let counts = [
        ("one transcript", count(&|(_, outcome)| outcome.transcripts.len() == 1)),
        ("the same answer, whole, once", count(&|(same, _)| *same)),
        ("no protocol violation", count(&|(_, outcome)| outcome.violations.is_empty())),
        (
            match kind {
                Disturbance::Move => "no handshake",
                Disturbance::Hole => "the session went on over WebSocket",
            },
            count(&|(_, outcome)| goes_on(outcome)),
        ),
        (
            match kind {
                Disturbance::Move => "another address",
                Disturbance::Hole => "within a second",
            },
            count(&|(_, outcome)| is_met(outcome)),
        ),
    ];
    println!("\n{kind:?}, {} in the middle of a sentence", outcomes.len());
    for (name, count) in counts {
        println!("  {name:36} {count} of {}", outcomes.len());
    }
    let mut back: Vec<i64> = outcomes.iter().filter_map(|(_, outcome)| outcome.back_us).collect();
    if !back.is_empty() {
        let ms = |us: Option<i64>| us.unwrap_or(0) as f64 / 1e3;
        println!(
            "  from the last datagram to the session over WebSocket: median {:.0} ms, 95 % {:.0} ms, longest {:.0} ms",
            ms(quantile(&mut back, 0.5)),
            ms(quantile(&mut back, 0.95)),
            ms(quantile(&mut back, 1.0))
        );
    }
    counts.iter().all(|(_, count)| *count == outcomes.len())
}
