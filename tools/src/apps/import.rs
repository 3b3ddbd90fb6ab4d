//! Parses the manifest of a mini-app: TOML, or the `app_config.json` / `tpa_config.json` of a published app. Field
//! names are compared without case and underscores, so that `public_url` and `publicUrl` are the same.

use std::{collections::BTreeSet, fmt};

use gateway_core::vocab::AppKind;
use reqwest::Url;
use serde_json::{Map, Value};

use super::manifest::{App, AppTool, CONVERSATION_HISTORY, CallShape};
use crate::{
    arguments::clean,
    definition::{self, Naming},
    limits::{DESCRIPTION_BYTES_MAX, NAME_BYTES_MAX},
    registry,
    reply::cut,
};

/// Bytes of a manifest: the largest published ones have about 20 KiB.
pub const MANIFEST_BYTES_MAX: usize = 512 * 1024;
/// Bytes of a package: it is a key of the gateway's store.
const PACKAGE_BYTES_MAX: usize = 64;
/// Bytes of a name: it is spoken, and fills a line of a display.
const APP_NAME_BYTES_MAX: usize = 64;
/// Tools of one app: a model reads all of them on every turn.
const TOOLS_MAX: usize = 128;
/// Settings of one app: a user would not look through more.
const SETTINGS_MAX: usize = 128;
/// Permissions and requirements of one app: there are about ten of each.
const LIST_MAX: usize = 32;
/// Maximum problems reported at once.
const PROBLEMS_MAX: usize = 20;

const PERMISSIONS: [&str; 9] = [
    "MICROPHONE",
    "LOCATION",
    "BACKGROUND_LOCATION",
    "CALENDAR",
    "CAMERA",
    "READ_NOTIFICATIONS",
    "POST_NOTIFICATIONS",
    "ALL",
    CONVERSATION_HISTORY,
];
const HARDWARE: [&str; 8] = ["CAMERA", "DISPLAY", "MICROPHONE", "SPEAKER", "IMU", "BUTTON", "LIGHT", "WIFI"];

/// Values that the operator gives in addition to the manifest; they take precedence.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Its unique name.
    pub package: Option<String>,
    /// What the wearer says to start it.
    pub name: Option<String>,
    /// How it shares the glasses.
    pub kind: Option<String>,
    /// Permissions in addition to those that the manifest requests.
    pub permissions: Vec<String>,
    /// Base URL of the app's server.
    pub public_url: Option<String>,
    /// SHA-256 of the app's key in hexadecimal digits.
    pub api_key_sha256: String,
}

/// A problem in a manifest, and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key, with its path: `tools/2/parameters`.
    pub key: String,
    /// What is wrong and how to fix it.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.reason)
    }
}

/// Parses a manifest: returns the app, and the parts of the manifest that are not used.
///
/// # Errors
/// All problems of the manifest, up to a limit.
pub fn read(text: &str, given: &Given) -> Result<(App, Vec<Problem>), Vec<Problem>> {
    let one = |key: &str, reason: String| vec![Problem { key: key.to_owned(), reason }];
    if text.len() > MANIFEST_BYTES_MAX {
        let reason = format!("{} bytes; at most {MANIFEST_BYTES_MAX} are accepted", text.len());
        return Err(one("manifest", reason));
    }
    let value: Value = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| one("manifest", format!("no JSON: {error}")))?
    } else {
        toml::from_str(text).map_err(|error| one("manifest", format!("neither JSON nor TOML: {error}")))?
    };
    let Value::Object(map) = value else {
        return Err(one("manifest", "must be an object with the app's name, tools and address".to_owned()));
    };
    let mut reader = Reader { map: &map, taken: BTreeSet::new(), problems: Vec::new(), notes: Vec::new() };
    let mut app = reader.app(given);
    reader.left_over();
    app.lost = reader.notes.iter().map(ToString::to_string).collect();
    if reader.problems.is_empty() { Ok((app, reader.notes)) } else { Err(reader.problems) }
}

struct Reader<'a> {
    map: &'a Map<String, Value>,
    taken: BTreeSet<&'a str>,
    problems: Vec<Problem>,
    notes: Vec<Problem>,
}

impl<'a> Reader<'a> {
    fn app(&mut self, given: &Given) -> App {
        let package = self.package(given);
        let name = self.name(&package, given);
        let description = self.text(&["description"], DESCRIPTION_BYTES_MAX);
        App {
            description: if description.is_empty() { format!("The mini-app {name}.") } else { description },
            name,
            version: self.text(&["version"], APP_NAME_BYTES_MAX),
            public_url: self.public_url(given),
            api_key_sha256: given.api_key_sha256.clone(),
            kind: self.kind(given),
            permissions: self.permissions(given),
            settings: self.settings(),
            hardware_required: self.hardware(),
            tools: self.tools(&package),
            shape: self.shape(),
            users: Vec::new(),
            lost: Vec::new(),
            package,
        }
    }

