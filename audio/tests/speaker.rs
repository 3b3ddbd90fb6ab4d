//! The speaker on virtual time: pacing, hush, and the count of what was played.

use audio::codec::{Codec, Decoder};
use std::collections::VecDeque;

use audio::speaker::{Config, Error, Packet, QUEUE_US_MAX, Report, Speaker};
use proptest::prelude::*;

const FRAME_US: u64 = 20_000;

fn speaker(rate_hz: u32) -> Speaker {
    Speaker::new(Config { codec: Codec::Pcm16, rate_hz, ..Config::default() }).unwrap()
}

fn ramp(samples: usize) -> Vec<i16> {
    (0..samples).map(|n| (n % 20_011) as i16 + 1).collect()
}

fn decode(packet: &Packet, rate_hz: u32) -> Vec<i16> {
    let mut pcm = Vec::new();
    Decoder::new(Codec::Pcm16, rate_hz).unwrap().decode(&packet.bytes, &mut pcm).unwrap();
    pcm
}

/// The report of a device that is playing, at this time of its clock.
fn playing(played_us: u64, at_us: u64) -> Report {
    Report { played_us, at_us, playing: true, finished: false }
}

fn poll_all(speaker: &mut Speaker, now_us: u64) -> Vec<Packet> {
    std::iter::from_fn(|| speaker.poll_packet(now_us)).collect()
}

#[test]
fn packets_run_ahead_by_the_lead_and_no_more() {
    let mut speaker = speaker(16_000);
    speaker.start(1, 7);
    speaker.push_clause(0, &ramp(16_000), 16_000, false).unwrap();
    speaker.push_clause(1, &ramp(16_160), 16_000, true).unwrap();
    let began_us = 5_000_000;
    let (mut now_us, mut packets) = (began_us, Vec::new());
    while let Some(wake_us) = speaker.next_wake_us() {
        if wake_us > now_us {
            assert!(speaker.poll_packet(wake_us - 1).is_none(), "nothing before the told time");
        }
        now_us = now_us.max(wake_us);
        speaker.played(1, playing(now_us - began_us, now_us), now_us);
        let packet = speaker.poll_packet(now_us).expect("one packet at the told time");
        let ahead_us = (packet.playout_us + FRAME_US).saturating_sub(now_us - began_us);
        assert!(ahead_us <= 300_000, "{ahead_us}");
        assert!(ahead_us == 300_000 || now_us == began_us, "nor less, or the device runs dry");
        packets.push(packet);
    }
    assert_eq!(packets.len(), 50 + 51);
    for (index, packet) in packets.iter().enumerate() {
        assert_eq!((packet.speech, packet.turn, packet.fade), (1, 7, false));
        assert_eq!(packet.playout_us, index as u64 * FRAME_US);
        assert_eq!(packet.planned_us, began_us + packet.playout_us, "a frame apart, whenever they are sent");
        assert_eq!(packet.seq, index as u32);
        assert_eq!(packet.clause, u16::from(index >= 50));
        assert_eq!(packet.last_of_clause, index == 49 || index == 100);
        assert_eq!(packet.last_of_speech, index == 100);
    }
    let mut heard: Vec<i16> = packets.iter().flat_map(|packet| decode(packet, 16_000)).collect();
    assert_eq!(heard[..16_000], ramp(16_000));
    assert_eq!(heard[16_000..16_000 + 16_160], ramp(16_160));
    assert!(heard.drain(32_160..).all(|sample| sample == 0), "padding is silent");
    assert!(speaker.is_speaking(), "all sent is not all played");
}

