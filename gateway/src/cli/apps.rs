//! `lorgnette apps`.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use gateway_core::vocab::ErrorCode;
use tools::apps::{faults::Fault, import::MANIFEST_BYTES_MAX};

use crate::{
    config::Checked,
    control::{
        Answer, Request,
        apps::{Tried, Wish},
        client::ask_within,
    },
};

/// How long a command may take: a tool that is tried has its own deadline, which ends before.
const ANSWER_MS_MAX: u64 = 130_000;
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
    /// Install an app from its manifest (TOML, app_config.json or tpa_config.json), or again after a change.
    Add {
        /// File, or http(s) address.
        manifest: String,
        /// Where the app's server answers; default: what the manifest says.
        #[arg(long)]
        url: Option<String>,
        /// The app's key; default: one is made and shown once.
        #[arg(long)]
        api_key: Option<String>,
        /// The app's package, where the manifest does not say.
        #[arg(long)]
        package: Option<String>,
    },
    /// Show what is installed.
    List,
    /// Remove an app, its tools and its key.
    Remove {
        /// Its package.
        package: String,
    },
    /// Show what went wrong lately, with the request that caused it.
    Logs {
        /// Its package.
        package: String,
    },
    /// Start an app for a user.
    Start {
        /// Its package.
        package: String,
        /// For whom.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
    /// Stop it.
    Stop {
        /// Its package.
        package: String,
        /// For whom.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
    /// Stop it where it runs, and start it, as after a change of its program.
    Restart {
        /// Its package.
        package: String,
        /// For whom.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
    /// Give one of its settings a value.
    Set {
        /// Its package.
        package: String,
        /// The setting.
        key: String,
        /// The value: JSON, or else a text.
        value: String,
        /// For whom.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
    /// Show which tool a sentence leads to, as if it had been said to the offline engine.
    Try {
        /// The sentence, without wake word.
        text: String,
        /// Call the tool, too.
        #[arg(long)]
        run: bool,
        /// Whose assistant.
        #[arg(long, default_value = "wearer")]
        user: String,
        /// Fingerprint of the glasses; default: a pair of this user's that is connected.
        #[arg(long)]
        device: Option<String>,
    },
}

pub(super) fn run(config: &Checked, arguments: Arguments) -> Result<()> {
    let wish = match arguments.command {
        Command::Add { manifest, url, api_key, package } => {
            Wish::Add { manifest: read(&manifest)?, package, url, api_key }
        }
        Command::List => Wish::List,
        Command::Remove { package } => Wish::Remove { package },
        Command::Logs { package } => Wish::Logs { package },
        Command::Start { package, user } => Wish::Start { package, user },
        Command::Stop { package, user } => Wish::Stop { package, user },
        Command::Restart { package, user } => Wish::Restart { package, user },
        Command::Set { package, key, value, user } => {
            let value = serde_json::from_str(&value).unwrap_or(serde_json::Value::String(value));
            Wish::Set { package, user, key, value }
        }
        Command::Try { text, run, user, device } => Wish::Try { text, user, device, run },
    };
    let answer = ask_within(&config.data_dir, &Request::Apps { wish }, Duration::from_millis(ANSWER_MS_MAX))?;
    match answer {
        Answer::Done { message } => println!("{message}"),
        Answer::Apps { apps } => {
            if apps.is_empty() {
                println!("no apps; install one with `lorgnette apps add FILE|URL`");
            }
            for app in apps {
                println!("{}  {}  {}  {} fault(s)", app.package, app.name, app.public_url, app.faults);
                for tool in app.tools {
                    println!("  {tool}");
                }
            }
        }
        Answer::Faults { faults } => show_faults(&faults),
        Answer::Tried { tried } => show(tried),
        answer => bail!("unexpected answer: {answer:?}"),
    }
    Ok(())
}

fn show_faults(faults: &[Fault]) {
    if faults.is_empty() {
        println!("nothing went wrong since the gateway was started");
    }
    for fault in faults {
        let when = jiff::Timestamp::from_millisecond(fault.wall_ms).unwrap_or_default();
        println!("{when}  {}  {}: {}", fault.what, code(fault.code), fault.message);
        println!("  request: {}", fault.request);
        if !fault.answer.is_empty() {
            println!("  answer:  {}", fault.answer);
        }
    }
}

/// As docs/tools.md writes it.
fn code(code: ErrorCode) -> String {
    let code = serde_json::to_value(code).unwrap_or_default();
    code.as_str().unwrap_or_default().to_owned()
}

fn show(tried: Tried) {
    let calls = match tried {
        Tried::Said { said, phrases } => {
            println!("no tool; the answer would be: {said}");
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

/// The text of a manifest, wherever it is.
fn read(place: &str) -> Result<String> {
    if place.starts_with("http://") || place.starts_with("https://") {
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
    // Only the first call in a process counts.
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
