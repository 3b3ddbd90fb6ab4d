//! The configuration that is there already.

use std::path::{Path, PathBuf};

use crate::config::{self, Config};

/// What setting up keeps of it.
#[derive(Debug, Default)]
pub(super) struct Present {
    /// Where the data and the models are, as far as it says.
    pub(super) folders: Option<(PathBuf, PathBuf)>,
    /// It has what a package brings: the example with folders of its own. Nothing of an operator is lost with it.
    pub(super) is_as_installed: bool,
}

/// Keys that a package sets.
const FOLDERS: [&str; 2] = ["data_dir", "models_dir"];

impl Present {
    /// Reads it; `None`: there is none.
    pub(super) fn read(file: &Path) -> Option<Self> {
        if !file.exists() {
            return None;
        }
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let valid = config::check(&text, &file.display().to_string()).ok();
        let folders = match valid {
            Some(Config { data_dir, models_dir, .. }) => Some((data_dir, models_dir)),
            None => written(&text),
        };
        Some(Self { folders, is_as_installed: values(&text).is_some_and(|own| Some(own) == values(config::EXAMPLE)) })
    }
}

/// The folders of a configuration that is not valid, if both stand in it.
fn written(text: &str) -> Option<(PathBuf, PathBuf)> {
    let values: toml::Table = text.parse().ok()?;
    let [data, models] = FOLDERS.map(|key| values.get(key).and_then(toml::Value::as_str).map(PathBuf::from));
    data.zip(models)
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
        assert!(Present::read(&file).is_none());
        std::fs::write(&file, text).unwrap();
        Present::read(&file).unwrap()
    }

    #[test]
    fn what_a_package_brings_is_nobodys_work() {
        let installed = format!("data_dir = \"/var/lib/x\"\nmodels_dir = \"/srv/models\"\n{}", config::EXAMPLE);
        let present = read(&installed);
        assert!(present.is_as_installed);
        assert_eq!(present.folders, Some(("/var/lib/x".into(), "/srv/models".into())));
        let changed = read(&format!("name = \"Hearth\"\n{}", installed.replace("\nname = ", "\n# name = ")));
        assert!(!changed.is_as_installed && changed.folders.is_some());
        let invalid = read(&installed.replace("\nname = ", "\nunknown = "));
        assert!(!invalid.is_as_installed && invalid.folders == present.folders);
        let broken = read("name = ");
        assert!(!broken.is_as_installed && broken.folders.is_none());
    }
}
