//! The settings `hearing.remote` and `voice.other`.

use std::{
    fmt,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result};
use chat_models::{
    audio_api::{self, AudioApi, SoundForm},
    auth::Key,
};
use reqwest::Url;
use serde::Deserialize;
use toml::Spanned;

use crate::{
    environment,
    problems::{Problems, unwritten},
};

/// Allowed deadlines of a recogniser: the next utterance of the same device waits 10 s for its turn. What the core gives up
/// before the deadline would never be found to have failed.
const RECOGNITION_MS: RangeInclusive<u32> = 200..=9_000;
/// Allowed deadlines of a voice, for one clause: nobody waits longer for an answer before the own voice says it.
const SPEECH_MS: RangeInclusive<u32> = 200..=6_000;
/// Most words of a command.
const COMMAND_WORDS_MAX: usize = 64;

/// A server and its model, with the source of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The address before the protocol's own path.
    pub base_url: String,
    /// The server's name of the model.
    pub model: String,
    /// Where its key is.
    pub key: Option<KeyPlace>,
    /// From a request to the end of its answer.
    pub deadline: Duration,
}

/// Where a key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPlace {
    /// In an environment variable.
    Env(String),
    /// The content of this file.
    File(PathBuf),
}

impl Server {
    /// A client; nothing is sent.
    ///
    /// # Errors
    /// Its key cannot be read, or its address is wrong.
    pub(super) fn api(&self) -> Result<AudioApi> {
        // Only the first call in a process counts.
        drop(rustls::crypto::ring::default_provider().install_default());
        let key = self.read_key()?;
        let (base_url, model, deadline) = (self.base_url.clone(), self.model.clone(), self.deadline);
        Ok(AudioApi::new(audio_api::Settings { base_url, model, key, deadline })?)
    }

    /// Checks that the key can be read. A variable is that of this process, which need not be the gateway's.
    ///
    /// # Errors
    /// The variable is not set, the file is missing or readable by others, or there is no key in it.
    pub(crate) fn check_key(&self) -> Result<()> {
        self.read_key().map(drop)
    }

    fn read_key(&self) -> Result<Option<Key>> {
        Ok(match &self.key {
            None => None,
            Some(KeyPlace::Env(variable)) => Some(Key::from_env(variable, environment::variable).context("`key_env`")?),
            Some(KeyPlace::File(path)) => Some(Key::from_file(path).context("`key_file`")?),
        })
    }

    /// Whether what is sent may be read on its way: it leaves this machine without TLS.
    pub(crate) fn is_plain_elsewhere(&self) -> bool {
        let Ok(url) = Url::parse(&self.base_url) else { return false };
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let is_here =
            host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        url.scheme() == "http" && !is_here
    }
}

impl fmt::Display for Server {
    /// The model and the address, without what may be secret in it: a user's name, a query.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.base_url.split('?').next().unwrap_or_default();
        write!(f, "{} at {}", self.model, if url.contains('@') { "[hidden]" } else { url })
    }
}

/// When a recogniser at a server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// First; this machine's when it fails.
    Instead,
    /// When this machine's fails, has no weights, or none that know the language.
    Fallback,
}

/// `hearing.remote`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecognitionServer {
    /// Where it is.
    pub server: Server,
    /// When it is asked.
    pub order: Order,
}

/// `hearing.remote`, unchecked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::speech) struct RawRecognitionServer {
    base_url: Spanned<String>,
    model: Spanned<String>,
    key_env: Option<Spanned<String>>,
    key_file: Option<Spanned<PathBuf>>,
    #[serde(rename = "use")]
    order: Order,
    #[serde(default = "recognition_ms")]
    timeout_ms: Spanned<u32>,
}

fn recognition_ms() -> Spanned<u32> {
    unwritten(4_000)
}

