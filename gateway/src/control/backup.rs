//! Snapshots for backups, over the control socket.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    net::unix::OwnedWriteHalf,
};

use super::{Answer, admin::Admin, reply::say};

/// How long a client may use a snapshot: 6 GiB of photos, written to a slow stick and read back.
const USED_MAX: Duration = Duration::from_secs(2 * 60 * 60);

/// Makes a snapshot, and removes it when the client disconnects or the gateway stops.
pub(super) async fn serve(
    mut read: impl AsyncRead + Unpin,
    mut write: OwnedWriteHalf,
    admin: &Arc<Admin>,
    device_keys: bool,
) -> Result<()> {
    let made = async {
        let _alone = admin.eraser.running.alone().await?;
        admin.backups.snapshot(device_keys).await
    };
    let snapshot = match made.await {
        Ok(snapshot) => snapshot,
        Err(error) => return say(&mut write, &Answer::Error { message: format!("{error:#}") }).await,
    };
    let told = say(&mut write, &Answer::Snapshot { left_out: snapshot.left_out.clone() }).await;
    if told.is_ok() {
        tokio::select! {
            // The client sends nothing more: any read is its end.
            _ = read.read_u8() => {}
            () = admin.services.admission.stop.cancelled() => {}
            () = tokio::time::sleep(USED_MAX) => tracing::warn!("a backup took too long; its snapshot is removed"),
        }
    }
    snapshot.end().await;
    told
}
