//! `lorgnette spending`.

use anyhow::Result;

use super::conversations::{number, records, words};
use crate::{config::Config, control::memory::MemoryRequest};

/// Show the use of models, today or on the last days: tokens and money.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Name of the user; default: all users.
    #[arg(long)]
    user: Option<String>,
    /// Number of days, including today.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=3_660))]
    days: u16,
    /// One JSON object per line.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<()> {
    let request = MemoryRequest::Spending { user: arguments.user.clone(), days: usize::from(arguments.days) };
    let spent = records(config, request)?;
    if arguments.json {
        for record in &spent {
            println!("{record}");
        }
        return Ok(());
    }
    if spent.is_empty() {
        println!("the models took nothing");
        return Ok(());
    }
    println!("{:<10} {:>12} {:>12} {:>12}  user", "day", "tokens in", "tokens out", "money");
    for record in &spent {
        let (input, output) = (number(record, "input_tokens"), number(record, "output_tokens"));
        let money = record["money"].as_f64().unwrap_or(0.0);
        let budget = record["budget"].as_f64().map_or_else(String::new, |budget| format!(" (of {budget} a day)"));
        let (date, user) = (words(record, "date"), words(record, "user"));
        println!("{date:<10} {input:>12} {output:>12} {money:>12.6}  {user}{budget}");
    }
    Ok(())
}
