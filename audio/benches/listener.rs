//! Cost of one 20 ms frame in the listener, by kind of sound, and of one packet in the speaker.
//!
//! `cargo bench -p audio --no-default-features --features opus,vad --bench listener --profile dev`
//! (the development profile already optimises this crate and its dependencies fully).
//!
//! With `-- instructions [SCENE]` it counts the instructions of one packet instead, on all threads, with valgrind's
//! callgrind: a number that other load on the machine does not change. Needs `valgrind` (`apt-get install valgrind`).
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

#[path = "../tests/listener_clips/mod.rs"]
mod listener_clips;

use std::hint::black_box;
use std::time::Instant;

use audio::codec::{Codec, Decoder, Encoder};
use audio::listener::{Fact, Listener};
use audio::resample::Resampler;
use audio::speaker::{self, Speaker};
use listener_clips::*;

const SCENES: [&str; 4] = ["quiet", "steady white noise", "speech", "speech a fifth of the time"];
const SCENE_S: f64 = 20.0;

/// The sound of a scene.
fn scene(name: &str, length_s: f64) -> Vec<i16> {
    let length = seconds(length_s);
    let mut pcm = Vec::new();
    match name {
        "quiet" => return white(length, 3.0, 1),
        "steady white noise" => return white(length, 1_000.0, 2),
        "speech" => {
            for at in SPEECH[6..10].iter().cycle() {
                pcm.extend(clip(*at));
                if pcm.len() >= length {
                    break;
                }
            }
        }
        _ => {
            while pcm.len() < length {
                // A command of 2.8 s in 14 s: a fifth of the time is speech.
                pcm.extend(clip(SPEECH[4]));
                pcm.extend(white(seconds(11.2), 3.0, 9));
            }
        }
    }
    pcm.truncate(length);
    pcm
}

/// CPU time of this process's threads so far, in nanoseconds: not distorted by other load on the machine.
fn cpu_ns() -> u64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return 0;
    };
    let ran = |task: std::fs::DirEntry| -> Option<u64> {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    tasks.flatten().filter_map(ran).sum()
}

/// Prints the CPU time per item since `began`.
fn cpu_line(began: u64, items: usize) {
    let each = (cpu_ns() - began) as f64 / items.max(1) as f64 / 1_000.0;
    println!("{:44} processor time {each:.1} us each", "");
}

/// Nanoseconds of each packet's push.
fn hear(ear: &mut Listener, packets: &[Vec<u8>]) -> Vec<u64> {
    let (mut facts, mut times) = (Vec::new(), Vec::new());
    for (index, packet) in packets.iter().enumerate() {
        let capture_us = index as u64 * PACKET_US;
        let began = Instant::now();
        black_box(ear.push_packet(index as u32, capture_us, packet, capture_us, &mut facts)).unwrap();
        times.push(began.elapsed().as_nanos() as u64);
        for fact in facts.drain(..) {
            match fact {
                Fact::Silence { utterance, silence_us, .. } if silence_us >= 700_000 => {
                    ear.close_utterance(utterance);
                }
                Fact::Ended { utterance, .. } => ear.close_utterance(utterance),
                _ => {}
            }
        }
    }
    times
}

fn line(what: &str, mut times: Vec<u64>) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 1_000] as f64 / 1_000.0;
    let mean = times.iter().sum::<u64>() as f64 / times.len() as f64 / 1_000.0;
    println!("{what:44} mean {mean:7.1}  median {:7.1}  p99 {:7.1}  most {:7.1} us", at(500), at(990), at(1_000));
}

