//! The microphone: an endless stream of packets, into which clips are inserted.

use std::collections::VecDeque;
use std::sync::Arc;

use audio::codec::{Codec, Encoder, is_pause};
use audio::wav;
use bytes::Bytes;
use device_protocol::{down::AudioFormat, limits};
use tokio::sync::oneshot;

use crate::acoustics::Scene;
use crate::random::Random;
use crate::sound::codec_of;

pub use crate::sound::CLIP_HZ;

/// Most queued clips.
const CLIPS_MAX: usize = 32;

/// Bit rate of Opus in bits per second: typical of such glasses over Bluetooth and Wi-Fi.
pub(crate) const BITRATE: u32 = 24_000;
/// Bit rate, milliseconds of a packet and expected loss in percent with which Opus begins, as long as nothing is known of
/// the link (PROTOCOL.md, section 8).
const START: (u32, u16, u8) = (12_000, 60, LOSS_PERCENT);
/// Expected loss, in percent, of which nothing was said.
const LOSS_PERCENT: u8 = 10;

/// How far below the loudest 10 ms a stretch still counts as voice.
const VOICED_BELOW_PEAK_DB: f64 = 35.0;

/// Lowest root mean square that counts as voice, in units of a 16-bit sample: above the dither of a silent recording.
const VOICED_RMS_MIN: f64 = 20.0;

/// Background sound between sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Digital zeros.
    Zeros,
    /// White noise of this amplitude in units of a 16-bit sample; 8 is about -77 dB of full scale.
    Noise(u16),
}

/// A clip to say.
#[derive(Clone, Debug)]
pub struct Clip {
    /// Name in the log.
    pub label: String,
    /// From the first sample to the last voiced one, in microseconds.
    pub voiced_us: u64,
    /// What the microphone takes up.
    pub sound: Sound,
}

/// The sound of a clip.
#[derive(Clone, Debug)]
pub enum Sound {
    /// Samples at [`CLIP_HZ`].
    Pcm(Arc<[i16]>),
    /// Packets in the format that the gateway requests: for many glasses at once.
    Packets(Arc<[Bytes]>),
}

impl Clip {
    /// A clip of samples at [`CLIP_HZ`]; `voiced_us` comes from an annotation, else from the energy of the clip itself.
    pub fn new(label: &str, pcm: &[i16], voiced_us: Option<u64>) -> Self {
        let voiced_us = voiced_us.unwrap_or_else(|| voiced_end_us(pcm));
        Self { label: label.to_owned(), voiced_us, sound: Sound::Pcm(pcm.into()) }
    }
}

/// From the beginning to the end of the last 10 ms of voice, in microseconds.
pub fn voiced_end_us(pcm: &[i16]) -> u64 {
    let (loudness, least) = loudness(pcm);
    let frames = loudness.iter().rposition(|rms| *rms >= least).map_or(0, |last| last + 1);
    let samples = (frames * CLIP_HZ as usize / 100).min(pcm.len());
    samples as u64 * 1_000_000 / u64::from(CLIP_HZ)
}

/// From the beginning to the first 10 ms of voice, in microseconds.
pub fn voiced_begin_us(pcm: &[i16]) -> u64 {
    let (loudness, least) = loudness(pcm);
    loudness.iter().position(|rms| *rms >= least).unwrap_or_default() as u64 * 10_000
}

/// Loudness of each 10 ms, and the least that counts as voice.
fn loudness(pcm: &[i16]) -> (Vec<f64>, f64) {
    let loudness: Vec<f64> = pcm.chunks(CLIP_HZ as usize / 100).map(rms).collect();
    let peak = loudness.iter().copied().fold(0.0, f64::max);
    let least = (peak * 10f64.powf(-VOICED_BELOW_PEAK_DB / 20.0)).max(VOICED_RMS_MIN);
    (loudness, least)
}

fn rms(pcm: &[i16]) -> f64 {
    let sum: f64 = pcm.iter().map(|sample| f64::from(*sample).powi(2)).sum();
    (sum / pcm.len().max(1) as f64).sqrt()
}

/// When a clip was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClipTimes {
    /// Label of the clip.
    pub label: String,
    /// Capture time of its first sample.
    pub begins_us: u64,
    /// Capture time of its first voiced sample; of the first one where the clip was encoded before.
    pub onset_us: u64,
    /// Capture time of its last voiced sample.
    pub t0_us: u64,
}

