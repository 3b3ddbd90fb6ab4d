//! Faults of a microphone, found in its sound: dead, clipping, far too quiet, not around zero.
//!
//! All thresholds prefer to miss a fault over inventing one. What is not sent tells nothing: an Opus pause is no dead
//! microphone, and neither are lost packets or a muted microphone, whose sound must not be passed in.
//!
//! A dead microphone is known by its packets, since decoded Opus never stands still: a signal of one value is coded as the
//! same packet again and again (LC3, PCM) or as up to four by turns (Opus, whose frames count), while noise of a third of a
//! 16-bit step already makes each packet another one.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::frame::{RATE_HZ, samples_to_us, us_to_samples};

/// Different packets that are remembered: more than a coder has for one value, fewer than any sound is made of.
const PACKETS_MAX: usize = 8;

/// The same packets for so long may be a gate that is closed; shorter ones are within what any codec does.
const GATE_US_MIN: u64 = 100_000;

/// After so many closed gates the device is taken to have one, and its silence proves nothing any more.
const GATES_MAX: u8 = 3;

/// Clipped samples among a thousand beyond which the mean is not judged: what is cut off on one side only has one.
const CLIPPED_PER_MILLE: u64 = 1;

/// Least magnitude that counts as clipped, of 32,768: codecs and resamplers move a clipped crest a little.
const CLIPPED_MIN: i16 = 32_000;

/// Voiced sound over which clipping is judged, in samples.
const CLIPPING_BLOCK: u64 = 3 * RATE_HZ as u64;

/// Share of clipped samples in voiced sound, in ten-thousandths, from which on it clips, and under which it does no longer.
const CLIPPING: Limits = Limits { enter: 100, leave: 20 };

/// Voiced sound over which loudness is judged, in samples.
const LEVEL_BLOCK: u64 = RATE_HZ as u64;

/// Root mean square of voiced sound in units of a 16-bit sample at which it is far too quiet: -56 and -50 dB of full scale.
const QUIET_RMS: f64 = 52.0;
const QUIET_NO_MORE_RMS: f64 = 104.0;

/// Sound over which the mean is judged, in samples: no voice and no noise has a period as long as that.
const OFFSET_BLOCK: u64 = 10 * RATE_HZ as u64;

/// Mean of all samples in units of a 16-bit sample from which on there is an offset, and under which there is none.
const OFFSET: Limits = Limits { enter: 1_000, leave: 500 };

/// What is wrong with a microphone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// For the time that was set, all samples had one value.
    Dead,
    /// More than 1 % of the samples of 3 s of voice are at the greatest value that a sample can have.
    Clipping,
    /// A second of voice was below -56 dB of full scale.
    Quiet,
    /// The mean of ten seconds was beyond 3 % of full scale.
    Offset,
}

/// All faults, in the order of the analyser's table.
const FAULTS: [Fault; 4] = [Fault::Dead, Fault::Clipping, Fault::Quiet, Fault::Offset];

/// Two limits with hysteresis.
struct Limits {
    enter: u64,
    leave: u64,
}

impl Limits {
    fn judge(&self, value: u64, is_present: bool) -> bool {
        value >= if is_present { self.leave } else { self.enter }
    }
}

/// Sums over a block of sound.
#[derive(Default)]
struct Block {
    samples: u64,
    sum: f64,
}

impl Block {
    /// Adds sound; returns the mean once the block is full, and begins the next one.
    fn add(&mut self, samples: usize, sum: f64, full: u64) -> Option<f64> {
        self.samples += samples as u64;
        self.sum += sum;
        if self.samples < full {
            return None;
        }
        let mean = self.sum / self.samples as f64;
        *self = Self::default();
        Some(mean)
    }
}

/// One microphone's analyser. All sound is mono at 16 kHz.
pub struct Analyser {
    /// Samples in the same packets from which on a microphone is dead; `None`: it never is.
    dead: Option<u64>,
    /// Hashes of the last packets that differed, the newest last, and for how many samples there was no other.
    packets: Vec<u64>,
    run: u64,
    gates: u8,
    clipped: Block,
    energy: Block,
    mean: Block,
    /// Clipped samples of the block of the mean.
    cut_off: u64,
    present: [bool; FAULTS.len()],
    told: [bool; FAULTS.len()],
}

impl Analyser {
    /// An analyser that takes a microphone for dead after `dead_us` microseconds of one value; `None`: never.
    pub fn new(dead_us: Option<u64>) -> Self {
        Self {
            dead: dead_us.map(|dead_us| us_to_samples(dead_us, RATE_HZ)),
            packets: Vec::with_capacity(PACKETS_MAX),
            run: 0,
            gates: 0,
            clipped: Block::default(),
            energy: Block::default(),
            mean: Block::default(),
            cut_off: 0,
            present: [false; FAULTS.len()],
            told: [false; FAULTS.len()],
        }
    }

