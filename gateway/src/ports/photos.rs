//! Photos in the data folder, for the tools.

use std::sync::Arc;

use async_trait::async_trait;
use tools::{memory::Photos, ports::PortError};

use crate::photos::Gallery;

/// The photos of all users.
pub(crate) struct StoredPhotos(pub Arc<Gallery>);

#[async_trait]
impl Photos for StoredPhotos {
    async fn delete_last(&self, user: &str, since_wall_ms: i64) -> Result<bool, PortError> {
        match self.0.delete_last(user, since_wall_ms).await {
            Ok(deleted) => deleted.map_err(PortError::Failed),
            Err(_too_many) => Err(PortError::Unavailable("too much waits for the disk".to_owned())),
        }
    }
}