struct Waiting {
    clip: Clip,
    done: oneshot::Sender<ClipTimes>,
}

struct Speaking {
    label: String,
    begins_us: u64,
    onset_us: u64,
    t0_us: u64,
    sound: Sound,
    at: usize,
    done: Option<oneshot::Sender<ClipTimes>>,
}

/// The microphone of one session.
pub struct Microphone {
    codec: Codec,
    rate_hz: u32,
    /// Length of a packet, as it is and as the welcome names it.
    frame_us: u64,
    agreed_us: u64,
    encoder: Option<Encoder>,
    /// Most bits per second of Opus.
    bitrate_max: u32,
    /// Bit rate, milliseconds of a packet and expected loss; 0: as agreed.
    coding: (u32, u16, u8),
    /// A pause has begun, which is not sent.
    pauses: bool,
    background: Background,
    random: Random,
    scene: Scene,
    waiting: VecDeque<Waiting>,
    speaking: Option<Speaking>,
    /// Packets of background for glasses that do not encode.
    silence: Option<(Arc<[Bytes]>, usize)>,
}

/// What the microphone gives for one frame of time.
pub struct Packet {
    /// The coded sound.
    pub payload: Bytes,
    /// False within a pause: only its first packet is sent.
    pub is_sent: bool,
    /// A clip whose last voiced sample is in this packet.
    pub said: Option<ClipTimes>,
    /// The sound before it was coded; empty where packets are given.
    pub pcm: Vec<i16>,
}

impl Microphone {
    /// A microphone in the format of a welcome.
    ///
    /// # Errors
    /// A format that cannot be sent.
    pub fn new(
        format: AudioFormat,
        background: Background,
        seed: u64,
        silence: Option<Arc<[Bytes]>>,
    ) -> Result<Self, String> {
        let (codec, rate_hz, frame_ms) = (codec_of(&format)?, format.rate_hz, format.frame_ms);
        let encoder = match silence {
            Some(_) => None,
            None => Some(Encoder::new(codec, rate_hz, BITRATE).map_err(|error| error.to_string())?),
        };
        let packet_us = packet_us(codec, rate_hz, u64::from(frame_ms) * 1_000);
        let frame_us = packet_us.ok_or_else(|| format!("the gateway wants packets of {frame_ms} ms"))?;
        Ok(Self {
            codec,
            rate_hz,
            frame_us,
            agreed_us: frame_us,
            encoder,
            bitrate_max: BITRATE,
            coding: (0, 0, 0),
            pauses: false,
            background,
            random: Random::new(seed),
            scene: Scene::new(rate_hz),
            waiting: VecDeque::new(),
            speaking: None,
            silence: silence.map(|packets| (packets, 0)),
        })
    }

    /// A session begins; `is_told`: its acknowledgements say how sound is to be coded. Opus begins with little then.
    ///
    /// # Errors
    /// The coder cannot.
    pub fn begin_session(&mut self, is_told: bool) -> Result<(), String> {
        let (bitrate, frame_ms, loss_percent) = if is_told && self.codec == Codec::Opus { START } else { (0, 0, 0) };
        self.code(bitrate, frame_ms, loss_percent).map(drop)
    }

    /// Codes Opus with at most so many bits per second.
    ///
    /// # Errors
    /// The coder cannot.
    pub fn limit_bitrate(&mut self, most: u32) -> Result<(), String> {
        self.bitrate_max = most;
        let limited = self.encoder.as_mut().map_or(Ok(()), |encoder| encoder.set_coding(most, LOSS_PERCENT));
        limited.map_err(|error| error.to_string())
    }

    /// Sends little in silence.
    ///
    /// # Errors
    /// The coder cannot.
    pub fn pause_in_silence(&mut self) -> Result<(), String> {
        let paused = self.encoder.as_mut().map_or(Ok(()), Encoder::pause_in_silence);
        paused.map_err(|error| error.to_string())
    }

    /// Codes as the gateway asks for; 0: as agreed. Whether something changes. Packets that are given are sent as they are.
    ///
    /// # Errors
    /// A coding that does not exist.
    pub fn set_coding(&mut self, bitrate: u32, frame_ms: u16, loss_percent: u8) -> Result<bool, String> {
        let (before, now) = (self.bitrate_of(self.coding.0), self.bitrate_of(bitrate));
        if !self.code(bitrate, frame_ms, loss_percent)? {
            return Ok(false);
        }
        // A link that carries less than was sent has to be spared.
        if now < before {
            self.pause_in_silence()?;
        }
        Ok(true)
    }

