//! From clauses to paced speech packets, and from the device's playback reports to facts.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use audio::{
    codec::Codec,
    fair::Owner,
    frame::samples_to_us,
    speaker::{self, Packet, Report, Speaker},
    tts::Voice,
};
use gateway_core::{
    input::{Input, Playback},
    vocab::{SoundCoding, VoiceFact},
};

use super::{
    ear::Ear,
    echo::EchoWatch,
    elsewhere::voice::{Clause as Wanted, Synthesis, Voices},
};
use crate::{
    clock,
    mailbox::{DeviceMessage, Mailbox, Synthesised},
    runtime::compute::Urgency,
};

/// The speech output of one device.
pub(crate) struct Mouth {
    speaker: Speaker,
    voices: Voices,
    /// BCP 47 tag of the conversation's language.
    language: String,
    owner: Owner,
    speed: f32,
    speech: Option<Speech>,
    /// Present if the device says that it cancels its echo: some of it may be left.
    echo: Option<EchoWatch>,
}

/// The speech that is being sent: there is one at a time.
struct Speech {
    id: u32,
    clauses: Vec<Clause>,
    announced: Option<u16>,
    queue: Queue<Due>,
    /// Set when it is cancelled: clauses that still wait for a thread are not synthesised.
    hushed: Arc<AtomicBool>,
}

/// A clause to be said.
pub(crate) struct Due {
    /// From 0, within its speech.
    pub(crate) clause: u16,
    pub(crate) text: String,
    /// The part of it, 0 to 1, that was heard before: its sound goes on there.
    pub(crate) from: f32,
    /// Whether it ends the speech.
    pub(crate) last: bool,
}

/// The clauses of one speech, synthesised one at a time: they stay in order whatever the number of threads, and one
/// device never holds two threads while another one waits.
struct Queue<T> {
    /// One is being synthesised.
    busy: bool,
    waiting: VecDeque<T>,
}

impl<T> Queue<T> {
    fn new() -> Self {
        Self { busy: false, waiting: VecDeque::new() }
    }

    /// Queues one; returns the one to begin with, if nothing is being synthesised.
    fn push(&mut self, item: T) -> Option<T> {
        self.waiting.push_back(item);
        if self.busy { None } else { self.next() }
    }

    /// One was synthesised, or failed; returns the next to begin with.
    fn next(&mut self) -> Option<T> {
        let next = self.waiting.pop_front();
        self.busy = next.is_some();
        next
    }
}

impl Drop for Speech {
    fn drop(&mut self) {
        self.hushed.store(true, Ordering::Relaxed);
    }
}

struct Clause {
    number: u16,
    /// Length of its beginning, which is not played.
    skipped_us: u64,
    /// Length of what is.
    duration_us: u64,
}

impl Mouth {
    /// A mouth for this codec and rate, whose packets have so many bytes at most.
    ///
    /// # Errors
    /// Codec or rate are not supported.
    pub(crate) fn new(
        (codec, rate_hz): (Codec, u32),
        packet_bytes_max: usize,
        (voices, language): (Voices, String),
        speed: f32,
        cancels_echo: bool,
    ) -> Result<Self, speaker::Error> {
        let config = speaker::Config { codec, rate_hz, packet_bytes_max, ..speaker::Config::default() };
        let echo = cancels_echo.then(|| EchoWatch::new(rate_hz));
        Ok(Self { speaker: Speaker::new(config)?, voices, language, owner: Owner::unique(), speed, speech: None, echo })
    }

    /// Sets the factors of volume and pace: of what is sent, and of clauses synthesised, from now on.
    pub(crate) fn set(&mut self, gain: f32, speed: f32) {
        self.speaker.set_gain(gain);
        self.speed = speed;
    }

    /// Begins to synthesise a clause; `true`: it is the first of a new speech.
    pub(crate) fn speak(&mut self, speech: u32, turn: u32, due: Due, mailbox: &Mailbox) -> bool {
        let new = self.begin(speech, turn);
        let begin = self.speech.as_mut().and_then(|current| current.queue.push(due));
        self.make(begin, mailbox);
        new
    }

    /// Ends a speech after the clauses that it has; the end has a clause number as well.
    pub(crate) fn end(&mut self, speech: u32, clause: u16, mailbox: &Mailbox) {
        let Some(current) = self.speech.as_mut().filter(|current| current.id == speech) else {
            return;
        };
        let begin = current.queue.push(Due { clause, text: String::new(), from: 0.0, last: true });
        self.make(begin, mailbox);
    }

