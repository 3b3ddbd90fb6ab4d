//! One connection to a server: opening it, and listing what the server offers.

use std::{error::Error, sync::Arc};

use rmcp::{
    model::{PaginatedRequestParams, Prompt, ProtocolVersion, Resource, ResourceTemplate, Tool},
    service::{
        ClientCacheConfig, ClientLifecycleMode, Peer, RoleClient, RunningService, ServiceError,
        serve_client_with_lifecycle,
    },
    transport::IntoTransport,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{ChildStderr, Command},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Downstream,
    child::{self, ChildTransport},
    http,
    routes::{Changed, Handler, Routes},
};
use crate::{credentials::INHERITED, mcp::config::Reach, secret::Secrets};

/// How long a server may take from its start to its first answer; `npx` may have to download it.
pub(super) const CONNECT_MS_MAX: u64 = 60_000;
/// Timeout of the gateway's own requests, which are no calls: for lists, for changes, and for the end of these.
pub(super) const REQUEST_MS_MAX: u64 = 20_000;
/// Maximum tools, prompts, resources and templates that are accepted from one server, each.
const LISTED_MAX: usize = 2_000;
/// Reason shown for a server that does not know the session any more.
pub(super) const FORGOTTEN: &str = "it has forgotten the session";
/// Maximum bytes of one line of a child's log that are read at once.
const LOG_LINE_BYTES_MAX: u64 = 4 * 1024;
/// Bytes that are told of a longer line. The rest is not: a secret may be cut in two there, and neither part be recognised.
const LOG_LINE_BYTES_TOLD: usize = 3 * 1024;
/// A connection on which both sides have introduced themselves, and what the server has said that it can do.
pub(super) struct Link {
    pub(super) peer: Peer<RoleClient>,
    pub(super) routes: Arc<Routes>,
    pub(super) changed: Arc<Changed>,
    /// The negotiated protocol revision.
    pub(super) version: ProtocolVersion,
    pub(super) has_prompts: bool,
    pub(super) has_resources: bool,
    pub(super) can_subscribe: bool,
    pub(super) tracker: TaskTracker,
    /// What no question of the server may contain.
    pub(super) secrets: Secrets,
    /// Cancelled when the server does not know the session any more, so that it refuses all further requests.
    pub(super) forgotten: CancellationToken,
}

impl Link {
    /// Whether requests are self-contained (2026-07-28 and later).
    pub(super) fn is_modern(&self) -> bool {
        !self.version.has_initialize()
    }
}

pub(super) type Running = RunningService<RoleClient, Handler>;

/// Opens a connection. `legacy`: without first probing whether the server supports 2026-07-28; some servers fail on the
/// probe.
pub(super) async fn open(server: &Arc<Downstream>, legacy: bool) -> Result<(Running, Arc<Link>), String> {
    match &server.config.reach {
        Reach::Stdio { .. } => {
            let (child, stderr) = start(&server.config.reach)?;
            if let Some(stderr) = stderr {
                server.tracker.spawn(log(server.clone(), stderr));
            }
            meet(server, child, legacy, CancellationToken::new()).await
        }
        Reach::Http { url, headers } => {
            let forgotten = CancellationToken::new();
            meet(server, http::transport(url, headers, forgotten.clone())?, legacy, forgotten).await
        }
    }
}

/// Both sides introduce themselves. `forgotten`: see [`Link`].
pub(super) async fn meet<T, E, A>(
    server: &Arc<Downstream>,
    transport: T,
    legacy: bool,
    forgotten: CancellationToken,
) -> Result<(Running, Arc<Link>), String>
where
    T: IntoTransport<RoleClient, E, A>,
    E: Error + Send + Sync + 'static,
{
    let (routes, changed) = (Arc::new(Routes::default()), Arc::new(Changed::default()));
    let handler = Handler {
        server: Arc::downgrade(server),
        routes: routes.clone(),
        changed: changed.clone(),
        changes: server.changes.clone(),
        secrets: server.secrets.clone(),
    };
    let lifecycle = if legacy {
        ClientLifecycleMode::Initialize
    } else {
        ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        }
    };
    let running = serve_client_with_lifecycle(handler, transport, lifecycle).await;
    let running = running.map_err(|error| format!("it did not answer as an MCP server: {error}"))?;
    let peer = running.peer().clone();
    // The gateway caches lists itself and requests them again when they change; the library must not share what it read
    // for one caller with another.
    peer.set_response_cache_config(ClientCacheConfig::disabled().with_serve_stale_on_error(false)).await;
    let info = peer.peer_info().ok_or("it said nothing about itself")?;
    let capabilities = &info.capabilities;
    let link = Link {
        routes,
        changed,
        version: info.protocol_version.clone(),
        has_prompts: capabilities.prompts.is_some(),
        has_resources: capabilities.resources.is_some(),
        can_subscribe: capabilities.resources.as_ref().is_some_and(|resources| resources.subscribe == Some(true)),
        tracker: server.tracker.clone(),
        secrets: server.secrets.clone(),
        forgotten,
        peer,
    };
    Ok((running, Arc::new(link)))
}

fn start(reach: &Reach) -> Result<(ChildTransport, Option<ChildStderr>), String> {
    let Reach::Stdio { command, args, env, cwd } = reach else {
        return Err("it is no child".to_owned());
    };
    let mut child = Command::new(command);
    child.args(args).env_clear();
    child.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    child.envs(env);
    if let Some(cwd) = cwd {
        child.current_dir(cwd);
    }
    child::start(child).map_err(|error| format!("cannot start `{command}`: {error}; is it installed, and in PATH?"))
}

/// Reads a child's log line by line.
async fn log(server: Arc<Downstream>, stderr: ChildStderr) {
    let mut reader = BufReader::new(stderr);
    let (mut line, mut is_rest) = (Vec::new(), false);
    loop {
        line.clear();
        match (&mut reader).take(LOG_LINE_BYTES_MAX).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let is_whole = line.ends_with(b"\n");
                if !is_whole {
                    line.truncate(LOG_LINE_BYTES_TOLD);
                }
                if !std::mem::replace(&mut is_rest, !is_whole) {
                    server.wrote(&String::from_utf8_lossy(&line));
                }
            }
        }
    }
}

/// Reads all pages of a list, up to the limit.
macro_rules! pages {
    ($name:ident, $list:ident, $field:ident, $item:ty) => {
        pub(super) async fn $name(peer: &Peer<RoleClient>) -> Result<Vec<$item>, ServiceError> {
            let mut items: Vec<$item> = Vec::new();
            let mut cursor = None;
            loop {
                let page = peer.$list(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
                // A server that returns empty pages indefinitely is also stopped here.
                let empty = page.$field.is_empty();
                items.extend(page.$field);
                cursor = page.next_cursor;
                if cursor.is_none() || empty || items.len() >= LISTED_MAX {
                    break;
                }
            }
            if items.len() > LISTED_MAX || cursor.is_some() {
                tracing::warn!(taken = items.len().min(LISTED_MAX), "an MCP server lists too much");
                items.truncate(LISTED_MAX);
            }
            Ok(items)
        }
    };
}

pages!(tools, list_tools, tools, Tool);
pages!(prompts, list_prompts, prompts, Prompt);
pages!(resources, list_resources, resources, Resource);
pages!(templates, list_resource_templates, resource_templates, ResourceTemplate);
