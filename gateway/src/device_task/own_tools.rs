//! The tools of a session: those that the glasses offer, and those that the gateway adds for them.

use device_protocol::WarningCode;
use tools::device::{Offer, Remark};

use super::session::Session;
use crate::{mailbox::CallDevice, transport::LinkError};

impl Session {
    /// Registers these offers of the glasses, and what they lack, in place of earlier ones. The glasses hear what was not
    /// taken as they sent it.
    pub(super) fn register_tools(&mut self, offers: Vec<Offer>) {
        let offers = self.speech.complete(offers);
        match tools::device::register(&self.services.registry, &self.id, offers) {
            Ok((revision, remarks)) => {
                tracing::info!(device = self.id, revision, "device tools registered");
                for Remark { tool, left_out, reason } in remarks {
                    if self.speech.has_tool(&tool) {
                        continue;
                    }
                    tracing::warn!(device = self.id, tool, left_out, reason, "a device tool is not as it was offered");
                    let code = if left_out { WarningCode::ToolLeftOut } else { WarningCode::ToolChanged };
                    self.warn(code, &tool, &reason);
                }
            }
            Err(error) => {
                tracing::warn!(device = self.id, %error, "device tools were not registered")
            }
        }
    }

    /// Runs a tool of the session, by the glasses or by the gateway.
    ///
    /// # Errors
    /// The link is gone, or too slow.
    pub(super) fn call_device(&mut self, call: CallDevice) -> Result<(), LinkError> {
        self.calls.cancel(&mut self.link)?;
        match self.speech.call(&call.call.name, &call.call.arguments) {
            Some(result) => {
                drop(call.reply.send(result));
                Ok(())
            }
            None => self.calls.call(call, &mut self.link),
        }
    }
}
