//! What reaches a device's task from beside it.

use std::{sync::Arc, time::Duration};

use audio::{
    asr::Report,
    frame::{RATE_HZ, us_to_samples},
};
use device_protocol::GoodbyeReason;
use gateway_core::{
    input::Input,
    vocab::{ToolCall, ToolResult, Turn},
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Messages that may wait for one device, far more than there are results at once: the task empties the box before it takes
/// in another packet. A model's answer may be longer, and has a channel of its own.
pub(crate) const WAITING_MAX: usize = 512;

/// A device's mailbox.
pub(crate) type Mailbox = mpsc::Sender<DeviceMessage>;

/// What a device's task takes in beside the frames of the device. What is large is boxed: a mailbox has room for 32
/// messages from its beginning on.
pub enum DeviceMessage {
    /// A result of an effect, or something from the user's machine.
    Input(Box<Input>),
    /// A decode ended.
    Transcribed(Box<Transcribed>),
    /// A translation into English ended.
    Translated(Box<Translated>),
    /// A request to a model has gone out.
    RequestSent(RequestSent),
    /// A clause was synthesised.
    Synthesised(Synthesised),
    /// A pause was judged.
    Scored(Scored),
    /// A head has heard a wake phrase, beside the task.
    WakeHeard(WakeHeard),
    /// A tool of the glasses is to run.
    CallDevice(Box<CallDevice>),
    /// Some call of the glasses' tools was cancelled, or is not waited for any more.
    CancelCalls,
    /// Tools may have changed, and are to count at once.
    ApplyTools,
    /// The store has written the session's row.
    Stored,
    /// A firmware image was read: its SHA-256, and its bytes or why there are none.
    Firmware {
        /// SHA-256 of the image.
        image: [u8; 32],
        /// The whole image, or why it cannot be read.
        read: Result<Arc<Vec<u8>>, String>,
    },
}

impl From<Input> for DeviceMessage {
    fn from(input: Input) -> Self {
        Self::Input(Box::new(input))
    }
}

#[cfg(test)]
impl DeviceMessage {
    /// The input that it brings.
    pub(crate) fn input(self) -> Option<Input> {
        match self {
            Self::Input(input) => Some(*input),
            _ => None,
        }
    }
}

/// Why a session is ended from outside, with a text for people.
pub(crate) type DismissReason = (GoodbyeReason, &'static str);

/// Ends a session from outside, also one whose mailbox is full.
#[derive(Clone, Default)]
pub(crate) struct Ending(watch::Sender<Option<DismissReason>>);

impl Ending {
    /// Asks the session to end. The first reason counts.
    pub(crate) fn ask(&self, reason: GoodbyeReason, message: &'static str) {
        self.0.send_if_modified(|asked| {
            let is_first = asked.is_none();
            asked.get_or_insert((reason, message));
            is_first
        });
    }

    /// Waits until the session is asked to end. Cancel safe.
    pub(crate) async fn asked(&self) -> DismissReason {
        let mut changes = self.0.subscribe();
        loop {
            if let Some(asked) = *changes.borrow_and_update() {
                return asked;
            }
            // The sender is `self`, so this never fails.
            drop(changes.changed().await);
        }
    }
}

/// The end of a decode, by the utterance and the request that it was made for.
pub struct Transcribed {
    /// What was decoded.
    pub utterance: u32,
    /// Number of the request.
    pub revision: u16,
    /// Why it was asked for.
    pub kind: gateway_core::vocab::TranscriptKind,
    /// What came of it.
    pub report: Report,
}

/// The end of a translation of an utterance into English.
pub struct Translated {
    /// What was translated.
    pub utterance: u32,
    /// What came of it.
    pub report: Report,
}

/// A request to a model has gone out.
pub struct RequestSent {
    /// Whose request it is.
    pub turn: Turn,
    /// When the connection to the model's server took it up, in microseconds of the gateway's clock.
    pub at_us: u64,
    /// Tools that it declares.
    pub tools: u32,
}

/// A pause was judged.
pub struct Scored {
    /// The utterance that paused.
    pub utterance: u32,
    /// As the ear has numbered it.
    pub pause: u32,
    /// Probability that the speaker is done.
    pub score: f32,
}

/// A wake phrase was heard.
#[derive(Clone, Copy)]
pub struct WakeHeard {
    /// The utterance in which it was.
    pub utterance: u32,
    /// Capture time of its end, to some steps.
    pub at_us: u64,
    /// Probability that it was said.
    pub score: f32,
    /// Samples of the utterance up to there.
    pub end: usize,
}

impl WakeHeard {
    /// Samples of its utterance before this capture time.
    pub(crate) fn samples_before(&self, from_us: u64) -> usize {
        let back = us_to_samples(self.at_us.saturating_sub(from_us), RATE_HZ);
        self.end.saturating_sub(usize::try_from(back).unwrap_or(usize::MAX))
    }
}

/// A clause was synthesised.
pub struct Synthesised {
    /// Number of the speech, unique in the session.
    pub speech: u32,
    /// From 0, within the speech.
    pub clause: u16,
    /// Whether it ends the speech.
    pub last: bool,
    /// The sound at the voice's rate, behind what was skipped; absent when it failed.
    pub pcm: Option<Vec<i16>>,
    /// Samples of the clause's beginning that are not played, because they were heard before.
    pub skipped: usize,
    /// Its wait for a synthesis thread.
    pub queue_us: u64,
    /// How long the synthesis took.
    pub compute_us: u64,
}

/// A tool of the glasses is to run.
pub struct CallDevice {
    /// The turn that called it; `None`: a call from outside.
    pub turn: Option<Turn>,
    /// The call, by the name that the glasses offered.
    pub call: ToolCall,
    /// After this nobody waits.
    pub deadline: Duration,
    /// Fires when it is not wanted any more.
    pub cancel: CancellationToken,
    /// Gets exactly one result, unless the device goes away.
    pub reply: oneshot::Sender<ToolResult>,
}
