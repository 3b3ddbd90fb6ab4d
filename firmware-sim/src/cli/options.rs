//! Options common to all commands.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
use device_protocol::Codecs;
use firmware_sim::Options;
use firmware_sim::acoustics::{Acoustics, Echo, Fault, HalfDuplex, Noise, Room};
use firmware_sim::firmware::Updates;
use firmware_sim::identity::Trust;
use firmware_sim::microphone::Background;
use firmware_sim::network::{self, Conditions, Loss, NAMES};
use firmware_sim::profile::Profile;
use firmware_sim::transport::{Scheme, Target};
use firmware_sim::wake::Chip;

/// Where the gateway is and what the glasses are.
#[derive(Args, Clone)]
#[command(next_help_heading = "Glasses, network and output")]
pub(crate) struct Common {
    /// Address of the gateway: ws://HOST:PORT/glasses, wss://HOST:PORT/glasses or quic://HOST:PORT.
    #[arg(long, global = true, default_value = "ws://127.0.0.1:8460/glasses")]
    gateway: Target,
    /// Look for the gateway on the local network instead (multicast DNS).
    #[arg(long, global = true, conflicts_with = "gateway")]
    pub(crate) discover: bool,
    /// Seconds to look for it; one that has just started is announced within two.
    #[arg(long, global = true, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) look_s: u64,
    /// For glasses that are not paired: the fingerprint of the gateway's key, as `lorgnette status` prints it. They accept no
    /// other gateway.
    #[arg(long, global = true)]
    pub(crate) gateway_key: Option<String>,
    /// What was found, or scanned: the first address that leads to the gateway is used.
    #[arg(skip)]
    pub(crate) found: Vec<Target>,
    /// Which gateway is accepted.
    #[arg(skip = Trust::Anybody)]
    pub(crate) trust: Trust,
    /// Another transport than the address says, on the same host and port.
    #[arg(long, global = true)]
    transport: Option<Transport>,
    /// Codec offered for both directions.
    #[arg(long, global = true, default_value = "opus")]
    codec: CodecName,
    /// For --codec lc3: milliseconds (10 or 7.5) and bytes (20 to 120) of a frame.
    #[arg(long, global = true, value_name = "FRAME_MS,BYTES", default_value = "10,40", value_parser = lc3_frames)]
    lc3: (u16, u16),
    /// Folder with the key of the glasses and of the gateway that they are paired with. Default:
    /// $XDG_STATE_HOME/lorgnette-sim, else ~/.local/state/lorgnette-sim.
    #[arg(long, global = true)]
    state: Option<PathBuf>,
    /// Maker and model that the glasses name.
    #[arg(long, global = true)]
    model: Option<String>,
    /// Version of the firmware that runs on new glasses; what the flash holds counts more.
    #[arg(long, global = true)]
    firmware: Option<String>,
    /// Revision of the hardware.
    #[arg(long, global = true, default_value_t = 0)]
    hardware: u16,
    /// Take new firmware into this file, which is made if it is not there.
    #[arg(long, global = true)]
    flash: Option<PathBuf>,
    /// For --flash: the maker's public key in 64 hexadecimal digits, as `lorgnette-sim firmware key` prints it.
    #[arg(long, global = true, value_parser = public_key)]
    maker_key: Option<[u8; 32]>,
    /// For --flash: the power is lost when so many bytes of an image are stored.
    #[arg(long, global = true)]
    lose_power_at: Option<u32>,
    /// Characters in one line of the display.
    #[arg(long, global = true, default_value_t = 40)]
    columns: u16,
    /// Lines of the display.
    #[arg(long, global = true, default_value_t = 6)]
    rows: u16,
    /// Glasses without a display.
    #[arg(long, global = true)]
    no_display: bool,
    /// Glasses without a speaker.
    #[arg(long, global = true)]
    no_speaker: bool,
    /// Show what is being said while it is said.
    #[arg(long, global = true)]
    captions: bool,
    /// The microphone does not hear the speaker.
    #[arg(long, global = true)]
    echo_cancelled: bool,
    /// The microphone hears the speaker so many milliseconds later and decibels weaker, such as 80,12; with a third number
    /// also a tail that decays within so many milliseconds.
    #[arg(long, global = true, value_name = "DELAY_MS,ATTENUATION_DB[,TAIL_MS]")]
    echo: Option<Echo>,
    /// The microphone is closed while the speaker plays, and for 200 or so many milliseconds after it: what is said
    /// meanwhile is lost.
    #[arg(long, global = true, value_name = "HANGOVER_MS", num_args = 0..=1, require_equals = true, default_missing_value = "200")]
    half_duplex: Option<HalfDuplex>,
    /// What is wrong with the microphone: dead, stuck, clipping, quiet or offset; behind a comma the sample of stuck and
    /// offset, or the decibels of clipping and quiet.
    #[arg(long, global = true, value_name = "FAULT[,VALUE]")]
    microphone: Option<Fault>,
    /// The room around the wearer: small, living or hall, with a seed of its reflections. Voice and echo sound in it.
    #[arg(long, global = true, value_name = "ROOM[,SEED]")]
    room: Option<Room>,
    /// Noise around the wearer: white, pink, babble, street or music, so many decibels below the voice, such as
    /// babble,10. Or a number: the amplitude of the microphone's own noise in units of a 16-bit sample; 0: digital silence.
    #[arg(long, global = true, value_name = "KIND,SNR_DB[,SEED]", default_value = "8", value_parser = noises)]
    noise: Noises,
    /// The glasses hear their wake phrase by themselves, with this head (`lorgnette wake train` makes one), and say so.
    #[arg(long, global = true, value_name = "HEAD")]
    wake_head: Option<PathBuf>,
    /// For --wake-head: no sound leaves the glasses before they have heard it, or after it is not needed any more.
    #[arg(long, global = true, requires = "wake_head")]
    sleep: bool,
    /// Send little in silence, as Opus can (discontinuous transmission).
    #[arg(long, global = true)]
    dtx: bool,
    /// Network: shaped as this one.
    #[arg(long, global = true, value_parser = PossibleValuesParser::new(NAMES.map(|(name, what)| PossibleValue::new(name).help(what))))]
    network: Option<String>,
    /// Network: one-way delay in milliseconds.
    #[arg(long, global = true, default_value_t = 0)]
    delay_ms: u64,
    /// Network: up to so many milliseconds more, at random.
    #[arg(long, global = true, default_value_t = 0)]
    jitter_ms: u64,
    /// Network: percent of packets lost.
    #[arg(long, global = true, default_value_t = 0.0)]
    loss: f64,
    /// Network: break each connection off after so many milliseconds.
    #[arg(long, global = true)]
    cut_after_ms: Option<u64>,
    /// Seed of noise and faults.
    #[arg(long, global = true, default_value_t = 1)]
    pub(crate) seed: u64,
    /// For say and script: write what the wearer heard to this WAV file, all that the speaker played, with the silence in between.
    #[arg(long, global = true)]
    pub(crate) heard: Option<PathBuf>,
    /// One JSON object a line for each event, and one for the summary.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Only errors and what was asked for.
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
}

