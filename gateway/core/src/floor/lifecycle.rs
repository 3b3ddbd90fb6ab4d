//! The life cycle of an utterance: takes voice facts and transcripts, produces accepted speech.

use alloc::{string::String, vec::Vec};

use super::{
    Activity, Event, Floor, Utterance, addressing, barge_in, caption, commands,
    confidence::Confidence,
    decode_policy::{self, ask},
    origin::Grounds,
    pending_transcripts,
    second_pass::FirstText,
    talk::Talk,
    utterance::{Closed, Interruption, Open, Silence, Speculative},
};
use crate::{
    context::Context,
    limits::UTTERANCE_CHARS_MAX,
    output::Output,
    timers::Timer,
    vocab::{RANK_FIRST, Transcript, TranscriptKind, VoiceFact},
};

/// Timers that run only while an utterance is open.
pub(super) const OPEN_TIMERS: [Timer; 5] =
    [Timer::PartialDue, Timer::TalkReleased, Timer::PauseOver, Timer::UtteranceStalled, Timer::VoiceConfirmed];
/// Longest time without any fact about an open utterance. The limit of `audio::Listener` is below it.
pub(super) const UTTERANCE_STALLED_MS: u32 = 40_000;

/// Silence in microseconds after which a pause is reported where a single word may be the whole answer: two windows of
/// the voice detector, so that the word is decoded before the silence ends the turn.
const WORD_PAUSE_US: u64 = 60_000;

impl Floor {
    pub(crate) fn handle_voice(&mut self, cx: &mut Context, activity: &Activity, fact: VoiceFact) -> Option<Event> {
        if let Some(heard_us) = fact.heard_us() {
            self.sound_clock.note(cx.now_us(), heard_us);
        }
        match fact {
            VoiceFact::SpeechStarted { utterance, at_us, voiced_us } => {
                return self.started(cx, activity, utterance, (at_us, voiced_us));
            }
            VoiceFact::WakeHeard { utterance, at_us, .. } => return self.wake_heard(cx, activity, utterance, at_us),
            VoiceFact::Echo { utterance, likeness } => {
                self.looked(cx, activity, utterance, likeness);
                return None;
            }
            _ => {}
        }
        let (VoiceFact::Paused { utterance, .. }
        | VoiceFact::Resumed { utterance, .. }
        | VoiceFact::Silence { utterance, .. }
        | VoiceFact::Ended { utterance, .. }
        | VoiceFact::Echo { utterance, .. }
        | VoiceFact::SpeechStarted { utterance, .. }
        | VoiceFact::WakeHeard { utterance, .. }) = fact;
        let open = self.open.as_mut().filter(|open| open.id == utterance)?;
        cx.arm(Timer::UtteranceStalled, UTTERANCE_STALLED_MS);
        match fact {
            VoiceFact::SpeechStarted { .. } | VoiceFact::WakeHeard { .. } | VoiceFact::Echo { .. } => None,
            VoiceFact::Paused { at_us, silence_us, .. } => {
                self.pause(cx, activity, at_us);
                self.note_silence(cx, silence_us, None);
                self.decide(cx, activity)
            }
            VoiceFact::Resumed { .. } => {
                if let Some(silence) = open.silence {
                    open.pauses.went_on(u32::try_from(silence.silence_us / 1_000).unwrap_or(u32::MAX));
                }
                self.resume(cx, activity);
                None
            }
            VoiceFact::Silence { at_us, silence_us, score, .. } => {
                if open.voiced {
                    self.pause(cx, activity, at_us);
                }
                self.note_silence(cx, silence_us, score);
                self.decide(cx, activity)
            }
            VoiceFact::Ended { at_us, .. } => {
                open.last_voice_us = at_us;
                self.close(cx, activity)
            }
        }
    }

    /// Handles one echo measurement. Only one that changes the verdict counts as news of the utterance.
    fn looked(&mut self, cx: &mut Context, activity: &Activity, utterance: u32, likeness: f32) {
        let open = self.open.as_mut().filter(|open| open.id == utterance);
        if let Some(present) = open.and_then(|open| open.echo.judge(likeness)) {
            cx.arm(Timer::UtteranceStalled, UTTERANCE_STALLED_MS);
            self.note_echo(cx, activity, present);
        }
    }

