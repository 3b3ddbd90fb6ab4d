//! The section `[tools]`: what the operator has set for single tools.

use std::collections::BTreeMap;

use gateway_core::vocab::ClientClass;
use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;
use tools::{permissions::ConfiguredClients, registry::is_name};

use crate::problems::Problems;

/// Tools with a setting of their own: more than anybody writes by hand.
const TOOLS_MAX: usize = 1_000;

/// `[tools]` as configured.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawTools {
    /// By full name.
    clients: BTreeMap<String, Spanned<Value>>,
}

/// What is set for single tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolSettings {
    /// The classes of clients that may use a tool, in place of those of its definition.
    pub clients: ConfiguredClients,
}

impl RawTools {
    /// Checks the section. Whether there are such tools is not known here: apps, servers and glasses bring theirs later.
    pub(crate) fn check(&self, problems: &mut Problems<'_>) -> ToolSettings {
        if self.clients.len() > TOOLS_MAX {
            problems.nowhere(format!("`tools.clients` has {} tools; at most {TOOLS_MAX}", self.clients.len()));
        }
        let mut clients = ConfiguredClients::new();
        for (name, given) in &self.clients {
            match classes(name, given.get_ref()) {
                Ok(classes) => drop(clients.insert(name.clone(), classes)),
                Err(what) => problems.at(given.span(), what),
            }
        }
        ToolSettings { clients }
    }
}

/// The classes that are given for a tool.
fn classes(name: &str, given: &Value) -> Result<Vec<ClientClass>, String> {
    if let Value::Object(_) = given {
        // Without quotes, TOML takes each part of a name for a section.
        let name = whole(name, given);
        return Err(format!("`tools.clients.{name}` is a section; put the name in quotes: clients.\"{name}\" = [...]"));
    }
    if !is_name(name) {
        let what = "must be the full name of one tool, such as note.clear; `lorgnette tools list` shows them";
        return Err(format!("`tools.clients` has `{name}`; it {what}"));
    }
    let Some(items) = given.as_array() else {
        return Err(format!("`tools.clients.\"{name}\"` must be a list of classes such as [\"internal\"]"));
    };
    let mut classes = Vec::new();
    for item in items {
        let Ok(class) = ClientClass::deserialize(item) else {
            let what = "the classes of clients are \"internal\", \"copilot\" and \"external\"";
            return Err(format!("`tools.clients.\"{name}\"` has {item}; {what}"));
        };
        if !classes.contains(&class) {
            classes.push(class);
        }
    }
    Ok(classes)
}

/// The name that was meant: the keys down to the first value.
fn whole(name: &str, given: &Value) -> String {
    let (mut name, mut given) = (name.to_owned(), given);
    while let Some((key, below)) = given.as_object().and_then(|fields| fields.iter().next()) {
        name = format!("{name}.{key}");
        given = below;
    }
    name
}

/// Classes of clients in words; `nobody` for none.
pub(crate) fn class_names(classes: &[ClientClass]) -> String {
    let names: Vec<_> = classes
        .iter()
        .map(|class| match class {
            ClientClass::Internal => "internal",
            ClientClass::Copilot => "copilot",
            ClientClass::External => "external",
        })
        .collect();
    if names.is_empty() { "nobody".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::check;

    #[test]
    fn classes_are_set_for_single_tools() {
        let text = "[tools.clients]\n\"note.clear\" = [\"internal\", \"copilot\", \"internal\"]\ncalculate = []\n";
        let clients = check(text, "x.toml").unwrap().tools.clients;
        let named: Vec<_> = clients.iter().map(|(name, classes)| (name.as_str(), class_names(classes))).collect();
        assert_eq!(named, [("calculate", "nobody".to_owned()), ("note.clear", "internal, copilot".to_owned())]);
        assert_eq!(check("", "x.toml").unwrap().tools, ToolSettings::default());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_key_and_its_line() {
        for (text, words) in [
            ("clients.\"note.clear\" = [\"extern\"]", "`tools.clients.\"note.clear\"` has \"extern\"; the classes"),
            ("clients.\"note.clear\" = [7]", "`tools.clients.\"note.clear\"` has 7; the classes"),
            ("clients.\"note.clear\" = \"internal\"", "`tools.clients.\"note.clear\"` must be a list"),
            ("clients.note.clear = [\"internal\"]", "put the name in quotes: clients.\"note.clear\" = [...]"),
            ("clients.\"note.*\" = [\"internal\"]", "has `note.*`; it must be the full name of one tool"),
            ("clients.\"\" = []", "has ``; it must be the full name"),
            ("clients = [\"internal\"]", "`tools.clients`: invalid type"),
            ("client.\"note.clear\" = []", "unknown field `client`"),
        ] {
            let found = check(&format!("[tools]\n{text}\n"), "x.toml").unwrap_err();
            assert_eq!((found.len(), found[0].line), (1, Some(2)), "{text}: {found:?}");
            assert!(found[0].what.contains(words), "{text}: {found:?}");
        }
        let many: String = (0..=TOOLS_MAX).map(|number| format!("t{number} = []\n")).collect();
        let found = check(&format!("[tools.clients]\n{many}"), "x.toml").unwrap_err();
        assert!(found[0].what.contains("at most 1000"), "{found:?}");
    }
}
