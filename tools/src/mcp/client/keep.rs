//! The task that maintains one server: connect, list, register, listen for changes, and reconnect.

use std::{sync::Arc, time::Duration};

use gateway_core::vocab::ToolSpec;
use rmcp::{
    model::{ServerNotification, SubscriptionFilter, Tool},
    service::Subscription,
};
use tokio::time::{Instant, sleep, timeout};

use super::{
    Downstream, Now, Offers, ServerChange, State,
    call::McpRunner,
    convert,
    link::{self, CONNECT_MS_MAX, FORGOTTEN, Link, REQUEST_MS_MAX, Running},
    renewal::{PAUSE_MS_MAX, Renewal, STEADY_MS, pauses},
};
use crate::{
    registry::{self, RegisterError, Registry},
    source::{Scope, Source},
};

/// First pause after a failure.
const PAUSE_MS_MIN: u64 = 500;
/// Minimum interval between requests for lists: a server that floods with changes is not followed more often.
const LIST_PAUSE_MS: u64 = 100;
/// How long closing may take: a child's input is closed, then it gets a signal, then it is killed.
const CLOSE_MS_MAX: u64 = 8_000;
/// How long the last log lines of an exited server may take to arrive.
const LAST_WORDS_MS: u64 = 200;
/// Reason shown for a server that is down because its operator restarts it.
const RESTARTED: &str = "it is started anew";
/// Why a connection ends with the gateway.
const STOPS: &str = "the gateway stops";

/// Maintains a server until the gateway stops.
pub(super) async fn keep(server: Arc<Downstream>, registry: Arc<Registry>) {
    let stop = &server.stop;
    let name = server.config.name.clone();
    let mut pause = pauses(PAUSE_MS_MIN);
    let mut legacy = false;
    while !stop.is_cancelled() {
        let said = server.words.count();
        let opened = tokio::select! {
            opened = timeout(Duration::from_millis(CONNECT_MS_MAX), link::open(&server, legacy)) => opened,
            () = server.restart.notified() => continue,
            () = stop.cancelled() => break,
        };
        let mut went_up = false;
        let mut why = match opened {
            Ok(Ok((running, link))) => {
                let (why, steady) = serve(&server, running, link, &registry).await;
                went_up = server.now.borrow().is_up();
                if steady || why == RESTARTED {
                    pause = pauses(PAUSE_MS_MIN);
                }
                why
            }
            Ok(Err(why)) => {
                // Try the other mode next time.
                legacy = !legacy;
                why
            }
            Err(_elapsed) => format!("no answer within {} s", CONNECT_MS_MAX / 1000),
        };
        // It may quote the program or the address.
        server.secrets.redact(&mut why);
        server.now.send_modify(|now| {
            now.link = None;
            now.go(State::Down(why.clone()));
            if why != RESTARTED {
                now.last_down = Some((why.clone(), now.since));
            }
            // If it was up before, its end has already been logged.
            now.attempts += u64::from(!went_up);
        });
        if stop.is_cancelled() {
            break;
        }
        if why == RESTARTED {
            tracing::info!(server = name, "an MCP server is started anew");
            continue;
        }
        sleep(Duration::from_millis(LAST_WORDS_MS)).await;
        server.tell_words(said);
        let wait = pause.next().unwrap_or(Duration::from_millis(PAUSE_MS_MAX));
        tracing::warn!(server = name, why, again_in_ms = wait.as_millis(), "an MCP server is down");
        tokio::select! {
            () = sleep(wait) => {}
            () = server.restart.notified() => pause = pauses(PAUSE_MS_MIN),
            () = stop.cancelled() => {}
        }
    }
}

impl Now {
    fn is_up(&self) -> bool {
        matches!(self.state, State::Up(_))
    }

    fn go(&mut self, state: State) {
        // A different reason does not change that the server is down.
        if std::mem::discriminant(&self.state) != std::mem::discriminant(&state) {
            self.since = Instant::now();
        }
        self.state = state;
    }
}

