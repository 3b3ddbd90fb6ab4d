//! A cache of grammars, keyed by what their tools declare, not by their owner.
//!
//! Compiling takes milliseconds, which a turn must not wait for. So it is done ahead ([`Grammars::prepare`]), once per
//! tool, whatever lists the tool is in. Lists with equal declarations share one grammar. During a turn the grammar is
//! only looked up ([`Grammars::ready`]), by the addresses of the tools.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use sha2::{Digest as _, Sha256};

use super::{
    grammar::{Grammar, Part, PartKey},
    language::Language,
};
use crate::Tools;

/// Most lists with a known grammar. Identical glasses have one list if their definitions are shared; lists differ by
/// the tools that users have installed and disabled.
pub const LISTS_MAX: usize = 256;

/// Compiled tool sets. Cheap to clone: clones share everything.
#[derive(Clone, Default)]
pub struct Grammars {
    kept: Arc<Mutex<Cache>>,
}

#[derive(Default)]
struct Cache {
    lists: HashMap<ListKey, Known>,
    /// By the keys of the parts, in order.
    grammars: HashMap<PartKey, Weak<Grammar>>,
    parts: HashMap<PartKey, Weak<Part>>,
    /// Counts lookups.
    time: u64,
    /// How often a tool was compiled.
    compiled: u64,
}

/// The addresses of the tools of a list, and the language.
type ListKey = (Box<[usize]>, String);

struct Known {
    /// Held, so that no other tool can be allocated at the same address.
    _tools: Tools,
    grammar: Arc<Grammar>,
    used: u64,
}

impl Grammars {
    /// The grammar of this list, if it was prepared. Compiles nothing.
    pub(super) fn ready(&self, tools: &Tools, language: &str) -> Option<Arc<Grammar>> {
        let mut kept = self.kept();
        kept.time += 1;
        let time = kept.time;
        let known = kept.lists.get_mut(&list_key(tools, language))?;
        known.used = time;
        Some(known.grammar.clone())
    }

    /// The grammar of this list: the cached one, or a new one from cached and newly compiled parts.
    pub(super) fn prepare(&self, tools: &Tools, language: &str) -> Arc<Grammar> {
        if let Some(grammar) = self.ready(tools, language) {
            return grammar;
        }
        let keys: Vec<PartKey> = tools.iter().map(|tool| Part::key(tool, language)).collect();
        // A list without tools has a language as well.
        let code = Language::of(language).code.as_bytes();
        let key: PartKey = Sha256::digest([keys.concat().as_slice(), code].concat()).into();
        let known = self.kept().grammars.get(&key).and_then(Weak::upgrade);
        // Compiled and combined without the lock, as turns look up grammars meanwhile.
        let grammar = known.unwrap_or_else(|| {
            let parts = tools.iter().zip(&keys);
            let parts = parts.map(|(tool, key)| self.part(*key, || Part::compile(tool, language))).collect();
            Arc::new(Grammar::of(parts, Language::of(language)))
        });
        self.keep(key, tools, language, grammar)
    }

    fn part(&self, key: PartKey, compile: impl FnOnce() -> Part) -> Arc<Part> {
        if let Some(part) = self.kept().parts.get(&key).and_then(Weak::upgrade) {
            return part;
        }
        let part = Arc::new(compile());
        let mut kept = self.kept();
        kept.compiled += 1;
        kept.parts.insert(key, Arc::downgrade(&part));
        part
    }

    fn keep(&self, key: PartKey, tools: &Tools, language: &str, grammar: Arc<Grammar>) -> Arc<Grammar> {
        let mut kept = self.kept();
        // Another thread may have built the same grammar meanwhile.
        let grammar = kept.grammars.get(&key).and_then(Weak::upgrade).unwrap_or(grammar);
        kept.grammars.insert(key, Arc::downgrade(&grammar));
        while kept.lists.len() >= LISTS_MAX {
            let oldest = kept.lists.iter().min_by_key(|(_, known)| known.used).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| kept.lists.remove(&oldest));
            kept.grammars.retain(|_, grammar| grammar.strong_count() > 0);
            kept.parts.retain(|_, part| part.strong_count() > 0);
        }
        kept.time += 1;
        let known = Known { _tools: tools.clone(), grammar: grammar.clone(), used: kept.time };
        kept.lists.insert(list_key(tools, language), known);
        grammar
    }

    /// Nothing that can panic runs under the lock.
    fn kept(&self) -> MutexGuard<'_, Cache> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often a tool was compiled so far.
    pub fn compiled(&self) -> u64 {
        self.kept().compiled
    }
}

