//! Requests about mini-apps.

use std::time::Duration;

use gateway_core::vocab::{AppKind, AppState, AppStopReason};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;
use tools::{
    apps::{import, log::Fault, manifest::App},
    limits::CONVERSATION_MESSAGES_MAX,
    source::check_users,
};

use super::{Answer, admin::Admin, attempt::attempt, sides};
use crate::units::number_of;

/// Bytes of a key: those of 96 random bits in Base64, which nobody guesses.
const KEY_BYTES_MIN: usize = 16;
/// Bytes of a key: more than any made by a person or a program.
const KEY_BYTES_MAX: usize = 256;
/// How long an app may take to start, in milliseconds: slightly more than the host allows.
const START_MS_MAX: u64 = 12_000;

/// What `lorgnette apps` and the console ask about mini-apps.
#[allow(missing_docs, reason = "the fields are the words of the command line")]
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum AppsRequest {
    /// Install an app, or replace it.
    Add(Given),
    /// List the installed apps.
    List,
    /// Remove an app.
    Remove { package: String },
    /// Recent faults of an app.
    Logs { package: String },
    /// Start an app for a user and wait until it runs.
    Start { package: String, user: String },
    /// Stop it and wait until it is gone.
    Stop { package: String, user: String },
    /// Stop it if it runs, and start it.
    Restart { package: String, user: String },
    /// Set a value of one of its settings.
    Set { package: String, user: String, key: String, value: Value },
    /// A user's choices between tools that understand the same sentences.
    Preferences { user: String },
    /// Set a choice for a user.
    Prefer { user: String, side: String, over: String },
    /// Forget a user's choices about this side, or all.
    ForgetPreferences { user: String, about: Option<String> },
    /// What a sentence leads to; with `run`, call it.
    Try { text: String, user: String, device: Option<String>, run: bool },
}

/// An app to install, as given by the operator: these values override the manifest.
#[allow(missing_docs, reason = "the fields are the words of the command line")]
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Given {
    /// The manifest's text; empty: there is none.
    pub manifest: String,
    pub package: Option<String>,
    pub name: Option<String>,
    pub kind: Option<String>,
    pub permissions: Vec<String>,
    pub url: Option<String>,
    pub api_key: Option<String>,
    /// The users that it is for; empty: as before, for a new app all.
    pub users: Vec<String>,
    /// For everybody, in place of `users`.
    pub all_users: bool,
}

/// An installed app, for people.
#[derive(Debug, Serialize, Deserialize)]
pub struct Listed {
    /// Its unique name.
    pub package: String,
    /// Name used by the wearer.
    pub name: String,
    /// Address of its server.
    pub public_url: String,
    /// How it shares the glasses.
    pub kind: AppKind,
    /// The users that it is for; empty: all.
    pub users: Vec<String>,
    /// The users for whom it runs or is starting.
    pub running: Vec<(String, AppState)>,
    /// Full names of its tools.
    pub tools: Vec<String>,
    /// Number of recent faults.
    pub faults: u32,
    /// The latest of them, if there is one.
    pub last_fault: Option<Fault>,
}

/// The request's name for the log.
pub(super) fn name(request: &AppsRequest) -> &'static str {
    match request {
        AppsRequest::Add(_) => "apps add",
        AppsRequest::List => "apps list",
        AppsRequest::Remove { .. } => "apps remove",
        AppsRequest::Logs { .. } => "apps logs",
        AppsRequest::Start { .. } => "apps start",
        AppsRequest::Stop { .. } => "apps stop",
        AppsRequest::Restart { .. } => "apps restart",
        AppsRequest::Set { .. } => "apps set",
        AppsRequest::Preferences { .. } => "apps preferences",
        AppsRequest::Prefer { .. } | AppsRequest::ForgetPreferences { .. } => "apps prefer",
        AppsRequest::Try { .. } => "apps try",
    }
}

/// Carries out a request; `gone` interrupts the calls of a sentence that is run, and an installation before it is made.
pub(super) async fn carry_out(admin: &Admin, request: AppsRequest, gone: &CancellationToken) -> Result<Answer, String> {
    let (installed, preferences) = (&admin.installed, &admin.services.assistant.preferences);
    match request {
        AppsRequest::Add(given) => add(admin, given, gone).await,
        AppsRequest::List => Ok(Answer::Apps { apps: installed.list().iter().map(|app| listed(admin, app)).collect() }),
        AppsRequest::Remove { package } => match admin.services.apps.remove(&package).await {
            Ok(true) => Ok(Answer::Done { message: format!("removed {package}") }),
            Ok(false) => Err(not_installed(&package)),
            Err(error) => Err(error.to_string()),
        },
        AppsRequest::Logs { package } => match installed.get(&package) {
            Some(_) => Ok(Answer::AppLog { entries: installed.client().log().of(&package) }),
            None => Err(not_installed(&package)),
        },
        AppsRequest::Start { package, user } => match start(admin, &user, &package).await? {
            true => Ok(Answer::Done { message: format!("started {package} for {user}") }),
            false => Ok(Answer::Done { message: format!("{package} was running for {user}") }),
        },
        AppsRequest::Restart { package, user } => {
            admin.services.apps.stop(&user, &package, AppStopReason::User).await;
            start(admin, &user, &package).await?;
            Ok(Answer::Done { message: format!("started {package} for {user} anew") })
        }
        AppsRequest::Stop { package, user } => {
            match admin.services.apps.stop(&user, &package, AppStopReason::User).await {
                true => Ok(Answer::Done { message: format!("stopped {package} for {user}") }),
                false => Err(format!("{package} does not run for {user}")),
            }
        }
        AppsRequest::Set { package, user, key, value } => {
            admin.services.apps.set(&user, &package, &key, value).await?;
            Ok(Answer::Done { message: format!("set `{key}` of {package} for {user}") })
        }
        AppsRequest::Preferences { user } => sides::list(preferences, installed, &user),
        AppsRequest::Prefer { user, side, over } => sides::prefer(preferences, installed, &user, (&side, &over)),
        AppsRequest::ForgetPreferences { user, about } => {
            sides::forget(preferences, installed, &user, about.as_deref())
        }
        AppsRequest::Try { text, user, device, run } => {
            attempt(admin, &text, &user, device.as_deref(), run.then_some(gone)).await
        }
    }
}

