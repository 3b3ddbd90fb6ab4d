//! Faults of the microphone: when the wearer is told.

use crate::{agent::phrases, vocab::MicrophoneFault};

/// How long after a notice the same fault is not told again, though it was gone meanwhile: a loose contact comes and goes.
const AGAIN_US: u64 = 10 * 60 * 1_000_000;
/// Requests in a row that were spoken too quietly before this is told: one may have been whispered.
const QUIET_REQUESTS: u8 = 2;

/// What is known of the microphone.
#[derive(Debug, Default)]
pub(crate) struct Microphone {
    faults: [Fault; MicrophoneFault::ALL.len()],
    /// Requests in a row that were spoken too quietly.
    quiet_requests: u8,
}

#[derive(Clone, Copy, Debug, Default)]
struct Fault {
    is_present: bool,
    /// Told since it was found.
    is_told: bool,
    told_us: Option<u64>,
}

impl Microphone {
    /// A fault was found, or is gone.
    pub(crate) fn handle_fault(&mut self, fault: MicrophoneFault, is_present: bool) {
        let known = &mut self.faults[fault as usize];
        *known = Fault { is_present, is_told: known.is_told && is_present, ..*known };
    }

    /// The wearer has made a request. Only the voice of a request is certainly the wearer's: what is quiet may be talk at
    /// another table.
    pub(crate) fn handle_request(&mut self, is_spoken: bool) {
        if is_spoken {
            let is_quiet = self.faults[MicrophoneFault::Quiet as usize].is_present;
            self.quiet_requests = if is_quiet { self.quiet_requests.saturating_add(1) } else { 0 };
        }
    }

    /// What the wearer is to be told, once.
    pub(crate) fn take(&mut self, now_us: u64) -> Option<&'static str> {
        MicrophoneFault::ALL.into_iter().find_map(|kind| {
            let text = match kind {
                MicrophoneFault::Dead => phrases::MICROPHONE_DEAD,
                MicrophoneFault::Clipping => phrases::MICROPHONE_CLIPS,
                MicrophoneFault::Quiet if self.quiet_requests >= QUIET_REQUESTS => phrases::MICROPHONE_QUIET,
                // The wearer can do nothing about an offset, and hears no difference: it is for the operator.
                MicrophoneFault::Quiet | MicrophoneFault::Offset => return None,
            };
            let fault = &mut self.faults[kind as usize];
            let is_soon = fault.told_us.is_some_and(|told_us| now_us.saturating_sub(told_us) < AGAIN_US);
            if !fault.is_present || fault.is_told || is_soon {
                return None;
            }
            *fault = Fault { is_told: true, told_us: Some(now_us), ..*fault };
            Some(text)
        })
    }
}
