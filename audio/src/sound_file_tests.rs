//! Decodes known tones, and bytes that are not sound.
//!
//! The MP3 files are tones made for this test, 440 Hz for 0.6 s followed by 1000 Hz at half the level, encoded by LAME
//! (PyPI `lameenc`): one with two channels, the right one at half the level, after a tag whose picture looks like
//! frames; one with a variable bit rate.

use hound::{SampleFormat, WavSpec, WavWriter};
use proptest::prelude::*;

use super::*;

const STEREO: &[u8] = include_bytes!("../tests/data/tones-stereo-44100.mp3");
const MONO: &[u8] = include_bytes!("../tests/data/tones-mono-22050-vbr.mp3");
const RATE_HZ: u32 = 16_000;

/// Amplitude of one frequency (Goertzel, 1958).
fn amplitude(pcm: &[i16], hz: f64, rate_hz: u32) -> f64 {
    let step = std::f64::consts::TAU * hz / f64::from(rate_hz);
    let (mut re, mut im) = (0.0, 0.0);
    for (at, sample) in pcm.iter().enumerate() {
        re += f64::from(*sample) * (step * at as f64).cos();
        im += f64::from(*sample) * (step * at as f64).sin();
    }
    2.0 * re.hypot(im) / pcm.len() as f64
}

/// Checks place and loudness of both tones; LAME attenuates by a twentieth before it encodes.
fn assert_tones(pcm: &[i16], rate_hz: u32, level: f64) {
    let second = rate_hz as usize;
    let (first, last) = (&pcm[second / 5..second / 2], &pcm[second * 4 / 5..second * 11 / 10]);
    for (part, hz, wanted) in [(first, 440.0, level), (last, 1_000.0, level / 2.0)] {
        let found = amplitude(part, hz, rate_hz);
        assert!((found / wanted - 1.0).abs() < 0.06, "{hz} Hz: {found} for {wanted}");
        let energy = part.iter().map(|it| f64::from(*it).powi(2)).sum::<f64>() / part.len() as f64;
        let rest = (energy - found * found / 2.0).max(0.0).sqrt();
        assert!(rest < wanted * 0.05, "{rest} beside {hz} Hz");
    }
}

#[test]
fn tones_of_an_mp3_keep_pitch_place_and_level() {
    for rate_hz in [8_000, 16_000, 24_000, 48_000] {
        let pcm = decode(STEREO, rate_hz, 10).unwrap();
        // An encoder adds silence before and after.
        let ms = pcm.len() * 1_000 / rate_hz as usize;
        assert!((1_200..1_350).contains(&ms), "{ms} ms");
        assert_tones(&pcm, rate_hz, 0.5 * 32_767.0 * 0.75);
        assert_tones(&decode(MONO, rate_hz, 10).unwrap(), rate_hz, 0.5 * 32_767.0);
    }
}

fn tones(rate_hz: u32) -> Vec<f64> {
    let at = |index: u32, hz: f64| (f64::from(index) * std::f64::consts::TAU * hz / f64::from(rate_hz)).sin() * 0.5;
    let part = rate_hz * 3 / 5;
    (0..part).map(|index| at(index, 440.0)).chain((0..part).map(|index| at(index, 1_000.0) / 2.0)).collect()
}

fn wav_of(rate_hz: u32, channels: u16, bits: u16, float: bool) -> Vec<u8> {
    let sample_format = if float { SampleFormat::Float } else { SampleFormat::Int };
    let spec = WavSpec { channels, sample_rate: rate_hz, bits_per_sample: bits, sample_format };
    let mut bytes = Vec::new();
    let mut writer = WavWriter::new(Cursor::new(&mut bytes), spec).unwrap();
    for sample in tones(rate_hz) {
        for channel in 0..channels {
            let sample = sample / f64::from(channel + 1);
            if float {
                writer.write_sample(sample as f32).unwrap();
            } else {
                writer.write_sample((sample * (2.0_f64.powi(i32::from(bits) - 1) - 1.0)) as i32).unwrap();
            }
        }
    }
    writer.finalize().unwrap();
    bytes
}

#[test]
fn every_kind_of_wav() {
    for (rate_hz, channels, bits, float) in
        [(8_000, 1, 16, false), (44_100, 2, 16, false), (16_000, 1, 24, false), (48_000, 2, 32, false)]
            .into_iter()
            .chain([(22_050, 1, 32, true), (16_000, 1, 8, false)])
    {
        let pcm = decode(&wav_of(rate_hz, channels, bits, float), RATE_HZ, 10).unwrap();
        assert_eq!(pcm.len(), 19_200, "{rate_hz} {channels} {bits}");
        assert_tones(&pcm, RATE_HZ, 0.5 * 32_767.0 * if channels == 2 { 0.75 } else { 1.0 });
    }
}

