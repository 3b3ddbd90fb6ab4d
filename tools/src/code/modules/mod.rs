//! The modules that a caller's programs can import, and what a model is told of them before it asks.
//!
//! A model that calls tools by programs only is not offered the tools: the context of each of its requests names the
//! modules instead. If all names fit, the text changes with the tools only, and a provider's prefix cache stays valid.
//! Otherwise those are named that the router ranks first for the wearer's words, and the rest is counted.

use ::std::{collections::BTreeSet, fmt::Write as _, sync::Arc};

use gateway_core::vocab::{ClientClass, Message, Part};

use super::{
    names::{API, RUN, is_code},
    std::STD_LINE,
};
use crate::{
    capabilities::{Bundle, Cache, Module, SourceKind},
    executor::Executor,
    registry::RunContext,
    request_context::{ModuleList, is_offered},
    router::{Query, Router},
};

/// Bytes of the names of all functions up to which all modules are named.
const ALL_BYTES_MAX: usize = 2_400;
/// Functions that are named of those that the words speak for: about as many as a router offers tools.
const RANKED_MAX: usize = 12;
/// Bytes of the names of functions of one module: with more, the rest is counted, and its declarations tell them.
const NAMES_BYTES_MAX: usize = 160;
/// Turns of the wearer whose programs' modules stay named, before the current one.
const TURNS_KEPT: usize = 2;

const HEADING: &str = "Modules for code.run:\n";
const SINGLE: &str = "@capabilities/NAME, one function each: ";
const FOLDER: &str = "@capabilities/";

/// The modules for what callers may call, compiled once for equal tools.
#[derive(Default)]
pub struct Modules {
    compiled: Cache,
    router: Router,
}

impl Modules {
    /// All that the caller of this tool may import.
    pub(super) fn of(&self, context: &RunContext) -> Arc<Bundle> {
        self.compiled.bundle(&context.offered, &context.offered.specs)
    }

    /// Compiles ahead what the assistant of this user may import on this device: [`told`](Self::told) then takes
    /// microseconds.
    pub fn prepare(&self, executor: &Executor, user: &str, device: &str) {
        self.told(executor, user, device, &[]);
    }

    /// What the assistant is told of the modules, for the last words in these messages. `None`: it may run no programs.
    pub fn told(&self, executor: &Executor, user: &str, device: &str, messages: &[Message]) -> Option<ModuleList> {
        let (_, specs) = executor.offered(user, Some(device), ClientClass::Internal);
        if !is_offered(&specs, RUN) {
            return None;
        }
        let snapshot = executor.registry().snapshot(user, Some(device));
        let bundle = self.compiled.bundle(&snapshot, &specs);
        // A program has no use for those that are for the model itself.
        let is_told = |module: &&Module| !module.meta.functions.values().any(|function| is_code(&function.tool));
        let modules: Vec<&Module> = bundle.modules().iter().filter(is_told).collect();
        let functions = modules.iter().flat_map(|module| module.meta.functions.keys());
        if functions.map(String::len).sum::<usize>() <= ALL_BYTES_MAX {
            let all = list(modules.iter().map(|module| (*module, Vec::new())));
            return Some(ModuleList { text: format!("{HEADING}{STD_LINE}{all}"), is_whole: true });
        }
        let ranked = self.router.rank(&specs, &Query::of(messages));
        let ranked = ranked.iter().filter_map(|(at, _)| specs.get(*at)).filter(|spec| !is_code(&spec.name));
        let ranked = ranked.filter_map(|spec| bundle.place(&spec.name));
        let mut named: Vec<(&Module, Vec<&str>)> = Vec::new();
        for specifier in imported(messages, &bundle) {
            named.extend(bundle.module(&specifier).map(|module| (module, Vec::new())));
        }
        for (module, function) in ranked.take(RANKED_MAX) {
            match named.iter_mut().find(|(known, _)| known.specifier == module.specifier) {
                Some((_, functions)) => functions.push(function),
                None => named.push((module, vec![function])),
            }
        }
        let rest = modules.len().saturating_sub(named.len());
        let mut text = format!("{HEADING}{STD_LINE}{}", list(named.into_iter()));
        // Writing to a string cannot fail.
        let _written = writeln!(text, "and {rest} more modules; {API} lists all");
        Some(ModuleList { text, is_whole: false })
    }
}

