//! The configuration: what differs from the defaults, what each key means, and the file itself.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use axum::{
    Extension, Router,
    extract::State,
    response::Response,
    routing::{get, post},
};
use maud::{Markup, html};
use toml::{Table as Keys, Value};

use super::{
    Pages,
    guard::Visit,
    layout::{self, badge},
    table::Table,
};
use crate::{
    control::{Request, admin::Reloaded},
    runtime::on_own_thread,
};

const PATH: &str = "/console/configuration";
const RELOAD: &str = "/console/configuration/reload";
/// Longest file that is shown: the example has a twentieth.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// What stands in place of values that may be secret.
const HIDDEN: &str = "(not shown)";
/// Parts of keys whose values may be secret. Keys belong into variables and files of their own; people err.
const SECRET: [&str; 6] = ["key", "token", "secret", "password", "headers", "env"];
/// Keys that have such a part and are none: names of variables and files, and numbers.
const HARMLESS: [&str; 5] = ["key_env", "key_file", "max_tokens", "thinking_tokens", "tokens_per_turn"];

pub(super) fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(show)).route(RELOAD, post(reload))
}

async fn show(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let file = pages.console.file.clone();
    let text = match file.clone() {
        Some(file) => on_own_thread(move || read(&file)).await.unwrap_or_else(|error| Err(error.to_string())),
        None => Ok(String::new()),
    };
    let content = match text {
        Ok(text) => written(&visit, file.as_ref(), &text, pages.console.example),
        Err(why) => layout::unavailable(Err(why)),
    };
    layout::page(
        &pages,
        &visit,
        "Configuration",
        PATH,
        &html! {
            p.soft { "The file as it is on the disk now. Changes in it count after a reload or a restart." }
            @if visit.is_operator() && file.is_some() { (layout::button(&visit, RELOAD, "Reload", &[])) }
            (content)
        },
    )
}

fn read(file: &Path) -> Result<String, String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", file.display());
    if fs::metadata(file).map_err(wrong)?.len() > FILE_BYTES_MAX {
        return Err(format!("{} is longer than {FILE_BYTES_MAX} bytes", file.display()));
    }
    fs::read_to_string(file).map_err(wrong)
}

fn written(visit: &Visit, file: Option<&PathBuf>, text: &str, example: &str) -> Markup {
    let (own, defaults) = (values(text), values(example));
    let own = match own {
        Ok(own) => own,
        Err(why) => return layout::unavailable(Err(why)),
    };
    let defaults = defaults.unwrap_or_default();
    let meanings = meanings(example);
    let differing = own.iter().filter(|(key, value)| defaults.get(*key) != Some(*value)).map(|(key, value)| {
        let default = defaults.get(key).map_or_else(|| "none".to_owned(), |value| shown(key, value));
        let meaning = meanings.get(key.as_str()).cloned().unwrap_or_default();
        vec![
            html! { code { (key) } },
            html! { code { (shown(key, value)) } },
            html! { code { (default) } },
            html! { (meaning) },
        ]
    });
    let all = defaults.iter().map(|(key, default)| {
        let value = own.get(key).unwrap_or(default);
        vec![
            html! { code { (key) } },
            html! { code { (shown(key, value)) } " " @if value != default { (badge("warn", "differs")) } },
            html! { (meanings.get(key.as_str()).cloned().unwrap_or_default()) },
        ]
    });
    html! {
        h2 { "What differs from the defaults" }
        (Table::new("Differences", &["Key", "Value", "Default", "Meaning"])
            .rows(differing)
            .or("Nothing: the defaults apply."))
        details {
            summary { "All keys with a default" }
            (Table::new("All keys", &["Key", "Value", "Meaning"]).rows(all))
        }
        @match file {
            Some(file) if visit.is_operator() => {
                h2 { "The file" }
                p.soft { code { (file.display()) } ", without values that may be secret" }
                pre tabindex="0" aria-label="The file" { (redacted(text)) }
            }
            Some(_) => p.soft { "Only operators see the file itself." },
            None => p.soft { "The gateway was started without a file." },
        }
    }
}

/// Values by their keys, such as `hearing.wake_phrases`.
fn values(text: &str) -> Result<BTreeMap<String, Value>, String> {
    let keys: Keys = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut found = BTreeMap::new();
    collect("", keys, &mut found);
    Ok(found)
}

fn collect(before: &str, keys: Keys, found: &mut BTreeMap<String, Value>) {
    for (key, value) in keys {
        let key = if before.is_empty() { key } else { format!("{before}.{key}") };
        match value {
            Value::Table(keys) => collect(&key, keys, found),
            value => {
                found.insert(key, value);
            }
        }
    }
}

/// The comments in front of the keys of the example.
fn meanings(example: &str) -> BTreeMap<String, String> {
    let (mut meanings, mut section, mut comment) = (BTreeMap::new(), String::new(), String::new());
    for line in example.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = format!("{name}.");
            comment.clear();
        } else if let Some(words) = line.strip_prefix('#') {
            // Keys without a default are written as comments.
            let key = words.trim().split(" = ").next().filter(|key| words.contains(" = ") && is_key(key));
            match key {
                Some(key) => {
                    meanings.insert(format!("{section}{key}"), std::mem::take(&mut comment));
                }
                None => {
                    let space = if comment.is_empty() { "" } else { " " };
                    comment.push_str(space);
                    comment.push_str(words.trim());
                }
            }
        } else if let Some((key, _)) = line.split_once(" = ") {
            meanings.insert(format!("{section}{key}"), std::mem::take(&mut comment));
        } else {
            comment.clear();
        }
    }
    meanings
}

