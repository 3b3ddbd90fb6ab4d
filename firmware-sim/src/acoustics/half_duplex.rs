//! Half duplex: hardware whose microphone is closed while its speaker plays, and a little longer.

use std::collections::VecDeque;
use std::str::FromStr;
use std::time::Duration;

use crate::speaker::Output;

use super::number;

/// Most closed times kept: the microphone drops those it has passed with each packet.
const CLOSED_MAX: usize = 256;

/// How the microphone is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HalfDuplex {
    /// How long it stays closed after the last sample of the speaker.
    pub hangover: Duration,
}

impl Default for HalfDuplex {
    fn default() -> Self {
        Self { hangover: Duration::from_millis(200) }
    }
}

impl FromStr for HalfDuplex {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ms = number(text, "the hangover in milliseconds", 0.0..=2_000.0)?;
        Ok(Self { hangover: Duration::from_secs_f64(ms / 1e3) })
    }
}

/// Closes the microphone.
pub(super) struct Gate {
    hangover_us: u64,
    /// Times in which it is closed, in their order: from, until.
    closed: VecDeque<(u64, u64)>,
}

impl Gate {
    pub(super) fn new(half_duplex: HalfDuplex) -> Self {
        Self { hangover_us: half_duplex.hangover.as_micros() as u64, closed: VecDeque::new() }
    }

    /// The speaker has played this.
    pub(super) fn play(&mut self, output: &Output) {
        let until_us = output.until_us + self.hangover_us;
        match self.closed.back_mut() {
            Some((_, until)) if output.from_us <= *until => *until = until_us.max(*until),
            _ => self.closed.push_back((output.from_us, until_us)),
        }
        if self.closed.len() > CLOSED_MAX {
            self.closed.pop_front();
        }
    }

    /// Silences the samples that were captured while it was closed.
    pub(super) fn close(&mut self, capture_us: u64, rate_hz: u32, pcm: &mut [i16]) {
        while self.closed.front().is_some_and(|(_, until)| *until <= capture_us) {
            self.closed.pop_front();
        }
        for (n, sample) in pcm.iter_mut().enumerate() {
            let at_us = capture_us + n as u64 * 1_000_000 / u64::from(rate_hz);
            if self.closed.iter().any(|(from, until)| (*from..*until).contains(&at_us)) {
                *sample = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_closed_exactly_while_the_speaker_plays_and_for_the_hangover() {
        let mut gate = Gate::new("100".parse().unwrap());
        // Two packets, a gap that is shorter than the hangover, and one that is longer.
        for from_us in [25_000, 45_000, 125_000, 400_000] {
            gate.play(&Output { from_us, until_us: from_us + 20_000, rate_hz: 24_000, pcm: Vec::new() });
        }
        let mut open = Vec::new();
        for packet in 0..30 {
            let mut pcm = [1_i16; 320];
            gate.close(packet * 20_000, 16_000, &mut pcm);
            open.extend(pcm);
        }
        for (n, sample) in open.iter().enumerate() {
            let at_us = n as u64 * 1_000_000 / 16_000;
            let is_closed = (25_000..245_000).contains(&at_us) || (400_000..520_000).contains(&at_us);
            assert_eq!(*sample == 0, is_closed, "{at_us}");
        }
        assert!(gate.closed.is_empty());
    }

    #[test]
    fn a_hangover_is_a_time() {
        assert_eq!(HalfDuplex::default().hangover, Duration::from_millis(200));
        assert!("-1".parse::<HalfDuplex>().is_err());
        assert!("5000".parse::<HalfDuplex>().unwrap_err().contains("0 to 2000"));
    }
}
