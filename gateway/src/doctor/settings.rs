//! What the configuration refers to: models on the disk, keys and addresses of models, MCP servers, capabilities.

use std::{net::ToSocketAddrs as _, sync::mpsc::sync_channel, thread, time::Duration};

use audio::models::{self as weights, Status};
use axum::http::Uri;
use tokio::runtime::Runtime;

use crate::{
    capabilities::{Evaluator, Prepared as Capabilities},
    config::Config,
    findings::{Findings, Level},
    mcp::Prepared,
    models::{self, settings::Model},
    speech::wake,
};

/// How long the lookup of a name may take.
const LOOKUP_MAX: Duration = Duration::from_secs(3);

pub(super) fn examine(config: &Config, runtime: &Runtime, findings: &mut Findings) {
    answering(config, findings);
    let mut mcp = match Prepared::load(&config.mcp, config.folder.as_deref()) {
        Ok(mcp) => mcp,
        Err(problems) => {
            for problem in problems {
                findings.fault("mcp", problem, "correct the section [mcp]; the gateway does not start with it");
            }
            return;
        }
    };
    let problems = mcp.problems();
    if problems.is_empty() && !config.mcp.servers.is_empty() {
        findings.ok("mcp", format!("{mcp}"));
    }
    for problem in problems {
        findings.add(
            Level::Warning,
            "mcp",
            problem,
            "correct the section [mcp]; `lorgnette mcp list` shows the servers",
        );
    }
    let folders = (config.folder.as_deref(), config.data_dir.as_path());
    let evaluator = Evaluator::new(config.models.code.executable.as_deref());
    match runtime.block_on(Capabilities::load(&config.capabilities, folders, &mut mcp, &evaluator)) {
        Ok(capabilities) => findings.ok("capabilities", format!("{capabilities}")),
        Err(problems) => {
            for problem in problems {
                findings.fault("capabilities", problem, "correct it; the gateway does not start with it");
            }
        }
    }
}

/// The models that answer.
fn answering(config: &Config, findings: &mut Findings) {
    for model in &config.models.chain {
        let Model::Provider(provider) = model else { continue };
        if let Err(error) = models::check_key(model) {
            let remedy = "give the model a key that can be read (docs/models.md); the gateway does not start without";
            findings.fault("model key", format!("{model}: {error:#}"), remedy);
        }
        let Some((host, port)) = host_of(&provider.base_url) else { continue };
        match lookup(&host, port) {
            Ok(()) => findings.ok("model", format!("{model}: its name is known")),
            Err(why) => findings.add(
                Level::Warning,
                "model",
                format!("{model}: {host} cannot be looked up: {why}"),
                "check `base_url`, the network, and the DNS server in /etc/resolv.conf; meanwhile the next model of the \
                 configuration answers, or the offline engine",
            ),
        }
    }
}

pub(super) fn host_of(url: &str) -> Option<(String, u16)> {
    let url: Uri = url.parse().ok()?;
    let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("http") { 80 } else { 443 });
    Some((url.host()?.trim_matches(['[', ']']).to_owned(), port))
}

pub(super) fn lookup(host: &str, port: u16) -> Result<(), String> {
    let (told, found) = sync_channel(1);
    let name = (host.to_owned(), port);
    // The system's lookup has no deadline; it ends with this process.
    let looking = thread::Builder::new().name("lookup".to_owned()).spawn(move || {
        drop(told.send(name.to_socket_addrs().map(|mut found| found.next().is_some())));
    });
    looking.map_err(|error| error.to_string())?;
    match found.recv_timeout(LOOKUP_MAX) {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err("it has no address".to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", LOOKUP_MAX.as_secs())),
    }
}

/// The heads of wake phrases.
fn wake_words(config: &Config, findings: &mut Findings) {
    let Some(heads) = &config.hearing.wake else { return };
    let problems = wake::examine(heads, &config.conversation.wake_phrases);
    if problems.is_empty() {
        findings.ok("wake words", format!("heads for {}", config.conversation.wake_phrases.join(", ")));
    }
    for problem in problems {
        let remedy =
            "correct it, or set `hearing.wake` to \"text\"; until then all wake phrases are known by their text";
        findings.add(Level::Warning, "wake words", problem, remedy);
    }
}

/// The models for speech: whether all of them are there, and unchanged.
pub(super) fn examine_models(config: &Config, findings: &mut Findings) -> bool {
    let (folder, before) = (&config.models_dir, findings.count(Level::Fault));
    let wanted = config.models_wanted();
    for entry in &wanted {
        let fetch = format!("run `lorgnette models fetch {}`, or `lorgnette models import` without internet", entry.id);
        match weights::judged(entry, folder) {
            Status::Missing if config.can_do_without(entry) => {
                let what = format!("{} is missing in {}: all is recognised elsewhere", entry.id, folder.display());
                findings.add(Level::Warning, "models", what, fetch);
            }
            Status::Missing => {
                findings.fault("models", format!("{} is missing in {}", entry.id, folder.display()), fetch);
            }
            Status::Damaged => {
                findings.fault("models", format!("{} in {} is damaged", entry.id, folder.display()), fetch);
            }
            Status::Unverified | Status::Verified => {}
        }
    }
    for model in [Some(&config.hearing.model), config.hearing.second_model.as_ref()].into_iter().flatten() {
        if !model.starts_with(folder) && !model.is_file() && config.hearing.remote.is_none() {
            let remedy = "correct `model` or `second_model` in the section [hearing]";
            findings.fault("models", format!("there is no model {}", model.display()), remedy);
        }
    }
    wake_words(config, findings);
    let are_there = findings.count(Level::Fault) == before;
    if are_there {
        let whole = wanted.iter().filter(|entry| weights::status(entry, folder) != Status::Missing);
        let whole: Vec<&str> = whole.map(|entry| entry.id).collect();
        let whole = if whole.is_empty() { "none is needed".to_owned() } else { whole.join(", ") };
        findings.ok("models", format!("unchanged in {}: {whole}", folder.display()));
    }
    are_there && config.hearing.model.is_file()
}
