//! LC3: round trips, lost packets, malicious frames.
#![cfg(feature = "vad")]

mod listener_clips;

use audio::codec::lc3::{ENCODER_RATES_HZ, FRAME_BYTES, FRAME_LENGTHS_US, Format, RATES_HZ};
use audio::codec::{Codec, Decoder, Encoder, Error};
use audio::wav;
use proptest::prelude::*;

fn format(frame_us: u32, frame_bytes: u16) -> Format {
    Format::new(frame_us, frame_bytes).unwrap()
}

fn samples(format: Format, rate_hz: u32) -> usize {
    (format.frame_us() * u64::from(rate_hz) / 1_000_000) as usize
}

/// A sentence, at another rate if need be.
fn speech(rate_hz: u32) -> Vec<i16> {
    let clip = listener_clips::clip(listener_clips::SPEECH[6]);
    let (first, last) = listener_clips::voiced_span(&clip);
    wav::convert(&clip[first..last.min(first + 3 * 16_000)], 16_000, rate_hz).unwrap()
}

/// A second of a voice of 125 Hz with so many harmonics, as in data/lc3_golden.py.
fn voice(rate_hz: u32, harmonics: u32) -> Vec<i16> {
    (0..rate_hz)
        .map(|n| {
            let angle = 2.0 * std::f64::consts::PI * 125.0 * f64::from(n) / f64::from(rate_hz);
            ((1..=harmonics).map(f64::from).map(|k| (angle * k).sin() / k).sum::<f64>() * 6_000.0 / 1.5) as i16
        })
        .collect()
}

/// One packet for each frame.
fn coded(pcm: &[i16], format: Format, rate_hz: u32) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(Codec::Lc3(format), rate_hz, 0).unwrap();
    pcm.chunks_exact(samples(format, rate_hz)).map(|frame| encoder.encode(frame).unwrap()).collect()
}

/// What becomes of a lost packet.
#[derive(Clone, Copy, PartialEq)]
enum Loss {
    Silent,
    Concealed,
}

/// The packets decoded, without those that `is_lost`.
fn decoded(packets: &[Vec<u8>], format: Format, rate_hz: u32, loss: Loss, is_lost: impl Fn(usize) -> bool) -> Vec<i16> {
    let mut decoder = Decoder::new(Codec::Lc3(format), rate_hz).unwrap();
    let mut out = Vec::new();
    for (n, packet) in packets.iter().enumerate() {
        match (is_lost(n), loss) {
            (false, _) => drop(decoder.decode(packet, &mut out).unwrap()),
            (true, Loss::Concealed) => drop(decoder.conceal(&mut out)),
            (true, Loss::Silent) => out.resize(out.len() + samples(format, rate_hz), 0),
        }
    }
    out
}

/// Signal to noise in decibels, with the delay of the codec taken out.
fn snr_db(pcm: &[i16], out: &[i16], rate_hz: u32) -> f64 {
    let of = |delay: usize| {
        let (mut signal, mut noise) = (0.0, 0.0);
        for (a, b) in pcm.iter().zip(&out[delay..]) {
            signal += f64::from(*a).powi(2);
            noise += (f64::from(*a) - f64::from(*b)).powi(2);
        }
        10.0 * (signal / noise.max(1.0)).log10()
    };
    (0..rate_hz as usize / 100).map(of).fold(f64::MIN, f64::max)
}

/// Mean distance of the spectra of 20 ms in decibels, in 24 bands: what a recogniser sees, whatever the phase.
fn distance_db(pcm: &[i16], out: &[i16]) -> f64 {
    let bands = |frame: &[i16]| -> Vec<f64> {
        (1..=24)
            .map(|band| {
                let angle = 2.0 * std::f64::consts::PI * f64::from(band) * 160.0 / 16_000.0;
                let (mut re, mut im) = (0.0, 0.0);
                for (n, sample) in frame.iter().enumerate() {
                    let window = (std::f64::consts::PI * n as f64 / frame.len() as f64).sin();
                    re += f64::from(*sample) * window * (angle * n as f64).cos();
                    im += f64::from(*sample) * window * (angle * n as f64).sin();
                }
                // Differences far below speech do not count.
                20.0 * (re.hypot(im) + 1_000.0).log10()
            })
            .collect()
    };
    let distances: Vec<f64> = pcm
        .chunks_exact(320)
        .zip(out.chunks_exact(320))
        .map(|(a, b)| bands(a).iter().zip(bands(b)).map(|(a, b)| (a - b).abs()).sum::<f64>() / 24.0)
        .collect();
    distances.iter().sum::<f64>() / distances.len() as f64
}

