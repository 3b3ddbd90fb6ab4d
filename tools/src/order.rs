//! Serialises changes: a call that changes something does not run concurrently with another change of the same turn.
//!
//! A model may request several calls in one step. Read-only calls run concurrently; of those that change something,
//! the second may depend on the first.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::OwnedMutexGuard;

use crate::call::CallContext;

/// User, device and turn.
type Of = (String, Option<String>, u32);

/// Turns in which a change is running.
#[derive(Clone, Default)]
pub(crate) struct Order(Arc<Mutex<BTreeMap<Of, Arc<tokio::sync::Mutex<()>>>>>);

/// The permission of one call to run.
pub(crate) struct Slot {
    order: Order,
    of: Of,
    held: Option<OwnedMutexGuard<()>>,
}

impl Order {
    /// Waits until no other change of this turn runs. Calls that belong to no turn do not wait.
    pub(crate) async fn wait(&self, context: &CallContext) -> Option<Slot> {
        let of = (context.user.clone(), context.device.clone(), context.turn?.id);
        Some(self.wait_for(of).await)
    }

    /// Waits until no other change of this program runs: the changes of one program have an order of their own. The
    /// program itself holds the place in the order of the turn, for which its changes would wait for ever.
    pub(crate) async fn wait_in_program(&self) -> Slot {
        self.wait_for(Of::default()).await
    }

    async fn wait_for(&self, of: Of) -> Slot {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(turns.entry(of.clone()).or_default())
        };
        // Created before waiting, so that a call that is dropped while it waits cleans up as well.
        let mut slot = Slot { order: self.clone(), of, held: None };
        slot.held = Some(turn.lock_owned().await);
        slot
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.held = None;
        let mut turns = self.order.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Every waiting call holds a clone besides the map's.
        if turns.get(&self.of).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            turns.remove(&self.of);
        }
    }
}
