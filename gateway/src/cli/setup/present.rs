//! The configuration that is there already.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::config;

/// What setting up keeps of it.
#[derive(Debug, Default)]
pub(super) struct Present {
    /// Where the data and the models are, as far as it says. What it leaves out follows from who runs the gateway.
    pub(super) folders: (Option<PathBuf>, Option<PathBuf>),
    /// It has what a package brings: the example with folders of its own. Nothing of an operator is lost with it.
    pub(super) is_as_installed: bool,
}

/// Keys that a package sets.
const FOLDERS: [&str; 2] = ["data_dir", "models_dir"];

impl Present {
    /// Reads it; `None`: there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn read(file: &Path) -> Result<Option<Self>> {
        let text = match fs::read_to_string(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("reading {}", file.display()))?,
        };
        let is_as_installed = values(&text).is_some_and(|own| Some(own) == values(config::EXAMPLE));
        Ok(Some(Self { folders: folders(&text), is_as_installed }))
    }
}

/// The folders that stand in a configuration, be it valid or not.
fn folders(text: &str) -> (Option<PathBuf>, Option<PathBuf>) {
    let values: toml::Table = text.parse().unwrap_or_default();
    let [data, models] = FOLDERS.map(|key| values.get(key).and_then(toml::Value::as_str).map(PathBuf::from));
    (data, models)
}

/// All values but the folders.
fn values(text: &str) -> Option<toml::Table> {
    let mut values: toml::Table = text.parse().ok()?;
    FOLDERS.iter().for_each(|key| drop(values.remove(*key)));
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Present {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        assert!(Present::read(&file).unwrap().is_none());
        fs::write(&file, text).unwrap();
        Present::read(&file).unwrap().unwrap()
    }

    #[test]
    fn what_a_package_brings_is_nobodys_work() {
        let installed = format!("data_dir = \"/var/lib/x\"\nmodels_dir = \"/srv/models\"\n{}", config::EXAMPLE);
        let present = read(&installed);
        assert!(present.is_as_installed);
        assert_eq!(present.folders, (Some("/var/lib/x".into()), Some("/srv/models".into())));
        let changed = read(&format!("name = \"Hearth\"\n{}", installed.replace("\nname = ", "\n# name = ")));
        assert!(!changed.is_as_installed && changed.folders == present.folders);
        let invalid = read(&installed.replace("\nname = ", "\nunknown = "));
        assert!(!invalid.is_as_installed && invalid.folders == present.folders);
        let broken = read("name = ");
        assert!(!broken.is_as_installed && broken.folders == (None, None));
        // The example itself says nothing of folders.
        let example = read(config::EXAMPLE);
        assert!(example.is_as_installed && example.folders == (None, None));
    }
}
