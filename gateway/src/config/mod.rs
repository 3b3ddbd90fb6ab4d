//! The configuration: raw TOML, checked once, no doubts afterwards.

mod apps;
mod budgets;
mod display;
mod key;
mod limits;
mod mcp;
mod model;
mod options;
mod problems;
mod raw;
mod router;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use gateway_core::{conversation, user, vocab::RateLimit};

pub use apps::{APP_SOCKET_PATH, Location};
pub use budgets::Ranks;
pub use limits::Limits;
pub use mcp::{Key, Mcp};
pub use model::{Headers, Key as ModelKey, Model, OAuth, Remote};
pub use problems::Problem;
pub use raw::Raw;
pub use router::RouterBy;

use problems::Problems;

/// The example that documents every key; its values are the defaults.
pub const EXAMPLE: &str = include_str!("example.toml");

/// A configuration without doubts.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Name that devices are shown.
    pub name: String,
    /// Where everything of this gateway lives.
    pub data_dir: PathBuf,
    /// Where the models are.
    pub models_dir: PathBuf,
    /// WebSocket and pages.
    pub web: SocketAddr,
    /// QUIC.
    pub quic: Option<SocketAddr>,
    /// Let glasses in over WebSocket.
    pub websocket: bool,
    /// Accept `ws://` from other machines.
    pub plain: bool,
    /// Serve the page to talk from a browser, on loopback.
    pub try_page: bool,
    /// BCP 47 tag for devices that name none.
    pub language: String,
    /// Who answers, and who does in its place.
    pub ranks: Ranks,
    /// Whether a turn begins anew when its tools change.
    pub apply_tools_now: bool,
    /// Which tools a model is offered.
    pub router: tools::router::Config,
    /// Who chooses them.
    pub router_by: RouterBy,
    /// Settings of every conversation.
    pub conversation: conversation::Config,
    /// Settings of every user.
    pub user: user::Config,
    /// How the assistant speaks, by parts of models' names; `default` for all others.
    pub personality: BTreeMap<String, String>,
    /// SkillStore with skills, beside the one in the data folder.
    pub skills: Vec<PathBuf>,
    /// Recognition threads.
    pub asr_workers: usize,
    /// Whether pauses are judged by sound too.
    pub end_of_turn: bool,
    /// What is spoken, as Whisper names it.
    pub asr_language: String,
    /// Whisper's file.
    pub asr_model: PathBuf,
    /// The second model, for second passes, where there is one.
    pub asr_second_model: Option<PathBuf>,
    /// Speed of the voice.
    pub speed: f32,
    /// Limits on connections.
    pub limits: Limits,
    /// How often tools may be called.
    pub tool_limits: tools::RateLimits,
    /// Largest store, in MiB.
    pub store_size_max_mib: usize,
    /// Where mini-apps on other machines reach the gateway; absent: they run on this one.
    pub apps_url: Option<String>,
    /// Where apps are told that the wearer is.
    pub apps_location: Option<Location>,
    /// MCP in both directions.
    pub mcp: Mcp,
    /// Folder of the file, where it has one: relative paths in it start there.
    pub folder: Option<PathBuf>,
}

/// The second model where the configuration names none: used where it was fetched.
const SECOND_MODEL: &str = "whisper-base.bin";

/// What a model is told where the operator says nothing: its answer is heard and read in passing.
const INSTRUCTIONS: &str = "You are the assistant in a pair of smart glasses. The wearer hears your answer and sees it \
    on a small display. Answer in one or two short sentences of plain spoken language: no lists, no markdown, no emoji. \
    Use tools where they help. If a tool fails, say so in a few words and offer another way. Do not repeat what a tool \
    has shown. Say nothing about the wearer that was not asked for.";

/// Characters of a personality: it is in every request.
const PERSONALITY_CHARS_MAX: usize = 2_000;

/// Reads and checks a file; without one the defaults hold.
///
/// # Errors
/// Everything that is wrong, not just the first.
pub fn load(path: Option<&Path>) -> Result<Checked, Vec<Problem>> {
    let Some(path) = path else {
        return check("", "(defaults)");
    };
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| vec![Problem { file: name.clone(), line: 0, what: format!("cannot be read: {error}") }])?;
    check(&text, &name)
}

/// Checks a configuration's text; `file` is for the messages.
///
/// # Errors
/// Everything that is wrong.
pub fn check(text: &str, file: &str) -> Result<Checked, Vec<Problem>> {
    let mut problems = Problems { file, text, found: Vec::new() };
    let raw: Raw = match toml::from_str(text) {
        Ok(raw) => raw,
        Err(error) => {
            problems.unreadable(&error);
            return Err(problems.found);
        }
    };
    let checked = problems.check(raw);
    match checked {
        Some(checked) if problems.found.is_empty() => Ok(checked),
        _ => Err(problems.found),
    }
}

