//! Codecs and resampler: round trips, malicious packets, tones.
#![cfg(all(feature = "vad", feature = "opus"))]

mod listener_clips;

use audio::codec::{Codec, Decoder, Encoder, Error, FRAME_DURATIONS_US, PACKET_BYTES_MAX, RATES_HZ};
use audio::resample::Resampler;
use proptest::prelude::*;

fn tone(hz: f64, rate_hz: u32, samples: usize, amplitude: f64) -> Vec<i16> {
    (0..samples)
        .map(|n| {
            let angle = 2.0 * std::f64::consts::PI * hz * n as f64 / f64::from(rate_hz);
            (amplitude * angle.sin()).round() as i16
        })
        .collect()
}

/// Amplitude of the part of `pcm` at `hz`, and root mean square of all the rest.
fn tone_and_rest(pcm: &[i16], hz: f64, rate_hz: u32) -> (f64, f64) {
    let (mut re, mut im) = (0.0, 0.0);
    let angle = |n: usize| 2.0 * std::f64::consts::PI * hz * n as f64 / f64::from(rate_hz);
    for (n, sample) in pcm.iter().enumerate() {
        re += f64::from(*sample) * angle(n).cos();
        im += f64::from(*sample) * angle(n).sin();
    }
    let (re, im) = (2.0 * re / pcm.len() as f64, 2.0 * im / pcm.len() as f64);
    let rest: f64 =
        pcm.iter().enumerate().map(|(n, s)| (f64::from(*s) - re * angle(n).cos() - im * angle(n).sin()).powi(2)).sum();
    (re.hypot(im), (rest / pcm.len() as f64).sqrt())
}

/// Bytes and packets of a second of speech-like sound, and of the quiet second behind it.
fn coded(set: impl Fn(&mut Encoder), samples: usize) -> [(usize, usize); 2] {
    let clip = listener_clips::clip(listener_clips::SPEECH[6]);
    let (first, _) = listener_clips::voiced_span(&clip);
    let mut encoder = Encoder::new(Codec::Opus, 16_000, 24_000).unwrap();
    set(&mut encoder);
    let quiet = listener_clips::white(3 * 16_000, 3.0, 1);
    [&clip[first..first + 32_000], &quiet].map(|pcm| {
        let packets: Vec<usize> = pcm
            .chunks_exact(samples)
            .map(|frame| encoder.encode(frame).unwrap().len())
            .filter(|len| *len > 2)
            .collect();
        (packets.iter().sum(), packets.len())
    })
}

#[test]
fn a_released_coder_begins_anew_with_its_settings() {
    let clip = listener_clips::clip(listener_clips::SPEECH[6]);
    let mut encoder = Encoder::new(Codec::Opus, 16_000, 24_000).unwrap();
    encoder.set_coding(12_000, 20).unwrap();
    let code = |encoder: &mut Encoder| -> Vec<Vec<u8>> {
        clip.chunks_exact(320).map(|frame| encoder.encode(frame).unwrap()).collect()
    };
    let first = code(&mut encoder);
    assert_ne!(code(&mut encoder), first, "what was said before changes the packets");
    encoder.release();
    assert_eq!(code(&mut encoder), first);

    let mut decoder = Decoder::new(Codec::Opus, 16_000).unwrap();
    let decode = |decoder: &mut Decoder| {
        let mut pcm = Vec::new();
        first.iter().for_each(|packet| assert_eq!(decoder.decode(packet, &mut pcm), Ok(320)));
        pcm
    };
    let heard = decode(&mut decoder);
    assert_ne!(decode(&mut decoder), heard);
    decoder.release();
    assert_eq!(decode(&mut decoder), heard);
}

#[test]
fn opus_sends_less_where_it_is_told_to_and_little_in_silence() {
    let [(full, _), _] = coded(|_| {}, 320);
    let [(thin, packets), _] = coded(|encoder| encoder.set_coding(12_000, 10).unwrap(), 960);
    assert_eq!(packets, 33);
    // Two seconds at 24 and at 12 kbit/s.
    assert!((4_000..8_000).contains(&full) && (2_000..4_000).contains(&thin), "{full} and {thin} bytes");
    let [_, (_, always)] = coded(|_| {}, 320);
    let [_, (_, sparse)] = coded(|encoder| encoder.pause_in_silence().unwrap(), 320);
    assert!(always == 150 && sparse < 40, "{always} and {sparse} packets in three seconds of silence");
    let mut encoder = Encoder::new(Codec::Opus, 16_000, 24_000).unwrap();
    assert_eq!(encoder.set_coding(1_000, 10), Err(Error::Bitrate { bitrate: 1_000 }));
}

