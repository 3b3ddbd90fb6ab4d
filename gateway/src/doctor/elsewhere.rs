//! Recognition and speech outside of the gateway: keys, addresses, programs, and how they do.

use super::{
    Use,
    settings::{host_of, lookup, variable_remedy},
};
use crate::{
    config::Config,
    findings::{Findings, Level},
    speech::elsewhere::settings::{KeyPlace, Server, Speaker, find_program},
};

pub(super) fn examine(config: &Config, used_by: &Use, findings: &mut Findings) {
    if let Some(remote) = &config.hearing.remote {
        server("recognition", &remote.server, (config, used_by), findings);
    }
    match config.other_voice.as_ref().map(|other| &other.speaker) {
        Some(Speaker::Server { server: of_voice, .. }) => server("speech", of_voice, (config, used_by), findings),
        Some(Speaker::Program { command, .. }) => program(command, findings),
        None => {}
    }
    let Use::Gateway(status) = used_by else { return };
    for engine in &status.elsewhere {
        let all = engine.answered + engine.failed;
        match engine.rests_s {
            Some(s) => findings.add(
                Level::Warning,
                "elsewhere",
                format!("{} by {} has failed and is not asked for {s} s", engine.part, engine.place),
                "the gateway's log has the reason; this machine's own engine is asked meanwhile, if there is one",
            ),
            None => {
                let what = format!("{} by {}: {} of {all} answered", engine.part, engine.place, engine.answered);
                findings.ok("elsewhere", what);
            }
        }
    }
}

fn server(part: &str, server: &Server, (config, used_by): (&Config, &Use), findings: &mut Findings) {
    let is_variable = matches!(server.key, Some(KeyPlace::Env(_)));
    if !(is_variable && used_by.is_gateway())
        && let Err(error) = server.check_key()
    {
        let own = "give it a key that can be read (docs/elsewhere.md); the gateway does not start without";
        let remedy = if is_variable { variable_remedy(config, own) } else { own.to_owned() };
        findings.fault("elsewhere", format!("{part} by {server}: {error:#}"), remedy);
    }
    if server.is_plain_elsewhere() {
        let what = format!("{part} by {server}: what is said crosses the network unencrypted");
        let remedy = "use https://, unless this network is yours alone";
        findings.add(Level::Warning, "elsewhere", what, remedy);
    }
    let Some((host, port)) = host_of(&server.base_url) else { return };
    match lookup(&host, port) {
        Ok(()) => findings.ok("elsewhere", format!("{part} by {server}: its name is known")),
        Err(why) => findings.add(
            Level::Warning,
            "elsewhere",
            format!("{part} by {server}: {host} cannot be looked up: {why}"),
            "check `base_url`, the network, and the DNS server in /etc/resolv.conf",
        ),
    }
}

fn program(command: &[String], findings: &mut Findings) {
    let name = command.first().map_or("", String::as_str);
    match find_program(name) {
        Some(path) => findings.ok("elsewhere", format!("speech by {}", path.display())),
        None => findings.add(
            Level::Warning,
            "elsewhere",
            format!("speech by {name}: there is no such program in PATH"),
            "install it, or correct `voice.other.command`; the product's own voice speaks meanwhile",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::check;

    #[test]
    fn what_is_wrong_elsewhere_is_found() {
        let found_by = |text: &str, used_by: &Use| {
            let mut findings = Findings::default();
            examine(&check(text, "x.toml").unwrap(), used_by, &mut findings);
            let told = findings.0.into_iter().map(|finding| (finding.level, finding.what));
            told.collect::<Vec<_>>()
        };
        let findings = |text: &str| found_by(text, &Use::NoFolder);
        let remote = |more: &str| format!("[hearing]\nremote = {{ {more}, model = \"m\", use = \"fallback\" }}\n");
        let voice = |more: &str| {
            format!("[voice]\nother = {{ base_url = \"http://127.0.0.1:1/v1\", model = \"m\", {more} }}\n")
        };
        for (text, level, words) in [
            (remote("base_url = \"http://127.0.0.1:1/v1\""), Level::Ok, "its name is known"),
            (remote("base_url = \"http://192.0.2.1/v1\""), Level::Warning, "unencrypted"),
            (remote("base_url = \"http://127.0.0.1:1/v1\", key_file = \"/nonexistent\""), Level::Fault, "/nonexistent"),
            (
                remote("base_url = \"http://127.0.0.1:1/v1\", key_env = \"LORGNETTE_TEST_UNSET\""),
                Level::Fault,
                "TEST_UNSET",
            ),
            (voice("key_env = \"LORGNETTE_TEST_UNSET\""), Level::Fault, "TEST_UNSET"),
            ("[voice]\nother = { command = [\"sh\"] }\n".to_owned(), Level::Ok, "/sh"),
            ("[voice]\nother = { command = [\"no-such-program\"] }\n".to_owned(), Level::Warning, "no-such-program"),
        ] {
            let found = findings(&text);
            assert!(found.iter().any(|(of, what)| *of == level && what.contains(words)), "{text}: {found:?}");
        }
        assert!(findings("").is_empty());
        // A gateway has variables of its own.
        let found = found_by(&voice("key_env = \"LORGNETTE_TEST_UNSET\""), &Use::Starting);
        assert!(found.iter().all(|(level, _)| *level == Level::Ok), "{found:?}");
    }
}
