//! `cargo xtask demo`: spoken turns through the whole product, on this machine alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo;
use crate::fetch;
use crate::gateway::{self, Gateway};
use crate::interrupt;
use crate::llm;
use crate::needs;
use crate::places::Places;
use crate::process::Failure;
use crate::speech;
use crate::steps::step;

const GATEWAY: &str = "lorgnette";
const SIMULATOR: &str = "lorgnette-sim";
/// The mini-app, an example of the kit.
const APP: &str = "reminders";
/// Key shared by this gateway and app, for this run only.
const APP_KEY: &str = "the-key-of-a-demo";
/// The MCP server, an example too; the gateway starts and stops it.
const SERVER: &str = "shopping_list";
/// The program that becomes a routine. A model would write it; here nobody does but this file.
const PROGRAM: &str = "import { noteList } from '@capabilities/note-list';
import { timerList } from '@capabilities/timer-list';
const [{ notes }, { timers }] = await Promise.all([noteList({}), timerList({})]);
const count = (list, one) => `${list.length} ${one}${list.length === 1 ? '' : 's'}`;
console.log(`You have ${count(notes, 'note')} and ${count(timers, 'timer')}`);
for (const note of notes.slice(0, 2)) console.log(note.text);
";
/// Its name, and what the wearer says.
const ROUTINE: [&str; 2] = ["evening-summary", "run my evening summary"];
/// Beginning of the app's readiness line: `ready at http://ADDRESS`.
const APP_READY: &str = "ready at ";
/// Beginning of the gateway's readiness line: `ready in 900 ms: web ADDRESS quic ADDRESS key KEY`.
const READY: &str = "ready ";
/// Beginning of the line in which the simulated glasses show their pairing code.
const CODE: &str = "pairing code ";

/// Options: `--llm`.
pub(crate) fn run(places: &Places, options: &[String]) -> Result<(), Failure> {
    let with_model = match options {
        [] => false,
        [option] if option == "--llm" => true,
        _ => {
            return Err(Failure::new(format!("demo: unknown options {options:?}; there is --llm")));
        }
    };
    step("system packages", || needs::require(&[&needs::BUILD, &needs::FETCH]))?;
    step("build", || cargo::build_programs(places, &[GATEWAY, SIMULATOR], &[APP, SERVER]))?;
    fetch::models(places)?;
    step("fetch test speech", || speech::fetch(places))?;
    let model = if with_model { Some(llm::prepare(places)?) } else { None };
    // From here on there are processes to stop and files to remove.
    interrupt::listen();
    let model = model.map(|model| step("start the language model", || model.start())).transpose()?;
    step("demo", || converse(places, model.as_ref().map(llm::Running::address)))
}

/// Removes what was heard in an earlier run.
fn remove_sounds(folder: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(folder).map_err(Failure::at(folder))? {
        let path = entry.map_err(Failure::at(folder))?.path();
        if path.extension().is_some_and(|extension| extension == "wav") {
            fs::remove_file(&path).map_err(Failure::at(&path))?;
        }
    }
    Ok(())
}

/// Starts the gateway on a temporary data folder, pairs simulated glasses as an operator would, runs the spoken turns,
/// shows the latencies, and stops the gateway.
fn converse(places: &Places, model: Option<&str>) -> Result<(), Failure> {
    let kept = places.target.join("demo");
    fs::create_dir_all(&kept).map_err(Failure::at(&kept))?;
    remove_sounds(&kept)?;
    let data = DataFolder::create()?;
    let programs = Programs { places, config: data.0.join("lorgnette.toml"), glasses: data.0.join("glasses") };
    fs::write(&programs.config, configuration(places, &data.0, model)).map_err(Failure::at(&programs.config))?;
    let log = kept.join("gateway.log");
    let (gateway, ready) = step("start the gateway", || Gateway::start(programs.gateway().arg("serve"), READY, &log))?;
    let (web, quic) = (word_after(&ready, "web")?, word_after(&ready, "quic")?);
    let mut program = Command::new(places.example(APP));
    program.arg("127.0.0.1:0").env("API_KEY", APP_KEY);
    let app = step("start a mini-app and install it", || programs.install(&mut program, &kept));
    let app = match app {
        Ok(app) => app,
        Err(failure) => return gateway.stop().and(Err(failure)),
    };
    let kept_program = step("run a program and keep it as a routine", || programs.keep());
    let outcome = kept_program.and_then(|()| step("pair the glasses", || programs.pair(&web))).and_then(|()| {
        let mut demo = programs.simulator();
        demo.arg("demo");
        demo.args(["--gateway-ws", &format!("ws://{web}/glasses")]);
        demo.args(["--gateway-quic", &format!("quic://{quic}")]);
        demo.args(["--with-app", "--with-server", "--with-routine"]);
        demo.arg("--out").arg(&kept);
        if model.is_some() {
            demo.arg("--with-model");
        }
        gateway::run_interruptible(&mut demo)?;
        eprintln!();
        gateway::run_interruptible(programs.gateway().arg("turns"))
    });
    // The app stores nothing and needs no clean stop; the gateway ends its session.
    let stopped = gateway.stop();
    drop(app);
    eprintln!("  what was heard: {}; the gateway's log: {}", kept.display(), log.display());
    outcome.and(stopped)
}

