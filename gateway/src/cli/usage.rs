//! `lorgnette usage`.

use anyhow::{Result, bail};

use crate::{
    clock,
    config::Config,
    control::{Answer, Request, client::ask},
};

/// Show the calls of tools.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Name of the user; default: all users.
    #[arg(long)]
    user: Option<String>,
    /// How far back: a number and `m`, `h` or `d`, or `all`.
    #[arg(long, default_value = "30d", value_parser = parse_since)]
    since: Since,
    /// One JSON object per line.
    #[arg(long)]
    json: bool,
}

/// How far back, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Since(Option<i64>);

impl Since {
    /// The moment, in milliseconds since the Unix epoch.
    pub(super) fn wall_ms(self) -> i64 {
        self.0.map_or(i64::MIN, |ms| clock::wall_ms().saturating_sub(ms))
    }
}

pub(super) fn parse_since(text: &str) -> Result<Since, String> {
    if text == "all" {
        return Ok(Since(None));
    }
    let wrong = || format!("`{text}` is no span of time: write 90m, 12h, 30d or all");
    let unit_ms = match text.chars().last() {
        Some('m') => 60_000,
        Some('h') => 3_600_000,
        Some('d') => 86_400_000,
        _ => return Err(wrong()),
    };
    let count: u32 = text.get(..text.len() - 1).unwrap_or_default().parse().map_err(|_| wrong())?;
    Ok(Since(Some(i64::from(count) * unit_ms)))
}

pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<()> {
    let request = Request::Usage { user: arguments.user.clone(), since_wall_ms: arguments.since.wall_ms() };
    let Answer::Usage { users } = ask(&config.data_dir, &request)? else {
        bail!("unexpected answer");
    };
    if users.is_empty() && !arguments.json {
        println!("no recorded calls");
        return Ok(());
    }
    for (user, tools) in users {
        if !arguments.json {
            println!("{user}");
            println!(
                "  {:>6} {:>6} {:>6} {:>6} {:>9} {:>9}  tool",
                "calls", "failed", "asked", "agreed", "mean ms", "KiB"
            );
        }
        for tool in tools {
            if arguments.json {
                println!("{}", serde_json::json!({"user": user, "usage": tool}));
                continue;
            }
            let mean_ms = tool.took_ms as f64 / tool.calls.max(1) as f64;
            let kib = tool.bytes as f64 / 1024.0;
            let (calls, failed, asked, agreed) = (tool.calls, tool.failed, tool.asked, tool.approved);
            println!("  {calls:>6} {failed:>6} {asked:>6} {agreed:>6} {mean_ms:>9.1} {kib:>9.1}  {}", tool.tool);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_are_read() {
        for (text, ms) in [("90m", 5_400_000), ("12h", 43_200_000), ("30d", 2_592_000_000)] {
            assert_eq!(parse_since(text), Ok(Since(Some(ms))));
        }
        assert_eq!(parse_since("all"), Ok(Since(None)));
        for text in ["", "d", "-1d", "3", "3w", "1.5h", "99999999999d", "é"] {
            assert!(parse_since(text).is_err(), "{text}");
        }
    }
}