fn list_key(tools: &Tools, language: &str) -> ListKey {
    (tools.iter().map(|tool| Arc::as_ptr(tool).addr()).collect(), language.to_owned())
}

#[cfg(test)]
mod tests {
    use gateway_core::vocab::{Phrases, Side, ToolSpec};
    use serde_json::json;

    use super::*;

    fn tool(name: &str, template: &str) -> Arc<ToolSpec> {
        let phrases = vec![Phrases { language: "en".into(), templates: vec![template.into()] }];
        Arc::new(ToolSpec {
            name: name.into(),
            input_schema: json!({"type": "object"}),
            phrases,
            ..ToolSpec::default()
        })
    }

    fn tools(own: &[&str]) -> Tools {
        let shared = [("lamp.on", "switch on the lamp"), ("lamp.off", "switch off the lamp")];
        let own = own.iter().map(|name| (*name, "do it"));
        shared.into_iter().chain(own).map(|(name, template)| tool(name, template)).collect()
    }

    #[test]
    fn equal_tools_share_one_grammar_wherever_they_lie() {
        let grammars = Grammars::default();
        let first = grammars.prepare(&tools(&["x"]), "en");
        for language in ["en", "en-GB", "fi"] {
            assert!(Arc::ptr_eq(&first, &grammars.clone().prepare(&tools(&["x"]), language)), "{language}");
        }
        assert_eq!(grammars.compiled(), 3);
        let other = grammars.prepare(&tools(&["y"]), "en");
        assert!(!Arc::ptr_eq(&first, &other));
        assert_eq!(grammars.compiled(), 4, "what both have was compiled once");
    }

    #[test]
    fn whatever_a_grammar_is_made_of_tells_it_from_others() {
        let base = tool("a", "do {it}");
        let change = |with: &dyn Fn(&mut ToolSpec)| {
            let mut other = ToolSpec::clone(&base);
            with(&mut other);
            Part::key(&other, "en")
        };
        let same = Part::key(&base, "en");
        assert_eq!(change(&|tool| tool.description = "Other words for a model.".into()), same);
        assert_ne!(change(&|tool| tool.name = "b".into()), same);
        assert_ne!(change(&|tool| tool.side = Side::App("com.example.app".into())), same);
        assert_ne!(change(&|tool| tool.flags.always = true), same);
        assert_ne!(change(&|tool| tool.input_schema = json!({"required": ["it"]})), same);
        assert_ne!(change(&|tool| tool.phrases[0].templates[0] = "do it".into()), same);
        assert_ne!(change(&|tool| tool.phrases[0].templates.push("go".into())), same);
        assert_ne!(change(&|tool| tool.phrases[0].language = "de".into()), same);
    }

    #[test]
    fn a_look_up_compiles_nothing() {
        let grammars = Grammars::default();
        let list = tools(&[]);
        assert!(grammars.ready(&list, "en").is_none());
        assert_eq!(grammars.compiled(), 0);
        let grammar = grammars.prepare(&list, "en");
        // The same tools in another list count as the same list.
        let copy: Tools = list.iter().cloned().collect();
        assert!(grammars.ready(&copy, "en").is_some_and(|ready| Arc::ptr_eq(&ready, &grammar)));
        assert!(grammars.ready(&list, "de").is_none(), "another language is another grammar");
        assert!(grammars.ready(&tools(&[]), "en").is_none(), "whether equal ones lie elsewhere is not looked into");
        assert_eq!(grammars.compiled(), 2);
    }

    #[test]
    fn what_is_used_stays_and_nothing_is_kept_beside_it() {
        let grammars = Grammars::default();
        let lasting = tools(&["lasting"]);
        grammars.prepare(&lasting, "en");
        for number in 0..2 * LISTS_MAX {
            grammars.prepare(&tools(&[&number.to_string()]), "en");
            assert!(grammars.ready(&lasting, "en").is_some(), "{number}");
        }
        let kept = grammars.kept();
        assert!(kept.lists.len() <= LISTS_MAX && kept.grammars.len() <= LISTS_MAX && kept.parts.len() <= LISTS_MAX + 4);
    }
}