    fn started(
        &mut self,
        cx: &mut Context,
        activity: &Activity,
        utterance: u32,
        (at_us, voiced_us): (u64, u64),
    ) -> Option<Event> {
        // A repeated fact: this utterance is open, or was closed already.
        if self.last_closed == Some(utterance) || self.open.as_ref().is_some_and(|open| open.id == utterance) {
            return None;
        }
        // A new utterance while one is open: the listener closed the old one by itself.
        let event = self.close(cx, activity);
        // Also one that is a request now, below.
        let follows = !self.closed.is_empty();
        // The previous utterance is over; a new voice must not wait for a better text of it.
        let event = event.or_else(|| self.accept_first(cx, activity));
        let spoken_us = self.sound_clock.spoken_us(cx.now_us(), at_us);
        let mut origin = self.origin_now(cx, activity, spoken_us, follows);
        let event = event.or(self.take_rest(&mut origin, at_us));
        self.open = Some(Open::new(utterance, (cx.now_us(), spoken_us), at_us, origin));
        if origin.grounds != Grounds::None && !origin.grounds.is_doubtful(cx, None) {
            cx.push(Output::ExpectRequest { rank: RANK_FIRST });
        }
        if activity.asked || origin.grounds == Grounds::Asked {
            cx.push(Output::PauseAfter { utterance, silence_us: WORD_PAUSE_US });
        }
        self.watch_words(cx, activity);
        cx.arm(Timer::UtteranceStalled, UTTERANCE_STALLED_MS);
        if !origin.background {
            barge_in::watch_voice(cx, activity, voiced_us);
        }
        event
    }

    /// The voice over the assistant has lasted long enough.
    pub(crate) fn handle_voice_confirmed(&mut self, activity: &Activity) -> Option<Event> {
        let open = self.open.as_mut().filter(|open| open.voiced && !open.echo.is_present())?;
        if !activity.speaking {
            return None;
        }
        if open.interrupted > Interruption::None {
            return None;
        }
        open.interrupted = if self.wordless.is_some() { Interruption::Wordless } else { Interruption::Voice };
        open.is_interrupting().then_some(Event::VoiceOver)
    }

    pub(crate) fn handle_talk_released(&mut self, cx: &mut Context, activity: &Activity) -> Option<Event> {
        if self.talk == Talk::Released { self.close(cx, activity) } else { None }
    }

    pub(crate) fn handle_stalled(&mut self, cx: &mut Context, activity: &Activity) -> Option<Event> {
        self.close(cx, activity)
    }