    fn code(&mut self, bitrate: u32, frame_ms: u16, loss_percent: u8) -> Result<bool, String> {
        let (asked, bitrate) = ((bitrate, frame_ms, loss_percent), self.bitrate_of(bitrate));
        let (Some(encoder), true) = (&mut self.encoder, self.coding != asked) else {
            return Ok(false);
        };
        let asked_us = if frame_ms == 0 { self.agreed_us } else { u64::from(frame_ms) * 1_000 };
        let packet_us = packet_us(self.codec, self.rate_hz, asked_us);
        let frame_us = packet_us.ok_or_else(|| format!("packets of {frame_ms} ms"))?;
        let loss_percent = if loss_percent == 0 { LOSS_PERCENT } else { loss_percent };
        encoder.set_coding(bitrate, loss_percent).map_err(|error| error.to_string())?;
        self.frame_us = frame_us;
        self.coding = asked;
        Ok(true)
    }

    /// The bit rate for one that is asked for; 0: as agreed.
    fn bitrate_of(&self, asked: u32) -> u32 {
        if asked == 0 { self.bitrate_max } else { asked.min(self.bitrate_max) }
    }

    /// Codec on the wire.
    pub fn wire_codec(&self) -> device_protocol::Codec {
        match self.codec {
            Codec::Opus => device_protocol::Codec::Opus,
            Codec::Pcm16 => device_protocol::Codec::Pcm16,
            Codec::Lc3(_) => device_protocol::Codec::Lc3,
        }
    }

    /// Rate of the packets in hertz.
    pub fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Length of a packet in microseconds.
    pub fn frame_us(&self) -> u64 {
        self.frame_us
    }

    /// The acoustic world around it. Packets that are given are sent as they are.
    pub fn scene(&mut self) -> &mut Scene {
        &mut self.scene
    }

    /// Says `clip` after those already queued. `done` receives the times once its voice has ended; it is dropped if the
    /// clip cannot be said.
    pub fn say(&mut self, clip: Clip, done: oneshot::Sender<ClipTimes>) {
        if self.waiting.len() < CLIPS_MAX {
            self.waiting.push_back(Waiting { clip, done });
        }
    }

    /// True while a clip is being said.
    pub fn is_speaking(&self) -> bool {
        self.speaking.is_some() || !self.waiting.is_empty()
    }

    /// The packet whose first sample was captured at `capture_us`.
    ///
    /// # Errors
    /// The coder failed.
    pub fn capture(&mut self, capture_us: u64) -> Result<Packet, String> {
        if self.speaking.is_none()
            && let Some(next) = self.waiting.pop_front()
        {
            self.speaking = Some(self.begin(next, capture_us)?);
        }
        let mut pcm = Vec::new();
        let payload = match self.take_packet() {
            Some(packet) => packet,
            None => {
                let samples = (self.rate_hz as u64 * self.frame_us / 1_000_000) as usize;
                pcm = self.take_samples(samples);
                pcm.resize(samples, 0);
                self.scene.mix(capture_us, &mut pcm);
                self.add_background(&mut pcm);
                self.scene.close(capture_us, &mut pcm);
                self.scene.convert(&mut pcm);
                let encoder = self.encoder.as_mut().ok_or("packets were given, and samples are to be said")?;
                encoder.encode(&pcm).map_err(|error| error.to_string())?.into()
            }
        };
        let mut said = None;
        let ends_us = capture_us + self.frame_us;
        if let Some(speaking) = &mut self.speaking {
            if speaking.t0_us <= ends_us
                && let Some(done) = speaking.done.take()
            {
                let (begins_us, onset_us, t0_us) = (speaking.begins_us, speaking.onset_us, speaking.t0_us);
                let times = ClipTimes { label: speaking.label.clone(), begins_us, onset_us, t0_us };
                // The receiver may be gone.
                drop(done.send(times.clone()));
                said = Some(times);
            }
            let length = match &speaking.sound {
                Sound::Pcm(pcm) => pcm.len(),
                Sound::Packets(packets) => packets.len(),
            };
            if speaking.at >= length && speaking.done.is_none() {
                self.speaking = None;
            }
        }
        let pauses = is_pause(self.codec, &payload);
        let is_sent = !(pauses && self.pauses);
        self.pauses = pauses;
        Ok(Packet { payload, is_sent, said, pcm })
    }

