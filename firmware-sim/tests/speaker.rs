//! The virtual speaker's reports, on a clock that the test controls.

use device_protocol::down::{Clause, SpeechChunk, SpeechEnd, SpeechStart};
use device_protocol::{Codec, PlayState};
use firmware_sim::speaker::{Heard, Output, Report, Speaker};

const RATE_HZ: u32 = 16_000;

/// A speaker, the time, and what it reported.
struct Ear {
    speaker: Speaker,
    now_us: u64,
    reports: Vec<Report>,
}

impl Ear {
    fn new() -> Self {
        Self { speaker: Speaker::new(true), now_us: 1_000_000, reports: Vec::new() }
    }

    fn start(&mut self, speech: u32) {
        let start = SpeechStart { speech, codec: Codec::Pcm16, rate_hz: RATE_HZ, text: "caption" };
        self.speaker.handle_start(self.now_us, 7, &start).unwrap();
        self.take();
    }

    fn text(&mut self, speech: u32, clause: u16, text: &str) {
        self.speaker.handle_clause(&Clause { speech, clause, text });
    }

    /// 20 ms of `sample` as chunk number `n` of the speech, counted from 0.
    fn chunk(&mut self, speech: u32, n: u64, clause: u16, sample: i16) {
        let payload: Vec<u8> = sample.to_le_bytes().repeat(320);
        let chunk = SpeechChunk { speech, clause, position_us: n * 20_000, duration_us: 20_000, payload: &payload };
        self.speaker.handle_chunk(self.now_us, n as u32 + 1, &chunk);
        self.take();
    }

    fn end(&mut self, speech: u32, chunks: u64) {
        let end = SpeechEnd { speech, last_audio_sequence: chunks as u32, duration_us: chunks * 20_000 };
        self.speaker.handle_end(self.now_us, &end);
        self.take();
    }

    fn hush(&mut self, speech: u32, fade_ms: u16) {
        self.speaker.handle_hush(self.now_us, speech, fade_ms);
        self.take();
    }

    /// Advances the clock, waking the speaker exactly at its timeouts.
    fn pass(&mut self, us: u64) {
        let until_us = self.now_us + us;
        let mut wakes = 0;
        while let Some(at_us) = self.speaker.poll_timeout().filter(|at_us| *at_us <= until_us) {
            wakes += 1;
            assert!(wakes < 10_000, "woken again and again for {at_us} at {}", self.now_us);
            self.now_us = self.now_us.max(at_us);
            self.speaker.poll(self.now_us);
            self.take();
        }
        self.now_us = until_us;
        self.speaker.poll(self.now_us);
        self.take();
    }

    fn take(&mut self) {
        while let Some(report) = self.speaker.poll_report() {
            self.reports.push(report);
        }
    }

    /// State, microseconds played and time of every report to the gateway.
    fn played(&self) -> Vec<(PlayState, u64, u64)> {
        let played = self.reports.iter().filter_map(|report| match report {
            Report::Played { played_us, at_us, state, .. } => Some((*state, *played_us, *at_us)),
            _ => None,
        });
        played.collect()
    }

    fn heard(&self) -> Vec<&Heard> {
        let heard = self.reports.iter().filter_map(|report| match report {
            Report::Over(heard) => Some(heard),
            _ => None,
        });
        heard.collect()
    }
}

