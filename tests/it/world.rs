//! The test environment: a real gateway in this process, and simulated glasses that are paired as an operator pairs
//! them.
//!
//! Each gateway loads its own engines (`serve::start` takes no shared ones), about a second in a test build.

use std::{net::SocketAddr, path::Path, time::Duration};

use firmware_sim::{Event, Glasses, Options, Seen};
use gateway::{
    config::{self, Config},
    control::{Answer, Request, client, socket_path},
    serve::{self, Running},
};
use tempfile::TempDir;
use tokio::{
    io::AsyncWriteExt as _,
    net::UnixStream,
    sync::{Mutex, MutexGuard},
};

/// Timeout of every wait in the tests: generous, since nothing is measured here.
pub const WAIT: Duration = Duration::from_secs(60);

/// Speech keeps a core busy: tests in one process take turns.
static SPEECH: Mutex<()> = Mutex::const_new(());

/// Waits until no other test of this process speaks.
pub async fn floor() -> MutexGuard<'static, ()> {
    SPEECH.lock().await
}

/// The user that the tests' devices belong to.
pub const USER: &str = "wearer";

/// A gateway with a data folder of its own.
pub struct World {
    folder: TempDir,
    running: Running,
}

impl World {
    /// A gateway with the default settings.
    pub async fn start() -> Self {
        Self::with("").await
    }

    /// A gateway with these settings in addition.
    pub async fn with(settings: &str) -> Self {
        Self::tuned(settings, |_| ()).await
    }

    /// As [`Self::with`], with values that no settings file has.
    pub async fn tuned(settings: &str, tune: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = format!("{}{settings}", basics(&folder.path().join("data")));
        let mut config = checked(&settings);
        tune(&mut config);
        let running = serve::start(config).await.expect("the gateway starts");
        Self { folder, running }
    }

    /// Stops it as an operator does.
    pub async fn stop(self) {
        self.running.stop().await;
    }

    /// Stops it as an operator does; its folder, and that of its data.
    pub async fn halted(self) -> (TempDir, std::path::PathBuf) {
        let data = self.data();
        self.running.stop().await;
        (self.folder, data)
    }

    /// A gateway on the data of one that was halted.
    pub async fn on(folder: TempDir) -> Self {
        let running = run(&basics(&folder.path().join("data"))).await;
        Self { folder, running }
    }

    /// Stops it as an operator does, and starts another one on the same data in this process.
    pub async fn again(self) -> Self {
        self.again_with("").await
    }

    /// As [`Self::again`], with these settings in addition.
    pub async fn again_with(self, settings: &str) -> Self {
        let Self { folder, running } = self;
        running.stop().await;
        let running = run(&format!("{}{settings}", basics(&folder.path().join("data")))).await;
        Self { folder, running }
    }