/// An encoder is kept only while there is something to say.
#[cfg(feature = "opus")]
#[test]
fn each_speech_is_coded_from_the_beginning() {
    let mut speaker = Speaker::new(Config { codec: Codec::Opus, ..Config::default() }).unwrap();
    let mut say = |speech: u32, until_us: u64| {
        speaker.start(speech, 1);
        speaker.push_clause(0, &ramp(8_000), 16_000, true).unwrap();
        let mut packets = Vec::new();
        while let Some(wake_us) = speaker.next_wake_us().filter(|wake_us| *wake_us <= until_us) {
            speaker.played(speech, playing(wake_us, wake_us), wake_us);
            packets.extend(speaker.poll_packet(wake_us).map(|packet| packet.bytes));
        }
        speaker.hush(until_us);
        while speaker.poll_packet(until_us).is_some() {}
        packets
    };
    let first = say(1, u64::MAX);
    assert_eq!(first.len(), 25);
    assert_eq!(say(2, u64::MAX), first);
    let stopped = say(3, 1_000);
    assert!(!stopped.is_empty() && stopped.len() < 25, "{} packets before it is hushed", stopped.len());
    assert_eq!(say(4, u64::MAX), first);
}

#[test]
fn on_a_thin_link_packets_are_longer_and_the_sound_is_the_same() {
    let mut speaker = speaker(16_000);
    speaker.start(1, 1);
    speaker.set_coding(12_000, 60, 20).unwrap();
    // 1 s, and 0.99 s: neither is a whole number of packets.
    speaker.push_clause(0, &ramp(16_000), 16_000, false).unwrap();
    speaker.push_clause(1, &ramp(15_840), 16_000, true).unwrap();
    let (mut packets, mut now_us) = (Vec::new(), 0);
    while let Some(wake_us) = speaker.next_wake_us() {
        now_us = now_us.max(wake_us);
        speaker.played(1, playing(now_us, now_us), now_us);
        let packet = speaker.poll_packet(now_us).expect("one packet at the told time");
        assert!(packet.playout_us + packet.duration_us <= now_us + 300_000 || packet.last_of_clause);
        packets.push(packet);
    }
    let lengths: Vec<u64> = packets.iter().map(|packet| packet.duration_us / 1_000).collect();
    let expected = |last| [vec![60; 16], vec![last]].concat();
    assert_eq!(lengths, [expected(40), expected(40)].concat());
    assert!(packets.windows(2).all(|pair| pair[0].playout_us + pair[0].duration_us == pair[1].playout_us));
    let heard: Vec<i16> = packets.iter().flat_map(|packet| decode(packet, 16_000)).collect();
    assert_eq!(heard[..16_000], ramp(16_000));
    assert_eq!(heard[16_000..16_000 + 15_840], ramp(15_840));
    let played = speaker.played(1, playing(2_000_000, now_us + 2_000_000), now_us + 2_000_000).unwrap();
    assert!(played.finished, "{played:?}");
}

/// Bytes and milliseconds of the packets of a clause of 120 ms, where packets of so many milliseconds are wanted.
fn packets_of(rate_hz: u32, packet_bytes_max: usize, packet_ms: u16) -> Vec<(usize, u64)> {
    let mut speaker = Speaker::new(Config { rate_hz, packet_bytes_max, ..Config::default() }).unwrap();
    speaker.set_coding(12_000, packet_ms, 10).unwrap();
    speaker.start(1, 1);
    speaker.push_clause(0, &ramp(rate_hz as usize * 120 / 1_000), rate_hz, true).unwrap();
    let packets = poll_all(&mut speaker, 1_000_000);
    packets.iter().map(|packet| (packet.bytes.len(), packet.duration_us / 1_000)).collect()
}

#[test]
fn a_packet_of_samples_is_no_larger_than_the_link_or_the_device_takes() {
    // What a frame of the protocol holds.
    assert_eq!(packets_of(48_000, 4_096, 60), [(3_840, 40); 3]);
    assert_eq!(packets_of(24_000, 4_096, 60), [(2_880, 60); 2]);
    // What the smallest device holds.
    assert_eq!(packets_of(48_000, 1_952, 60), [(1_920, 20); 6]);
    assert_eq!(packets_of(24_000, 1_952, 60), [(1_920, 40); 3]);
    assert_eq!(packets_of(16_000, 1_952, 60), [(1_920, 60); 2]);
    assert_eq!(packets_of(48_000, 4_096, 20), [(1_920, 20); 6], "nor longer than it is wanted");
}

