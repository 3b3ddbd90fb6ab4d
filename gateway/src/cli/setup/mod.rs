//! `lorgnette setup`: five questions, and a configuration with comments for the answers.

mod ask;
mod autostart;
mod present;
mod written;

use std::{
    fs::{self, File, Permissions},
    io::{BufRead, IsTerminal as _, Write as _, stdin, stdout},
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use chat_models::kinds::Kind;

use self::{ask::Asker, autostart::Systemd, present::Present, written::Document};
use super::SYSTEM_CONFIG;
use crate::{config, environment::default_data_dir, private::sync_folder_of, text::quoted};

/// Model that needs no other: the sentences of the tools.
const OFFLINE: &str = "offline";
/// Folders of an installed gateway: its service does not see those of root.
const SYSTEM_DATA: &str = "/var/lib/lorgnette";
/// As [`SYSTEM_DATA`].
const SYSTEM_MODELS: &str = "/var/lib/lorgnette-models";
/// Port of the gateway where only the place is answered.
const PORT: u16 = 8460;
/// Speeds of the voice that have a name.
const SPEEDS: [(&str, f32); 3] = [("slow", 0.85), ("normal", 1.0), ("fast", 1.2)];

/// Ask five questions and write a configuration. Answers that are given as options are not asked for.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Where to write it; default: /etc/lorgnette/config.toml for root, else below ~/.config.
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Who wears the glasses: a user's name.
    #[arg(long)]
    user: Option<String>,
    /// Where to listen: `network`, `here` (this machine only), or an address and port.
    #[arg(long)]
    listen: Option<String>,
    /// Which model answers: `offline`, or a `kind` of docs/models.md.
    #[arg(long)]
    model: Option<String>,
    /// Name of that model at its provider.
    #[arg(long)]
    model_name: Option<String>,
    /// Address of its server.
    #[arg(long)]
    model_url: Option<String>,
    /// Name under which `lorgnette login` keeps its key; "": it needs none.
    #[arg(long)]
    login: Option<String>,
    /// How the voice speaks: `slow`, `normal`, `fast`, or a speed from 0.5 to 2.0.
    #[arg(long)]
    voice: Option<String>,
    /// Start the gateway with the machine.
    #[arg(long, value_enum)]
    autostart: Option<YesNo>,
    /// Folder for the gateway's data; default: that of the configuration that is replaced.
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// Ask nothing: defaults for what is not given.
    #[arg(long, short)]
    yes: bool,
    /// Replace a configuration that is there; the old one is kept beside it.
    #[arg(long)]
    replace: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum YesNo {
    Yes,
    No,
}

/// What was answered, or given as options: the written configuration follows from it.
#[derive(Debug)]
struct Answers {
    user: String,
    listen: SocketAddr,
    model: Model,
    speed: f32,
    autostart: bool,
}

/// The model that answers.
#[derive(Debug, Default)]
struct Model {
    kind: String,
    name: String,
    url: String,
    login: String,
}

pub(super) fn run(file: Option<PathBuf>, arguments: Arguments) -> Result<()> {
    let systemd = Systemd::of_this_machine();
    let input = stdin().lock();
    // Where nobody types, the questions are still shown: what a script answers can then be read in its log.
    set_up(input, stdin().is_terminal(), file, arguments, &systemd)
}

fn set_up(
    input: impl BufRead,
    is_typed: bool,
    file: Option<PathBuf>,
    arguments: Arguments,
    systemd: &Systemd,
) -> Result<()> {
    let mut asker = Asker::new(input, arguments.yes);
    let output = std::path::absolute(arguments.output.clone().or(file).unwrap_or_else(default_output))?;
    let present = Present::read(&output)?;
    let is_somebodys = present.as_ref().is_some_and(|present| !present.is_as_installed);
    if is_somebodys && !arguments.replace {
        let question = format!("{} is there already. Replace it? The old one is kept beside it", output.display());
        ensure!(
            !arguments.yes && asker.yes_or_no(&question, false)?,
            "{} is there already and stays as it is; `--replace` replaces it, `--output` writes another one",
            output.display()
        );
    }
    if is_typed {
        println!("Five questions; Enter takes what is in brackets.");
    }
    let answers = answers(&mut asker, &arguments, systemd)?;
    // Where the data are, they stay.
    let written = present.as_ref().map(|present| present.folders.clone()).unwrap_or_default();
    let (data, models) = match output == Path::new(SYSTEM_CONFIG) {
        true => (SYSTEM_DATA.into(), SYSTEM_MODELS.into()),
        false => (default_data_dir(), audio::models::default_dir()),
    };
    let data = std::path::absolute(arguments.data_dir.or(written.0).unwrap_or(data))?;
    let models = written.1.unwrap_or(models);
    let text = document(&answers, &data, &models)?;
    if let Err(problems) = config::check(&text, &output.display().to_string()) {
        let problems: Vec<String> = problems.into_iter().map(|problem| problem.to_string()).collect();
        bail!("these answers make no configuration; nothing was written\n{}", problems.join("\n"));
    }
    if answers.autostart {
        systemd.check(&output)?;
    }
    write(&output, &text, present.is_some())?;
    println!("wrote {}", output.display());
    if answers.autostart {
        println!("{}", systemd.install(&output, &data)?);
    }
    println!("{}", next(&answers, &output, systemd));
    drop(stdout().flush());
    Ok(())
}

fn answers<R: BufRead>(asker: &mut Asker<R>, arguments: &Arguments, systemd: &Systemd) -> Result<Answers> {
    let user = asker.text("1. Who wears the glasses?", arguments.user.as_deref(), "wearer", |user| {
        crate::control::check_name(user).map(|()| user.to_owned())
    })?;
    let question = "2. Where does the gateway listen? `network`, `here` (this machine only), or an address and port";
    let listen = asker.text(question, arguments.listen.as_deref(), "network", listen)?;
    let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    let question = format!("3. Which model answers? `{OFFLINE}` (commands only, no network), {}", kinds.join(", "));
    let kind = asker.text(&question, arguments.model.as_deref(), OFFLINE, |kind| {
        let is_known = kind == OFFLINE || kinds.contains(&kind);
        is_known.then(|| kind.to_owned()).ok_or_else(|| format!("there is no `{kind}`"))
    })?;
    let model = model(asker, arguments, kind)?;
    let question = "4. How does the voice speak? `slow`, `normal`, `fast`, or a speed from 0.5 to 2.0";
    let speed = asker.text(question, arguments.voice.as_deref(), "normal", speed)?;
    let autostart = match arguments.autostart {
        Some(answer) => answer == YesNo::Yes,
        None => asker.yes_or_no("5. Start it with this machine?", systemd.is_there())?,
    };
    Ok(Answers { user, listen, model, speed, autostart })
}

fn model<R: BufRead>(asker: &mut Asker<R>, arguments: &Arguments, kind: String) -> Result<Model> {
    if kind == OFFLINE {
        return Ok(Model { kind, ..Model::default() });
    }
    let any = |text: &str| Ok(text.to_owned());
    let url =
        asker.text("   Address of its server? Empty: the provider's own", arguments.model_url.as_deref(), "", any)?;
    let name = asker.text("   Name of the model?", arguments.model_name.as_deref(), "", |name| {
        (!name.is_empty()).then(|| name.to_owned()).ok_or_else(|| "every provider has several".to_owned())
    })?;
    let question = "   Name for its key, which `lorgnette login` will keep? Empty: it needs none";
    let login = asker.text(question, arguments.login.as_deref(), "", any)?;
    Ok(Model { kind, name, url, login })
}

fn listen(answer: &str) -> Result<SocketAddr, String> {
    match answer {
        "network" => Ok(SocketAddr::new(std::net::Ipv6Addr::UNSPECIFIED.into(), PORT)),
        "here" => Ok(SocketAddr::new(std::net::Ipv4Addr::LOCALHOST.into(), PORT)),
        other => other
            .parse()
            .map_err(|_| format!("`{other}` is no address and port, such as 192.0.2.1:{PORT} or [::]:{PORT}")),
    }
}

fn speed(answer: &str) -> Result<f32, String> {
    let named = SPEEDS.iter().find(|(name, _)| *name == answer).map(|(_, speed)| *speed);
    let speed = named.or_else(|| answer.parse().ok()).filter(|speed| (0.5..=2.0).contains(speed));
    speed.ok_or_else(|| format!("`{answer}` is no speed"))
}

/// The example with the answers in it.
fn document(answers: &Answers, data: &Path, models: &Path) -> Result<String> {
    let Answers { user, listen, model, speed, .. } = answers;
    let mut document = Document::new(config::EXAMPLE);
    let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
    if user != "wearer" {
        let name = format!("Lorgnette of {user}");
        document.set("", "name", &text(crate::text::crop(&name, device_protocol::limits::NAME_BYTES_MAX)))?;
    }
    let folder = |path: &Path| {
        let name = path.to_str().with_context(|| format!("{} is a name that is no text", path.display()));
        name.map(text)
    };
    document.set("", "data_dir", &folder(data)?)?;
    document.set("", "models_dir", &folder(models)?)?;
    document.set("listen", "web", &text(&listen.to_string()))?;
    document.set("listen", "quic", &text(&listen.to_string()))?;
    document.set("model", "kind", &text(&model.kind))?;
    for (key, value) in [("login", &model.login), ("model", &model.name), ("base_url", &model.url)] {
        if !value.is_empty() {
            document.set("model", key, &text(value))?;
        }
    }
    document.set("voice", "speed", &format!("{speed:?}"))?;
    Ok(document.into_text())
}

/// Writes the file whole or not at all; what was there is kept beside it, as a copy: a gateway that starts meanwhile, or after a
/// power cut, finds the old one or the new one.
fn write(output: &Path, text: &str, replaces: bool) -> Result<()> {
    let failed = || format!("writing {}", output.display());
    let folder = output.parent().context("a configuration is a file in a folder")?;
    fs::create_dir_all(folder).with_context(failed)?;
    // Nothing in it is secret, and the gateway may run as another user than the one who sets it up.
    let mode = fs::metadata(output).map_or(0o644, |old| old.permissions().mode() & 0o777);
    if replaces {
        let old = fs::read(output).with_context(failed)?;
        put(&beside(output, ".old"), &old, mode)?;
    }
    put(output, text.as_bytes(), mode)
}

/// As `private::write_private`, with these rights.
fn put(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let new = beside(path, ".new");
    let write = || {
        let mut file = File::create(&new)?;
        file.write_all(bytes)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().with_context(|| format!("writing {}", path.display()))?;
    sync_folder_of(path)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// What to do next.
fn next(answers: &Answers, output: &Path, systemd: &Systemd) -> String {
    let Answers { user, model, autostart, listen, .. } = answers;
    let mut lines = vec!["next:".to_owned()];
    // An installed program finds it by itself.
    if super::system_config().as_deref() != Some(output) {
        lines.push(format!("  export LORGNETTE_CONFIG={}", quoted(&output.display().to_string())));
    }
    if !model.login.is_empty() {
        lines.push(format!("  lorgnette login {} --key     # type the key", quoted(&model.login)));
    }
    lines.push("  lorgnette models fetch         # once; without internet: lorgnette models import FILE".to_owned());
    lines.push("  lorgnette check".to_owned());
    lines.push(match systemd.starts(output) || *autostart && systemd.is_there() {
        true => format!("  {}", systemd.start()),
        false => "  lorgnette serve                # in a terminal of its own".to_owned(),
    });
    lines.push(format!("  lorgnette devices invite --user {}", quoted(user)));
    if listen.ip().is_loopback() {
        lines.push("it listens on this machine only: glasses elsewhere do not reach it".to_owned());
    }
    lines.join("\n")
}

fn default_output() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    match std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home) {
        _ if rustix::process::geteuid().is_root() => PathBuf::from(SYSTEM_CONFIG),
        Some(folder) => folder.join("lorgnette/config.toml"),
        None => PathBuf::from("lorgnette.toml"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn answers_have_names_and_values() {
        assert_eq!(listen("network").unwrap().to_string(), "[::]:8460");
        assert!(listen("here").unwrap().ip().is_loopback());
        assert!(listen("192.0.2.1:99").is_ok() && listen("192.0.2.1").is_err());
        assert_eq!((speed("fast"), speed("0.5")), (Ok(1.2), Ok(0.5)));
        assert!(["", "3", "NaN", "loud"].into_iter().all(|answer| speed(answer).is_err()));
    }

    #[test]
    fn every_kind_of_model_makes_a_configuration() {
        for kind in Kind::ALL {
            let model = Model {
                kind: kind.name().to_owned(),
                name: "m \"1\"".to_owned(),
                url: "http://127.0.0.1:1/v1".to_owned(),
                login: "key".to_owned(),
            };
            let listen = listen("network").unwrap();
            let answers = Answers { user: "Ann \"A\"".to_owned(), listen, model, speed: 1.2, autostart: false };
            let text = document(&answers, Path::new("/data dir"), Path::new("/models")).unwrap();
            let config =
                config::check(&text, "x.toml").unwrap_or_else(|problems| panic!("{kind:?}: {problems:?}\n{text}"));
            assert_eq!((config.name.as_str(), config.listen.web), ("Lorgnette of Ann \"A\"", listen));
            assert_eq!((config.voice.speed, config.data_dir.to_str()), (1.2, Some("/data dir")));
            assert!(config.models.chain[0].to_string().contains("m \"1\""), "{}", config.models.chain[0]);
        }
    }

    /// While it is replaced, its name stands for the old one or the new one.
    #[test]
    fn the_old_configuration_is_copied_and_never_moved_away() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("lorgnette/config.toml");
        let old = beside(&output, ".old");
        write(&output, "first", false).unwrap();
        let meta = |path: &Path| fs::metadata(path).unwrap();
        assert_eq!(meta(&output).permissions().mode() & 0o777, 0o644);
        fs::set_permissions(&output, Permissions::from_mode(0o640)).unwrap();
        for (text, before) in [("second", "first"), ("third", "second")] {
            let inode = meta(&output).ino();
            write(&output, text, true).unwrap();
            assert_ne!(meta(&old).ino(), inode, "it was moved");
            for (path, text) in [(&output, text), (&old, before)] {
                assert_eq!(fs::read_to_string(path).unwrap(), text);
                assert_eq!(meta(path).permissions().mode() & 0o777, 0o640);
            }
        }
        assert_eq!(fs::read_dir(folder.path().join("lorgnette")).unwrap().count(), 2, "nothing else is left");
    }
}
