//! Provider-specific tool names, and their reverse mapping.
//!
//! A tool's name depends on the set of tools in a request, never on their order: a tool with a legal name keeps it, and
//! tools whose names would collide each get a short hash.
//!
//! Sources: the providers' API references. The strict rule is what OpenAI, Anthropic and compatible servers accept in
//! practice; Gemini also accepts dots.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use gateway_core::vocab::{Message, Part};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Longest name that every provider accepts.
pub const NAME_CHARS_MAX: usize = 63;
/// Replaces the middle of a name that is too long.
const ELLIPSIS: &str = "__";
/// Hexadecimal digits of a hash that distinguishes two names.
const HASH_CHARS: usize = 6;

/// A provider's rule for names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// `^[A-Za-z][A-Za-z0-9_-]{0,62}$`
    #[default]
    Strict,
    /// `^[A-Za-z][A-Za-z0-9_.-]{0,62}$`
    Gemini,
}

/// How a tool's arguments differ between its own schema and the provider's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// A property's own name, and the provider's name for it.
    pub renamed: BTreeMap<String, String>,
    /// Properties, by the provider's name, that contain JSON as text, since the provider's schema has no free objects.
    pub as_text: BTreeSet<String>,
}

/// Provider names for tools, one to one, and the call ids in use. Clones share the names until one of them adds
/// another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameMap {
    rule: Rule,
    shared: Arc<Names>,
    call_ids: BTreeSet<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Names {
    to_provider: BTreeMap<String, String>,
    to_tool: BTreeMap<String, String>,
    changes: BTreeMap<String, Changes>,
}

impl NameMap {
    /// Names for these tools, independent of their order.
    pub fn new<'a>(rule: Rule, tools: impl IntoIterator<Item = &'a str>) -> Self {
        let mut map = Self { rule, ..Self::default() };
        let all: BTreeSet<&str> = tools.into_iter().collect();
        let mut wanted: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for tool in all {
            wanted.entry(map.sanitised(tool)).or_default().push(tool);
        }
        // A tool with a legal name keeps it, as does the only one that wants a name.
        let mut others = Vec::new();
        for (name, tools) in wanted {
            let alone = tools.len() == 1;
            for tool in tools {
                if alone || tool == name { map.give(tool, name.clone()) } else { others.push(tool) }
            }
        }
        for tool in others {
            let name = map.hashed(tool);
            map.give(tool, name);
        }
        map
    }

    /// The provider's name of a tool: matches the rule; created on first use.
    pub fn insert(&mut self, tool: &str) -> String {
        if let Some(known) = self.shared.to_provider.get(tool) {
            return known.clone();
        }
        let plain = self.sanitised(tool);
        let name = if self.shared.to_tool.contains_key(&plain) { self.hashed(tool) } else { plain };
        self.give(tool, name.clone());
        name
    }

    /// The tool with this provider name; `None` for a name that was never assigned.
    pub fn tool(&self, name: &str) -> Option<&str> {
        self.shared.to_tool.get(name).map(String::as_str)
    }

    /// Stores how a tool's schema was changed for the provider.
    pub fn insert_changes(&mut self, tool: &str, changes: &Changes) {
        if *changes != Changes::default() {
            Arc::make_mut(&mut self.shared).changes.insert(tool.to_owned(), changes.clone());
        }
    }

    /// Converts a call's arguments to the provider's form.
    pub fn arguments_for_provider<'a>(&self, tool: &str, arguments: &'a Value) -> Cow<'a, Value> {
        match self.shared.changes.get(tool) {
            Some(changes) => Cow::Owned(changes.forth(arguments.clone(), false)),
            None => Cow::Borrowed(arguments),
        }
    }

    /// Converts a call's arguments to the tool's own schema.
    pub fn arguments_for_tool(&self, tool: &str, arguments: Value) -> Value {
        match self.shared.changes.get(tool) {
            Some(changes) => {
                let own = changes.renamed.iter().map(|(own, theirs)| (theirs.as_str(), own.as_str())).collect();
                changes.back(arguments, false, &own)
            }
            None => arguments,
        }
    }

    /// Marks a call id as used.
    pub fn insert_call_id(&mut self, id: &str) {
        self.call_ids.insert(id.to_owned());
    }

    /// A call id that is unique in the conversation: the provider's own, unless it is empty, overlong or used.
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

    fn give(&mut self, tool: &str, name: String) {
        let names = Arc::make_mut(&mut self.shared);
        names.to_provider.insert(tool.to_owned(), name.clone());
        names.to_tool.insert(name, tool.to_owned());
    }

    /// A free name that ends in a hash of the whole name.
    fn hashed(&self, tool: &str) -> String {
        let mut salt = 0_u32;
        loop {
            let suffix = format!("_{}", hash(tool, salt));
            let name = ellipsised(&self.legal(tool), NAME_CHARS_MAX - suffix.len()) + &suffix;
            if !self.shared.to_tool.contains_key(&name) {
                return name;
            }
            salt = salt.saturating_add(1);
        }
    }

    fn sanitised(&self, tool: &str) -> String {
        ellipsised(&self.legal(tool), NAME_CHARS_MAX)
    }

    /// Legal characters only, of any length.
    fn legal(&self, tool: &str) -> String {
        let allowed = |c: char| match c {
            '-' => c,
            '.' if self.rule == Rule::Gemini => c,
            _ if c.is_ascii_alphanumeric() => c,
            _ => '_',
        };
        let mut name: String = tool.chars().map(allowed).collect();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            name.insert_str(0, "t_");
        }
        name
    }
}

