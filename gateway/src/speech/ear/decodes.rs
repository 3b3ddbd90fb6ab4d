//! The recognition jobs of one device, and the audio that is kept for a second pass.
//!
//! A final that may be meant for the assistant waits however many others do, as long as the core waits for it: which of
//! many utterances at once are meant for the assistant is known only when they are decoded. One that was begun at a pause
//! waits like that from the moment on at which the pause turns out to be the end.
//!
//! The sound of an utterance is kept as long as the core may wait for its text, also when another one has been closed since: a
//! decode that failed is made once more.

use std::{collections::VecDeque, sync::Arc};

use audio::{
    asr::{DecodeJob, Language, Options, Priority, Report, SAMPLES_MAX, Scheduler, Spoken, Ticket},
    fair::Owner,
    frame::{RATE_HZ, us_to_samples},
    samples::Samples,
};
use gateway_core::{
    input::Input,
    limits::UTTERANCES_PENDING_MAX,
    vocab::{Addressing, TranscriptKind},
};

use crate::mailbox::{DeviceMessage, Mailbox, Transcribed, Translated};

/// How long the audio of a closed utterance is kept: slightly longer than the core waits for its text.
const KEPT_US: u64 = 32_000_000;
/// Samples of the end of an utterance that are decoded at least, whatever the core takes its times to be: a second.
const END_SAMPLES_MIN: usize = RATE_HZ as usize;
/// Decodes in the queue that are remembered, to be cancelled: more than the core waits for.
const SENT_MAX: usize = 32;

/// The decodes of one device.
pub(super) struct Decodes {
    scheduler: Arc<Scheduler>,
    owner: Owner,
    spoken: Spoken,
    wake_phrases: Arc<[String]>,
    mailbox: Mailbox,
    vocabulary: Arc<[String]>,
    /// Those that have not ended, oldest first.
    sent: Vec<Sent>,
    /// The utterances that were closed last, oldest first: one more than the core waits for.
    kept: VecDeque<ClosedUtterance>,
}

/// What is decoded of an utterance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Its words, by the number of the request.
    Words { revision: u16 },
    /// The same in English.
    Translation,
}

/// A decode that the queue has taken.
struct Sent {
    utterance: u32,
    purpose: Purpose,
    /// What it becomes if its utterance is over.
    at_end: Option<Priority>,
    ticket: Ticket,
}

/// The audio of a closed utterance: it may have to be decoded once more.
struct ClosedUtterance {
    utterance: u32,
    pcm: Arc<Samples>,
    until_us: u64,
}

/// A copy that leaves nothing behind.
fn own(pcm: &[i16]) -> Arc<Samples> {
    Arc::new(pcm.into())
}

fn priority(kind: TranscriptKind, meant: Addressing) -> Priority {
    match (kind, meant) {
        (TranscriptKind::Partial, _) => Priority::Partial,
        (TranscriptKind::SecondPass | TranscriptKind::ThirdPass, _) => Priority::SecondPass,
        (TranscriptKind::Speculative | TranscriptKind::Final, Addressing::Overheard) => Priority::Overheard,
        (TranscriptKind::Speculative | TranscriptKind::Final, Addressing::Unsure) => Priority::Unsure,
        (TranscriptKind::Speculative, Addressing::Addressed) => Priority::Speculative,
        (TranscriptKind::Final, Addressing::Addressed) => Priority::Final,
    }
}

impl Decodes {
    /// Texts are sent to `mailbox`.
    pub(super) fn new(
        scheduler: Arc<Scheduler>,
        (spoken, wake_phrases): (Spoken, Arc<[String]>),
        mailbox: Mailbox,
    ) -> Self {
        let (owner, vocabulary, sent) = (Owner::unique(), Arc::new([]), Vec::new());
        Self { scheduler, owner, spoken, wake_phrases, mailbox, vocabulary, sent, kept: VecDeque::new() }
    }

    /// Whose jobs these are.
    pub(super) fn owner(&self) -> Owner {
        self.owner
    }

    /// Sets the vocabulary towards which a second pass is biased.
    pub(super) fn set_vocabulary(&mut self, vocabulary: Arc<[String]>) {
        self.vocabulary = vocabulary;
    }