#[test]
fn pcm_round_trip_is_exact_at_every_rate_and_duration() {
    for rate_hz in RATES_HZ {
        for us in FRAME_DURATIONS_US {
            let samples = (us * u64::from(rate_hz) / 1_000_000) as usize;
            let mut pcm = tone(440.0, rate_hz, samples, 20_000.0);
            pcm[0] = i16::MIN;
            pcm[1] = i16::MAX;
            let packet = Encoder::new(Codec::Pcm16, rate_hz, 0).unwrap().encode(&pcm).unwrap();
            let mut out = vec![7];
            let mut decoder = Decoder::new(Codec::Pcm16, rate_hz).unwrap();
            assert_eq!(decoder.decode(&packet, &mut out), Ok(samples));
            assert_eq!(out[0], 7, "samples are appended");
            assert_eq!(out[1..], pcm);
        }
    }
}

#[test]
fn opus_round_trip_keeps_a_tone_at_every_rate_and_duration() {
    for rate_hz in RATES_HZ {
        for us in FRAME_DURATIONS_US {
            let samples = (us * u64::from(rate_hz) / 1_000_000) as usize;
            let frames = (600_000 / us) as usize;
            let pcm = tone(500.0, rate_hz, samples * frames, 8_000.0);
            let mut encoder = Encoder::new(Codec::Opus, rate_hz, 24_000).unwrap();
            // Whatever the encoder's input rate, the decoder's output has the rate it was created for.
            let mut decoder = Decoder::new(Codec::Opus, 16_000).unwrap();
            let mut out = Vec::new();
            for frame in pcm.chunks_exact(samples) {
                let packet = encoder.encode(frame).unwrap();
                assert!(packet.len() < samples * 2 / 3, "{} bytes", packet.len());
                let got = decoder.decode(&packet, &mut out).unwrap();
                assert_eq!(got as u64, us * 16_000 / 1_000_000);
            }
            let steady = &out[3_200..8_000];
            let (amplitude, rest) = tone_and_rest(steady, 500.0, 16_000);
            assert!((amplitude / 8_000.0 - 1.0).abs() < 0.15, "{rate_hz} {us}: {amplitude}");
            assert!(rest < amplitude * 0.2, "{rate_hz} {us}: {rest} beside {amplitude}");
        }
    }
}

#[test]
fn a_lost_packet_is_stood_in_for_and_fades() {
    for codec in [Codec::Pcm16, Codec::Opus] {
        let pcm = tone(300.0, 16_000, 320 * 20, 10_000.0);
        let mut encoder = Encoder::new(codec, 16_000, 24_000).unwrap();
        let mut decoder = Decoder::new(codec, 16_000).unwrap();
        let mut out = Vec::new();
        assert_eq!(decoder.conceal(&mut out), 320, "20 ms before the first packet");
        assert!(out.iter().all(|s| *s == 0), "and silent");
        for frame in pcm.chunks_exact(320) {
            decoder.decode(&encoder.encode(frame).unwrap(), &mut out).unwrap();
        }
        let level = |pcm: &[i16]| (pcm.iter().map(|s| f64::from(*s).powi(2)).sum::<f64>() / pcm.len() as f64).sqrt();
        let before = level(&out[out.len() - 320..]);
        let mut levels = Vec::new();
        for _ in 0..30 {
            out.clear();
            assert_eq!(decoder.conceal(&mut out), 320);
            levels.push(level(&out));
        }
        assert!(levels[0] > before * 0.2, "{codec:?}: the first one is no hole: {levels:?}");
        assert!(levels[29] < before * 0.05, "{codec:?}: the last one is silence: {levels:?}");
    }
}

/// Every fifth packet of real speech is lost: the copy in the next packet is closer to the original than concealment.
#[test]
fn a_lost_opus_packet_comes_back_from_the_next_one() {
    let pcm = listener_clips::clip(listener_clips::SPEECH[6]);
    let mut encoder = Encoder::new(Codec::Opus, 16_000, 24_000).unwrap();
    let packets: Vec<Vec<u8>> = pcm.chunks_exact(320).map(|frame| encoder.encode(frame).unwrap()).collect();
    let play = |lose: bool, copies: bool| {
        let mut decoder = Decoder::new(Codec::Opus, 16_000).unwrap();
        let mut out = Vec::new();
        for (index, packet) in packets.iter().enumerate() {
            if lose && index % 5 == 4 {
                let samples = match packets.get(index + 1) {
                    Some(next) if copies => decoder.recover(next, &mut out),
                    _ => decoder.conceal(&mut out),
                };
                assert_eq!(samples, 320);
            } else {
                decoder.decode(packet, &mut out).unwrap();
            }
        }
        out
    };
    let whole = play(false, false);
    let error =
        |heard: &[i16]| -> f64 { heard.iter().zip(&whole).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum() };
    let (guessed, copied) = (error(&play(true, false)), error(&play(true, true)));
    eprintln!("error energy with copies: {:.2} of that without", copied / guessed);
    assert!(copied < guessed * 0.7, "{copied} against {guessed}");
    let mut decoder = Decoder::new(Codec::Opus, 16_000).unwrap();
    let mut out = Vec::new();
    for next in [&[][..], &[0xff; 40], &[0; PACKET_BYTES_MAX + 1]] {
        assert_eq!(decoder.recover(next, &mut out), 320, "whatever comes next, time goes on");
    }
}