    fn begin(&mut self, waiting: Waiting, begins_us: u64) -> Result<Speaking, String> {
        let Clip { label, voiced_us, sound } = waiting.clip;
        let mut onset_us = begins_us;
        let sound = match sound {
            Sound::Pcm(pcm) => {
                onset_us += voiced_begin_us(&pcm);
                let pcm = wav::convert(&pcm, CLIP_HZ, self.rate_hz).map_err(|error| error.to_string())?;
                self.scene.begin(&pcm);
                Sound::Pcm(pcm.into())
            }
            packets @ Sound::Packets(_) => packets,
        };
        let t0_us = begins_us + voiced_us;
        Ok(Speaking { label, begins_us, onset_us, t0_us, sound, at: 0, done: Some(waiting.done) })
    }

    /// A packet of an encoded clip, or of encoded silence.
    fn take_packet(&mut self) -> Option<Bytes> {
        if let Some(Speaking { sound: Sound::Packets(packets), at, .. }) = &mut self.speaking {
            let packet = packets.get(*at).cloned();
            *at += 1;
            if packet.is_some() {
                return packet;
            }
        }
        let (packets, at) = self.silence.as_mut()?;
        *at = (*at + 1) % packets.len().max(1);
        packets.get(*at).cloned()
    }

    fn take_samples(&mut self, samples: usize) -> Vec<i16> {
        let Some(Speaking { sound: Sound::Pcm(pcm), at, .. }) = &mut self.speaking else {
            return Vec::new();
        };
        let end = (*at + samples).min(pcm.len());
        let part = pcm.get(*at..end).unwrap_or_default().to_vec();
        *at = end;
        part
    }

    /// Adds the background, also under the voice, as in a real room; with zeros only the clip is sent.
    fn add_background(&mut self, pcm: &mut [i16]) {
        if let Background::Noise(amplitude) = self.background {
            let span = u64::from(amplitude) * 2 + 1;
            for sample in pcm {
                let noise = self.random.below(span) as i64 - i64::from(amplitude);
                *sample = (i64::from(*sample) + noise).clamp(i16::MIN.into(), i16::MAX.into()) as i16;
            }
        }
    }
}

/// Microseconds of a packet that is asked for as `us`; `None`: there is no such packet, or a frame does not hold it.
fn packet_us(codec: Codec, rate_hz: u32, us: u64) -> Option<u64> {
    let longest_us = codec.longest_packet_us(rate_hz, limits::AUDIO_PACKET_BYTES_MAX);
    codec.packet_us(us).filter(|us| *us <= longest_us)
}

