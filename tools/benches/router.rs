//! The tool router: recall and savings on tests/data/router, and how long a choice among 10,000 tools takes.
//!
//! `cargo xtask bench router`

#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

#[path = "../tests/router/table.rs"]
mod table;

use std::{hint::black_box, path::Path, sync::Arc, time::Instant};

use gateway_core::vocab::ToolSpec;
use table::{Half, Table, declared};
use tools::{
    registry::Specs,
    router::{
        Choice, Config, Index, Query, Router,
        minilm::MiniLm,
        sentences::{Sentences, fused},
    },
};

/// Choices that are timed.
const ROUNDS: usize = 200;

fn main() {
    let table = Table::load();
    let config = Config::default();
    println!("{} utterances over {} tools; {config:?}", table.rows.len(), table.tools.len());
    let all: usize = table.tools.iter().map(|tool| declared(tool).len()).sum();
    println!("all tools: {all} bytes of JSON");
    println!("| half | by | rows | recall@1 | recall@5 | needed tools offered | tools offered | bytes | all offered |");
    let (index, router) = (Index::new(&table.tools), Router::new(config));
    judge(&table, "words", |said| index.rank(said), |said| router.choose(&table.tools, said, 128));
    let dir = std::env::var_os("LORGNETTE_MODELS").unwrap_or_default();
    let (before_kib, began) = (resident_kib(), Instant::now());
    match MiniLm::load(Path::new(&dir)) {
        Ok(model) => {
            let (loaded, kib) = (began.elapsed(), resident_kib() - before_kib);
            by_sentences(&table, &index, &router, Arc::new(model));
            println!("loading the sentence model: {loaded:?}, {kib} KiB");
        }
        Err(error) => println!("without sentences: {error}; `cargo xtask fetch` brings it"),
    }
    for count in [200, 1_000, 10_000] {
        time(&table, count);
    }
}

/// A line of the table for each half.
fn judge(table: &Table, by: &str, rank: impl Fn(&str) -> Vec<(usize, f32)>, mut choose: impl FnMut(&Query) -> Choice) {
    for half in [Half::Development, Half::HeldOut] {
        let recall = |count| table.recall(half, count, |said| rank(said).into_iter().map(|(at, _)| at).collect());
        let offered = table.offered(half, &mut choose);
        println!(
            "| {half:?} | {by} | {} | {:.3} | {:.3} | {:.3} | {:.1} | {:.1} % | {:.1} % |",
            table.half(half).count(),
            recall(1),
            recall(5),
            offered.recall,
            offered.tools,
            100.0 * offered.share_of_bytes,
            100.0 * offered.doubt,
        );
    }
}

fn by_sentences(table: &Table, index: &Index, router: &Router, model: Arc<MiniLm>) {
    let sentences = Sentences::new(model);
    let began = Instant::now();
    for sentence in sentences.settle(&table.tools) {
        sentences.learn(&sentence).expect("a sentence");
    }
    let learnt = began.elapsed();
    let tools = &table.tools;
    let near = |said: &str| sentences.rank(tools, said).expect("a ranking").expect("all are learnt");
    let alone = |said: &Query| {
        let ranked = near(&said.now);
        let sure = ranked.first().is_some_and(|(_, cosine)| *cosine >= Config::default().cosine_min);
        router.assemble(tools, said, &ranked, sure, 128)
    };
    judge(table, "sentences alone", near, alone);
    let both = |said: &str| fused(tools.len(), [&index.rank(said), &near(said)]);
    judge(table, "both", both, |said| router.choose_with(tools, said, &near(&said.now), 128));
    let mut times: Vec<_> = table
        .rows
        .iter()
        .map(|row| {
            let began = Instant::now();
            black_box(near(&row.said));
            began.elapsed()
        })
        .collect();
    times.sort();
    let (median, slowest) = (times[times.len() / 2], times[times.len() - 1]);
    println!("learning {} tools: {learnt:?}; a ranking: median {median:?}, slowest {slowest:?}", tools.len());
}

/// What the process has in memory.
fn resident_kib() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
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
    let said = |number: usize| Query { now: table.rows[number % table.rows.len()].said.clone(), ..Query::default() };
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