#[test]
fn a_late_clause_does_not_burst() {
    let mut speaker = speaker(16_000);
    speaker.start(1, 1);
    speaker.push_clause(0, &ramp(3_200), 16_000, false).unwrap();
    assert_eq!(poll_all(&mut speaker, 1_000_000).len(), 10);
    assert_eq!(speaker.next_wake_us(), None);
    // The device has had nothing to play for 4.8 s when the second clause comes.
    speaker.push_clause(1, &ramp(32_000), 16_000, true).unwrap();
    assert_eq!(poll_all(&mut speaker, 6_000_000).len(), 15, "one lead, not what time would allow");
    assert_eq!(poll_all(&mut speaker, 6_019_999).len(), 0);
    assert_eq!(poll_all(&mut speaker, 6_020_000).len(), 1);
}

#[test]
fn resampled_speech_keeps_its_length_and_level() {
    for rate_hz in audio::codec::RATES_HZ {
        let mut speaker = speaker(rate_hz);
        speaker.start(1, 1);
        let tone: Vec<i16> = (0..24_000)
            .map(|n| (10_000.0 * (f64::from(n) * 440.0 * 2.0 * std::f64::consts::PI / 24_000.0).sin()) as i16)
            .collect();
        speaker.push_clause(0, &tone, 24_000, true).unwrap();
        let mut heard = Vec::new();
        let mut now_us = 0;
        while let Some(wake_us) = speaker.next_wake_us() {
            now_us = now_us.max(wake_us);
            speaker.played(1, playing(now_us, now_us), now_us);
            heard.extend(decode(&speaker.poll_packet(now_us).unwrap(), rate_hz));
        }
        let frames = heard.len() / (rate_hz as usize / 50);
        assert!((50..=51).contains(&frames), "{rate_hz}: {frames} frames for one second");
        let middle = &heard[rate_hz as usize / 4..rate_hz as usize / 2];
        let energy: f64 = middle.iter().map(|s| f64::from(*s).powi(2)).sum();
        let rms = (energy / middle.len() as f64).sqrt();
        assert!((rms / (10_000.0 / 2f64.sqrt()) - 1.0).abs() < 0.02, "{rate_hz}: {rms}");
    }
}

#[test]
fn a_hush_leaves_one_fading_packet_from_where_the_device_is() {
    let mut speaker = speaker(16_000);
    speaker.start(3, 9);
    speaker.push_clause(0, &vec![10_000; 32_000], 16_000, true).unwrap();
    let mut sent = 0;
    for now_us in (0..=500_000).step_by(10_000) {
        sent += poll_all(&mut speaker, now_us).len() as u64;
    }
    speaker.played(3, playing(440_000, 440_000), 445_000).unwrap();
    let hushed = speaker.hush(505_000).unwrap();
    assert_eq!((hushed.speech, hushed.turn), (3, 9));
    assert_eq!(hushed.sent_us, sent * FRAME_US);
    assert_eq!((hushed.played_us, hushed.playhead_us), (440_000, 505_000));
    let rest = poll_all(&mut speaker, 505_000);
    let [fade] = rest.as_slice() else { panic!("{} packets after a hush", rest.len()) };
    assert!(fade.fade && fade.playout_us == 505_000);
    let pcm = decode(fade, 16_000);
    assert_eq!(pcm[0], 10_000, "it begins at full level");
    assert!(pcm.is_sorted_by(|a, b| a >= b) && pcm[319] < 100, "and only falls, to silence");
    assert_eq!(poll_all(&mut speaker, 100_000_000), []);
    assert_eq!(speaker.next_wake_us(), None);
    assert_eq!(speaker.hush(600_000), None);
    assert_eq!(speaker.push_clause(1, &[0; 320], 16_000, true), Err(Error::NoSpeech { clause: 1 }));
    // Sound played before the hush reached the device still counts, and completes nothing.
    let played = speaker.played(3, playing(520_000, 520_000), 530_000).unwrap();
    assert_eq!((played.played_us, played.completed.len(), played.finished), (520_000, 0, false));
    let position = speaker.position(3).unwrap();
    assert_eq!((position.clauses_done, position.clause, position.clause_played_us), (0, Some(0), 520_000));
    assert_eq!(speaker.position(2), None);
    assert!(!speaker.is_speaking());
}

