//! Parses third-party definitions of tools into the gateway's own form.
//!
//! Accepted are MCP definitions (`name`, `inputSchema`, extensions under `mentraExtensions`), the published mini-apps'
//! form (`id`, a map of `parameters`, `activationPhrases`) and the form of OpenAI's function calling, nested or flat.
//! Parts that cannot be represented are listed in a [`Report`]; errors name their JSON Pointer. All sizes are limited:
//! a definition may come from a hostile server.

mod activation;
mod export;
mod extensions;
pub(crate) mod fields;
mod shape;

use std::fmt;

use gateway_core::vocab::{ToolFlags, ToolSpec};
use serde_json::Value;
use thiserror::Error;

pub use export::to_mcp;
pub(crate) use export::{EXTENSIONS, extensions_of};
pub(crate) use extensions::rate_limit;

use crate::{
    limits::{
        DEFINITION_BYTES_MAX, DEFINITION_DEPTH_MAX, DESCRIPTION_BYTES_MAX, LOCAL_NAME_BYTES_MAX, NAME_BYTES_MAX,
        NOTES_MAX,
    },
    reply::cut,
    schema::{self, Schema},
    wording,
};
use fields::Fields;

/// The source of a definition, which determines the tool's full name: the prefix, a dot and the local name. A full name
/// is never split again: all parts may contain dots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming<'a> {
    /// A mini-app's, by package.
    App(&'a str),
    /// An MCP server's, by its name in the configuration.
    Server(&'a str),
    /// A capability's, by its name.
    Capability(&'a str),
    /// The full name is the local one.
    AsIs,
}

/// Why a definition was rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("tool '{tool}' at '{pointer}': {reason}")]
pub struct DefinitionError {
    /// The tool's name in the definition; `?` if there is none.
    pub tool: String,
    /// JSON Pointer (RFC 6901) into the definition.
    pub pointer: String,
    /// Description.
    pub reason: String,
}

/// The parts that could not be used. The tool works without them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// In the order in which it was found.
    pub notes: Vec<Note>,
}

/// A part that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// JSON Pointer into the definition.
    pub pointer: String,
    /// Description.
    pub reason: String,
}

impl Report {
    /// Whether every part was used.
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    fn note(&mut self, pointer: impl Into<String>, reason: impl Into<String>) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(Note { pointer: cut(&pointer.into(), NAME_BYTES_MAX), reason: reason.into() });
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, note) in self.notes.iter().enumerate() {
            let comma = if at > 0 { "; " } else { "" };
            write!(f, "{comma}'{}': {}", note.pointer, note.reason)?;
        }
        Ok(())
    }
}

