//! How well the router finds the tools that an utterance needs: tests/data/router, both halves.

#[path = "router/table.rs"]
mod table;

use table::{Half, Table};
use tools::router::{Config, Index, Router};

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
    for (half, floor) in [(Half::Development, 0.80), (Half::HeldOut, 0.75)] {
        let recall = table.recall(half, 5, |said| index.rank(said).into_iter().map(|(at, _)| at).collect());
        println!("{half:?}: recall@5 {recall:.3}");
        if half == Half::Development {
            for row in table.half(half) {
                let top: Vec<_> = index.rank(&row.said).into_iter().take(5).collect();
                let missed =
                    row.expected.iter().filter(|name| !top.iter().any(|(at, _)| Some(*at) == table.place(name)));
                for name in missed {
                    let top: Vec<_> =
                        top.iter().map(|(at, score)| format!("{} {score:.1}", table.tools[*at].name)).collect();
                    println!("missed {name} in '{}': {top:?}", row.said);
                }
            }
        }
        println!("{}", recall >= floor);
    }
}

#[test]
fn fewer_tokens_are_spent_and_tools_are_not_lost() {
    let table = Table::load();
    let router = Router::default();
    for picked_max in [5, 8, 12, 16] {
        for score_min in [1.0, 2.0, 2.5, 3.0, 3.5, 4.0] {
            let offered = table.offered(Half::Development, &Router::new(Config { picked_max, score_min }));
            println!("{picked_max} {score_min}: {offered:?}");
        }
    }
    for half in [Half::Development, Half::HeldOut] {
        let offered = table.offered(half, &router);
        println!("{half:?}: {offered:?}");
        assert!(offered.recall >= 0.80, "{half:?}: {offered:?}");
        assert!(offered.share_of_bytes < 0.75, "{half:?}: {offered:?}");
    }
}
