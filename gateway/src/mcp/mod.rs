//! MCP in both directions: downstream servers from the configuration; clients over HTTP with keys, and over the control
//! socket.

mod keys;
pub(crate) mod settings;

use std::{fmt, fs, path::Path, sync::Arc};

use anyhow::{Result, anyhow};
use gateway_core::vocab::ClientClass;
use tokio::io::{AsyncRead, AsyncWrite};
use tools::{
    executor::Executor,
    limits::SECRETS_MAX,
    mcp::{
        client::{Pool, State},
        config::{self as servers, SERVERS_MAX, Server},
        server::{Approver, Http, Hub, Limits, Who},
    },
    source::Scope,
};

use self::{keys::Keys, settings::McpSettings};
use crate::{clock, environment, roster::Roster, units::number_of};

/// Largest file of servers, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// The user for programs on this machine without a key.
const USER: &str = "wearer";

/// The MCP settings outside the configuration file, read and checked.
pub struct Prepared {
    servers: Vec<Server>,
    keys: Keys,
    settings: McpSettings,
}

impl Prepared {
    /// Reads the file of servers, the keys, and the variables used by either; relative paths start at `folder`.
    ///
    /// # Errors
    /// All problems.
    pub fn load(mcp: &McpSettings, folder: Option<&Path>) -> Result<Self, Vec<String>> {
        let (mut servers, mut problems) = (Vec::new(), Vec::new());
        for (name, raw) in &mcp.servers {
            match servers::check(name, raw.clone(), &environment::variable) {
                Ok(server) => servers.extend(server),
                Err(problem) => problems.push(format!("[mcp.servers] {problem}")),
            }
        }
        if let Some(file) = &mcp.file {
            let path = folder.unwrap_or(Path::new("")).join(file);
            match read(&path).and_then(|text| servers::check_file(&text, &environment::variable)) {
                Ok(more) => servers.extend(more),
                Err(problem) => problems.push(format!("mcp.file {}: {problem}", path.display())),
            }
        }
        servers.sort_by(|a, b| a.name.cmp(&b.name));
        for pair in servers.windows(2) {
            if let [one, other] = pair
                && one.name.replace('_', "-") == other.name.replace('_', "-")
            {
                problems.push(format!("the MCP servers `{}` and `{}` have the same name", one.name, other.name));
            }
        }
        if servers.len() > SERVERS_MAX {
            problems.push(format!("{} MCP servers; at most {SERVERS_MAX} are accepted", servers.len()));
        }
        let secrets = servers.iter().flat_map(Server::secrets).count();
        if secrets > SECRETS_MAX {
            problems.push(format!(
                "the MCP servers have {secrets} secrets; at most {SECRETS_MAX} can be kept out of results"
            ));
        }
        if let Some(flat) = &mcp.flatten
            && !servers.iter().any(|server| server.name == *flat)
        {
            problems
                .push(format!("`mcp.flatten` is `{flat}`, but no server in [mcp.servers] or mcp.file has that name"));
        }
        let keys = Keys::load(&mcp.keys, folder, &mut problems);
        if problems.is_empty() { Ok(Self { servers, keys, settings: mcp.clone() }) } else { Err(problems) }
    }
}

impl Prepared {
    /// Problems that prevent servers from being started.
    pub fn problems(&self) -> Vec<String> {
        let path = std::env::var_os("PATH");
        let problems = self.servers.iter().filter_map(|server| server.cannot_start(path.clone()));
        problems.map(|problem| format!("[mcp.servers] {problem}")).collect()
    }

    /// Whether the configuration names this server.
    pub(crate) fn has_server(&self, name: &str) -> bool {
        self.server(name).is_some()
    }

    fn server(&self, name: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.name == name)
    }

    /// Whether tools of this server belong into this scope.
    pub(crate) fn is_in_scope(&self, name: &str, scope: &Scope) -> bool {
        self.server(name).is_some_and(|server| server.scopes().contains(scope))
    }

    /// The users that a server is for; empty: all.
    pub(crate) fn users_of(&self, name: &str) -> &[String] {
        self.server(name).map_or(&[], |server| &server.users)
    }

    /// The classes of clients that a server is for; `None`: all.
    pub(crate) fn clients_of(&self, name: &str) -> Option<Vec<ClientClass>> {
        self.server(name)?.clients.clone()
    }

    /// Leaves a server to these users, and those that it is left to already.
    pub(crate) fn leave_to(&mut self, name: &str, users: &[String]) {
        if let Some(server) = self.servers.iter_mut().find(|server| server.name == name) {
            server.users.extend(users.iter().cloned());
        }
    }

    /// Number of values that only single servers may see.
    pub fn secrets(&self) -> usize {
        self.servers.iter().flat_map(Server::secrets).count()
    }
}

