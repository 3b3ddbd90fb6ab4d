//! What the configuration refers to: models on the disk, keys and addresses of models, MCP servers, capabilities.

use std::{net::ToSocketAddrs as _, sync::mpsc::sync_channel, thread, time::Duration};

use audio::{
    asr,
    models::{self as weights, Status},
};
use axum::http::Uri;
use tokio::runtime::Runtime;

use super::Use;
use crate::{
    capabilities::{Evaluator, Prepared as Capabilities},
    config::Config,
    environment,
    findings::{Findings, Level},
    mcp::Prepared,
    models::{self, chain, metered::Meters, settings::Model},
    private::RUN_AS_ROOT,
    speech::wake,
};

/// How long the lookup of a name may take.
const LOOKUP_MAX: Duration = Duration::from_secs(3);

pub(super) fn examine(config: &Config, used_by: &Use, runtime: &Runtime, findings: &mut Findings) {
    answering(config, used_by, findings);
    // What else is wrong with the weights is told with the models.
    if let Err(error @ asr::Error::Language { .. }) = config.hearing.check_language() {
        let remedy = "do that, or correct the section [hearing]; the gateway does not start otherwise";
        findings.fault("languages", error.to_string(), remedy);
    }
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

/// The models that answer and that select tools, and the programs that they write.
fn answering(config: &Config, used_by: &Use, findings: &mut Findings) {
    let keyless = "give the model a key that can be read (docs/models.md); the gateway does not start without";
    let mut are_readable = true;
    for model in config.models.all() {
        if let Err(error) = models::check_key(model) {
            are_readable = false;
            findings.fault("model key", format!("{model}: {error:#}"), keyless);
        }
    }
    // What a start would read from variables.
    if !used_by.is_gateway() {
        if are_readable && let Err(error) = chain::set_up(&config.models, None, &Meters::default()) {
            findings.fault("model key", format!("{error:#}"), variable_remedy(config, keyless));
        }
        if let Err(error) = config.models.code.policy() {
            let own = "set the variable, or correct the section; the gateway does not start without";
            findings.fault("programs", format!("{error:#}"), variable_remedy(config, own));
        }
    }
    for model in &config.models.chain {
        let Model::Provider(provider) = model else { continue };
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

/// What to do about a variable that is not set: it may be set for the service, where this user cannot see it.
pub(super) fn variable_remedy(config: &Config, own: &str) -> String {
    environment::closed(config.file.as_deref())
        .map_or_else(|| own.to_owned(), |closed| format!("{closed}: {RUN_AS_ROOT}"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::check;

    #[test]
    fn a_variable_that_a_start_would_miss_is_a_fault_unless_a_gateway_has_its_own() {
        let faults = |text: &str, used_by: &Use| {
            let mut findings = Findings::default();
            answering(&check(text, "x.toml").unwrap(), used_by, &mut findings);
            let faults = findings.0.into_iter().filter(|finding| finding.level == Level::Fault);
            faults.map(|fault| (fault.check, fault.what)).collect::<Vec<_>>()
        };
        let model = "kind = \"chat_completions\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
                     key_env = \"LORGNETTE_TEST_UNSET\"\n";
        let secret = "[code]\nenabled = true\nhttp.hosts = [\"a.example\"]\n\
                      secrets.a = { value = \"${LORGNETTE_TEST_UNSET}\", hosts = [\"a.example\"] }\n";
        for (text, part) in [
            (format!("[model]\n{model}"), "model key"),
            (format!("[router.model]\n{model}"), "model key"),
            (secret.to_owned(), "programs"),
        ] {
            let found = faults(&text, &Use::NoFolder);
            let is_it = |(of, what): &(&str, String)| *of == part && what.contains("LORGNETTE_TEST_UNSET");
            assert!(found.len() == 1 && found.iter().all(is_it), "{text}: {found:?}");
            assert!(faults(&text, &Use::Starting).is_empty(), "{text}");
        }
        let off = secret.replace("enabled = true", "enabled = false");
        assert!(faults(&off, &Use::NoFolder).is_empty(), "nothing reads the secret");
    }
}
