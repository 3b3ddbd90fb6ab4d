//! The tool router: recall and savings on tests/data/router, and how long a choice among 10,000 tools takes.
//!
//! `cargo xtask bench router`

#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

#[path = "../tests/router/table.rs"]
mod table;

use std::{hint::black_box, sync::Arc, time::Instant};

use gateway_core::vocab::ToolSpec;
use table::{Half, Table, declared};
use tools::{
    registry::Specs,
    router::{Config, Index, Router, Said},
};

/// Choices that are timed.
const ROUNDS: usize = 200;

fn main() {
    let table = Table::load();
    let index = Index::new(&table.tools);
    let config = Config::default();
    println!("{} utterances over {} tools; {config:?}", table.rows.len(), table.tools.len());
    let all: usize = table.tools.iter().map(|tool| declared(tool).len()).sum();
    println!("all tools: {all} bytes of JSON");
    println!("| half | rows | recall@1 | recall@5 | needed tools offered | tools offered | bytes | all offered |");
    for half in [Half::Development, Half::HeldOut] {
        let recall = |count| table.recall(half, count, |said| index.rank(said).into_iter().map(|(at, _)| at).collect());
        let offered = table.offered(half, &Router::new(config));
        println!(
            "| {half:?} | {} | {:.3} | {:.3} | {:.3} | {:.1} | {:.1} % | {:.1} % |",
            table.half(half).count(),
            recall(1),
            recall(5),
            offered.recall,
            offered.tools,
            100.0 * offered.share_of_bytes,
            100.0 * offered.doubt,
        );
    }
    for count in [200, 1_000, 10_000] {
        time(&table, count);
    }
}

/// A catalogue of so many tools: the table's own, again and again under other names.
fn many(table: &Table, count: usize) -> Specs {
    let mut tools: Vec<ToolSpec> = (0..count)
        .map(|number| {
            let tool = &table.tools[number % table.tools.len()];
            ToolSpec { name: format!("{}.{number:05}", tool.name), ..ToolSpec::clone(tool) }
        })
        .collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools.into_iter().map(Arc::new).collect()
}

fn time(table: &Table, count: usize) {
    let tools = many(table, count);
    let router = Router::default();
    let said = |number: usize| Said { now: table.rows[number % table.rows.len()].said.clone(), ..Said::default() };
    let began = Instant::now();
    black_box(router.choose(&tools, &said(0), 128));
    let first = began.elapsed();
    let mut times: Vec<_> = (0..ROUNDS)
        .map(|number| {
            let said = said(number);
            let began = Instant::now();
            black_box(router.choose(&tools, &said, 128));
            began.elapsed()
        })
        .collect();
    times.sort();
    println!(
        "{count} tools: first choice, with the index, {first:?}; then median {:?}, slowest of {ROUNDS} {:?}",
        times[ROUNDS / 2],
        times[ROUNDS - 1]
    );
}
