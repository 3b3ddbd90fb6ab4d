//! `lorgnette check`.

use std::{
    io::ErrorKind,
    net::{TcpListener, UdpSocket},
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};
use audio::{
    asr,
    models::{self as weights, Status},
};
use rustix::fs::Access;

use crate::{
    config::{self, Checked, RouterBy},
    http::cannot_listen,
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
    let selection = match &checked.router_by {
        RouterBy::Model(model) => Some(model),
        RouterBy::Words | RouterBy::Sentences { .. } => None,
    };
    let all = checked.ranks.models.iter().chain(selection);
    let keys: Vec<String> =
        all.filter_map(|model| models::check_key(model).err()).map(|error| format!("{error:#}")).collect();
    if !keys.is_empty() {
        for problem in &keys {
            eprintln!("{problem}");
        }
        bail!("{} model(s) have no key that can be used", keys.len());
    }
    crate::serve::models(&checked, None)?;
    let mut problems = mcp.as_ref().map(Prepared::problems).unwrap_or_default();
    problems.extend(data_folder(&checked.data_dir));
    problems.extend(addresses(&checked));
    problems.extend(wanting(&checked));
    for model in [Some(&checked.asr_model), checked.asr_second_model.as_ref()].into_iter().flatten() {
        if let Err(error @ asr::Error::Language { .. }) = asr::check(model, &checked.asr_language) {
            problems.push(error.to_string());
        }
        // Those that are fetched are looked at above.
        if !model.starts_with(&checked.models_dir) && !model.is_file() {
            problems.push(format!("[hearing] there is no model {}", model.display()));
        }
    }
    if !problems.is_empty() {
        for problem in &problems {
            eprintln!("{problem}");
        }
        bail!("{} problem(s) would show when the gateway is started", problems.len());
    }
    let shown = path.map_or_else(|| "the default configuration".to_owned(), |path| path.display().to_string());
    println!("{shown} is valid");
    println!("  data    {}", checked.data_dir.display());
    println!("  models  {}", checked.models_dir.display());
    println!("  answers {}", checked.ranks.models.iter().map(ToString::to_string).collect::<Vec<_>>().join(", then "));
    println!("  web     {}", checked.web);
    println!("  quic    {}", checked.quic.map_or_else(|| "off".to_owned(), |address| address.to_string()));
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
fn wanting(checked: &Checked) -> Vec<String> {
    let wanted = checked.models_wanted();
    let folder = &checked.models_dir;
    let kinds = [("missing", Status::Missing), ("damaged", Status::Damaged)].into_iter();
    let told = kinds.filter_map(|(kind, status)| {
        let ids = wanted.iter().filter(|entry| weights::status(entry, folder) == status);
        let ids: Vec<&str> = ids.map(|entry| entry.id).collect();
        let told =
            || format!("models in {}: {kind}: {}; run `lorgnette models fetch`", folder.display(), ids.join(", "));
        (!ids.is_empty()).then(told)
    });
    told.collect()
}

/// What is wrong with the data folder: it is there and usable, or can be made.
fn data_folder(folder: &Path) -> Option<String> {
    let told = |what: String| Some(format!("`data_dir` {}: {what}", folder.display()));
    let there = folder.ancestors().find(|folder| folder.exists() || folder.as_os_str().is_empty())?;
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    if !there.is_dir() {
        return told(format!("{} is no folder", there.display()));
    }
    let usable = rustix::fs::access(there, Access::WRITE_OK | Access::EXEC_OK);
    usable.err().and_then(|error| told(format!("{} cannot be written to: {error}", there.display())))
}

/// Addresses that nothing can listen on. One that is in use is most likely by the gateway itself.
fn addresses(checked: &Checked) -> Vec<String> {
    let web = TcpListener::bind(checked.web).err().map(|error| (checked.web, "TCP", "listen.web", error));
    let quic = checked.quic.and_then(|address| Some((address, "UDP", "listen.quic", UdpSocket::bind(address).err()?)));
    let failed = web.into_iter().chain(quic).filter(|(.., error)| error.kind() != ErrorKind::AddrInUse);
    failed.map(|(address, kind, key, error)| cannot_listen(address, kind, key, &error)).collect()
}
