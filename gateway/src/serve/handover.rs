//! Hands over to the process of an upgrade.

use std::{future::Future, pin::pin, time::Duration};

use tokio::time::timeout;

use super::{GOODBYE_MS_MAX, Running};
use crate::{
    config::Config,
    transport::sockets::Sockets,
    upgrade::{Handover, Ready, SERVING_MAX},
};

/// How long an upgrade waits for turns to end, in milliseconds: most answers are over by then.
const QUIET_MS_MAX: u64 = 10_000;
/// How long the tasks may take to end and the store to close, in milliseconds, on a slow card.
const CLOSED_MS_MAX: u64 = 30_000;
/// How long it takes from the decision until the other process serves, at most.
pub(crate) const HANDOVER_MAX: Duration =
    Duration::from_millis(QUIET_MS_MAX + GOODBYE_MS_MAX + CLOSED_MS_MAX).saturating_add(SERVING_MAX);

impl Running {
    /// Waits a while for a moment without a turn, stops as [`Self::stop`] does, and lets the other process take over.
    /// When `end` completes meanwhile, both processes stop in order. If the other one fails, this gateway can be started
    /// again on the sockets, as it was.
    ///
    /// # Errors
    /// Why the other process does not serve; the sockets, and the configuration with what was reloaded.
    pub(crate) async fn be_replaced(
        self,
        Ready { next, alone: _alone }: Ready,
        end: impl Future<Output = ()>,
    ) -> Result<Handover, (anyhow::Error, Option<Sockets>, Box<Config>)> {
        let mut end = pin!(end);
        let sockets = self.sockets.try_clone().ok();
        let reloader = self.reloader.clone();
        let services = self.admin.services.clone();
        let mut is_to_end = tokio::select! {
            biased;
            () = &mut end => true,
            quiet = timeout(Duration::from_millis(QUIET_MS_MAX), services.telemetry.active_turns.none()) => {
                if quiet.is_err() {
                    tracing::info!("the upgrade interrupts a turn");
                }
                false
            }
        };
        // The store is closed before this returns, also where the end is wanted meanwhile.
        drop(services);
        let mut stopping = pin!(self.stop());
        if !is_to_end {
            is_to_end = tokio::select! {
                biased;
                () = &mut end => true,
                () = &mut stopping => false,
            };
            if !is_to_end {
                return next.go(end).await.map_err(|error| (error, sockets, Box::new(reloader.in_force())));
            }
        }
        stopping.await;
        next.end().await;
        Ok(Handover::Ended)
    }
}
