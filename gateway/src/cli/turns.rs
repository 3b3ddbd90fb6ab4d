//! `lorgnette turns`.

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tools::inspection::moment;

use crate::{
    clock,
    config::Config,
    control::{Answer, Request, client::ask},
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
    /// Percentiles of each stage in place of the turns.
    #[arg(long)]
    percentiles: bool,
    /// One JSON object per line, with all stages in microseconds.
    #[arg(long)]
    json: bool,
}

/// Stages: title and the field whose distance from the last voiced sample is shown, or from the text where the turn was
/// typed.
const STAGES: [(&str, &str); 8] = [
    ("end", "end_decided_us"),
    ("final", "final_us"),
    ("request", "request_sent_us"),
    ("model", "model_first_us"),
    ("tool", "tool_end_us"),
    ("display", "first_display_us"),
    ("speech", "first_frame_us"),
    ("heard", "heard_us"),
];
/// Durations: title and field. `ask` has none of its own: from the accepted words to the request on its way.
const DURATIONS: [(&str, &str); 4] =
    [("decode", "asr_decode_us"), ("queue", "asr_queue_us"), ("ask", ""), ("tts", "tts_us")];

/// The shares of turns that are shown, in percent.
const SHARES: [usize; 4] = [50, 90, 95, 99];

pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<()> {
    let since = arguments.since.as_deref().map(|since| moment::parse(since, clock::wall_ms())).transpose();
    let since = since.map_err(anyhow::Error::msg)?;
    let all = since.is_some() || arguments.percentiles;
    let count = arguments.last.unwrap_or(if all { usize::MAX } else { SHOWN_USUAL });
    let request = match since {
        Some(since_wall_ms) => Request::StoredTurns { count, since_wall_ms },
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

/// The stages and durations of a turn in microseconds, in the order of their titles.
fn spans(turn: &Value) -> impl Iterator<Item = Option<u64>> {
    let at = |key: &str| turn.get(key).and_then(Value::as_u64);
    let between = |from: Option<u64>, to: &str| at(to).zip(from).map(|(to, from)| to.saturating_sub(from));
    let began = at("last_voice_us").or(at("final_us"));
    let duration = |field: &str| if field.is_empty() { between(at("final_us"), "request_sent_us") } else { at(field) };
    let stages = STAGES.map(|(_, field)| between(began, field));
    stages.into_iter().chain(DURATIONS.map(|(_, field)| duration(field)))
}

fn titles() -> impl Iterator<Item = &'static str> {
    STAGES.into_iter().chain(DURATIONS).map(|(title, _)| title)
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

/// Of each stage: how many turns came through it, and below which time it was reached in so many percent of them.
fn percentiles(turns: &[Value]) -> Vec<(&'static str, Vec<u64>)> {
    let mut columns: Vec<(&str, Vec<u64>)> = titles().map(|title| (title, Vec::new())).collect();
    for turn in turns {
        for ((_, column), span) in columns.iter_mut().zip(spans(turn)) {
            column.extend(span);
        }
    }
    columns.iter_mut().for_each(|(_, column)| column.sort_unstable());
    columns
}

/// Nearest rank of sorted values.
fn share(sorted: &[u64], percent: usize) -> Option<u64> {
    sorted.get((sorted.len() * percent).div_ceil(100).max(1) - 1).copied()
}

fn show_percentiles(turns: &[Value], json: bool) {
    if !json {
        println!("milliseconds after the last voiced sample, or after a typed text; {} turns", turns.len());
        print!("{:<8} {:>6}", "stage", "turns");
        SHARES.iter().for_each(|percent| print!(" {:>8}", format!("p{percent}")));
        println!();
    }
    for (title, sorted) in percentiles(turns) {
        if json {
            let mut row = json!({"stage": title, "turns": sorted.len()});
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

fn milliseconds(us: Option<u64>) -> String {
    us.map_or_else(|| "-".to_owned(), |us| format!("{:.1}", us as f64 / 1000.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_turns_that_came_through() {
        let typed = |ms: u64| json!({"final_us": 1_000, "first_display_us": 1_000 + ms * 1_000, "heard_us": null});
        let turns: Vec<Value> =
            (1..=100).map(typed).chain([json!({"last_voice_us": 5, "end_decided_us": 9})]).collect();
        let columns = percentiles(&turns);
        let of = |title: &str| &columns.iter().find(|(other, _)| *other == title).unwrap().1;
        assert_eq!(SHARES.map(|percent| share(of("display"), percent)), [50, 90, 95, 99].map(|ms| Some(ms * 1_000)));
        assert_eq!((share(of("end"), 99), share(of("heard"), 50)), (Some(4), None));
        assert_eq!((of("final").len(), of("ask").len()), (100, 0));
    }
}
