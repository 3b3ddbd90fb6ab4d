//! Echo: what the speaker plays comes into the microphone, later, weaker, perhaps with a tail.

use std::collections::VecDeque;
use std::str::FromStr;

use audio::resample::Resampler;

use crate::speaker::Output;

use super::convolution::Convolver;
use super::{gain, number, room, samples};

/// Shortest delay in milliseconds: converting the rate needs some sound behind a sample.
const DELAY_MS_MIN: f64 = 5.0;

/// Longest delay in milliseconds.
const DELAY_MS_MAX: f64 = 2_000.0;

/// Longest tail in milliseconds.
const TAIL_MS_MAX: f64 = 500.0;

/// Energy of the direct echo over that of its tail, in decibels.
const DIRECT_TO_TAIL_DB: f64 = 6.0;

/// Seed of tails: a tail is a property of the frame of the glasses.
const TAIL_SEED: u64 = 0x6563_686f;

/// Most sound kept for the microphone, in seconds: it is taken packet by packet.
const KEPT_S_MAX: u64 = 10;

/// The path from the speaker into the microphone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Echo {
    /// From the playback of a sample to its capture, in milliseconds.
    pub delay_ms: f64,
    /// Decibels by which it is weaker; the speaker plays at full volume.
    pub attenuation_db: f64,
    /// Time in which the tail decays by 60 dB, in milliseconds; 0: no tail.
    pub tail_ms: f64,
}

impl FromStr for Echo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(',').collect();
        let (delay, attenuation, tail) = match parts.as_slice() {
            [delay, attenuation] => (*delay, *attenuation, "0"),
            [delay, attenuation, tail] => (*delay, *attenuation, *tail),
            _ => return Err("an echo is DELAY_MS,ATTENUATION_DB[,TAIL_MS], such as 80,12".to_owned()),
        };
        Ok(Self {
            delay_ms: number(delay, "the delay in milliseconds", DELAY_MS_MIN..=DELAY_MS_MAX)?,
            attenuation_db: number(attenuation, "the attenuation in decibels", 0.0..=90.0)?,
            tail_ms: number(tail, "the tail in milliseconds", 0.0..=TAIL_MS_MAX)?,
        })
    }
}

/// The sound of the speaker on its way into the microphone, on the microphone's clock of samples.
pub(super) struct Path {
    rate_hz: u32,
    delay: u64,
    gain: f32,
    tail: Option<Convolver>,
    line: Option<Line>,
    /// Sample of the microphone that `kept` begins with.
    first: u64,
    kept: VecDeque<f32>,
}

/// A stretch of the speaker's sound that is being converted to the microphone's rate.
struct Line {
    rate_hz: u32,
    resampler: Resampler,
    /// Sample of the speaker that is pushed next.
    next: u64,
    /// Sample of the microphone that comes out next.
    out: u64,
}

impl Path {
    pub(super) fn new(echo: &Echo, rate_hz: u32) -> Self {
        let tail = (echo.tail_ms > 0.0)
            .then(|| Convolver::new(&room::tail(echo.tail_ms / 1e3, DIRECT_TO_TAIL_DB, TAIL_SEED, rate_hz), rate_hz));
        Self {
            rate_hz,
            delay: samples((echo.delay_ms * 1e3).round() as u64, rate_hz),
            gain: gain(-echo.attenuation_db) as f32,
            tail,
            line: None,
            first: 0,
            kept: VecDeque::new(),
        }
    }

    /// The speaker has played this.
    pub(super) fn play(&mut self, output: &Output) {
        if output.pcm.is_empty() {
            return;
        }
        let at = samples(output.from_us, output.rate_hz);
        if self.line.as_ref().is_some_and(|line| line.rate_hz != output.rate_hz) {
            self.end_line();
        }
        self.silence(at);
        let mut line = match self.line.take() {
            Some(line) => line,
            None => match Resampler::new(output.rate_hz, self.rate_hz) {
                Ok(resampler) => {
                    let begins = samples(output.from_us, self.rate_hz) + self.delay;
                    let out = begins.saturating_sub(samples(resampler.delay_us(), self.rate_hz));
                    Line { rate_hz: output.rate_hz, resampler, next: at, out }
                }
                // The speaker refuses such a rate.
                Err(_) => return,
            },
        };
        self.push(&mut line, &output.pcm);
        self.line = Some(line);
    }

