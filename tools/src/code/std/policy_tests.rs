//! What a policy allows, and what is wrong with one.

use super::*;

fn checked(text: &str) -> Result<StdPolicy, String> {
    let config: StdConfig = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let environment = |name: &str| (name == "KEY").then(|| "planted-4711".to_owned());
    StdPolicy::check(config, environment).map_err(|error| error.to_string())
}

fn allows(policy: &StdPolicy, user: &str, url: &str) -> bool {
    policy.rule(user, &Url::parse(url).unwrap()).is_ok()
}

#[test]
fn hosts_are_matched_by_scheme_name_and_port() {
    let policy = checked(
        "http.hosts = ['API.example.com', '*.Example.org', 'bücher.example', '1.1.1.1', '2606:4700:4700::1111',
            {host = 'plain.example', scheme = 'http', port = 8080}, {host = 'box', private = true, users = ['ann']}]",
    )
    .unwrap();
    for url in [
        "https://api.example.com/a?b#c",
        "https://API.EXAMPLE.COM:443/",
        "https://a.example.org",
        "https://a.b.example.org",
        "https://b%C3%BCcher.example/",
        "https://xn--bcher-kva.example/",
        "https://1.1.1.1/",
        "https://0x1010101/",
        "https://[2606:4700:4700:0::1111]/",
        "http://plain.example:8080/",
        "https://box/",
    ] {
        assert!(allows(&policy, "ann", url), "{url}");
    }
    for url in [
        "http://api.example.com/",
        "https://api.example.com:8443/",
        "https://api.example.com./",
        "https://xapi.example.com/",
        "https://api.example.com.evil.example/",
        "https://example.org/",
        "https://evilexample.org/",
        "https://plain.example:8080/",
        "http://plain.example/",
        "https://1.1.1.2/",
    ] {
        assert!(!allows(&policy, "ann", url), "{url}");
    }
    assert!(!allows(&policy, "bob", "https://box/"));
    let off = StdPolicy::default().rule("ann", &Url::parse("https://a.example/").unwrap()).unwrap_err();
    assert!(off.message.contains("http is off"), "{off:?}");
}

#[test]
fn what_is_wrong_is_said() {
    let table = [
        ("http.hosts = ['https://a.example']", "code.http.hosts[0] ('https://a.example'): not a host"),
        ("http.hosts = ['a.example/b']", "not a host"),
        ("http.hosts = ['a.example:8080']", "not a host"),
        ("http.hosts = ['u@a.example']", "not a host"),
        ("http.hosts = ['']", "not the name"),
        ("http.hosts = ['a.example.']", "not the name"),
        ("http.hosts = ['*']", "not a host"),
        ("http.hosts = ['*.com']", "at least two parts"),
        ("http.hosts = ['*.1.1.1.1']", "at least two parts"),
        ("http.hosts = ['a.*.example']", "not a host"),
        ("http.hosts = [{host = '*.a.example', private = true}]", "cannot be private"),
        ("http.hosts = ['127.0.0.1']", "a loopback address needs private = true"),
        ("http.hosts = ['::ffff:10.0.0.1']", "a private address needs private = true"),
        ("http.hosts = ['0177.0.0.1']", "a loopback address needs private = true"),
        ("http.hosts = [{host = '224.0.0.1', private = true}]", "a multicast address cannot be reached"),
        ("http.hosts = [{host = 'a.example', port = 0}]", "port 0"),
        ("http.hosts = [{host = 'a.example', scheme = 'ftp'}]", "unknown variant `ftp`"),
        ("http.hosts = [{host = 'a.example', privat = true}]", "unknown field `privat`"),
        ("http.hosts = [5]", "a host's name, or a table"),
        ("http.host = ['a.example']", "unknown field `host`"),
        ("secrets.A = {value = 'x'}", "code.secrets.A: the secret has 1 bytes"),
        ("secrets.A = {value = 'long enough'}", "of no use"),
        ("secrets.A = {value = '${NONE}', crypto = true}", "no variable NONE"),
        ("secrets.A = {value = 'x${KEY}', crypto = true}", "as a whole"),
        ("secrets.'A-B' = {value = '${KEY}', crypto = true}", "a name has letters"),
        ("secrets.A = {value = '${KEY}', hosts = ['a.example']}", "'a.example' is not among code.http.hosts"),
        ("http.hosts = ['a.b.example']\nsecrets.A = {value = '${KEY}', hosts = ['*.b.example']}", "is not among"),
        ("http.hosts = ['a.example']\nsecrets.A = {value = \"a\\nb long\", hosts = ['a.example']}", "no header"),
        ("secrets.A = {value = '${KEY}', host = 'a'}", "unknown field `host`"),
    ];
    for (text, expected) in table {
        let error = checked(text).err().unwrap_or_default();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn secrets_are_for_their_hosts_uses_and_users() {
    let policy = checked(
        "http.hosts = ['a.example', '*.b.example', {host = 'plain.example', scheme = 'http'},
            {host = 'box', scheme = 'http', private = true}]
        secrets.WEB = {value = '${KEY}', hosts = ['a.example', 'x.b.example', 'plain.example', 'box']}
        secrets.SIGN = {value = 'signing key', crypto = true, users = ['ann']}",
    )
    .unwrap();
    let send = |user: &str, name: &str, url: &str| {
        let url = Url::parse(url).unwrap();
        let rule = policy.rule(user, &url).unwrap();
        let secret = policy.for_host(user, name, rule, url.host_str().unwrap());
        secret.map(|secret| secret.expose().to_owned()).map_err(|error| error.message)
    };
    for url in ["https://a.example/", "https://x.b.example/", "http://box/"] {
        assert_eq!(send("ann", "WEB", url).as_deref(), Ok("planted-4711"), "{url}");
    }
    for (name, url, expected) in [
        ("WEB", "https://y.b.example/", "not for the host 'y.b.example'"),
        ("WEB", "http://plain.example/", "in plain text"),
        ("SIGN", "https://a.example/", "not for the host"),
        ("OTHER", "https://a.example/", "there is no secret OTHER"),
    ] {
        let error = send("ann", name, url).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(policy.for_crypto("ann", "SIGN").unwrap().expose(), "signing key");
    for (user, name) in [("bob", "SIGN"), ("ann", "WEB"), ("ann", "NONE")] {
        assert_eq!(policy.for_crypto(user, name).unwrap_err().code, "not_allowed", "{user} {name}");
    }
    assert!(!format!("{policy:?}").contains("planted-4711"));
}

#[test]
fn a_policy_of_a_capability_names_its_own_keys() {
    let config = |text: &str| toml::from_str::<StdConfig>(text).unwrap();
    let url = Url::parse("https://api.example.com/").unwrap();
    let none = StdPolicy::nothing_for("trains").rule("ada", &url).unwrap_err();
    assert!(none.message.ends_with("until the operator lists hosts in capabilities.policy.trains.hosts"), "{none:?}");
    let wrong = StdPolicy::check_for("trains", config("http.hosts = [\"a:b\"]"), |_| None).unwrap_err().to_string();
    assert!(wrong.starts_with("capabilities.policy.trains.hosts[0] ('a:b'): "), "{wrong}");
    let secret = "secrets.KEY = { value = \"long enough\", hosts = [\"api.example.com\"] }";
    let wrong = StdPolicy::check_for("trains", config(secret), |_| None).unwrap_err().to_string();
    assert!(wrong.contains("capabilities.policy.trains.secrets.KEY: ") && wrong.contains("trains.hosts"), "{wrong}");
}
