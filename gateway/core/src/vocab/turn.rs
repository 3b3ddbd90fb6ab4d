//! Turn references, carried by every effect and every result.

use serde::{Deserialize, Serialize};

/// One exchange between wearer and assistant, and the attempt at it.
///
/// `id` is unique within a device's session; `revision` grows when the same turn is restarted. A result whose reference
/// is not the current one is stale and discarded in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Turn {
    /// Number of the turn, from 1.
    pub id: u32,
    /// Attempt within the turn, from 0.
    pub revision: u16,
}
