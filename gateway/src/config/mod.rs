//! The configuration: the sections of the modules, combined and completely checked at the start.

mod wanted;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use gateway_core::{conversation, user};
use serde::Deserialize;
use toml::{Spanned, Table, Value};

pub use crate::problems::Problem;
use crate::{
    apps::settings::{AppsSettings, RawApps},
    capabilities::settings::CapabilitySettings,
    device_task::{
        quiet::RawQuietHours,
        settings::{Assistant, RawAssistant, RawDisplay, check_language, check_name},
    },
    discovery::settings::{Discovery, RawDiscovery},
    environment::{self, Machine},
    firmware::settings::{FirmwareSettings, RawFirmware},
    http::settings::{Listen, RawListen},
    limits::{Limits, RawLimits},
    mcp::settings::McpSettings,
    models::settings::{CodeSettings, Model, Models, RawBudgets, RawModel, RawRouter, RawRouting},
    ports::settings::{RawTools, ToolSettings},
    problems::{Problems, unwritten},
    recordings::settings::{RawRecordings, RecordingSettings},
    skills::settings::SkillSettings,
    speech::{
        elsewhere::settings::Other,
        settings::{Hearing, RawHearing, RawVoice, Voice},
    },
    store::settings::{RawStore, StoreSettings},
    telemetry::settings::{RawTelemetry, Telemetry},
};

/// The example that documents every key; its values are the defaults.
pub(crate) const EXAMPLE: &str = include_str!("example.toml");

/// The whole file. Unknown keys are errors.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawConfig {
    name: Spanned<String>,
    language: Spanned<String>,
    data_dir: Option<Spanned<PathBuf>>,
    models_dir: Option<Spanned<PathBuf>>,
    listen: RawListen,
    discovery: RawDiscovery,
    firmware: RawFirmware,
    model: RawModel,
    fallback: Vec<RawModel>,
    budgets: RawBudgets,
    assistant: RawAssistant,
    router: RawRouter,
    code: CodeSettings,
    skills: SkillSettings,
    hearing: RawHearing,
    voice: RawVoice,
    display: RawDisplay,
    store: RawStore,
    limits: RawLimits,
    apps: RawApps,
    mcp: McpSettings,
    capabilities: CapabilitySettings,
    tools: RawTools,
    quiet_hours: RawQuietHours,
    telemetry: RawTelemetry,
    recordings: RawRecordings,
}

impl Default for RawConfig {
    fn default() -> Self {
        Self {
            name: unwritten("Lorgnette".to_owned()),
            language: unwritten("en".to_owned()),
            data_dir: None,
            models_dir: None,
            listen: RawListen::default(),
            discovery: RawDiscovery::default(),
            firmware: RawFirmware::default(),
            model: RawModel::default(),
            fallback: Vec::new(),
            budgets: RawBudgets::default(),
            assistant: RawAssistant::default(),
            router: RawRouter::default(),
            code: CodeSettings::default(),
            skills: SkillSettings::default(),
            hearing: RawHearing::default(),
            voice: RawVoice::default(),
            display: RawDisplay::default(),
            store: RawStore::default(),
            limits: RawLimits::default(),
            apps: RawApps::default(),
            mcp: McpSettings::default(),
            capabilities: CapabilitySettings::default(),
            tools: RawTools::default(),
            quiet_hours: RawQuietHours::default(),
            telemetry: RawTelemetry::default(),
            recordings: RawRecordings::default(),
        }
    }
}

/// A checked configuration: the settings of each part of the gateway.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name that is shown to devices.
    pub name: String,
    /// BCP 47 language tag for devices that name none.
    pub language: String,
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// What is written in it, by dotted keys: `hearing.wake_phrases`.
    pub written: BTreeMap<String, Value>,
    /// Folder of the file, if there is one: relative paths in it start there.
    pub folder: Option<PathBuf>,
    /// Folder for all data of this gateway.
    pub data_dir: PathBuf,
    /// Folder of the weights of the speech and sentence embedding models.
    pub models_dir: PathBuf,
    /// Addresses to listen on, with their access rules.
    pub listen: Listen,
    /// How the gateway is announced on the network.
    pub discovery: Discovery,
    /// How firmware is given to devices, and who may sign it.
    pub firmware: FirmwareSettings,
    /// Limits of connections, sessions, users and rates.
    pub limits: Limits,
    /// The models that answer, and how tools are chosen for them.
    pub models: Models,
    /// Settings of every conversation.
    pub conversation: conversation::Config,
    /// Settings of every user.
    pub user: user::Config,
    /// Other settings of the assistant.
    pub assistant: Assistant,
    /// Folders with skills.
    pub skills: SkillSettings,
    /// Speech recognition.
    pub hearing: Hearing,
    /// Speech synthesis.
    pub voice: Voice,
    /// A voice beside the product's own.
    pub other_voice: Option<Other>,
    /// Limits of the stored data.
    pub store: StoreSettings,
    /// What apps are told about the gateway.
    pub apps: AppsSettings,
    /// MCP in both directions.
    pub mcp: McpSettings,
    /// Which capabilities, apps and MCP servers are for whom.
    pub capabilities: CapabilitySettings,
    /// What is set for single tools.
    pub tools: ToolSettings,
    /// What is told to other programs.
    pub telemetry: Telemetry,
    /// Whether sessions are recorded.
    pub recordings: RecordingSettings,
}