    /// A packet of so many samples, of 1/16,000 s each, as it came.
    pub fn push_packet(&mut self, packet: &[u8], samples: u64) {
        let mut hasher = DefaultHasher::new();
        packet.hash(&mut hasher);
        let hash = hasher.finish();
        if self.packets.contains(&hash) {
            self.run += samples;
        } else {
            self.end_run();
            if self.packets.len() >= PACKETS_MAX {
                self.packets.remove(0);
            }
            self.packets.push(hash);
        }
        if self.dead.is_some_and(|dead| self.run >= dead) && self.gates < GATES_MAX {
            self.present[Fault::Dead as usize] = true;
        }
    }

    /// The sound of such packets: neither concealed nor filled in.
    pub fn push(&mut self, pcm: &[i16]) {
        let sum: i64 = pcm.iter().map(|sample| i64::from(*sample)).sum();
        self.cut_off += clipped(pcm);
        if let Some(mean) = self.mean.add(pcm.len(), sum as f64, OFFSET_BLOCK) {
            let is_clipped = std::mem::take(&mut self.cut_off) * 1_000 > OFFSET_BLOCK * CLIPPED_PER_MILLE;
            let offset = &mut self.present[Fault::Offset as usize];
            *offset = if is_clipped { *offset } else { OFFSET.judge(mean.abs() as u64, *offset) };
        }
    }

    /// Sound in which the voice detector has found a voice.
    pub fn push_voiced(&mut self, pcm: &[i16]) {
        if let Some(share) = self.clipped.add(pcm.len(), clipped(pcm) as f64, CLIPPING_BLOCK) {
            let clipping = &mut self.present[Fault::Clipping as usize];
            *clipping = CLIPPING.judge((share * 10_000.0) as u64, *clipping);
        }
        let energy: f64 = pcm.iter().map(|sample| f64::from(*sample).powi(2)).sum();
        if let Some(power) = self.energy.add(pcm.len(), energy, LEVEL_BLOCK) {
            let quiet = &mut self.present[Fault::Quiet as usize];
            *quiet = power.sqrt() < if *quiet { QUIET_NO_MORE_RMS } else { QUIET_RMS };
        }
    }

    /// The device sends nothing for a while: it says that there is silence, and what it would have sent is not known.
    pub fn pause(&mut self) {
        self.run = 0;
    }

    /// The microphone was muted: sums of the sound before are dropped, what was found remains.
    pub fn forget(&mut self) {
        self.run = 0;
        (self.clipped, self.energy, self.mean) = (Block::default(), Block::default(), Block::default());
        self.cut_off = 0;
    }

    /// The next fault that was found, or that is gone (`false`).
    pub fn take_change(&mut self) -> Option<(Fault, bool)> {
        FAULTS.into_iter().find_map(|fault| {
            let (told, present) = (&mut self.told[fault as usize], self.present[fault as usize]);
            (*told != present).then(|| {
                *told = present;
                (fault, present)
            })
        })
    }

    /// Another packet comes.
    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        let was_dead = std::mem::take(&mut self.present[Fault::Dead as usize]);
        if !was_dead && samples_to_us(run, RATE_HZ) >= GATE_US_MIN {
            self.gates = self.gates.saturating_add(1);
        }
    }
}

