//! What could not be stored.

use serde::{Deserialize, Serialize};

/// What could not be stored, of what the wearer takes for stored without having asked in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unkept {
    /// A photo that the wearer took by the button.
    Photo,
    /// Messages of the conversation: a restart forgets them.
    Messages,
}
