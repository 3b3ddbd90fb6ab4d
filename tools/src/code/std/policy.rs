//! What an operator allows programs: hosts that they may reach, and secrets that the gateway uses for them.
//!
//! ```toml
//! [code.http]
//! hosts = ["api.example.com", "*.example.org", { host = "192.168.1.20", scheme = "http", port = 8123, private = true }]
//!
//! [code.secrets.EXAMPLE_KEY]
//! value = "${EXAMPLE_KEY}"
//! hosts = ["api.example.com"]
//! ```

use std::{collections::BTreeMap, fmt, net::IpAddr};

use reqwest::{Url, header::HeaderValue};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use thiserror::Error;

use super::{
    address::{Class, Reach, class},
    values::error,
};
use crate::{code::HostError, limits::SECRET_BYTES_MIN, secret::Secret};

/// Hosts of a policy.
const HOSTS_MAX: usize = 256;
/// Secrets of a policy: a quarter of those that can be redacted.
const SECRETS_MAX: usize = 64;
/// Bytes of a secret's name.
const NAME_BYTES_MAX: usize = 64;
/// Bytes of a secret: long tokens have 2 KiB.
const SECRET_BYTES_MAX: usize = 4 * 1024;

/// `[code.http]` and `[code.secrets]` as they are written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StdConfig {
    /// Hosts that programs may reach.
    pub http: HttpConfig,
    /// Secrets by name.
    pub secrets: BTreeMap<String, SecretConfig>,
}

/// `[code.http]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpConfig {
    /// Hosts that programs may reach; none by default.
    pub hosts: Vec<HostConfig>,
}

/// How a host is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Encrypted.
    #[default]
    Https,
    /// In plain text.
    Http,
}

/// A host: its name alone, or a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// A name, an address, or `*.example.org` for all names below `example.org`.
    pub host: String,
    /// `https` unless it says otherwise.
    pub scheme: Scheme,
    /// The scheme's own port unless it says otherwise.
    pub port: Option<u16>,
    /// Whether the host may have a private or loopback address.
    pub private: bool,
    /// The users whose programs may reach it; `None`: all.
    pub users: Option<Vec<String>>,
}

impl<'de> Deserialize<'de> for HostConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            host: String,
            #[serde(default)]
            scheme: Scheme,
            port: Option<u16>,
            #[serde(default)]
            private: bool,
            users: Option<Vec<String>>,
        }
        struct NameOrTable;
        impl<'de> Visitor<'de> for NameOrTable {
            type Value = HostConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a host's name, or a table with host, scheme, port, private, users")
            }

            fn visit_str<E>(self, host: &str) -> Result<HostConfig, E> {
                let host = host.to_owned();
                Ok(HostConfig { host, scheme: Scheme::Https, port: None, private: false, users: None })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<HostConfig, A::Error> {
                let Table { host, scheme, port, private, users } = Table::deserialize(MapAccessDeserializer::new(map))?;
                Ok(HostConfig { host, scheme, port, private, users })
            }
        }
        deserializer.deserialize_any(NameOrTable)
    }
}

/// `[code.secrets.NAME]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretConfig {
    /// The secret, or `${VARIABLE}` for a variable of the environment.
    pub value: Secret,
    /// Hosts that it may be sent to, in the header of a request. Each must be among those of `[code.http]`.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Whether programs may sign and encrypt with it.
    #[serde(default)]
    pub crypto: bool,
    /// The users whose programs may use it; `None`: all.
    pub users: Option<Vec<String>>,
}

/// What is wrong with a policy: where, what, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{at}: {what}")]
pub struct PolicyError {
    /// The key in the configuration.
    pub at: String,
    /// What is wrong there, and what to write instead.
    pub what: String,
}

/// Where a policy is in the configuration.
#[derive(Clone, Debug)]
struct Keys {
    hosts: String,
    secrets: String,
}

impl Default for Keys {
    fn default() -> Self {
        Self { hosts: "code.http.hosts".to_owned(), secrets: "code.secrets".to_owned() }
    }
}

impl Keys {
    fn of(capability: &str) -> Self {
        let at = |key: &str| format!("capabilities.policy.{capability}.{key}");
        Self { hosts: at("hosts"), secrets: at("secrets") }
    }
}

/// What programs may do, checked. The default allows nothing.
#[derive(Clone, Debug, Default)]
pub struct StdPolicy {
    keys: Keys,
    hosts: Vec<HostRule>,
    secrets: BTreeMap<String, NamedSecret>,
}

#[derive(Clone, Debug)]
struct NamedSecret {
    value: Secret,
    hosts: Vec<HostPattern>,
    crypto: bool,
    users: Option<Vec<String>>,
}

