//! Accepted and rejected configurations, and the error messages.

use super::*;

fn variable(name: &str) -> Option<String> {
    (name == "TOKEN").then(|| "s3cret".to_owned())
}

fn file(text: &str) -> Result<Vec<Server>, String> {
    check_file(text, &variable)
}

#[test]
fn the_common_form_is_understood() {
    let servers = file(
        r#"{"mcpServers": {
            "memory": {"command": "npx", "args": ["-y", "server-memory"], "env": {"KEY": "x-${TOKEN}"}, "deny": ["wipe"],
                       "alwaysAllow": ["read"]},
            "web": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"},
                    "allow": ["search"], "approval": "never", "timeoutMs": 5000},
            "off": {"command": "false", "disabled": true}
        }}"#,
    )
    .unwrap();
    assert_eq!(servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["memory", "web"]);
    let Reach::Stdio { command, args, env, .. } = &servers[0].reach else { panic!("a child") };
    assert_eq!((command.as_str(), args.len(), env["KEY"].as_str()), ("npx", 2, "x-s3cret"));
    let Reach::Http { headers, .. } = &servers[1].reach else { panic!("by HTTP") };
    assert_eq!(headers["Authorization"], "Bearer s3cret");
    assert_eq!((servers[1].approval, servers[1].timeout_ms), (Approval::Never, Some(5000)));
    assert!(servers[0].wants("read") && !servers[0].wants("wipe"));
    assert!(servers[1].wants("search") && !servers[1].wants("read"));
}