impl Changes {
    /// `text`: the provider writes this value as JSON text.
    fn forth(&self, value: Value, text: bool) -> Value {
        match value {
            Value::Object(map) if text => Value::String(Value::Object(map).to_string()),
            Value::Object(map) => {
                let renamed = map.into_iter().map(|(key, value)| {
                    let key = self.renamed.get(&key).cloned().unwrap_or(key);
                    let text = self.as_text.contains(&key);
                    (key, self.forth(value, text))
                });
                Value::Object(renamed.collect())
            }
            Value::Array(list) => list.into_iter().map(|value| self.forth(value, text)).collect(),
            other => other,
        }
    }

    /// `own`: the properties' own names by the provider's.
    fn back(&self, value: Value, text: bool, own: &BTreeMap<&str, &str>) -> Value {
        match value {
            Value::String(written) if text => match serde_json::from_str::<Value>(&written) {
                Ok(object @ Value::Object(_)) => object,
                _ => Value::String(written),
            },
            Value::Object(map) => {
                let renamed = map.into_iter().map(|(key, value)| {
                    let text = self.as_text.contains(&key);
                    let key = own.get(key.as_str()).map_or(key, |own| (*own).to_owned());
                    (key, self.back(value, text, own))
                });
                Value::Object(renamed.collect())
            }
            Value::Array(list) => list.into_iter().map(|value| self.back(value, text, own)).collect(),
            other => other,
        }
    }
}

/// The tools that a message calls.
pub(crate) fn called(message: &Message) -> impl Iterator<Item = &str> {
    message.parts.iter().filter_map(|part| match part {
        Part::ToolCall { call } => Some(call.name.as_str()),
        _ => None,
    })
}

/// The name itself, or its two ends with an ellipsis between. ASCII only.
pub(crate) fn ellipsised(name: &str, chars_max: usize) -> String {
    if name.len() <= chars_max {
        return name.to_owned();
    }
    let keep = chars_max.saturating_sub(ELLIPSIS.len());
    let (head, tail) = (keep.div_ceil(2), keep / 2);
    let head = name.get(..head).unwrap_or_default();
    let tail = name.get(name.len() - tail..).unwrap_or_default();
    format!("{head}{ELLIPSIS}{tail}")
}