async fn start(admin: &Admin, user: &str, package: &str) -> Result<bool, String> {
    let started = admin.services.apps.start(user, package, Duration::from_millis(START_MS_MAX)).await;
    started.map_err(|why| format!("{package} did not start: {why}; `lorgnette apps logs {package}` shows more"))
}

pub(super) fn not_installed(package: &str) -> String {
    format!("no app `{package}` is installed; `lorgnette apps list` shows them")
}

fn listed(admin: &Admin, app: &App) -> Listed {
    let faults = admin.installed.client().log().faults(&app.package);
    Listed {
        kind: app.kind,
        users: admin.installed.users_of(app),
        running: admin.services.apps.running(&app.package),
        package: app.package.clone(),
        name: app.name.clone(),
        public_url: app.public_url.clone(),
        tools: app.tools.iter().map(|tool| tool.spec.name.clone()).collect(),
        faults: faults.iter().map(|fault| fault.times).sum(),
        last_fault: faults.into_iter().next_back(),
    }
}

async fn add(admin: &Admin, given: Given, gone: &CancellationToken) -> Result<Answer, String> {
    let manifest = if given.manifest.trim().is_empty() { "{}" } else { &given.manifest };
    let said = import::Given {
        package: given.package,
        name: given.name,
        kind: given.kind,
        permissions: given.permissions,
        public_url: given.url,
        api_key_sha256: String::new(),
    };
    let (mut app, notes) = import::read(manifest, &said).map_err(|problems| lines(&problems))?;
    let before = admin.installed.get(&app.package);
    app.users = match (&before, given.users) {
        _ if given.all_users => Vec::new(),
        (Some(before), users) if users.is_empty() => before.users.clone(),
        (_, users) if users.is_empty() => users,
        (_, users) => {
            check_users(&users)?;
            users
        }
    };
    let (hash, told) = match (given.api_key, before) {
        (Some(key), _) => (hash_of(&key)?, "its key is the one that was given".to_owned()),
        (None, Some(before)) => (before.api_key_sha256.clone(), "its key is the same as before".to_owned()),
        (None, None) => {
            let key = new_key()?;
            (hash_of(&key)?, format!("its key, which is shown only now: {key}"))
        }
    };
    app.api_key_sha256 = hash;
    // Waiting comes first: who is interrupted here has not installed an app with a key that nobody has seen.
    let probed = gone.run_until_cancelled(admin.installed.client().probe(&app)).await;
    let probed = probed.ok_or("nothing was installed: the client has left")?;
    let app = admin.installed.add(app).await.map_err(|error| error.to_string())?;
    let mut message = format!("installed {} ({}) at {}\n{told}", app.name, app.package, app.public_url);
    let users = admin.installed.users_of(&app);
    if !users.is_empty() {
        message.push_str(&format!("\nfor {} only", users.join(", ")));
    }
    for tool in &app.tools {
        message.push_str(&format!("\ntool {}", tool.spec.name));
    }
    if app.gets_conversation() {
        message.push_str(&format!(
            "\nwith each call of the assistant it gets up to {CONVERSATION_MESSAGES_MAX} messages of the conversation"
        ));
    }
    for note in notes {
        message.push_str(&format!("\nnote: {note}"));
    }
    message.push_str(&sides::collisions(admin, &app));
    if let Err(wrong) = probed {
        message.push_str(&format!("\nwarning: {wrong}"));
    }
    Ok(Answer::Done { message })
}

fn lines(problems: &[import::Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(|problem| format!("\n  {problem}")).collect();
    format!("the app's description has {}:{}", number_of(problems.len(), "problem"), lines.concat())
}

fn new_key() -> Result<String, String> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| format!("no key could be made: {error}"))?;
    Ok(hex(&key))
}

fn hash_of(key: &str) -> Result<String, String> {
    if !(KEY_BYTES_MIN..=KEY_BYTES_MAX).contains(&key.len()) || !key.chars().all(|c| c.is_ascii_graphic()) {
        return Err(format!(
            "a key has {KEY_BYTES_MIN} to {KEY_BYTES_MAX} visible ASCII characters; where none is given, one is made"
        ));
    }
    Ok(hex(&Sha256::digest(key.as_bytes())))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_can_be_guessed_are_refused() {
        for refused in ["", "k", "secret", "fifteen-letters", &"k".repeat(257), "sixteen letters!", "sixteen-lettérs!"]
        {
            assert!(hash_of(refused).is_err_and(|why| why.contains("16 to 256")), "{refused}");
        }
        let made = new_key().unwrap();
        assert!(hash_of("sixteen-letters!").is_ok() && hash_of(&made).is_ok());
    }
}
