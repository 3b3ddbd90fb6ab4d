//! Configuration of MCP servers: the common `mcpServers` form, validated once.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use gateway_core::vocab::ClientClass;
use serde::Deserialize;

use crate::{
    credentials::{Found, substitute},
    secret::{Secret, Secrets},
    source::{self, Scope},
};

/// Maximum length of a server's name: it is a prefix of each of its tools' names.
const NAME_BYTES_MAX: usize = 32;
/// Maximum number of servers: each is a process or a connection on a small machine.
pub const SERVERS_MAX: usize = 32;
/// Maximum timeout of a call, in milliseconds.
const TIMEOUT_MS_MAX: u32 = 120_000;

/// A server as configured. In a file of the common form, which many programs share, unknown keys are ignored with a log
/// message; in the gateway's own configuration they are errors.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RawServer {
    /// Program to start; it communicates over its standard input and output.
    pub command: Option<String>,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Its environment, in addition to a few variables such as PATH and HOME.
    pub env: BTreeMap<String, String>,
    /// Its working directory.
    pub cwd: Option<PathBuf>,
    /// URL of a server that is reached by streamable HTTP.
    pub url: Option<String>,
    /// Headers for it, for example `Authorization`.
    pub headers: BTreeMap<String, String>,
    /// Only these tools; absent: all.
    pub allow: Option<Vec<String>>,
    /// Excludes these tools.
    pub deny: Vec<String>,
    /// The classes of clients that see it; absent: all.
    pub clients: Option<Vec<ClientClass>>,
    /// The users who are offered it; absent: all.
    pub users: Option<Vec<String>>,
    /// The calls that require approval.
    pub approval: Approval,
    /// Timeout of a call in milliseconds.
    #[serde(alias = "timeout_ms")]
    pub timeout_ms: Option<u32>,
    /// Sentence templates by tool, so that its tools can be called by speech without a model.
    pub phrases: BTreeMap<String, Vec<String>>,
    /// Accepted, but not used.
    pub disabled: bool,
    /// All other keys.
    #[serde(flatten)]
    pub other: BTreeMap<String, serde_json::Value>,
}

impl RawServer {
    /// The keys that mean nothing here, except those that files for other programs usually have.
    pub fn unknown_keys(&self) -> impl Iterator<Item = &str> {
        let keys = self.other.keys().map(String::as_str);
        keys.filter(|key| !matches!(*key, "type" | "transport" | "description"))
    }
}

/// The calls of a server that require approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// Those of tools that the server annotates as destructive.
    #[default]
    Destructive,
    /// All that are not annotated as read-only.
    Changes,
    /// None.
    Never,
}

/// A server of the configuration after all checks.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    /// Its name: letters, digits, `-` and `_`, starting with a letter.
    pub name: String,
    /// A program to start, or a URL.
    pub reach: Reach,
    /// Only these tools; absent: all.
    pub allow: Option<Vec<String>>,
    /// Excludes these tools.
    pub deny: Vec<String>,
    /// The classes of clients that see it; absent: all.
    pub clients: Option<Vec<ClientClass>>,
    /// The users who are offered it; empty: all.
    pub users: Vec<String>,
    /// The calls that require approval.
    pub approval: Approval,
    /// Timeout of a call in milliseconds.
    pub timeout_ms: Option<u32>,
    /// Sentence templates by tool.
    pub phrases: BTreeMap<String, Vec<String>>,
    /// Values of its configuration that only the server may see.
    pub(super) secrets: Vec<Secret>,
}

/// The transport of a server.
#[derive(Clone, PartialEq, Eq)]
pub enum Reach {
    /// A child process of the gateway.
    Stdio {
        /// Program.
        command: String,
        /// Arguments.
        args: Vec<String>,
        /// Environment.
        env: BTreeMap<String, String>,
        /// Working directory.
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        /// Where requests are sent.
        url: String,
        /// Sent with every request.
        headers: BTreeMap<String, String>,
    },
}

/// Secrets may be in every part of its transport.
impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reach = match &self.reach {
            Reach::Stdio { .. } => "stdio",
            Reach::Http { .. } => "http",
        };
        f.debug_struct("Server").field("name", &self.name).field("reach", &reach).finish_non_exhaustive()
    }
}

impl Server {
    /// Values of its configuration that only the server may see.
    pub fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// Whether clients of this class and user see it.
    pub fn is_for(&self, user: &str, class: ClientClass) -> bool {
        let is_of_user = self.users.is_empty() || self.users.iter().any(|name| name == user);
        is_of_user && self.clients.as_ref().is_none_or(|clients| clients.contains(&class))
    }

    /// The scopes of its tools.
    pub fn scopes(&self) -> Vec<Scope> {
        Scope::of(&self.users)
    }

    /// A problem that will prevent its start, as far as it can be detected beforehand: its program or its working
    /// directory does not exist. `path`: the directories that are searched for programs.
    pub fn cannot_start(&self, path: Option<OsString>) -> Option<String> {
        let mut problem = self.missing(path)?;
        let secrets = Secrets::default();
        self.secrets.iter().for_each(|secret| secrets.keep(secret));
        secrets.redact(&mut problem);
        Some(problem)
    }