/// Detection delay on the device's clock: from the voice's first and last sample by energy to the end of the packet
/// after which the listener reported it.
fn notice() {
    let (mut onsets, mut pauses) = (Vec::new(), Vec::new());
    for at in SPEECH {
        let clip = clip(at);
        let (first, last) = voiced_span(&clip);
        let mut pcm = white(seconds(1.0), 3.0, 1);
        pcm.extend_from_slice(&clip);
        pcm.extend(white(seconds(1.0), 3.0, 2));
        let us = |sample: usize| (seconds(1.0) + sample) as i64 * 1_000_000 / i64::from(RATE_HZ);
        let mut ear = listener(Codec::Pcm16, 16_000);
        let mut facts = Vec::new();
        let (mut onset, mut pause) = (None, None);
        for (index, packet) in packets(&pcm, Codec::Pcm16, 16_000).iter().enumerate() {
            let capture_us = index as u64 * PACKET_US;
            ear.push_packet(index as u32, capture_us, packet, capture_us, &mut facts).unwrap();
            for fact in facts.drain(..) {
                let now_us = (capture_us + PACKET_US) as i64;
                match fact {
                    Fact::SpeechStarted { .. } => onset = onset.or(Some(now_us - us(first))),
                    Fact::Paused { .. } => pause = Some(now_us - us(last)),
                    _ => {}
                }
            }
        }
        onsets.extend(onset.map(|us| us / 1_000));
        pauses.extend(pause.map(|us| us / 1_000));
    }
    onsets.sort_unstable();
    pauses.sort_unstable();
    println!("notice on {} clips, ms after the annotation by energy", SPEECH.len());
    println!("  speech started: median {}, all {onsets:?}", onsets[onsets.len() / 2]);
    println!("  paused:         median {}, all {pauses:?}", pauses[pauses.len() / 2]);
}

/// Resident bytes of this process.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4_096
}

/// Resident bytes per listener, quiet and in mid-utterance.
fn memory() {
    const DEVICES: u64 = 200;
    let model = model();
    let quiet = packets(&white(seconds(3.0), 3.0, 1), Codec::Opus, 16_000);
    let speech = packets(&clip(SPEECH[6])[..seconds(5.0)], Codec::Opus, 16_000);
    let config = audio::listener::Config { codec: Codec::Opus, ..Default::default() };
    let mut ears = Vec::new();
    let mut facts = Vec::new();
    let before = resident();
    for _ in 0..DEVICES {
        let mut ear = Listener::new(config.clone(), model.clone()).unwrap();
        hear(&mut ear, &quiet);
        ears.push(ear);
    }
    let idle = resident();
    for ear in &mut ears {
        for (index, packet) in speech.iter().enumerate() {
            let at = quiet.len() + index;
            ear.push_packet(at as u32, at as u64 * PACKET_US, packet, 0, &mut facts).unwrap();
        }
        facts.clear();
    }
    let streaming = resident();
    println!("resident bytes per listener, {DEVICES} of them, Opus");
    println!("  quiet {}, after 5 s of speech {}", (idle - before) / DEVICES, (streaming - before) / DEVICES);
}

fn end_of_turn() {
    let Ok(model) = audio::end_of_turn::Model::load(&model_path(audio::end_of_turn::FILE_NAME)) else {
        println!("end-of-turn score: no model");
        return;
    };
    let pcm = clip(SPEECH[6]);
    let cpu = cpu_ns();
    let times = (0..20)
        .map(|_| {
            let began = Instant::now();
            black_box(model.score(&pcm)).unwrap();
            began.elapsed().as_nanos() as u64
        })
        .collect();
    line("end-of-turn score", times);
    cpu_line(cpu, 20);
}

const FORMS: [(Codec, u32); 3] = [(Codec::Pcm16, 16_000), (Codec::Pcm16, 48_000), (Codec::Opus, 16_000)];

/// Packets in the two runs that are compared. The detectors warm up in the first second. More packets of speech take
/// callgrind minutes.
const FEW: usize = 50;
const MANY: usize = 150;

/// Processes the first packets of a scene. Everything else is set up first, for as many packets as any run processes.
fn count(scene_at: usize, form: usize, length: usize) {
    let (codec, rate_hz) = FORMS[form];
    let packets = packets(&scene(SCENES[scene_at], MANY as f64 / 50.0), codec, rate_hz);
    let mut ear = listener(codec, rate_hz);
    black_box(hear(&mut ear, &packets[..length.min(packets.len())]));
}