/// How many samples are cut off.
fn clipped(pcm: &[i16]) -> u64 {
    pcm.iter().filter(|sample| sample.saturating_abs() >= CLIPPED_MIN).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: usize = RATE_HZ as usize;

    /// A microphone that is taken for dead after ten seconds.
    fn analyser() -> Analyser {
        Analyser::new(Some(10_000_000))
    }

    /// A tone of 200 Hz and a bit, with this amplitude, around `mean`; beyond full scale it is cut off.
    fn tone(seconds: usize, amplitude: f64, mean: f64) -> Vec<i16> {
        (0..seconds * SECOND).map(|n| ((n as f64 * 0.0791).sin() * amplitude + mean).round() as i16).collect()
    }

    /// The least that a converter gives in a silent room: now and then one step up or down.
    fn quiet_room(seconds: usize) -> Vec<i16> {
        let mut state = 1u32;
        let mut step = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            i16::from(state >> 24 > 250) - i16::from(state >> 24 < 5)
        };
        (0..seconds * SECOND).map(|_| step()).collect()
    }

    fn changes(analyser: &mut Analyser) -> Vec<(Fault, bool)> {
        std::iter::from_fn(|| analyser.take_change()).collect()
    }

    fn hear(analyser: &mut Analyser, pcm: &[i16]) -> Vec<(Fault, bool)> {
        for frame in pcm.chunks(320) {
            let packet: Vec<u8> = frame.iter().flat_map(|sample| sample.to_le_bytes()).collect();
            analyser.push(frame);
            analyser.push_packet(&packet, frame.len() as u64);
        }
        changes(analyser)
    }

    fn voice(analyser: &mut Analyser, pcm: &[i16]) -> Vec<(Fault, bool)> {
        pcm.chunks(512).for_each(|window| analyser.push_voiced(window));
        changes(analyser)
    }

    #[test]
    fn one_value_for_long_enough_is_a_dead_microphone_until_there_is_another() {
        for value in [0, -1, 700, i16::MIN] {
            let mut microphone = analyser();
            let before = hear(&mut microphone, &vec![value; 10 * SECOND - 640]);
            assert!(!before.contains(&(Fault::Dead, true)), "{value}");
            let found = hear(&mut microphone, &vec![value; SECOND]);
            assert!(found.contains(&(Fault::Dead, true)), "{value}: {found:?}");
            hear(&mut microphone, &vec![value; 60 * SECOND]);
            assert!(hear(&mut microphone, &tone(1, 20.0, 0.0)).contains(&(Fault::Dead, false)), "{value}");
        }
        assert_eq!(hear(&mut Analyser::new(None), &vec![0; 100 * SECOND]), [], "switched off");
    }

    #[test]
    fn a_quiet_room_and_a_pause_that_is_not_sent_are_not_dead() {
        let mut microphone = analyser();
        assert_eq!(hear(&mut microphone, &quiet_room(120)), []);
        for _ in 0..100 {
            assert_eq!(hear(&mut microphone, &[0; 8_000]), []);
            microphone.pause();
        }
        // Packets that come by turns, as a device repeats that was given them: more than any coder has for one value.
        let loop_of: Vec<i16> = tone(1, 50.0, 0.0).into_iter().cycle().take(60 * SECOND).collect();
        assert_eq!(hear(&mut microphone, &loop_of), []);
    }

    #[test]
    fn a_device_with_a_gate_is_never_dead_and_a_loose_contact_is_each_time() {
        let mut gated = analyser();
        for _ in 0..3 {
            assert_eq!(hear(&mut gated, &vec![0; 2 * SECOND]), []);
            assert_eq!(hear(&mut gated, &tone(1, 900.0, 0.0)), []);
        }
        assert_eq!(hear(&mut gated, &vec![0; 100 * SECOND]), []);
        let mut loose = analyser();
        for _ in 0..5 {
            assert_eq!(hear(&mut loose, &vec![0; 11 * SECOND]), [(Fault::Dead, true)]);
            assert_eq!(hear(&mut loose, &tone(1, 900.0, 0.0)), [(Fault::Dead, false)]);
        }
    }

    #[test]
    fn a_voice_that_is_cut_off_clips_and_a_loud_one_does_not() {
        let mut microphone = analyser();
        // A tone at full scale is above 0.977 of it for 14 % of the time; no voice is.
        assert_eq!(voice(&mut microphone, &tone(10, 31_000.0, 0.0)), []);
        assert_eq!(voice(&mut microphone, &tone(4, 45_000.0, 0.0)), [(Fault::Clipping, true)]);
        assert_eq!(voice(&mut microphone, &tone(7, 9_000.0, 0.0)), [(Fault::Clipping, false)]);
    }

    #[test]
    fn a_whisper_from_afar_is_quiet_with_hysteresis() {
        let mut microphone = analyser();
        assert_eq!(voice(&mut microphone, &tone(5, 100.0, 0.0)), [], "-53 dB");
        assert_eq!(voice(&mut microphone, &tone(5, 50.0, 0.0)), [(Fault::Quiet, true)], "-59 dB");
        assert_eq!(voice(&mut microphone, &tone(5, 100.0, 0.0)), [], "-53 dB");
        assert_eq!(voice(&mut microphone, &tone(5, 200.0, 0.0)), [(Fault::Quiet, false)], "-47 dB");
    }

    #[test]
    fn an_offset_is_found_under_any_sound_and_low_sounds_have_none() {
        let mut microphone = analyser();
        assert_eq!(hear(&mut microphone, &tone(30, 8_000.0, 300.0)), []);
        // Wind and traffic: 5 Hz, loud.
        let rumble: Vec<i16> = (0..30 * SECOND).map(|n| ((n as f64 * 0.00196).sin() * 20_000.0) as i16).collect();
        assert_eq!(hear(&mut microphone, &rumble), []);
        assert_eq!(hear(&mut microphone, &tone(20, 4_000.0, -1_500.0)), [(Fault::Offset, true)]);
        microphone.forget();
        assert_eq!(hear(&mut microphone, &tone(10, 4_000.0, -700.0)), []);
        assert_eq!(hear(&mut microphone, &tone(20, 4_000.0, 0.0)), [(Fault::Offset, false)]);
    }
}