#[test]
fn what_is_refused_says_why() {
    assert_eq!(Decoder::new(Codec::Pcm16, 44_100).err(), Some(Error::Rate { rate_hz: 44_100 }));
    assert_eq!(Encoder::new(Codec::Opus, 0, 24_000).err(), Some(Error::Rate { rate_hz: 0 }));
    let bitrate = Encoder::new(Codec::Opus, 16_000, 1_000_000).err();
    assert_eq!(bitrate, Some(Error::Bitrate { bitrate: 1_000_000 }));
    let mut out = Vec::new();
    for codec in [Codec::Pcm16, Codec::Opus] {
        let mut decoder = Decoder::new(codec, 16_000).unwrap();
        assert_eq!(decoder.decode(&[], &mut out), Err(Error::PacketLength { bytes: 0 }));
        let long = vec![0; PACKET_BYTES_MAX + 1];
        assert_eq!(decoder.decode(&long, &mut out), Err(Error::PacketLength { bytes: long.len() }));
    }
    let mut pcm = Decoder::new(Codec::Pcm16, 16_000).unwrap();
    assert_eq!(pcm.decode(&[0; 641], &mut out), Err(Error::HalfSample { bytes: 641 }));
    let short = pcm.decode(&[0; 642], &mut out);
    assert_eq!(short, Err(Error::Duration { samples: 321, rate_hz: 16_000 }));
    // Opus, configurations 0 to 31: those of 2.5 and 5 ms, and several frames of 120 ms in total.
    let mut opus = Decoder::new(Codec::Opus, 16_000).unwrap();
    for (toc, samples) in [(16u8 << 3, 40), (17 << 3, 80), ((3 << 3) | 1, 1_920)] {
        let refused = opus.decode(&[toc, 0, 0, 0, 0], &mut out);
        assert_eq!(refused, Err(Error::Duration { samples, rate_hz: 16_000 }), "{toc}");
    }
    assert!(out.is_empty());
    let odd = Encoder::new(Codec::Opus, 16_000, 24_000).unwrap().encode(&[0; 319]);
    assert_eq!(odd, Err(Error::Duration { samples: 319, rate_hz: 16_000 }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Random packets, one after the other into the same decoder.
    #[test]
    fn random_packets_never_panic_and_stay_bounded(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..700), 1..20),
        rate in 0usize..4,
    ) {
        for codec in [Codec::Pcm16, Codec::Opus] {
            let mut decoder = Decoder::new(codec, RATES_HZ[rate]).unwrap();
            for packet in &packets {
                let mut out = Vec::new();
                let samples = decoder.decode(packet, &mut out).unwrap_or(0);
                prop_assert_eq!(samples, out.len());
                prop_assert!(samples <= RATES_HZ[rate] as usize * 60 / 1_000);
                let _ = decoder.recover(packet, &mut out);
                let before = out.len();
                let stand_in = decoder.conceal(&mut out);
                prop_assert!(before <= RATES_HZ[rate] as usize * 120 / 1_000);
                prop_assert!(stand_in > 0 && stand_in <= RATES_HZ[rate] as usize * 60 / 1_000);
            }
        }
    }

    /// A good Opus packet cut short or with flipped bits.
    #[test]
    fn damaged_opus_packets_never_panic(cut in 0usize..80, flips in prop::collection::vec((0usize..80, 0u8..8), 0..6)) {
        let mut encoder = Encoder::new(Codec::Opus, 16_000, 24_000).unwrap();
        let mut decoder = Decoder::new(Codec::Opus, 16_000).unwrap();
        let mut out = Vec::new();
        for frame in tone(700.0, 16_000, 320 * 8, 9_000.0).chunks_exact(320) {
            let mut packet = encoder.encode(frame).unwrap();
            packet.truncate(cut);
            for (byte, bit) in &flips {
                if let Some(byte) = packet.get_mut(*byte) { *byte ^= 1 << bit; }
            }
            let _ = decoder.decode(&packet, &mut out);
        }
        prop_assert!(out.len() <= 8 * 960);
    }

    /// The resampler's output does not depend on how its input is cut, and its length is exact.
    #[test]
    fn chunks_do_not_matter(cuts in prop::collection::vec(0usize..700, 1..40), from in 0usize..4, to in 0usize..4) {
        let (from_hz, to_hz) = (RATES_HZ[from], RATES_HZ[to]);
        let pcm = tone(333.0, from_hz, cuts.iter().sum(), 12_000.0);
        let (mut whole, mut cut) = (Vec::new(), Vec::new());
        Resampler::new(from_hz, to_hz).unwrap().push(&pcm, &mut whole);
        let mut resampler = Resampler::new(from_hz, to_hz).unwrap();
        let mut rest = &pcm[..];
        for length in cuts {
            let (head, tail) = rest.split_at(length);
            resampler.push(head, &mut cut);
            rest = tail;
        }
        prop_assert_eq!(&whole, &cut);
        let expected = (pcm.len() as u64 * u64::from(to_hz)).div_ceil(u64::from(from_hz));
        prop_assert_eq!(whole.len() as u64, expected);
    }
}

