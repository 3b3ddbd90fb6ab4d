//! The tools of a session: those that the glasses offer, and those that the gateway adds for them.

use device_protocol::WarningCode;
use gateway_core::vocab::ToolResult;
use serde_json::Value;
use tools::device::{Offer, Remark};

use super::session::Session;

impl Session {
    /// Registers these offers of the glasses, and what they lack, in place of earlier ones. The glasses hear what was not
    /// taken as they sent it.
    pub(super) fn register_tools(&mut self, offers: Vec<Offer>) {
        let offers = match &mut self.speaking {
            Some(speaking) => speaking.complete(offers),
            None => offers,
        };
        match tools::device::register(&self.services.registry, &self.id, offers) {
            Ok((revision, remarks)) => {
                tracing::info!(device = self.id, revision, "device tools registered");
                for Remark { tool, left_out, reason } in remarks {
                    if self.speaking.as_ref().is_some_and(|speaking| speaking.has(&tool)) {
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

    /// Volume, pace and the tools for them, for a device with a speaker.
    pub(super) fn begin_speaking(&mut self) {
        self.set_mouth();
        if self.speaking.is_some() {
            self.register_tools(Vec::new());
        }
    }

    fn set_mouth(&mut self) {
        if let (Some(mouth), Some(speaking)) = (&mut self.mouth, &self.speaking) {
            mouth.set(speaking.gain(), speaking.speed());
        }
    }

    /// The result of a tool that the gateway has added; `None`: the tool is one of the glasses.
    pub(super) fn call_own(&mut self, tool: &str, arguments: &Value) -> Option<ToolResult> {
        let speaking = self.speaking.as_mut().filter(|speaking| speaking.has(tool))?;
        let result = speaking.call(tool, arguments);
        self.set_mouth();
        Some(result)
    }
}
