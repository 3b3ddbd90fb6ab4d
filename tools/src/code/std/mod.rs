//! The standard library of programs: the module `@lorgnette/std` in JavaScript, and the functions behind it that need
//! the gateway. docs/code.md lists them with their limits.
//!
//! Start with [`StdHost`]. [`policy`] is what an operator allows; `files`, `http`, `crypto` and `time` are the
//! functions.

mod address;
mod crypto;
mod files;
mod host;
mod http;
pub mod policy;
mod record;
mod time;
mod values;

pub use host::StdHost;
pub(super) use host::{as_tool_error, changes, has_effect};
pub use http::HttpClientError;
pub use policy::{StdConfig, StdPolicy};
pub use record::StdCaller;

/// The module's specifier.
pub const MODULE: &str = "@lorgnette/std";
/// Another specifier of the same module.
pub const MODULE_ALIAS: &str = "@agent-spaces/std";
/// The declarations of the module.
pub const DECLARATIONS: &str = include_str!("std.d.ts");

/// The module in the index of all.
pub(super) const STD_LINE: &str = "@lorgnette/std: fs, http, json, csv, crypto, time\n";

/// The module and its alias with their JavaScript, as [`super::Program::modules`] wants them.
pub fn modules() -> [(String, String); 2] {
    [
        (MODULE.to_owned(), include_str!("std.js").to_owned()),
        (MODULE_ALIAS.to_owned(), format!("export * from '{MODULE}';\n")),
    ]
}

/// Whether calls of this module are for [`StdHost`].
pub fn is_std(module: &str) -> bool {
    matches!(module, MODULE | MODULE_ALIAS)
}
