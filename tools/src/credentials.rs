//! Values from the environment, and which values of a configuration are secrets: those that the environment provides
//! through `${NAME}`, wherever they are put, and those under a key that names a credential. All others may appear in
//! results.

use reqwest::Url;

use crate::secret::Secret;

/// Environment variables that a child inherits; the others may contain keys of third parties. The gateway passes them
/// to every child, so their values are no secrets.
pub(crate) const INHERITED: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "TERM",
    "TMPDIR",
    "TZ",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
];
/// Words of a key's name that say that its value is a credential.
const CREDENTIALS: [&str; 12] =
    ["key", "keys", "secrets", "pass", "pwd", "pat", "auth", "authorization", "credential", "cookie", "bearer", "jwt"];
/// Ends of such words: `PGPASSWORD`.
const ENDS: [&str; 9] =
    ["apikey", "secretkey", "accesskey", "token", "secret", "password", "passwd", "passphrase", "credentials"];
/// Last words of a name whose value only belongs to a credential: `TOKEN_FILE`, `API_KEY_ID`.
const ABOUT: [&str; 16] = [
    "file", "path", "dir", "folder", "id", "name", "url", "uri", "type", "limit", "length", "count", "ttl", "timeout",
    "sock", "mode",
];
/// First words of a credential that name its scheme: `Bearer KEY`.
const SCHEMES: [&str; 5] = ["bearer", "basic", "token", "apikey", "bot"];

/// Whether texts of a configuration hold a credential, or may: read as the arguments of a program, of which one may be an
/// address or a header. An address that cannot be parsed may have a password in it.
pub fn may_be_in(texts: &[String]) -> bool {
    let mut found = Found::default();
    found.arguments(texts);
    let is_unclear = |text: &String| addresses(text).any(|address| Url::parse(address).is_err());
    !found.0.is_empty() || texts.iter().any(is_unclear)
}

/// The secrets of one server or capability, as they are found.
#[derive(Default)]
pub(crate) struct Found(Vec<Secret>);

impl Found {
    /// All of them, each once.
    pub(crate) fn into_secrets(self) -> Vec<Secret> {
        self.0
    }

    /// The value of the environment variable `name`, which is put into the configuration.
    pub(crate) fn variable(&mut self, name: &str, value: &str) {
        if !INHERITED.contains(&name) {
            self.push(value);
        }
    }

    /// An entry of `env` or `headers`.
    pub(crate) fn entry(&mut self, name: &str, value: &str) {
        if is_credential(name) {
            self.credential(name, value);
        }
        self.address(value);
    }

    /// The arguments of a program: `--token KEY`, `--token=KEY`, `TOKEN=KEY`, `Authorization: Bearer KEY`, the last two also
    /// behind an option, as in `--env=TOKEN=KEY`; and addresses.
    pub(crate) fn arguments(&mut self, arguments: &[String]) {
        let mut option = None;
        for argument in arguments {
            let is_option = argument.starts_with('-');
            if let Some(name) = option.take().filter(|_| !is_option) {
                self.credential(name, argument);
            }
            if is_option && is_name(argument) && is_credential(argument) {
                option = Some(argument.as_str());
            }
            let mut rest = argument.as_str();
            while let Some((name, value)) = rest.split_once(['=', ':']).filter(|(name, _)| is_name(name)) {
                if is_credential(name) {
                    self.credential(name, value);
                    break;
                }
                rest = value;
            }
            self.address(argument);
        }
    }

    /// The addresses in a text: the password and the parameters that name a credential.
    pub(crate) fn address(&mut self, text: &str) {
        for address in addresses(text) {
            let url = Url::parse(address).ok();
            let (password, query) = url.as_ref().map_or_else(|| unparsed(address), |url| (url.password(), url.query()));
            if let Some(password) = password {
                self.push(password);
                self.push(&decoded(password));
            }
            for pair in query.unwrap_or_default().split('&') {
                if let Some((name, value)) = pair.split_once('=').filter(|(name, _)| is_credential(name)) {
                    self.credential(name, value);
                    self.credential(name, &decoded(value));
                }
            }
        }
    }

    fn credential(&mut self, name: &str, value: &str) {
        if name.trim_start_matches('-').eq_ignore_ascii_case("cookie") {
            value.split(';').filter_map(|cookie| cookie.split_once('=')).for_each(|(_, value)| self.push(value));
            return;
        }
        // In `Bearer KEY`, the key alone is already a secret.
        let key = value.trim().split_once(' ').filter(|(scheme, _)| is_one_of(&SCHEMES, scheme));
        self.push(key.map_or(value, |(_, key)| key));
    }

