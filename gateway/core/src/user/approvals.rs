//! Questions for consent to calls from outside: which device is asked, and what happens to a question while no device
//! is connected.

use alloc::vec::Vec;

use crate::{
    limits::QUESTIONS_MAX,
    vocab::{AnsweredBy, Approval, ApprovalOutcome, Settlement, Timestamp},
};

/// Questions that only an operator can answer, since no device is connected.
#[derive(Debug, Default)]
pub(super) struct PendingApprovals {
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    approval: Approval,
    until_us: u64,
}

impl PendingApprovals {
    /// Keeps a question until an operator answers or a device connects.
    ///
    /// # Errors
    /// The settlement of a refused question: [`QUESTIONS_MAX`] are open, or one with the same id is.
    pub(super) fn keep(&mut self, now: Timestamp, approval: Approval) -> Result<(), Settlement> {
        let known = self.open.iter().any(|open| open.approval.id == approval.id);
        if known || self.open.len() >= QUESTIONS_MAX {
            return Err(approval.settled(ApprovalOutcome::Denied, AnsweredBy::Nobody));
        }
        let until_us = now.mono_us.saturating_add(u64::from(approval.expires_ms).saturating_mul(1_000));
        self.open.push(Open { approval, until_us });
        Ok(())
    }

    /// Settles a question: it was answered, or is no longer waited for.
    pub(super) fn settle(&mut self, id: u64, outcome: ApprovalOutcome, by: AnsweredBy) -> Option<Settlement> {
        let index = self.open.iter().position(|open| open.approval.id == id)?;
        Some(self.open.remove(index).approval.settled(outcome, by))
    }

    /// A device has connected: it is asked from now on.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Approval> {
        self.open.drain(..).map(|open| open.approval)
    }

    /// Earliest expiry, monotonic.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.open.iter().map(|open| open.until_us).min()
    }

    /// Removes and settles the expired ones.
    pub(super) fn expire(&mut self, now_us: u64) -> Vec<Settlement> {
        let over = self.open.extract_if(.., |open| open.until_us <= now_us);
        over.map(|open| open.approval.settled(ApprovalOutcome::Expired, AnsweredBy::Nobody)).collect()
    }
}
