//! `lorgnette turns`.

use anyhow::{Result, bail};
use serde_json::Value;

use crate::{
    config::Config,
    control::{Answer, Request, client::ask},
};

/// Show the latest turns.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Number of turns.
    #[arg(long, default_value_t = 10)]
    last: usize,
    /// One JSON object per line, with all stages in microseconds.
    #[arg(long)]
    json: bool,
}

/// Columns of the table: title and the field whose distance from the last voiced sample it shows, or from the text
/// where the turn was typed.
const COLUMNS: [(&str, &str); 8] = [
    ("end", "end_decided_us"),
    ("final", "final_us"),
    ("request", "request_sent_us"),
    ("model", "model_first_us"),
    ("tool", "tool_end_us"),
    ("display", "first_display_us"),
    ("speech", "first_frame_us"),
    ("heard", "heard_us"),
];

pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<()> {
    let Answer::Turns { turns } = ask(&config.data_dir, &Request::Turns { count: arguments.last })? else {
        bail!("unexpected answer");
    };
    if arguments.json {
        for turn in turns {
            println!("{turn}");
        }
        return Ok(());
    }
    if turns.is_empty() {
        println!("no turns since the gateway was started");
        return Ok(());
    }
    println!(
        "milliseconds after the last voiced sample, or after a typed text; decode, queue, ask and tts are durations,"
    );
    println!("ask: from the accepted words to the request on its way to the model");
    print!("{:<8} {:>5} {:>5} {:>11}", "glasses", "turn", "via", "outcome");
    for (title, _) in COLUMNS {
        print!(" {title:>8}");
    }
    println!(" {:>8} {:>8} {:>8} {:>8}", "decode", "queue", "ask", "tts");
    for turn in turns {
        let text = |key: &str| turn.get(key).map_or_else(String::new, |value| value.to_string().replace('"', ""));
        // This much of a fingerprint distinguishes two pairs of glasses.
        let glasses: String = text("device").chars().take(8).collect();
        print!("{glasses:<8} {:>5} {:>5} {:>11}", text("turn"), text("transport"), text("outcome"));
        let at = |key: &str| turn.get(key).and_then(Value::as_u64);
        let between =
            |from: Option<u64>, to: &str| milliseconds(at(to).zip(from).map(|(to, from)| to.saturating_sub(from)));
        let began = at("last_voice_us").or(at("final_us"));
        for (_, field) in COLUMNS {
            print!(" {:>8}", between(began, field));
        }
        let ask = between(at("final_us"), "request_sent_us");
        let [decode, queue, tts] = ["asr_decode_us", "asr_queue_us", "tts_us"].map(|field| milliseconds(at(field)));
        println!(" {decode:>8} {queue:>8} {ask:>8} {tts:>8}");
    }
    Ok(())
}

fn milliseconds(us: Option<u64>) -> String {
    us.map_or_else(|| "-".to_owned(), |us| format!("{:.1}", us as f64 / 1000.0))
}
