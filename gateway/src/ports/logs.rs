//! The stored log, for the tools of an operator's programs.

use async_trait::async_trait;
use tools::{
    inspection::logs::{LogFilter, LogPage, LogQuery, LogStats, Logs},
    ports::PortError,
};

use crate::telemetry::log::{self, Error};

/// The stored log.
pub struct StoredLogs(pub log::Logs);

fn port(error: Error) -> PortError {
    match error {
        Error::Busy | Error::Closed => PortError::Unavailable(error.to_string()),
        other => PortError::Failed(other.to_string()),
    }
}

#[async_trait]
impl Logs for StoredLogs {
    async fn query(&self, query: LogQuery) -> Result<LogPage, PortError> {
        self.0.query(query).await.map_err(port)
    }

    async fn stats(&self) -> Result<LogStats, PortError> {
        self.0.stats().map_err(port)
    }

    async fn clear(&self, filter: LogFilter) -> Result<u64, PortError> {
        self.0.clear(filter).await.map_err(port)
    }
}
