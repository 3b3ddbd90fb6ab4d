//! Ports behind which there is nothing, for tools that ask for nothing.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use gateway::ports::stores::SystemClock;
use gateway_core::vocab::{ApprovalOutcome, Due, OpenEntry, ScheduleEntry, ScheduleKind, ToolCall, ToolResult, Turn};
use tokio_util::sync::CancellationToken;
use tools::ports::{
    Consent, ConsentRequest, Decision, DeviceCall, DeviceStatus, NoApps, Note, Notes, PortError, Ports, Schedule, Style,
};

/// Nothing stands behind these ports; the tools of this bench ask for nothing.
struct Nobody;

#[async_trait]
impl Schedule for Nobody {
    async fn add(&self, _: &str, _: Due, _: ScheduleKind) -> Result<ScheduleEntry, PortError> {
        Err(PortError::Unavailable(String::new()))
    }
    async fn list(&self, _: &str) -> Result<Vec<OpenEntry>, PortError> {
        Ok(Vec::new())
    }
    async fn remove(&self, _: &str, _: u64) -> Result<Option<ScheduleEntry>, PortError> {
        Ok(None)
    }

    async fn extend(&self, _: &str, _: u64, _: u64) -> Result<Option<ScheduleEntry>, PortError> {
        Ok(None)
    }
}

#[async_trait]
impl Notes for Nobody {
    async fn add(&self, _: &str, _: &str) -> Result<Note, PortError> {
        Err(PortError::Unavailable(String::new()))
    }
    async fn list(&self, _: &str, _: usize) -> Result<Vec<Note>, PortError> {
        Ok(Vec::new())
    }
    async fn search(&self, _: &str, _: &str, _: usize) -> Result<Vec<Note>, PortError> {
        Ok(Vec::new())
    }
    async fn delete(&self, _: &str, _: u64) -> Result<Option<Note>, PortError> {
        Ok(None)
    }
    async fn clear(&self, _: &str) -> Result<usize, PortError> {
        Ok(0)
    }
}

#[async_trait]
impl DeviceCall for Nobody {
    async fn call(&self, _: &str, _: Option<Turn>, _: ToolCall, _: Duration, _: CancellationToken) -> ToolResult {
        ToolResult::default()
    }
    fn status(&self, _: &str) -> Option<DeviceStatus> {
        None
    }
}

#[async_trait]
impl Consent for Nobody {
    async fn ask(&self, _: ConsentRequest, _: CancellationToken) -> Decision {
        ApprovalOutcome::Denied.into()
    }
}

/// All of them.
pub fn ports() -> Ports {
    let nobody = Arc::new(Nobody);
    Ports {
        schedule: nobody.clone(),
        notes: nobody.clone(),
        device: nobody.clone(),
        consent: nobody,
        apps: Arc::new(NoApps),
        memory: tools::memory::Memory::default(),
        clock: Arc::new(SystemClock),
        style: Style::default(),
    }
}
