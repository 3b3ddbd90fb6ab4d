//! How well the router finds the tools that an utterance needs: tests/data/router, both halves.

#[path = "router/table.rs"]
mod table;

use table::{Half, Table};
use tools::router::{Index, Router};

#[test]
fn the_table_is_as_large_as_it_says() {
    let table = Table::load();
    assert!(table.rows.len() >= 150 && table.tools.len() >= 60);
    for half in [Half::Development, Half::HeldOut] {
        assert!(table.half(half).count() >= 75);
    }
    for row in &table.rows {
        assert!(row.expected.iter().all(|name| table.place(name).is_some()), "{:?}", row.expected);
    }
}

/// Floors a little below what is measured (docs/measurements.md): a change that costs tools shows here.
#[test]
fn words_find_the_tools() {
    let table = Table::load();
    let index = Index::new(&table.tools);
    for (half, floor) in [(Half::Development, 0.88), (Half::HeldOut, 0.85)] {
        let recall = table.recall(half, 5, |said| index.rank(said).into_iter().map(|(at, _)| at).collect());
        assert!(recall >= floor, "{half:?}: {recall}");
    }
}

#[test]
fn fewer_tokens_are_spent_and_tools_are_not_lost() {
    let table = Table::load();
    let router = Router::default();
    for half in [Half::Development, Half::HeldOut] {
        let offered = table.offered(half, |said| router.choose(&table.tools, said, 128));
        assert!(offered.recall >= 0.94 && offered.tools < 0.5 * table.tools.len() as f64, "{half:?}: {offered:?}");
        assert!(offered.share_of_bytes < 0.5 && offered.doubt < 0.25, "{half:?}: {offered:?}");
    }
}