/// Encodes a whole sound at [`CLIP_HZ`] into packets, for glasses that do not encode.
///
/// # Errors
/// The coder failed.
pub fn encode_all(pcm: &[i16], codec: Codec, rate_hz: u32, frame_us: u64) -> Result<Arc<[Bytes]>, String> {
    let mut pcm = wav::convert(pcm, CLIP_HZ, rate_hz).map_err(|error| error.to_string())?;
    let samples = (u64::from(rate_hz) * frame_us / 1_000_000).max(1) as usize;
    pcm.resize(pcm.len().next_multiple_of(samples), 0);
    let mut encoder = Encoder::new(codec, rate_hz, BITRATE).map_err(|error| error.to_string())?;
    pcm.chunks_exact(samples)
        .map(|frame| encoder.encode(frame).map(Bytes::from).map_err(|error| error.to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PCM: AudioFormat = AudioFormat {
        codec: device_protocol::Codec::Pcm16,
        rate_hz: 16_000,
        frame_ms: 20,
        lc3_frame_us: 0,
        lc3_frame_bytes: 0,
    };

    fn samples(packet: &Packet) -> Vec<i16> {
        packet.payload.chunks(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect()
    }

    #[test]
    fn voice_ends_where_the_tone_does() {
        let mut pcm = vec![0i16; 16_000];
        for (n, sample) in pcm.iter_mut().enumerate().take(8_000) {
            *sample = ((n as f64 * 0.2).sin() * 8_000.0) as i16;
        }
        // Breath at the end is not voice.
        for (n, sample) in pcm.iter_mut().enumerate().skip(12_000) {
            *sample = if n % 2 == 0 { 15 } else { -15 };
        }
        assert_eq!((voiced_begin_us(&pcm), voiced_end_us(&pcm)), (0, 500_000));
        pcm.splice(0..0, [3; 3_200]);
        assert_eq!((voiced_begin_us(&pcm), voiced_end_us(&pcm)), (200_000, 700_000));
        assert_eq!(voiced_end_us(&[0; 1_600]), 0);
        assert_eq!((voiced_begin_us(&[]), voiced_end_us(&[])), (0, 0));
    }

    #[test]
    fn a_sentence_stands_at_its_place_in_an_endless_stream() {
        let mut microphone = Microphone::new(PCM, Background::Zeros, 1, None).unwrap();
        assert!(samples(&microphone.capture(0).unwrap()).iter().all(|sample| *sample == 0));
        let (done, mut said) = oneshot::channel();
        microphone.say(Clip::new("x", &[1_000; 400], None), done);
        let first = microphone.capture(20_000).unwrap();
        assert_eq!(samples(&first), [1_000; 320]);
        assert_eq!(first.said, None);
        let second = microphone.capture(40_000).unwrap();
        assert_eq!(samples(&second)[..80], [1_000; 80]);
        assert_eq!(samples(&second)[80..], [0; 240]);
        // 400 samples at 16 kHz are 25 ms.
        let times = ClipTimes { label: "x".into(), begins_us: 20_000, onset_us: 20_000, t0_us: 45_000 };
        assert_eq!(second.said.as_ref(), Some(&times));
        assert_eq!(said.try_recv().unwrap(), times);
        assert!(!microphone.is_speaking());
    }

    #[test]
    fn noise_is_as_loud_as_asked_and_repeats_with_its_seed() {
        let hear = |seed| {
            let mut microphone = Microphone::new(PCM, Background::Noise(8), seed, None).unwrap();
            samples(&microphone.capture(0).unwrap())
        };
        assert_eq!(hear(1), hear(1));
        assert_ne!(hear(1), hear(2));
        assert!(hear(1).iter().all(|sample| sample.abs() <= 8));
        assert!(hear(1).iter().any(|sample| sample.abs() == 8));
    }

    #[test]
    fn opus_takes_no_more_than_its_limit_whatever_is_asked_for() {
        let bytes = |most: u32, asked: u32| {
            let format = AudioFormat { codec: device_protocol::Codec::Opus, ..PCM };
            let mut microphone = Microphone::new(format, Background::Noise(2_000), 1, None).unwrap();
            microphone.limit_bitrate(most).unwrap();
            if asked > 0 {
                microphone.set_coding(asked, 20, LOSS_PERCENT).unwrap();
            }
            (0..50).map(|n| microphone.capture(n * 20_000).unwrap().payload.len()).sum::<usize>()
        };
        assert!(bytes(12_000, 0) < bytes(24_000, 0));
        assert_eq!(bytes(12_000, 24_000), bytes(12_000, 0));
    }

    #[test]
    fn a_packet_that_no_frame_holds_is_refused() {
        let format = AudioFormat { rate_hz: 48_000, ..PCM };
        let mut microphone = Microphone::new(format, Background::Zeros, 1, None).unwrap();
        assert!(microphone.set_coding(12_000, 60, LOSS_PERCENT).is_err(), "5,760 bytes");
        assert_eq!(microphone.set_coding(12_000, 40, LOSS_PERCENT), Ok(true));
        assert_eq!(microphone.capture(0).unwrap().payload.len(), 3_840);
        assert!(Microphone::new(AudioFormat { frame_ms: 60, ..format }, Background::Zeros, 1, None).is_err());
    }

    #[test]
    fn coded_sound_is_sent_as_it_is() {
        let speech = encode_all(&[500; 640], Codec::Pcm16, 16_000, 20_000).unwrap();
        let silence = encode_all(&[0; 320], Codec::Pcm16, 16_000, 20_000).unwrap();
        let mut microphone = Microphone::new(PCM, Background::Zeros, 1, Some(silence)).unwrap();
        let (done, _said) = oneshot::channel();
        microphone.say(Clip { label: "x".into(), voiced_us: 40_000, sound: Sound::Packets(speech) }, done);
        let loud: Vec<bool> = (0..4).map(|n| samples(&microphone.capture(n * 20_000).unwrap())[0] != 0).collect();
        assert_eq!(loud, [true, true, false, false]);
    }
}
