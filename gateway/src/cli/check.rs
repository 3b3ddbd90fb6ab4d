//! `lorgnette check`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use audio::models::{self, Status};

use crate::{
    config::{self, Checked},
    mcp::Prepared,
};

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
    router(&checked)?;
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

/// What chooses tools must be there: otherwise the gateway does not start.
fn router(checked: &Checked) -> Result<()> {
    let dir = &checked.models_dir;
    // The only models that are wanted without being needed by everybody.
    let mut wanted = checked.models_wanted().into_iter().filter(|entry| !entry.needed);
    if let Some(entry) = wanted.find(|entry| models::status(entry, dir) == Status::Missing) {
        bail!(
            "`router.by` is \"sentences\", but the model {} is not in {}: run `lorgnette models fetch` with this configuration",
            entry.id,
            dir.display()
        );
    }
    Ok(())
}
