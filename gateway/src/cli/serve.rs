//! `lorgnette serve`.

use std::{
    convert::Infallible,
    env,
    ffi::OsString,
    future::{Future, pending},
    io::{IsTerminal as _, Write as _},
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    pin::pin,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, timeout},
};

use super::{notify::ServiceManager, signals::Signals};
use crate::{
    clock,
    config::Config,
    http::settings::Listen,
    identity::{fingerprint, invitations::INVITED_US},
    mcp::settings::McpSettings,
    runtime,
    serve::{self, HANDOVER_MAX, Origin},
    telemetry,
    text::in_one_line,
    transport::sockets::Sockets,
    upgrade::{self, Handover, Ready, TAKE_OVER, TakeOver},
};

/// How long stopping may take after an essential part has ended.
const STOP_MS_MAX: u64 = 10_000;
/// How long the start after an upgrade that failed may take: the models load again, from a slow card.
const START_AGAIN_MAX: Duration = Duration::from_secs(120);

/// Run the gateway.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Log as JSON lines.
    #[arg(long)]
    log_json: bool,
    /// Open only these listeners, of those that the configuration allows.
    #[arg(long, value_delimiter = ',')]
    only: Vec<ListenerKind>,
    /// Replace the gateway that this one is started by (`lorgnette upgrade`).
    #[arg(long, hide = true)]
    take_over: bool,
}

/// A listener. The control socket, which `lorgnette mcp` uses, is always open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ListenerKind {
    /// Glasses over WebSocket.
    Websocket,
    /// Glasses over QUIC.
    Quic,
    /// The page to talk from a browser.
    Page,
    /// The pages for operators.
    Console,
    /// MCP over HTTP.
    Mcp,
}

impl Arguments {
    fn narrow(&self, config: Config) -> Config {
        if self.only.is_empty() {
            return config;
        }
        let wanted = |kind| self.only.contains(&kind);
        let mut config = config;
        config.listen.websocket &= wanted(ListenerKind::Websocket);
        config.listen.quic = config.listen.quic.filter(|_| wanted(ListenerKind::Quic));
        config.listen.try_page &= wanted(ListenerKind::Page);
        config.listen.console &= wanted(ListenerKind::Console);
        config.mcp.http &= wanted(ListenerKind::Mcp);
        config
    }
}

/// The addresses for people and programs.
fn places(running: &serve::Running, listen: &Listen, mcp: &McpSettings) -> Vec<(&'static str, String)> {
    let web = running.web;
    let local = local(web);
    let mut places = Vec::new();
    if let (Some(local), Some(token)) = (local, &running.try_token) {
        places.push(("talk", talk(local, token, std::io::stdout().is_terminal())));
    }
    let socket = listen.websocket.then(|| format!("wss://{}/glasses", from_outside(web)));
    let glasses: Vec<String> =
        socket.into_iter().chain(running.quic.map(|quic| format!("quic://{}", from_outside(quic)))).collect();
    if !glasses.is_empty() {
        places.push(("glasses", glasses.join("  ")));
        // Which glasses show of a gateway that they have found, before they trust it.
        let found =
            running.announced.as_ref().map_or_else(String::new, |name| format!("  found as {}", in_one_line(name)));
        places.push(("gateway", format!("{}{found}", fingerprint(&running.public_key))));
    }
    let plain = local.map_or_else(|| format!("https://{web}"), |local| format!("http://{local}"));
    if mcp.http {
        let key = if mcp.without_key { "" } else { " (with a key of `mcp.keys`)" };
        places.push(("MCP", format!("{plain}/mcp{key}")));
    }
    if listen.console {
        places.push(("console", format!("{plain}/console (`lorgnette console` prints a link that lets you in)")));
    }
    places.push(("health", format!("{plain}/healthz  {plain}/metrics")));
    places
}

