//! `lorgnette turns`.

use anyhow::{Result, bail};
use serde_json::Value;

use crate::{
    config::Checked,
    control::{Answer, Request, client::ask},
};

/// Show the latest turns.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// How many.
    #[arg(long, default_value_t = 10)]
    last: usize,
    /// One JSON object a line, with all stages in microseconds.
    #[arg(long)]
    json: bool,
}

/// Columns of the table: title and the field whose distance from the last voiced sample it shows.
const COLUMNS: [(&str, &str); 7] = [
    ("end", "end_decided_us"),
    ("final", "final_us"),
    ("model", "model_first_us"),
    ("tool", "tool_end_us"),
    ("display", "first_display_us"),
    ("speech", "first_frame_us"),
    ("heard", "heard_us"),
];

pub(super) fn run(config: &Checked, arguments: &Arguments) -> Result<()> {
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
    println!("milliseconds after the last voiced sample; decode, queue and tts are durations");
    print!("{:<8} {:>5} {:>5} {:>11}", "glasses", "turn", "via", "outcome");
    for (title, _) in COLUMNS {
        print!(" {title:>8}");
    }
    println!(" {:>8} {:>8} {:>8}", "decode", "queue", "tts");
    for turn in turns {
        let text = |key: &str| turn.get(key).map_or_else(String::new, |value| value.to_string().replace('"', ""));
        // So much of a fingerprint tells two pairs of glasses apart.
        let glasses: String = text("device").chars().take(8).collect();
        print!("{glasses:<8} {:>5} {:>5} {:>11}", text("turn"), text("transport"), text("outcome"));
        for (_, field) in COLUMNS {
            print!(" {:>8}", between(&turn, "last_voice_us", field));
        }
        for field in ["asr_decode_us", "asr_queue_us", "tts_us"] {
            print!(" {:>8}", milliseconds(turn.get(field).and_then(Value::as_u64)));
        }
        println!();
    }
    Ok(())
}

fn between(turn: &Value, from: &str, to: &str) -> String {
    let at = |key: &str| turn.get(key).and_then(Value::as_u64);
    milliseconds(at(to).zip(at(from)).map(|(to, from)| to.saturating_sub(from)))
}

fn milliseconds(us: Option<u64>) -> String {
    us.map_or_else(|| "-".to_owned(), |us| format!("{:.1}", us as f64 / 1000.0))
}
