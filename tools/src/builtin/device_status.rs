//! `device.status`: battery and connection of the glasses.

use async_trait::async_trait;
use gateway_core::vocab::{DisplaySize, ErrorCode, ToolResult};
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, told};
use crate::{
    arguments::{Arguments, Refusal},
    ports::DeviceStatus,
    registry::RunContext,
};

struct StatusOfDevice;

inventory::submit! { BuiltIn(&StatusOfDevice) }

#[async_trait]
impl Tool for StatusOfDevice {
    fn definition(&self) -> Definition {
        Definition {
            name: "device.status",
            title: "Look at the glasses",
            description: "Tells the battery, charging, connection and firmware of the glasses.",
            properties: json!({}),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "how much battery is left",
                "how much (battery|charge|power|battery life) (do i have|is left|is there|have i got|remains|is remaining) [left|remaining]",
                "how much (battery|charge|power|battery life) (do the|does my|do my) (glasses|device|battery) have [left|remaining]",
                "how (is|are) (the|my) (battery|glasses|device|battery level) [doing|level]",
                "how (full|empty|low|charged) (is|are) (the|my) (battery|glasses|device)",
                "what is (the|my) [current] (battery|charge|device) (level|status|state|percentage|charge)",
                "what is the (status|state|charge|battery level|battery) of (the|my) (glasses|device|battery)",
                "(tell|show|give) me (the|my) (battery|device|charge) (level|status|state|percentage)",
                "(tell|show|give) me the (status|state) of (the|my) (glasses|device|battery)",
                "(check|show) (the|my) (battery|device|charge|device status|battery level|battery status)",
                "is (the|my) battery (low|full|empty|okay|charged|charging)",
                "do i have enough (battery|charge|power) [left]",
                "(battery|charge|device|glasses) (level|status|state|percentage|check)",
                "am i [still] connected",
            ],
            guidance: None,
            flags: READ_ONLY,
        }
    }

    async fn run(&self, context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let status = context.device.as_deref().and_then(|device| context.ports.device.status(device));
        let Some(status) = status else {
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
            "display": status.display.and_then(DisplaySize::grid)
                .map(|(columns, rows)| json!({"columns": columns, "rows": rows})),
            "muted": status.muted,
        });
        Ok(told(say(&status), "Glasses", show(&status), data))
    }
}

fn say(status: &DeviceStatus) -> String {
    let mut say = String::new();
    if status.elsewhere {
        say.push_str(&format!("There are no glasses here, but yours called {} are connected. ", status.name));
    }
    say.push_str(&match (status.battery_percent, status.charging) {
        (Some(percent), Some(true)) => {
            format!("The battery is at {} percent and charging.", percent.min(100))
        }
        (Some(percent), _) => format!("The battery is at {} percent.", percent.min(100)),
        (None, Some(true)) => "The battery is charging.".to_owned(),
        (None, _) => "The glasses don't tell their battery.".to_owned(),
    });
    if !status.connection.is_empty() {
        say.push_str(&format!(" Connected over {}.", status.connection));
    }
    if !status.firmware.is_empty() {
        say.push_str(&format!(" Firmware {}.", status.firmware));
    }
    if status.muted {
        say.push_str(" Their microphone is off.");
    }
    say
}

fn show(status: &DeviceStatus) -> String {
    let mut lines = Vec::new();
    if let Some(percent) = status.battery_percent {
        let sign = if status.charging == Some(true) { " +" } else { "" };
        lines.push(format!("Battery {}%{sign}", percent.min(100)));
    }
    if !status.connection.is_empty() {
        lines.push(status.connection.clone());
    }
    if !status.firmware.is_empty() {
        lines.push(format!("Firmware {}", status.firmware));
    }
    if status.muted {
        lines.push("Microphone off".to_owned());
    }
    if lines.is_empty() {
        lines.push("Connected".to_owned());
    }
    lines.join("\n")
}