/// The address of the page to talk from a browser. Only a terminal gets the token: everything else that takes the output, such as
/// the journal, keeps it for readers who may not pair anything.
fn talk(local: SocketAddr, token: &str, is_terminal: bool) -> String {
    match is_terminal {
        true => format!("http://{local}/try#{token} (pairs one browser, within {} minutes)", INVITED_US / 60_000_000),
        false => format!("http://{local}/try (shows a code for `lorgnette devices pair`)"),
    }
}

/// The addresses under which the pages are opened: from this machine, and from others.
pub(super) fn page_addresses(web: SocketAddr) -> Vec<String> {
    let here = local(web).map(|local| format!("http://{local}"));
    let elsewhere = (!web.ip().is_loopback()).then(|| format!("https://{}", from_outside(web)));
    here.into_iter().chain(elsewhere).collect()
}

/// The address from this machine, where it listens there.
fn local(web: SocketAddr) -> Option<SocketAddr> {
    match web.ip() {
        ip if ip.is_unspecified() => Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), web.port())),
        ip => ip.is_loopback().then_some(web),
    }
}

/// The address for other machines: when listening on all interfaces, that of the default route.
fn from_outside(address: SocketAddr) -> SocketAddr {
    let own = || {
        // Nothing is sent: the system only chooses the route. The address is reserved for documentation.
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
        socket.local_addr().ok()
    };
    match own().filter(|_| address.ip().is_unspecified()) {
        Some(own) => SocketAddr::new(own.ip(), address.port()),
        None => address,
    }
}

/// Tells the service manager's watchdog regularly that the gateway works. While there is a problem that a restart may
/// repair, it is not told, so that it restarts the gateway. Never returns.
async fn keep_watchdog(manager: &ServiceManager, running: &serve::Running) {
    let Some(every) = manager.watchdog_every() else { return pending().await };
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        manager.works_but_for(&running.problems().await);
    }
}

/// Tells the watchdog that all is well while `work` goes on, during which nothing can be examined; for so long at most.
async fn telling<T>(manager: &ServiceManager, at_most: Duration, work: impl Future<Output = T>) -> T {
    if at_most.is_zero() {
        return work.await;
    }
    let telling = async {
        let Some(every) = manager.watchdog_every() else { return pending::<Infallible>().await };
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            manager.works();
        }
    };
    let mut work = pin!(work);
    tokio::select! {
        biased;
        done = &mut work => return done,
        Err(_elapsed) = timeout(at_most, telling) => {}
    }
    work.await
}