    /// Handles a transcript. Those of an utterance or a revision that is no longer awaited are dropped here.
    pub(crate) fn handle_transcript(
        &mut self,
        cx: &mut Context,
        activity: &Activity,
        transcript: Transcript,
    ) -> Option<Event> {
        let text = cleaned(&transcript.text);
        let revision = transcript.revision;
        // What was said before that voice says nothing of it.
        self.wordless.take_if(|since| *since <= transcript.utterance && commands::has_words(&text));
        if matches!(transcript.kind, TranscriptKind::SecondPass | TranscriptKind::ThirdPass) {
            return self.handle_second_text(cx, activity, &transcript, text);
        }
        if let Some(index) = self.closed.iter().position(|closed| {
            closed.id == transcript.utterance && closed.awaited == revision && closed.second_pass.is_none()
        }) {
            let mut closed = self.closed.remove(index)?;
            closed.doubtful = !transcript.foreign && transcript.confidence < self.confidence.doubtful_below();
            let is_newest = self.open.is_none() && index == self.closed.len();
            let first = FirstText {
                may_repeat: is_newest && !is_slow(cx, closed.begun_us),
                utterance: closed.id,
                revision,
                text: &text,
                confidence: transcript.confidence,
                origin: closed.origin,
                wake: closed.wake,
                started_us: closed.started_us,
            };
            closed.second_pass = self.begin_second_pass(cx, activity, &first);
            if closed.second_pass.is_none() {
                self.watch_transcripts(cx);
                return Some(self.said(cx, activity, closed, text));
            }
            return self.await_better(cx, activity, closed, text);
        }
        let open = self.open.as_mut().filter(|open| open.id == transcript.utterance)?;
        if let Some(speculative) = &mut open.speculative
            && speculative.revision == revision
        {
            speculative.text = Some(text.clone());
            let Transcript { confidence, last_word, breaks_off, .. } = transcript;
            speculative.confidence = Confidence { text: confidence, last_word, breaks_off };
            speculative.foreign = transcript.foreign;
            let first = FirstText {
                may_repeat: !is_slow(cx, speculative.begun_us),
                utterance: open.id,
                revision,
                text: &text,
                confidence: transcript.confidence,
                origin: open.origin,
                wake: open.wake,
                started_us: open.started_us,
            };
            let pass = self.begin_second_pass(cx, activity, &first);
            if let (Some(pass), Some(open)) = (pass, &mut self.open) {
                open.revision = open.revision.max(pass.awaited);
                if let Some(speculative) = &mut open.speculative {
                    speculative.second_pass = Some(pass);
                }
            }
            if let Some(open) = &mut self.open {
                open.caption.follow(&text);
            }
            let interrupt = self.words_over_speech(cx, activity, &text);
            // The next fact about the pause decides its end, once the assistant is silent.
            return interrupt.or_else(|| self.decide(cx, activity));
        }
        let is_partial = transcript.kind == TranscriptKind::Partial || open.partials.awaits(revision);
        if is_partial { self.handle_partial(cx, activity, (revision, transcript.kind), text) } else { None }
    }

    /// Tells of the caption, if it has changed; returns whether the words stop the assistant.
    pub(super) fn words_over_speech(&mut self, cx: &mut Context, activity: &Activity, text: &str) -> Option<Event> {
        self.note_words(cx, text);
        let open = self.open.as_mut()?;
        let addressed =
            open.wake.in_text || (open.origin.grounds != Grounds::None && !open.origin.grounds.is_doubtful(cx, None));
        if addressed {
            cx.push(Output::ExpectRequest { rank: RANK_FIRST });
        }
        if let Some(text) = open.caption.take_change(addressed) {
            open.captions = open.captions.saturating_add(1);
            cx.push(Output::Caption {
                turn: None,
                utterance: open.id,
                revision: open.captions,
                last: false,
                addressed,
                text,
            });
        }
        if activity.speaking
            && open.interrupted < Interruption::Words
            && barge_in::by_words(cx, &self.phrases, activity, open, text, self.confidence.doubtful_below())
        {
            open.interrupted = Interruption::Words;
            cx.disarm(Timer::VoiceConfirmed);
            return Some(Event::Interrupt);
        }
        None
    }