    fn push(&mut self, value: &str) {
        let secret = Secret::new(value.trim());
        if !secret.expose().is_empty() && !self.0.contains(&secret) {
            self.0.push(secret);
        }
    }
}

/// Replaces `${NAME}` by environment variables; `${NAME:-text}` yields the text if there is no such variable.
pub(crate) fn substitute(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
    found: &mut Found,
) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, after)) = after.split_once('}') else {
            return Err("`${` without `}`".to_owned());
        };
        let (name, default) = inside.split_once(":-").map_or((inside, None), |(name, text)| (name, Some(text)));
        out.push_str(before);
        match (variable(name), default) {
            (Some(value), _) => {
                found.variable(name, &value);
                out.push_str(&value);
            }
            (None, Some(default)) => out.push_str(default),
            (None, None) => {
                return Err(format!(
                    "the environment variable {name} is not set; set it, or give a default: ${{{name}:-text}}"
                ));
            }
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// The addresses in a text, each from its scheme to a space or a quote.
fn addresses(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("://").filter_map(move |(at, _)| {
        let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let before = text.get(..at)?.trim_end_matches(is_of_scheme);
        text.get(before.len()..)?.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).next()
    })
}

/// The password and the query of an address that cannot be parsed, such as one with several hosts or a placeholder.
fn unparsed(address: &str) -> (Option<&str>, Option<&str>) {
    let address = address.split('#').next().unwrap_or_default();
    let (hierarchy, query) = address.split_once('?').map_or((address, None), |(before, query)| (before, Some(query)));
    let authority = hierarchy.split('/').nth(2).unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    let password = user.and_then(|user| user.split_once(':')).map(|(_, password)| password);
    (password, query)
}