    /// Plays a piece of a recorded sound as a clause, with its samples and their rate; `from`: as in [`Due`]. Returns whether it
    /// is the first of a new speech and, on failure, the input for the core.
    pub(crate) fn play(
        &mut self,
        (speech, clause): (u32, u16),
        (pcm, rate_hz): (&[i16], u32),
        from: f32,
        last: bool,
    ) -> (bool, Option<Input>) {
        let new = self.begin(speech, 0);
        let skipped = speaker::resume_at(pcm, rate_hz, from);
        let rest = pcm.get(skipped..).unwrap_or_default();
        (new, self.queue(speech, (clause, last), (rest, skipped), rate_hz))
    }

    /// Queues the sound of a clause for sending, of which `skipped` samples are left out. Returns, on failure, the input for
    /// the core.
    fn queue(
        &mut self,
        speech: u32,
        (clause, last): (u16, bool),
        (pcm, skipped): (&[i16], usize),
        rate_hz: u32,
    ) -> Option<Input> {
        if let Err(error) = self.speaker.push_clause(clause, pcm, rate_hz, last) {
            match error {
                // It was stopped while the clause was made.
                speaker::Error::NoSpeech { .. } => tracing::debug!(%error, "the sound of a clause came too late"),
                _ => tracing::warn!(%error, "the sound of a clause could not be queued"),
            }
            return Some(self.fail(speech, clause, last));
        }
        if let Some(current) = &mut self.speech {
            let us = |samples: usize| samples_to_us(samples as u64, rate_hz);
            current.clauses.push(Clause { number: clause, skipped_us: us(skipped), duration_us: us(pcm.len()) });
        }
        None
    }

    /// A clause has no sound. If it is the last one, the speech ends without it.
    fn fail(&mut self, speech: u32, clause: u16, last: bool) -> Input {
        if last && let Err(error) = self.speaker.push_clause(clause, &[], Voice::RATE_HZ, true) {
            tracing::debug!(%error, "a speech has no end");
        }
        Input::SpeechFailed { speech, clause }
    }

    fn begin(&mut self, speech: u32, turn: u32) -> bool {
        let new = self.speech.as_ref().is_none_or(|current| current.id != speech);
        if new {
            self.speaker.start(speech, turn);
            self.echo.iter_mut().for_each(EchoWatch::begin);
            self.speech = Some(Speech {
                id: speech,
                clauses: Vec::new(),
                announced: None,
                queue: Queue::new(),
                hushed: Arc::default(),
            });
        }
        new
    }

    /// Submits a clause to the synthesis threads.
    fn make(&self, due: Option<Due>, mailbox: &Mailbox) {
        let (Some(Due { clause, text, from, last }), Some(current)) = (due, &self.speech) else {
            return;
        };
        let (speech, reply) = (current.id, mailbox.clone());
        let (language, hushed) = (self.language.clone(), current.hushed.clone());
        let wanted = Wanted { text, language, speed: self.speed, hushed };
        let asked_us = clock::mono_us();
        let said = move |Synthesis { mut pcm, began_us }| {
            let skipped = pcm.as_ref().map_or(0, |pcm| speaker::resume_at(pcm, Voice::RATE_HZ, from));
            if let Some(pcm) = &mut pcm {
                pcm.drain(..skipped);
            }
            let queue_us = began_us.saturating_sub(asked_us);
            let compute_us = clock::mono_us().saturating_sub(began_us);
            let synthesised = Synthesised { speech, clause, last, pcm, skipped, queue_us, compute_us };
            if reply.try_send(DeviceMessage::Synthesised(synthesised)).is_err() {
                tracing::debug!(speech, clause, "nobody waits for this clause any more");
            }
        };
        // While an earlier clause plays there is time; before the first one the wearer hears silence.
        let urgency = if clause == 0 { Urgency::Now } else { Urgency::Soon };
        if self.voices.say((self.owner, urgency), wanted, said).is_err() {
            let failed = Synthesised { speech, clause, last, pcm: None, skipped: 0, queue_us: 0, compute_us: 0 };
            drop(mailbox.try_send(DeviceMessage::Synthesised(failed)));
        }
    }

