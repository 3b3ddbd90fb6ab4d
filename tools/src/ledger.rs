//! Records of calls: caller, tool, time, duration and outcome. Arguments are never recorded.

use std::collections::BTreeMap;

use gateway_core::vocab::{AnsweredBy, ApprovalOutcome, ClientClass, ErrorCode, absent};
use serde::{Deserialize, Serialize};

use crate::source::Source;

/// One call of a persistent tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When it began, in milliseconds since the Unix epoch.
    pub wall_ms: i64,
    /// For whom it was made.
    pub user: String,
    /// The device on which it was requested, if any.
    #[serde(with = "absent")]
    pub device: Option<String>,
    /// Class of the calling client.
    pub client: ClientClass,
    /// Number of the turn, if it belongs to one.
    #[serde(with = "absent")]
    pub turn: Option<u32>,
    /// Full name of the tool.
    pub tool: String,
    /// The tool's provider, in the written form of [`crate::source::Source`].
    pub source: String,
    /// Duration, including questions to the wearer, in milliseconds.
    pub took_ms: u64,
    /// Kind of failure, if it failed.
    pub error: Option<ErrorCode>,
    /// Whether the wearer was asked.
    pub asked: bool,
    /// The decision of the wearer, if asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// The program that it belongs to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<OfProgram>,
    /// Bytes of the arguments as JSON.
    pub bytes_in: u64,
    /// Bytes of the result: content, data and attachments.
    pub bytes_out: u64,
}

/// The decision about one call: who made it, how and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// Yes, no, or neither.
    pub outcome: ApprovalOutcome,
    /// Who made the decision, and how.
    pub by: AnsweredBy,
    /// The device that was asked, if any.
    #[serde(with = "absent")]
    pub device: Option<String>,
    /// When it was made, in milliseconds since the Unix epoch.
    pub wall_ms: i64,
    /// How long the decision took, in milliseconds.
    pub took_ms: u64,
}

/// The program that a call belongs to: the one that it runs, or the one that makes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfProgram {
    /// Id of the call that runs the program.
    pub id: String,
    /// Number among the calls of the program, from 1 on; `None`: it is the one that runs the program,
    /// or a function of the standard library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
}

/// Stores records. The gateway implements it.
pub trait Ledger: Send + Sync {
    /// Stores a record. It does not block and does not fail: a full disk must not stop a call that has already been
    /// made.
    fn record(&self, record: Record);
}

/// Usage of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Full name.
    pub tool: String,
    /// Total number of calls.
    pub calls: u64,
    /// Number of calls that failed.
    pub failed: u64,
    /// Number of calls that the wearer was asked about.
    #[serde(default)]
    pub asked: u64,
    /// Number of those that the wearer approved.
    #[serde(default)]
    pub approved: u64,
    /// Total duration, in milliseconds.
    pub took_ms: u64,
    /// Total bytes in and out.
    pub bytes: u64,
    /// When it was last called, in milliseconds since the Unix epoch.
    pub last_wall_ms: i64,
}

/// Sums up records by tool, in order of name.
pub fn usage(records: impl IntoIterator<Item = Record>) -> Vec<Usage> {
    let mut tools: BTreeMap<String, Usage> = BTreeMap::new();
    for record in records {
        let usage = tools.entry(record.tool).or_default();
        usage.calls += 1;
        usage.failed += u64::from(record.error.is_some());
        usage.asked += u64::from(record.asked);
        usage.approved +=
            u64::from(record.approval.is_some_and(|approval| approval.outcome == ApprovalOutcome::Approved));
        usage.took_ms += record.took_ms;
        usage.bytes += record.bytes_in + record.bytes_out;
        usage.last_wall_ms = usage.last_wall_ms.max(record.wall_ms);
    }
    tools.into_iter().map(|(tool, usage)| Usage { tool, ..usage }).collect()
}

/// Told of each call of a tool that there is, for measurements.
pub trait CallMeter: Send + Sync {
    /// A call took so many microseconds, questions included, and failed with this error, if any.
    fn called(&self, source: &Source, error: Option<ErrorCode>, took_us: u64);
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn an_absent_device_or_turn_has_the_stored_form_that_it_always_had() {
        let approval = |device: Option<&str>| Approval {
            outcome: ApprovalOutcome::Approved,
            by: AnsweredBy::Operator,
            device: device.map(str::to_owned),
            wall_ms: 5,
            took_ms: 6,
        };
        let record = |device: Option<&str>, turn| Record {
            wall_ms: 1,
            user: "ann".into(),
            device: device.map(str::to_owned),
            client: ClientClass::Internal,
            turn,
            tool: "note.add".into(),
            source: "built-in".into(),
            took_ms: 2,
            error: None,
            asked: true,
            approval: Some(approval(device)),
            program: None,
            bytes_in: 3,
            bytes_out: 4,
        };
        for (record, device, turn) in [(record(None, None), "", 0), (record(Some("glasses"), Some(7)), "glasses", 7)] {
            let stored = to_value(&record).unwrap();
            assert_eq!((&stored["device"], &stored["turn"]), (&json!(device), &json!(turn)));
            assert_eq!(stored["approval"]["device"], json!(device));
            assert_eq!(from_value::<Record>(stored).unwrap(), record);
        }
    }
}