#[test]
fn a_hush_before_the_first_packet_says_nothing() {
    let mut speaker = speaker(16_000);
    speaker.start(1, 1);
    speaker.push_clause(0, &ramp(3_200), 16_000, true).unwrap();
    let hushed = speaker.hush(10).unwrap();
    assert_eq!((hushed.sent_us, hushed.playhead_us), (0, 0));
    assert_eq!(poll_all(&mut speaker, 1_000_000), []);
}

#[test]
fn the_queue_is_bounded_and_says_so() {
    let mut speaker = speaker(16_000);
    assert!(matches!(speaker.push_clause(0, &[0; 10], 16_000, true), Err(Error::NoSpeech { .. })));
    speaker.start(1, 1);
    assert_eq!(speaker.room_us(), QUEUE_US_MAX);
    let half = vec![0; 24_000 * 30];
    speaker.push_clause(0, &half, 24_000, false).unwrap();
    speaker.push_clause(1, &half, 24_000, false).unwrap();
    let full = speaker.push_clause(2, &[0; 24], 24_000, false);
    assert_eq!(full, Err(Error::Full { clause_us: 1_000, room_us: 0 }));
    poll_all(&mut speaker, 0);
    assert!(speaker.room_us() >= 300_000);
    for rate_hz in [0, 1, 1_000_000, u32::MAX] {
        let refused = speaker.push_clause(2, &[0; 24], rate_hz, false);
        assert!(matches!(refused, Err(Error::Resample(_))), "{rate_hz}: {refused:?}");
    }
    assert!(Speaker::new(Config { lead_us: 0, ..Config::default() }).is_err());
    assert!(Speaker::new(Config { hold_us: 200_000, ..Config::default() }).is_err());
    assert!(Speaker::new(Config { rate_hz: 44_100, ..Config::default() }).is_err());
}

/// Step of the simulated time, in microseconds.
const STEP_US: u64 = 1_000;

/// A device behind a link: it plays received packets in real time, and reports as specified in PROTOCOL.md, section 8.
struct Device {
    /// One-way delay.
    delay_us: u64,
    /// Nothing arrives in either direction during this time; everything sent arrives at its end, at once.
    dark_us: std::ops::Range<u64>,
    /// One in this many packets is lost; it is concealed, and does not count as played.
    loss_every: u32,
    down: VecDeque<(u64, Packet)>,
    up: VecDeque<(u64, Report)>,
    /// End of the sound received without a gap, or concealed.
    have_us: u64,
    place_us: u64,
    made_up_us: u64,
    began: bool,
    playing: bool,
    told_us: u64,
    /// Most sound that it ever held, and the time from which that is measured.
    held_us_max: u64,
    asked_from_us: u64,
    starved: u32,
    /// It never sends a report.
    mute: bool,
}

impl Device {
    fn new(delay_us: u64) -> Self {
        Self {
            delay_us,
            dark_us: 0..0,
            loss_every: u32::MAX,
            down: VecDeque::new(),
            up: VecDeque::new(),
            have_us: 0,
            place_us: 0,
            made_up_us: 0,
            began: false,
            playing: false,
            told_us: 0,
            held_us_max: 0,
            asked_from_us: 0,
            starved: 0,
            mute: false,
        }
    }

