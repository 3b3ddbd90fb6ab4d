//! Tools as a provider declares them, written once and kept.
//!
//! Normalising and writing a tool's schema costs far more than everything else in a request, and tools hardly ever
//! change. A provider's set-up therefore keeps each tool's declaration as JSON, and the joined declarations of the
//! lists that were asked for last. The cache only saves work: what comes out depends on nothing but what goes in. Tools are
//! known by their address, which is enough where equal definitions are one object, as those of a catalogue are.

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

/// Most bytes of declarations that one set-up keeps, each counted with `TOOL_BYTES`: some thousand ordinary tools.
/// What was used longest ago goes first.
pub const CACHE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What a kept tool takes besides its JSON, about.
const TOOL_BYTES: usize = 1024;
/// Most lists that one set-up keeps: a conversation asks with the same list again and again, and equal glasses are offered
/// the same one.
pub const LISTS_MAX: usize = 32;
/// Most tools that are prepared ahead: about as many as are kept.
const PREPARED_MAX: usize = 2_000;

/// How one provider declares tools.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// What names may look like.
    pub rule: Rule,
    /// What schemas may say.
    pub subset: Subset,
    /// Most tools in a request; further ones are left out.
    pub tools_max: usize,
    /// The JSON of one tool.
    pub declare: fn(Declaration) -> Value,
}

/// A list of tools, declared.
#[derive(Debug)]
pub struct Declared {
    /// As it was asked for; held, so that no other tool can come to lie at the same address.
    tools: Vec<Arc<ToolSpec>>,
    /// What the conversation has called besides.
    strangers: BTreeSet<String>,
    names_offered: BTreeSet<String>,
    /// The tools that are declared, each name once.
    pub offered: Vec<Arc<ToolSpec>>,
    /// Names of these and of everything that the conversation has called.
    pub names: NameMap,
    /// A JSON array of the declarations; none without tools.
    pub json: Option<String>,
}

/// The declarations of one set-up.
#[derive(Debug)]
pub struct Declarations {
    style: Style,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// By the address of the tool that each entry holds.
    tools: HashMap<usize, Written>,
    bytes: usize,
    /// The list used last stands in front.
    lists: VecDeque<Arc<Declared>>,
    /// Counts lists that were put together.
    time: u64,
}

#[derive(Debug)]
struct Written {
    /// Held, so that no other tool can come to lie at the same address, and nobody can change it.
    tool: Arc<ToolSpec>,
    /// The provider's name that stands in the JSON.
    name: String,
    json: String,
    changes: Changes,
    used: u64,
}

impl Written {
    fn bytes(&self) -> usize {
        self.json.len() + TOOL_BYTES
    }
}

impl Declarations {
    /// Nothing is kept yet.
    pub fn new(style: Style) -> Self {
        Self { style, kept: Mutex::default() }
    }

    /// The tools of a request, or none of them, and the names of everything that the request offers or has called.
    pub fn of(&self, request: &Request, with_tools: bool) -> Arc<Declared> {
        let tools = if with_tools { request.tools.clone() } else { Tools::default() };
        let called: BTreeSet<&str> = request.messages.iter().flat_map(called).collect();
        self.list(&tools, &called)
    }

    /// Writes these tools ahead of the first request that holds any of them, and the list of all of them where one
    /// request may hold it.
    pub fn prepare(&self, tools: &Tools) {
        for tool in tools.iter().take(PREPARED_MAX) {
            // The lock is held for one tool at a time: a request may come meanwhile.
            let mut kept = self.kept();
            let name = NameMap::new(self.style.rule, []).insert(&tool.name);
            kept.ahead(&self.style, tool, name);
        }
        if tools.len() <= self.style.tools_max.min(TOOLS_MAX) {
            self.list(tools, &BTreeSet::new());
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Whoever panicked left at most an entry less.
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

impl Kept {
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

    /// One tool, unless it is known: then another one in its list may have given it another name.
    fn ahead(&mut self, style: &Style, tool: &Arc<ToolSpec>, name: String) {
        if !self.tools.contains_key(&Arc::as_ptr(tool).addr()) {
            self.written(style, tool, name);
            self.forget();
        }
    }

    fn written(&mut self, style: &Style, tool: &Arc<ToolSpec>, name: String) -> &Written {
        let (time, bytes) = (self.time, &mut self.bytes);
        let make = |name| {
            let (declaration, changes) = schema::declaration(tool, name, style.subset);
            let name = declaration.name.clone();
            Written { tool: tool.clone(), name, json: (style.declare)(declaration).to_string(), changes, used: time }
        };
        let written = self
            .tools
            .entry(Arc::as_ptr(tool).addr())
            .and_modify(|written| {
                written.used = time;
                // Another tool in the list wants the same name, or no longer does.
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

    /// Half of what may be kept stays, so that the next lists need not forget again.
    fn forget(&mut self) {
        if self.bytes <= CACHE_BYTES_MAX {
            return;
        }
        let mut all: Vec<(usize, Written)> = self.tools.drain().collect();
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
    use gateway_core::vocab::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::Watch;

    fn request(tools: Tools) -> Request {
        let (system, messages, language) = (String::new(), Vec::new(), "en".to_owned());
        Request {
            system,
            messages,
            tools,
            now: Timestamp::default(),
            language,
            max_tokens: None,
            scene: Arc::default(),
            watch: Watch::default(),
            pending: None,
        }
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
        // The same tools in another list are the same list.
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
        // Tools of one name, and more than a request may hold: each is written, and no list.
        let many: Tools = (0..=TOOLS_MAX).map(|number| tool(number / 2, 9)).collect();
        declarations.prepare(&many);
        let kept = declarations.kept();
        assert_eq!((kept.tools.len(), kept.lists.len()), (3 + TOOLS_MAX + 1, 1));
        assert_eq!(kept.bytes, kept.tools.values().map(Written::bytes).sum::<usize>());
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
            assert_eq!(kept.bytes, kept.tools.values().map(Written::bytes).sum::<usize>());
            assert!(kept.bytes <= CACHE_BYTES_MAX && kept.lists.len() <= LISTS_MAX);
            // What every round uses stays.
            assert!(kept.tools.values().any(|written| Arc::ptr_eq(&written.tool, &lasting[0])));
            forgotten |= kept.tools.len() < round * 199;
        }
        assert!(forgotten);
    }
}
