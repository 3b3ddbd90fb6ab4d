//! What the process before this one has left to be told, where no session goes on with it: it is told on the user's next device.

use std::{sync::Arc, time::Duration};

use gateway_core::{conversation::restart_told_elsewhere, vocab::LostCall};
use tokio_util::sync::CancellationToken;
use tools::registry::Registry;

use super::{known, restart::RestoredTurn, services::Services};
use crate::ports::journal::{self, UnknownCall};

/// Waits until no device can go on with its session any more, and has told what is left of them then.
pub(crate) async fn tell_left(services: Arc<Services>, stop: CancellationToken) {
    let stored = &services.resumption.stored;
    let waiting = tokio::time::sleep(Duration::from_micros(stored.left_us()));
    if stop.run_until_cancelled(waiting).await.is_none() {
        return;
    }
    for (user, left) in stored.expire(&services.store, |device| services.roster.get(device).is_some()) {
        tell(&services, (user.as_str(), None), left);
    }
}

/// The last session of this device does not go on, and nothing is asked again. Returns whether nothing is left to be told.
pub(super) fn tell_left_of(services: &Services, user: &str, device: &str) -> bool {
    let left = services.resumption.stored.give_up(device, user);
    left.is_none_or(|left| tell(services, (user, Some(device)), left))
}

/// Calls of which a wearer is told that their outcome is unknown. `device`: the one that it is told on, if that is known.
pub(super) fn lost_calls(
    registry: &Registry,
    (user, device): (&str, Option<&str>),
    unknown: &[UnknownCall],
) -> Vec<LostCall> {
    let title = |tool: &String| known::title(registry, (user, device), tool);
    let lost = |call: &UnknownCall| LostCall { title: title(&call.tool), done: call.done.iter().map(title).collect() };
    unknown.iter().map(lost).collect()
}

/// Returns whether the user's task has taken it.
fn tell(services: &Services, of: (&str, Option<&str>), RestoredTurn { unknown, asked, .. }: RestoredTurn) -> bool {
    let (user, _) = of;
    let text = restart_told_elsewhere(&lost_calls(&services.registry, of, &unknown), !asked.is_empty());
    if !services.users.undelivered(user, text) {
        tracing::warn!(user, "what a restart has cut off is not told: the user's task does not take it");
        return false;
    }
    // The next process need not tell it.
    journal::wearer_told(&services.store, user, &unknown);
    for question in &asked {
        services.executor.give_up(user, question);
    }
    true
}
