//! `lorgnette check`.

use std::{
    io::ErrorKind,
    net::{TcpListener, UdpSocket},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use audio::{
    asr,
    models::{self as weights, Entry, Status},
};
use toml::Value;

use crate::{
    capabilities::{Evaluator, Prepared as Capabilities},
    config::{self, Config},
    environment,
    mcp::Prepared,
    models::{self, chain, metered::Meters},
    ports::settings::class_names,
    private::{FolderLock, HOW_TO_BE_USABLE, RUN_AS_ROOT, give_to_owner, out_of_sight, unusable},
    speech::{
        elsewhere::settings::{Order, Other, Texts},
        wake,
    },
    store::{self, Store},
    transport::sockets::cannot_listen,
    units::number_of,
};

/// Check a configuration.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The file; default: that of --config.
    file: Option<PathBuf>,
    /// Print an example that explains the keys and says their defaults.
    #[arg(long)]
    example: bool,
    /// List damaged records in the store of a gateway that is not running, without their contents.
    #[arg(long)]
    store: bool,
    /// Move the damaged records from the store to this new file.
    #[arg(long, requires = "store", value_name = "FILE")]
    set_aside: Option<PathBuf>,
}

pub(super) fn run(file: Option<PathBuf>, arguments: &Arguments) -> Result<()> {
    if arguments.example {
        print!("{}", config::EXAMPLE);
        return Ok(());
    }
    let path = arguments.file.clone().or(file);
    let config = super::load(path.clone())?;
    if let Some(closed) = out_of_sight(&config.data_dir) {
        bail!("{closed}: {RUN_AS_ROOT}");
    }
    if arguments.store {
        return check_store(&config, arguments.set_aside.as_deref());
    }
    let (mcp, capabilities) = examine(&config).inspect_err(|_| {
        if let Some(closed) = environment::closed(config.file.as_deref()) {
            eprintln!("{closed}: {RUN_AS_ROOT}");
        }
    })?;
    let shown = path.map_or_else(|| "the default configuration".to_owned(), |path| path.display().to_string());
    println!("{shown} is valid");
    println!("  data    {}", config.data_dir.display());
    println!("  models  {}", config.models_dir.display());
    println!("  answers {}", config.models.chain.iter().map(ToString::to_string).collect::<Vec<_>>().join(", then "));
    println!("  hears   {}", hears(&config));
    println!("  wake    by {}{}", woken(&config), followed(&config));
    show_elsewhere(&config);
    println!("  web     {}", config.listen.web);
    println!("  quic    {}", config.listen.quic.map_or_else(|| "off".to_owned(), |address| address.to_string()));
    for folder in &config.skills.folders {
        let note = if folder.is_dir() { "" } else { " (not there)" };
        println!("  skills  {}{note}", folder.display());
    }
    for (tool, classes) in &config.tools.clients {
        let note = if may_exist(tool, &mcp, &capabilities) { "" } else { " (neither built in nor configured)" };
        println!("  tools   {tool} is for {}{note}", class_names(classes));
    }
    println!("  mcp     {mcp}");
    println!("  capabilities  {capabilities}");
    Ok(())
}