impl fmt::Display for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let http = match (self.settings.http, self.settings.without_key) {
            (false, _) => "off".to_owned(),
            (true, false) => number_of(self.keys.count(), "key"),
            (true, true) => format!("{}, none needed on this machine", number_of(self.keys.count(), "key")),
        };
        let named = |server: &Server| match server.users.as_slice() {
            [] => server.name.clone(),
            users => format!("{} for {}", server.name, users.join(" and ")),
        };
        let names: Vec<_> = self.servers.iter().map(named).collect();
        write!(f, "http {http}; servers: {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") })
    }
}

fn read(path: &Path) -> Result<String, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > FILE_BYTES_MAX {
        return Err(format!("{size} bytes; at most {FILE_BYTES_MAX} are accepted"));
    }
    fs::read_to_string(path).map_err(|error| error.to_string())
}

/// Why a client is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAdmitted {
    /// It sends no key.
    NoKey,
    /// Its key is none of those that there are.
    UnknownKey,
    /// The key is for another class.
    OtherClass,
}

/// MCP of a running gateway.
pub struct Mcp {
    hub: Arc<Hub>,
    http: Option<Http>,
    keys: Keys,
    without_key: bool,
}

impl Mcp {
    /// Starts the downstream servers without waiting for them.
    pub fn start(prepared: Prepared, executor: &Executor, roster: Arc<Roster>, port: u16) -> Self {
        let Prepared { servers, keys, settings } = prepared;
        // Only the first call in a process counts.
        drop(rustls::crypto::ring::default_provider().install_default());
        for secret in servers.iter().flat_map(Server::secrets) {
            executor.secrets().keep(secret);
        }
        let pool = Pool::start(servers, settings.flatten.clone(), executor.registry());
        let device_of = move |user: &str| roster.glasses_of(user).into_iter().next().map(|(id, _)| id);
        let hub = Hub::new(executor.clone(), pool, device_of, clock::wall_ms());
        let http = settings.http.then(|| {
            let loopback = ["localhost", "127.0.0.1", "[::1]"];
            let ours =
                loopback.iter().flat_map(|host| ["http", "https"].map(|scheme| format!("{scheme}://{host}:{port}")));
            let limits = Limits {
                hosts: loopback.iter().map(|host| (*host).to_owned()).chain(settings.hosts.iter().cloned()).collect(),
                origins: ours.chain(settings.origins.iter().cloned()).collect(),
            };
            Http::new(hub.clone(), limits)
        });
        Self { hub, http, keys, without_key: settings.without_key }
    }

    /// Connections to the downstream servers, with the state of each.
    pub fn pool(&self) -> &Arc<Pool> {
        self.hub.pool()
    }

    /// Each downstream server's name and state.
    pub fn servers(&self) -> Vec<(String, State)> {
        self.hub.pool().states()
    }

    /// The HTTP server, if enabled.
    pub fn http(&self) -> Option<&Http> {
        self.http.as_ref()
    }

    /// Who a client of this class is. `authorization`: its header, empty if it is not text;
    /// `is_here`: it is a program on this machine.
    ///
    /// # Errors
    /// Its key is missing or wrong.
    pub fn admit(&self, class: ClientClass, authorization: Option<&str>, is_here: bool) -> Result<Who, NotAdmitted> {
        let Some(given) = authorization else {
            let is_free = self.without_key && class == ClientClass::Internal && is_here;
            let who = Who { user: USER.to_owned(), class, approves: Approver::of(class), is_operator: false };
            return if is_free { Ok(who) } else { Err(NotAdmitted::NoKey) };
        };
        let key = given.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        match key.and_then(|(_, key)| self.keys.find(key.trim())) {
            Some(who) if who.class == class => Ok(who.clone()),
            Some(_) => Err(NotAdmitted::OtherClass),
            None => Err(NotAdmitted::UnknownKey),
        }
    }

    /// Serves one client over a stream until it ends.
    ///
    /// # Errors
    /// It does not speak MCP.
    pub(crate) async fn serve_stream<S>(&self, who: Who, stream: S) -> Result<()>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        self.hub.serve_stream(who, stream).await.map_err(|error| anyhow!(error))
    }

    /// Ends all clients and servers.
    pub async fn stop(&self) {
        self.hub.stop().await;
    }
}
