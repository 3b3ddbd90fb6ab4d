//! The state of the gateway and of the box that it runs on, as the tools tell it.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ports::PortError;

/// The gateway and its box in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemStatus {
    /// Version of the gateway.
    pub version: String,
    /// Seconds since its start.
    pub uptime_s: u64,
    /// What does not work.
    pub problems: Vec<Problem>,
    /// Devices in a session.
    pub sessions: usize,
    /// Processor cores.
    pub cores: usize,
    /// Load averages over one, five and fifteen minutes, if the system tells them.
    pub load: Option<[f64; 3]>,
    /// Memory, if the system tells it.
    pub memory: Option<MemoryUse>,
    /// Space for the data folder, if the system tells it.
    pub disk: Option<DiskUse>,
    /// Bytes of the store.
    pub data_bytes: Option<u64>,
    /// Temperature of the processor in degrees Celsius, where the board tells it.
    pub temperature_c: Option<f64>,
}

/// Something that does not work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The part: `gateway`, `users`, `disk`, `store`, `descriptors` or `erasures`.
    pub part: String,
    /// Why, and what to do.
    pub why: String,
}

/// Memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// Of the box.
    pub total_bytes: u64,
    /// That programs can still get.
    pub available_bytes: u64,
    /// Of the gateway's process: resident.
    pub gateway_bytes: u64,
}

/// Space on the disk of the data folder, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUse {
    /// Free for the gateway.
    pub free_bytes: u64,
    /// All of it.
    pub total_bytes: u64,
}

/// All that is told. The lists have the fields of `lorgnette status --json`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SystemState {
    /// The gateway and its box in numbers.
    pub status: SystemStatus,
    /// Who is connected.
    pub sessions: Vec<Value>,
    /// Where the gateway listens.
    pub transports: Vec<Value>,
    /// The MCP servers behind it.
    pub servers: Vec<Value>,
    /// What is bounded: an object with uses, queues, and what was dropped or refused.
    pub limits: Value,
}

/// The state of the gateway.
#[async_trait]
pub trait System: Send + Sync {
    /// At this moment.
    async fn state(&self) -> Result<SystemState, PortError>;
}
