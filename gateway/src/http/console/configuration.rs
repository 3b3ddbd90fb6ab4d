//! The configuration: what differs from the defaults, what each key means, and the file itself.

use std::{
    collections::BTreeMap,
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use axum::{
    Extension, Router,
    extract::State,
    response::Response,
    routing::{get, post},
};
use maud::{Markup, html};
use toml::{
    Spanned, Table as Keys, Value,
    de::{DeTable, DeValue},
};
use tools::credentials;

use super::{
    Pages,
    layout::{self, badge},
    table::Table,
    visit::Visit,
};
use crate::{control::Request, runtime::on_own_thread};

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
/// Keys of MCP servers: any of their values may be a credential, and viewers see none.
const OF_SERVERS: &str = "mcp.servers.";

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
    let shown = |key: &str, value: &Value| shown(key, value, visit.is_operator());
    let differing = own.iter().filter(|(key, value)| defaults.get(*key) != Some(*value)).map(|(key, value)| {
        let default = defaults.get(key).map_or_else(|| "none".to_owned(), |value| shown(key, value));
        let meaning = meanings.get(key.as_str()).cloned().unwrap_or_default();
        vec![
            layout::name(key),
            html! { code { (shown(key, value)) } },
            html! { code { (default) } },
            html! { (meaning) },
        ]
    });
    let all = defaults.iter().map(|(key, default)| {
        let value = own.get(key).unwrap_or(default);
        vec![
            layout::name(key),
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
    // Not the whole error, which quotes the line: it may have a secret in it.
    let keys: Keys = toml::from_str(text).map_err(|error| {
        let before = text.get(..error.span().map_or(0, |place| place.start)).unwrap_or_default();
        format!("line {}: {}", before.matches('\n').count() + 1, error.message())
    })?;
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
fn shown(key: &str, value: &Value, is_operator: bool) -> String {
    let is_named = may_be_secret(key) && matches!(value, Value::String(_) | Value::Array(_));
    let is_closed = !is_operator && key.starts_with(OF_SERVERS);
    if is_named || is_closed || credentials::may_be_in(&texts(value)) {
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

/// The texts in a value, in their order: those of a list are the arguments of a program, maybe.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// As [`texts`], of a value with its place in the file.
fn texts_there(value: &Spanned<DeValue<'_>>) -> Vec<String> {
    match value.get_ref() {
        DeValue::String(text) => vec![text.to_string()],
        DeValue::Array(items) => items.iter().flat_map(texts_there).collect(),
        _ => Vec::new(),
    }
}

/// The file without the values that may be secret.
fn redacted(text: &str) -> String {
    // A file that cannot be read as one shows why, and nothing of itself.
    let Ok(keys) = DeTable::parse(text) else { return HIDDEN.to_owned() };
    let mut places = Vec::new();
    hide_in("", keys.get_ref(), &mut places);
    places.sort_by_key(|place| place.start);
    let (mut shown, mut end) = (String::new(), 0);
    for place in places {
        shown.push_str(text.get(end..place.start).unwrap_or_default());
        shown.push_str(HIDDEN);
        // With the comment behind it, which may have another one.
        let rest = text.get(place.end..).unwrap_or_default().lines().next().unwrap_or_default();
        end = end.max(if rest.contains('#') { place.end + rest.len() } else { place.end });
    }
    shown.push_str(text.get(end..).unwrap_or_default());
    shown
}

/// Collects the places of the values that may be secret.
fn hide_in(before: &str, keys: &DeTable<'_>, places: &mut Vec<Range<usize>>) {
    for (key, value) in keys {
        let key = key.get_ref();
        let path = if before.is_empty() { key.to_string() } else { format!("{before}.{key}") };
        hide(&path, value, places);
    }
}

fn hide(key: &str, value: &Spanned<DeValue<'_>>, places: &mut Vec<Range<usize>>) {
    match value.get_ref() {
        DeValue::Table(keys) => hide_in(key, keys, places),
        // Of tables that are entries, the values are hidden, not the whole list.
        DeValue::Array(items) if items.iter().any(|item| item.get_ref().is_table()) => {
            items.iter().for_each(|item| hide(key, item, places));
        }
        _ if may_be_secret(key) || credentials::may_be_in(&texts_there(value)) => places.push(value.span()),
        _ => {}
    }
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
        let text = "# a comment\nname = \"x\"\n[model]\nkey_env = \"VARIABLE\"\nmax_tokens = 5\napi_key = \"hush\" # hush\n\
                    headers = { x-team = \"hush\" }\nextra = { token = \"hush\" }\n[mcp.servers.a]\nurl = \"u\"\n\
                    env = { A = \"hush\" }\n[mcp.servers.b.env]\nANY = \"hush\"\nlist = [\n  \"hush\",\n]\nlists = [\n  [\"x\"],\n  \
                    [\"y\"]\n]\nmore = \"hush\"\n[mcp.servers.c]\nargs = [\"-y\", \"--token\", \"hush\"]\n\
                    more = [ # a pair\n  \"--pwd\",\n  \"hush\"\n]\n\
                    url = \"https://h/mcp?pass=hush\"\nbroken = \"http://u:hush@h:${PORT}\"\ncwd = \"here\"\n\
                    [\"s t\"]\nwords = \"\"\"\nno = such\n\"\"\"\nkeys = \"\"\"\na = hush\n# hush\n\"\"\"\n[store]\n\
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
            "cwd = \"here\"",
        ] {
            assert!(told.lines().any(|line| line == kept), "{kept} in {told}");
        }
        for (key, value) in values(text).unwrap() {
            assert!(!shown(&key, &value, true).contains("hush"), "{key}");
        }
    }

    #[test]
    fn viewers_see_no_value_of_an_mcp_server() {
        let value = Value::String("plain".to_owned());
        let of_server = |is_operator| shown("mcp.servers.a.url", &value, is_operator);
        assert_eq!((of_server(false), of_server(true)), (HIDDEN.to_owned(), "\"plain\"".to_owned()));
        assert_eq!(shown("name", &value, false), "\"plain\"");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_not_quoted() {
        let why = values("name = \"x\"\napi_key = \"hush\n").unwrap_err();
        assert!(why.starts_with("line ") && !why.contains("hush"), "{why}");
    }
}