    /// Keeps the audio of an utterance that is being closed. What was begun at its last pause is its final decode.
    pub(super) fn keep(&mut self, utterance: u32, pcm: &[i16], now_us: u64) {
        for sent in self.sent.iter().filter(|sent| sent.utterance == utterance) {
            if let Some(priority) = sent.at_end {
                self.scheduler.promote(&sent.ticket, priority);
            }
        }
        // The core gives one up that is not being decoded, and says so behind this.
        if self.kept.len() > UTTERANCES_PENDING_MAX {
            let is_over = |kept: &ClosedUtterance| !self.sent.iter().any(|sent| sent.utterance == kept.utterance);
            let over = self.kept.iter().position(is_over).unwrap_or(0);
            self.kept.remove(over);
        }
        let until_us = now_us.saturating_add(KEPT_US);
        self.kept.push_back(ClosedUtterance { utterance, pcm: own(pcm), until_us });
    }

    /// The microphone was switched on or off: nothing more is made of the sound so far. The core cancels the decodes that
    /// it waits for by itself.
    pub(super) fn forget(&mut self) {
        self.kept.clear();
        self.cancel_where(|sent| sent.purpose == Purpose::Translation);
    }

    /// Advances the time.
    pub(super) fn tick(&mut self, now_us: u64) {
        self.kept.retain(|kept| kept.until_us > now_us);
    }

    /// When `tick` is due.
    pub(super) fn next_wake_us(&self) -> Option<u64> {
        self.kept.iter().map(|kept| kept.until_us).min()
    }

    /// Sends an utterance to recognition: the audio of the open one so far, or the kept audio of one that was closed; `false`:
    /// neither can be sent. The samples before `first` are left out.
    pub(super) fn ask(
        &mut self,
        (utterance, revision): (u32, u16),
        (kind, meant): (TranscriptKind, Addressing),
        open: Option<&[i16]>,
        first: usize,
    ) -> bool {
        let Some(pcm) = self.sound(utterance, open, first) else {
            return false;
        };
        let mailbox = self.mailbox.clone();
        let is_last = matches!(kind, TranscriptKind::Speculative | TranscriptKind::Final);
        let job = DecodeJob {
            pcm,
            options: self.options(kind),
            begun: is_last.then(|| self.tell_begun(utterance, revision)),
            priority: priority(kind, meant),
            // Decoded later rather than not at all.
            patient: kind == TranscriptKind::Final && meant != Addressing::Overheard,
            owner: self.owner,
            utterance: Some(utterance),
            reply: Box::new(move |report: Report| {
                let transcribed = Transcribed { utterance, revision, kind, report };
                if mailbox.try_send(DeviceMessage::Transcribed(Box::new(transcribed))).is_err() {
                    tracing::debug!(utterance, "nobody waits for this transcript any more");
                }
            }),
        };
        let is_begun = kind == TranscriptKind::Speculative && meant != Addressing::Overheard;
        let at_end = is_begun.then(|| priority(TranscriptKind::Final, meant));
        self.submit(utterance, (Purpose::Words { revision }, at_end), job)
    }

    /// What tells the core that a decode has begun.
    fn tell_begun(&self, utterance: u32, revision: u16) -> Box<dyn FnOnce() + Send> {
        let mailbox = self.mailbox.clone();
        Box::new(move || {
            // Of a full mailbox no more follows than that the text is waited for less long.
            drop(mailbox.try_send(DeviceMessage::from(Input::TranscriptBegun { utterance, revision })));
        })
    }

    /// The sound of an utterance from this sample on; of more than can be decoded at once the end.
    fn sound(&self, utterance: u32, open: Option<&[i16]>, first: usize) -> Option<Arc<Samples>> {
        let last = |pcm: &[i16]| first.max(pcm.len().saturating_sub(SAMPLES_MAX));
        if let Some(pcm) = open {
            return pcm.get(last(pcm)..).map(own);
        }
        let ClosedUtterance { pcm, .. } = self.kept.iter().find(|kept| kept.utterance == utterance)?;
        match last(pcm) {
            0 => Some(pcm.clone()),
            first => pcm.get(first..).map(own),
        }
    }

