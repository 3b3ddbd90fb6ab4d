//! `lorgnette check`.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::{config, mcp::Prepared, models};

/// Check a configuration.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The file; default: that of --config.
    file: Option<PathBuf>,
    /// Print an example with every key and its default.
    #[arg(long)]
    example: bool,
}

pub(super) fn run(config: Option<PathBuf>, arguments: &Arguments) -> Result<()> {
    if arguments.example {
        print!("{}", config::EXAMPLE);
        return Ok(());
    }
    let path = arguments.file.clone().or(config);
    let checked = super::load(path.clone())?;
    let mcp = Prepared::load(&checked);
    if let Err(problems) = &mcp {
        for problem in problems {
            eprintln!("{problem}");
        }
        bail!("the section [mcp] has {} problem(s)", problems.len());
    }
    let all = checked.ranks.models.iter().chain(&checked.router_model);
    let keys: Vec<String> =
        all.filter_map(|model| models::check_key(model).err()).map(|error| format!("{error:#}")).collect();
    if !keys.is_empty() {
        for problem in &keys {
            eprintln!("{problem}");
        }
        bail!("{} model(s) have no key that can be used", keys.len());
    }
    let shown = path.map_or_else(|| "the default configuration".to_owned(), |path| path.display().to_string());
    println!("{shown} is valid");
    println!("  data    {}", checked.data_dir.display());
    println!("  models  {}", checked.models_dir.display());
    println!("  web     {}", checked.web);
    println!("  quic    {}", checked.quic.map_or_else(|| "off".to_owned(), |address| address.to_string()));
    if let Ok(mcp) = mcp {
        println!("  mcp     {mcp}");
    }
    Ok(())
}