    pub fn gateway(&self) -> &Running {
        &self.running
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    pub fn web(&self) -> SocketAddr {
        self.gateway().web
    }

    /// The address for `ws`, `wss` or `quic`.
    pub fn address(&self, scheme: &str) -> String {
        match scheme {
            "quic" => format!("quic://{}", self.gateway().quic.expect("QUIC is on")),
            scheme => format!("{scheme}://{}/glasses", self.web()),
        }
    }

    /// Options of glasses whose identity has this name.
    pub fn options(&self, scheme: &str, name: &str) -> Options {
        let target = self.address(scheme).parse().expect("an address");
        let mut options = Options::new(target, &self.folder.path().join(name));
        options.reconnect = false;
        options.profile.echo_cancelled = true;
        options
    }

    /// Glasses in a session, paired by their code if they are new.
    pub async fn glasses(&self, scheme: &str, name: &str) -> Glasses {
        self.connect(self.options(scheme, name)).await
    }

    /// As [`Self::glasses`], with options.
    pub async fn connect(&self, options: Options) -> Glasses {
        connect(&self.data(), options).await
    }

    /// Asks over the control socket, as the command line does.
    pub async fn ask(&self, request: Request) -> Result<Answer, String> {
        ask(&self.data(), request).await
    }

    /// Sends a request over the control socket as a client that leaves when the stream is dropped.
    pub async fn send(&self, request: &Request) -> UnixStream {
        let mut stream = UnixStream::connect(socket_path(&self.data())).await.expect("the socket");
        let line = serde_json::to_string(request).expect("JSON") + "\n";
        stream.write_all(line.as_bytes()).await.expect("sent");
        stream
    }

    /// The texts of the wearer's notes, newest first.
    pub fn notes(&self) -> Vec<String> {
        let notes = self.gateway().services().store.disk().notes(USER, 100, |_| true);
        notes.expect("the notes").into_iter().map(|(_, note)| note.text).collect()
    }
}

/// Writes a secret that only its owner may read.
pub fn write_secret(file: &Path, secret: &str) {
    std::fs::write(file, secret).expect("the secret");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(file, private).expect("its mode");
}

/// The settings that every test gateway has; sections may follow.
pub fn basics(data: &Path) -> String {
    // Dotted keys, so that sections of the tests can follow.
    format!(
        "data_dir = {:?}\nlisten.web = \"127.0.0.1:0\"\nlisten.quic = \"127.0.0.1:0\"\ndiscovery.enabled = false\n",
        data.display().to_string()
    )
}

async fn run(settings: &str) -> Running {
    serve::start(checked(settings)).await.expect("the gateway starts")
}

fn checked(settings: &str) -> Config {
    let mut config = config::check(settings, "world").expect("the settings");
    be_patient(&mut config);
    config
}

/// On a machine that is slow, and busy with other tests, a decode may take longer than a wearer would wait.
pub fn be_patient(config: &mut Config) {
    config.conversation.transcript_ms_max = 60_000;
    config.conversation.second_pass_ms_max = 60_000;
}

/// Sends a request to the gateway of this data folder.
pub async fn ask(data: &Path, request: Request) -> Result<Answer, String> {
    let data = data.to_path_buf();
    let asked = tokio::task::spawn_blocking(move || client::ask(&data, &request));
    asked.await.expect("the client").map_err(|error| format!("{error:#}"))
}

/// Connects glasses and enters their code at the gateway of this data folder if they show one.
pub async fn connect(data: &Path, options: Options) -> Glasses {
    let mut glasses = Glasses::start(options).expect("an identity");
    let log = glasses.log().clone();
    let operator = async {
        let (code, _) = log.find(0, |event| pairing_code(event).is_some()).await;
        let request = Request::PairCode {
            code: pairing_code(&code).unwrap_or_default(),
            user: USER.to_owned(),
            name: String::new(),
        };
        ask(data, request).await.expect("the code is taken");
        std::future::pending::<()>().await;
    };
    let welcomed = tokio::time::timeout(WAIT, async {
        tokio::select! {
            welcomed = glasses.welcomed() => welcomed,
            () = operator => unreachable!("it never ends"),
        }
    });
    welcomed.await.expect("a session in time").expect("a session");
    glasses
}

/// The code of a pairing event.
pub fn pairing_code(event: &Event) -> Option<String> {
    match &event.seen {
        Seen::PairingCode { code, .. } => code.clone(),
        _ => None,
    }
}

/// Waits for the next matching event; on failure shows everything that was seen.
pub async fn until(glasses: &mut Glasses, what: &str, wanted: impl FnMut(&Event) -> bool) -> Seen {
    match glasses.wait_for(WAIT, wanted).await {
        Ok(event) => event.seen,
        Err(error) => panic!("{what}: {error}; seen: {:#?}", glasses.log().since(0)),
    }
}

/// Waits for the next final transcript that was addressed to the assistant.
pub async fn understood(glasses: &mut Glasses) -> String {
    let seen = until(glasses, "a final transcript", |event| {
        matches!(event.seen, Seen::Transcript { is_final: true, addressed: true, .. })
    });
    match seen.await {
        Seen::Transcript { text, .. } => text.to_lowercase(),
        _ => unreachable!("it was picked"),
    }
}

/// Waits until a speech was played completely; returns what was shown and captioned up to there, since the reader's
/// position.
pub async fn answered(glasses: &mut Glasses) -> String {
    let from = glasses.mark();
    until(glasses, "a whole answer", |event| matches!(event.seen, Seen::SpeechHeard { complete: true, .. })).await;
    let mut events = glasses.log().since(from);
    events.truncate(usize::try_from(glasses.mark() - from).unwrap_or(usize::MAX));
    let texts = events.into_iter().filter_map(|event| match event.seen {
        Seen::Display { text, .. } | Seen::SpeechStart { text, .. } => Some(text.to_lowercase()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Says a sentence; the reader's position moves past earlier events.
pub async fn say(glasses: &mut Glasses, sentence: &str) {
    glasses.forget();
    glasses.say_text(sentence).await.expect("said");
}

/// Types a request; the reader's position moves in the same way.
pub async fn text(glasses: &mut Glasses, request: &str) {
    glasses.forget();
    glasses.text(request).await.expect("typed");
}

/// Sends two seconds of silence, so that two sentences are separate utterances.
pub async fn pause(glasses: &Glasses) {
    let silence = vec![0; 32_000];
    glasses.say_pcm("silence", &silence, Some(2_000_000)).await.expect("said");
}