/// Reads and checks a file; without one the defaults apply.
///
/// # Errors
/// All problems, not only the first.
pub fn load(path: Option<&Path>) -> Result<Config, Vec<Problem>> {
    let Some(path) = path else {
        return check("", "(defaults)");
    };
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| vec![Problem { file: name.clone(), line: None, what: format!("cannot be read: {error}") }])?;
    let mut config = check(&text, &name)?;
    // The process may change its working folder.
    let file = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    environment::uses(&file);
    config.folder = file.parent().map(Path::to_path_buf);
    if let Some(folder) = &config.folder {
        config.skills.start_at(folder);
    }
    config.file = Some(file);
    Ok(config)
}

/// Checks a configuration's text for this machine; `file` is for the messages.
///
/// # Errors
/// All problems.
pub fn check(text: &str, file: &str) -> Result<Config, Vec<Problem>> {
    check_for(&Machine::this(), text, file)
}

/// The same for any machine: it depends on the arguments alone.
pub(crate) fn check_for(machine: &Machine, text: &str, file: &str) -> Result<Config, Vec<Problem>> {
    let mut problems = Problems::new(file, text);
    let config = match toml::from_str::<RawConfig>(text) {
        Ok(raw) => raw.check(&mut problems, machine),
        Err(error) => {
            problems.all_unreadable::<RawConfig>(error);
            None
        }
    };
    match (config, problems.into_found()) {
        (Some(mut config), found) if found.is_empty() => {
            config.written = by_keys(&toml::from_str::<Table>(text).unwrap_or_default());
            Ok(config)
        }
        (_, found) => Err(found),
    }
}

/// The values of a file, those of its sections by dotted keys.
fn by_keys(table: &Table) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let mut tables = vec![(String::new(), table)];
    while let Some((prefix, table)) = tables.pop() {
        for (key, value) in table {
            match value {
                Value::Table(inner) => tables.push((format!("{prefix}{key}."), inner)),
                value => drop(found.insert(format!("{prefix}{key}"), value.clone())),
            }
        }
    }
    found
}

impl RawConfig {
    /// Checks every section. Settings that the core needs from several sections go into `conversation` and `user`.
    fn check(self, problems: &mut Problems<'_>, machine: &Machine) -> Option<Config> {
        let (mut conversation, mut user) = (conversation::Config::default(), user::Config::default());
        let listen = self.listen.check(problems);
        let discovery = self.discovery.check(problems);
        let firmware = self.firmware.check(problems);
        check_name(problems, &self.name);
        check_language(problems, &self.language);
        self.mcp.check(problems);
        self.capabilities.check(problems, machine);
        let data_dir = problems.folder(self.data_dir.as_ref(), "data_dir").unwrap_or_else(|| machine.data_dir.clone());
        let models_dir =
            problems.folder(self.models_dir.as_ref(), "models_dir").unwrap_or_else(|| machine.models_dir.clone());
        let routing = RawRouting {
            model: &self.model,
            fallback: &self.fallback,
            budgets: &self.budgets,
            offline_fallback: self.assistant.offline_fallback,
        };
        let chain = routing.check(problems, &data_dir, &mut user);
        conversation.conversational = chain.as_ref().and_then(|chain| chain.first()) != Some(&Model::Offline);
        let hearing = self.hearing.check(problems, machine, &models_dir, &mut conversation);
        self.display.check(problems, &mut conversation);
        self.quiet_hours.check(problems, &mut conversation);
        self.budgets.check(problems, &mut conversation);
        let selection = self.router.check(problems, &data_dir);
        let assistant = self.assistant.check(problems, &mut conversation, &mut user);
        let limits = self.limits.check(problems, &mut conversation);
        let (voice, other_voice) = self.voice.check(problems, &mut conversation);
        let store = self.store.check(problems);
        let apps = self.apps.check(problems);
        let tools = self.tools.check(problems);
        let telemetry = self.telemetry.check(problems);
        let recordings = self.recordings.check(problems);
        self.code.check(problems, machine);
        Some(Config {
            name: self.name.into_inner(),
            language: self.language.into_inner(),
            file: None,
            written: BTreeMap::new(),
            folder: None,
            data_dir,
            models_dir,
            listen: listen?,
            discovery,
            firmware,
            limits,
            models: Models { chain: chain?, tools: selection, code: self.code },
            conversation,
            user,
            assistant,
            skills: self.skills,
            hearing,
            voice,
            other_voice,
            store,
            apps,
            mcp: self.mcp,
            capabilities: self.capabilities,
            tools,
            telemetry,
            recordings,
        })
    }
}

#[cfg(test)]
mod tests;
