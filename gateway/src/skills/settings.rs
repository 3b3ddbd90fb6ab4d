//! The section `[skills]`, which needs no check.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The folders with skills.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SkillSettings {
    /// Folders in addition to the one in the data folder.
    pub folders: Vec<PathBuf>,
}

impl SkillSettings {
    /// Has relative paths start at this folder: that of the configuration, wherever the process was started.
    pub(crate) fn start_at(&mut self, folder: &Path) {
        for path in &mut self.folders {
            *path = folder.join(&*path);
        }
    }

    /// All folders, the one in the data folder first.
    pub fn all(&self, data_dir: &Path) -> Vec<PathBuf> {
        std::iter::once(data_dir.join("skills")).chain(self.folders.iter().cloned()).collect()
    }
}
