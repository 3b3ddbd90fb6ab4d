//! `lorgnette logs`.

use anyhow::{Result, bail};
use jiff::{Timestamp, tz::TimeZone};
use tools::inspection::{
    logs::{LINES_MAX, LINES_USUAL, LogEntry, LogFilter, LogLevel},
    moment,
};

use crate::{
    clock,
    config::Config,
    control::{Answer, Request, client::ask},
};

/// Show the stored log of the gateway, newest line last.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Lines at least this severe: error, warn or info.
    #[arg(long)]
    level: Option<LogLevel>,
    /// The beginning of the part of the program, such as gateway::mcp.
    #[arg(long)]
    context: Option<String>,
    /// gateway, device:ID, app:PACKAGE or mcp:SERVER.
    #[arg(long)]
    source: Option<String>,
    /// How far back: 90m, 12h, 30d, or a time such as 2026-11-24T08:00:00Z.
    #[arg(long)]
    since: Option<String>,
    /// Words in the line.
    #[arg(long)]
    text: Option<String>,
    /// Number of lines.
    #[arg(long, default_value_t = LINES_USUAL)]
    limit: usize,
    /// Show new lines as they come, until it is interrupted.
    #[arg(long, short)]
    follow: bool,
    /// One JSON object per line.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn filter(&self) -> Result<LogFilter> {
        let since = self.since.as_deref().map(|since| moment::parse(since, clock::wall_ms())).transpose();
        Ok(LogFilter {
            level: self.level,
            context: self.context.clone(),
            source: self.source.clone(),
            since_wall_ms: since.map_err(anyhow::Error::msg)?,
            before_wall_ms: None,
            text: self.text.clone(),
        })
    }
}

pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<()> {
    let (filter, zone) = (arguments.filter()?, clock::zone());
    let print = |line: &LogEntry| show(line, &zone, arguments.json);
    if arguments.follow {
        let request = Request::FollowLogs { filter, limit: arguments.limit };
        return super::watch(config, &request, |answer| match answer {
            Answer::Logs { logs, .. } => {
                logs.iter().for_each(print);
                true
            }
            _ => false,
        });
    }
    let lines = latest(config, &filter, arguments.limit)?;
    lines.iter().rev().for_each(print);
    if lines.is_empty() && !arguments.json {
        println!("no such lines");
    }
    Ok(())
}

/// The newest lines, newest first, of as many pages as it takes.
fn latest(config: &Config, filter: &LogFilter, limit: usize) -> Result<Vec<LogEntry>> {
    let (mut lines, mut cursor) = (Vec::new(), None);
    while lines.len() < limit {
        let limit = (limit - lines.len()).min(LINES_MAX);
        let request = Request::Logs { filter: filter.clone(), limit, cursor };
        let Answer::Logs { logs, cursor: next } = ask(&config.data_dir, &request)? else {
            bail!("unexpected answer");
        };
        lines.extend(logs);
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(lines)
}

fn show(line: &LogEntry, zone: &TimeZone, json: bool) {
    if json {
        let LogEntry { wall_ms, level, context, source, message } = line;
        let timestamp = moment::written(*wall_ms);
        let line = serde_json::json!({"timestamp": timestamp, "level": level, "context": context, "source": source,
            "message": message});
        println!("{line}");
        return;
    }
    let at = Timestamp::from_millisecond(line.wall_ms).map(|at| at.to_zoned(zone.clone()));
    let at = at.map_or_else(|_| line.wall_ms.to_string(), |at| at.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string());
    // What a line is about stands in its text.
    println!("{at} {:<5} {}: {}", line.level.name(), line.context, crate::text::in_one_line(&line.message));
}
