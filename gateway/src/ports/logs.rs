//! The stored log, for the tools of an operator's programs.

use async_trait::async_trait;
use tools::{
    inspection::logs::{LogFilter, LogPage, LogQuery, LogScope, LogStats, Logs},
    ports::PortError,
};

use super::stores::port;
use crate::{
    store::Store,
    telemetry::log::{self, Error},
};

/// The stored log. The store knows whose devices are named in it.
pub struct StoredLogs {
    /// What is read and cleared.
    pub logs: log::Logs,
    /// Pairings.
    pub store: Store,
}

impl StoredLogs {
    /// With the devices of its user.
    fn whole(&self, scope: LogScope) -> Result<LogScope, PortError> {
        let LogScope::User { user, .. } = scope else { return Ok(LogScope::Everybody) };
        let paired = self.store.disk().devices().map_err(port)?.into_iter();
        let devices = paired.filter(|(_, device)| device.user == user).map(|(id, _)| id).collect();
        Ok(LogScope::User { user, devices })
    }
}

fn failed(error: Error) -> PortError {
    match error {
        Error::Busy | Error::Closed => PortError::Unavailable(error.to_string()),
        other => PortError::Failed(other.to_string()),
    }
}

#[async_trait]
impl Logs for StoredLogs {
    async fn query(&self, mut query: LogQuery) -> Result<LogPage, PortError> {
        query.scope = self.whole(query.scope)?;
        self.logs.query(query).await.map_err(failed)
    }

    async fn stats(&self, scope: LogScope) -> Result<LogStats, PortError> {
        match self.whole(scope)? {
            LogScope::Everybody => self.logs.stats().map_err(failed),
            scope => self.logs.stats_of(scope).await.map_err(failed),
        }
    }

    async fn clear(&self, filter: LogFilter, scope: LogScope) -> Result<u64, PortError> {
        self.logs.clear(filter, self.whole(scope)?).await.map_err(failed)
    }
}