#[test]
fn a_whole_speech_is_heard_and_counted() {
    let mut ear = Ear::new();
    ear.start(1);
    for n in 0..50 {
        ear.chunk(1, n, u16::from(n >= 25), 1_000);
    }
    ear.end(1, 50);
    ear.pass(2_000_000);
    let played = ear.played();
    assert_eq!(played[0], (PlayState::Playing, 0, 1_000_000));
    // The second clause begins half way through.
    assert!(played.contains(&(PlayState::Playing, 500_000, 1_500_000)), "{played:?}");
    assert_eq!(played.last(), Some(&(PlayState::Finished, 1_000_000, 2_000_000)));
    for pair in played.windows(2) {
        assert!(pair[1].2 - pair[0].2 <= 200_000, "silent for too long: {pair:?}");
        assert_eq!(pair[1].1 - pair[0].1, pair[1].2 - pair[0].2, "sound and time go together");
    }
    let heard = ear.heard();
    assert_eq!((heard.len(), heard[0].complete, heard[0].played_us), (1, true, 1_000_000));
    assert_eq!(heard[0].concealed_us, 0);
    assert_eq!(heard[0].pcm, vec![1_000; 16_000]);
    assert_eq!((heard[0].turn, heard[0].text.as_str()), (7, "caption"));
}

#[test]
fn playing_begins_after_60_ms_or_at_the_end() {
    let mut ear = Ear::new();
    ear.start(1);
    ear.chunk(1, 0, 0, 1);
    ear.chunk(1, 1, 0, 1);
    ear.pass(30_000);
    assert_eq!(ear.reports, []);
    ear.chunk(1, 2, 0, 1);
    assert_eq!(ear.played(), [(PlayState::Playing, 0, 1_030_000)]);

    let mut short = Ear::new();
    short.start(1);
    short.chunk(1, 0, 0, 1);
    short.end(1, 1);
    short.pass(20_000);
    assert_eq!(short.played().last(), Some(&(PlayState::Finished, 20_000, 1_020_000)));
}

#[test]
fn the_text_of_a_speech_is_that_of_the_clauses_that_were_begun() {
    for (stopped, text) in [(false, "One. Two. Three."), (true, "One. Two.")] {
        let mut ear = Ear::new();
        ear.start(1);
        for (clause, text) in [(0, "One."), (1, "Two."), (2, "Three.")] {
            ear.text(1, clause, text);
            // As after a resume: the same once more.
            ear.text(1, clause, text);
        }
        ear.text(2, 0, "Of no speech.");
        for n in 0..30 {
            ear.chunk(1, n, n as u16 / 10, 1_000);
        }
        if stopped {
            ear.pass(310_000);
            ear.hush(1, 0);
        } else {
            ear.end(1, 30);
            ear.pass(1_000_000);
        }
        let heard = ear.heard();
        assert_eq!((heard.len(), heard[0].complete, heard[0].text.as_str()), (1, !stopped, text));
    }
}

#[test]
fn a_hush_fades_and_cuts_what_was_heard() {
    let mut ear = Ear::new();
    ear.start(1);
    for n in 0..50 {
        ear.chunk(1, n, 0, 10_000);
    }
    ear.pass(310_000);
    ear.hush(1, 40);
    ear.chunk(1, 50, 0, 10_000);
    ear.pass(1_000_000);
    assert_eq!(ear.played().last(), Some(&(PlayState::Stopped, 350_000, 1_350_000)));
    let heard = ear.heard();
    assert_eq!((heard.len(), heard[0].complete, heard[0].played_us), (1, false, 350_000));
    let pcm = &heard[0].pcm;
    assert_eq!(pcm.len(), 350 * 16);
    assert_eq!(pcm[308 * 16], 10_000);
    // Half way through the fade it is half as loud, at its end silent.
    assert!((4_900..=5_100).contains(&pcm[330 * 16]), "{}", pcm[330 * 16]);
    assert!(pcm[pcm.len() - 1] < 100, "{}", pcm[pcm.len() - 1]);
    assert!(!ear.speaker.is_busy());
}

#[test]
fn a_hush_without_fade_stops_at_once_and_zero_means_all() {
    let mut ear = Ear::new();
    for speech in 1..=2 {
        ear.start(speech);
        for n in 0..10 {
            ear.chunk(speech, n, 0, 1);
        }
    }
    ear.pass(105_000);
    ear.hush(0, 0);
    let ends: Vec<_> = ear.played().into_iter().filter(|(state, ..)| *state == PlayState::Stopped).collect();
    assert_eq!(ends, [(PlayState::Stopped, 105_000, 1_105_000), (PlayState::Stopped, 0, 1_105_000)]);
    // A later speech is not affected.
    ear.start(3);
    ear.chunk(3, 0, 0, 1);
    ear.end(3, 1);
    ear.pass(100_000);
    assert_eq!(ear.played().last().unwrap().0, PlayState::Finished);
}