/// `model` is the address of a chat-completions server, if one was started.
fn configuration(places: &Places, data: &Path, model: Option<&str>) -> String {
    let mut text =
        format!("data_dir = {:?}\n[listen]\nweb = \"127.0.0.1:0\"\nquic = \"127.0.0.1:0\"\n", data.join("gateway"));
    if let Some(address) = model {
        text.push_str(&format!("[model]\nkind = \"chat_completions\"\nbase_url = {address:?}\nmodel = \"smollm2\"\n"));
        // It chats, but cannot call tools.
        text.push_str("tools = false\ncommands_offline = true\n");
    }
    text.push_str("[code]\nenabled = true\n");
    text.push_str(&format!("[mcp.servers.shopping]\ncommand = {:?}\n", places.example(SERVER)));
    text
}

fn word_after(line: &str, key: &str) -> Result<String, Failure> {
    let mut words = line.split_whitespace().skip_while(|word| *word != key);
    words.nth(1).map(str::to_owned).ok_or_else(|| Failure::new(format!("the gateway did not say its {key}: {line}")))
}

/// The two programs and their common paths.
struct Programs<'a> {
    places: &'a Places,
    config: PathBuf,
    glasses: PathBuf,
}

impl Programs<'_> {
    fn gateway(&self) -> Command {
        let mut command = Command::new(self.places.built(GATEWAY));
        command.arg("--config").arg(&self.config);
        command.env("LORGNETTE_MODELS", &self.places.models);
        command
    }

    fn simulator(&self) -> Command {
        let mut command = Command::new(self.places.built(SIMULATOR));
        command.arg("--state").arg(&self.glasses);
        command.env("LORGNETTE_MODELS", &self.places.models).env("LORGNETTE_SPEECH", &self.places.speech);
        command
    }

    /// Starts the app's server, and makes the gateway fetch its manifest.
    fn install(&self, program: &mut Command, kept: &Path) -> Result<Gateway, Failure> {
        let (app, line) = Gateway::start(program, APP_READY, &kept.join("app.log"))?;
        let manifest = format!("{}/app_config.json", line.trim_start_matches(APP_READY).trim());
        let mut operator = self.gateway();
        operator.args(["apps", "add", &manifest, "--api-key", APP_KEY]);
        gateway::run_interruptible(&mut operator)?;
        Ok(app)
    }

    /// Runs the program as an operator would, and keeps it. No language model of the demo can write one.
    fn keep(&self) -> Result<(), Failure> {
        eprintln!("  a program, written by hand in place of a model:\n\n{PROGRAM}");
        let code = PROGRAM.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let [name, phrase] = ROUTINE;
        let arguments = format!("{{\"code\": \"{code}\"}}");
        for words in [
            &["tools", "call", "code.run", arguments.as_str()][..],
            &["code", "keep", "1", "--name", name, "--phrase", phrase],
        ] {
            gateway::run_interruptible(self.gateway().args(words))?;
        }
        Ok(())
    }

    /// Pairs: the glasses show a code, which the operator types.
    fn pair(&self, web: &str) -> Result<(), Failure> {
        let mut pair = self.simulator();
        pair.args(["--gateway", &format!("ws://{web}/glasses"), "pair"]);
        let log = self.config.with_file_name("pair.log");
        let (glasses, line) = Gateway::start(&mut pair, CODE, &log)?;
        let code = line.trim_start_matches(CODE).trim();
        eprintln!("  the glasses show {code}; the operator types: lorgnette devices pair {code}");
        let mut operator = self.gateway();
        operator.args(["devices", "pair", code, "--name", "Demo glasses"]);
        gateway::run_interruptible(&mut operator)?;
        glasses.finish()
    }
}

/// A new folder with a short path (a Unix socket's path has at most 107 bytes); removed on drop.
struct DataFolder(PathBuf);

impl DataFolder {
    fn create() -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("lorgnette-demo-{}", std::process::id()));
        // Fails if the name exists, so that a foreign folder is never removed.
        fs::create_dir(&folder).map_err(Failure::at(&folder))?;
        Ok(Self(folder))
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("  {} is left behind: {error}", self.0.display());
        }
    }
}
