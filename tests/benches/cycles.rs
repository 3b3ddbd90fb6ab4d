//! Devices that connect, ask, and drop their link anywhere, 10,000 times: whether memory grows, and what is not given back.
//!
//! `cargo xtask bench cycles [--cycles 10000] [--glasses 20] [--seed 1] [--spoken 2] [--batch 250] [--only KIND]`
//! `cargo xtask bench cycles --soak HOURS [--glasses 20] [--seed 1]`
//!
//! A cycle is drawn from the seed: a typed turn heard to its end; a link that breaks in the middle of a turn or of an
//! answer, and in half of the cases comes back over the other transport; a spoken turn (`--spoken`: percent), whole or
//! broken off; a connection that ends in TCP, in TLS, in the upgrade, or in the middle of the handshake; a stranger who asks
//! to be paired. Both transports in turn. After each batch each user hears the answers that did not arrive, of which there
//! would be more and more otherwise; then all sessions must be gone, and everything that is held for devices back at its
//! start; then resident memory is taken. Before the first figure each user types until all messages are there that are kept
//! of one. The slope of memory over the second half may be at most 1 MB in 10,000 cycles. `--only`: cycles of one kind, to
//! find what a fault is due to.
//!
//! With `--soak`, the glasses stay, speak and type at the pace of people, and lose their link now and then. Memory is
//! taken twice a minute; its slope over the second half may be at most 1 MB an hour.
//!
//! The devices run in a second process. This one ends with an error where a requirement is broken.

mod common;
#[path = "cycles/devices.rs"]
mod devices;

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use common::second::Second;
use common::watch::{Held, resident_mb, slope, tasks};
use common::{ANY_SILENCE, TestGateway, argument, number};
use firmware_sim::transport::Scheme;
use gateway_core::limits::HISTORY_MESSAGES_MAX;
use tokio::time::{Instant, sleep, timeout};

/// How long a session waits for its device, in seconds: over before its batch is.
const RESUME_S: u64 = 2;
/// How long all may take to be given back: longer than a session waits and a handshake may take.
const SETTLED_MAX: Duration = Duration::from_secs(30);
/// How long the tasks of connections that have ended may stay.
const TASKS_MAX: Duration = Duration::from_secs(120);
/// Batches before the first figure is taken, in which caches are filled.
const WARM_UP: u64 = 2;
/// Turns of each user at once, before that, and how often: until the messages that are kept of each are there.
const FILL: u64 = 25;
const FILLS_MAX: u64 = 20;
/// Aim.
const SLOPE_MB_MAX: f64 = 1.0;
/// Figures that a slope needs at least: two of them are in the second half.
const POINTS_MIN: u64 = 4;
/// Time between two figures of a soak.
const SOAK_EVERY: Duration = Duration::from_secs(30);

fn main() -> Result<()> {
    if argument("--devices").is_some() {
        return common::runtime()?.block_on(devices::devices());
    }
    let hours = argument("--soak").map(|hours| hours.parse::<f64>().context("--soak")).transpose()?;
    has_a_slope(hours)?;
    common::runtime()?.block_on(async {
        let gateway = TestGateway::start(&format!("[limits]\nresume_s = {RESUME_S}\n{ANY_SILENCE}")).await?;
        let glasses = number("--glasses", 20)?;
        let mut second = Second::start(&[
            ("--devices", gateway.target(Scheme::Wss)?.to_string()),
            ("--quic", gateway.target(Scheme::Quic)?.to_string()),
            ("--folder", gateway.folder.path().display().to_string()),
            ("--glasses", glasses.to_string()),
            ("--seed", number("--seed", 1)?.to_string()),
            ("--spoken", number("--spoken", 2)?.to_string()),
            ("--only", argument("--only").unwrap_or_default()),
        ])?;
        for number in 0..glasses {
            let fingerprint = second.line().await?;
            gateway.pair(&fingerprint, &format!("user-{number}"));
            ensure!(second.line().await? == "welcomed", "glasses {number} were not welcomed");
        }
        fill(&gateway, &mut second, glasses).await?;
        let outcome = match hours {
            Some(hours) => soak(&gateway, &mut second, hours).await,
            None => cycles(&gateway, &mut second).await,
        };
        gateway.running.stop().await;
        outcome
    })
}

/// Whether so many hours, or cycles, give enough figures.
fn has_a_slope(hours: Option<f64>) -> Result<()> {
    let (cycles, batch) = (number("--cycles", 10_000)?, number("--batch", 250)?);
    match hours {
        Some(hours) => {
            let least_s = POINTS_MIN * SOAK_EVERY.as_secs();
            ensure!(hours * 3_600.0 >= least_s as f64, "a soak takes {least_s} s at least");
        }
        None => ensure!(batch > 0 && cycles >= POINTS_MIN * batch, "there must be {POINTS_MIN} batches at least"),
    }
    Ok(())
}