/// A hash of a text in hexadecimal digits. Each salt adds digits, so that the search for a free name ends.
pub(crate) fn hash(text: &str, salt: u32) -> String {
    let mut digest = Sha256::new();
    digest.update(salt.to_be_bytes());
    digest.update(text.as_bytes());
    let digest = digest.finalize();
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let chars = (HASH_CHARS + salt as usize * 2).min(32);
    digits.get(..chars).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_collide_and_come_back() {
        let long = "x".repeat(80);
        let long_too = format!("{}y{}", "x".repeat(40), "x".repeat(40));
        let tools = ["timer.set", "timer_set", "timer/set", "9lives", "", &long, &long_too];
        let mut names = NameMap::new(Rule::Strict, tools);
        for tool in tools {
            let name = names.insert(tool);
            assert_eq!(names.tool(&name), Some(tool));
        }
        assert_eq!(names.tool("timer_set"), Some("timer_set"));
        assert_eq!(names.insert("timer/set").len(), "timer_set_".len() + HASH_CHARS);
        assert_eq!(names.insert("9lives"), "t_9lives");
        assert_eq!(names.tool("unknown"), None);
        let alone = NameMap::new(Rule::Strict, ["timer.set"]);
        assert_eq!(alone.tool("timer_set"), Some("timer.set"));
        assert_eq!(NameMap::new(Rule::Gemini, ["timer.set"]).tool("timer.set"), Some("timer.set"));
    }

    #[test]
    fn too_long_names_lose_their_middle() {
        let name = NameMap::new(Rule::Strict, []).insert(&format!("head.{}.tail", "m".repeat(100)));
        assert_eq!(name.len(), NAME_CHARS_MAX);
        assert!(name.starts_with("head_mm") && name.contains("m__m") && name.ends_with("_tail"), "{name}");
    }

    #[test]
    fn a_name_that_looks_like_a_hashed_one_is_no_trap() {
        let hashed = NameMap::new(Rule::Strict, ["a.b", "a/b"]).insert("a.b");
        let mut names = NameMap::new(Rule::Strict, ["a.b", "a/b", &hashed]);
        assert_eq!(names.insert(&hashed), hashed);
        assert_ne!(names.insert("a.b"), hashed);
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

    #[test]
    fn arguments_go_there_and_back() {
        let mut names = NameMap::default();
        let changes = Changes {
            renamed: [("user-id".to_owned(), "user_id".to_owned())].into(),
            as_text: ["filter".to_owned()].into(),
        };
        names.insert_changes("t", &changes);
        let own = json!({"user-id": 1, "filter": {"a": 2}, "list": [{"user-id": 3}]});
        let theirs = json!({"user_id": 1, "filter": "{\"a\":2}", "list": [{"user_id": 3}]});
        assert_eq!(*names.arguments_for_provider("t", &own), theirs);
        assert_eq!(names.arguments_for_tool("t", theirs), own);
    }

    fn legal(name: &str, dots: bool) -> bool {
        (1..=63).contains(&name.len())
            && name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-' || (dots && c == '.'))
    }

    fn some_name() -> impl proptest::strategy::Strategy<Value = String> {
        use proptest::strategy::Strategy as _;
        proptest::prop_oneof![
            "\\PC{0,70}",
            // Few letters, so that collisions occur.
            "[a./_]{1,4}",
            "[a.]{60,70}",
            "a(_[0-9a-f]{6})?",
        ]
        .boxed()
    }

    proptest::proptest! {
        #[test]
        fn every_name_is_legal_reversible_and_free_of_order(
            tools in proptest::collection::vec(some_name(), 0..20),
            gemini: bool,
        ) {
            let rule = if gemini { Rule::Gemini } else { Rule::Strict };
            let mut names = NameMap::new(rule, tools.iter().map(String::as_str));
            let mut reversed = NameMap::new(rule, tools.iter().rev().map(String::as_str));
            for tool in &tools {
                let name = names.insert(tool);
                proptest::prop_assert!(legal(&name, gemini), "{}", name);
                proptest::prop_assert_eq!(names.tool(&name), Some(tool.as_str()));
                proptest::prop_assert_eq!(reversed.insert(tool), name);
            }
        }

        #[test]
        fn names_that_come_late_are_legal_and_reversible(tools in proptest::collection::vec(some_name(), 0..20)) {
            let mut names = NameMap::default();
            let given: Vec<String> = tools.iter().map(|tool| names.insert(tool)).collect();
            for (tool, name) in tools.iter().zip(&given) {
                proptest::prop_assert!(legal(name, false), "{}", name);
                proptest::prop_assert_eq!(names.tool(name), Some(tool.as_str()));
            }
        }
    }
}