    /// The speaker has played nothing but this up to `now_us`.
    pub(super) fn played_until(&mut self, now_us: u64) {
        if let Some(line) = &self.line {
            let now = samples(now_us, line.rate_hz);
            self.silence(now);
        }
    }

    /// Silence up to a sample of the speaker; a longer one ends the line.
    fn silence(&mut self, until: u64) {
        let Some(mut line) = self.line.take() else { return };
        let gap = until.saturating_sub(line.next);
        if gap > line.resampler.tail_samples() as u64 {
            self.line = Some(line);
            return self.end_line();
        }
        self.push(&mut line, &vec![0; gap as usize]);
        self.line = Some(line);
    }

    fn end_line(&mut self) {
        if let Some(mut line) = self.line.take() {
            let tail = vec![0; line.resampler.tail_samples()];
            self.push(&mut line, &tail);
        }
    }

    fn push(&mut self, line: &mut Line, pcm: &[i16]) {
        let mut converted = Vec::new();
        line.resampler.push(pcm, &mut converted);
        line.next += pcm.len() as u64;
        for sample in converted {
            self.keep(line.out, f32::from(sample) * self.gain);
            line.out += 1;
        }
    }

    fn keep(&mut self, at: u64, sample: f32) {
        // What the microphone has captured already is lost.
        let Some(at) = at.checked_sub(self.first) else { return };
        if at >= u64::from(self.rate_hz) * KEPT_S_MAX {
            return;
        }
        let at = at as usize;
        if at >= self.kept.len() {
            self.kept.resize(at + 1, 0.0);
        }
        if let Some(kept) = self.kept.get_mut(at) {
            *kept += sample;
        }
    }

