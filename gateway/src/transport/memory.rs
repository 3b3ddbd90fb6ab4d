//! A link within the process: for glasses that are no more than text. The same envelopes, the same device task.

use bytes::Bytes;
use tokio::sync::mpsc;

use super::{DOWN_QUEUE_FRAMES, Link, Receiver, Sender};

/// What such a link is called in logs and records.
pub const TRANSPORT: &str = "text";
/// Frames from the device that may wait: a request and a few answers to questions.
const UP_QUEUE_FRAMES: usize = 16;

/// A link, and the device's ends of it: what it sends, and what it is sent. The link closes when the first is dropped.
pub fn link() -> (Link, mpsc::Sender<Bytes>, mpsc::Receiver<Bytes>) {
    let (up, frames) = mpsc::channel(UP_QUEUE_FRAMES);
    let (queue, down) = mpsc::channel(DOWN_QUEUE_FRAMES);
    let link = Link {
        peer: (std::net::Ipv4Addr::LOCALHOST, 0).into(),
        binding: [0; 32],
        transport: TRANSPORT,
        up: Receiver::Memory(frames),
        down: Sender::new(queue),
    };
    (link, up, down)
}
