//! From the last voiced sample to the answer, stage by stage, over WebSocket and QUIC.
//!
//! `cargo xtask bench latency [--rounds N]`
//!
//! One pair of glasses at a time says spoken commands (flite's voice) behind "Hey Mentra," to a gateway
//! with the settings that are shipped and the offline engine. t0 is the capture time of the last voiced
//! sample, by the clip's own energy (the last 10 ms within 35 dB of its loudest), not by any detector of
//! the gateway. Times of the gateway are put on the simulator's clock: both run in this process.

mod common;

use std::time::Duration;

use anyhow::Result;
use common::voices::Speaker;
use common::{TestGateway, argument, row, until};
use firmware_sim::latency::{Latency, measure};
use firmware_sim::transport::Scheme;
use gateway::clock;
use gateway::telemetry::TurnRecord;

const TABLE: &str = include_str!("data/commands.tsv");
const TURN_MAX: Duration = Duration::from_secs(40);

/// One turn: what the glasses saw, what the gateway noted, and both clocks.
struct Turn {
    t0_us: i64,
    seen: Latency,
    noted: TurnRecord,
    /// Gateway's clock minus the simulator's.
    offset_us: i64,
}

impl Turn {
    /// A moment of the gateway, in microseconds from t0.
    fn since_t0(&self, at_us: Option<u64>) -> Option<i64> {
        Some(at_us? as i64 - self.offset_us - self.t0_us)
    }
}

fn main() -> Result<()> {
    common::calibrate("before")?;
    common::runtime()?.block_on(run())?;
    common::calibrate("after")
}

async fn run() -> Result<()> {
    let rounds: usize = argument("--rounds").map_or(Ok(1), |rounds| rounds.parse())?;
    let gateway = TestGateway::start("").await?;
    let sentences: Vec<&str> =
        TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split('\t').next()).collect();
    for scheme in [Scheme::Ws, Scheme::Quic] {
        let before = common::busy();
        let user = scheme.name();
        let glasses = gateway.glasses(gateway.options(scheme, user)?, user).await?;
        let (mut turns, mut missed) = (Vec::new(), 0);
        for sentence in sentences.iter().cycle().take(rounds * sentences.len()) {
            let text = format!("Hey Mentra, {sentence}");
            let folder = gateway.folder.path().to_owned();
            let pcm = tokio::task::spawn_blocking(move || Speaker::FLITE.say(&text, &folder)).await??;
            let known = gateway.turns(&glasses).len();
            let mark = glasses.log().mark();
            let said = glasses.say_pcm(sentence, &pcm, None).await?;
            if !until(TURN_MAX, || gateway.turns(&glasses).len() > known).await {
                missed += 1;
                continue;
            }
            let Some(noted) = gateway.turns(&glasses).pop() else {
                continue;
            };
            turns.push(Turn {
                t0_us: said.t0_us as i64,
                seen: measure(&glasses.log().since(mark), said.t0_us),
                noted,
                offset_us: clock::mono_us() as i64 - glasses.now_us() as i64,
            });
        }
        glasses.goodbye().await;
        println!(
            "{user}: {} turns, {missed} without an answer, processor {:.0} % busy",
            turns.len(),
            common::busy_percent(before)
        );
        report(&turns);
    }
    gateway.running.stop().await;
    Ok(())
}

fn report(turns: &[Turn]) {
    let all = |pick: &dyn Fn(&Turn) -> Option<i64>| turns.iter().filter_map(pick).collect::<Vec<_>>();
    row("t0 -> end decided", all(&|turn| turn.since_t0(turn.noted.end_decided_us)));
    row("t0 -> final accepted", all(&|turn| turn.since_t0(turn.noted.final_us)));
    row("t0 -> final transcript on the glasses", all(&|turn| turn.seen.final_us));
    row("t0 -> first display text", all(&|turn| turn.seen.display_us));
    row("t0 -> first speech frame sent", all(&|turn| turn.since_t0(turn.noted.first_frame_us)));
    row("t0 -> first sound from the speaker", all(&|turn| turn.seen.sound_us));
    println!("  stages:");
    let since = |later: Option<u64>, earlier: Option<u64>| Some(later? as i64 - earlier? as i64);
    row("last voice, as the gateway takes it, after t0", all(&|turn| turn.since_t0(turn.noted.last_voice_us)));
    row("end decided -> final accepted", all(&|turn| since(turn.noted.final_us, turn.noted.end_decided_us)));
    row("wait for a recognition thread", all(&|turn| Some(turn.noted.asr_queue_us? as i64)));
    row("final decode", all(&|turn| Some(turn.noted.asr_decode_us? as i64)));
    row("final -> first event of the model", all(&|turn| since(turn.noted.model_first_us, turn.noted.final_us)));
    row("tool", all(&|turn| since(turn.noted.tool_end_us, turn.noted.tool_start_us)));
    row("final -> first clause", all(&|turn| since(turn.noted.first_clause_us, turn.noted.final_us)));
    row("synthesis of the first clause", all(&|turn| Some(turn.noted.tts_us? as i64)));
    row("first clause -> first frame sent", all(&|turn| since(turn.noted.first_frame_us, turn.noted.first_clause_us)));
}