/// One in ten, the same ones each time.
fn one_in_ten(n: usize) -> bool {
    (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 & 0xff < 26
}

#[test]
fn speech_comes_back_at_every_rate_length_and_size() {
    for rate_hz in ENCODER_RATES_HZ {
        let pcm = speech(rate_hz);
        for frame_us in FRAME_LENGTHS_US {
            let mut least = 0.0;
            for frame_bytes in [20, 40, 60, 120] {
                let format = format(frame_us, frame_bytes);
                let packets = coded(&pcm, format, rate_hz);
                assert!(packets.iter().all(|packet| packet.len() == usize::from(frame_bytes)));
                let out = decoded(&packets, format, rate_hz, Loss::Silent, |_| false);
                assert_eq!(out.len(), packets.len() * samples(format, rate_hz));
                let db = snr_db(&pcm[..pcm.len() - rate_hz as usize / 20], &out, rate_hz);
                eprintln!("{rate_hz} Hz, {frame_us} us, {frame_bytes} bytes ({} bit/s): {db:.1} dB", format.bitrate());
                assert!(db > least, "{rate_hz} Hz, {frame_us} us, {frame_bytes} bytes: {db:.1} dB");
                // More bytes are better.
                least = db;
            }
            assert!(least > 15.0, "{rate_hz} Hz, {frame_us} us: {least:.1} dB of 120 bytes");
        }
    }
}

/// Frames of another coder (data/lc3_golden.py), at each rate and length: as good as in its own decoder.
#[test]
fn frames_of_liblc3_are_understood() {
    let golden = include_str!("data/lc3_golden.tsv");
    for line in golden.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [rate_hz, frame_us, frame_bytes, theirs_db, hex] = cells[..] else { panic!("{line}") };
        let (rate_hz, format) =
            (rate_hz.parse().unwrap(), format(frame_us.parse().unwrap(), frame_bytes.parse().unwrap()));
        let bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
        let packets: Vec<Vec<u8>> = bytes.chunks(format.frame_bytes()).map(<[u8]>::to_vec).collect();
        let out = decoded(&packets, format, rate_hz, Loss::Silent, |_| false);
        let settled = 2 * samples(format, rate_hz);
        let db = snr_db(&voice(rate_hz, 8)[settled..out.len() - settled], &out[settled..], rate_hz);
        eprintln!("{rate_hz} Hz, {frame_us} us: {db:.2} dB, in liblc3 {theirs_db}");
        assert!((db - theirs_db.parse::<f64>().unwrap()).abs() < 1.0, "{rate_hz} Hz, {frame_us} us: {db:.2} dB");
    }
    assert_eq!(golden.lines().count(), 1 + RATES_HZ.len() * FRAME_LENGTHS_US.len());
}

#[test]
fn frames_of_one_packet_are_those_of_several() {
    let pcm = speech(16_000);
    for (frame_us, most) in [(10_000, 6), (7_500, 8)] {
        let format = format(frame_us, 40);
        let single = coded(&pcm, format, 16_000);
        let joined: Vec<Vec<u8>> = single.chunks(most).map(<[Vec<u8>]>::concat).collect();
        let mut encoder = Encoder::new(Codec::Lc3(format), 16_000, 0).unwrap();
        let whole: Vec<Vec<u8>> =
            pcm.chunks_exact(most * samples(format, 16_000)).map(|pcm| encoder.encode(pcm).unwrap()).collect();
        assert_eq!(whole, joined[..whole.len()]);
        assert_eq!(
            decoded(&single, format, 16_000, Loss::Silent, |_| false),
            decoded(&joined, format, 16_000, Loss::Silent, |_| false)
        );
        let mut decoder = Decoder::new(Codec::Lc3(format), 16_000).unwrap();
        let mut out = Vec::new();
        let samples = decoder.decode(&whole[0], &mut out).unwrap();
        assert_eq!(decoder.conceal(&mut out), samples, "a lost packet is as long as the last one");
    }
}

#[test]
fn what_is_not_agreed_is_refused_and_what_follows_is_heard() {
    for (frame_us, frame_bytes) in [(5_000, 40), (7_500, 19), (10_000, 121), (0, 0), (20_000, 40)] {
        let error = Error::Lc3Format { frame_us, frame_bytes };
        assert_eq!(Format::new(frame_us, frame_bytes), Err(error));
    }
    let format = format(10_000, 40);
    for rate_hz in [0, 12_000, 32_000, 44_100] {
        let rate = Decoder::new(Codec::Lc3(format), rate_hz).err();
        assert!(matches!(rate, Some(Error::Lc3Rate { .. } | Error::Rate { .. })), "{rate_hz}: {rate:?}");
    }
    let encoder = Encoder::new(Codec::Lc3(format), 8_000, 0).err();
    assert_eq!(encoder, Some(Error::Lc3Encoder { rate_hz: 8_000 }));
    let pcm = speech(16_000);
    let packets = coded(&pcm, format, 16_000);
    let mut decoder = Decoder::new(Codec::Lc3(format), 16_000).unwrap();
    let mut out = Vec::new();
    for bytes in [1, 20, 39, 41, 79, 7 * 40, 5_000] {
        let error = Error::Lc3Packet { bytes, frame_bytes: 40 };
        assert_eq!(decoder.decode(&vec![0x55; bytes], &mut out), Err(error));
    }
    assert!(out.is_empty());
    assert_eq!(decoder.decode(&packets[20], &mut out), Ok(160));
    let mut encoder = Encoder::new(Codec::Lc3(format), 16_000, 0).unwrap();
    for samples in [0, 159, 161, 7 * 160] {
        assert_eq!(encoder.encode(&vec![0; samples]), Err(Error::Lc3Samples { samples, frame_samples: 160 }));
    }
    assert_eq!(encoder.encode(&[0; 960]).map(|packet| packet.len()), Ok(240));
}

