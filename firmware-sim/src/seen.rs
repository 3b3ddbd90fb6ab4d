//! Events of the glasses, each with its time, and the log that tests and the command line read.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::watch;

/// Most events kept: hours of talk. The oldest are dropped first.
const EVENTS_MAX: usize = 65_536;

/// What the glasses received, did or noticed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the variants say what their fields are")]
pub enum Seen {
    /// The session is open.
    Welcome {
        session: u32,
        /// Name of the gateway.
        gateway: String,
        /// Name of the user whose glasses these are.
        user: String,
        /// True if a lost session is resumed.
        resumed: bool,
        /// True if a gateway that was restarted goes on with what is left of a session.
        continued: bool,
        transport: &'static str,
        /// Codec and rate of the microphone, in hertz.
        up: (String, u32),
        /// Codec and rate of speech, in hertz.
        down: (String, u32),
    },
    /// Pairing is open.
    PairingCode {
        /// The six digits; `None` if the operator confirms the fingerprint.
        code: Option<String>,
        /// Fingerprint of the key of the glasses.
        fingerprint: String,
        /// Seconds until pairing closes.
        expires_s: u16,
        /// Tries left at the gateway.
        tries_left: u8,
    },
    /// The wearer finished a sentence.
    Said {
        /// What was said, as far as known.
        label: String,
        /// Capture time of the first sample.
        begins_us: u64,
        /// Capture time of the first voiced sample.
        onset_us: u64,
        /// Capture time of the last voiced sample: t0 of every latency.
        t0_us: u64,
    },
    /// The state of the conversation changed.
    Listening {
        /// Turn of the frame.
        turn: u32,
        /// Name of the state.
        state: String,
    },
    /// Recognised text.
    Transcript {
        /// Turn of the frame.
        turn: u32,
        utterance: u32,
        /// Revision of the text.
        revision: u32,
        /// True: the last revision.
        is_final: bool,
        /// True if the gateway considers it addressed to it.
        addressed: bool,
        text: String,
    },
    /// A display frame took effect.
    Display {
        /// Turn of the frame.
        turn: u32,
        /// Name of the view.
        view: String,
        /// Texts that the view shows now; empty: nothing.
        text: String,
        /// The view as drawn, line by line.
        lines: Vec<String>,
    },
    /// A display frame was older than the visible content.
    DisplayStale { revision: u32 },
    /// A speech begins.
    SpeechStart {
        /// Turn of the frame.
        turn: u32,
        speech: u32,
        /// The caption that is shown meanwhile.
        text: String,
    },
    /// The text of a clause.
    Clause {
        /// Turn of the frame.
        turn: u32,
        speech: u32,
        clause: u16,
        text: String,
    },
    /// The first sample of a speech was played.
    FirstSound {
        /// Turn of the speech.
        turn: u32,
        speech: u32,
    },
    /// A speech is over.
    SpeechHeard {
        /// Turn of the speech.
        turn: u32,
        speech: u32,
        /// The texts of its clauses, up to the last one that had begun when it was over.
        text: String,
        /// Microseconds played.
        played_us: u64,
        /// False if it was stopped.
        complete: bool,
    },
    /// The gateway stopped a speech.
    Hush {
        /// Number of the speech; 0: all.
        speech: u32,
        /// Milliseconds of the fade.
        fade_ms: u16,
    },
    /// Progress of a tool.
    ToolActivity {
        /// Turn of the frame.
        turn: u32,
        call: u32,
        /// Text for the wearer.
        label: String,
        /// Name of its state.
        state: String,
    },
    /// A tool of the glasses was called, and answered.
    ToolCalled {
        /// Turn of the frame.
        turn: u32,
        call: u32,
        /// Name of the tool.
        name: String,
        /// Arguments, JSON.
        arguments: String,
        /// Whether it succeeded.
        ok: bool,
        /// The answer in words.
        content: String,
    },
    /// A question to the wearer.
    ApprovalRequest {
        approval: u32,
        /// Title, one line.
        title: String,
        /// The action to approve.
        message: String,
    },
    /// The question is settled.
    ApprovalSettled { approval: u32, choice: String },
    /// The gateway asks for another coding of the microphone, which is used from now on.
    Coding { bitrate: u32, frame_ms: u16, loss_percent: u8 },
    /// The gateway misses packets of the microphone: so many are sent again.
    SentAgain { packets: usize },
    /// The glasses heard their wake phrase.
    Wake { phrase: String, score_permille: u16 },
    /// The gateway did not accept something as sent.
    Warning {
        /// Name of the code.
        code: String,
        /// The tool concerned; empty: none.
        name: String,
        /// The reason in words.
        message: String,
    },
    /// A short sound.
    Chime { sound: String },
    /// The handshake was refused.
    Rejected {
        /// Name of the code.
        code: String,
        /// The reason in words.
        message: String,
    },
    /// The gateway ended the session.
    Goodbye {
        /// Name of the reason.
        reason: String,
        /// The reason in words.
        message: String,
        /// The gateway comes back, and the glasses go on with the session then.
        resumes: bool,
    },
    /// The link broke.
    LinkLost {
        /// The reason in words.
        reason: String,
    },
    /// A soft sound of the glasses' own: `lost`, the link has been lost for a second; `back`, the session goes on; `error`,
    /// it could not, or what was said is too old to be kept.
    LinkSound { sound: &'static str },
    /// The link goes on from another address, without a new connection.
    Moved {
        /// What the glasses send from now.
        address: String,
    },
    /// Firmware was offered, and answered.
    FirmwareOffered {
        /// Version of the image.
        version: String,
        /// Name of the answer.
        answer: String,
        /// Bytes of it that were stored before.
        offset: u32,
    },
    /// A piece of it came.
    FirmwareChunk {
        /// Place of its first byte in the image.
        offset: u32,
        bytes: usize,
    },
    /// So much of it is stored, and told.
    FirmwareStored { offset: u32 },
    /// The offer was withdrawn.
    FirmwareWithdrawn,
    /// The outcome of the last update was reported.
    FirmwareReported {
        /// Name of the outcome.
        outcome: String,
        /// Name of the reason.
        failure: String,
        /// The version that runs.
        version: String,
    },
    /// The power is gone, in the middle of an update.
    PowerLost {
        /// Bytes of the image that are stored.
        stored: u32,
    },
    /// The gateway broke the protocol.
    Violation { what: String },
}

/// An event with its time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Microseconds on the glasses' clock.
    pub at_us: u64,
    /// What the glasses saw or did.
    #[serde(flatten)]
    pub seen: Seen,
}