impl RawRecognitionServer {
    /// Checks the section.
    pub(in crate::speech) fn check(self, problems: &mut Problems<'_>) -> RecognitionServer {
        let of_server = RawServer {
            base_url: self.base_url,
            model: self.model,
            key_env: self.key_env,
            key_file: self.key_file,
            timeout_ms: self.timeout_ms,
        };
        RecognitionServer { server: of_server.check(problems, "hearing.remote", RECOGNITION_MS), order: self.order }
    }
}

struct RawServer {
    base_url: Spanned<String>,
    model: Spanned<String>,
    key_env: Option<Spanned<String>>,
    key_file: Option<Spanned<PathBuf>>,
    timeout_ms: Spanned<u32>,
}

impl RawServer {
    fn check(self, problems: &mut Problems<'_>, section: &str, timeout_ms: RangeInclusive<u32>) -> Server {
        let is_http =
            |url: &str| Url::parse(url).is_ok_and(|url| url.has_host() && matches!(url.scheme(), "http" | "https"));
        if !is_http(self.base_url.get_ref()) {
            problems.at(self.base_url.span(), "`base_url` must begin with http:// or https:// and name a host");
        }
        if self.model.get_ref().is_empty() {
            problems.at(self.model.span(), "`model` is the server's name of a model; it cannot be empty");
        }
        if let (Some(_), Some(file)) = (&self.key_env, &self.key_file) {
            problems.at(file.span(), "only one of `key_env` and `key_file` can hold the key");
        }
        let ms = problems.between(&self.timeout_ms, &format!("{section}.timeout_ms"), timeout_ms);
        let env = self.key_env.map(|variable| KeyPlace::Env(variable.into_inner()));
        Server {
            base_url: self.base_url.into_inner(),
            model: self.model.into_inner(),
            key: env.or(self.key_file.map(|path| KeyPlace::File(path.into_inner()))),
            deadline: Duration::from_millis(ms.into()),
        }
    }
}

/// Which texts another voice speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Texts {
    /// Those in a language that the product's own voice does not speak.
    #[default]
    Languages,
    /// Every text, in any language.
    All,
}

/// `voice.other`.
#[derive(Clone, Debug, PartialEq)]
pub struct Other {
    /// A server or a program.
    pub speaker: Speaker,
    /// What it speaks.
    pub texts: Texts,
}

impl Other {
    /// The server that is sent its texts, if it is no program on this machine.
    pub(crate) fn server(&self) -> Option<&Server> {
        match &self.speaker {
            Speaker::Server { server, .. } => Some(server),
            Speaker::Program { .. } => None,
        }
    }
}

/// What speaks beside the product's own voice.
#[derive(Clone, Debug, PartialEq)]
pub enum Speaker {
    /// A model at a server.
    Server {
        /// Where it is.
        server: Server,
        /// The server's name of a voice.
        voice: Option<String>,
        /// The form of sound that it is asked for.
        form: SoundForm,
    },
    /// An installed program: the text on standard input, a WAV file on standard output.
    Program {
        /// Program and arguments; `{language}` stands for a two-letter code.
        command: Vec<String>,
        /// From its start to its end.
        deadline: Duration,
    },
}

impl fmt::Display for Speaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server { server, .. } => write!(f, "{server}"),
            // The arguments may hold what is nobody's business.
            Self::Program { command, .. } => f.write_str(command.first().map_or("", String::as_str)),
        }
    }
}

/// `voice.other`, unchecked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::speech) struct RawOther {
    command: Option<Spanned<Vec<String>>>,
    base_url: Option<Spanned<String>>,
    model: Option<Spanned<String>>,
    voice: Option<Spanned<String>>,
    format: Option<Spanned<Form>>,
    key_env: Option<Spanned<String>>,
    key_file: Option<Spanned<PathBuf>>,
    #[serde(rename = "use", default)]
    texts: Texts,
    #[serde(default = "speech_ms")]
    timeout_ms: Spanned<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    Pcm,
    Wav,
}

fn speech_ms() -> Spanned<u32> {
    unwritten(4_000)
}

