//! What recognition costs while somebody speaks: processor seconds per second of speech, with a wake word and always listening.
//!
//! `cargo xtask bench listening [--seconds N] [--only MODE]`
//!
//! One pair of glasses without a speaker hears read speech that does not name the assistant (half of the held-out clips of `bench
//! speech`, in the order of a hash, until N seconds are full; 60 unless said), from a gateway with the settings that are shipped, and
//! with each of the modes. Commands of the development table behind "Hey Mentra," in the product's own voice follow. What counts is the
//! processor time of the recognition threads, and the length of the clips; the listener's own share stands apart.

mod common;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use common::clips::{self, CLIP_HZ, Clip};
use common::voices::Speaker;
use common::{TestGateway, argument};
use firmware_sim::transport::Scheme;
use firmware_sim::{Glasses, Seen};

const COMMANDS: &str = include_str!("data/commands.tsv");
const COMMANDS_MAX: usize = 12;
/// Silence behind each clip: longer than the longest silence that a turn waits for, and a second pass.
const GAP: Duration = Duration::from_millis(2_500);
const ALWAYS: &str = "[hearing]\nalways_listening = true";

struct Mode {
    name: &'static str,
    settings: &'static str,
}

const MODES: [Mode; 2] =
    [Mode { name: "wake word", settings: "" }, Mode { name: "always listening", settings: ALWAYS }];

/// Something to say.
struct Speech {
    name: &'static str,
    clips: Vec<Vec<i16>>,
}

fn main() -> Result<()> {
    let seconds: f64 = argument("--seconds").map_or(Ok(60.0), |seconds| seconds.parse())?;
    let only = argument("--only");
    let speeches =
        [Speech { name: "read speech", clips: read(seconds)? }, Speech { name: "commands", clips: commands()? }];
    common::calibrate("before")?;
    let mut found = false;
    for mode in MODES.iter().filter(|mode| only.as_ref().is_none_or(|only| mode.name.starts_with(only.as_str()))) {
        found = true;
        for speech in &speeches {
            common::runtime()?.block_on(listen(mode, speech))?;
        }
    }
    ensure!(found, "--only: {}", MODES.map(|mode| mode.name).join(", "));
    common::calibrate("after")
}

/// Clips that no setting was chosen on.
fn read(seconds: f64) -> Result<Vec<Vec<i16>>> {
    let mut clips: Vec<Clip> = clips::all()?;
    clips.retain(|clip| !clip.development);
    clips.sort_by_key(|clip| hash(&clip.name));
    let mut left = seconds;
    clips.retain(|clip| {
        let wanted = left > 0.0;
        left -= clip.seconds();
        wanted
    });
    Ok(clips.into_iter().map(|clip| clip.pcm).collect())
}

/// FNV-1a, 64 bits: <http://www.isthe.com/chongo/tech/comp/fnv/>.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

fn commands() -> Result<Vec<Vec<i16>>> {
    let folder = tempfile::tempdir()?;
    let sentences = COMMANDS.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split('\t').next());
    sentences
        .take(COMMANDS_MAX)
        .map(|sentence| Speaker::HIBARI.say(&format!("Hey Mentra, {sentence}"), folder.path()))
        .collect()
}

/// Processor microseconds of the threads whose name begins so.
fn cpu_us(threads: &str) -> u64 {
    common::cpu_by_thread("self").into_iter().filter(|(name, _)| name.starts_with(threads)).map(|(_, us)| us).sum()
}

async fn listen(mode: &Mode, speech: &Speech) -> Result<()> {
    let gateway = TestGateway::start(mode.settings).await?;
    let mut options = gateway.options(Scheme::Ws, "listening")?;
    options.profile.speaker_hz = 0;
    let glasses = gateway.glasses(options, "listening").await?;
    let before = cpu_us("asr");
    let whole = common::cpu_us("self");
    let mark = glasses.log().mark();
    for pcm in &speech.clips {
        say(&glasses, pcm).await?;
    }
    let seconds = speech.clips.iter().map(Vec::len).sum::<usize>() as f64 / f64::from(CLIP_HZ);
    let (asr, whole) = ((cpu_us("asr") - before) as f64 / 1e6, (common::cpu_us("self") - whole) as f64 / 1e6);
    let (mut partials, mut finals) = (0, 0);
    for event in glasses.log().since(mark) {
        if let Seen::Transcript { is_final, .. } = event.seen {
            *(if is_final { &mut finals } else { &mut partials }) += 1;
        }
    }
    println!(
        "{}, {}: {:.3} processor seconds of recognition per second of speech ({asr:.1} s for {seconds:.1} s in {} clips; whole \
         process, glasses included, {whole:.1} s); {partials} transcripts on the way and {finals} last ones were sent to the glasses",
        mode.name,
        speech.name,
        asr / seconds,
        speech.clips.len(),
    );
    glasses.goodbye().await;
    gateway.running.stop().await;
    Ok(())
}

async fn say(glasses: &Glasses, pcm: &[i16]) -> Result<()> {
    let said = glasses.say_pcm("speech", pcm, None).await?;
    let length = Duration::from_secs_f64(pcm.len() as f64 / f64::from(CLIP_HZ));
    let voiced = Duration::from_micros(said.t0_us.checked_sub(said.begins_us).context("it ends behind its begin")?);
    tokio::time::sleep(length.saturating_sub(voiced) + GAP).await;
    Ok(())
}