#[derive(Default)]
struct Events {
    events: VecDeque<Event>,
    /// Number of the first event that is still kept.
    first: u64,
}

/// All events, for any number of readers.
#[derive(Clone)]
pub struct Log {
    kept: Arc<Mutex<Events>>,
    count: watch::Sender<u64>,
}

impl Default for Log {
    fn default() -> Self {
        Self { kept: Arc::default(), count: watch::Sender::new(0) }
    }
}

impl Log {
    /// Adds an event.
    pub fn push(&self, at_us: u64, seen: Seen) {
        let count = {
            let mut kept = self.lock();
            if kept.events.len() == EVENTS_MAX {
                kept.events.pop_front();
                kept.first += 1;
            }
            kept.events.push_back(Event { at_us, seen });
            kept.first + kept.events.len() as u64
        };
        self.count.send_replace(count);
    }

    /// Number of the next event.
    pub fn mark(&self) -> u64 {
        *self.count.borrow()
    }

    /// The events from number `mark` on.
    pub fn since(&self, mark: u64) -> Vec<Event> {
        self.kept_since(mark).1
    }

    /// The events from number `mark` on that are kept, and the number of the first one: a later one where `mark` was dropped.
    pub fn kept_since(&self, mark: u64) -> (u64, Vec<Event>) {
        let kept = self.lock();
        let first = mark.max(kept.first);
        let skip = usize::try_from(first - kept.first).unwrap_or(usize::MAX);
        (first, kept.events.iter().skip(skip).cloned().collect())
    }

    /// The first event from number `from` on that `wanted` selects, and the number after it. Waits indefinitely.
    pub async fn find(&self, from: u64, mut wanted: impl FnMut(&Event) -> bool) -> (Event, u64) {
        let mut count = self.count.subscribe();
        let mut next = from;
        loop {
            count.mark_unchanged();
            let (first, events) = self.kept_since(next);
            next = first;
            for event in events {
                next += 1;
                if wanted(&event) {
                    return (event, next);
                }
            }
            // The sender lives in `self`, so this never fails.
            if count.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Events> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(reason: &str) -> Seen {
        Seen::LinkLost { reason: reason.to_owned() }
    }

    #[tokio::test]
    async fn events_are_found_in_order_before_and_after_they_come() {
        let log = Log::default();
        log.push(1, lost("a"));
        log.push(2, lost("b"));
        let (event, next) = log.find(0, |event| event.at_us >= 1).await;
        assert_eq!((event.at_us, next), (1, 1));
        let waiting = tokio::spawn({
            let log = log.clone();
            async move { log.find(next, |event| event.at_us == 3).await }
        });
        tokio::task::yield_now().await;
        log.push(3, lost("c"));
        assert_eq!(waiting.await.unwrap().1, 3);
        assert_eq!(log.since(1).len(), 2);
    }

    #[tokio::test]
    async fn a_reader_that_has_missed_events_gets_each_later_one_once() {
        const DROPPED: u64 = 10;
        let log = Log::default();
        for at_us in 0..EVENTS_MAX as u64 + DROPPED {
            log.push(at_us, Seen::FirmwareWithdrawn);
        }
        let mut next = 3;
        for number in DROPPED..DROPPED + 3 {
            let (event, behind) = log.find(next, |_| true).await;
            assert_eq!((event.at_us, behind), (number, number + 1));
            next = behind;
        }
    }

    #[test]
    fn an_event_is_one_flat_json_object() {
        let event = Event { at_us: 5, seen: lost("x") };
        assert_eq!(serde_json::to_string(&event).unwrap(), r#"{"at_us":5,"event":"link_lost","reason":"x"}"#);
    }
}