/// Looks for all that would keep the gateway from its start or show there.
fn examine(config: &Config) -> Result<(Prepared, Capabilities)> {
    let mut mcp = Prepared::load(&config.mcp, config.folder.as_deref()).or_else(|problems| {
        for problem in &problems {
            eprintln!("{problem}");
        }
        bail!("the section [mcp] has {}", number_of(problems.len(), "problem"))
    })?;
    let capabilities = capabilities(config, &mut mcp)?;
    let of_models = config.models.all().filter_map(|model| models::check_key(model).err());
    let keys = of_models.map(|error| format!("{error:#}"));
    let keys: Vec<String> = keys.chain(elsewhere_keys(config)).collect();
    if !keys.is_empty() {
        for problem in &keys {
            eprintln!("{problem}");
        }
        bail!("without a key that can be used: {}", number_of(keys.len(), "model"));
    }
    chain::set_up(&config.models, None, &Meters::default())?;
    let mut problems = mcp.problems();
    problems.extend(config.models.code.policy().err().map(|error| format!("{error:#}")));
    problems.extend(unusable(&config.data_dir).map(|why| format!("`data_dir`: {why}; {HOW_TO_BE_USABLE}")));
    problems.extend(addresses(config));
    problems.extend(wanting(config));
    let heads = config.hearing.wake.iter();
    problems.extend(heads.flat_map(|heads| wake::examine(heads, &config.conversation.wake_phrases)));
    if let Err(error @ asr::Error::Language { .. }) = config.hearing.check_language() {
        problems.push(error.to_string());
    }
    // What this machine cannot do is done by a recogniser elsewhere, if there is one.
    for model in config.hearing.models().filter(|_| config.hearing.remote.is_none()) {
        // Fetched models are checked above.
        if !model.starts_with(&config.models_dir) && !model.is_file() {
            problems.push(format!("[hearing] there is no model {}", model.display()));
        }
    }
    if !problems.is_empty() {
        for problem in &problems {
            eprintln!("{problem}");
        }
        bail!("{} would show when the gateway is started", number_of(problems.len(), "problem"));
    }
    Ok((mcp, capabilities))
}

/// What is recognised and spoken outside of the gateway.
fn show_elsewhere(config: &Config) {
    if let Some(remote) = &config.hearing.remote {
        let when = if remote.order == Order::Instead {
            "all speech"
        } else {
            "when this machine's recogniser fails or does not know the language"
        };
        println!("          {}: {when}", remote.server);
    }
    if let Some(other) = &config.other_voice {
        let what = if other.texts == Texts::All { "all texts" } else { "texts that are not in English" };
        println!("  speaks  {}: {what}", other.speaker);
    }
}

/// Keys of recognition and speech outside of the gateway that cannot be used.
fn elsewhere_keys(config: &Config) -> Vec<String> {
    let recognition = config.hearing.remote.as_ref().map(|remote| &remote.server);
    let speech = config.other_voice.as_ref().and_then(Other::server);
    let servers = recognition.into_iter().chain(speech);
    servers.filter_map(|server| server.check_key().err().map(|error| format!("{server}: {error:#}"))).collect()
}

/// Reads the capabilities.
fn capabilities(config: &Config, mcp: &mut Prepared) -> Result<Capabilities> {
    let folders = (config.folder.as_deref(), config.data_dir.as_path());
    let evaluator = Evaluator::new(config.models.code.executable.as_deref());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let load = Capabilities::load(&config.capabilities, folders, mcp, &evaluator);
    runtime.block_on(load).or_else(|problems| {
        for problem in &problems {
            eprintln!("{problem}");
        }
        bail!("the section [capabilities] has {}", number_of(problems.len(), "problem"))
    })
}

/// Whether a tool of this name is built in, of a capability, or may be one of a configured MCP server. Those of apps and glasses are not
/// known without the gateway.
fn may_exist(tool: &str, mcp: &Prepared, capabilities: &Capabilities) -> bool {
    // The name of a server has no dot.
    let is_of_server = tool.split_once('.').is_some_and(|(server, _)| mcp.has_server(server));
    is_of_server || capabilities.has_tool(tool) || tools::builtin::all().0.iter().any(|spec| spec.name == tool)
}

/// Lists damaged records, and moves them to a file if there is one.
fn check_store(config: &Config, aside: Option<&Path>) -> Result<()> {
    let (data, folder) = (&config.data_dir, config.data_dir.join("store"));
    if Store::is_empty(&folder) {
        println!("there is no store in {}", data.display());
        return Ok(());
    }
    let _lock = FolderLock::take(data, "check").context("stop the gateway before its store is checked")?;
    let damaged = store::check(&folder, config.store.size_max_mib, aside);
    // A store of an older version was written anew.
    give_to_owner(data, &folder)?;
    let damaged = damaged?;
    for row in &damaged {
        let why = if row.bytes_changed { "its bytes have changed on the disk" } else { "its form is wrong" };
        println!("{}  {}  {why}", row.table, row.id);
    }
    match (damaged.len(), aside) {
        (0, _) => println!("no record of the store is damaged"),
        (count, Some(file)) => {
            println!("no longer in the store, but in {}: {}", file.display(), number_of(count, "damaged record"))
        }
        (count, None) => bail!(
            "{}, left out by the gateway. Restore a backup, or move this to a file with `--set-aside FILE`",
            number_of(count, "damaged record")
        ),
    }
    Ok(())
}

