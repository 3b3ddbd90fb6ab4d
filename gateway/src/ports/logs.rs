//! The stored log, for the tools of an operator's programs.

use async_trait::async_trait;
use tools::{
    inspection::logs::{LogFilter, LogPage, LogQuery, LogStats, Logs, Sight},
    ports::PortError,
};

use super::stores::port;
use crate::{
    store::Store,
    telemetry::log::{self, Error},
};

/// The stored log. The store knows whose devices are named in it.
pub struct StoredLogs {
    /// The log.
    pub logs: log::Logs,
    /// Pairings.
    pub store: Store,
}

impl StoredLogs {
    /// With the devices of its user.
    fn whole(&self, sight: Sight) -> Result<Sight, PortError> {
        let Sight::User { user, .. } = sight else { return Ok(Sight::Everybody) };
        let paired = self.store.disk().devices().map_err(port)?.into_iter();
        let devices = paired.filter(|(_, device)| device.user == user).map(|(id, _)| id).collect();
        Ok(Sight::User { user, devices })
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
        query.sight = self.whole(query.sight)?;
        self.logs.query(query).await.map_err(failed)
    }

    async fn stats(&self, sight: Sight) -> Result<LogStats, PortError> {
        match self.whole(sight)? {
            Sight::Everybody => self.logs.stats().map_err(failed),
            sight => self.logs.stats_of(sight).await.map_err(failed),
        }
    }

    async fn clear(&self, filter: LogFilter, sight: Sight) -> Result<u64, PortError> {
        self.logs.clear(filter, self.whole(sight)?).await.map_err(failed)
    }
}
