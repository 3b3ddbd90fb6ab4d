//! `lorgnette check`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use audio::{
    asr,
    models::{self as weights, Status},
};

use crate::{
    config::{self, Checked, RouterBy},
    mcp::Prepared,
    models,
};

/// Check a configuration.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The file; default: that of --config.
    file: Option<PathBuf>,
    /// Print an example that explains the keys and says their defaults.
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
    let choosing = match &checked.router_by {
        RouterBy::Model(model) => Some(model),
        RouterBy::Words | RouterBy::Sentences { .. } => None,
    };
    let all = checked.ranks.models.iter().chain(choosing);
    let keys: Vec<String> =
        all.filter_map(|model| models::check_key(model).err()).map(|error| format!("{error:#}")).collect();
    if !keys.is_empty() {
        for problem in &keys {
            eprintln!("{problem}");
        }
        bail!("{} model(s) have no key that can be used", keys.len());
    }
    crate::serve::models(&checked, None)?;
    let hearing = || [Some(&checked.asr_model), checked.asr_second_model.as_ref()].into_iter().flatten();
    for model in hearing() {
        // One that is not there, or not whole, is told of below.
        if let Err(error @ asr::Error::Language { .. }) = asr::check(model, &checked.asr_language) {
            return Err(error.into());
        }
    }
    let shown = path.map_or_else(|| "the default configuration".to_owned(), |path| path.display().to_string());
    println!("{shown} is valid");
    println!("  data    {}", checked.data_dir.display());
    println!("  models  {}{}", checked.models_dir.display(), wanting(&checked));
    println!("  answers {}", checked.ranks.models.iter().map(ToString::to_string).collect::<Vec<_>>().join(", then "));
    println!("  web     {}", checked.web);
    println!("  quic    {}", checked.quic.map_or_else(|| "off".to_owned(), |address| address.to_string()));
    for model in hearing() {
        // Those that are fetched are named above.
        if !model.starts_with(&checked.models_dir) {
            let note = if model.is_file() { "" } else { " (not there)" };
            println!("  hearing {}{note}", model.display());
        }
    }
    for folder in &checked.skills {
        let note = if folder.is_dir() { "" } else { " (not there)" };
        println!("  skills  {}{note}", folder.display());
    }
    if let Ok(mcp) = mcp {
        println!("  mcp     {mcp}");
    }
    Ok(())
}

/// Models that the configuration needs and that are not whole.
fn wanting(checked: &Checked) -> String {
    let wanted = checked.models_wanted();
    let with = |status: Status| {
        let ids = wanted.iter().filter(|entry| weights::status(entry, &checked.models_dir) == status);
        ids.map(|entry| entry.id).collect::<Vec<_>>()
    };
    let kinds = [("missing", with(Status::Missing)), ("damaged", with(Status::Damaged))];
    let told: Vec<String> = kinds
        .into_iter()
        .filter(|(_, ids)| !ids.is_empty())
        .map(|(kind, ids)| format!("{kind}: {}", ids.join(", ")))
        .collect();
    if told.is_empty() {
        return String::new();
    }
    format!(" ({}; run `lorgnette models fetch`)", told.join("; "))
}