/// Runs until the connection ends; returns the reason, and whether the connection was stable.
pub(super) async fn serve(
    server: &Arc<Downstream>,
    mut running: Running,
    link: Arc<Link>,
    registry: &Arc<Registry>,
) -> (String, bool) {
    let stop = &server.stop;
    let version = link.version.to_string();
    let mut told = false;
    let mut steady = false;
    let held = sleep(Duration::from_millis(STEADY_MS));
    tokio::pin!(held);
    let mut followed = Box::pin(follow(&link, subscribe(&link).await));
    let ended = watch_end(&link);
    tokio::pin!(ended);
    let why = loop {
        let listing = timeout(Duration::from_millis(REQUEST_MS_MAX), list(server, &link));
        let listed = tokio::select! {
            listed = listing => listed,
            why = &mut ended => break why.to_owned(),
            () = server.restart.notified() => break RESTARTED.to_owned(),
            () = stop.cancelled() => break STOPS.to_owned(),
        };
        match listed {
            Ok(Ok(offers)) => {
                take(server, &link, offers, registry);
                if !told {
                    told = true;
                    tracing::info!(server = server.config.name, version, "an MCP server is up");
                }
            }
            Ok(Err(error)) => break format!("it does not list what it has: {error}"),
            Err(_elapsed) => break "listing what it has took too long".to_owned(),
        }
        // Changes during the pause are handled together after it.
        sleep(Duration::from_millis(LIST_PAUSE_MS)).await;
        let end = loop {
            tokio::select! {
                () = link.changed.notify.notified() => break None,
                () = &mut followed => {}
                () = server.restart.notified() => break Some(RESTARTED),
                why = &mut ended => break Some(why),
                () = stop.cancelled() => break Some(STOPS),
                () = &mut held, if !steady => steady = true,
            }
        };
        if let Some(why) = end {
            break why.to_owned();
        }
    };
    server.now.send_modify(|now| now.link = None);
    drop(followed);
    drop(running.close_with_timeout(Duration::from_millis(CLOSE_MS_MAX)).await);
    (why, steady)
}

/// Waits for the end of a connection; returns the reason.
async fn watch_end(link: &Link) -> &'static str {
    let closed = async {
        // The library reports a closed transport only on request.
        while !link.peer.is_transport_closed() {
            sleep(Duration::from_millis(LIST_PAUSE_MS)).await;
        }
    };
    tokio::select! {
        () = closed => "its connection ended",
        () = link.forgotten.cancelled() => FORGOTTEN,
    }
}