#[test]
fn late_chunks_starve_the_speech_and_silence_does_not_count() {
    let mut ear = Ear::new();
    ear.start(1);
    for n in 0..5 {
        ear.chunk(1, n, 0, 9);
    }
    ear.pass(250_000);
    assert_eq!(ear.played().last(), Some(&(PlayState::Starved, 100_000, 1_100_000)));
    for n in 5..10 {
        ear.chunk(1, n, 0, 9);
    }
    ear.end(1, 10);
    ear.pass(500_000);
    assert_eq!(ear.played().last(), Some(&(PlayState::Finished, 200_000, 1_350_000)));
    let pcm = &ear.heard()[0].pcm;
    assert_eq!(pcm.len(), 350 * 16);
    assert_eq!((pcm[99 * 16], pcm[101 * 16], pcm[251 * 16]), (9, 0, 9));
}

#[test]
fn a_lost_chunk_is_concealed_and_counts() {
    let mut ear = Ear::new();
    ear.start(1);
    for n in [0, 1, 2, 4, 5] {
        ear.chunk(1, n, 0, 9);
    }
    ear.end(1, 6);
    ear.pass(1_000_000);
    assert_eq!(ear.played().last(), Some(&(PlayState::Finished, 120_000, 1_120_000)));
    assert_eq!(ear.heard()[0].pcm.len(), 120 * 16);
    assert_eq!(ear.heard()[0].concealed_us, 20_000);
}

#[test]
fn chunks_may_come_in_any_order_twice_and_before_their_speech() {
    let mut ear = Ear::new();
    ear.chunk(1, 1, 0, 2);
    ear.chunk(1, 0, 0, 1);
    ear.start(1);
    ear.chunk(1, 2, 0, 3);
    ear.chunk(1, 1, 0, 2);
    ear.end(1, 3);
    ear.pass(1_000_000);
    let pcm = &ear.heard()[0].pcm;
    assert_eq!((pcm.len(), pcm[0], pcm[320], pcm[640]), (960, 1, 2, 3));
}

#[test]
fn a_chunk_without_speech_is_kept_for_a_second() {
    let mut ear = Ear::new();
    ear.chunk(1, 0, 0, 1);
    ear.pass(1_000_001);
    ear.start(1);
    ear.chunk(1, 1, 0, 2);
    ear.end(1, 2);
    ear.pass(1_000_000);
    // The first place counts, too: it was concealed.
    assert_eq!(ear.played().last().unwrap().1, 40_000);
}

#[test]
fn the_end_waits_200_ms_for_the_last_chunk() {
    let mut ear = Ear::new();
    ear.start(1);
    for n in 0..3 {
        ear.chunk(1, n, 0, 1);
    }
    ear.end(1, 4);
    ear.pass(1_000_000);
    // It is filled in: what was played is as long as the speech.
    assert_eq!(ear.played().last(), Some(&(PlayState::Finished, 80_000, 1_220_000)));
    let over = ear.heard()[0].ended_us;
    assert_eq!(over, 1_220_000);
    assert!(!ear.speaker.is_busy());
}

#[test]
fn a_damaged_packet_is_heard_as_concealment() {
    let mut ear = Ear::new();
    ear.start(1);
    for n in 0..3 {
        ear.chunk(1, n, 0, 1);
    }
    let chunk = SpeechChunk { speech: 1, clause: 0, position_us: 60_000, duration_us: 20_000, payload: &[1, 2, 3] };
    ear.speaker.handle_chunk(ear.now_us, 4, &chunk);
    ear.end(1, 4);
    ear.pass(1_000_000);
    assert_eq!(ear.played().last(), Some(&(PlayState::Finished, 80_000, 1_080_000)));
}