/// Parses a definition: returns the tool under its full name, its source's own name for it, and the parts that could
/// not be used.
///
/// # Errors
/// A part of the definition is invalid or too large; nothing of it is used in that case.
pub fn read(value: &Value, naming: Naming<'_>) -> Result<(ToolSpec, String, Report), DefinitionError> {
    let tool = shape::name_of(value).map_or_else(|| "?".to_owned(), |name| cut(name, NAME_BYTES_MAX));
    let refuse =
        |pointer: &str, reason: String| DefinitionError { tool: tool.clone(), pointer: pointer.to_owned(), reason };
    // Depth is checked first: everything after it may recurse.
    schema::check_depth_within(value, DEFINITION_DEPTH_MAX).map_err(|violation| refuse("", violation.reason))?;
    let bytes = value.to_string().len();
    if bytes > DEFINITION_BYTES_MAX {
        return Err(refuse("", format!("{bytes} bytes; at most {DEFINITION_BYTES_MAX} are accepted")));
    }

    let mut report = Report::default();
    let mut parts = shape::take_apart(&tool, value, &mut report)?;
    let local_name = parts.name;
    if local_name.is_empty() || local_name.len() > LOCAL_NAME_BYTES_MAX {
        return Err(refuse(&parts.name_at, format!("must have 1 to {LOCAL_NAME_BYTES_MAX} bytes")));
    }
    let name = full_name(&local_name, naming);
    if name.len() > NAME_BYTES_MAX {
        let reason = format!("the full name {name} has {} bytes; at most {NAME_BYTES_MAX} are accepted", name.len());
        return Err(refuse(&parts.name_at, reason));
    }
    if !name.ends_with(&local_name) {
        report.note(&parts.name_at, format!("is offered as {name}: other characters are not accepted in names"));
    }
    Schema::compile(&parts.input_schema)
        .map_err(|violation| refuse(&format!("{}{}", parts.input_at, violation.pointer), violation.reason))?;
    if let Some((schema, pointer)) = &parts.output_schema {
        Schema::compile_any(schema)
            .map_err(|violation| refuse(&format!("{pointer}{}", violation.pointer), violation.reason))?;
    }

    let mut spec = ToolSpec {
        description: describe([&parts.description, &parts.title], [&local_name, &name], &mut report),
        title: parts
            .title
            .map(|title| wording::plain(&title))
            .filter(|title| !title.is_empty())
            .map(|title| cut(&title, LOCAL_NAME_BYTES_MAX)),
        name,
        input_schema: parts.input_schema,
        output_schema: parts.output_schema.map(|(schema, _)| schema),
        flags: parts.flags,
        ..ToolSpec::default()
    };
    extensions::apply(&mut spec, &mut parts.places, &mut report)?;
    match naming {
        Naming::App(package) => {
            let wanted = spec.flags.requires_display || parts.published;
            let activate = extensions::activate(&mut parts.places)?.unwrap_or(wanted);
            spec.app = activate.then(|| package.to_owned());
        }
        Naming::Server(_) | Naming::Capability(_) | Naming::AsIs => {
            if extensions::activate(&mut parts.places)? == Some(true) {
                report.note("", "activateApp: only a mini-app's tool can start its app");
            }
        }
    }
    for pointer in parts.places.iter().flat_map(Fields::left_over) {
        report.note(pointer, "is not known here");
    }
    Ok((spec, local_name, report))
}

fn full_name(local_name: &str, naming: Naming<'_>) -> String {
    let clean = |text: &str| -> String {
        let ok = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
        text.chars().map(|c| if ok(c) { c } else { '_' }).collect()
    };
    match naming {
        Naming::App(prefix) | Naming::Server(prefix) | Naming::Capability(prefix) => {
            format!("{}.{}", clean(prefix), clean(local_name))
        }
        Naming::AsIs => clean(local_name),
    }
}

/// A description for the model: the definition's own, otherwise its title, otherwise its name as the source writes it, or as it is offered.
fn describe(given: [&Option<String>; 2], names: [&String; 2], report: &mut Report) -> String {
    // Invisible characters have been used to mislead models: they are removed.
    let visible = |text: &String| text.chars().filter(|c| !is_hidden(*c)).collect::<String>();
    let has_text = |text: &String| !text.trim().is_empty();
    let given = given.into_iter().flatten().inspect(|text| {
        if text.contains(is_hidden) {
            report.note("/description", "invisible characters were left out");
        }
    });
    let own = given.map(visible).find(has_text);
    let text = own.or_else(|| names.into_iter().map(visible).find(has_text)).unwrap_or_default();
    if text.len() > DESCRIPTION_BYTES_MAX {
        report.note("/description", format!("was cut to {DESCRIPTION_BYTES_MAX} bytes"));
    }
    cut(text.trim(), DESCRIPTION_BYTES_MAX)
}

/// Control characters, direction overrides and Unicode tags.
fn is_hidden(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Effects that an app, a server or the glasses declare for a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Changes nothing.
    pub read_only: bool,
    /// Destroys or publishes something.
    pub destructive: bool,
    /// The second of two equal calls changes nothing.
    pub idempotent: bool,
    /// Takes a long time.
    pub slow: bool,
}

impl Hints {
    /// The resulting flags, for all sources. A tool without hints may do anything, so its calls are recorded; a
    /// destructive one requires approval, whatever else it declares.
    pub fn flags(self) -> ToolFlags {
        let Self { destructive, slow, .. } = self;
        let read_only = self.read_only && !destructive;
        let idempotent = self.idempotent || read_only;
        let persistent = !read_only;
        ToolFlags {
            read_only,
            idempotent,
            destructive,
            requires_approval: destructive,
            persistent,
            slow,
            ..ToolFlags::default()
        }
    }
}

#[cfg(test)]
mod tests;
