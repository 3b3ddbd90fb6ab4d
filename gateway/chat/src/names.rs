//! Names as a provider takes them, and the exact way back.

use std::collections::{BTreeMap, BTreeSet};

/// Longest name that every provider takes.
const NAME_CHARS_MAX: usize = 63;

/// Provider names for tools, one to one, and the call ids that are taken already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameMap {
    to_provider: BTreeMap<String, String>,
    to_tool: BTreeMap<String, String>,
    call_ids: BTreeSet<String>,
}

impl NameMap {
    /// The provider's name of a tool: matches `^[A-Za-z][A-Za-z0-9_-]{0,62}$`; made on first use.
    pub fn insert(&mut self, tool: &str) -> String {
        if let Some(known) = self.to_provider.get(tool) {
            return known.clone();
        }
        let plain = sanitised(tool);
        let mut name = plain.clone();
        let mut count = 1_u32;
        while self.to_tool.contains_key(&name) {
            count += 1;
            let suffix = format!("_{count}");
            let keep = plain.len().min(NAME_CHARS_MAX - suffix.len());
            name = format!("{}{suffix}", &plain[..keep]);
        }
        self.to_provider.insert(tool.to_owned(), name.clone());
        self.to_tool.insert(name.clone(), tool.to_owned());
        name
    }

    /// The tool behind a provider's name; none for a name that was never given out.
    pub fn tool(&self, name: &str) -> Option<&str> {
        self.to_tool.get(name).map(String::as_str)
    }

    /// Marks a call id as taken.
    pub fn insert_call_id(&mut self, id: &str) {
        self.call_ids.insert(id.to_owned());
    }

    /// A call id that is unique in the conversation: the provider's own, unless it is empty,
    /// overlong or taken.
    pub fn unique_call_id(&mut self, id: &str) -> String {
        const ID_BYTES_MAX: usize = 128;
        let mut unique = id.to_owned();
        let mut count = self.call_ids.len();
        while unique.is_empty() || unique.len() > ID_BYTES_MAX || self.call_ids.contains(&unique) {
            unique = format!("call_{count}");
            count += 1;
        }
        self.call_ids.insert(unique.clone());
        unique
    }
}

fn sanitised(tool: &str) -> String {
    let allowed = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }
    };
    let mut name: String = tool.chars().map(allowed).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert_str(0, "t_");
    }
    name.truncate(NAME_CHARS_MAX);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_collide_and_come_back() {
        let mut names = NameMap::default();
        let long = "x".repeat(80);
        let long_too = format!("{long}y");
        for tool in ["timer.set", "timer_set", "timer/set", "9lives", "", &long, &long_too] {
            let name = names.insert(tool);
            assert_eq!(names.insert(tool), name);
            assert_eq!(names.tool(&name), Some(tool));
        }
        assert_eq!(names.tool("timer_set_3"), Some("timer/set"));
        assert_eq!(names.tool("unknown"), None);
    }

    #[test]
    fn call_ids_stay_unique() {
        let mut names = NameMap::default();
        names.insert_call_id("call_1");
        let ids: BTreeSet<String> =
            ["call_1", "", "", "a", "a"].into_iter().map(|id| names.unique_call_id(id)).collect();
        assert_eq!(ids.len(), 5);
        assert!(!ids.contains("call_1") && ids.contains("a"));
    }

    proptest::proptest! {
        #[test]
        fn every_name_is_legal_and_reversible(tools in proptest::collection::vec("\\PC{0,70}", 0..20)) {
            let mut names = NameMap::default();
            for tool in &tools {
                let name = names.insert(tool);
                proptest::prop_assert!((1..=63).contains(&name.len()));
                proptest::prop_assert!(name.starts_with(|c: char| c.is_ascii_alphabetic()));
                proptest::prop_assert!(
                    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
                );
            }
            for tool in &tools {
                let name = names.insert(tool);
                proptest::prop_assert_eq!(names.tool(&name), Some(tool.as_str()));
            }
        }
    }
}
