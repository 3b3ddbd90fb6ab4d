//! A link within the process: for glasses that are no more than text. The same envelopes, the same device task.

use bytes::Bytes;
use tokio::sync::mpsc;

use super::{Bindings, DOWN_QUEUE_FRAMES, Link, Receiver, Sender, ToolFailure, Transport};
use crate::clock;

/// Frames from the device that may wait: a request and a few answers to questions.
const UP_QUEUE_FRAMES: usize = 16;
/// Failures of tools that may wait: more than there are calls in a step.
const FAILURES_MAX: usize = 64;

/// The device's ends of a link.
pub(crate) struct Ends {
    /// What it sends. The link closes when this is dropped.
    pub up: mpsc::Sender<Bytes>,
    /// What it is sent.
    pub down: mpsc::Receiver<Bytes>,
    /// Why tools failed, each before the frame that says that it did.
    pub failures: mpsc::Receiver<ToolFailure>,
}

/// A link, and the device's ends of it.
pub(crate) fn link() -> (Link, Ends) {
    let (up, frames) = mpsc::channel(UP_QUEUE_FRAMES);
    let (queue, down) = mpsc::channel(DOWN_QUEUE_FRAMES);
    let (failed, failures) = mpsc::channel(FAILURES_MAX);
    let link = Link {
        opened_us: clock::mono_us(),
        peer: (std::net::Ipv4Addr::LOCALHOST, 0).into(),
        bindings: Bindings::NONE,
        transport: Transport::TEXT,
        up: Receiver::Memory(frames),
        down: Sender::new(queue),
        failures: Some(failed),
    };
    (link, Ends { up, down, failures })
}