    /// Takes a synthesised clause and starts the next one. A failed one is reported, a stale one is dropped.
    pub(crate) fn take(&mut self, clause: Synthesised, mailbox: &Mailbox) -> Option<Input> {
        let current = self.speech.as_mut().filter(|current| current.id == clause.speech)?;
        let next = current.queue.next();
        self.make(next, mailbox);
        let Synthesised { speech, clause, last, pcm, skipped, .. } = clause;
        match pcm {
            Some(pcm) => self.queue(speech, (clause, last), (&pcm, skipped), Voice::RATE_HZ),
            None => Some(self.fail(speech, clause, last)),
        }
    }

    /// How packets are coded from now on.
    pub(crate) fn set_coding(&mut self, coding: SoundCoding) {
        let SoundCoding { bitrate, packet_ms, loss_percent } = coding;
        if let Err(error) = self.speaker.set_coding(bitrate, packet_ms, loss_percent) {
            tracing::warn!(%error, "speech is coded as before");
        }
    }

    /// The next packet that is due.
    pub(crate) fn poll_packet(&mut self, now_us: u64) -> Option<Packet> {
        let packet = self.speaker.poll_packet(now_us)?;
        self.echo.iter_mut().for_each(|echo| echo.push(&packet.pcm));
        Some(packet)
    }

    /// Tells when the ear begins or ceases to hear this mouth; `None`: nothing has changed.
    pub(crate) fn hear_echo(&mut self, ear: &Ear) -> Option<VoiceFact> {
        self.echo.as_mut()?.compare(ear)
    }

    /// Whether this packet is the first of its clause; then returns the input for the core.
    pub(crate) fn first_of_clause(&mut self, packet: &Packet) -> Option<Input> {
        let current = self.speech.as_mut().filter(|current| current.id == packet.speech)?;
        if current.announced.is_some_and(|number| number >= packet.clause) {
            return None;
        }
        current.announced = Some(packet.clause);
        let clause = current.clauses.iter().find(|clause| clause.number == packet.clause)?;
        Some(Input::Spoken { speech: packet.speech, clause: packet.clause, duration_us: clause.duration_us })
    }

    /// When `poll_packet` is due.
    pub(crate) fn next_wake_us(&self) -> Option<u64> {
        self.speaker.next_wake_us()
    }

    /// Stops at once. The device fades out what it still plays, so that nothing more is sent.
    pub(crate) fn hush(&mut self, speech: u32, now_us: u64) {
        if let Some(current) = self.speech.as_mut().filter(|current| current.id == speech) {
            current.hushed.store(true, Ordering::Relaxed);
            current.queue.waiting.clear();
            self.speaker.hush(now_us);
            self.echo.iter_mut().for_each(EchoWatch::end);
            while self.speaker.poll_packet(now_us).is_some() {}
        }
    }

