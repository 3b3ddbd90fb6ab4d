//! The reference that every effect and every result carries.

use serde::{Deserialize, Serialize};

/// One exchange between wearer and assistant, and which attempt at it.
///
/// `id` is never used twice within a device's session; `revision` grows when the same turn is
/// restarted. A result whose reference is not the current one is stale and dies in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Turn {
    /// Number of the turn, from 1 on.
    pub id: u32,
    /// Attempt within the turn, from 0 on.
    pub revision: u16,
}
