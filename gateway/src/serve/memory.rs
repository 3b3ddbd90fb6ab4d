//! When memory is given back to the system.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    roster::Roster,
    runtime::{heap, on_own_thread},
};

/// Behind the end of the last session its connection is closed, and its tasks end.
const BEHIND: Duration = Duration::from_millis(200);

/// Gives memory back at the start, and whenever the last session has ended: no wearer waits for an answer then.
pub(crate) async fn give_back(roster: Arc<Roster>, stop: CancellationToken) {
    let given_back = async {
        loop {
            if roster.is_empty() {
                drop(on_own_thread(heap::trim).await);
            }
            roster.emptied().await;
            tokio::time::sleep(BEHIND).await;
        }
    };
    stop.run_until_cancelled(given_back).await;
}