    /// Handles a playback report; `stopped`: the device has ended the playback before its end. Returns the input for
    /// the core, unless the report says nothing new.
    pub(crate) fn played(&mut self, speech: u32, report: Report, stopped: bool) -> Option<Input> {
        if self.speech.as_ref().is_some_and(|current| current.id == speech) {
            self.echo.iter_mut().for_each(|echo| echo.follow(report, stopped));
        }
        let played = self.speaker.played(speech, report, clock::mono_us());
        let current = self.speech.as_ref().filter(|current| current.id == speech)?;
        let playback = match &played {
            Some(played) if played.finished => Playback::Finished,
            _ if stopped => Playback::Stopped,
            Some(_) => Playback::Playing,
            None => return None,
        };
        let at = self.speaker.position(speech)?;
        let playing = current.clauses.iter().find(|clause| at.clause == Some(clause.number));
        let clause_part = playing.map_or(0.0, |clause| {
            // What is sent is a little longer than the clause: it ends with whole frames. Microseconds of one clause
            // are exact enough in f32.
            let length_us = clause.skipped_us + clause.duration_us.max(at.clause_sent_us).max(1);
            (clause.skipped_us + at.clause_played_us) as f32 / length_us as f32
        });
        Some(Input::Played { speech, clauses_done: at.clauses_done, clause_part, playback })
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::{
        runtime::compute::Compute,
        speech::elsewhere::{Unanswered, voice::Speak},
    };

    /// 100 ms and 7 samples for each character: no whole frames. It has no sound for "?".
    struct Tone;

    impl Speak for Tone {
        fn speak(&self, clause: &Wanted) -> Result<Vec<i16>, Unanswered> {
            if clause.text.contains('?') {
                return Err(Unanswered::Failed("no sound for this".to_owned()));
            }
            Ok(vec![1_000; clause.text.len() * 2_407])
        }
    }

    /// A mouth to which these clauses were given, the last of them as the end of speech 1, and what it told the core.
    fn mouth(texts: &[&str]) -> (Mouth, Vec<Input>) {
        mouth_from(texts, 0.0)
    }

    /// The same, where each clause goes on after this part of it.
    fn mouth_from(texts: &[&str], from: f32) -> (Mouth, Vec<Input>) {
        let compute = Compute::start("test", 1, 8).unwrap();
        let voices = Voices { own: Arc::new(Tone), compute, other: None, phrases: Arc::default() };
        let mut mouth = Mouth::new((Codec::Pcm16, 16_000), 4_096, (voices, String::from("en")), 1.0, false).unwrap();
        let (mailbox, mut messages) = mpsc::channel(8);
        let mut inputs = Vec::new();
        for (text, clause) in texts.iter().zip(0..) {
            let last = usize::from(clause) + 1 == texts.len();
            mouth.speak(1, 7, Due { clause, text: (*text).to_owned(), from, last }, &mailbox);
            let Some(DeviceMessage::Synthesised(said)) = messages.blocking_recv() else { panic!("not synthesised") };
            inputs.extend(mouth.take(said, &mailbox));
        }
        (mouth, inputs)
    }

    fn at(played_us: u64) -> Report {
        Report { played_us, at_us: played_us, playing: true, finished: false }
    }

    /// Plays for so long, in real time; returns the packets and what the core is told every 20 ms.
    fn play(mouth: &mut Mouth, for_us: u64) -> (Vec<Packet>, Vec<(u64, Input)>) {
        let (mut packets, mut told) = (Vec::<Packet>::new(), Vec::new());
        for now_us in (0..for_us).step_by(20_000) {
            while let Some(packet) = mouth.poll_packet(now_us) {
                packets.push(packet);
            }
            told.extend(mouth.played(1, at(now_us), false).map(|input| (now_us, input)));
        }
        (packets, told)
    }

    #[test]
    fn a_last_clause_without_sound_still_ends_the_speech() {
        let (mut mouth, inputs) = mouth(&["One.", "Two?"]);
        assert_eq!(inputs, [Input::SpeechFailed { speech: 1, clause: 1 }]);
        let (packets, told) = play(&mut mouth, 5_000_000);
        assert!(packets.last().is_some_and(|packet| packet.last_of_speech));
        assert!(matches!(told.last(), Some((_, Input::Played { playback: Playback::Finished, .. }))), "{told:?}");
    }

    #[test]
    fn the_core_is_told_the_clause_and_the_place_in_it() {
        let texts = ["Ah?", "Ah.", "Oh well.", "So?", "Ah."].repeat(5);
        let (mut mouth, _) = mouth(&texts);
        let (packets, told) = play(&mut mouth, 60_000_000);
        assert!(told.len() > 100);
        for (played_us, input) in told {
            let Input::Played { clauses_done, clause_part, playback, .. } = input else { panic!("{input:?}") };
            if playback == Playback::Finished {
                continue;
            }
            let current = packets.iter().find(|packet| packet.playout_us + packet.duration_us > played_us).unwrap();
            assert_eq!(clauses_done, current.clause, "at {played_us} us");
            let of_clause: Vec<_> = packets.iter().filter(|packet| packet.clause == current.clause).collect();
            let length_us: u64 = of_clause.iter().map(|packet| packet.duration_us).sum();
            let part = (played_us - of_clause[0].playout_us) as f32 / length_us as f32;
            // Within a packet: its last one is padded, and while it is sent its length is not known exactly.
            assert!(
                (part - clause_part).abs() * length_us as f32 <= 20_000.0,
                "at {played_us} us: {clause_part}, {part}"
            );
        }
    }

    #[test]
    fn a_clause_of_which_a_part_was_heard_goes_on_there() {
        let (mut mouth, inputs) = mouth_from(&["Oh well."], 0.75);
        assert_eq!(inputs, []);
        let (packets, told) = play(&mut mouth, 2_000_000);
        // A quarter of 802 ms, and at most the half second in which a quiet place is looked for.
        let sent_us: u64 = packets.iter().map(|packet| packet.duration_us).sum();
        assert!((200_000..720_000).contains(&sent_us), "{sent_us}");
        let part = |input: &Input| match input {
            Input::Played { clause_part, playback: Playback::Playing, .. } => Some(*clause_part),
            _ => None,
        };
        let parts: Vec<f32> = told.iter().filter_map(|(_, input)| part(input)).collect();
        let expected = 1.0 - sent_us as f32 / 802_333.0;
        assert!((parts[0] - expected).abs() < 0.06, "{parts:?}, {expected}");
        assert!(parts.is_sorted() && parts.len() > 5, "{parts:?}");
        assert!(matches!(told.last(), Some((_, Input::Played { playback: Playback::Finished, .. }))), "{told:?}");
        let first = mouth.first_of_clause(&packets[0]);
        let rest = matches!(first, Some(Input::Spoken { duration_us, .. }) if duration_us.abs_diff(sent_us) <= 20_000);
        assert!(rest, "{first:?}, {sent_us}");
    }

    #[test]
    fn a_recorded_sound_goes_on_where_it_was_stopped() {
        let (mut mouth, _) = mouth(&[]);
        // Two seconds, of which one and a half were heard.
        let sound = vec![1_000_i16; 32_000];
        assert_eq!(mouth.play((1, 0), (&sound, 16_000), 0.75, true), (true, None));
        let (packets, told) = play(&mut mouth, 3_000_000);
        let sent_us: u64 = packets.iter().map(|packet| packet.duration_us).sum();
        assert!((500_000..=1_020_000).contains(&sent_us), "{sent_us}");
        let Some((_, Input::Played { clause_part, .. })) = told.first() else { panic!("{told:?}") };
        let expected = 1.0 - sent_us as f32 / 2_000_000.0;
        assert!((clause_part - expected).abs() < 0.05, "{clause_part}, {expected}");
        assert!(matches!(told.last(), Some((_, Input::Played { playback: Playback::Finished, .. }))), "{told:?}");
    }

    #[test]
    fn a_device_that_has_finished_has_played_all_that_was_sent() {
        let (mut mouth, _) = mouth(&["Oh well."]);
        for now_us in (0..1_000_000).step_by(20_000) {
            while mouth.poll_packet(now_us).is_some() {}
        }
        // What was lost on the way is not in its count.
        let told = mouth.played(1, Report { playing: false, finished: true, ..at(300_000) }, false);
        assert!(matches!(told, Some(Input::Played { playback: Playback::Finished, .. })), "{told:?}");
    }

    #[test]
    fn a_device_that_stops_where_it_was_is_heard() {
        let (mut mouth, _) = mouth(&["Oh well."]);
        let (_, told) = play(&mut mouth, 400_000);
        let (played_us, _) = told.last().unwrap();
        assert_eq!(mouth.played(1, at(*played_us), false), None, "it is not new");
        let stopped = mouth.played(1, at(*played_us), true);
        assert!(
            matches!(stopped, Some(Input::Played { playback: Playback::Stopped, clauses_done: 0, .. })),
            "{stopped:?}"
        );
        assert_eq!(mouth.played(2, at(0), true), None, "another speech");
    }

    #[test]
    fn clauses_are_made_one_at_a_time_and_in_order() {
        let mut queue = Queue::new();
        assert_eq!(queue.push(0), Some(0));
        assert_eq!(queue.push(1), None);
        assert_eq!(queue.push(2), None);
        assert_eq!(queue.next(), Some(1));
        assert_eq!(queue.next(), Some(2));
        assert_eq!(queue.next(), None);
        assert_eq!(queue.push(3), Some(3));
        // After a hush the queue is empty, and nothing follows the clause in synthesis.
        assert_eq!(queue.push(4), None);
        queue.waiting.clear();
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn a_speech_that_gives_way_is_not_made_any_more() {
        let hushed = Arc::new(AtomicBool::new(false));
        let current =
            Speech { id: 1, clauses: Vec::new(), announced: None, queue: Queue::new(), hushed: hushed.clone() };
        drop(current);
        assert!(hushed.load(Ordering::Relaxed));
    }
}
