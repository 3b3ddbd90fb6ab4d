//! Persistent storage for the tools of apps and servers.

use gateway_core::vocab::ToolSpec;
use serde::{Deserialize, Serialize};

use crate::{
    ports::PortError,
    source::{Scope, Source},
};

/// The tools of one source in one scope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredSet {
    /// Who provides them.
    pub source: Source,
    /// Who is offered them.
    pub scope: Scope,
    /// The tools, each with its source's own name for it.
    pub tools: Vec<(ToolSpec, String)>,
}

/// Stores the tools of apps and servers, and the revision. The gateway implements it.
pub trait CatalogueStore: Send + Sync {
    /// All stored sets.
    ///
    /// # Errors
    /// The store cannot be read.
    fn load(&self) -> Result<Vec<StoredSet>, PortError>;
    /// Stores a set in place of the previous one of its source and scope. It does not wait: data that are lost are
    /// requested again at the next start.
    fn save(&self, set: StoredSet);
    /// The last revision that was ever reserved; 0: none.
    ///
    /// # Errors
    /// The store cannot be read.
    fn last_revision(&self) -> Result<u64, PortError>;
    /// Stores that all revisions up to this one are reserved. It does not wait.
    fn reserve_revisions(&self, last: u64);
    /// Removes the tools of a source in a scope.
    fn forget(&self, source: &Source, scope: &Scope);
}
