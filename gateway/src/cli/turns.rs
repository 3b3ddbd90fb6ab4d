//! `lorgnette turns`.

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tools::inspection::moment;

use crate::{
    clock,
    config::Config,
    control::{Answer, Request, client::ask},
    telemetry::spans::{Kind, columns, kinds, share, spans, titles},
    units::number_of,
};

/// Turns that are shown, if no number is given: those of a table on one screen, and all with percentiles.
const SHOWN_USUAL: usize = 10;

/// Show the latest turns.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Number of turns; default: 10, or all with --since or --percentiles.
    #[arg(long)]
    last: Option<usize>,
    /// How far back, over restarts: 90m, 12h, 30d, or a time such as 2026-11-24T08:00:00Z. Default: this run.
    #[arg(long)]
    since: Option<String>,
    /// Percentiles of each stage in place of the turns: those of spoken turns and of typed ones.
    #[arg(long)]
    percentiles: bool,
    /// One JSON object per line, with all stages in microseconds.
    #[arg(long)]
    json: bool,
}

/// The shares of turns that are shown, in percent.
const SHARES: [usize; 4] = [50, 90, 95, 99];

pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<()> {
    let since = arguments.since.as_deref().map(|since| moment::parse(since, clock::wall_ms())).transpose();
    let since = since.map_err(anyhow::Error::msg)?;
    let all = since.is_some() || arguments.percentiles;
    let count = arguments.last.unwrap_or(if all { usize::MAX } else { SHOWN_USUAL });
    let request = match since {
        Some(since_wall_ms) => Request::StoredTurns { count, since_wall_ms, until_wall_ms: None },
        None => Request::Turns { count },
    };
    let Answer::Turns { turns } = ask(&config.data_dir, &request)? else {
        bail!("unexpected answer");
    };
    match (arguments.percentiles, arguments.json) {
        (true, json) => show_percentiles(&turns, json),
        (false, true) => turns.iter().for_each(|turn| println!("{turn}")),
        (false, false) if turns.is_empty() && since.is_some() => println!("no turns since then"),
        (false, false) if turns.is_empty() => println!("no turns since the gateway was started"),
        (false, false) => show(&turns),
    }
    Ok(())
}

fn show(turns: &[Value]) {
    println!(
        "milliseconds after the last voiced sample, or after a typed text; decode, queue, ask and tts are durations,"
    );
    println!("ask: from the accepted words to the request on its way to the model");
    print!("{:<8} {:>5} {:>5} {:>11}", "glasses", "turn", "via", "outcome");
    titles().for_each(|title| print!(" {title:>8}"));
    println!();
    for turn in turns {
        let text = |key: &str| turn.get(key).map_or_else(String::new, |value| value.to_string().replace('"', ""));
        // This much of a fingerprint distinguishes two pairs of glasses.
        let glasses: String = text("device").chars().take(8).collect();
        print!("{glasses:<8} {:>5} {:>5} {:>11}", text("turn"), text("transport"), text("outcome"));
        spans(turn).for_each(|span| print!(" {:>8}", milliseconds(span)));
        println!();
    }
}

fn show_percentiles(turns: &[Value], json: bool) {
    if turns.is_empty() && !json {
        println!("no turns");
    }
    for Kind { name, from, turns } in kinds(turns).into_iter().filter(|kind| !kind.turns.is_empty()) {
        if !json {
            println!("milliseconds after {from}; {}", number_of(turns.len(), &format!("{name} turn")));
            print!("{:<8} {:>6}", "stage", "turns");
            SHARES.iter().for_each(|percent| print!(" {:>8}", format!("p{percent}")));
            println!();
        }
        for (title, sorted) in columns(turns) {
            if json {
                let mut row = json!({"kind": name, "stage": title, "turns": sorted.len()});
                for percent in SHARES {
                    row[format!("p{percent}_us")] = share(&sorted, percent).into();
                }
                println!("{row}");
                continue;
            }
            print!("{title:<8} {:>6}", sorted.len());
            SHARES.iter().for_each(|percent| print!(" {:>8}", milliseconds(share(&sorted, *percent))));
            println!();
        }
    }
}

fn milliseconds(us: Option<u64>) -> String {
    us.map_or_else(|| "-".to_owned(), |us| format!("{:.1}", us as f64 / 1000.0))
}