#[test]
fn the_arrival_of_the_last_packet_is_known_under_a_fade_and_behind_the_end() {
    let mut ear = Ear::new();
    ear.chunk(1, 0, 0, 9);
    ear.pass(10_000);
    ear.start(1);
    for n in 1..5 {
        ear.chunk(1, n, 0, 9);
    }
    ear.pass(30_000);
    ear.hush(1, 40);
    ear.pass(10_000);
    ear.chunk(1, 5, 0, 9);
    ear.pass(100_000);
    assert_eq!(ear.heard()[0].arrived_us, Some(1_050_000));
    ear.chunk(1, 6, 0, 9);
    assert_eq!(ear.reports.last(), Some(&Report::Late { speech: 1, at_us: 1_150_000 }));
    // One that came before its speech counts, too.
    ear.chunk(2, 0, 0, 9);
    ear.pass(5_000);
    ear.start(2);
    ear.hush(2, 0);
    assert_eq!(ear.heard()[1].arrived_us, Some(1_150_000));
}

#[test]
fn an_unknown_codec_is_refused() {
    let start = SpeechStart { speech: 1, codec: Codec::Other(9), rate_hz: RATE_HZ, text: "" };
    assert!(Speaker::new(true).handle_start(0, 1, &start).unwrap_err().contains('9'));
}

/// All that was tapped, if each stretch begins where the one before it ends.
fn tapped(ear: &mut Ear) -> (Vec<Output>, Vec<i16>) {
    let outputs: Vec<Output> = std::iter::from_fn(|| ear.speaker.poll_output()).collect();
    let pcm = outputs.iter().flat_map(|output| output.pcm.clone()).collect();
    (outputs, pcm)
}

#[test]
fn a_tap_has_each_sample_as_soon_as_it_is_played() {
    let mut ear = Ear::new();
    ear.speaker.tap(true);
    ear.start(1);
    for n in 0..50 {
        ear.chunk(1, n, 0, 1_000 + n as i16);
    }
    // 33.5 ms: inside the second packet.
    ear.pass(33_500);
    let (outputs, mut pcm) = tapped(&mut ear);
    assert_eq!(pcm.len(), 536);
    assert_eq!((outputs[0].from_us, outputs.last().unwrap().until_us), (1_000_000, 1_033_500));
    ear.pass(466_500);
    ear.hush(1, 100);
    ear.pass(1_000_000);
    let (outputs, rest) = tapped(&mut ear);
    assert_eq!((outputs[0].from_us, outputs.last().unwrap().until_us), (1_033_500, 1_600_000));
    assert!(outputs.windows(2).all(|pair| pair[0].until_us == pair[1].from_us), "{outputs:?}");
    // What is tapped is what is heard, with the fade.
    pcm.extend(rest);
    assert_eq!(pcm, ear.heard()[0].pcm);
    assert_eq!(pcm.len(), 9_600);
    assert!(pcm[8_800] < 700 && pcm[7_999] > 1_000);
}

#[test]
fn a_speaker_without_samples_taps_times() {
    let mut ear = Ear::new();
    ear.speaker = Speaker::new(false);
    ear.speaker.tap(true);
    ear.start(1);
    for n in 0..10 {
        ear.chunk(1, n, 0, 1_000);
    }
    ear.end(1, 10);
    ear.pass(90_000);
    ear.pass(1_000_000);
    let (outputs, pcm) = tapped(&mut ear);
    assert!(pcm.is_empty());
    assert!(outputs.windows(2).all(|pair| pair[0].until_us == pair[1].from_us), "{outputs:?}");
    assert_eq!((outputs[0].from_us, outputs.last().unwrap().until_us), (1_000_000, 1_200_000));
}
