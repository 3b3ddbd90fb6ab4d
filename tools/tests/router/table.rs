//! The table of utterances and tools, and how a router is judged by it.

use std::{fs, path::Path, sync::Arc};

use gateway_core::vocab::ToolSpec;
use sha2::{Digest as _, Sha256};
use tools::{
    registry::Specs,
    router::{Choice, Query, Reason},
};

/// Which half of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The router may be tuned on it.
    Development,
    /// Only judges.
    HeldOut,
}

/// An utterance, with the tools that a router must offer for it.
pub struct Row {
    /// What is said.
    pub said: String,
    /// The tools that an answer needs.
    pub expected: Vec<String>,
}

/// All of it.
pub struct Table {
    /// Built-ins and others, sorted by name.
    pub tools: Specs,
    /// In the order of the file.
    pub rows: Vec<Row>,
}

/// What routing as configured does to requests.
#[derive(Debug)]
pub struct Offered {
    /// Share of the tools needed that are offered.
    pub recall: f64,
    /// Tools in a request, on average.
    pub tools: f64,
    /// Bytes of all tools' declarations as JSON, against a request with all tools.
    pub share_of_bytes: f64,
    /// Share of utterances where the words spoke for nothing, so that all were offered.
    pub doubt: f64,
}

impl Table {
    /// Reads it.
    pub fn load() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("tests/data/router");
        let mut tools: Vec<ToolSpec> = serde_json::from_slice(&fs::read(folder.join("tools.json")).unwrap()).unwrap();
        tools.extend(tools::builtin::all().0);
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let text = fs::read_to_string(folder.join("utterances.tsv")).unwrap();
        let rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let (said, expected) = line.split_once('\t').unwrap();
            let expected = expected.split(',').filter(|name| *name != "-").map(str::to_owned).collect();
            Row { said: said.to_owned(), expected }
        });
        Self { rows: rows.collect(), tools: tools.into_iter().map(Arc::new).collect() }
    }

    /// The rows of a half.
    pub fn half(&self, half: Half) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| {
            let held_out = Sha256::digest(row.said.as_bytes())[0] % 2 == 1;
            held_out == (half == Half::HeldOut)
        })
    }

    /// Where a tool is in the list.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.tools.iter().position(|tool| tool.name == name)
    }

    /// Of the tools needed, the share that is among the first `count`; rows that need none do not count.
    pub fn recall(&self, half: Half, count: usize, mut rank: impl FnMut(&str) -> Vec<usize>) -> f64 {
        let (mut found, mut needed) = (0, 0);
        for row in self.half(half).filter(|row| !row.expected.is_empty()) {
            let mut top = rank(&row.said);
            top.truncate(count);
            needed += row.expected.len();
            found += row.expected.iter().filter(|name| self.place(name).is_some_and(|at| top.contains(&at))).count();
        }
        f64::from(found as u32) / f64::from(needed as u32)
    }

    /// What requests look like when tools are chosen like this.
    pub fn offered(&self, half: Half, mut choose: impl FnMut(&Query) -> Choice) -> Offered {
        let bytes = |tools: &[Arc<ToolSpec>]| -> usize { tools.iter().map(|tool| declared(tool).len()).sum() };
        let all = bytes(&self.tools);
        let (mut rows, mut found, mut needed, mut tools, mut told, mut doubt) = (0, 0, 0, 0, 0, 0);
        for row in self.half(half) {
            let said = Query { now: row.said.clone(), ..Query::default() };
            let choice = choose(&said);
            rows += 1;
            needed += row.expected.len();
            let offered = |name: &&String| choice.tools.iter().any(|tool| tool.name == **name);
            found += row.expected.iter().filter(offered).count();
            tools += choice.tools.len();
            told += bytes(&choice.tools);
            doubt += usize::from(choice.reason == Reason::Doubt);
        }
        let share = |part: usize, whole: usize| part as f64 / whole as f64;
        Offered {
            recall: share(found, needed),
            tools: share(tools, rows),
            share_of_bytes: share(told, rows * all),
            doubt: share(doubt, rows),
        }
    }
}

/// A tool as chat completions declare it.
pub fn declared(tool: &ToolSpec) -> String {
    serde_json::json!({"type": "function", "function": {
        "name": tool.name.replace('.', "_"),
        "description": tool.description,
        "parameters": tool.input_schema,
    }})
    .to_string()
}
