//! What could not be stored.

use serde::{Deserialize, Serialize};

/// Something that could not be stored, though the wearer assumes that it was and did not ask for it in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unkept {
    /// A photo that the wearer took by the button.
    Photo,
    /// Messages of the conversation: a restart forgets them.
    Messages,
}
