//! The approval that the glasses ask their wearer for.

use device_protocol::{Choice, down as message, limits};
use gateway_core::vocab::{Approval, ApprovalOutcome, Settlement, Turn};

use super::frame_limits::FrameLimits;
use crate::text::crop;

/// The approval that was asked for last, until it is settled: its number in frames, and its turn.
#[derive(Default)]
pub(super) struct OpenApproval(Option<(u32, Option<Turn>)>);

impl OpenApproval {
    /// What the glasses are sent to ask for this one.
    pub(super) fn ask<'a>(&mut self, approval: &'a Approval, frames: FrameLimits) -> message::ApprovalRequest<'a> {
        let number = on_wire(approval.id);
        self.0 = Some((number, approval.turn));
        let title = crop(&approval.question.title, limits::LABEL_BYTES_MAX);
        message::ApprovalRequest {
            approval: number,
            title,
            message: frames.crop(&approval.question.shown, limits::DISPLAY_TEXT_BYTES_MAX, title.len()),
            expires_ms: approval.expires_ms,
        }
    }

    /// What the glasses are sent when one is settled, and the turn that they are to see it in.
    pub(super) fn settle(&mut self, settled: Settlement) -> (Option<Turn>, message::ApprovalSettled) {
        let choice = match settled.outcome {
            ApprovalOutcome::Approved => Choice::Yes,
            ApprovalOutcome::Denied => Choice::No,
            ApprovalOutcome::Expired | ApprovalOutcome::Unasked => Choice::Expired,
            ApprovalOutcome::Cancelled => Choice::Dismissed,
        };
        let approval = on_wire(settled.id);
        let turn = self.0.take_if(|(number, _)| *number == approval).and_then(|(_, turn)| turn);
        (turn, message::ApprovalSettled { approval, choice })
    }
}

/// An approval's number in frames.
fn on_wire(id: u64) -> u32 {
    u32::try_from(id).unwrap_or(u32::MAX)
}