    /// Sends an utterance to translation into English: from one of these languages, or, if there are none, from any; by the model
    /// that knows it. What does not find a place in the queue is not translated: `false`.
    pub(super) fn translate(&mut self, utterance: u32, open: Option<&[i16]>, from: &[Language]) -> bool {
        let Some(pcm) = self.sound(utterance, open, 0) else {
            return false;
        };
        let mailbox = self.mailbox.clone();
        let spoken = if let [only] = from { Spoken::Is(*only) } else { Spoken::Detected };
        let job = DecodeJob {
            pcm,
            begun: None,
            options: Options { spoken: Some(spoken), among: from.into(), translate: true, ..Options::default() },
            priority: Priority::SecondPass,
            patient: false,
            owner: self.owner,
            utterance: Some(utterance),
            reply: Box::new(move |report| {
                if mailbox.try_send(DeviceMessage::Translated(Box::new(Translated { utterance, report }))).is_err() {
                    tracing::debug!(utterance, "nobody waits for this translation any more");
                }
            }),
        };
        self.submit(utterance, (Purpose::Translation, None), job)
    }

    fn submit(&mut self, utterance: u32, (purpose, at_end): (Purpose, Option<Priority>), job: DecodeJob) -> bool {
        let taken = self.scheduler.submit(job);
        match taken {
            Ok(ticket) => {
                if self.sent.len() >= SENT_MAX {
                    self.sent.remove(0);
                }
                self.sent.push(Sent { utterance, purpose, at_end, ticket });
                true
            }
            Err(busy) => {
                tracing::debug!(utterance, ?purpose, %busy, "recognition did not take the job");
                false
            }
        }
    }

    /// A decode of this device has ended.
    pub(super) fn ended(&mut self, utterance: u32, revision: u16) {
        self.forget_sent(utterance, Purpose::Words { revision });
    }

    /// A translation has ended.
    pub(super) fn translated(&mut self, utterance: u32) {
        self.forget_sent(utterance, Purpose::Translation);
    }

    fn forget_sent(&mut self, utterance: u32, purpose: Purpose) {
        self.sent.retain(|sent| (sent.utterance, sent.purpose) != (utterance, purpose));
    }

    fn options(&self, kind: TranscriptKind) -> Options {
        let mut options =
            Options { spoken: Some(self.spoken), wake_phrases: self.wake_phrases.clone(), ..Options::default() };
        match kind {
            TranscriptKind::SecondPass | TranscriptKind::ThirdPass => {
                options.on_box = true;
                options.vocabulary = self.vocabulary.clone();
                options.second_model = kind == TranscriptKind::SecondPass;
            }
            TranscriptKind::Partial => options.on_box = true,
            TranscriptKind::Speculative | TranscriptKind::Final => {}
        }
        options
    }

    /// Cancels decodes of the utterance's words older than `revision`, except these. It may be translated all the same.
    pub(super) fn cancel(&mut self, utterance: u32, revision: u16, except: &[u16]) {
        self.cancel_where(|sent| {
            let Purpose::Words { revision: asked } = sent.purpose else {
                return false;
            };
            sent.utterance == utterance && asked < revision && !except.contains(&asked)
        });
    }

    fn cancel_where(&mut self, is_stale: impl Fn(&Sent) -> bool) {
        for sent in self.sent.extract_if(.., |sent| is_stale(sent)) {
            self.scheduler.cancel(&sent.ticket);
        }
    }
}

/// Samples before the end of sound of this length that begins so many microseconds before the sound's end.
pub(super) fn before_end(samples: usize, end_us: u64) -> usize {
    let end = usize::try_from(us_to_samples(end_us, RATE_HZ)).unwrap_or(usize::MAX);
    samples.saturating_sub(end.max(END_SAMPLES_MIN))
}

impl Drop for Decodes {
    fn drop(&mut self) {
        self.cancel_where(|_| true);
    }
}

#[cfg(test)]
#[path = "decodes_tests.rs"]
mod tests;