/// Tones below both Nyquist frequencies keep their level and gain only a little noise; tones above vanish.
#[test]
fn resampled_tones_are_true() {
    let mut worst = (0.0f64, 0.0f64, 0.0f64);
    for from_hz in RATES_HZ {
        for to_hz in RATES_HZ {
            let low = f64::from(from_hz.min(to_hz));
            for share in [0.02, 0.1, 0.25, 0.4] {
                let hz = (low * share).round();
                let mut out = Vec::new();
                let pcm = tone(hz, from_hz, from_hz as usize / 2, 16_000.0);
                Resampler::new(from_hz, to_hz).unwrap().push(&pcm, &mut out);
                let steady = &out[to_hz as usize / 10..to_hz as usize * 4 / 10];
                let (amplitude, rest) = tone_and_rest(steady, hz, to_hz);
                worst.0 = worst.0.max((20.0 * (amplitude / 16_000.0).log10()).abs());
                worst.1 = worst.1.max(rest / amplitude);
            }
            if to_hz < from_hz {
                let hz = low * 0.53;
                let mut out = Vec::new();
                let pcm = tone(hz, from_hz, from_hz as usize / 2, 16_000.0);
                Resampler::new(from_hz, to_hz).unwrap().push(&pcm, &mut out);
                let steady = &out[to_hz as usize / 10..to_hz as usize * 4 / 10];
                let level = tone_and_rest(steady, 1.0, to_hz).1 / (16_000.0 / 2f64.sqrt());
                worst.2 = worst.2.max(level);
            }
        }
    }
    let db = |ratio: f64| 20.0 * ratio.log10();
    eprintln!("level {:.3} dB, noise {:.1} dB, alias {:.1} dB", worst.0, db(worst.1), db(worst.2));
    assert!(worst.0 < 0.1, "level off by {} dB", worst.0);
    assert!(db(worst.1) < -65.0, "noise at {} dB", db(worst.1));
    assert!(db(worst.2) < -55.0, "alias at {} dB", db(worst.2));
}

/// The delay reported by the resampler is the one measured with an impulse.
#[test]
fn the_told_delay_is_the_measured_one() {
    for from_hz in RATES_HZ {
        for to_hz in RATES_HZ {
            let mut resampler = Resampler::new(from_hz, to_hz).unwrap();
            let at = from_hz as usize / 10;
            // Wide enough to be visible at a lower rate.
            let mut pcm = vec![0; from_hz as usize / 5];
            let width = from_hz as usize / 1_000;
            pcm[at - width..=at + width].fill(10_000);
            let mut out = Vec::new();
            resampler.push(&pcm, &mut out);
            let weight: f64 = out.iter().map(|s| f64::from(*s)).sum();
            let middle: f64 = out.iter().enumerate().map(|(n, s)| n as f64 * f64::from(*s)).sum::<f64>() / weight;
            let delay_us = middle * 1e6 / f64::from(to_hz) - at as f64 * 1e6 / f64::from(from_hz);
            let told_us = resampler.delay_us() as f64;
            assert!((delay_us - told_us).abs() < 12.0, "{from_hz} to {to_hz}: {delay_us}, told {told_us}");
            assert!(told_us <= 3_000.0, "{from_hz} to {to_hz}: {told_us} us");
        }
    }
    assert!(Resampler::new(44_100, 48_000).is_ok());
    for (from_hz, to_hz) in [(0, 16_000), (16_000, 7_999), (48_001, 16_000), (47_999, 16_000)] {
        assert!(Resampler::new(from_hz, to_hz).is_err(), "{from_hz} to {to_hz}");
    }
}
