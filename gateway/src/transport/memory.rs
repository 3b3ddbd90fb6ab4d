//! An in-process link, for text-only glasses. It uses the same envelopes and the same device task.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};

use super::{Bindings, DOWN_QUEUE_FRAMES, Link, Receiver, Sender, ToolFailure, Transport};
use crate::clock;

/// Frames from the device that may be queued: a request and a few answers to questions.
const UP_QUEUE_FRAMES: usize = 16;
/// Tool failures that may be queued: more than there are calls in a step.
const FAILURES_MAX: usize = 64;

/// The device's ends of a link.
pub(crate) struct Ends {
    /// Frames from the device. The link closes when this is dropped.
    pub up: mpsc::Sender<Bytes>,
    /// Frames to the device.
    pub down: mpsc::Receiver<Bytes>,
    /// Why tools failed; each is sent before the frame that reports the failure.
    pub failures: mpsc::Receiver<ToolFailure>,
    /// Notified when what was typed is dealt with: every frame about it is in `down` by then.
    pub answered: Arc<Notify>,
}

/// Creates a link, and the device's ends of it.
pub(crate) fn link() -> (Link, Ends) {
    let (up, frames) = mpsc::channel(UP_QUEUE_FRAMES);
    let (queue, down) = mpsc::channel(DOWN_QUEUE_FRAMES);
    let (failed, failures) = mpsc::channel(FAILURES_MAX);
    let answered = Arc::new(Notify::new());
    let link = Link {
        opened_us: clock::mono_us(),
        peer: (std::net::Ipv4Addr::LOCALHOST, 0).into(),
        bindings: Bindings::NONE,
        transport: Transport::TEXT,
        up: Receiver::Memory(frames),
        down: Sender::new(queue),
        failures: Some(failed),
        answered: Some(answered.clone()),
    };
    (link, Ends { up, down, failures, answered })
}
