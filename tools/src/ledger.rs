//! Who called what, when, for how long, and how it ended. Never with what arguments.

use std::collections::BTreeMap;

use gateway_core::vocab::{AnsweredBy, ApprovalOutcome, ClientClass, ErrorCode};
use serde::{Deserialize, Serialize};

/// One call of a persistent tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When it began, in milliseconds since the Unix epoch.
    pub wall_ms: i64,
    /// Whose call.
    pub user: String,
    /// The device on which it was wished for.
    pub device: String,
    /// Who asked.
    pub client: ClientClass,
    /// Number of the turn.
    pub turn: u32,
    /// Full name of the tool.
    pub tool: String,
    /// Who provides it, as [`crate::source::Source`] is written.
    pub source: String,
    /// How long it took, questions included, in milliseconds.
    pub took_ms: u64,
    /// How it failed, where it did.
    pub error: Option<ErrorCode>,
    /// Whether the wearer was asked.
    pub asked: bool,
    /// What came of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
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
    /// By whom, and how.
    pub by: AnsweredBy,
    /// The device that was asked; empty: none.
    pub device: String,
    /// When it was made, in milliseconds since the Unix epoch.
    pub wall_ms: i64,
    /// How long that took, in milliseconds.
    pub took_ms: u64,
}

/// Keeps records. The gateway stores them.
pub trait Ledger: Send + Sync {
    /// Keeps a record. It does not wait and does not fail: a full disk must not stop a call that
    /// was already made.
    fn record(&self, record: Record);
}

/// What one tool was used for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Full name.
    pub tool: String,
    /// Calls in all.
    pub calls: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that the wearer was asked about.
    #[serde(default)]
    pub asked: u64,
    /// Those of them that were agreed to.
    #[serde(default)]
    pub approved: u64,
    /// Time in all, in milliseconds.
    pub took_ms: u64,
    /// Bytes in and out.
    pub bytes: u64,
    /// When it was last called, in milliseconds since the Unix epoch.
    pub last_wall_ms: i64,
}

/// Sums up records by tool, in the order of names.
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