/// A host, or all hosts below one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    Exact(String),
    /// With the dot before it.
    Below(String),
}

/// A host that may be reached.
#[derive(Clone, Debug)]
pub(super) struct HostRule {
    pattern: HostPattern,
    scheme: Scheme,
    port: u16,
    private: bool,
    users: Option<Vec<String>>,
}

impl HostPattern {
    /// A host as URLs have it: in lower case, in ASCII.
    fn parse(text: &str) -> Result<Self, String> {
        let (base, is_below) = text.strip_prefix("*.").map_or((text, false), |base| (base, true));
        let bare = base.trim_start_matches('[').trim_end_matches(']');
        let is_v6 = bare.parse::<std::net::Ipv6Addr>().is_ok();
        if !is_v6 && base.chars().any(|c| matches!(c, '/' | ':' | '@' | '?' | '#' | '%' | '*' | '[' | ']' | '\\')) {
            return Err("not a host: write its name only, without scheme, port and path".to_owned());
        }
        let url = if is_v6 { format!("https://[{bare}]/") } else { format!("https://{base}/") };
        let host = Url::parse(&url).ok().and_then(|url| url.host_str().map(str::to_owned));
        let host = host.filter(|host| !host.ends_with('.')).ok_or("not the name of a host")?;
        if !is_below {
            return Ok(Self::Exact(host));
        }
        if address_of(&host).is_some() || !host.contains('.') {
            return Err("a pattern needs at least two parts after '*.'".to_owned());
        }
        Ok(Self::Below(format!(".{host}")))
    }

    fn matches(&self, host: &str) -> bool {
        match self {
            Self::Exact(own) => own == host,
            Self::Below(end) => host.strip_suffix(end.as_str()).is_some_and(|first| !first.is_empty()),
        }
    }
}