/// Percent-encoded text as it was meant.
fn decoded(text: &str) -> String {
    let pair = format!("={}", text.replace('+', "%2B"));
    form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

fn is_one_of(words: &[&str], word: &str) -> bool {
    words.iter().any(|other| other.eq_ignore_ascii_case(word))
}

/// Whether a name is that of a credential, by its words: `apiKey`, `X-Auth-Token`, `GITHUB_PAT`, `PGPASSWORD`.
fn is_credential(name: &str) -> bool {
    let mut words: Vec<String> = Vec::new();
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() {
            words.push(String::new());
        } else if c.is_ascii_uppercase() && was_lower {
            words.push(c.to_ascii_lowercase().to_string());
        } else if let Some(word) = words.last_mut() {
            word.push(c.to_ascii_lowercase());
        } else {
            words.push(c.to_ascii_lowercase().to_string());
        }
        was_lower = c.is_ascii_lowercase();
    }
    // `API_KEY_2`.
    words.retain(|word| word.chars().any(|c| !c.is_ascii_digit()));
    let names = |word: &String| is_one_of(&CREDENTIALS, word) || ENDS.iter().any(|end| word.ends_with(end));
    let is_about = words.last().is_some_and(|last| is_one_of(&ABOUT, last));
    let is_public = words.iter().any(|word| word == "public");
    words.iter().any(names) && !is_about && !is_public
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_credentials_are_known_by_their_words() {
        for name in [
            "KEY",
            "VENDOR_API_KEY",
            "apiKey",
            "X-Api-Key",
            "Authorization",
            "Proxy-Authorization",
            "GITHUB_PAT",
            "PGPASSWORD",
            "AWS_SECRET_ACCESS_KEY",
            "SECRET_KEY_BASE",
            "--auth-token",
            "API_KEY_2",
            "accessToken",
            "FAULTY_KEY",
            "DB_PASS",
            "x-credentials",
        ] {
            assert!(is_credential(name), "{name}");
        }
        for name in [
            "LANG",
            "MONKEY",
            "KEYBOARD",
            "AUTHOR",
            "TOKEN_FILE",
            "AWS_ACCESS_KEY_ID",
            "SSH_AUTH_SOCK",
            "AUTH_MODE",
            "PUBLIC_KEY",
            "COMPASS",
            "MAX_TOKENS",
            "DEBUG",
            "--port",
            "",
            "_",
            "PATH",
        ] {
            assert!(!is_credential(name), "{name}");
        }
    }

    fn found(look: impl FnOnce(&mut Found)) -> Vec<String> {
        let mut found = Found::default();
        look(&mut found);
        found.into_secrets().iter().map(|secret| secret.expose().to_owned()).collect()
    }

    #[test]
    fn credentials_are_found_in_every_usual_form() {
        let arguments = |list: &[&str]| {
            let list: Vec<String> = list.iter().map(|text| (*text).to_owned()).collect();
            found(|found| found.arguments(&list))
        };
        assert_eq!(arguments(&["-y", "server", "--token", "k-1", "--verbose"]), ["k-1"]);
        assert_eq!(arguments(&["--api-key=k-2", "-e", "DB_PASSWORD=k-3"]), ["k-2", "k-3"]);
        assert_eq!(arguments(&["--header", "Authorization: Bearer k-4"]), ["k-4"]);
        assert_eq!(arguments(&["postgres://ann:k%2F5@db/x?sslmode=require"]), ["k%2F5", "k/5"]);
        assert_eq!(arguments(&["https://h/mcp?access_token=k-6&lang=en", "/srv/shared", "--port", "80"]), ["k-6"]);
        assert!(arguments(&["--token", "--verbose", "on"]).is_empty(), "the option has no value");
        assert!(arguments(&["--url=https://h/token/x", "value-1"]).is_empty(), "the option has its value");
        assert_eq!(found(|found| found.entry("Authorization", "Basic YTpi")), ["YTpi"]);
        assert_eq!(found(|found| found.entry("Cookie", "a=k-7; b=k-8")), ["k-7", "k-8"]);
        assert_eq!(found(|found| found.entry("PASSPHRASE", "correct horse battery")), ["correct horse battery"]);
        assert_eq!(found(|found| found.entry("DATABASE_URL", "mysql://u:k-9@db/x")), ["k-9"]);
        assert!(found(|found| found.entry("LANG", "en_US.UTF-8")).is_empty());
        assert!(found(|found| found.variable("HOME", "/srv/ann")).is_empty());
        assert_eq!(found(|found| found.variable("OFFICE", "k-0")), ["k-0"]);
    }

    #[test]
    fn passwords_are_found_in_addresses_wherever_they_are() {
        let table: [(&[&str], &[&str]); 14] = [
            (&["exec srv --url https://h/mcp?api_key=KEY-1 --verbose"], &["KEY-1"]),
            (&["--config={\"url\":\"https://h/mcp?token=KEY-2\"}"], &["KEY-2"]),
            (&["-e", "DATABASE_URL=postgres://u:s3cretpw@h/db"], &["s3cretpw"]),
            (&["--dsn=postgres://u:k-1@h/db", "plain"], &["k-1"]),
            (&["--dsn", "postgres://u:k%3A2@h/db"], &["k%3A2", "k:2"]),
            (&["mongodb://u:k-3@h1:27017,h2:27017/db"], &["k-3"]),
            (&["--uri=mongodb://u:k%2F4@h1:27017,h2:27017/db?ssl=true&api_key=k-5#x"], &["k%2F4", "k/4", "k-5"]),
            (&["mongodb://u:k@6:7@h1:1,h2:2"], &["k@6:7"]),
            (&["http://u:k-7@h:${PORT}/a:b@c"], &["k-7"]),
            (&["a=http://u:k-8@h/ b=redis://:k-9@h:x/"], &["k-8", "k-9"]),
            (&["--env=DB_PASSWORD=k-10", "--header=X-Api-Key: k-11"], &["k-10", "k-11"]),
            (&["--auth=https://u:k-12@h/"], &["https://u:k-12@h/", "k-12"]),
            (&["mongodb://h1:27017,h2:27017/db", "--dsn=postgres://u@h/db", "://", "x://"], &[]),
            (&["https://h:8443/@scope/a:b", "mongodb://h1:1,h2:2/u:p@x?mail=a:b@c"], &[]),
        ];
        for (list, wanted) in table {
            let list: Vec<String> = list.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(found(|found| found.arguments(&list)), wanted, "{list:?}");
            assert!(wanted.is_empty() || may_be_in(&list), "{list:?}");
        }
        let uri = "mongodb://u:k-13@h1:27017,h2:27017/db";
        assert_eq!(found(|found| found.entry("MONGODB_URI", uri)), ["k-13"]);
    }

    #[test]
    fn texts_with_a_credential_are_told_from_others() {
        let may = |list: &[&str]| may_be_in(&list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        assert!(may(&["--token", "k-1"]) && may(&["X-Api-Key: k-2"]) && may(&["https://h/mcp?token=k-3"]));
        assert!(may(&["http://u:k-4@h:${PORT}/"]) && may(&["--db=postgres://u:k-5@h/x"]));
        assert!(may(&["--db=mysql://u:k/6@h/x"]), "it cannot be parsed, and what is its password is not known");
        assert!(!may(&["--db=postgres://h/x"]));
        assert!(!may(&[]) && !may(&["-y", "https://h/mcp?lang=en", "now: or later"]) && !may(&["--token"]));
    }
}