    fn package(&mut self, given: &Given) -> String {
        let written = self.text(&["packageName", "package"], usize::MAX);
        let package = given.package.clone().unwrap_or(written);
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if package.is_empty() {
            self.problem("packageName", "is missing; add it, or give --package com.example.app");
        } else if package.len() > PACKAGE_BYTES_MAX || !package.chars().all(fits) {
            let reason = format!("must be 1 to {PACKAGE_BYTES_MAX} letters, digits, '.', '_' or '-'");
            self.problem("packageName", reason);
        }
        package
    }

    fn name(&mut self, package: &str, given: &Given) -> String {
        let written = self.text(&["name"], APP_NAME_BYTES_MAX);
        let name = given.name.as_deref().map_or(written, clean);
        if name.is_empty() {
            self.problem("name", "is missing; it is what the wearer says to start the app: add it, or give --name");
            return package.to_owned();
        }
        if name.len() > APP_NAME_BYTES_MAX {
            self.problem("name", format!("has {} bytes; at most {APP_NAME_BYTES_MAX} are accepted", name.len()));
        }
        name
    }

    fn public_url(&mut self, given: &Given) -> String {
        let written = self.text(&["publicUrl", "url"], usize::MAX);
        let text = given.public_url.clone().unwrap_or(written);
        if text.is_empty() {
            self.problem("publicUrl", "is missing; give --url http://HOST:PORT, where the app's server answers");
            return text;
        }
        match check_url(&text) {
            Ok(url) => url,
            Err(reason) => {
                self.problem("publicUrl", format!("'{}' {reason}", cut(&text, NAME_BYTES_MAX)));
                text
            }
        }
    }

    fn kind(&mut self, given: &Given) -> AppKind {
        let written = self.text(&["appType", "kind"], usize::MAX);
        match given.kind.as_deref().unwrap_or(&written).to_lowercase().as_str() {
            "" | "standard" | "foreground" => AppKind::Foreground,
            "background" => AppKind::Background,
            "system_dashboard" | "dashboard" => AppKind::Dashboard,
            other => {
                let reason = format!("'{}' is no kind; there are standard, background, system_dashboard", short(other));
                self.problem("appType", reason);
                AppKind::Foreground
            }
        }
    }

    fn shape(&mut self) -> CallShape {
        match self.text(&["toolCall"], usize::MAX).to_lowercase().as_str() {
            "" | "published" => CallShape::Published,
            "mcp" => CallShape::Mcp,
            other => {
                let reason = format!("'{}' is no shape of a call; there are published and mcp", short(other));
                self.problem("toolCall", reason);
                CallShape::Published
            }
        }
    }

    fn permissions(&mut self, given: &Given) -> Vec<String> {
        let mut permissions = Vec::new();
        for kind in &given.permissions {
            let kind = kind.to_ascii_uppercase();
            if PERMISSIONS.contains(&kind.as_str()) {
                permissions.push(kind);
            } else {
                let reason = format!("'{}' is no permission; there are {}", short(&kind), PERMISSIONS.join(", "));
                self.problem("permissions", reason);
            }
        }
        for (at, item) in self.list("permissions", LIST_MAX) {
            match kind_of(item) {
                Some(kind) if PERMISSIONS.contains(&kind.as_str()) => permissions.push(kind),
                _ => self.note(&at, format!("is not known and not granted; known are {}", PERMISSIONS.join(", "))),
            }
        }
        permissions.sort();
        permissions.dedup();
        permissions
    }

    fn hardware(&mut self) -> Vec<String> {
        let mut hardware = Vec::new();
        for key in ["hardwareRequirements", "hardware"] {
            for (at, item) in self.list(key, LIST_MAX) {
                let level = item.get("level").and_then(Value::as_str).unwrap_or("REQUIRED");
                match kind_of(item) {
                    Some(_) if !level.eq_ignore_ascii_case("REQUIRED") => {}
                    Some(kind) if HARDWARE.contains(&kind.as_str()) => hardware.push(kind),
                    _ => self.problem(&at, format!("is no hardware; there are {}", HARDWARE.join(", "))),
                }
            }
        }
        hardware.sort();
        hardware.dedup();
        hardware
    }