    /// Ends the open utterance. Its text is taken from the speculative decode if that covers all of it; otherwise a
    /// final one is requested.
    pub(super) fn close(&mut self, cx: &mut Context, activity: &Activity) -> Option<Event> {
        let mut open = self.open.take()?;
        // Who lets go of the talk button has said that this is the end.
        let waited = open.silence.filter(|_| self.talk != Talk::Released);
        let waited_us = waited.map_or(0, |silence| silence.lasts_us(cx.now_us()));
        self.end_hold();
        self.last_closed = Some(open.id);
        for timer in OPEN_TIMERS {
            cx.disarm(timer);
        }
        cx.push(Output::CloseUtterance { utterance: open.id });
        let is_overheard = open.speculative.is_none() && self.is_overheard(cx, activity, &open);
        // A short voice that begins right after the assistant's may be the end of its echo, unless the wearer called.
        let length_us = open.last_voice_us.saturating_sub(open.began_us);
        let is_rest = |silence: Silence| self.own_voice.may_be_rest(silence.began_us(), length_us);
        let may_be_rest = !cx.echo_cancelled && open.origin.grounds != Grounds::Called;
        open.origin.echo |= may_be_rest && open.silence.is_some_and(is_rest);
        if decode_policy::is_translated(cx, &open) {
            cx.translate(open.id);
        }
        let speculative = open.speculative.take().filter(|_| !open.voiced);
        let deadline_us = pending_transcripts::deadline_us(
            cx,
            speculative.as_ref().is_some_and(|speculative| speculative.begun_us.is_some()),
        );
        let mut closed = Closed {
            id: open.id,
            started_us: open.started_us,
            spoken_us: open.spoken_us,
            late: open.late,
            began_us: open.began_us,
            origin: open.origin,
            interrupted: open.interrupted,
            wake: open.wake,
            captions: open.captions,
            awaited: 0,
            deadline_us,
            last_voice_us: open.last_voice_us,
            waited_us,
            decided_us: cx.now_us(),
            pauses: open.pauses.clone(),
            text: String::new(),
            begun_us: speculative.as_ref().and_then(|speculative| speculative.begun_us),
            doubtful: speculative.as_ref().is_some_and(|it| it.is_doubtful(self.confidence.doubtful_below())),
            matched: None,
            second_pass: None,
            final_asked: false,
        };
        if is_overheard && self.pass_over(cx, &open, &closed) {
            return Some(Event::Nothing);
        }
        match speculative {
            Some(Speculative { revision, text: Some(text), matched, second_pass, .. }) => {
                closed.awaited = revision;
                closed.matched = matched;
                closed.second_pass = second_pass;
                let Some(pass) = &mut closed.second_pass else {
                    return Some(self.said(cx, activity, closed, text));
                };
                pass.decode_if_due(cx, closed.id, closed.wake);
                return self.await_better(cx, activity, closed, text);
            }
            Some(Speculative { revision, .. }) => closed.awaited = revision,
            None => {
                closed.awaited = open.next_revision();
                closed.final_asked = true;
                ask(cx, (open.id, closed.awaited), TranscriptKind::Final, (open.meant(cx), open.wake));
            }
        }
        // Texts of less of it are of no use now, and this one would wait for them.
        if closed.awaited > 1 {
            cx.push(Output::CancelTranscribe { utterance: closed.id, revision: closed.awaited, except: Vec::new() });
        }
        self.keep_closed(cx, activity, closed)
    }

    /// Whether the text was meant for the assistant, and which part of it.
    pub(super) fn said(&mut self, cx: &mut Context, activity: &Activity, closed: Closed, text: String) -> Event {
        let Closed { origin, wake, .. } = closed;
        if !commands::has_words(&text) {
            wake.verify(cx, false);
            caption::last(cx, (closed.id, closed.captions), false, &text);
            return Event::Nothing;
        }
        // A wake phrase may be anywhere after the assistant's own words.
        let woken = if origin.echo { self.phrases.find(&text) } else { self.after_wake(wake, &text) };
        wake.verify(cx, woken.is_some());
        let grounds = self.grounds(cx, activity, origin);
        let pending = self.pending(cx, closed.started_us);
        let doubtful = grounds.is_doubtful(cx, pending.as_ref());
        let others = match (origin.echo, cx.echo_cancelled) {
            (false, _) => Some(text.clone()),
            // Possible echo of the assistant never counts as a request.
            (true, false) => None,
            (true, true) => barge_in::others_words(activity, &text),
        };
        let request = match woken {
            Some(rest) => Some(String::from(rest)),
            None => others.filter(|words| addressing::is_meant(cx, grounds, doubtful, words, closed.matched)),
        };
        if request.is_some() {
            // A phrase that is heard in it now has been answered.
            self.passed.take_if(|passed| passed.id == closed.id);
        }
        if request.is_some() && !origin.echo {
            self.pace.add(&closed.pauses);
        }
        let whole = request.as_deref().unwrap_or(&text);
        // Behind a wake phrase words that the assistant has said are what the request is about: "cancel the alarm".
        let cancels_in_echo = || match woken {
            Some(_) => barge_in::cancels_at_end(activity, &text),
            None => barge_in::cancels_through_echo(activity, &text),
        };
        let cancels = commands::command(whole) == Some(commands::Command::Cancel) || (origin.echo && cancels_in_echo());
        let over_turn = origin.during_turn || closed.is_interrupting();
        // Of a voice over the assistant that nothing asked for.
        let is_expected = matches!(grounds, Grounds::Called | Grounds::Asked);
        let doubtful = closed.doubtful && origin.over_speech && !origin.echo && !is_expected;
        let listens = barge_in::only_listens(whole, closed.matched, doubtful);
        let is_own = !cx.echo_cancelled
            && self.own_voice.may_go_on_until(closed.started_us)
            && barge_in::repeats(activity, &text);
        let obeyed = cancels && (over_turn || activity.busy || self.is_expecting(cx.now_us()));
        caption::last(cx, (closed.id, closed.captions), request.is_some() || obeyed, &text);
        Event::Said(Utterance {
            utterance: closed.id,
            woken: woken.is_some(),
            echo: origin.echo || is_own,
            over_turn,
            cancels,
            listens,
            matched: closed.matched,
            started_us: closed.started_us,
            spoken_us: closed.spoken_us,
            late: closed.late,
            rest: origin.rest,
            last_voice_us: closed.last_voice_us,
            waited_us: closed.waited_us,
            decided_us: closed.decided_us,
            request,
            text,
        })
    }

