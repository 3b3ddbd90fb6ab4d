//! Turn references, carried by every effect and every result.

use serde::{Deserialize, Serialize};

/// One exchange between wearer and assistant, and the attempt at it.
///
/// `id` is unique within a device's session; `revision` grows when the same turn is restarted. The agent drops what
/// refers to another turn than its current one. Utterances and speech have references of their own, by which floor and
/// playout drop what is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Turn {
    /// Number of the turn, from 1.
    pub id: u32,
    /// Attempt within the turn, from 0.
    pub revision: u16,
}