#[test]
fn a_file_that_breaks_off_is_played_as_far_as_it_goes() {
    let whole = wav_of(16_000, 1, 16, false);
    assert_eq!(decode(&whole[..44 + 3_200], RATE_HZ, 10).unwrap().len(), 1_600);
    // A writer that does not know the length yet states the most that can be, or nothing sensible.
    for stated in [u32::MAX, 0x7fff_f000, 9_999_999] {
        let mut streamed = wav_of(44_100, 2, 16, false);
        let data = streamed.windows(4).position(|window| window == b"data").unwrap() + 4;
        streamed[data..data + 4].copy_from_slice(&stated.to_le_bytes());
        streamed[4..8].copy_from_slice(&stated.to_le_bytes());
        assert_eq!(decode(&streamed, RATE_HZ, 10).unwrap().len(), 19_200, "{stated}");
        assert_eq!(decode(&streamed[..data + 4 + 4 * 441 + 3], RATE_HZ, 10).unwrap().len(), 160, "{stated}");
    }
    let half = decode(&STEREO[..STEREO.len() * 2 / 3], RATE_HZ, 10).unwrap();
    assert!((4_000..12_000).contains(&half.len()), "{}", half.len());
    // Decoding goes on after a gap in the middle.
    let mut hole = STEREO.to_vec();
    hole[7_000..7_600].fill(0);
    assert!(decode(&hole, RATE_HZ, 10).unwrap().len() > 14_000);
}

#[test]
fn what_is_no_sound_says_so() {
    for bytes in [&b""[..], b"OggS\0\x02", b"<!doctype html>", b"RIFF\0\0\0\0AVI ", b"fLaC", b"\xff", b"ID"] {
        assert_eq!(decode(bytes, RATE_HZ, 10), Err(Error::Unknown), "{bytes:?}");
    }
    for (bytes, format) in [
        (&b"RIFF\x24\0\0\0WAVEnonsense"[..], "WAV"),
        (&wav_of(16_000, 1, 16, false)[..44], "WAV"),
        (b"ID3\x04\0\0\0\0\0\x02xx", "MP3"),
        (b"ID3\x04\0\0\x7f\x7f\x7f\x7fxx", "MP3"),
        (b"\xff\xfb\x90\x64", "MP3"),
    ] {
        let error = decode(bytes, RATE_HZ, 10).unwrap_err().to_string();
        assert!(error.contains(format) && error.contains("damaged"), "{error}");
    }
    let error = decode(&wav_of(96_000, 1, 16, false), RATE_HZ, 10).unwrap_err();
    assert!(error.to_string().contains("96000 Hz"), "{error}");
}

#[test]
fn what_is_too_long_is_not_decoded_to_its_end() {
    assert_eq!(decode(STEREO, RATE_HZ, 1), Err(Error::TooLong { seconds_max: 1 }));
    assert_eq!(decode(&wav_of(16_000, 2, 16, false), RATE_HZ, 1), Err(Error::TooLong { seconds_max: 1 }));
}

#[test]
fn no_search_goes_on_for_ever() {
    // Headers without frames: the decoder searches again from each.
    let mut bytes = [0xff, 0xfb, 0x00, 0x64].repeat(1024 * 1024);
    assert!(matches!(decode(&bytes, RATE_HZ, 10), Err(Error::Damaged { .. })));
    // Sound found before is kept.
    bytes.splice(0..0, MONO.iter().copied());
    assert!(decode(&bytes, RATE_HZ, 10).unwrap().len() > 16_000);
}

#[test]
fn quieter_is_quieter_and_nonsense_changes_nothing() {
    let loud = vec![10_000, -10_000, 3];
    let at = |volume: f32| {
        let mut pcm = loud.clone();
        attenuate(&mut pcm, volume);
        pcm
    };
    assert_eq!(at(0.5), [5_000, -5_000, 2]);
    assert_eq!(at(0.0), [0, 0, 0]);
    for volume in [1.0, 7.0, -1.0, f32::NAN, f32::INFINITY] {
        assert_eq!(at(volume), loud, "{volume}");
    }
}

/// The output is never longer than allowed.
fn survives(bytes: &[u8]) {
    if let Ok(pcm) = decode(bytes, RATE_HZ, 2) {
        assert!(pcm.len() <= 2 * RATE_HZ as usize + 1);
    }
}

proptest! {
    #[test]
    fn random_bytes_are_a_sound_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..4_096), kind in 0..4) {
        let head: &[u8] = match kind {
            0 => b"",
            1 => b"\xff\xfb\x90\x64",
            2 => b"ID3\x03\0\0\0\0\0\x0a",
            _ => b"RIFF\xff\xff\xff\xffWAVEfmt ",
        };
        survives(&[head, &bytes].concat());
    }

    #[test]
    fn a_damaged_file_is_a_sound_or_an_error(
        mono in any::<bool>(),
        cut in 0.0..1.0f64,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
    ) {
        let whole = if mono { MONO } else { STEREO };
        let mut bytes = whole[..(whole.len() as f64 * cut) as usize].to_vec();
        for (at, with) in flips {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] ^= with;
            }
        }
        survives(&bytes);
    }

    #[test]
    fn a_damaged_wav_is_a_sound_or_an_error(
        float in any::<bool>(),
        cut in 0.0..1.0f64,
        flips in prop::collection::vec((0usize..60, any::<u8>()), 0..10),
    ) {
        let whole = wav_of(8_000, 2, 32, float);
        let mut bytes = whole[..(whole.len() as f64 * cut) as usize].to_vec();
        for (at, with) in flips {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= with;
            }
        }
        survives(&bytes);
    }
}