fn is_key(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// A value, unless it may be secret.
fn shown(key: &str, value: &Value) -> String {
    if may_be_secret(key) && matches!(value, Value::String(_) | Value::Array(_)) {
        return HIDDEN.to_owned();
    }
    match value {
        Value::Array(items) if items.iter().any(Value::is_table) => format!("{} entries", items.len()),
        value => value.to_string(),
    }
}

fn may_be_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let is_harmless = HARMLESS.iter().any(|harmless| key.rsplit('.').next() == Some(harmless));
    !is_harmless && SECRET.iter().any(|part| key.contains(part))
}

/// The file's lines, without the values of those that may have a secret: whole lines, since values may be tables.
fn redacted(text: &str) -> String {
    let mut redaction = Redaction::default();
    text.lines().map(|line| redaction.line(line)).collect::<Vec<_>>().join("\n")
}

/// What the lines so far say about the next one.
#[derive(Default)]
struct Redaction {
    /// All values of the section.
    section: bool,
    /// The value that began last.
    value: bool,
    /// A string of several lines is open.
    in_text: bool,
    /// Brackets of that value that are open.
    open: usize,
}

impl Redaction {
    fn line(&mut self, line: &str) -> String {
        let continues = self.in_text;
        self.in_text ^= (line.matches("\"\"\"").count() + line.matches("'''").count()) % 2 == 1;
        let trimmed = line.trim();
        if !continues && (trimmed.is_empty() || trimmed.starts_with('#')) {
            return line.to_owned();
        }
        let is_name = |word: &str| is_key(&word.replace(['"', '\'', ' '], ""));
        let assigned = line.split_once('=').filter(|(key, _)| !continues && is_name(key));
        let brackets = |line: &str| (line.matches('[').count(), line.matches(']').count());
        if let Some((key, value)) = assigned {
            let (opened, closed) = brackets(value);
            self.open = opened.saturating_sub(closed);
            // In a table that is written in one line, any key may be the one.
            self.value = self.section || may_be_secret(key.trim()) || (line.contains('{') && may_be_secret(line));
            return if self.value { format!("{key}= {HIDDEN}") } else { line.to_owned() };
        }
        let name = trimmed.trim_matches(['[', ']']);
        // A list of one text within an open list looks like a name in quotes.
        let is_item = self.open > 0 && name.contains(['"', '\'']);
        if !continues && trimmed.starts_with('[') && is_name(name) && !is_item {
            (self.section, self.value, self.open) = (may_be_secret(name), false, 0);
            return line.to_owned();
        }
        let (opened, closed) = brackets(trimmed);
        self.open = (self.open + opened).saturating_sub(closed);
        // It belongs to the value that began before.
        self.value |= may_be_secret(line);
        if self.value { HIDDEN.to_owned() } else { line.to_owned() }
    }
}

/// What a reload has done, in words.
pub(super) fn told(reloaded: &Reloaded) -> String {
    if reloaded.applied.is_empty() && reloaded.needs_restart.is_empty() {
        return "nothing has changed in the configuration".to_owned();
    }
    let applied = reloaded.applied.iter().map(|key| format!("{key}: counts for sessions that begin from now on"));
    let waiting = reloaded.needs_restart.iter().map(|key| format!("{key}: needs a restart"));
    applied.chain(waiting).collect::<Vec<_>>().join("\n")
}

async fn reload(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    pages.act(&visit, Request::Reload, PATH).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_comments_in_front_of_them() {
        let example = "# About the file.\n\n# Its name.\nname = \"x\"\n[model]\n# What\n# it is.\nkind = 1\n# A key.\n# key_env = \"X\"\nother = 2\n";
        let meanings = meanings(example);
        let of = |key: &str| meanings.get(key).map(String::as_str);
        assert_eq!((of("name"), of("model.kind")), (Some("Its name."), Some("What it is.")));
        assert_eq!((of("model.key_env"), of("model.other")), (Some("A key."), Some("")));
    }

    #[test]
    fn every_default_of_the_real_example_is_explained_or_stands_below_one_that_is() {
        let example = include_str!("../../config/example.toml");
        let (values, meanings) = (values(example).unwrap(), meanings(example));
        assert!(values.len() > 50, "{}", values.len());
        assert!(values.keys().all(|key| meanings.contains_key(key)), "{values:?}");
        let told = meanings.get("listen.console").unwrap();
        assert!(told.contains("one-time link"), "{told}");
    }

    #[test]
    fn what_may_be_secret_is_not_shown() {
        let text = "# a comment\nname = \"x\"\n[model]\nkey_env = \"VARIABLE\"\nmax_tokens = 5\napi_key = \"hush\"\n\
                    headers = { x-team = \"hush\" }\nextra = { token = \"hush\" }\n[mcp.servers.a]\nurl = \"u\"\n\
                    env = { A = \"hush\" }\n[mcp.servers.b.env]\nANY = \"hush\"\nlist = [\n  \"hush\",\n]\nlists = [\n  [\"x\"],\n  \
                    [\"y\"]\n]\nmore = \"hush\"\n[\"s t\"]\nwords = \"\"\"\nno = such\n\"\"\"\nkeys = \"\"\"\na = hush\n# hush\n\"\"\"\n[store]\n\
                    size = 1\n";
        let told = redacted(text);
        assert!(!told.contains("hush"), "{told}");
        for kept in [
            "# a comment",
            "name = \"x\"",
            "key_env = \"VARIABLE\"",
            "max_tokens = 5",
            "url = \"u\"",
            "size = 1",
            "no = such",
        ] {
            assert!(told.lines().any(|line| line == kept), "{kept} in {told}");
        }
        for (key, value) in values(text).unwrap() {
            assert!(!shown(&key, &value).contains("hush"), "{key}");
        }
    }
}