/// What `--noise` asks for.
#[derive(Clone, Copy)]
enum Noises {
    Own(u16),
    Around(Noise),
}

#[derive(Clone, Copy, ValueEnum)]
enum Transport {
    Ws,
    Wss,
    Quic,
}

#[derive(Clone, Copy, ValueEnum)]
enum CodecName {
    Opus,
    Lc3,
    Pcm,
}

impl Common {
    /// The folder with the keys.
    pub(crate) fn state(&self) -> PathBuf {
        let of = |name: &str| std::env::var_os(name).map(PathBuf::from);
        self.state.clone().unwrap_or_else(|| usual_state(of("XDG_STATE_HOME"), of("HOME")))
    }

    /// Says where the keys will be, if they are about to be made.
    pub(crate) fn announce_state(&self) {
        let folder = self.state();
        if !folder.exists() && !self.quiet {
            eprintln!("these glasses are new: their keys will be in {}", folder.display());
        }
    }

    /// Options of glasses for one gateway.
    pub(crate) fn options(&self) -> Result<Options> {
        ensure!((0.0..=100.0).contains(&self.loss), "--loss is a percentage from 0 to 100");
        ensure!(self.columns > 0 && self.rows > 0, "--columns and --rows must be at least 1");
        let mut target = self.found.first().unwrap_or(&self.gateway).clone();
        target.scheme = self.scheme().unwrap_or(target.scheme);
        let mut options = Options::new(target, &self.state());
        options.trust = self.trust.clone();
        options.profile = Profile {
            codecs: match self.codec {
                CodecName::Opus => Codecs::OPUS,
                CodecName::Lc3 => Codecs::LC3,
                CodecName::Pcm => Codecs::PCM16,
            },
            lc3: if matches!(self.codec, CodecName::Lc3) { self.lc3 } else { (0, 0) },
            display: (!self.no_display).then_some((self.columns, self.rows)),
            speaker_hz: if self.no_speaker { 0 } else { Profile::default().speaker_hz },
            captions: self.captions,
            echo_cancelled: self.echo_cancelled,
            ..Profile::default()
        };
        options.background = match self.noise {
            Noises::Own(0) => Background::Zeros,
            Noises::Own(amplitude) => Background::Noise(amplitude),
            Noises::Around(_) => options.background,
        };
        options.acoustics = self.acoustics();
        options.network = self.network_profile()?;
        options.seed = self.seed;
        options.dtx = self.dtx;
        options.wake = self.wake_head.as_deref().map(|head| self.chip(head)).transpose()?;
        if let Some(model) = &self.model {
            options.profile.model.clone_from(model);
        }
        if let Some(version) = &self.firmware {
            options.profile.firmware.clone_from(version);
        }
        options.profile.hardware = self.hardware;
        ensure!(self.flash.is_some() == self.maker_key.is_some(), "--flash and --maker-key belong together");
        ensure!(self.flash.is_some() || self.lose_power_at.is_none(), "--lose-power-at needs --flash");
        if let (Some(flash), Some(maker)) = (&self.flash, self.maker_key) {
            let mut updates = Updates::new(flash.clone(), maker, &options.profile.firmware);
            (updates.hardware, updates.lose_power_at) = (self.hardware, self.lose_power_at);
            options.updates = Some(updates);
        }
        Ok(options)
    }