impl RawOther {
    /// Checks the section.
    pub(in crate::speech) fn check(self, problems: &mut Problems<'_>) -> Option<Other> {
        let texts = self.texts;
        let speaker = match (&self.command, &self.base_url) {
            (Some(command), None) => {
                let of_server = [
                    self.model.as_ref().map(Spanned::span),
                    self.voice.as_ref().map(Spanned::span),
                    self.format.as_ref().map(Spanned::span),
                    self.key_env.as_ref().map(Spanned::span),
                    self.key_file.as_ref().map(Spanned::span),
                ];
                for span in of_server.into_iter().flatten() {
                    problems.at(span, "this key belongs to a server (`base_url`), and `voice.other` names a `command`");
                }
                let words = command.get_ref();
                if words.first().is_none_or(String::is_empty) || words.len() > COMMAND_WORDS_MAX {
                    let what = "`command` is a list of a program and its arguments: [\"espeak-ng\", \"--stdout\"]";
                    problems.at(command.span(), what);
                }
                let ms = problems.between(&self.timeout_ms, "voice.other.timeout_ms", SPEECH_MS);
                Speaker::Program { command: words.clone(), deadline: Duration::from_millis(ms.into()) }
            }
            (None, Some(base_url)) => {
                let Some(model) = self.model else {
                    problems.at(base_url.span(), "`voice.other` with `base_url` needs `model`");
                    return None;
                };
                let form = match self.format.map(Spanned::into_inner) {
                    None | Some(Form::Pcm) => SoundForm::Pcm,
                    Some(Form::Wav) => SoundForm::Wav,
                };
                let of_server = RawServer {
                    base_url: base_url.clone(),
                    model,
                    key_env: self.key_env,
                    key_file: self.key_file,
                    timeout_ms: self.timeout_ms,
                };
                let voice = self.voice.map(Spanned::into_inner);
                Speaker::Server { server: of_server.check(problems, "voice.other", SPEECH_MS), voice, form }
            }
            (command, _) => {
                let what =
                    "`voice.other` needs either `command` (a program and its arguments) or `base_url` and `model`";
                match command {
                    Some(command) => problems.at(command.span(), what),
                    None => problems.nowhere(what),
                }
                return None;
            }
        };
        Some(Other { speaker, texts })
    }
}