/// Required models that are missing or damaged.
fn wanting(config: &Config) -> Vec<String> {
    let wanted = config.models_wanted();
    let folder = &config.models_dir;
    let kinds = [("missing", Status::Missing), ("damaged", Status::Damaged)].into_iter();
    let told = kinds.filter_map(|(kind, status)| {
        let spared = |entry: &Entry| status == Status::Missing && config.can_do_without(entry);
        let ids = wanted.iter().filter(|entry| weights::status(entry, folder) == status && !spared(entry));
        let ids: Vec<&str> = ids.map(|entry| entry.id).collect();
        let told =
            || format!("models in {}: {kind}: {}; run `lorgnette models fetch`", folder.display(), ids.join(", "));
        (!ids.is_empty()).then(told)
    });
    told.collect()
}

/// Addresses on which nothing can listen. One that is in use is most likely used by the gateway itself.
fn addresses(config: &Config) -> Vec<String> {
    let web = TcpListener::bind(config.listen.web).err().map(|error| (config.listen.web, "TCP", "listen.web", error));
    let quic =
        config.listen.quic.and_then(|address| Some((address, "UDP", "listen.quic", UdpSocket::bind(address).err()?)));
    let failed = web.into_iter().chain(quic).filter(|(.., error)| error.kind() != ErrorKind::AddrInUse);
    failed.map(|(address, kind, key, error)| cannot_listen(address, kind, key, &error)).collect()
}

/// How wake phrases are known, and what is missing for another way.
fn woken(config: &Config) -> String {
    if config.hearing.wake.is_some() {
        return "sound, verified by text".to_owned();
    }
    if config.written.get("hearing.wake").and_then(Value::as_str) == Some("text") {
        return "text".to_owned();
    }
    let folder = config.models_dir.join(wake::FOLDER);
    let phrases = &config.conversation.wake_phrases;
    let lacking: Vec<&str> =
        phrases.iter().filter(|phrase| !folder.join(wake::file_of(phrase)).exists()).map(String::as_str).collect();
    if lacking.is_empty() || lacking.len() == phrases.len() {
        return "text".to_owned();
    }
    format!("text: there is no head for {}", lacking.join(", "))
}

/// What is decoded all the same, though it needs a wake phrase.
fn followed(config: &Config) -> &'static str {
    if config.conversation.display.captions {
        "; captions are on (`display.captions`), so all speech that glasses with a display hear is decoded as it goes on"
    } else {
        ""
    }
}

/// Which languages are understood.
fn hears(config: &Config) -> String {
    let languages = config.hearing.understood();
    let usual = match (languages.usual, languages.multilingual) {
        (Some(spoken), _) => spoken.setting(),
        (None, true) => "the language of each device",
        (None, false) => "en; `lorgnette models fetch whisper-base` for other languages",
    };
    let users = languages.users.iter().map(|(user, spoken)| format!("; of {user} {}", spoken.setting()));
    std::iter::once(usual.to_owned()).chain(users).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_that_are_not_wanted_are_not_missing() {
        let folder = tempfile::tempdir().unwrap();
        let heads = folder.path().join(wake::FOLDER);
        std::fs::create_dir(&heads).unwrap();
        std::fs::write(heads.join(wake::file_of("hey mentra")), "").unwrap();
        let told = |wake: &str| {
            let text = format!(
                "models_dir = {:?}\n[hearing]\nwake_phrases = [\"hey mentra\", \"lantern\"]\nwake = \"{wake}\"\n",
                folder.path()
            );
            woken(&config::check(&text, "x.toml").unwrap())
        };
        assert_eq!(told("auto"), "text: there is no head for lantern");
        assert_eq!(told("text"), "text");
    }
}
