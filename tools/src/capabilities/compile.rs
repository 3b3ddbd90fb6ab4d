//! The compiler: functions in, modules out. The same functions, in whatever order, give the same modules.

use std::collections::{BTreeMap, HashMap};

use gateway_core::vocab::RateLimit;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    declarations,
    input::{Function, Origin, SourceKind},
    layout::Layout,
    names, stub, text,
};
use crate::{limits::VERSION_BYTES_MAX, reply::cut, source::About};

/// The version of modules whose source has none, followed by the beginning of the schemas' hash.
const NO_VERSION: &str = "0.0.0-h";

/// The modules for one list of tools.
#[derive(Clone, Debug, Default)]
pub struct Bundle {
    /// Sorted by specifier.
    modules: Vec<Module>,
    /// Module and function by the tool's full name.
    places: HashMap<String, (usize, String)>,
}

/// A module for programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Module {
    /// What a program imports: `@capabilities/train-schedule`.
    pub specifier: String,
    /// TypeScript declarations.
    pub d_ts: String,
    /// JavaScript, an ES module.
    pub js: String,
    /// JSON Schemas of parameters and results, by function.
    pub schema: Value,
    /// What is known about it.
    pub meta: Meta,
    /// The first sentence about it, on one line; may be empty.
    pub summary: String,
}

/// What is known about a module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Its name, the last part of the specifier. One path segment on every file system.
    pub name: String,
    /// The capability's version; other sources have `0.0.0-h` and the beginning of the schemas' hash. One path segment.
    pub version: String,
    /// The kind of its source.
    pub source: SourceKind,
    /// SHA-256 of the schemas.
    pub schema_sha256: String,
    /// Its functions, by their names in programs.
    pub functions: BTreeMap<String, FunctionMeta>,
    /// What holds for all functions together.
    pub policy: Policy,
}

/// What is known about a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionMeta {
    /// Full name of the tool.
    pub tool: String,
    /// Whether the wearer is asked before each call.
    pub requires_approval: bool,
    /// How often one user may call it.
    pub rate_limit: Option<RateLimit>,
}

/// What holds for all functions of a module together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// How often one user may call them.
    pub rate_limit: Option<RateLimit>,
}

impl Bundle {
    /// All modules, sorted by specifier.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// The module of this specifier.
    pub fn module(&self, specifier: &str) -> Option<&Module> {
        let at = self.modules.binary_search_by(|module| module.specifier.as_str().cmp(specifier)).ok()?;
        self.modules.get(at)
    }

    /// The full name of the tool behind a function of a module.
    pub fn tool(&self, specifier: &str, function: &str) -> Option<&str> {
        Some(&self.module(specifier)?.meta.functions.get(function)?.tool)
    }

    /// Module and function of a tool.
    pub fn place(&self, tool: &str) -> Option<(&Module, &str)> {
        let (at, function) = self.places.get(tool)?;
        Some((self.modules.get(*at)?, function))
    }
}

/// Compiles functions. Of several with the same full name one is taken.
pub fn compile(functions: &[Function]) -> Bundle {
    let mut groups: BTreeMap<(SourceOrder, String), BTreeMap<&str, &Function>> = BTreeMap::new();
    let mut by_tool: BTreeMap<&str, &Function> = BTreeMap::new();
    for function in functions {
        let kept = by_tool.entry(&function.spec.name).or_insert(function);
        if !std::ptr::eq(*kept, function) && precedes(function, kept) {
            *kept = function;
        }
    }
    for (tool, function) in by_tool {
        groups.entry(key(function)).or_default().insert(tool, function);
    }
    let wanted: Vec<(String, String)> =
        groups.iter().filter_map(|((_, full), tools)| Some((slug(tools.values().next()?), full.clone()))).collect();
    let slugs = names::tell_apart(&wanted, '-');
    let mut modules: Vec<Module> =
        groups.values().zip(slugs).map(|(tools, slug)| module(&Layout::of(slug, tools))).collect();
    modules.sort_by(|a, b| a.specifier.cmp(&b.specifier));
    let places = modules.iter().enumerate().flat_map(|(at, module)| {
        module.meta.functions.iter().map(move |(name, function)| (function.tool.clone(), (at, name.clone())))
    });
    let places = places.collect();
    Bundle { modules, places }
}