    /// The wearer pauses: in case this is the end, the speech so far is decoded, unless nothing needs it.
    fn pause(&mut self, cx: &mut Context, activity: &Activity, at_us: u64) {
        let overheard = self.open.as_ref().is_some_and(|open| self.is_overheard(cx, activity, open));
        let Some(open) = &mut self.open else {
            return;
        };
        open.voiced = false;
        open.last_voice_us = at_us;
        cx.disarm(Timer::PartialDue);
        cx.disarm(Timer::VoiceConfirmed);
        if !overheard {
            self.speculate(cx);
        }
    }

    /// The speech so far is decoded, in case the pause is its end.
    pub(super) fn speculate(&mut self, cx: &mut Context) {
        let Some(open) = &mut self.open else {
            return;
        };
        let revision = open.next_revision();
        open.speculative = Some(Speculative::new(revision));
        ask(cx, (open.id, revision), TranscriptKind::Speculative, (open.meant(cx), open.wake));
    }

    /// The voice goes on after a pause. Where its words are awaited, a decode that has begun is not made in vain: on a slow machine,
    /// and with a voice that often pauses, none would ever end.
    fn resume(&mut self, cx: &mut Context, activity: &Activity) {
        let is_followed = self.is_followed(cx);
        let Some(open) = self.open.as_mut().filter(|open| !open.voiced) else {
            return;
        };
        open.voiced = true;
        open.silence = None;
        cx.disarm(Timer::PauseOver);
        let begun = open.speculative.take().filter(|speculative| speculative.text.is_none());
        let is_awaited = decode_policy::are_words_awaited(activity, open);
        let except = if is_followed || is_awaited {
            open.partials.go_on(cx.now_us(), begun.map(|speculative| speculative.revision), is_awaited && !is_followed)
        } else {
            open.partials.cancel();
            Vec::new()
        };
        let revision = open.next_revision();
        cx.push(Output::CancelTranscribe { utterance: open.id, revision, except });
        if !open.origin.background && !open.echo.is_present() {
            barge_in::watch_voice(cx, activity, 0);
        }
        self.watch_words(cx, activity);
    }

    fn note_silence(&mut self, cx: &Context, silence_us: u64, score: Option<f32>) {
        if let Some(open) = &mut self.open {
            open.silence = Some(Silence { silence_us, known_us: cx.now_us(), score });
        }
    }
}

/// Whether the decode that began at this time, monotonic, has taken so long that no other one is waited for.
fn is_slow(cx: &Context, begun_us: Option<u64>) -> bool {
    let most_us = u64::from(cx.config.second_pass_ms_max) * 1_000;
    begun_us.is_some_and(|begun_us| cx.now_us().saturating_sub(begun_us) > most_us)
}

/// The text without noises, cut to the length that a model may be given.
fn cleaned(text: &str) -> String {
    commands::without_noises(text).chars().take(UTTERANCE_CHARS_MAX).collect()
}
