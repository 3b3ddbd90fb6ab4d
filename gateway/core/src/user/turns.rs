//! Turns of one user's devices, one at a time.

use alloc::{collections::VecDeque, string::String};

use crate::{limits::DEVICES_MAX, vocab::Turn};

/// Who has the turn and who waits for it. A device waits for at most one.
#[derive(Debug, Default)]
pub(super) struct Turns {
    holder: Option<Holder>,
    waiting: VecDeque<(String, Turn)>,
}

#[derive(Debug)]
struct Holder {
    device: String,
    turn: Turn,
    until_us: u64,
}

impl Turns {
    /// A device wants a turn. One that waits already now wants the newer one instead.
    pub(super) fn request(&mut self, device: String, turn: Turn) {
        self.waiting.retain(|(waiting, _)| *waiting != device);
        if self.waiting.len() < DEVICES_MAX {
            self.waiting.push_back((device, turn));
        }
    }

    /// A turn is over, granted or not, at whichever attempt.
    pub(super) fn done(&mut self, device: &str, turn: Turn) {
        self.waiting.retain(|(waiting, wanted)| waiting != device || wanted.id != turn.id);
        if self.holder.as_ref().is_some_and(|holder| holder.device == device && holder.turn.id == turn.id) {
            self.holder = None;
        }
    }

    /// A device is gone, and with it what it wanted.
    pub(super) fn left(&mut self, device: &str) {
        self.waiting.retain(|(waiting, _)| waiting != device);
        if self.holder.as_ref().is_some_and(|holder| holder.device == device) {
            self.holder = None;
        }
    }

    /// The next to be granted its turn, where nobody has it.
    pub(super) fn grant(&mut self, until_us: u64) -> Option<(String, Turn)> {
        if self.holder.is_some() {
            return None;
        }
        let (device, turn) = self.waiting.pop_front()?;
        self.holder = Some(Holder { device: device.clone(), turn, until_us });
        Some((device, turn))
    }

    /// Whether nobody has or wants a turn.
    pub(super) fn is_empty(&self) -> bool {
        self.holder.is_none() && self.waiting.is_empty()
    }

    /// When the holder is taken to have vanished.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.holder.as_ref().map(|holder| holder.until_us)
    }

    pub(super) fn expire(&mut self, now_us: u64) {
        if self.deadline().is_some_and(|until_us| until_us <= now_us) {
            self.holder = None;
        }
    }
}
