//! Tool declarations for a provider, serialised once and cached.
//!
//! Normalising and serialising a tool's schema costs far more than everything else in a request, and tools rarely
//! change. An adapter therefore caches each tool's declaration as JSON, and the joined declarations of the most recent
//! lists. The cache never changes the result. Tools are identified by address, which suffices if equal definitions
//! share one object, as in a catalogue.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gateway_core::vocab::ToolSpec;
use serde_json::Value;

use crate::{
    Request, TOOLS_MAX, Tools,
    names::{Changes, NameMap, Rule, called},
    schema::{self, Declaration, Subset},
};

/// Most bytes of declarations that one adapter caches, each entry counted with `TOOL_BYTES`: some thousand ordinary
/// tools. The least recently used are evicted first.
pub const CACHE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Approximate size of a cached tool besides its JSON.
const TOOL_BYTES: usize = 1024;
/// Most lists that one adapter caches: a conversation sends the same list repeatedly, and identical glasses are offered
/// the same one.
pub const LISTS_MAX: usize = 32;
/// Most tools prepared ahead: about as many as are cached.
const PREPARED_MAX: usize = 2_000;

/// How tools are declared to one provider.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Rule for names.
    pub rule: Rule,
    /// Subset for schemas.
    pub subset: Subset,
    /// Most tools in a request; further ones are left out.
    pub tools_max: usize,
    /// The JSON of one tool.
    pub declare: fn(Declaration) -> Value,
}

/// A list of tools and its declarations.
#[derive(Debug)]
pub struct Declared {
    /// The requested list; held, so that no other tool can be allocated at the same address.
    tools: Vec<Arc<ToolSpec>>,
    /// Names of other tools that the conversation has called.
    strangers: BTreeSet<String>,
    names_offered: BTreeSet<String>,
    /// The declared tools, each name once.
    pub offered: Vec<Arc<ToolSpec>>,
    /// Names of these and of all tools that the conversation has called.
    pub names: NameMap,
    /// A JSON array of the declarations; `None` without tools.
    pub json: Option<String>,
}

/// The declarations of one adapter.
#[derive(Debug)]
pub struct Declarations {
    style: Style,
    kept: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    /// By the address of the tool held in each entry.
    tools: HashMap<usize, ToolDeclaration>,
    bytes: usize,
    /// Most recently used first.
    lists: VecDeque<Arc<Declared>>,
    /// Counts the lists built.
    time: u64,
}

#[derive(Debug)]
struct ToolDeclaration {
    /// Held, so that no other tool can be allocated at the same address, and that it cannot be modified.
    tool: Arc<ToolSpec>,
    /// The provider's name in the JSON.
    name: String,
    json: String,
    changes: Changes,
    used: u64,
}

impl ToolDeclaration {
    fn bytes(&self) -> usize {
        self.json.len() + TOOL_BYTES
    }
}

impl Declarations {
    /// An empty cache.
    pub fn new(style: Style) -> Self {
        Self { style, kept: Mutex::default() }
    }

    /// The declarations of a request's tools, or of none of them, and the names of all tools that the request offers or
    /// has called.
    pub fn of(&self, request: &Request, with_tools: bool) -> Arc<Declared> {
        let tools = if with_tools { request.tools.clone() } else { Tools::default() };
        let called: BTreeSet<&str> = request.messages.iter().flat_map(called).collect();
        self.list(&tools, &called)
    }

    /// Serialises these tools before the first request with any of them, and the list of all of them if one request may
    /// contain it.
    pub fn prepare(&self, tools: &Tools) {
        for tool in tools.iter().take(PREPARED_MAX) {
            // The lock is held for one tool at a time, because a request may arrive meanwhile.
            let mut kept = self.kept();
            let name = NameMap::new(self.style.rule, []).insert(&tool.name);
            kept.ahead(&self.style, tool, name);
        }
        if tools.len() <= self.style.tools_max.min(TOOLS_MAX) {
            self.list(tools, &BTreeSet::new());
        }
    }

    fn kept(&self) -> MutexGuard<'_, Cache> {
        // After a panic at most one entry is missing.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn list(&self, tools: &Tools, called: &BTreeSet<&str>) -> Arc<Declared> {
        let mut kept = self.kept();
        let known = kept.lists.iter().position(|list| list.is_of(tools, called));
        let list = match known.and_then(|at| kept.lists.remove(at)) {
            Some(list) => list,
            None => Arc::new(kept.declare(&self.style, tools, called)),
        };
        kept.lists.push_front(list.clone());
        kept.lists.truncate(LISTS_MAX);
        list
    }
}

impl Declared {
    fn is_of(&self, tools: &[Arc<ToolSpec>], called: &BTreeSet<&str>) -> bool {
        let same = |(one, other): (&Arc<ToolSpec>, &Arc<ToolSpec>)| Arc::ptr_eq(one, other);
        self.tools.len() == tools.len()
            && self.tools.iter().zip(tools).all(same)
            && called.iter().filter(|name| !self.names_offered.contains(**name)).eq(self.strangers.iter())
    }
}

impl Cache {
    fn declare(&mut self, style: &Style, tools: &[Arc<ToolSpec>], called: &BTreeSet<&str>) -> Declared {
        self.time += 1;
        let mut offered = crate::transcript::offered(tools);
        offered.truncate(style.tools_max);
        let names_offered: BTreeSet<String> = offered.iter().map(|tool| tool.name.clone()).collect();
        let strangers: BTreeSet<String> =
            called.iter().filter(|name| !names_offered.contains(**name)).map(|name| (*name).to_owned()).collect();
        let mut names = NameMap::new(style.rule, names_offered.iter().chain(&strangers).map(String::as_str));
        let mut json = String::from("[");
        for tool in &offered {
            let name = names.insert(&tool.name);
            let written = self.written(style, tool, name);
            if json.len() > 1 {
                json.push(',');
            }
            json.push_str(&written.json);
            names.insert_changes(&tool.name, &written.changes);
        }
        json.push(']');
        self.forget();
        let json = (!offered.is_empty()).then_some(json);
        Declared { tools: tools.to_vec(), strangers, names_offered, offered, names, json }
    }

