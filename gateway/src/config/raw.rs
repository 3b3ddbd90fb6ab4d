//! The configuration as it is written.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::{budgets::Budgets, model::Written, router::Router};

/// The whole file. Unknown keys are errors.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Raw {
    pub(super) name: Spanned<String>,
    pub(super) language: Spanned<String>,
    pub(super) data_dir: Option<Spanned<PathBuf>>,
    pub(super) models_dir: Option<Spanned<PathBuf>>,
    pub(super) listen: Listen,
    pub(super) model: Written,
    pub(super) fallback: Vec<Written>,
    pub(super) budgets: Budgets,
    pub(super) assistant: Assistant,
    pub(super) router: Router,
    pub(super) skills: Skills,
    pub(super) hearing: Hearing,
    pub(super) voice: Voice,
    pub(super) display: Display,
    pub(super) store: Store,
    pub(super) limits: Limits,
    pub(super) apps: Apps,
    pub(super) mcp: super::mcp::Mcp,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Listen {
    pub(super) web: Spanned<String>,
    pub(super) quic: Spanned<String>,
    pub(super) websocket: bool,
    pub(super) plain: bool,
    pub(super) try_page: bool,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Assistant {
    pub(super) instructions: String,
    pub(super) offline_fallback: bool,
    pub(super) apply_tools_now: bool,
    pub(super) place: String,
    pub(super) conversation_pause_min: Spanned<u32>,
    pub(super) personality: Spanned<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Skills {
    pub(super) folders: Vec<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Hearing {
    pub(super) wake_phrases: Spanned<Vec<String>>,
    pub(super) always_listening: bool,
    pub(super) follow_up_ms: Spanned<u32>,
    pub(super) silence_ms: Spanned<u32>,
    pub(super) silence_complete_ms: Spanned<u32>,
    pub(super) silence_incomplete_ms: Spanned<u32>,
    pub(super) end_of_turn: bool,
    pub(super) workers: Spanned<usize>,
    pub(super) language: String,
    pub(super) model: Option<PathBuf>,
    pub(super) second_model: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Voice {
    pub(super) speed: Spanned<f32>,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Display {
    pub(super) interval_ms: Spanned<u32>,
    pub(super) app_interval_ms: Spanned<u32>,
    pub(super) boot_ms: Spanned<u32>,
    pub(super) lock_ms_max: Spanned<u32>,
    pub(super) lock_idle_ms: Spanned<u32>,
    pub(super) consumed_ms: Spanned<u32>,
    pub(super) captions: bool,
    pub(super) caption_ms: Spanned<u32>,
    pub(super) timers: bool,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Store {
    pub(super) size_max_mib: Spanned<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Apps {
    pub(super) url: Spanned<String>,
    pub(super) location: Option<Spanned<super::Location>>,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) connections: Spanned<usize>,
    pub(super) sessions: Spanned<usize>,
    pub(super) users: Spanned<usize>,
    pub(super) frames_per_s: Spanned<u32>,
    pub(super) bytes_per_s: Spanned<u32>,
    pub(super) tool_calls_per_min: Spanned<u32>,
    pub(super) tool_calls_per_min_per_source: Spanned<u32>,
}

/// A value that stands nowhere in the file.
pub(super) fn unwritten<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

impl Default for Raw {
    fn default() -> Self {
        Self {
            name: unwritten("Lorgnette".to_owned()),
            language: unwritten("en".to_owned()),
            data_dir: None,
            models_dir: None,
            listen: Listen::default(),
            model: Written::default(),
            fallback: Vec::new(),
            budgets: Budgets::default(),
            assistant: Assistant::default(),
            router: Router::default(),
            skills: Skills::default(),
            hearing: Hearing::default(),
            voice: Voice::default(),
            display: Display::default(),
            store: Store::default(),
            limits: Limits::default(),
            apps: Apps::default(),
            mcp: super::mcp::Mcp::default(),
        }
    }
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            web: unwritten("127.0.0.1:8460".to_owned()),
            quic: unwritten("127.0.0.1:8460".to_owned()),
            websocket: true,
            plain: false,
            try_page: true,
        }
    }
}

impl Default for Assistant {
    fn default() -> Self {
        Self {
            instructions: String::new(),
            offline_fallback: true,
            apply_tools_now: false,
            place: String::new(),
            conversation_pause_min: unwritten(30),
            personality: unwritten(BTreeMap::new()),
        }
    }
}

impl Default for Hearing {
    fn default() -> Self {
        let core = gateway_core::conversation::Config::default();
        Self {
            wake_phrases: unwritten(core.wake_phrases),
            always_listening: core.always_listening,
            follow_up_ms: unwritten(core.follow_up_ms),
            silence_ms: unwritten(core.silence_ms),
            silence_complete_ms: unwritten(core.silence_complete_ms),
            silence_incomplete_ms: unwritten(core.silence_incomplete_ms),
            end_of_turn: false,
            workers: unwritten(0),
            language: "en".to_owned(),
            model: None,
            second_model: None,
        }
    }
}

impl Default for Voice {
    fn default() -> Self {
        Self { speed: unwritten(1.0) }
    }
}

impl Default for Display {
    fn default() -> Self {
        let conversation = gateway_core::conversation::Config::default();
        let display = conversation.display;
        Self {
            interval_ms: unwritten(conversation.display_interval_ms),
            app_interval_ms: unwritten(display.app_interval_ms),
            boot_ms: unwritten(display.boot_ms),
            lock_ms_max: unwritten(display.lock_ms_max),
            lock_idle_ms: unwritten(display.lock_idle_ms),
            consumed_ms: unwritten(display.consumed_ms),
            captions: display.captions,
            caption_ms: unwritten(display.caption_ms),
            timers: display.timers,
        }
    }
}

impl Default for Store {
    fn default() -> Self {
        Self { size_max_mib: unwritten(1024) }
    }
}

impl Default for Apps {
    fn default() -> Self {
        Self { url: unwritten(String::new()), location: None }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: unwritten(512),
            sessions: unwritten(128),
            users: unwritten(64),
            frames_per_s: unwritten(400),
            bytes_per_s: unwritten(device_protocol::limits::BYTES_PER_S_MAX),
            tool_calls_per_min: unwritten(600),
            tool_calls_per_min_per_source: unwritten(300),
        }
    }
}