/// The address that a host is written as, if it is one.
pub(super) fn address_of(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

impl HostRule {
    fn new(config: HostConfig) -> Result<Self, String> {
        let HostConfig { host, scheme, port, private, users } = config;
        let pattern = HostPattern::parse(&host)?;
        match &pattern {
            HostPattern::Below(_) if private => {
                return Err("a pattern cannot be private: list each private host by its name".to_owned());
            }
            HostPattern::Exact(host) => match (address_of(host).map(class), private) {
                (Some(Class::Never(what)), _) => return Err(format!("{what} cannot be reached")),
                (Some(Class::Private(what)), false) => return Err(format!("{what} needs private = true")),
                _ => {}
            },
            HostPattern::Below(_) => {}
        }
        let port = port.unwrap_or(match scheme {
            Scheme::Https => 443,
            Scheme::Http => 80,
        });
        if port == 0 {
            return Err("port 0 is none".to_owned());
        }
        Ok(Self { pattern, scheme, port, private, users })
    }

    fn matches(&self, user: &str, url: &Url) -> bool {
        let scheme = match self.scheme {
            Scheme::Https => "https",
            Scheme::Http => "http",
        };
        url.scheme() == scheme
            && url.port_or_known_default() == Some(self.port)
            && url.host_str().is_some_and(|host| self.pattern.matches(host))
            && is_for(self.users.as_deref(), user)
    }

    /// Which addresses it may have.
    pub(super) fn reach(&self) -> Reach {
        if self.private { Reach::Private } else { Reach::Public }
    }

    /// Whether secrets may be sent to it: encrypted, or within the operator's own network.
    fn keeps_secrets(&self) -> bool {
        self.scheme == Scheme::Https || self.private
    }
}

fn is_for(users: Option<&[String]>, user: &str) -> bool {
    users.is_none_or(|users| users.iter().any(|own| own == user))
}

impl StdPolicy {
    /// Checks what is written. `environment`: the value of a variable.
    ///
    /// # Errors
    /// A host is none, a secret is missing, too short, or bound to a host that is not listed.
    pub fn check(config: StdConfig, environment: impl Fn(&str) -> Option<String>) -> Result<Self, PolicyError> {
        Self::check_in(Keys::default(), config, environment)
    }

    /// The same of the handlers of a capability, in `[capabilities.policy.NAME]`.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_for(
        capability: &str,
        config: StdConfig,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, PolicyError> {
        Self::check_in(Keys::of(capability), config, environment)
    }

    /// Nothing is allowed to the handlers of this capability; errors say where it could be.
    pub fn nothing_for(capability: &str) -> Self {
        Self { keys: Keys::of(capability), ..Self::default() }
    }

    fn check_in(
        keys: Keys,
        config: StdConfig,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, PolicyError> {
        let wrong = |at: &str, what: String| Err(PolicyError { at: at.to_owned(), what });
        if config.http.hosts.len() > HOSTS_MAX {
            return wrong(&keys.hosts, format!("at most {HOSTS_MAX} hosts"));
        }
        if config.secrets.len() > SECRETS_MAX {
            return wrong(&keys.secrets, format!("at most {SECRETS_MAX} secrets"));
        }
        let mut policy = Self { keys, ..Self::default() };
        for (number, host) in config.http.hosts.into_iter().enumerate() {
            let at = format!("{}[{number}] ('{}')", policy.keys.hosts, host.host);
            policy.hosts.push(HostRule::new(host).map_err(|what| PolicyError { at, what })?);
        }
        for (name, secret) in config.secrets {
            let secret = policy
                .secret(&name, secret, &environment)
                .map_err(|what| PolicyError { at: format!("{}.{name}", policy.keys.secrets), what })?;
            policy.secrets.insert(name, secret);
        }
        Ok(policy)
    }

    fn secret(
        &self,
        name: &str,
        config: SecretConfig,
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Result<NamedSecret, String> {
        if !is_name(name) {
            return Err(format!("a name has letters, digits and '_', at most {NAME_BYTES_MAX}"));
        }
        let written = config.value.expose();
        let value = match written.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
            Some(variable) => {
                let value = environment(variable);
                Secret::new(value.ok_or_else(|| format!("the environment has no variable {variable}: set it"))?)
            }
            None if written.contains("${") => {
                return Err("a value is ${VARIABLE} as a whole, or no variable".to_owned());
            }
            None => config.value.clone(),
        };
        let bytes = value.expose().len();
        if !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&bytes) {
            return Err(format!(
                "the secret has {bytes} bytes; from {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} are possible"
            ));
        }
        if !config.hosts.is_empty() && HeaderValue::from_str(value.expose()).is_err() {
            return Err("the secret has characters that no header may have".to_owned());
        }
        if config.hosts.is_empty() && !config.crypto {
            return Err("it is of no use: set hosts, or crypto = true".to_owned());
        }
        let mut hosts = Vec::new();
        for host in config.hosts {
            let pattern = HostPattern::parse(&host).map_err(|what| format!("'{host}': {what}"))?;
            let is_listed = |rule: &HostRule| match &pattern {
                HostPattern::Exact(host) => rule.pattern.matches(host),
                HostPattern::Below(_) => rule.pattern == pattern,
            };
            if !self.hosts.iter().any(is_listed) {
                return Err(format!("'{host}' is not among {}: list it there", self.keys.hosts));
            }
            hosts.push(pattern);
        }
        Ok(NamedSecret { value, hosts, crypto: config.crypto, users: config.users })
    }

    /// Whether any host may be reached.
    pub fn has_hosts(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// All secrets, for redaction.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.secrets.values().map(|secret| &secret.value)
    }

    /// The rule by which a user's programs may request this.
    pub(super) fn rule(&self, user: &str, url: &Url) -> Result<&HostRule, HostError> {
        self.hosts.iter().find(|rule| rule.matches(user, url)).ok_or_else(|| {
            let origin = url.origin().ascii_serialization();
            let key = &self.keys.hosts;
            let message = if self.has_hosts() {
                format!("programs may not request {origin}: the operator can list the host in {key}")
            } else {
                format!("programs may not request {origin}: http is off until the operator lists hosts in {key}")
            };
            error("not_allowed", message)
        })
    }

    /// A secret for a header of a request to this host.
    pub(super) fn for_host(&self, user: &str, name: &str, rule: &HostRule, host: &str) -> Result<&Secret, HostError> {
        let secret = self.named(user, name)?;
        if !secret.hosts.iter().any(|pattern| pattern.matches(host)) {
            return Err(error("not_allowed", format!("the secret {name} is not for the host '{host}'")));
        }
        if !rule.keeps_secrets() {
            let message = format!("the secret {name} is not sent to '{host}' in plain text: use https");
            return Err(error("not_allowed", message));
        }
        Ok(&secret.value)
    }

    /// A secret to sign or encrypt with.
    pub(super) fn for_crypto(&self, user: &str, name: &str) -> Result<&Secret, HostError> {
        let secret = self.named(user, name)?;
        if !secret.crypto {
            let message =
                format!("the secret {name} is not for signing and encrypting: the operator can set crypto = true");
            return Err(error("not_allowed", message));
        }
        Ok(&secret.value)
    }

    fn named(&self, user: &str, name: &str) -> Result<&NamedSecret, HostError> {
        self.secrets.get(name).filter(|secret| is_for(secret.users.as_deref(), user)).ok_or_else(|| {
            let name: String = name.chars().take(NAME_BYTES_MAX).collect();
            error(
                "not_allowed",
                format!("there is no secret {name} for this user; the operator sets {}.NAME", self.keys.secrets),
            )
        })
    }
}

fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
