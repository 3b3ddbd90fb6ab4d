//! `device.status`: battery and connection of the glasses.

use async_trait::async_trait;
use gateway_core::vocab::{ErrorCode, ToolResult};
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, told};
use crate::{
    arguments::{Arguments, Refusal},
    ports::DeviceStatus,
    runner::RunContext,
};

struct StatusOfDevice;

inventory::submit! { BuiltIn(&StatusOfDevice) }

#[async_trait]
impl Tool for StatusOfDevice {
    fn definition(&self) -> Definition {
        Definition {
            name: "device.status",
            description: "Tells the battery, charging, connection and firmware of the glasses.",
            properties: json!({}),
            required: &[],
            phrases: &[
                "how much (battery|charge|power) (is|do I have|have I got) [left]",
                "(what is|what's) (my|the) battery [(level|status|charge)]",
                "how is (my|the) battery [doing]",
                "[(show|check|tell me)] (my|the) battery [(level|status|charge)]",
                "battery (level|status)",
                "(are|is) (my|the) (glasses|battery) charging",
                "[(show|check|tell me)] [(the|my)] (device|glasses) status",
                "(what is|what's) the status of (my|the) (device|glasses)",
                "how are my glasses [doing]",
                "how am I connected",
                "(what|which) (firmware|version) (is this|am I running|is running|do my glasses have)",
            ],
            guidance: None,
            flags: READ_ONLY,
        }
    }

    async fn run(
        &self,
        context: &RunContext,
        _arguments: Arguments<'_>,
    ) -> Result<ToolResult, Refusal> {
        let Some(status) = context.ports.device.status(&context.device) else {
            return Err(Refusal {
                code: ErrorCode::AppNotAvailable,
                message: "The glasses are not connected.".to_owned(),
                say: "The glasses are not connected.".to_owned(),
                retryable: true,
            });
        };
        let data = json!({
            "name": status.name,
            "model": status.model,
            "firmware": status.firmware,
            "battery_percent": status.battery_percent,
            "charging": status.charging,
            "connection": status.connection,
            "display": status.display.map(|size| json!({"columns": size.columns, "rows": size.rows})),
            "muted": status.muted,
        });
        Ok(told(say(&status), "Glasses", show(&status), data))
    }
}

fn say(status: &DeviceStatus) -> String {
    let mut say = match (status.battery_percent, status.charging) {
        (Some(percent), Some(true)) => {
            format!(
                "The battery is at {} percent and charging.",
                percent.min(100)
            )
        }
        (Some(percent), _) => format!("The battery is at {} percent.", percent.min(100)),
        (None, Some(true)) => "The battery is charging.".to_owned(),
        (None, _) => "The glasses don't tell their battery.".to_owned(),
    };
    if !status.connection.is_empty() {
        say.push_str(&format!(" Connected over {}.", status.connection));
    }
    if !status.firmware.is_empty() {
        say.push_str(&format!(" Firmware {}.", status.firmware));
    }
    say
}

fn show(status: &DeviceStatus) -> String {
    let mut lines = Vec::new();
    if let Some(percent) = status.battery_percent {
        let sign = if status.charging == Some(true) {
            " +"
        } else {
            ""
        };
        lines.push(format!("Battery {}%{sign}", percent.min(100)));
    }
    if !status.connection.is_empty() {
        lines.push(status.connection.clone());
    }
    if !status.firmware.is_empty() {
        lines.push(format!("Firmware {}", status.firmware));
    }
    if lines.is_empty() {
        lines.push("Connected".to_owned());
    }
    lines.join("\n")
}