/// Why a gateway ends.
enum End {
    /// Somebody wants it to.
    Wanted,
    /// An essential part ended by itself.
    Failed(&'static str),
    /// Another process is ready to replace it.
    Replaced(Box<Ready>),
}

pub(super) fn run(config: Config, arguments: &Arguments) -> Result<()> {
    let mut config = arguments.narrow(config);
    telemetry::start(arguments.log_json);
    runtime::descriptors::allow(config.limits.connections_max);
    // Before there are threads.
    let given = Sockets::given()?;
    let runtime = runtime::build().context("starting the runtime")?;
    runtime.block_on(async {
        let again: Vec<OsString> = env::args_os().skip(1).filter(|argument| argument != TAKE_OVER).collect();
        let mut origin = Origin { sockets: given, arguments: Some(again.clone()), ..Origin::default() };
        if arguments.take_over {
            let (take_over, sockets) = TakeOver::from_stdin()?;
            origin.sockets = Some(sockets);
            origin.take_over = Some(take_over);
        }
        let manager = ServiceManager::from_env();
        // Kept over an upgrade that fails: what comes meanwhile is not lost.
        let mut signals = Signals::new()?;
        let mut start_max = Duration::ZERO;
        loop {
            let (running, end) = serve_until(&config, (origin, start_max), &manager, &mut signals).await?;
            let ready = match end {
                End::Replaced(ready) => ready,
                End::Wanted => return stop(running, &manager).await,
                End::Failed(part) => {
                    // The remaining parts may be waiting for the one that has ended.
                    drop(timeout(Duration::from_millis(STOP_MS_MAX), stop(running, &manager)).await);
                    bail!(
                        "a part that the gateway cannot do without ended by itself: {part}; the log has the reason. \
                         Start it again"
                    )
                }
            };
            tracing::info!("another process takes over");
            let replaced = running.be_replaced(*ready, signals.end.wanted());
            match telling(&manager, HANDOVER_MAX, replaced).await {
                Ok(Handover::Served(pid)) => {
                    pid.into_iter().for_each(|pid| manager.replaced_by(pid));
                    if signals.reload.has_come().await {
                        upgrade::signal(pid, Signal::HUP);
                    }
                    return Ok(());
                }
                Ok(Handover::Ended) => {
                    tracing::info!("stopped, and so is the process that was to take over");
                    manager.stopping();
                    return Ok(());
                }
                Err((error, sockets, in_force)) => {
                    tracing::error!(
                        error = format!("{error:#}"),
                        "the upgrade failed; this gateway starts again, with the settings that counted"
                    );
                    config = *in_force;
                    origin = Origin { sockets, take_over: None, arguments: Some(again.clone()), had_folder: true };
                    start_max = START_AGAIN_MAX;
                }
            }
        }
    })
}

/// Starts the gateway and runs it until it is to end. `start_max`: how long the watchdog is told meanwhile that all is well.
async fn serve_until(
    config: &Config,
    (origin, start_max): (Origin, Duration),
    manager: &ServiceManager,
    signals: &mut Signals,
) -> Result<(serve::Running, End)> {
    let began_us = clock::mono_us();
    let mut running = telling(manager, start_max, serve::start_from(config.clone(), origin)).await?;
    let key: String = running.public_key.iter().map(|byte| format!("{byte:02x}")).collect();
    // The line that scripts wait for, and those for people. A closed pipe does not end the gateway.
    let ready = format!(
        "ready in {} ms: web {} quic {} key {key}\n{}",
        (clock::mono_us() - began_us) / 1000,
        running.web,
        running.quic.map_or_else(|| "off".to_owned(), |address| address.to_string()),
        places(&running, &config.listen, &config.mcp)
            .into_iter()
            .map(|(what, place)| format!("  {what:<8} {place}\n"))
            .collect::<String>(),
    );
    drop(std::io::stdout().write_all(ready.as_bytes()));
    manager.ready();
    let mut upgrades = running.take_upgrades();
    let end = tokio::select! {
        () = signals.end.wanted() => End::Wanted,
        part = running.failed() => End::Failed(part),
        () = keep_watchdog(manager, &running) => End::Wanted,
        () = signals.reload.keep_reloading(&running) => End::Wanted,
        ready = next_of(&mut upgrades) => End::Replaced(Box::new(ready)),
    };
    Ok((running, end))
}

/// Waits until a process is ready to replace this one; for ever where none can be.
async fn next_of(upgrades: &mut Option<mpsc::Receiver<Ready>>) -> Ready {
    let ready = match upgrades {
        Some(upgrades) => upgrades.recv().await,
        None => None,
    };
    match ready {
        Some(ready) => ready,
        None => pending().await,
    }
}

async fn stop(running: serve::Running, manager: &ServiceManager) -> Result<()> {
    tracing::info!("stopping");
    manager.stopping();
    running.stop().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_gets_what_pairs_a_browser() {
        let local = "127.0.0.1:8460".parse().unwrap();
        assert!(talk(local, "0a1b", true).starts_with("http://127.0.0.1:8460/try#0a1b (pairs one browser, within 10 "));
        let kept = talk(local, "0a1b", false);
        assert!(kept.starts_with("http://127.0.0.1:8460/try (shows a code") && !kept.contains("0a1b"), "{kept}");
    }
}
