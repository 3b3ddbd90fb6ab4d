//! The section `[store]`.

use serde::Deserialize;
use toml::Spanned;

use crate::problems::{Problems, unwritten};

/// The section as configured.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawStore {
    size_max_mib: Spanned<usize>,
}

impl Default for RawStore {
    fn default() -> Self {
        Self { size_max_mib: unwritten(1024) }
    }
}

/// Limits of the store.
#[derive(Clone, Copy, Debug)]
pub struct StoreSettings {
    /// Largest size on disk, in MiB.
    pub size_max_mib: usize,
}

impl RawStore {
    /// Checks the section.
    pub(crate) fn check(&self, problems: &mut Problems<'_>) -> StoreSettings {
        StoreSettings { size_max_mib: problems.between(&self.size_max_mib, "store.size_max_mib", 4..=65_536) }
    }
}