    fn missing(&self, path: Option<OsString>) -> Option<String> {
        let Reach::Stdio { command, env, cwd, .. } = &self.reach else {
            return None;
        };
        let name = &self.name;
        if let Some(cwd) = cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            return Some(format!("`{name}.cwd`: there is no folder {}", cwd.display()));
        }
        // With a slash it is the program's path, otherwise its name.
        if command.contains('/') {
            let place = cwd.as_deref().unwrap_or(Path::new("")).join(command);
            let told = || format!("`{name}.command`: {} is not there, or no program", place.display());
            return (!is_program(&place)).then(told);
        }
        let path = env.get("PATH").map(OsString::from).or(path).unwrap_or_default();
        let found = std::env::split_paths(&path).any(|folder| is_program(&folder.join(command)));
        (!found).then(|| format!("`{name}.command`: there is no program `{command}` in PATH; is it installed?"))
    }

    /// Whether the configuration includes a tool of the server.
    pub fn wants(&self, tool: &str) -> bool {
        let listed = |list: &[String]| list.iter().any(|name| name == tool);
        self.allow.as_ref().is_none_or(|allow| listed(allow)) && !listed(&self.deny)
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Validates a server; `variable` looks up the environment. `None`: it is disabled.
///
/// # Errors
/// What is wrong, at which key, and how to fix it.
pub fn check(name: &str, raw: RawServer, variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<Server>, String> {
    let name_ok = name.len() <= NAME_BYTES_MAX
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if !name_ok {
        return Err(format!(
            "`{name}`: a server's name has 1 to {NAME_BYTES_MAX} letters, digits, '-' and '_', a letter in front"
        ));
    }
    if raw.disabled {
        return Ok(None);
    }
    for key in raw.unknown_keys() {
        tracing::info!(server = name, key, "an unknown key of an MCP server is ignored");
    }
    let mut fill = Fill { server: name, variable, found: Found::default() };
    let reach = reach(&raw, &mut fill)?;
    if raw.timeout_ms.is_some_and(|ms| !(1..=TIMEOUT_MS_MAX).contains(&ms)) {
        return Err(format!("`{name}.timeout_ms`: must be between 1 and {TIMEOUT_MS_MAX}"));
    }
    if let Some(users) = &raw.users {
        source::check_users(users).map_err(|why| format!("`{name}.users`: {why}"))?;
    }
    Ok(Some(Server {
        name: name.to_owned(),
        reach,
        users: raw.users.unwrap_or_default(),
        allow: raw.allow,
        deny: raw.deny,
        clients: raw.clients,
        approval: raw.approval,
        timeout_ms: raw.timeout_ms,
        phrases: raw.phrases,
        secrets: fill.found.into_secrets(),
    }))
}

fn reach(raw: &RawServer, fill: &mut Fill<'_>) -> Result<Reach, String> {
    match (&raw.command, &raw.url) {
        (Some(command), None) => {
            let command = fill.text("command", command)?;
            let args = raw.args.iter().map(|text| fill.text("args", text)).collect::<Result<Vec<_>, _>>()?;
            fill.found.arguments(&args);
            Ok(Reach::Stdio { command, args, env: fill.map("env", &raw.env)?, cwd: raw.cwd.clone() })
        }
        (None, Some(url)) => {
            let url = fill.text("url", url)?;
            if !(url.starts_with("http://") || url.starts_with("https://")) {
                return Err(format!("`{}.url`: must start with http:// or https://", fill.server));
            }
            fill.found.address(&url);
            Ok(Reach::Http { url, headers: fill.map("headers", &raw.headers)? })
        }
        _ => {
            let name = fill.server;
            Err(format!("`{name}`: needs either `command` (a program to start) or `url` (streamable HTTP)"))
        }
    }
}

/// Fills in the variables of a server's configuration, and notes its secrets.
struct Fill<'a> {
    server: &'a str,
    variable: &'a dyn Fn(&str) -> Option<String>,
    found: Found,
}

impl Fill<'_> {
    fn text(&mut self, key: &str, text: &str) -> Result<String, String> {
        substitute(text, self.variable, &mut self.found).map_err(|why| format!("`{}.{key}`: {why}", self.server))
    }

    fn map(&mut self, key: &str, map: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, String> {
        let mut filled = BTreeMap::new();
        for (entry, text) in map {
            let value = self.text(&format!("{key}.{entry}"), text)?;
            self.found.entry(entry, &value);
            filled.insert(entry.clone(), value);
        }
        Ok(filled)
    }
}

/// Validates a file in the common form: `{"mcpServers": {NAME: {...}}}`.
///
/// # Errors
/// What is wrong, where, and how to fix it.
pub fn check_file(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Server>, String> {
    #[derive(Deserialize)]
    struct File {
        #[serde(rename = "mcpServers")]
        servers: BTreeMap<String, RawServer>,
    }
    let file: File = serde_json::from_str(text).map_err(|error| {
        format!("line {}: {error}; the form is {{\"mcpServers\": {{\"NAME\": {{\"command\": ...}}}}}}", error.line())
    })?;
    let mut servers = Vec::new();
    for (name, raw) in file.servers {
        servers.extend(check(&name, raw, variable)?);
    }
    Ok(servers)
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