/// The file of a program: as a shell would find it.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let is_program = |path: &Path| {
        use std::os::unix::fs::PermissionsExt as _;
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| is_program(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::check;

    const SERVER: &str = "base_url = \"http://127.0.0.1:8000/v1\", model = \"m\"";

    #[test]
    fn servers_and_programs_are_read() {
        let text =
            format!("[hearing]\nremote = {{ {SERVER}, use = \"instead\", key_env = \"K\", timeout_ms = 900 }}\n");
        let remote = check(&text, "x.toml").unwrap().hearing.remote.unwrap();
        assert_eq!((remote.order, remote.server.deadline), (Order::Instead, Duration::from_millis(900)));
        assert_eq!(remote.server.key, Some(KeyPlace::Env("K".to_owned())));
        assert_eq!(remote.server.to_string(), "m at http://127.0.0.1:8000/v1");
        let other =
            |text: &str| check(&format!("[voice]\nother = {{ {text} }}\n"), "x.toml").unwrap().other_voice.unwrap();
        let spoken = other(&format!("{SERVER}, voice = \"anna\", format = \"wav\", use = \"all\""));
        let Speaker::Server { voice, form, .. } = &spoken.speaker else { panic!("a server") };
        assert_eq!((voice.as_deref(), *form, spoken.texts), (Some("anna"), SoundForm::Wav, Texts::All));
        let spoken = other("command = [\"espeak-ng\", \"--stdout\", \"-v\", \"{language}\"]");
        assert_eq!((spoken.speaker.to_string().as_str(), spoken.texts), ("espeak-ng", Texts::Languages));
        let config = check("", "x.toml").unwrap();
        assert!(config.hearing.remote.is_none() && config.other_voice.is_none(), "nothing leaves the box by default");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, line, words) in [
            ("[hearing]\nremote = { base_url = \"host/v1\", model = \"m\", use = \"instead\" }", Some(2), "http://"),
            ("[hearing]\nremote = { base_url = \"http://h\", model = \"\", use = \"instead\" }", Some(2), "`model`"),
            ("[hearing]\nremote = { base_url = \"http://h\", model = \"m\" }", Some(2), "use"),
            ("[hearing]\nremote = { base_url = \"http://h\", model = \"m\", use = \"always\" }", Some(2), "fallback"),
            (
                "[hearing]\nremote = { base_url = \"http://h\", model = \"m\", use = \"instead\", timeout_ms = 5 }",
                Some(2),
                "hearing.remote.timeout_ms",
            ),
            (
                "[hearing]\nremote = { base_url = \"http://h\", model = \"m\", use = \"instead\", key_env = \"K\", key_file = \"/k\" }",
                Some(2),
                "only one of",
            ),
            ("[voice]\n\n[voice.other]\ncommand = []", Some(4), "espeak-ng"),
            ("[voice]\nother = { use = \"all\" }", None, "either"),
            ("[voice]\nother = { command = [\"x\"], base_url = \"http://h\", model = \"m\" }", Some(2), "either"),
            ("[voice]\nother = { command = [\"x\"], model = \"m\" }", Some(2), "belongs to a server"),
            ("[voice]\nother = { base_url = \"http://h\" }", Some(2), "needs `model`"),
            ("[voice]\nother = { base_url = \"http://h\", model = \"m\", format = \"mp3\" }", Some(2), "`wav`"),
        ] {
            let problems = check(&format!("{text}\n"), "x.toml").unwrap_err();
            assert!(problems[0].line == line && problems[0].what.contains(words), "{text}: {problems:?}");
        }
    }

    #[test]
    fn a_deadline_is_over_before_the_core_gives_up() {
        let hearing = |ms: u32| format!("[hearing]\nremote = {{ {SERVER}, use = \"instead\", timeout_ms = {ms} }}\n");
        let server = |ms: u32| format!("[voice]\nother = {{ {SERVER}, timeout_ms = {ms} }}\n");
        let program = |ms: u32| format!("[voice]\nother = {{ command = [\"x\"], timeout_ms = {ms} }}\n");
        for (allowed, refused, most) in [
            (hearing(9_000), hearing(9_001), "9000"),
            (server(6_000), server(6_001), "6000"),
            (program(6_000), program(6_001), "6000"),
        ] {
            assert!(check(&allowed, "x.toml").is_ok(), "{allowed}");
            let problems = check(&refused, "x.toml").unwrap_err();
            assert!(problems[0].line == Some(2) && problems[0].what.contains(most), "{refused}: {problems:?}");
        }
        assert!(*RECOGNITION_MS.end() < gateway_core::conversation::Config::default().transcript_ms_max);
        assert!(u64::from(*SPEECH_MS.end()) * 1_000 < gateway_core::limits::SYNTHESIS_US_MAX);
    }

    #[test]
    fn only_this_machine_is_reached_without_tls_unseen() {
        let server = |base_url: &str| Server {
            base_url: base_url.to_owned(),
            model: "m".to_owned(),
            key: None,
            deadline: Duration::from_secs(1),
        };
        for (url, plain) in [
            ("http://127.0.0.1:1/v1", false),
            ("http://localhost/v1", false),
            ("http://[::1]:1", false),
            ("https://far.example", false),
            ("http://192.168.1.5:8000/v1", true),
        ] {
            assert_eq!(server(url).is_plain_elsewhere(), plain, "{url}");
        }
        assert_eq!(server("https://ann:hunter2@x.example/v1").to_string(), "m at [hidden]");
        assert_eq!(server("https://x.example/v1?key=hunter2").to_string(), "m at https://x.example/v1");
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        assert!(find_program("sh").is_some_and(|path| path.is_absolute()));
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(find_program(&file.path().display().to_string()).is_none(), "nobody may run it");
        assert!(find_program("no-such-program-anywhere").is_none());
    }
}
