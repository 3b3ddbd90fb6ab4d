//! The fake glasses' speaker: plays clauses in order and reports what was played.

use gateway_core::input::{Input, Playback};

use super::{Event, Ms, Speech, World};

/// Interval between two playback reports.
const PLAYED_EVERY_MS: Ms = 100;

impl World {
    /// Plays a clause behind the others. `skipped` is the length of its beginning that is not played.
    pub(super) fn say(&mut self, device: usize, (speech, clause): (u32, u16), (skipped, length): (Ms, Ms), last: bool) {
        let fails = self.devices[device].tts_fails.contains(&clause);
        // A failing clause keeps its place until its failure is reported.
        let (end_only, length) = (length == 0, if fails { 40 } else { length });
        let generation = self.sequence;
        let playing = self.devices[device].speech.get_or_insert_with(|| Speech {
            id: speech,
            clauses: Vec::new(),
            done: 0,
            since: None,
            last: false,
            generation,
        });
        assert_eq!(playing.id, speech, "two speeches at once");
        assert_eq!(usize::from(clause), playing.clauses.len(), "clauses in order");
        playing.last |= last;
        playing.clauses.push((skipped, length));
        let ahead =
            playing.clauses.iter().filter(|(_, length)| *length > 0).count() - playing.done.min(playing.clauses.len());
        assert!(ahead <= 3, "more than two clauses ahead");
        let generation = playing.generation;
        if end_only {
            self.after(0, Event::Play(device, generation));
        } else if fails {
            self.after(30, Event::To(device, Input::SpeechFailed { speech, clause }));
            self.after(30, Event::Play(device, generation));
        } else {
            self.after(30, Event::To(device, Input::Spoken { speech, clause, duration_us: length * 1_000 }));
            self.after(30, Event::Play(device, generation));
        }
    }

    /// Advances the playback; reports what was played.
    pub(super) fn play(&mut self, device: usize, generation: u64) {
        if !self.devices[device].plays || !self.devices[device].connected {
            return;
        }
        let now = self.now_ms;
        let Some(mut playing) = self.devices[device].speech.take_if(|playing| playing.generation == generation) else {
            return;
        };
        let mut since = playing.since.unwrap_or(now);
        while let Some((_, length)) = playing.clauses.get(playing.done) {
            if now - since < *length {
                break;
            }
            since += length;
            playing.done += 1;
        }
        let idle = playing.done == playing.clauses.len();
        let finished = idle && playing.last;
        let playback = if finished { Playback::Finished } else { Playback::Playing };
        self.played(device, &playing, since, playback);
        if finished {
            return;
        }
        playing.since = (!idle).then_some(since);
        self.devices[device].speech = Some(playing);
        if !idle {
            self.after(PLAYED_EVERY_MS, Event::Play(device, generation));
        }
    }

    /// The device stops by itself what it plays.
    pub fn stop_playing(&mut self, device: usize) {
        if let Some(playing) = self.devices[device].speech.take() {
            self.played(device, &playing, playing.since.unwrap_or(self.now_ms), Playback::Stopped);
        }
    }

    pub(super) fn played(&mut self, device: usize, playing: &Speech, since: Ms, playback: Playback) {
        let part = playing
            .clauses
            .get(playing.done)
            .filter(|(_, length)| *length > 0)
            .map_or(0.0, |(skipped, length)| (skipped + self.now_ms - since) as f32 / (skipped + length) as f32);
        let speech = playing.id;
        let clauses_done = u16::try_from(playing.done).unwrap();
        self.after(0, Event::To(device, Input::Played { speech, clauses_done, clause_part: part, playback }));
    }

    /// The device is back: its playback continues.
    pub fn play_on(&mut self, device: usize) {
        if let Some(generation) = self.devices[device].speech.as_ref().map(|playing| playing.generation) {
            self.after(0, Event::Play(device, generation));
        }
    }
}
