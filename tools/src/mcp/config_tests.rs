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
            "memory": {"command": "npx", "args": ["-y", "server-memory"], "env": {"KEY": "x-${TOKEN}"}, "deny": ["wipe"]},
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
    assert_eq!(substitute("a${NOPE:-b}c${TOKEN:-d}", &variable).unwrap(), "abcs3cret");
    assert_eq!(substitute("$TOKEN ${NOPE:-}", &variable).unwrap(), "$TOKEN ");
}

#[test]
fn a_servers_secrets_are_not_printed() {
    let servers = file(r#"{"mcpServers": {"a": {"command": "x", "env": {"K": "${TOKEN}"}}}}"#).unwrap();
    assert!(!format!("{servers:?}").contains("s3cret"));
}

#[test]
fn a_server_may_be_for_some_clients_only() {
    let servers =
        file(r#"{"mcpServers": {"a": {"command": "x", "clients": ["internal"]}, "b": {"command": "x"}}}"#).unwrap();
    assert!(servers[0].is_for(ClientClass::Internal) && !servers[0].is_for(ClientClass::External));
    assert!(servers[1].is_for(ClientClass::External));
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