/// Fills the messages that are kept of each user: while there are fewer, memory grows with each turn.
async fn fill(gateway: &TestGateway, second: &mut Second, users: u64) -> Result<()> {
    let began = Instant::now();
    for _ in 0..FILLS_MAX {
        second.tell(&format!("fill {FILL}")).await?;
        ensure!(read_failures(second).await? == 0, "turns went wrong");
        let disk = gateway.running.services().store.disk();
        let kept =
            |user: u64| -> Result<usize> { Ok(disk.messages(&format!("user-{user}"), HISTORY_MESSAGES_MAX)?.len()) };
        let least = (0..users).map(kept).collect::<Result<Vec<usize>>>()?.into_iter().min();
        if least.is_none_or(|least| least >= HISTORY_MESSAGES_MAX) {
            println!("{HISTORY_MESSAGES_MAX} messages of each user after {:.0} s", began.elapsed().as_secs_f64());
            return at_rest(gateway).await.map(drop);
        }
    }
    bail!("fewer than {HISTORY_MESSAGES_MAX} messages are kept of a user")
}

/// What the gateway holds when nobody is there.
async fn at_rest(gateway: &TestGateway) -> Result<Held> {
    let gone = || gateway.running.services().roster.all().is_empty();
    ensure!(common::until(SETTLED_MAX, gone).await, "sessions do not end");
    // The last connections close behind their sessions.
    let mut before = Held::now(gateway)?;
    loop {
        sleep(Duration::from_millis(500)).await;
        let now = Held::now(gateway)?;
        if now == before {
            return Ok(now);
        }
        before = now;
    }
}

async fn cycles(gateway: &TestGateway, second: &mut Second) -> Result<()> {
    let (cycles, batch) = (number("--cycles", 10_000)?, number("--batch", 250)?);
    println!("{cycles} cycles, {} glasses, seed {}", number("--glasses", 20)?, number("--seed", 1)?);
    let tasks_before = tasks();
    println!("   cycles   own MB  files MB   tasks  seconds");
    let began = Instant::now();
    let (mut points, mut start, mut failures) = (Vec::new(), None::<Held>, 0);
    for from in (0..WARM_UP * batch + cycles).step_by(usize::try_from(batch)?) {
        second.tell(&format!("batch {from} {batch}")).await?;
        failures += read_failures(second).await?;
        if from + batch < WARM_UP * batch {
            continue;
        }
        if let Some(start) = &start
            && let Some(left) = start.settled(gateway, SETTLED_MAX).await?
        {
            println!("not given back: {left:?}");
            failures += 1;
        }
        // Memory that is free is given back soon behind the last session.
        let rest = at_rest(gateway).await?;
        if start.is_none() {
            println!("at rest: {rest:?}");
            start = Some(rest);
        }
        let done = from + batch - WARM_UP * batch;
        let (own, files) = resident_mb();
        points.push((done as f64 / 10_000.0, own));
        println!("{done:9} {own:8.1} {files:9.1} {:7} {:8.0}", tasks(), began.elapsed().as_secs_f64());
    }
    second.tell("tally").await?;
    println!("{}", second.line().await?);
    let ended = common::until(TASKS_MAX, || tasks() <= tasks_before).await;
    println!("tasks before the first cycle {tasks_before}, at the end {}", tasks());
    let grows = slope(&points[points.len() / 2..]);
    println!("slope over the second half: {grows:+.2} MB in 10,000 cycles; over all {:+.2}", slope(&points));
    ensure!(failures == 0, "{failures} times something went wrong");
    ensure!(ended, "tasks are left over");
    ensure!(grows <= SLOPE_MB_MAX, "memory grows by {grows:.2} MB in 10,000 cycles");
    Ok(())
}

/// Reads up to the end of a batch; failed cycles say why.
async fn read_failures(second: &mut Second) -> Result<u64> {
    let mut failures = 0;
    loop {
        let line = second.line().await?;
        if line == "done" {
            return Ok(failures);
        }
        println!("{line}");
        failures += 1;
    }
}

async fn soak(gateway: &TestGateway, second: &mut Second, hours: f64) -> Result<()> {
    second.tell("batch 0 100").await?;
    ensure!(read_failures(second).await? == 0, "cycles went wrong");
    let start = at_rest(gateway).await?;
    println!("{hours} hours, {} glasses, seed {}", number("--glasses", 20)?, number("--seed", 1)?);
    println!("  minutes   own MB  files MB");
    second.tell(&format!("soak {:.0}", hours * 3_600.0)).await?;
    let (began, mut points, mut failures) = (Instant::now(), Vec::new(), 0);
    loop {
        match timeout(SOAK_EVERY, second.line()).await {
            Err(_) => {
                let (own, files) = resident_mb();
                points.push((began.elapsed().as_secs_f64() / 3_600.0, own));
                println!("{:9.1} {own:8.1} {files:9.1}", began.elapsed().as_secs_f64() / 60.0);
            }
            Ok(line) => match line?.as_str() {
                "done" => break,
                why => {
                    println!("{why}");
                    failures += 1;
                }
            },
        }
    }
    second.tell("tally").await?;
    println!("{}", second.line().await?);
    let left = start.settled(gateway, SETTLED_MAX).await?;
    ensure!(left.is_none(), "not given back:\n  at first {start:?}\n  now      {:?}", left.as_ref());
    println!("given back: {start:?}");
    let grows = slope(&points[points.len() / 2..]);
    println!("slope over the second half: {grows:+.2} MB an hour");
    ensure!(failures == 0, "{failures} turns went wrong");
    ensure!(grows <= SLOPE_MB_MAX, "memory grows by {grows:.2} MB an hour");
    Ok(())
}
