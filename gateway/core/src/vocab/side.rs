//! Sides: the providers of tools, which decide if several match the same sentence.

use alloc::string::String;
use serde::{Deserialize, Serialize};

use super::absent;

/// The provider of a tool, as the wearer distinguishes them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum Side {
    /// The gateway itself or the glasses: the group of the tool, such as `timers`; `None`: all groups.
    BuiltIn(#[serde(with = "absent")] Option<String>),
    /// A mini-app, by its package.
    App(String),
    /// An MCP server, by its name in the configuration.
    Mcp(String),
    /// A capability, by its name.
    Capability(String),
}

impl Default for Side {
    fn default() -> Self {
        Self::BuiltIn(None)
    }
}

impl Side {
    /// Whether both are one party: everything built in counts as one.
    pub fn is_with(&self, other: &Self) -> bool {
        self == other || matches!((self, other), (Self::BuiltIn(_), Self::BuiltIn(_)))
    }

    /// Whether a statement about this side applies to the other one.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::BuiltIn(None), Self::BuiltIn(_)) => true,
            _ => self == other,
        }
    }
}

/// The wearer's choice between two sides that match the same sentences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preference {
    /// The chosen side.
    pub side: Side,
    /// The rejected side.
    pub over: Side,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_in_stands_together() {
        let group = |name: &str| Side::BuiltIn(Some(name.into()));
        let all = Side::BuiltIn(None);
        let app = |name: &str| Side::App(name.into());
        assert!(group("timers").is_with(&group("notes")) && !group("timers").covers(&group("notes")));
        assert!(all.covers(&group("notes")) && !group("notes").covers(&all));
        assert!(!app("a").is_with(&app("b")) && !app("a").is_with(&Side::Mcp("a".into())));
        assert!(app("a").covers(&app("a")) && !Side::default().covers(&app("a")));
    }

    #[test]
    fn all_groups_are_stored_as_an_empty_name() {
        for (side, stored) in [
            (Side::BuiltIn(None), r#"{"kind":"built_in","name":""}"#),
            (Side::BuiltIn(Some("notes".into())), r#"{"kind":"built_in","name":"notes"}"#),
            (Side::App("a".into()), r#"{"kind":"app","name":"a"}"#),
        ] {
            assert_eq!(serde_json::to_string(&side).unwrap(), stored);
            assert_eq!(serde_json::from_str::<Side>(stored).unwrap(), side);
        }
    }
}
