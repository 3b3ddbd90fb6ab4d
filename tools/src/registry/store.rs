//! Where the tools of apps and servers outlive a restart.

use gateway_core::vocab::ToolSpec;
use serde::{Deserialize, Serialize};

use crate::{
    ports::PortError,
    source::{Scope, Source},
};

/// What one source offered in one scope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredSet {
    /// Whose tools they are.
    pub source: Source,
    /// To whom.
    pub scope: Scope,
    /// The tools, each with the name that its source knows it by.
    pub tools: Vec<(ToolSpec, String)>,
}

/// Keeps what apps and servers offer. The gateway stores it.
pub trait CatalogueStore: Send + Sync {
    /// Everything that is kept.
    ///
    /// # Errors
    /// It cannot be read.
    fn load(&self) -> Result<Vec<StoredSet>, PortError>;
    /// Keeps a set in place of what its source offered in this scope before. It does not wait: what
    /// is lost is asked for again at the next start.
    fn save(&self, set: StoredSet);
    /// Drops what a source offered in a scope.
    fn forget(&self, source: &Source, scope: &Scope);
}