/// These modules, of which each comes with the functions to be named first. A module with one function takes a name
/// only, since the function's name follows from it.
fn list<'a>(modules: impl Iterator<Item = (&'a Module, Vec<&'a str>)>) -> String {
    let (mut out, mut singles) = (String::new(), Vec::new());
    for (module, first) in modules {
        let functions = &module.meta.functions;
        match single(module) {
            Some(name) => singles.push(name),
            None => {
                let others = functions.keys().map(String::as_str).filter(|name| !first.contains(name));
                line(&mut out, module, first.iter().copied().chain(others));
            }
        }
    }
    if !singles.is_empty() {
        out.push_str(SINGLE);
        out.push_str(&together(&singles));
        out.push('\n');
    }
    out
}

/// Names, those with the same first word together: "clock-time, note-{add,list}".
fn together(names: &[&str]) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for name in names {
        let (first, rest) = name.split_once('-').unwrap_or((name, ""));
        let of_first = |(known, all): &&mut (&str, Vec<&str>)| *known == first && !all.contains(&"");
        match groups.iter_mut().find(of_first) {
            Some((_, all)) if !rest.is_empty() => all.push(rest),
            _ => groups.push((first, vec![rest])),
        }
    }
    let written = groups.iter().map(|(first, rest)| match rest.as_slice() {
        [""] => (*first).to_owned(),
        [one] => format!("{first}-{one}"),
        all => format!("{first}-{{{}}}", all.join(",")),
    });
    written.collect::<Vec<_>>().join(", ")
}

/// The name of a module of one function, if the function's name is the same in camel case.
fn single(module: &Module) -> Option<&str> {
    let name = module.specifier.strip_prefix(FOLDER).filter(|_| module.meta.source == SourceKind::Tool)?;
    let mut camel = String::new();
    for letter in name.chars() {
        match (letter, camel.ends_with('-')) {
            (letter, true) => {
                camel.pop();
                camel.push(letter.to_ascii_uppercase());
            }
            (letter, false) => camel.push(letter),
        }
    }
    module.meta.functions.keys().eq([&camel]).then_some(name)
}

fn line<'a>(out: &mut String, module: &Module, names: impl Iterator<Item = &'a str>) {
    out.push_str(&module.specifier);
    out.push_str(": ");
    let (begins, count) = (out.len(), module.meta.functions.len());
    for (at, name) in names.enumerate() {
        if at > 0 && out.len() - begins + name.len() > NAMES_BYTES_MAX {
            let _written = write!(out, " and {} more", count - at);
            break;
        }
        if at > 0 {
            out.push_str(", ");
        }
        out.push_str(name);
    }
    out.push('\n');
}

/// The modules that programs of the last turns have imported. Those of the current one do not count: within a turn the
/// text stays the same.
fn imported(messages: &[Message], bundle: &Bundle) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut turns = 0;
    for message in messages.iter().rev() {
        for part in &message.parts {
            if turns > 0
                && let Part::ToolCall { call } = part
                && call.name == RUN
                && let Some(source) = call.arguments.get("code").and_then(|code| code.as_str())
            {
                // Specifiers stand in quotes.
                let quoted = source.split(['\'', '"', '`']).filter(|text| text.starts_with(FOLDER));
                found.extend(quoted.filter(|text| bundle.module(text).is_some()).take(RANKED_MAX).map(str::to_owned));
            }
        }
        turns += usize::from(message.is_wearers());
        if turns > TURNS_KEPT {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests;
