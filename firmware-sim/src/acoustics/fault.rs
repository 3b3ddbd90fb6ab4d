//! A faulty microphone: what its converter gives in place of the sound.

use std::str::FromStr;

use super::{gain, number};

/// What is wrong with the microphone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// It gives digital silence.
    Dead,
    /// It gives one value.
    Stuck(i16),
    /// It is too sensitive by so many decibels: the sound is cut off at full scale.
    Clipping(f64),
    /// It is too insensitive by so many decibels.
    Quiet(f64),
    /// Its samples swing around this value.
    Offset(i16),
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, value) = match text.split_once(',') {
            Some((kind, value)) => (kind.trim(), Some(value)),
            None => (text.trim(), None),
        };
        let value = |what, default: f64, range| value.map_or(Ok(default), |value| number(value, what, range));
        let sample = |default| value("a sample", default, -32_768.0..=32_767.0).map(|sample| sample as i16);
        let decibels = |default| value("a level in decibels", default, 0.0..=96.0);
        match kind {
            "dead" => Ok(Self::Dead),
            "stuck" => sample(700.0).map(Self::Stuck),
            "clipping" => decibels(24.0).map(Self::Clipping),
            "quiet" => decibels(40.0).map(Self::Quiet),
            "offset" => sample(3_000.0).map(Self::Offset),
            _ => Err(format!(
                "'{kind}' is no fault of a microphone; there are dead, stuck[,SAMPLE], clipping[,DB], quiet[,DB], \
                 offset[,SAMPLE]"
            )),
        }
    }
}

impl Fault {
    /// What the converter makes of the sound.
    pub(super) fn convert(self, pcm: &mut [i16]) {
        // The casts saturate, as a converter does.
        let scale = |pcm: &mut [i16], db| {
            pcm.iter_mut().for_each(|sample| *sample = (f64::from(*sample) * gain(db)).round() as i16);
        };
        match self {
            Self::Dead => pcm.fill(0),
            Self::Stuck(value) => pcm.fill(value),
            Self::Clipping(db) => scale(pcm, db),
            Self::Quiet(db) => scale(pcm, -db),
            Self::Offset(value) => pcm.iter_mut().for_each(|sample| *sample = sample.saturating_add(value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_does_to_the_sound_what_its_name_says() {
        for (fault, expected) in [
            ("dead", [0, 0, 0]),
            ("stuck,-3", [-3, -3, -3]),
            ("clipping,20", [1_000, -20_000, 32_767]),
            ("quiet,20", [10, -200, 2_000]),
            ("offset,15000", [15_100, 13_000, 32_767]),
        ] {
            let mut pcm = [100, -2_000, 20_000];
            fault.parse::<Fault>().unwrap().convert(&mut pcm);
            assert_eq!(pcm, expected, "{fault}");
        }
    }

    #[test]
    fn errors_say_what_is_wanted() {
        assert_eq!("clipping".parse(), Ok(Fault::Clipping(24.0)));
        for (text, hint) in [("broken", "there are dead"), ("quiet,loud", "from 0 to 96"), ("stuck,40000", "a sample")]
        {
            let error = text.parse::<Fault>().unwrap_err();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }
}
