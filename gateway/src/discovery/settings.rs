//! The section `[discovery]`.

use serde::Deserialize;
use toml::Spanned;

use super::NAME_BYTES_MAX;
use crate::{
    problems::{Problems, unwritten},
    text::is_plain,
};

/// `[discovery]` as configured.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawDiscovery {
    enabled: bool,
    name: Spanned<String>,
    loopback: bool,
}

impl Default for RawDiscovery {
    fn default() -> Self {
        Self { enabled: true, name: unwritten(String::new()), loopback: false }
    }
}

/// Whether the gateway announces itself on the local network, and as what.
#[derive(Clone, Debug)]
pub struct Discovery {
    /// Announce the gateway.
    pub enabled: bool,
    /// Name that is announced; empty: the gateway's.
    pub name: String,
    /// Announce it to this machine, too.
    pub loopback: bool,
}

impl RawDiscovery {
    /// Checks the section.
    pub(crate) fn check(self, problems: &mut Problems<'_>) -> Discovery {
        let given = self.name.get_ref();
        if given.len() > NAME_BYTES_MAX || !is_plain(given) {
            let what = format!(
                "`discovery.name` may have up to {NAME_BYTES_MAX} bytes, all of characters that show as themselves; \"\" is \
                 the name of the gateway"
            );
            problems.at(self.name.span(), what);
        }
        Discovery { enabled: self.enabled, name: self.name.into_inner(), loopback: self.loopback }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::check;

    #[test]
    fn a_name_that_no_record_can_carry_is_refused() {
        for name in ["x".repeat(57), "a\\u001bb".to_owned(), "a\\u202eb".to_owned()] {
            let problems = check(&format!("[discovery]\nname = \"{name}\"\n"), "x.toml").unwrap_err();
            assert_eq!((problems.len(), problems[0].line), (1, Some(2)), "{problems:?}");
            assert!(problems[0].what.contains("`discovery.name`"), "{problems:?}");
        }
        let config = check("[discovery]\nenabled = false\nname = \"Küche\"\n", "x.toml").unwrap();
        assert_eq!((config.discovery.enabled, config.discovery.name.as_str()), (false, "Küche"));
    }
}
