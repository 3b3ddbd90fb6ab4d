//! The section `[skills]`, which is used as it is written.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Where skills are looked for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SkillSettings {
    /// Folders beside the one in the data folder.
    pub folders: Vec<PathBuf>,
}

impl SkillSettings {
    /// All folders, that in the data folder first.
    pub fn all(&self, data_dir: &Path) -> Vec<PathBuf> {
        std::iter::once(data_dir.join("skills")).chain(self.folders.iter().cloned()).collect()
    }
}