#[test]
fn mistakes_say_where_and_what_to_do() {
    let table = [
        (r#"{"mcpServers": {"a": {"command": "x", "env": {"K": "${NOPE}"}}}}"#, ["`a.env.K`", "NOPE is not set"]),
        (r#"{"mcpServers": {"a": {"command": "x", "args": ["${TOKEN"]}}}"#, ["`a.args`", "without `}`"]),
        (r#"{"mcpServers": {"a": {}}}"#, ["`a`", "either `command`"]),
        (r#"{"mcpServers": {"a": {"command": "x", "url": "http://y"}}}"#, ["`a`", "either `command`"]),
        (r#"{"mcpServers": {"a": {"url": "ftp://y"}}}"#, ["`a.url`", "http://"]),
        (r#"{"mcpServers": {"a.b": {"command": "x"}}}"#, ["`a.b`", "letters"]),
        (r#"{"mcpServers": {"a": {"command": "x", "timeoutMs": 0}}}"#, ["`a.timeout_ms`", "between"]),
        ("{\n\"mcpServers\": []}", ["line 2", "form"]),
        ("{}", ["mcpServers", "form"]),
    ];
    for (text, wanted) in table {
        let error = file(text).unwrap_err();
        for part in wanted {
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}

#[test]
fn a_default_stands_in_for_a_variable() {
    let filled = |text: &str| substitute(text, &variable, &mut Found::default()).unwrap();
    assert_eq!(filled("a${NOPE:-b}c${TOKEN:-d}"), "abcs3cret");
    assert_eq!(filled("$TOKEN ${NOPE:-}"), "$TOKEN ");
}

/// The secrets of a server with this configuration.
fn secrets(config: &str) -> Vec<String> {
    let servers = file(&format!("{{\"mcpServers\": {{\"a\": {config}}}}}")).unwrap();
    assert!(!format!("{servers:?}").contains("s3cret"), "{config}");
    servers[0].secrets().iter().map(|secret| secret.expose().to_owned()).collect()
}

#[test]
fn what_the_environment_provides_is_a_secret_wherever_it_is_put() {
    for config in [
        r#"{"command": "x", "env": {"LEVEL": "${TOKEN}"}}"#,
        r#"{"command": "x", "args": ["-v", "a${TOKEN}b"]}"#,
        r#"{"command": "/opt/${TOKEN}/x"}"#,
        r#"{"url": "https://example.com/${TOKEN}/mcp"}"#,
        r#"{"url": "https://example.com/mcp", "headers": {"X-Team": "${TOKEN}"}}"#,
    ] {
        assert_eq!(secrets(config), ["s3cret"], "{config}");
    }
}

#[test]
fn of_what_is_written_in_the_configuration_only_credentials_are_secrets() {
    let env = r#""env": {"LANG": "en_US.UTF-8", "FAST": "true", "MODE": "production", "API_KEY": "k-12345"}"#;
    assert_eq!(secrets(&format!("{{\"command\": \"x\", {env}}}")), ["k-12345"]);
    let headers = r#""headers": {"Accept-Language": "english", "X-Api-Key": "k-67890", "Authorization": "Bearer k-1"}"#;
    let found = secrets(&format!("{{\"url\": \"https://u:k-2@example.com/mcp?token=k-3&page=one\", {headers}}}"));
    assert_eq!(found, ["k-2", "k-3", "k-1", "k-67890"]);
    assert_eq!(secrets(r#"{"command": "npx", "args": ["-y", "server-memory", "--token", "k-4"]}"#), ["k-4"]);
    assert!(secrets(r#"{"command": "x", "args": ["${NOPE:-english}"], "env": {"HOME": "/srv/home"}}"#).is_empty());
}

#[test]
fn a_missing_program_is_told_without_secrets() {
    let servers = file(r#"{"mcpServers": {"a": {"command": "/opt/${TOKEN}/x"}}}"#).unwrap();
    assert_eq!(servers[0].cannot_start(None).unwrap(), "`a.command`: /opt/[secret]/x is not there, or no program");
}

#[test]
fn a_server_may_be_for_some_clients_only() {
    let servers =
        file(r#"{"mcpServers": {"a": {"command": "x", "clients": ["internal"]}, "b": {"command": "x"}}}"#).unwrap();
    assert!(servers[0].is_for("ada", ClientClass::Internal) && !servers[0].is_for("ada", ClientClass::External));
    assert!(servers[1].is_for("ada", ClientClass::External));
}

#[test]
fn a_server_may_be_for_some_users_only() {
    let servers = file(r#"{"mcpServers": {"a": {"command": "x", "users": ["ada"]}, "b": {"command": "x"}}}"#).unwrap();
    assert!(servers[0].is_for("ada", ClientClass::External) && !servers[0].is_for("bob", ClientClass::External));
    assert!(servers[1].is_for("bob", ClientClass::External));
    assert_eq!((servers[0].scopes(), servers[1].scopes()), (vec![Scope::User("ada".into())], vec![Scope::Global]));
    assert!(file(r#"{"mcpServers": {"a": {"command": "x", "users": []}}}"#).unwrap_err().contains("`a.users`"));
}

#[test]
fn a_program_that_is_not_there_is_told_before_it_is_started() {
    let folder = std::env::temp_dir();
    let problem = |command: &str, more: &str| {
        let raw = serde_json::from_str(&format!("{{\"command\": {command:?}{more}}}")).unwrap();
        let server = check("a", raw, &|_| None).unwrap().unwrap();
        server.cannot_start(Some("/nowhere:/bin:/usr/bin".into()))
    };
    assert_eq!(problem("sh", ""), None);
    assert_eq!(problem("/bin/sh", ""), None);
    assert_eq!(problem("./sh", ", \"cwd\": \"/bin\""), None);
    assert!(problem("no-such-program", "").unwrap().contains("no program `no-such-program` in PATH"));
    assert!(problem("sh", ", \"env\": {\"PATH\": \"/nowhere\"}").unwrap().contains("in PATH"));
    assert!(problem("/bin/no-such", "").unwrap().contains("/bin/no-such is not there"));
    assert!(problem("/etc/passwd", "").unwrap().contains("no program"), "it cannot be run");
    let absent = folder.join("no-such-folder").display().to_string();
    assert!(problem("sh", &format!(", \"cwd\": {absent:?}")).unwrap().contains("`a.cwd`"));
}
