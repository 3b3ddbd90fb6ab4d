//! Who stands behind a tool: what decides where several understand the same sentence.

use alloc::string::String;
use serde::{Deserialize, Serialize};

/// Who provides a tool, as a wearer tells them apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum Side {
    /// The gateway itself or the glasses: the group of the tool, such as `timers`; empty for none, and for all of them
    /// where a choice is about them.
    BuiltIn(String),
    /// A mini-app, by its package.
    App(String),
    /// An MCP server, by its name in the configuration.
    Mcp(String),
}

impl Default for Side {
    fn default() -> Self {
        Self::BuiltIn(String::new())
    }
}

impl Side {
    /// Whether both are one party: all that is built in stands together.
    pub fn is_with(&self, other: &Self) -> bool {
        self == other || matches!((self, other), (Self::BuiltIn(_), Self::BuiltIn(_)))
    }

    /// Whether what is said of this side holds for the other one.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::BuiltIn(all), Self::BuiltIn(_)) if all.is_empty() => true,
            _ => self == other,
        }
    }
}

/// What a wearer has chosen where two sides understand the same sentences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preference {
    /// Takes them.
    pub side: Side,
    /// Does not.
    pub over: Side,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_in_stands_together() {
        let group = |name: &str| Side::BuiltIn(name.into());
        let app = |name: &str| Side::App(name.into());
        assert!(group("timers").is_with(&group("notes")) && !group("timers").covers(&group("notes")));
        assert!(group("").covers(&group("notes")) && !group("notes").covers(&group("")));
        assert!(!app("a").is_with(&app("b")) && !app("a").is_with(&Side::Mcp("a".into())));
        assert!(app("a").covers(&app("a")) && !Side::default().covers(&app("a")));
    }
}
