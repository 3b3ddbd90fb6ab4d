//! Steps with sound: what the wearer says, and what is played.

use std::time::Duration;

use device_protocol::{ListeningState, PlayState, down};

use super::{
    Rule,
    playback::Playback,
    script::Done,
    session::{Ended, Feed},
    visit::{Visit, micros},
};
use crate::clock;

/// Sound from which its pace is judged, in microseconds.
const MEASURED_US_MIN: u64 = 1_000_000;
/// What is played before the hush, in microseconds.
const HEARD_US: u64 = 500_000;
/// How long a hushed speech takes to be silent, in milliseconds.
const FADE_MS: u16 = 30;
/// Packets that still come behind a hush.
const LATE_PACKETS: usize = 2;
/// How long nothing more may be told of a speech that is over.
const QUIET: Duration = Duration::from_secs(1);
/// How much longer than a speech it may take, with its pause.
const SPARE: Duration = Duration::from_secs(5);

const SOUND: [Rule; 5] = [Rule::SoundFormat, Rule::SoundSequence, Rule::SoundTime, Rule::SoundPace, Rule::Mute];
const PLAYBACK: [Rule; 7] =
    [Rule::Played, Rule::PlayedSent, Rule::PlayedTime, Rule::PlayedClause, Rule::Starved, Rule::Finished, Rule::Hush];

impl Visit<'_> {
    pub(super) async fn sound(&mut self) -> Done {
        if self.formats.0.rate_hz == 0 {
            SOUND.into_iter().for_each(|rule| self.watch.report.skip(rule, "the device has no microphone"));
            return Ok(());
        }
        let (patience, measure_us) = (self.judge.options.patience, micros(self.judge.options.measure));
        self.say("say something to the glasses", patience, true);
        self.watch.sound.measure();
        let within = patience + self.judge.options.measure;
        self.until(within, |watch| watch.sound.measured_us >= measure_us).await?;
        if self.watch.sound.measured_us >= MEASURED_US_MIN {
            self.watch.sound.settle_pace(&mut self.watch.report);
        }
        if self.watch.sound.last_sequence() == 0 {
            SOUND.into_iter().for_each(|rule| self.watch.report.skip(rule, "no sound came"));
            return Ok(());
        }
        self.at = Rule::Mute;
        self.say("switch the microphone of the glasses off, and on again", patience, true);
        if !self.until(patience, |watch| watch.sound.was_muted).await? {
            self.watch.report.skip(Rule::Mute, "the microphone was not switched off");
            return Ok(());
        }
        if !self.until(patience, |watch| !watch.sound.is_muted()).await? {
            // It stays off, and nothing came.
            self.watch.sound.settle_mute(&mut self.watch.report, u64::MAX);
        }
        Ok(())
    }

    /// Begins a speech; its length, and how many packets it has.
    fn begin_speech(&mut self, speech: u32, ends: bool) -> Result<(Duration, usize), Ended> {
        let turn = speech;
        let made = self.judge.clip.packets(self.formats.1);
        let (packets, lengths) = made.map_err(|error| Ended::Closed(format!("the judge has no sound: {error:#}")))?;
        let format = self.formats.1;
        let start = down::SpeechStart { speech, codec: format.codec, rate_hz: format.rate_hz, text: "" };
        self.send(turn, start)?;
        // The next turn begins: what is told of this speech has its own one all the same.
        self.send(turn + 1, down::Listening { state: ListeningState::Speaking })?;
        self.watch.playback = Some(Playback::new(speech, turn, &lengths));
        let count = packets.len();
        if let Some(session) = &mut self.session {
            session.feed = Some(Feed { packets, at: 0, until: count, ends });
        }
        Ok((Duration::from_micros(lengths.iter().sum()), count))
    }

    fn feed_until(&mut self, until: usize) {
        if let Some(feed) = self.session.as_mut().and_then(|session| session.feed.as_mut()) {
            feed.until = until;
        }
    }

    fn has_no_speaker(&mut self) -> bool {
        let is_mute = self.formats.1.rate_hz == 0;
        if is_mute {
            PLAYBACK.into_iter().for_each(|rule| self.watch.report.skip(rule, "no sound can be sent to the device"));
        }
        is_mute
    }

    pub(super) async fn speech(&mut self) -> Done {
        if self.has_no_speaker() {
            return Ok(());
        }
        let grace = self.grace();
        let (length, count) = self.begin_speech(1, true)?;
        self.feed_until(count / 2);
        let until = |watch: &super::watch::Watch| {
            watch.playback.as_ref().is_none_or(|playback| playback.has_starved() || playback.end.is_some())
        };
        self.until(length + SPARE + grace, until).await?;
        let (told, has_starved) = self.playback(|playback| (playback.told_us().is_some(), playback.has_starved()));
        if !told {
            self.watch.report.fail(Rule::Played, "nothing came");
            return self.stop_feeding();
        }
        self.watch.report.check(Rule::Starved, has_starved, || "nothing was told when the buffer was empty".to_owned());
        self.feed_until(count);
        self.until(length + SPARE + grace, |watch| {
            watch.playback.as_ref().is_none_or(|playback| playback.end.is_some())
        })
        .await?;
        if !self.playback(|playback| playback.end.is_some()) {
            self.watch.report.fail(Rule::Finished, "the end of the speech was not told");
            return self.stop_feeding();
        }
        // One too many would come right behind it.
        self.until(QUIET, |_| false).await.map(drop)
    }

    fn playback<T: Default>(&self, read: impl FnOnce(&Playback) -> T) -> T {
        self.watch.playback.as_ref().map(read).unwrap_or_default()
    }

    /// Ends a speech of which not all was told. What is still told of it is judged.
    fn stop_feeding(&mut self) -> Done {
        if let Some(session) = &mut self.session {
            session.feed = None;
        }
        Ok(())
    }

    pub(super) async fn hush(&mut self) -> Done {
        if self.has_no_speaker() {
            return Ok(());
        }
        let grace = self.grace();
        self.begin_speech(2, false)?;
        let heard = |watch: &super::watch::Watch| {
            let told_us = watch.playback.as_ref().and_then(Playback::told_us);
            told_us.is_some_and(|told_us| told_us >= HEARD_US)
        };
        if !self.until(SPARE + grace, heard).await? {
            self.watch.report.skip(Rule::Hush, "the speech was not told as played");
            return self.stop_feeding();
        }
        let turn = self.playback(|playback| playback.turn);
        if let Some(playback) = &mut self.watch.playback {
            playback.hushed(clock::mono_us());
        }
        self.send(turn, down::Hush { speech: 2, fade_ms: FADE_MS })?;
        let at = self.session.as_ref().and_then(|session| session.feed.as_ref()).map_or(0, |feed| feed.at);
        self.feed_until(at + LATE_PACKETS);
        let within = Duration::from_millis(FADE_MS.into()) + grace;
        self.until(within, |watch| watch.playback.as_ref().is_none_or(|playback| playback.end.is_some())).await?;
        match self.playback(|playback| playback.end) {
            Some(PlayState::Stopped) => {
                self.at = Rule::Hushed;
                self.until(QUIET, |_| false).await?;
                self.watch.report.pass(Rule::Hushed);
            }
            Some(_) => {}
            None => self.watch.report.fail(Rule::Hush, format!("not told within {} ms", within.as_millis())),
        }
        self.stop_feeding()
    }
}