    fn arrives(&self, sent_us: u64) -> u64 {
        let at_us = sent_us + self.delay_us;
        if self.dark_us.contains(&at_us) { self.dark_us.end } else { at_us }
    }

    fn say(&mut self, now_us: u64) {
        self.told_us = now_us;
        let played_us = self.place_us.saturating_sub(self.made_up_us);
        let report = Report { playing: self.playing, ..playing(played_us, now_us) };
        self.up.push_back((self.arrives(now_us), report));
    }

    /// One millisecond passes.
    fn step(&mut self, now_us: u64) {
        while let Some((_, packet)) = self.down.pop_front_if(|(at_us, _)| *at_us <= now_us) {
            if packet.seq % self.loss_every != self.loss_every - 1 {
                // A gap before it is concealed.
                self.made_up_us += packet.playout_us - self.have_us;
                self.have_us = packet.playout_us + FRAME_US;
            }
        }
        let held_us = self.have_us - self.place_us;
        if now_us >= self.asked_from_us {
            self.held_us_max = self.held_us_max.max(held_us);
        }
        if self.playing {
            self.place_us += STEP_US.min(held_us);
            if held_us <= STEP_US {
                self.playing = false;
                self.starved += 1;
                self.say(now_us);
            }
        } else if held_us >= 60_000 {
            (self.began, self.playing) = (true, true);
            self.say(now_us);
        }
        if self.began && now_us >= self.told_us + 200_000 {
            self.say(now_us);
        }
    }

    /// Receives one long speech for so many seconds.
    fn listen(&mut self, speaker: &mut Speaker, seconds: u64) {
        speaker.start(1, 1);
        speaker.push_clause(0, &vec![1; 16_000 * 30], 16_000, true).unwrap();
        for now_us in (0..seconds * 1_000_000).step_by(STEP_US as usize) {
            while let Some((_, report)) = self.up.pop_front_if(|(at_us, _)| *at_us <= now_us) {
                if !self.mute {
                    speaker.played(1, report, now_us);
                }
            }
            for packet in poll_all(speaker, now_us) {
                self.down.push_back((self.arrives(now_us), packet));
            }
            self.step(now_us);
        }
    }
}

#[test]
fn a_steady_link_of_any_length_never_starves_a_device() {
    for delay_us in [1_000, 50_000, 150_000, 300_000] {
        let mut device = Device::new(delay_us);
        device.listen(&mut speaker(16_000), 20);
        assert_eq!(device.starved, 0, "{delay_us}");
        assert!(device.place_us > 19_000_000 - 2 * delay_us, "{delay_us}: {}", device.place_us);
        assert!(device.held_us_max <= 420_000, "{delay_us}: {}", device.held_us_max);
    }
}

#[test]
fn a_link_that_stood_still_leaves_no_more_behind_than_a_device_must_hold() {
    for (delay_us, dark_ms) in [(1_000, 2_000), (1_000, 300), (60_000, 2_000), (60_000, 6_000)] {
        let mut device = Device::new(delay_us);
        device.dark_us = 5_000_000..5_000_000 + dark_ms * 1_000;
        device.listen(&mut speaker(16_000), 20);
        assert!(device.held_us_max <= 1_000_000, "{delay_us} {dark_ms}: {}", device.held_us_max);
        assert!(device.starved <= 2, "{delay_us} {dark_ms}: {}", device.starved);
        // Late sound is played, and then packets run as little ahead as before.
        let mut later = Device { asked_from_us: 14_000_000, dark_us: device.dark_us.clone(), ..Device::new(delay_us) };
        later.listen(&mut speaker(16_000), 20);
        assert!(later.held_us_max <= 600_000, "{delay_us} {dark_ms}: {}", later.held_us_max);
    }
}

