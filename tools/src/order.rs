//! One after another: what changes something does not run beside another change of the same turn.
//!
//! A model may wish for several calls in one step. Those that only read run together; of those that
//! change something the second one may build on the first.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::OwnedMutexGuard;

use crate::call::CallContext;

/// User, device and turn.
type Of = (String, String, u32);

/// Turns in which something is being changed.
#[derive(Clone, Default)]
pub(crate) struct Order(Arc<Mutex<BTreeMap<Of, Arc<tokio::sync::Mutex<()>>>>>);

/// A call's time to run.
pub(crate) struct Slot {
    order: Order,
    of: Of,
    held: Option<OwnedMutexGuard<()>>,
}

impl Order {
    /// Waits until no other change of this turn runs. Calls that belong to no turn do not wait.
    pub(crate) async fn wait(&self, context: &CallContext) -> Option<Slot> {
        let of = (context.user.clone(), context.device.clone(), context.turn?.id);
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(turns.entry(of.clone()).or_default())
        };
        // Made before it waits, so that whoever is given up while waiting cleans up as well.
        let mut slot = Slot { order: self.clone(), of, held: None };
        slot.held = Some(turn.lock_owned().await);
        Some(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.held = None;
        let mut turns = self.order.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever waits holds a copy besides the map's.
        if turns.get(&self.of).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            turns.remove(&self.of);
        }
    }
}