#[test]
fn concealment_comes_nearer_to_the_sentence_than_silence() {
    let pcm = speech(16_000);
    for (frame_us, frame_bytes) in [(10_000, 40), (7_500, 30)] {
        let format = format(frame_us, frame_bytes);
        let packets = coded(&pcm, format, 16_000);
        let whole = decoded(&packets, format, 16_000, Loss::Silent, |_| false);
        let [silent, concealed] = [Loss::Silent, Loss::Concealed].map(|loss| {
            let out = decoded(&packets, format, 16_000, loss, one_in_ten);
            (distance_db(&whole, &out), snr_db(&whole, &out, 16_000))
        });
        eprintln!("{frame_us} us: silence {silent:.2?} dB, concealment {concealed:.2?} dB (distance, SNR)");
        assert!(concealed.0 < silent.0 * 0.85, "{frame_us} us: {concealed:.2?} dB, silence {silent:.2?} dB");
        assert!(concealed.1 > silent.1 + 0.3, "{frame_us} us: {concealed:.2?} dB, silence {silent:.2?} dB");
    }
}

#[test]
fn a_voice_goes_on_and_fades() {
    for rate_hz in ENCODER_RATES_HZ {
        let pcm = voice(rate_hz, 8);
        let format = format(10_000, 60);
        let packets = coded(&pcm, format, rate_hz);
        let whole = decoded(&packets, format, rate_hz, Loss::Silent, |_| false);
        let out = decoded(&packets, format, rate_hz, Loss::Concealed, |n| n == 50);
        let size = samples(format, rate_hz);
        let db = snr_db(&whole[49 * size..54 * size], &out[49 * size..55 * size], rate_hz);
        assert!(db > 12.0, "{rate_hz} Hz: {db:.1} dB around one lost frame");
        let faded = decoded(&packets, format, rate_hz, Loss::Concealed, |n| n >= 50);
        let loudest = |from: usize| faded[from * size..].iter().map(|sample| sample.unsigned_abs()).max().unwrap();
        assert!(loudest(50) > 4_000 && loudest(60) == 0, "{rate_hz} Hz: {} and {}", loudest(50), loudest(60));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any frames, at any place of a stream: whatever they are, the next good ones are heard.
    #[test]
    fn malicious_frames_are_contained(
        seed in any::<u64>(), rate in 0usize..4, long in any::<bool>(), size in FRAME_BYTES, kind in 0u8..4, flips in 0u8..12,
    ) {
        let (rate_hz, format) = (RATES_HZ[rate], format(FRAME_LENGTHS_US[usize::from(long)], size));
        let pcm = vec![900; samples(format, rate_hz)];
        let packet = match Encoder::new(Codec::Lc3(format), rate_hz, 0) {
            Ok(mut encoder) => encoder.encode(&pcm).unwrap(),
            Err(_) => vec![0; size.into()],
        };
        let mut decoder = Decoder::new(Codec::Lc3(format), rate_hz).unwrap();
        let (mut out, mut random) = (Vec::new(), seed);
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as u8
        };
        for _ in 0..12 {
            let mut bad = packet.clone();
            match kind {
                0 => bad.iter_mut().for_each(|byte| *byte = next()),
                1 => bad.iter_mut().for_each(|byte| *byte = next() & next() & next()),
                2 => bad.iter_mut().for_each(|byte| *byte = next() | next() | next()),
                _ => for _ in 0..flips { let at = usize::from(next()) % bad.len(); bad[at] ^= 1 << (next() & 7); },
            }
            let before = out.len();
            match decoder.decode(&bad, &mut out) {
                Ok(samples) => prop_assert_eq!(samples, pcm.len()),
                Err(error) => prop_assert_eq!((error, out.len()), (Error::Lc3Frame, before)),
            }
            if next() & 3 == 0 {
                prop_assert_eq!(decoder.conceal(&mut out) % pcm.len(), 0);
            }
        }
        prop_assert_eq!(decoder.decode(&packet, &mut out), Ok(pcm.len()));
    }
}
