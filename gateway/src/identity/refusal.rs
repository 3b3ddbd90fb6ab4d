//! Why a device gets no session, and when it may ask again.

use device_protocol::{Down, RejectCode, down, limits};

use crate::{clock, text::crop, transport::Link};

/// Why a device is rejected.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    /// For the device.
    pub code: RejectCode,
    /// For people.
    pub message: String,
    /// When to retry, in milliseconds; 0: the device's own back-off.
    pub retry_after_ms: u32,
    /// Fingerprint of the device, if it has proven its key.
    pub device: Option<String>,
}

impl Refusal {
    /// For this reason. When to retry follows from it.
    pub(crate) fn new(code: RejectCode, message: impl Into<String>) -> Self {
        let retry_after_ms = match code {
            RejectCode::Busy => 10_000,
            RejectCode::RateLimited => 30_000,
            _ => 0,
        };
        Self { code, message: message.into(), retry_after_ms, device: None }
    }

    /// The gateway has failed; a retry may succeed.
    pub(crate) fn internal(error: impl ToString) -> Self {
        Self::new(RejectCode::Internal, error.to_string())
    }

    /// Tells the device.
    pub(crate) fn tell(&self, link: &mut Link) {
        let reject = down::Reject {
            code: self.code,
            message: crop(&self.message, limits::LABEL_BYTES_MAX),
            retry_after_ms: self.retry_after_ms,
        };
        drop(link.down.send_last(clock::mono_us(), Down::Reject(reject)));
    }
}