/// Which of two functions of the same name is taken, whatever the order of the input.
fn precedes(one: &Function, other: &Function) -> bool {
    let text = |function: &Function| {
        let spec = &function.spec;
        let schemas = [Some(&spec.input_schema), spec.output_schema.as_ref()];
        let small = schemas.map(|schema| schema.filter(|schema| declarations::is_small(schema)).map(Value::to_string));
        (key(function), function.local_name.clone(), spec.description.clone(), small)
    };
    text(one) < text(other)
}

/// Sorts sources by their kind.
type SourceOrder = u8;

/// The module that a function belongs to: its source in full.
fn key(function: &Function) -> (SourceOrder, String) {
    match &function.origin {
        Origin::Tool => (0, format!("tool:{}", function.spec.name)),
        Origin::Capability(about) => (1, format!("capability:{}", about.name)),
        Origin::Mcp(name) => (2, format!("mcp:{name}")),
        Origin::App(package) => (3, format!("app:{package}")),
        Origin::Device(id) => (4, format!("device:{id}")),
    }
}

/// The wanted name of a function's module.
fn slug(function: &Function) -> String {
    match &function.origin {
        Origin::Tool => names::slug(&function.spec.name),
        Origin::Capability(about) => names::slug(&about.name),
        Origin::Mcp(name) => names::slug(&format!("mcp {name}")),
        Origin::App(package) => names::slug(&format!("app {package}")),
        Origin::Device(_) => "device".to_owned(),
    }
}

fn module(layout: &Layout<'_>) -> Module {
    let schema = schema(layout);
    let schema_sha256 = names::hex(schema.to_string().as_bytes());
    let about = layout.functions.values().find_map(|function| match &function.origin {
        Origin::Capability(about) => Some(About::clone(about)),
        _ => None,
    });
    let version = match &about {
        Some(about) => segment(&about.version),
        None => format!("{NO_VERSION}{}", schema_sha256.get(..8).unwrap_or_default()),
    };
    let functions = layout.functions.iter().map(|(name, function)| {
        let (tool, rate_limit) = (function.spec.name.clone(), function.spec.rate_limit);
        let meta = FunctionMeta { tool, requires_approval: function.spec.flags.requires_approval, rate_limit };
        (name.clone(), meta)
    });
    let meta = Meta {
        name: layout.name.clone(),
        version,
        source: layout.functions.values().next().map_or(SourceKind::Tool, |function| function.origin.kind()),
        schema_sha256,
        functions: functions.collect(),
        policy: Policy { rate_limit: about.as_ref().and_then(|about| about.rate_limit) },
    };
    let specifier = layout.specifier.clone();
    let first = layout.functions.values().next().map_or("", |function| function.spec.description.as_str());
    let summary = match (&about, &layout.object) {
        (Some(about), _) => text::first_sentence(&about.description),
        // A single tool.
        (None, None) => text::first_sentence(first),
        (None, Some(_)) => String::new(),
    };
    Module { specifier, d_ts: declarations::render(layout), js: stub::render(layout), schema, meta, summary }
}

/// A version as one segment of a path.
fn segment(version: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let clean: String = cut(version, VERSION_BYTES_MAX).chars().map(|c| if legal(c) { c } else { '-' }).collect();
    if clean.starts_with(|c: char| c.is_ascii_digit()) { clean } else { format!("0-{clean}") }
}

/// The schemas as they are; those that are too large are left out.
fn schema(layout: &Layout<'_>) -> Value {
    let mut functions = Map::new();
    for (name, function) in &layout.functions {
        let mut schemas = Map::new();
        let both =
            [("parameters", Some(&function.spec.input_schema)), ("returns", function.spec.output_schema.as_ref())];
        for (key, schema) in both {
            if let Some(schema) = schema.filter(|schema| declarations::is_small(schema)) {
                schemas.insert(key.to_owned(), schema.clone());
            }
        }
        functions.insert(name.clone(), schemas.into());
    }
    json!({"module": layout.specifier, "functions": functions})
}
