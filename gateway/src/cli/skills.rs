//! `lorgnette skills`.

use anyhow::Result;

use super::conversations::{records, words};
use crate::{config::Config, control::memory::MemoryRequest, units::number_of};

/// Show the offered skills, and problems with others.
#[derive(clap::Args)]
pub(super) struct Arguments {}

pub(super) fn run(config: &Config, _arguments: &Arguments) -> Result<()> {
    let all = records(config, MemoryRequest::Skills)?;
    let (problems, skills): (Vec<_>, Vec<_>) = all.iter().partition(|record| record["problem"].is_string());
    for skill in &skills {
        println!("{}  {}", words(skill, "name"), words(skill, "description"));
    }
    match skills.len() {
        0 => println!("no skills; put their folders into {}", config.data_dir.join("skills").display()),
        count => println!("{}", number_of(count, "skill")),
    }
    for problem in problems {
        eprintln!("not offered: {}", words(problem, "problem"));
    }
    Ok(())
}
