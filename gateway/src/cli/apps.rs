//! `lorgnette apps`.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use gateway_core::vocab::{AppKind, AppState, ErrorCode};
use tools::apps::{
    import::MANIFEST_BYTES_MAX,
    log::{Entry, Fault},
};

use super::secret;
use crate::{
    config::Config,
    control::{
        Answer, Request,
        apps::{AppsRequest, Given, Listed},
        attempt::Tried,
        client::ask_within,
    },
    text::quoted,
    units::number_of,
};

/// How long a command may take: longer than the deadline of any tool that is tried.
const ANSWER_MS_MAX: u64 = 130_000;
/// Where apps have their manifests on their own servers.
const MANIFESTS: [&str; 2] = ["app_config.json", "tpa_config.json"];
/// How long fetching a manifest may take.
const FETCH_MS_MAX: u64 = 15_000;

/// Install, list, try, debug and remove mini-apps.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install an app from its manifest, or from its address, package and name alone; or again after a change.
    Add {
        /// The manifest (TOML, app_config.json or tpa_config.json): a file, its address, or that of the app's server. Without
        /// one --url, --package and --name are needed.
        manifest: Option<String>,
        /// Where the app's server answers; default: what the manifest says.
        #[arg(long)]
        url: Option<String>,
        /// The app's own key, as its server was given it; default: one is made and shown once. Everybody on this machine can
        /// see it while the command runs: --api-key-file hides it.
        #[arg(long, conflicts_with = "api_key_file")]
        api_key: Option<String>,
        /// Take that key from the first line of this file (mode 600), or of standard input (`-`).
        #[arg(long, value_name = "FILE")]
        api_key_file: Option<PathBuf>,
        /// The app's package, as its server was given it.
        #[arg(long)]
        package: Option<String>,
        /// What the wearer says to start it.
        #[arg(long)]
        name: Option<String>,
        /// `standard` (one of these runs at a time) or `background`; default: what the manifest says, else `standard`.
        #[arg(long)]
        kind: Option<String>,
        /// A permission such as MICROPHONE, in addition to those in the manifest; may be repeated.
        #[arg(long)]
        permission: Vec<String>,
        /// The user that it is for; may be repeated. Default: as before, for a new app all users.
        #[arg(long)]
        user: Vec<String>,
        /// Make it an app for all users.
        #[arg(long, conflicts_with = "user")]
        all_users: bool,
    },
    /// Show installed apps, the users for whom they run, and the last error of each.
    List,
    /// Remove an app with its tools and its key.
    Remove {
        /// Its package, as `apps list` shows it.
        package: String,
    },
    /// Show recent events: starts, stops, streams, calls with their times, the last drawing and the last
    /// transcript, and errors with the request that caused them.
    Logs {
        /// Its package, as `apps list` shows it.
        package: String,
        /// Continue with new events until interrupted.
        #[arg(long, short)]
        follow: bool,
    },
    /// Start an app for a user.
    Start {
        /// Its package, as `apps list` shows it.
        package: String,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
    /// Stop an app for a user.
    Stop {
        /// Its package, as `apps list` shows it.
        package: String,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
    /// Restart it, for example after its program has changed.
    Restart {
        /// Its package, as `apps list` shows it.
        package: String,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
    /// Give one of its settings a value.
    Set {
        /// Its package, as `apps list` shows it.
        package: String,
        /// Key of the setting, as the app declares it.
        key: String,
        /// The value: JSON, or else a text.
        value: String,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
    /// Choose, for a user, which of two takes the sentences that both understand: an app by its package or name, an MCP
    /// server as `mcp:NAME`, a capability as `capability:NAME`, or `built-in`, `built-in timers` and the like.
    Prefer {
        /// The side that takes them.
        side: String,
        /// The other side.
        #[arg(long)]
        over: String,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
    /// Show a user's choices, made when asked or by `apps prefer`.
    Preferences {
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
        /// Forget the choices about this app, server or `built-in`, or `all` of them.
        #[arg(long)]
        forget: Option<String>,
    },
    /// Show which tool the offline engine would call for a sentence.
    Try {
        /// The sentence, without wake word.
        text: String,
        /// Also call the tool.
        #[arg(long)]
        run: bool,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
        /// Fingerprint of the glasses; default: a pair of this user's that is connected.
        #[arg(long)]
        device: Option<String>,
    },
}

pub(super) fn run(config: &Config, arguments: Arguments) -> Result<()> {
    let request = match arguments.command {
        Command::Add { manifest, url, api_key, api_key_file, package, name, kind, permission, user, all_users } => {
            let api_key = api_key_file.as_deref().map(key_in).transpose()?.or(api_key);
            let given = Given { package, name, kind, permissions: permission, url, api_key, ..Given::default() };
            let given = Given { users: user, all_users, ..given };
            AppsRequest::Add(described(manifest.as_deref(), given)?)
        }
        Command::List => AppsRequest::List,
        Command::Remove { package } => AppsRequest::Remove { package },
        Command::Logs { package, follow: true } => {
            return super::watch(config, &Request::FollowApp { package }, |answer| {
                let Answer::AppLog { entries } = answer else { return false };
                entries.iter().for_each(show_entry);
                true
            });
        }
        Command::Logs { package, .. } => AppsRequest::Logs { package },
        Command::Start { package, user } => AppsRequest::Start { package, user },
        Command::Stop { package, user } => AppsRequest::Stop { package, user },
        Command::Restart { package, user } => AppsRequest::Restart { package, user },
        Command::Set { package, key, value, user } => {
            let value = serde_json::from_str(&value).unwrap_or(serde_json::Value::String(value));
            AppsRequest::Set { package, user, key, value }
        }
        Command::Prefer { side, over, user } => AppsRequest::Prefer { user, side, over },
        Command::Preferences { user, forget: None } => AppsRequest::Preferences { user },
        Command::Preferences { user, forget: Some(about) } => {
            AppsRequest::ForgetPreferences { user, about: Some(about).filter(|about| about != "all") }
        }
        Command::Try { text, run, user, device } => {
            return match asked(config, AppsRequest::Try { text, user: user.clone(), device, run })? {
                Answer::Tried { tried } => {
                    show(tried, &user);
                    Ok(())
                }
                answer => bail!("unexpected answer: {answer:?}"),
            };
        }
    };
    match asked(config, request)? {
        Answer::Done { message } => println!("{message}"),
        Answer::Apps { apps } => {
            if apps.is_empty() {
                println!("no apps; install one with `lorgnette apps add FILE|URL`");
            }
            apps.iter().for_each(show_app);
        }
        Answer::AppLog { entries } => {
            if entries.is_empty() {
                println!("nothing has happened to it since the gateway was started");
            }
            entries.iter().for_each(show_entry);
        }
        answer => bail!("unexpected answer: {answer:?}"),
    }
    Ok(())
}

fn asked(config: &Config, request: AppsRequest) -> Result<Answer> {
    ask_within(&config.data_dir, &Request::Apps { request }, Duration::from_millis(ANSWER_MS_MAX))
}

fn show_app(app: &Listed) {
    let kind = match app.kind {
        AppKind::Foreground => "standard",
        AppKind::Background => "background",
        AppKind::Dashboard => "dashboard",
    };
    println!("{}  {}  {kind}  {}", app.package, app.name, app.public_url);
    if !app.users.is_empty() {
        println!("  for {} only", app.users.join(", "));
    }
    for (user, state) in &app.running {
        println!("  {} for {user}", word(*state));
    }
    if let Some(fault) = &app.last_fault {
        println!("  {}, the last: {}", number_of(app.faults, "fault"), line(fault));
    }
    for tool in &app.tools {
        println!("  tool {tool}");
    }
}

fn word(state: AppState) -> &'static str {
    match state {
        AppState::Connecting => "is being started",
        AppState::Running => "runs",
        AppState::Grace => "has lost its socket and may come back",
        AppState::Resurrecting => "is being started again",
        AppState::Away => "could not be called and is tried again",
        AppState::Stopping => "is being stopped",
        AppState::Dormant => "waits for glasses",
    }
}

/// Entries come from programs: they must not control the terminal.
fn show_entry(entry: &Entry) {
    match entry {
        Entry::Event(event) => {
            println!("{:.3}  {}  {}  {}", when(event.wall_ms), event.user, event.what, plain(&event.message));
        }
        Entry::Fault(fault) => {
            println!("{}", line(fault));
            if !fault.request.is_empty() {
                println!("  request: {}", plain(&fault.request));
            }
            if !fault.answer.is_empty() {
                println!("  answer:  {}", plain(&fault.answer));
            }
        }
    }
}

fn line(fault: &Fault) -> String {
    let times = if fault.times > 1 { format!(" ({} times)", fault.times) } else { String::new() };
    let (when, whom, code) = (when(fault.wall_ms), fault.user.as_deref().unwrap_or("-"), code(fault.code));
    format!("{when:.3}  {whom}  {}  {code}: {}{times}", plain(&fault.what), plain(&fault.message))
}

fn when(wall_ms: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(wall_ms).unwrap_or_default()
}

fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// As in docs/tools.md.
fn code(code: ErrorCode) -> String {
    let code = serde_json::to_value(code).unwrap_or_default();
    code.as_str().unwrap_or_default().to_owned()
}

/// What a sentence leads to for this user.
fn show(tried: Tried, user: &str) {
    let calls = match tried {
        Tried::Said { said, phrases, off } => {
            println!("no tool; the answer would be: {said}");
            for tool in off {
                println!(
                    "  {tool} is switched off; `lorgnette tools allow {tool} --user {}` switches it on",
                    quoted(user)
                );
            }
            for (tool, template) in phrases {
                println!("  {template:?} would call {tool}");
            }
            return;
        }
        Tried::Calls(calls) => calls,
    };
    for call in calls {
        println!("{} {}", call.tool, call.arguments);
        let Some(result) = call.result else { continue };
        match &result.error {
            Some(error) => println!("  {}: {}", code(error.code), error.message),
            None => println!("  {}", result.content),
        }
        match &result.say {
            Some(say) => println!("  said: {say}"),
            None if result.handled_display => println!("  the app shows or says the answer itself"),
            None => {}
        }
    }
}

/// The key in a file or, named `-`, on standard input.
fn key_in(file: &Path) -> Result<String> {
    match file.as_os_str() == "-" {
        true => secret::key_of_input("the app"),
        false => secret::of_file(file, secret::KEY_BYTES_MAX),
    }
}

/// Builds the installation request, reading the manifest from its file or address.
fn described(place: Option<&str>, given: Given) -> Result<Given> {
    let Some(place) = place else { return Ok(given) };
    let base = place.trim_end_matches('/');
    if !is_web(place) || base.splitn(4, '/').count() > 3 {
        return Ok(Given { manifest: read(place)?, ..given });
    }
    // The address of a server: many serve their manifest there.
    let url = given.url.clone().or_else(|| Some(base.to_owned()));
    for name in MANIFESTS {
        if let Ok(manifest) = fetch(&format!("{base}/{name}")) {
            return Ok(Given { manifest, url, ..given });
        }
    }
    if given.package.is_none() || given.name.is_none() {
        bail!("{base} gives no {}; give its manifest as a file, or --package and --name", MANIFESTS.join(" or "));
    }
    Ok(Given { url, ..given })
}

fn is_web(place: &str) -> bool {
    place.starts_with("http://") || place.starts_with("https://")
}

/// The text of a manifest.
fn read(place: &str) -> Result<String> {
    if let Some(base) = place.trim_end_matches('/').strip_suffix("/webhook") {
        bail!("{place} is the app's webhook, which the gateway finds by itself; give the server's address: {base}");
    }
    if is_web(place) {
        return fetch(place).with_context(|| format!("fetching {place}"));
    }
    let path = Path::new(place);
    let size = fs::metadata(path).with_context(|| format!("reading {place}; give a file or an http address"))?.len();
    if size > MANIFEST_BYTES_MAX as u64 {
        bail!("{place} has {size} bytes; a manifest has at most {MANIFEST_BYTES_MAX}");
    }
    fs::read_to_string(path).with_context(|| format!("reading {place}"))
}

fn fetch(url: &str) -> Result<String> {
    // Only the first call in a process has an effect.
    drop(rustls::crypto::ring::default_provider().install_default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = reqwest::Client::builder().timeout(Duration::from_millis(FETCH_MS_MAX)).build()?;
        let mut response = client.get(url).send().await?.error_for_status()?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            body.extend_from_slice(&chunk);
            if body.len() > MANIFEST_BYTES_MAX {
                bail!("it has more than {MANIFEST_BYTES_MAX} bytes, which no manifest has");
            }
        }
        String::from_utf8(body).context("it is no text")
    })
}