#[test]
fn a_device_that_starves_and_goes_nowhere_is_not_sent_more_than_it_holds() {
    let mut speaker = speaker(16_000);
    speaker.start(1, 1);
    speaker.push_clause(0, &ramp(16_000 * 10), 16_000, true).unwrap();
    let mut sent = 0;
    for now_us in (0..8_000_000).step_by(20_000) {
        if now_us % 200_000 == 0 {
            let (played_us, starved) = (now_us.min(1_000_000), now_us >= 1_000_000);
            speaker.played(1, Report { playing: !starved, ..playing(played_us, now_us) }, now_us);
        }
        sent += poll_all(&mut speaker, now_us).len() as u64;
    }
    assert_eq!(sent * FRAME_US, 2_000_000, "the second that it played, and the one that it can hold");
    // The device continues, and so does the speech.
    speaker.played(1, playing(1_000_000, 9_000_000), 9_000_000);
    speaker.played(1, playing(1_200_000, 9_200_000), 9_200_000);
    assert_eq!(poll_all(&mut speaker, 9_200_000).len(), 0, "it still has 800 ms");
    speaker.played(1, playing(1_800_000, 9_800_000), 9_800_000);
    assert!(poll_all(&mut speaker, 9_800_000).len() >= 5);
}

#[test]
fn a_device_that_never_says_what_it_played_is_sent_what_it_holds() {
    let mut device = Device { mute: true, ..Device::new(1_000) };
    device.listen(&mut speaker(16_000), 5);
    assert_eq!(device.have_us, 1_000_000);
}

#[test]
fn sound_that_was_lost_and_made_up_for_does_not_hold_the_speech_back() {
    let mut device = Device { loss_every: 5, ..Device::new(40_000) };
    device.listen(&mut speaker(16_000), 20);
    assert!(device.made_up_us > 3_000_000 && device.place_us > 19_000_000, "{}", device.place_us);
    assert_eq!(device.starved, 0);
}

