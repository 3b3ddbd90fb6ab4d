//! `system.status`: whether the gateway and its box are all right. Also for wearers.

use std::sync::Arc;

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, Content, ToolResult};
use serde_json::json;

use super::{
    SYSTEM,
    form::READ_ONLY,
    system::{Problem, System, SystemStatus},
};
use crate::{
    arguments::{Arguments, Refusal},
    builtin::{Definition, Tool},
    registry::RunContext,
    spoken,
};

/// Bytes of a gibibyte.
const GIB: f64 = 1_073_741_824.0;

pub(super) struct SystemStatusTool(pub(super) Arc<dyn System>);

#[async_trait]
impl Tool for SystemStatusTool {
    fn definition(&self) -> Definition {
        Definition {
            name: "system.status",
            title: "Look at the gateway",
            description: "Tells whether the gateway and the box that it runs on are all right: problems, version, uptime, \
                          load, memory, disk, temperature.",
            properties: json!({}),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "is the box all right",
                "is (the|your|my) (box|gateway) (all right|alright|okay|ok|fine|well|healthy|working|running) [right now]",
                "is (everything|all) (all right|alright|okay|ok|fine|well|working) with (the|your|my) (box|gateway)",
                "how is (the|your|my) (box|gateway) [doing|feeling]",
                "what is the (status|state|health) of (the|your|my) (box|gateway|system)",
                "(tell|show|give) me the (status|state|health) of (the|your|my) (box|gateway|system)",
                "(tell|show|give) me (the|your|my) (box|gateway|system) (status|state|health)",
                "check (the|your|my) (box|gateway)",
                "(box|gateway|system) (status|state|health|check)",
                "how (warm|hot) is (the|your|my) (box|gateway)",
                "how full is (the|your|my) (disk|box|gateway)",
                "how long has (the|your|my) (box|gateway) been (running|up|on)",
            ],
            guidance: None,
            flags: READ_ONLY,
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        Some(&[ClientClass::Internal, ClientClass::Copilot])
    }

    fn category(&self) -> Option<&'static str> {
        Some(SYSTEM)
    }

    async fn run(&self, _context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let status = self.0.state().await?.status;
        let mut result = ToolResult::said(say(&status));
        result.show = Some(Content::Card { title: "Gateway".to_owned(), text: show(&status) });
        result.data = serde_json::to_value(&status).ok();
        Ok(result)
    }
}

fn say(status: &SystemStatus) -> String {
    match status.problems.as_slice() {
        [] => {
            let up = spoken::duration(status.uptime_s.max(1));
            let disk = status.disk.map(|disk| format!(", and the disk is {} percent full", percent_full(disk)));
            format!("The gateway is all right. It has been running for {up}{}.", disk.unwrap_or_default())
        }
        [Problem { part, why }] => {
            format!("Something is wrong with {}: {}", named(part), spoken::sentence(&plain(why)))
        }
        many => {
            let parts: Vec<String> = many.iter().map(|problem| named(&problem.part)).collect();
            format!("Something is wrong with {}.", spoken::list(&parts))
        }
    }
}

/// The part in words.
fn named(part: &str) -> String {
    match part {
        "descriptors" => "the number of open files".to_owned(),
        "users" => "the tasks of users".to_owned(),
        part => format!("the {part}"),
    }
}

/// Without marks that are for readers.
fn plain(why: &str) -> String {
    why.replace('`', "")
}

fn percent_full(disk: super::system::DiskUse) -> u64 {
    let used = disk.total_bytes.saturating_sub(disk.free_bytes);
    used.saturating_mul(100).checked_div(disk.total_bytes).unwrap_or_default()
}

fn show(status: &SystemStatus) -> String {
    let mut lines: Vec<String> = status.problems.iter().map(|problem| format!("Problem: {}", problem.part)).collect();
    lines.push(format!("Up {}", spoken::duration(status.uptime_s.max(1))));
    if let Some([one, ..]) = status.load {
        lines.push(format!("Load {one:.1} of {}", status.cores));
    }
    if let Some(memory) = status.memory {
        let gib = |bytes: u64| bytes as f64 / GIB;
        lines.push(format!("Memory {:.1} of {:.1} GB free", gib(memory.available_bytes), gib(memory.total_bytes)));
    }
    if let Some(disk) = status.disk {
        lines.push(format!("Disk {} % full", percent_full(disk)));
    }
    if let Some(temperature) = status.temperature_c {
        lines.push(format!("{temperature:.0} °C"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{super::system::DiskUse, *};

    #[test]
    fn the_state_is_told_in_a_sentence() {
        let disk = Some(DiskUse { free_bytes: 30, total_bytes: 40 });
        let well = SystemStatus { uptime_s: 7_200, disk, ..SystemStatus::default() };
        assert_eq!(
            say(&well),
            "The gateway is all right. It has been running for two hours, and the disk is 25 percent full."
        );
        let problem = |part: &str| Problem { part: part.to_owned(), why: "raise `LimitNOFILE`".to_owned() };
        let one = SystemStatus { problems: vec![problem("descriptors")], ..SystemStatus::default() };
        assert_eq!(say(&one), "Something is wrong with the number of open files: raise LimitNOFILE.");
        let two = SystemStatus { problems: vec![problem("users"), problem("store")], ..SystemStatus::default() };
        assert_eq!(say(&two), "Something is wrong with the tasks of users and the store.");
        assert_eq!(percent_full(DiskUse::default()), 0);
        assert_eq!(show(&SystemStatus { temperature_c: Some(51.6), ..well }), "Up two hours\nDisk 25 % full\n52 °C");
    }
}