impl Problems<'_> {
    fn check(&mut self, raw: Raw) -> Option<Checked> {
        let web = self.address(&raw.listen.web, "listen.web");
        let quic = match raw.listen.quic.get_ref().as_str() {
            "" => Some(None),
            _ => self.address(&raw.listen.quic, "listen.quic").map(Some),
        };
        self.name(&raw.name);
        self.language(&raw.language);
        self.hosts(&raw.mcp.hosts);
        let data_dir = self.folder(raw.data_dir.as_ref(), "data_dir").unwrap_or_else(default_data_dir);
        let ranks = self.ranks(&raw, &data_dir);
        let mut conversation = self.conversation(&raw);
        self.budgets(&raw.budgets, &mut conversation);
        let (router, router_by) = self.router(&raw, &data_dir);
        let personality = self.personality(&raw.assistant.personality);
        let pause_min =
            self.between(&raw.assistant.conversation_pause_min, "assistant.conversation_pause_min", 1..=10_080);
        let user = user::Config { pause_ms: pause_min * 60_000, ..user::Config::default() };
        let models_dir = self.folder(raw.models_dir.as_ref(), "models_dir").unwrap_or_else(audio::models::default_dir);
        let asr_workers = match self.between(&raw.hearing.workers, "hearing.workers", 0..=64) {
            0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            workers => workers,
        };
        let limits = Limits {
            connections_max: self.between(&raw.limits.connections, "limits.connections", 1..=100_000),
            sessions_max: self.between(&raw.limits.sessions, "limits.sessions", 1..=10_000),
            users_max: self.between(&raw.limits.users, "limits.users", 1..=1_024),
            frames_per_s_max: self.between(&raw.limits.frames_per_s, "limits.frames_per_s", 60..=10_000),
            bytes_per_s_max: self.between(&raw.limits.bytes_per_s, "limits.bytes_per_s", 40_000..=10_000_000),
        };
        let per_min = |calls: u32| (calls > 0).then_some(RateLimit { calls, per_ms: 60_000 });
        let calls = &raw.limits.tool_calls_per_min;
        let per_user = per_min(self.between(calls, "limits.tool_calls_per_min", 0..=60_000));
        let calls = &raw.limits.tool_calls_per_min_per_source;
        let per_source = per_min(self.between(calls, "limits.tool_calls_per_min_per_source", 0..=60_000));
        let speed = self.between(&raw.voice.speed, "voice.speed", 0.5..=2.0);
        let store_size_max_mib = self.between(&raw.store.size_max_mib, "store.size_max_mib", 4..=65_536);
        let apps_url = self.apps_url(&raw.apps.url);
        let apps_location = self.apps_location(raw.apps.location.as_ref());
        let fetched = models_dir.join(SECOND_MODEL);
        let second_model = raw.hearing.second_model.or_else(|| fetched.exists().then_some(fetched));
        // An empty path switches it off.
        let second_model = second_model.filter(|path| !path.as_os_str().is_empty());
        conversation.second_model = second_model.is_some();
        conversation.conversational = ranks.as_ref().is_some_and(Ranks::converse);
        Some(Checked {
            name: raw.name.into_inner(),
            data_dir,
            asr_language: raw.hearing.language,
            asr_model: raw.hearing.model.unwrap_or_else(|| models_dir.join("whisper-tiny.en.bin")),
            asr_second_model: second_model,
            models_dir,
            web: web?,
            quic: quic?,
            websocket: raw.listen.websocket,
            plain: raw.listen.plain,
            try_page: raw.listen.try_page,
            language: raw.language.into_inner(),
            ranks: ranks?,
            apply_tools_now: raw.assistant.apply_tools_now,
            router,
            router_by,
            conversation,
            user,
            personality,
            skills: raw.skills.folders,
            asr_workers,
            end_of_turn: raw.hearing.end_of_turn,
            speed,
            limits,
            tool_limits: tools::RateLimits { per_user, per_source },
            store_size_max_mib,
            apps_url,
            apps_location,
            mcp: raw.mcp,
            folder: Path::new(self.file).parent().filter(|folder| folder.is_dir()).map(Path::to_path_buf),
        })
    }

    fn name(&mut self, name: &toml::Spanned<String>) {
        let given = name.get_ref();
        let bytes_max = device_protocol::limits::NAME_BYTES_MAX;
        if given.trim().is_empty() || given.len() > bytes_max || given.chars().any(char::is_control) {
            self.at(name.span(), format!("`name` needs 1 to {bytes_max} bytes without control characters"));
        }
    }

    fn language(&mut self, language: &toml::Spanned<String>) {
        let given = language.get_ref();
        let is_tag = given
            .split('-')
            .all(|part| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        if !is_tag {
            self.at(language.span(), format!("`language` is `{given}`; it must be a tag such as en or en-GB"));
        }
    }

    /// A shell reads `~`, a configuration does not: a folder of that name would come to be.
    fn folder(&mut self, folder: Option<&toml::Spanned<PathBuf>>, key: &str) -> Option<PathBuf> {
        let given = folder?;
        if given.get_ref().starts_with("~") {
            self.at(given.span(), format!("`{key}` begins with ~, which only a shell understands; write it out"));
        }
        Some(given.get_ref().clone())
    }

    fn hosts(&mut self, hosts: &[String]) {
        for host in hosts.iter().filter(|host| host.is_empty() || host.contains(['/', ' ', '@'])) {
            let what = format!("`mcp.hosts` has `{host}`; it must be a name such as box.lan, without http:// and path");
            self.found.push(Problem { file: self.file.to_owned(), line: 0, what });
        }
    }

    fn apps_url(&mut self, url: &toml::Spanned<String>) -> Option<String> {
        let given = url.get_ref().trim_end_matches('/');
        if given.is_empty() {
            return None;
        }
        let socket = given.starts_with("ws://") || given.starts_with("wss://");
        if !socket || !given.ends_with(APP_SOCKET_PATH) {
            let what = format!(
                "`apps.url` is `{given}`; it must be a WebSocket address that ends in {} such as ws://192.168.1.5:8460{}",
                APP_SOCKET_PATH, APP_SOCKET_PATH
            );
            self.at(url.span(), what);
        }
        Some(given.to_owned())
    }

    fn personality(&mut self, written: &toml::Spanned<BTreeMap<String, String>>) -> BTreeMap<String, String> {
        for (family, text) in written.get_ref() {
            if family.trim().is_empty() || text.trim().is_empty() || text.chars().count() > PERSONALITY_CHARS_MAX {
                let what = format!("`assistant.personality.{family}` has 1 to {PERSONALITY_CHARS_MAX} characters");
                self.at(written.span(), what);
            }
        }
        written.get_ref().clone()
    }

    fn apps_location(&mut self, location: Option<&toml::Spanned<Location>>) -> Option<Location> {
        let given = location?;
        if !given.get_ref().is_on_earth() {
            let what = "`apps.location` needs a latitude of -90 to 90, a longitude of -180 to 180, and an accuracy_m from 0 on";
            self.at(given.span(), what);
        }
        Some(*given.get_ref())
    }

    fn conversation(&mut self, raw: &Raw) -> conversation::Config {
        let hearing = &raw.hearing;
        let phrases = hearing.wake_phrases.get_ref();
        if phrases.is_empty()
            || phrases.len() > 16
            || !phrases.iter().all(|phrase| conversation::can_hear_wake_phrase(phrase))
        {
            let what =
                "`hearing.wake_phrases` needs 1 to 16 phrases, each with Latin letters: they are matched by sound";
            self.at(hearing.wake_phrases.span(), what);
        }
        let mut instructions = raw.assistant.instructions.clone();
        if instructions.is_empty() && *raw.model.kind.get_ref() != model::ModelKind::Offline {
            INSTRUCTIONS.clone_into(&mut instructions);
        }
        let (display, display_interval_ms) = self.display(&raw.display);
        let silence = (&hearing.silence_ms, "hearing.silence_ms");
        // A wait that is the longer one, the surer the end is.
        self.in_order((&hearing.silence_complete_ms, "hearing.silence_complete_ms"), silence);
        self.in_order(silence, (&hearing.silence_incomplete_ms, "hearing.silence_incomplete_ms"));
        conversation::Config {
            display,
            display_interval_ms,
            wake_phrases: phrases.iter().map(|phrase| phrase.to_lowercase()).collect(),
            always_listening: hearing.always_listening,
            follow_up_ms: self.between(&hearing.follow_up_ms, "hearing.follow_up_ms", 0..=300_000),
            silence_ms: self.between(&hearing.silence_ms, "hearing.silence_ms", 250..=3_000),
            silence_complete_ms: self.between(&hearing.silence_complete_ms, "hearing.silence_complete_ms", 250..=3_000),
            silence_incomplete_ms: self.between(
                &hearing.silence_incomplete_ms,
                "hearing.silence_incomplete_ms",
                250..=5_000,
            ),
            instructions: (!instructions.is_empty()).then_some(instructions),
            place: (!raw.assistant.place.trim().is_empty()).then(|| raw.assistant.place.clone()),
            ..conversation::Config::default()
        }
    }
}

/// `$XDG_DATA_HOME/lorgnette`, `~/.local/share/lorgnette`, or the working folder.
pub fn default_data_dir() -> PathBuf {
    std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share")))
        .map_or_else(|| PathBuf::from("lorgnette-data"), |base| base.join("lorgnette"))
}

#[cfg(test)]
mod tests;
