//! The names of a module: what it is imported as, the object that it exports, and its functions.

use std::collections::BTreeMap;

use super::{
    input::{Function, Origin},
    names,
};

/// Where a module is imported from: this, and its name.
const FOLDER: &str = "@capabilities/";

/// A module whose names are settled.
pub(super) struct Layout<'a> {
    pub(super) specifier: String,
    pub(super) name: String,
    /// The exported object with the functions; without one each is exported by itself.
    pub(super) object: Option<String>,
    /// By name.
    pub(super) functions: BTreeMap<String, &'a Function>,
}

impl<'a> Layout<'a> {
    /// Settles the names of a module's functions, by their tools' full names.
    pub(super) fn of(slug: String, tools: &BTreeMap<&str, &'a Function>) -> Self {
        let wanted: Vec<(String, String)> = tools
            .values()
            .map(|function| {
                let name = match &function.origin {
                    Origin::Tool => names::identifier(&function.spec.name),
                    Origin::Mcp(server) => names::without_prefix(&function.local_name, server),
                    _ => names::identifier(&function.local_name),
                };
                (name, function.spec.name.clone())
            })
            .collect();
        let functions = names::tell_apart(&wanted, '_').into_iter().zip(tools.values().copied()).collect();
        let object = tools.values().next().and_then(|function| object(&function.origin));
        Self { specifier: format!("{FOLDER}{slug}"), name: slug, object, functions }
    }
}

/// The object that a module exports.
fn object(origin: &Origin) -> Option<String> {
    match origin {
        Origin::Tool => None,
        Origin::Capability(about) => Some(names::identifier(&about.name)),
        Origin::Mcp(name) => Some(names::identifier(name)),
        // The last part of a package is what people call the app.
        Origin::App(package) => Some(names::identifier(package.rsplit('.').next().unwrap_or(package))),
        Origin::Device(_) => Some("device".to_owned()),
    }
}
