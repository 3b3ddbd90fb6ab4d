//! `cargo xtask demo`: the main job, seen and heard, on this machine alone.

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

/// The one place that knows how the two programs are called.
mod arguments {
    use super::{Command, Path};

    pub(super) const GATEWAY: &str = "lorgnette";
    pub(super) const SIMULATOR: &str = "lorgnette-sim";
    /// How the gateway's readiness line begins; `KEY=VALUE` words follow it.
    pub(super) const READY: &str = "ready ";

    /// `model` is the address of a chat-completions server, if one was started.
    pub(super) fn serve(command: &mut Command, data: &Path, model: Option<&str>) {
        command.arg("serve").arg("--data").arg(data);
        command.args(["--listen", "127.0.0.1:0"]);
        if let Some(address) = model {
            command.args(["--chat-completions", address]);
        }
    }

    /// `ready` is the gateway's readiness line.
    pub(super) fn simulate(command: &mut Command, data: &Path, heard: &Path, ready: &str) {
        command
            .arg("demo")
            .arg("--gateway-data")
            .arg(data)
            .arg("--heard")
            .arg(heard);
        for word in ready
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
        {
            command.arg(format!("--{}", word.0)).arg(word.1);
        }
    }
}

/// Options: `--llm`.
pub(crate) fn run(places: &Places, options: &[String]) -> Result<(), Failure> {
    let with_model = match options {
        [] => false,
        [option] if option == "--llm" => true,
        _ => {
            return Err(Failure::new(format!(
                "demo: unknown options {options:?}; there is --llm"
            )));
        }
    };
    step("system packages", || {
        needs::require(&[&needs::BUILD, &needs::FETCH])
    })?;
    step("build", || {
        cargo::build_programs(places, &[arguments::GATEWAY, arguments::SIMULATOR])
    })?;
    fetch::models(places)?;
    step("fetch test speech", || speech::fetch(places))?;
    let model = if with_model {
        Some(llm::prepare(places)?)
    } else {
        None
    };
    // From here on something has to be stopped and cleared away.
    interrupt::listen();
    let model = model
        .map(|model| step("start the language model", || model.start()))
        .transpose()?;
    step("demo", || {
        converse(places, model.as_ref().map(llm::Running::address))
    })
}

/// Starts the gateway on a data folder of its own, lets the simulator talk to it, stops it.
fn converse(places: &Places, model: Option<&str>) -> Result<(), Failure> {
    let kept = places.target.join("demo");
    fs::create_dir_all(&kept).map_err(Failure::at(&kept))?;
    let data = DataFolder::create()?;
    let mut serve = Command::new(places.built(arguments::GATEWAY));
    arguments::serve(&mut serve, &data.0, model);
    serve.env("LORGNETTE_MODELS", &places.models);
    let log = kept.join("gateway.log");
    let (gateway, ready) = step("start the gateway", || {
        Gateway::start(&mut serve, arguments::READY, &log)
    })?;

    let mut simulate = Command::new(places.built(arguments::SIMULATOR));
    arguments::simulate(&mut simulate, &data.0, &kept, &ready);
    simulate
        .env("LORGNETTE_MODELS", &places.models)
        .env("LORGNETTE_SPEECH", &places.speech);
    let outcome = gateway::run_interruptible(&mut simulate);
    let stopped = gateway.stop();
    eprintln!(
        "  what was heard: {}; the gateway's log: {}",
        kept.display(),
        log.display()
    );
    outcome.and(stopped)
}

/// A new folder with a short name (a Unix socket's path has at most 107 bytes); removed on drop.
struct DataFolder(PathBuf);

impl DataFolder {
    fn create() -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("lorgnette-demo-{}", std::process::id()));
        // Fails when the name is taken, so that nobody else's folder is ever removed.
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
