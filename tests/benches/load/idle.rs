//! Many glasses that are connected and say nothing: what one more of them takes.

use anyhow::Result;
use tokio::time::sleep;

use super::common::aims::Aims;
use super::common::{TestGateway, resident};
use super::{SETTLED, connect, generator, number, settings};

const GLASSES: usize = 2_000;
/// Users that they have at most, unless said: as many as a gateway takes.
const USERS: usize = 1_000;
/// Aim for a session, in KiB.
const KIB_MAX: u64 = 64;

/// The second half of them is measured, with which nothing is made for the first time.
pub async fn run() -> Result<Aims> {
    let glasses = number("--glasses", GLASSES)?;
    let (users, half) = (number("--users", glasses.min(USERS))?.max(1), glasses / 2);
    let gateway = TestGateway::start(&settings(glasses, users, None)?).await?;
    let mut generator = generator(&gateway, glasses, 20, None)?;
    connect(&mut generator, &gateway, 0..half, users).await?;
    sleep(SETTLED).await;
    let before = resident();
    connect(&mut generator, &gateway, half..glasses, users).await?;
    sleep(SETTLED).await;
    let kib = resident().saturating_sub(before) / (glasses - half).max(1) as u64 / 1_024;
    println!("{glasses} sessions that say nothing: {kib} KiB resident each, over the second half of them");
    let mut aims = Aims::default();
    aims.note(kib <= KIB_MAX, format!("a session that says nothing: {kib} KiB, aim {KIB_MAX}"));
    generator.tell("quit").await?;
    generator.ended().await?;
    gateway.running.stop().await;
    Ok(aims)
}