#[derive(Debug, Clone)]
enum Step {
    Start,
    Clause {
        samples: usize,
        last: bool,
    },
    Wait(u64),
    /// The device plays this much more of what it was sent, and reports it.
    Play(u64),
    /// The device repeats a report, or sends a wrong one.
    Say {
        speech: u32,
        us: u64,
    },
    Hush,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Start),
        4 => (0usize..20_000, 0u8..4).prop_map(|(samples, last)| Step::Clause { samples, last: last == 0 }),
        8 => (0u64..400_000).prop_map(Step::Wait),
        8 => (0u64..300_000).prop_map(Step::Play),
        2 => (0u32..12, any::<u64>()).prop_map(|(speech, us)| Step::Say { speech, us }),
        1 => Just(Step::Hush),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any order of clauses, time, acknowledgements and hushes: the ledger agrees with a device that only adds up
    /// its packets.
    #[test]
    fn the_account_is_exact_over_any_interleaving(steps in prop::collection::vec(step(), 1..120), rate in 0usize..3) {
        let rate_hz = [16_000u32, 24_000, 48_000][rate];
        let mut speaker = speaker(rate_hz);
        let (mut now_us, mut speech, mut clause, mut seq) = (1_000u64, 0u32, 0u16, 0u32);
        // The device: packets of the present speech, and how much of it was played and reported.
        let (mut got, mut played_us, mut told_us): (Vec<Packet>, u64, u64) = (Vec::new(), 0, 0);
        let (mut began_us, mut start_us) = (0, 0);
        let mut hushed = true;
        let mut completed: Vec<u16> = Vec::new();
        let mut finished = false;
        for step in steps {
            match step {
                Step::Start => {
                    speech += 1;
                    speaker.start(speech, speech * 10);
                    (got, played_us, told_us, clause, hushed) = (Vec::new(), 0, 0, 0, false);
                    start_us = now_us;
                    (completed, finished) = (Vec::new(), false);
                }
                Step::Clause { samples, last } => {
                    if speaker.push_clause(clause, &ramp(samples), 24_000, last).is_ok() { clause += 1; }
                }
                Step::Wait(us) => now_us += us,
                Step::Play(us) => {
                    played_us = (played_us + us).min(got.len() as u64 * FRAME_US);
                    let told = speaker.played(speech, playing(played_us, now_us), now_us);
                    prop_assert_eq!(told.is_some(), played_us > told_us);
                    told_us = told_us.max(played_us);
                    if let Some(told) = told {
                        prop_assert_eq!((told.speech, told.turn, told.played_us), (speech, speech * 10, played_us));
                        completed.extend(told.completed);
                        prop_assert!(!(finished && told.finished), "finished is said once");
                        finished |= told.finished;
                    }
                }
                Step::Say { speech: other, us } => {
                    if other != speech {
                        // An older speech, or one that never existed: nothing of the present one changes.
                        let _ = speaker.played(other, playing(us, us), now_us);
                    } else if us <= told_us {
                        prop_assert_eq!(speaker.played(other, playing(us, now_us), now_us), None);
                    }
                }
                Step::Hush => {
                    let stopped = speaker.hush(now_us);
                    prop_assert_eq!(stopped.is_some(), !hushed);
                    if let Some(stopped) = stopped {
                        prop_assert_eq!(stopped.sent_us, got.len() as u64 * FRAME_US);
                        prop_assert_eq!(stopped.played_us, told_us);
                        prop_assert!(stopped.playhead_us >= told_us && stopped.playhead_us <= stopped.sent_us);
                        let rest = poll_all(&mut speaker, now_us);
                        prop_assert!(rest.len() <= 1 && rest.iter().all(|packet| packet.fade));
                        seq += rest.len() as u32;
                    }
                    hushed = true;
                }
            }
            for packet in poll_all(&mut speaker, now_us) {
                prop_assert!(!packet.fade);
                prop_assert_eq!(packet.speech, speech);
                prop_assert_eq!(packet.seq, seq);
                prop_assert_eq!(packet.playout_us, got.len() as u64 * FRAME_US);
                prop_assert_eq!(packet.bytes.len(), rate_hz as usize / 50 * 2);
                seq += 1;
                // A device that ran dry begins again; no packet is ahead of it by more than a lead.
                let dry = got.is_empty() || now_us > began_us + packet.playout_us;
                if dry { began_us = now_us - packet.playout_us.min(now_us); }
                prop_assert!(packet.playout_us + FRAME_US <= now_us - began_us + 300_000);
                prop_assert!(packet.playout_us + FRAME_US <= (now_us - start_us) + told_us + 1_000_000);
                prop_assert!(packet.planned_us >= now_us);
                got.push(packet);
            }
            let expected: Vec<u16> = got.iter().enumerate()
                .filter(|(index, packet)| packet.last_of_clause && (*index as u64 + 1) * FRAME_US <= told_us)
                .map(|(_, packet)| packet.clause)
                .collect();
            prop_assert_eq!(&completed, &expected);
            let all = !hushed && got.last().is_some_and(|packet| packet.last_of_speech) && told_us == got.len() as u64 * FRAME_US;
            prop_assert!(!all || finished);
            if speech > 0 {
                let position = speaker.position(speech).unwrap();
                prop_assert_eq!((position.speech, position.played_us), (speech, told_us));
                prop_assert_eq!(position.sent_us, got.len() as u64 * FRAME_US);
                // At the end of what was sent it is still in the clause of which more follows.
                let open = got.last().filter(|packet| !packet.last_of_clause);
                let playing = got.get((told_us / FRAME_US) as usize).or(open).map(|packet| packet.clause);
                prop_assert_eq!(position.clause, playing);
                let done = playing.or_else(|| got.last().map(|packet| packet.clause + 1)).unwrap_or(0);
                prop_assert_eq!(position.clauses_done, done);
            }
        }
    }
}