    /// What hears the wake phrase in the glasses.
    fn chip(&self, head: &Path) -> Result<Chip> {
        let missing = "the shared models come with `lorgnette models fetch wake-embedding`";
        let chip = Chip::load(head, &audio::models::default_dir(), self.sleep);
        chip.map_err(|error| anyhow!("{error}; {missing}"))
    }

    /// The world around the glasses.
    pub(crate) fn acoustics(&self) -> Acoustics {
        let noise = match self.noise {
            Noises::Own(_) => None,
            Noises::Around(noise) => Some(noise),
        };
        Acoustics { echo: self.echo, room: self.room, noise, half_duplex: self.half_duplex, fault: self.microphone }
    }

    /// The transport, if one is wanted.
    pub(crate) fn scheme(&self) -> Option<Scheme> {
        self.transport.map(|transport| match transport {
            Transport::Ws => Scheme::Ws,
            Transport::Wss => Scheme::Wss,
            Transport::Quic => Scheme::Quic,
        })
    }

    /// The named network, or one of the single faults; `None`: as it is.
    fn network_profile(&self) -> Result<Option<network::Profile>> {
        let conditions = Conditions {
            delay: Duration::from_millis(self.delay_ms),
            jitter: Duration::from_millis(self.jitter_ms),
            loss: Loss::even(self.loss / 100.0),
            ..Conditions::default()
        };
        let is_changed = conditions != Conditions::default();
        let named = self.network.as_deref().and_then(network::Profile::named);
        ensure!(named.is_none() || !is_changed, "--network excludes --delay-ms, --jitter-ms and --loss");
        let steady = (is_changed || self.cut_after_ms.is_some()).then(|| network::Profile::steady(conditions));
        Ok(named
            .or(steady)
            .map(|profile| network::Profile { cut_after: self.cut_after_ms.map(Duration::from_millis), ..profile }))
    }
}

/// Where the keys are if nothing else is said, by the variables of the system. A relative folder of state counts as none.
fn usual_state(state: Option<PathBuf>, home: Option<PathBuf>) -> PathBuf {
    let home = home.filter(|home| home.is_absolute()).map(|home| home.join(".local/state"));
    let base = state.filter(|state| state.is_absolute()).or(home).unwrap_or_default();
    base.join("lorgnette-sim")
}

/// Reads a noise, or an amplitude.
fn noises(text: &str) -> Result<Noises, String> {
    match text.parse() {
        Ok(amplitude) => Ok(Noises::Own(amplitude)),
        Err(_) => text.parse().map(Noises::Around),
    }
}

/// Reads the length and the size of LC3 frames.
fn lc3_frames(text: &str) -> Result<(u16, u16), String> {
    let (frame_ms, bytes) = text.split_once(',').ok_or("a length and a size are wanted, such as 10,40")?;
    let frame_us = match frame_ms {
        "10" => 10_000,
        "7.5" => 7_500,
        _ => return Err("a frame has 10 or 7.5 ms".to_owned()),
    };
    let bytes = bytes.parse().map_err(|_| "the size is a number of bytes".to_owned())?;
    let format = audio::codec::lc3::Format::new(frame_us.into(), bytes);
    format.map(|_| (frame_us, bytes)).map_err(|error| error.to_string())
}

/// Reads a key.
fn public_key(text: &str) -> Result<[u8; 32], String> {
    firmware_sim::identity::read_hex(text).ok_or_else(|| "64 hexadecimal digits are wanted".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_where_the_system_keeps_state() {
        for (state, home, expected) in [
            (Some("/state"), Some("/ann"), "/state/lorgnette-sim"),
            (None, Some("/ann"), "/ann/.local/state/lorgnette-sim"),
            (Some(""), Some("/ann"), "/ann/.local/state/lorgnette-sim"),
            (Some("state"), None, "lorgnette-sim"),
        ] {
            assert_eq!(usual_state(state.map(PathBuf::from), home.map(PathBuf::from)), Path::new(expected));
        }
    }
}