/// Since 2026-07-28 changes are only sent to subscribers.
async fn subscribe(link: &Link) -> Option<Subscription> {
    if !link.is_modern() {
        return None;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().prompts_list_changed().resources_list_changed();
    match timeout(Duration::from_millis(REQUEST_MS_MAX), link.peer.listen(filter.build())).await {
        Ok(Ok(subscription)) => Some(subscription),
        // It does not announce changes.
        Ok(Err(_)) | Err(_) => None,
    }
}

/// Reports the changes that a server announces, forever. A subscription that ends is renewed, whatever its end: a server
/// that stops ends it gracefully.
async fn follow(link: &Link, subscription: Option<Subscription>) {
    let Some(mut open) = subscription else {
        return std::future::pending().await;
    };
    let mut renewal = Renewal::new();
    loop {
        renewal.opened();
        while let Ok(Some(notification)) = open.next().await {
            if matches!(
                notification,
                ServerNotification::ToolListChangedNotification(_)
                    | ServerNotification::PromptListChangedNotification(_)
                    | ServerNotification::ResourceListChangedNotification(_)
            ) {
                link.changed.notify.notify_one();
            }
        }
        drop(open);
        open = loop {
            renewal.wait().await;
            let renewed = subscribe(link).await;
            // Changes may have been missed.
            link.changed.notify.notify_one();
            if let Some(renewed) = renewed {
                break renewed;
            }
        };
    }
}

async fn list(server: &Downstream, link: &Link) -> Result<Offers, rmcp::ServiceError> {
    let tools = link::tools(&link.peer).await?;
    let wanted = tools.into_iter().filter(|tool| server.config.wants(&tool.name));
    // Prompts and resources are optional: a server that fails to list them still offers its tools.
    let prompts = if link.has_prompts { link::prompts(&link.peer).await.unwrap_or_default() } else { Vec::new() };
    let (resources, templates) = if link.has_resources {
        (link::resources(&link.peer).await.unwrap_or_default(), link::templates(&link.peer).await.unwrap_or_default())
    } else {
        Default::default()
    };
    // If a server quotes its key in a description, the key must not get into prompts or to clients.
    let secrets = &server.secrets;
    let wanted = wanted.filter_map(|tool| secrets.redacted(tool));
    Ok(Offers {
        tools: Arc::new(wanted.map(|tool| (tool.name.to_string(), tool)).collect()),
        prompts: Arc::new(prompts.into_iter().filter_map(|prompt| secrets.redacted(prompt)).collect()),
        resources: Arc::new(resources.into_iter().filter_map(|resource| secrets.redacted(resource)).collect()),
        templates: Arc::new(templates.into_iter().filter_map(|template| secrets.redacted(template)).collect()),
    })
}

/// Registers what has changed.
fn take(server: &Arc<Downstream>, link: &Arc<Link>, offers: Offers, registry: &Registry) {
    let (mut prompts, mut resources, mut tools) = (false, false, false);
    server.now.send_modify(|now| {
        let (old, new) = (&now.offers, &offers);
        prompts = old.prompts != new.prompts;
        resources = old.resources != new.resources || old.templates != new.templates;
        tools = now.link.is_none() || old.tools != new.tools;
        now.offers = offers.clone();
        now.link = Some(link.clone());
    });
    for (changed, change) in [(prompts, ServerChange::Prompts), (resources, ServerChange::Resources)] {
        if changed {
            drop(server.changes.send(change));
        }
    }
    if tools {
        register(server, offers.tools.values(), registry);
    }
    // Not before its tools are offered: once the server is shown as up, its tools can be called.
    server.now.send_modify(|now| {
        now.attempts += u64::from(!now.is_up());
        now.go(State::Up(link.version.to_string()));
    });
}

/// Maximum reported losses of one server: more would not be read.
const LOST_MAX: usize = 100;

/// Registers the tools; a problem of one does not affect the others.
fn register<'a>(server: &Arc<Downstream>, tools: impl Iterator<Item = &'a Tool>, registry: &Registry) {
    let name = &server.config.name;
    let mut named: Vec<(ToolSpec, String)> = Vec::new();
    let mut lost = Vec::new();
    for tool in tools {
        let spec = convert::spec(&server.config, tool, &mut lost);
        match registry::check(&spec) {
            Ok(_) => named.push((spec, tool.name.to_string())),
            Err(error) => {
                tracing::warn!(server = name, %error, "a tool of an MCP server was left out");
                lost.push(format!("left out: {error}"));
            }
        }
    }
    let source = Source::Mcp(name.clone());
    for scope in server.config.scopes() {
        offer(server, &scope, named.clone(), &mut lost, registry);
    }
    lost.truncate(LOST_MAX);
    registry.report(&source, lost);
}

/// Registers the tools in one scope, except those whose names are taken there.
fn offer(
    server: &Arc<Downstream>,
    scope: &Scope,
    mut named: Vec<(ToolSpec, String)>,
    lost: &mut Vec<String>,
    registry: &Registry,
) {
    let name = &server.config.name;
    loop {
        let runner = Arc::new(McpRunner::new(server.clone()));
        match registry.register_named(Source::Mcp(name.clone()), scope.clone(), named.clone(), runner) {
            Ok(revision) => {
                tracing::info!(server = name, tools = named.len(), revision, "tools of an MCP server");
                return;
            }
            Err(RegisterError::NameTaken { tool, by }) if named.iter().any(|(spec, _)| spec.name == tool) => {
                tracing::warn!(server = name, tool, ?by, "a tool of an MCP server was left out: its name is taken");
                lost.push(format!("left out: '{tool}': its name is taken by {by}"));
                named.retain(|(spec, _)| spec.name != tool);
            }
            Err(error) => {
                tracing::warn!(server = name, %error, "the tools of an MCP server were left out");
                return;
            }
        }
    }
}