    /// The echo in a packet whose first sample is `at`, added to `sound`.
    pub(super) fn add(&mut self, at: u64, sound: &mut [f32]) {
        let skipped = at.saturating_sub(self.first).min(self.kept.len() as u64);
        self.kept.drain(..skipped as usize);
        self.first = at;
        let mut echo: Vec<f32> = self.kept.drain(..sound.len().min(self.kept.len())).collect();
        echo.resize(sound.len(), 0.0);
        self.first += sound.len() as u64;
        if let Some(tail) = &mut self.tail {
            tail.add(&mut echo);
        }
        for (sample, echo) in sound.iter_mut().zip(echo) {
            *sample += echo;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(from_us: u64, rate_hz: u32, pcm: Vec<i16>) -> Output {
        let until_us = from_us + pcm.len() as u64 * 1_000_000 / u64::from(rate_hz);
        Output { from_us, until_us, rate_hz, pcm }
    }

    /// The echo of what is played, in packets of 20 ms at 16 kHz from 0 on.
    fn heard(echo: &str, outputs: &[Output], packets: u64) -> Vec<f32> {
        let mut path = Path::new(&echo.parse().unwrap(), 16_000);
        let mut all = Vec::new();
        for packet in 0..packets {
            let ends_us = (packet + 1) * 20_000;
            // In the order of time: what the speaker has played by then, and then the packet.
            let due = |output: &&Output| (packet * 20_000..ends_us).contains(&output.from_us);
            outputs.iter().filter(due).for_each(|output| path.play(output));
            path.played_until(ends_us);
            let mut sound = vec![0.0; 320];
            path.add(packet * 320, &mut sound);
            all.extend(sound);
        }
        all
    }

    fn loudest(sound: &[f32]) -> (usize, f32) {
        sound
            .iter()
            .enumerate()
            .fold((0, 0.0), |best, (at, sample)| if sample.abs() > best.1 { (at, sample.abs()) } else { best })
    }

    #[test]
    fn a_click_comes_at_its_sample_and_as_loud_as_asked() {
        let mut click = vec![0; 320];
        click[100] = 20_000;
        let sound = heard("80,12", &[output(40_000, 16_000, click)], 12);
        // Played at 40 ms and 100 samples, heard 80 ms later.
        let at = 640 + 100 + 1_280;
        let wanted = 20_000.0 * 10f32.powf(-12.0 / 20.0);
        assert!((sound[at] - wanted).abs() < 1.0, "{} {wanted}", sound[at]);
        assert!(sound.iter().enumerate().all(|(n, sample)| n == at || *sample == 0.0));
    }

    #[test]
    fn the_place_is_kept_where_the_rate_is_converted() {
        for (from_us, delay_ms) in [(40_000, 80), (40_000, 5), (53_250, 31)] {
            // A short pulse, within the band of the microphone, at sample 240 of 480 at 24 kHz.
            let pulse = |n: i32| (12_000.0 * (-f64::from(n - 240).powi(2) / 32.0).exp()) as i16;
            let played = output(from_us, 24_000, (0..480).map(pulse).collect());
            let sound = heard(&format!("{delay_ms},0"), &[played], 16);
            let wanted = (from_us + 10_000 + delay_ms * 1_000) * 16 / 1_000;
            assert_eq!(loudest(&sound).0 as u64, wanted, "{from_us} {delay_ms}");
        }
    }

    #[test]
    fn what_is_played_in_pieces_sounds_as_if_in_one() {
        let tone = |n: i32| (f64::from(n) * 0.07).sin() * 9_000.0;
        let whole: Vec<i16> = (0..480 * 6).map(|n| tone(n) as i16).collect();
        // The pieces end within packets of both sides.
        let cuts = [0, 300, 480, 1_000, 1_440, 2_880];
        let pieces: Vec<Output> = cuts
            .windows(2)
            .map(|ends| output(20_000 + ends[0] as u64 * 1_000_000 / 24_000, 24_000, whole[ends[0]..ends[1]].to_vec()))
            .collect();
        let sound = heard("50,6", &pieces, 16);
        // Between the rise and the fall of the filter, the echo is the tone.
        let begins = (20_000 + 50_000) * 16 / 1_000;
        for (n, sample) in sound.iter().enumerate().take(begins + 1_850).skip(begins + 60) {
            let wanted = tone(((n - begins) * 3 / 2) as i32) * gain(-6.0);
            // Every second sample falls between two of the speaker's.
            if (n - begins) % 2 == 0 {
                // A quarter of a sample: the delay of the filter is no whole number of them.
                assert!((f64::from(*sample) - wanted).abs() < 120.0, "{n}: {sample} {wanted}");
            }
        }
        assert!(sound[..begins - 60].iter().chain(&sound[begins + 2_000..]).all(|sample| sample.abs() < 1.0));
    }

    #[test]
    fn a_tail_decays() {
        let mut click = vec![0; 320];
        click[0] = 20_000;
        let sound = heard("20,0,200", &[output(0, 16_000, click)], 30);
        let energy = |from: usize| sound[from..from + 800].iter().map(|sample| sample * sample).sum::<f32>();
        // After 100 ms of a tail of 200 ms it is 30 dB weaker.
        let (early, late) = (energy(320 + 200), energy(320 + 200 + 1_600));
        let fall_db = 10.0 * (early / late).log10();
        assert!((fall_db - 30.0).abs() < 3.0, "{fall_db}");
        assert!(sound[320] > 19_999.0);
    }

    #[test]
    fn errors_say_what_is_wanted() {
        let echo: Echo = "80,12".parse().unwrap();
        assert_eq!(echo, Echo { delay_ms: 80.0, attenuation_db: 12.0, tail_ms: 0.0 });
        assert_eq!("80,12,40".parse::<Echo>().unwrap().tail_ms, 40.0);
        for (text, hint) in [
            ("80", "such as 80,12"),
            ("1,2,3,4", "such as 80,12"),
            ("80,-12", "from 0 to 90"),
            ("1,12", "from 5 to 2000"),
            ("NaN,12", "from 5 to 2000"),
            ("80,12,9999", "from 0 to 500"),
        ] {
            let error = text.parse::<Echo>().unwrap_err();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }
}