    /// Serialises one tool, unless it is cached: then another tool in its list may have given it another name.
    fn ahead(&mut self, style: &Style, tool: &Arc<ToolSpec>, name: String) {
        if !self.tools.contains_key(&Arc::as_ptr(tool).addr()) {
            self.written(style, tool, name);
            self.forget();
        }
    }

    fn written(&mut self, style: &Style, tool: &Arc<ToolSpec>, name: String) -> &ToolDeclaration {
        let (time, bytes) = (self.time, &mut self.bytes);
        let make = |name| {
            let (declaration, changes) = schema::declaration(tool, name, style.subset);
            let name = declaration.name.clone();
            ToolDeclaration {
                tool: tool.clone(),
                name,
                json: (style.declare)(declaration).to_string(),
                changes,
                used: time,
            }
        };
        let written = self
            .tools
            .entry(Arc::as_ptr(tool).addr())
            .and_modify(|written| {
                written.used = time;
                // Its name differs because another tool in the list wants the same, or no longer does.
                if written.name != name {
                    *bytes -= written.bytes();
                    *written = make(name.clone());
                    *bytes += written.bytes();
                }
            })
            .or_insert_with(|| {
                let written = make(name.clone());
                *bytes += written.bytes();
                written
            });
        debug_assert!(Arc::ptr_eq(&written.tool, tool), "an address is one tool's while its entry lives");
        written
    }

    /// Evicts down to half of the limit, so that the next lists need not evict again.
    fn forget(&mut self) {
        if self.bytes <= CACHE_BYTES_MAX {
            return;
        }
        let mut all: Vec<(usize, ToolDeclaration)> = self.tools.drain().collect();
        all.sort_unstable_by_key(|(_, written)| std::cmp::Reverse(written.used));
        self.bytes = 0;
        for (address, written) in all {
            self.bytes += written.bytes();
            if self.bytes > CACHE_BYTES_MAX / 2 {
                self.bytes -= written.bytes();
                break;
            }
            self.tools.insert(address, written);
        }
    }
}

#[cfg(test)]
mod tests {

    use serde_json::json;

    use super::*;

    fn request(tools: Tools) -> Request {
        let (system, messages, language) = (None, Vec::new(), "en".to_owned());
        Request { system, messages, tools, language, ..Request::default() }
    }

    fn tool(number: usize, description_chars: usize) -> Arc<ToolSpec> {
        let name = format!("t{number}");
        let description = "x".repeat(description_chars);
        Arc::new(ToolSpec { name, description, input_schema: json!({}), ..ToolSpec::default() })
    }

    #[test]
    fn a_list_is_put_together_once() {
        let declarations = Declarations::new(crate::responses::STYLE);
        let tools: Tools = (0..3).map(|number| tool(number, 9)).collect();
        let first = declarations.of(&request(tools.clone()), true);
        // The same tools in another list count as the same list.
        let again = declarations.of(&request(tools.iter().cloned().collect()), true);
        assert!(Arc::ptr_eq(&first, &again));
        let part = declarations.of(&request(tools.iter().take(2).cloned().collect()), true);
        assert!(!Arc::ptr_eq(&first, &part));
        assert!(declarations.of(&request(tools), false).json.is_none());
        assert_eq!(declarations.kept.lock().expect("unpoisoned").tools.len(), 3);
    }

    #[test]
    fn what_was_prepared_is_not_written_again() {
        let declarations = Declarations::new(crate::responses::STYLE);
        let tools: Tools = (0..3).map(|number| tool(number, 9)).collect();
        declarations.prepare(&tools);
        let list = declarations.kept().lists.front().cloned().expect("a list");
        assert!(Arc::ptr_eq(&list, &declarations.of(&request(tools.clone()), true)));
        // Tools with equal names, and more than a request may have: each is serialised, but no list.
        let many: Tools = (0..=TOOLS_MAX).map(|number| tool(number / 2, 9)).collect();
        declarations.prepare(&many);
        let kept = declarations.kept();
        assert_eq!((kept.tools.len(), kept.lists.len()), (3 + TOOLS_MAX + 1, 1));
        assert_eq!(kept.bytes, kept.tools.values().map(ToolDeclaration::bytes).sum::<usize>());
    }

    #[test]
    fn little_is_kept_of_many_tools() {
        let declarations = Declarations::new(crate::responses::STYLE);
        let lasting: Tools = [tool(0, 9)].into();
        let mut forgotten = false;
        for round in 0..40 {
            let tools: Tools = (1..200).map(|number| tool(round * 200 + number, 900)).collect();
            let declared = declarations.of(&request(tools), true);
            assert_eq!(declared.offered.len(), 199);
            declarations.of(&request(lasting.iter().chain(&declared.offered).take(2).cloned().collect()), true);
            let kept = declarations.kept.lock().expect("unpoisoned");
            assert_eq!(kept.bytes, kept.tools.values().map(ToolDeclaration::bytes).sum::<usize>());
            assert!(kept.bytes <= CACHE_BYTES_MAX && kept.lists.len() <= LISTS_MAX);
            // What every round uses stays cached.
            assert!(kept.tools.values().any(|written| Arc::ptr_eq(&written.tool, &lasting[0])));
            forgotten |= kept.tools.len() < round * 199;
        }
        assert!(forgotten);
    }
}