/// Instructions per packet, from two runs that differ only in the number of packets.
fn instructions(wanted: Option<&str>) {
    let program = std::env::current_exe().expect("this program has a path");
    let counted = |scene: usize, form: usize, length: usize| -> f64 {
        let output = std::process::Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(&program)
            .args(["--bench", "count", &scene.to_string(), &form.to_string(), &length.to_string()])
            .output()
            .expect("valgrind is installed");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let total = said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
        total.unwrap_or_else(|| panic!("callgrind says what it counted: {said}"))
    };
    println!("instructions per packet of 20 ms, packets {FEW} to {MANY}");
    // The last scene, with speech for a fifth of the time, is longer than what is counted here.
    for (at, name) in SCENES.iter().enumerate().take(3).filter(|(_, name)| wanted.is_none_or(|it| it == **name)) {
        for (form, (codec, rate_hz)) in FORMS.iter().enumerate() {
            let each = (counted(at, form, MANY) - counted(at, form, FEW)) / (MANY - FEW) as f64;
            println!("{name}, {codec:?} {rate_hz}: {each:.0}");
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "instructions") {
        return instructions(arguments.get(at + 1).map(String::as_str));
    }
    if let Some(at) = arguments.iter().position(|argument| argument == "count") {
        let argument = |index: usize| arguments.get(at + index).and_then(|number| number.parse().ok()).unwrap_or(0);
        return count(argument(1), argument(2), argument(3));
    }
    println!("listener, per packet of 20 ms");
    for name in SCENES {
        let pcm = scene(name, SCENE_S);
        for (codec, rate_hz) in FORMS {
            let packets = packets(&pcm, codec, rate_hz);
            let mut ear = listener(codec, rate_hz);
            let began = cpu_ns();
            let times = hear(&mut ear, &packets);
            line(&format!("{name}, {codec:?} {rate_hz}"), times);
            cpu_line(began, packets.len());
        }
    }

    notice();
    memory();
    end_of_turn();

    println!("codecs and resampler, per 20 ms");
    let speech = scene("speech", SCENE_S);
    for rate_hz in [16_000u32, 24_000, 48_000] {
        let pcm = convert(&speech, 16_000, rate_hz);
        let mut encoder = Encoder::new(Codec::Opus, rate_hz, 24_000).unwrap();
        let mut decoder = Decoder::new(Codec::Opus, 16_000).unwrap();
        let mut resampler = Resampler::new(24_000, rate_hz).unwrap();
        let (mut encode, mut decode, mut resample, mut out) = (vec![], vec![], vec![], vec![]);
        for frame in pcm.chunks_exact(rate_hz as usize / 50) {
            let began = Instant::now();
            let packet = encoder.encode(frame).unwrap();
            encode.push(began.elapsed().as_nanos() as u64);
            out.clear();
            let began = Instant::now();
            decoder.decode(&packet, &mut out).unwrap();
            decode.push(began.elapsed().as_nanos() as u64);
            out.clear();
            let began = Instant::now();
            resampler.push(&speech[..480], &mut out);
            resample.push(began.elapsed().as_nanos() as u64);
        }
        line(&format!("opus encode at {rate_hz}"), encode);
        line(&format!("opus decode from {rate_hz}"), decode);
        line(&format!("resample 24000 to {rate_hz}"), resample);
    }

    println!("speaker, per packet of 20 ms");
    for codec in [Codec::Pcm16, Codec::Opus] {
        let config = speaker::Config { codec, ..speaker::Config::default() };
        let mut mouth = Speaker::new(config).unwrap();
        mouth.start(1, 1);
        mouth.push_clause(0, &convert(&speech, 16_000, 24_000), 24_000, true).unwrap();
        let mut times = Vec::new();
        let cpu = cpu_ns();
        while let Some(wake_us) = mouth.next_wake_us() {
            let began = Instant::now();
            black_box(mouth.poll_packet(wake_us + 1_000_000)).unwrap();
            times.push(began.elapsed().as_nanos() as u64);
        }
        let packets = times.len();
        line(&format!("24000 to {codec:?} 16000"), times);
        cpu_line(cpu, packets);
    }
}