    fn settings(&mut self) -> Vec<Value> {
        let mut settings = Vec::new();
        for (at, item) in self.list("settings", SETTINGS_MAX) {
            let kind = item.get("type").and_then(Value::as_str);
            // Titles and groups only structure the other settings.
            let keyed = !matches!(kind, Some("group" | "titleValue"));
            if kind.is_none() {
                self.problem(&at, "needs a `type`, such as toggle, text or select");
            } else if keyed && item.get("key").and_then(Value::as_str).is_none_or(str::is_empty) {
                self.problem(&at, "needs a `key`, by which the app asks for its value");
            } else {
                settings.push(item.clone());
            }
        }
        settings
    }

    fn tools(&mut self, package: &str) -> Vec<AppTool> {
        let mut tools: Vec<AppTool> = Vec::new();
        for (at, item) in self.list("tools", TOOLS_MAX) {
            let (spec, local_name, report) = match definition::read(item, Naming::App(package)) {
                Ok(read) => read,
                Err(error) => {
                    self.problem(&format!("{at}{}", error.pointer), format!("tool '{}': {}", error.tool, error.reason));
                    continue;
                }
            };
            for note in report.notes {
                self.note(&format!("{at}{}", note.pointer), note.reason);
            }
            if let Err(error) = registry::check(&spec) {
                self.problem(&at, error.to_string());
            } else if tools.iter().any(|other| other.spec.name == spec.name) {
                self.problem(&at, format!("a second tool '{}'; names must differ", short(&local_name)));
            } else {
                tools.push(AppTool { local_name, spec });
            }
        }
        tools
    }

    fn take(&mut self, key: &str) -> Option<&'a Value> {
        let (key, value) = self.map.iter().find(|(other, _)| same(other, key))?;
        self.taken.insert(key);
        (!value.is_null()).then_some(value)
    }

    /// The first of these fields that exists, on one line.
    fn text(&mut self, keys: &[&str], bytes_max: usize) -> String {
        for key in keys {
            let Some(value) = self.take(key) else { continue };
            match value.as_str().map(clean) {
                Some(text) if text.len() > bytes_max => {
                    self.problem(key, format!("has {} bytes; at most {bytes_max} are accepted", text.len()));
                }
                Some(text) => return text,
                None => self.problem(key, "must be a text"),
            }
        }
        String::new()
    }

    fn list(&mut self, key: &str, max: usize) -> Vec<(String, &'a Value)> {
        let Some(value) = self.take(key) else { return Vec::new() };
        match value.as_array() {
            Some(items) if items.len() > max => {
                self.problem(key, format!("has {} entries; at most {max} are accepted", items.len()));
                Vec::new()
            }
            Some(items) => items.iter().enumerate().map(|(at, item)| (format!("{key}/{at}"), item)).collect(),
            None => {
                self.problem(key, "must be a list");
                Vec::new()
            }
        }
    }

    fn left_over(&mut self) {
        // Known fields that have no use in this gateway.
        const SILENT: [&str; 7] =
            ["logoURL", "webviewURL", "onboardingInstructions", "developerId", "organizationId", "isPublic", "$schema"];
        let unknown: Vec<&String> = self
            .map
            .keys()
            .filter(|key| !self.taken.contains(key.as_str()) && !SILENT.iter().any(|silent| same(key, silent)))
            .collect();
        for key in unknown {
            self.note(&short(key), "has no meaning here and was left out");
        }
    }

    fn problem(&mut self, key: &str, reason: impl Into<String>) {
        push(&mut self.problems, key, reason.into());
    }

    fn note(&mut self, key: &str, reason: impl Into<String>) {
        push(&mut self.notes, key, reason.into());
    }
}

fn push(list: &mut Vec<Problem>, key: &str, reason: String) {
    if list.len() < PROBLEMS_MAX {
        list.push(Problem { key: key.to_owned(), reason });
    }
}

/// `MICROPHONE`, or `{"type": "MICROPHONE", …}`.
fn kind_of(item: &Value) -> Option<String> {
    let kind = item.as_str().or_else(|| item.get("type")?.as_str())?;
    Some(kind.to_ascii_uppercase())
}

/// The URL without a trailing slash.
fn check_url(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| format!("is no address ({error}); write http://HOST:PORT"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err("is no web address; write http://HOST:PORT or https://HOST".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a name or password; the app is told its key by header".to_owned());
    }
    if let Some(base) =
        ["/webhook", "/tool"].iter().find_map(|path| url.as_str().trim_end_matches('/').strip_suffix(path))
    {
        return Err(format!("is one of the app's paths; the gateway puts them behind the server's address: {base}"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must end behind the path; leave out '?' and '#'".to_owned());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn same(a: &str, b: &str) -> bool {
    let plain = |text: &str| text.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect::<String>();
    plain(a) == plain(b)
}

fn short(text: &str) -> String {
    cut(text, NAME_BYTES_MAX)
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
