//! The configuration as it is written.

use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use super::{budgets::Budgets, model::Written};

/// The whole file. Unknown keys are errors.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Raw {
    pub(super) name: String,
    pub(super) language: String,
    pub(super) data_dir: Option<PathBuf>,
    pub(super) models_dir: Option<PathBuf>,
    pub(super) listen: Listen,
    pub(super) model: Written,
    pub(super) fallback: Vec<Written>,
    pub(super) budgets: Budgets,
    pub(super) assistant: Assistant,
    pub(super) hearing: Hearing,
    pub(super) voice: Voice,
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
    pub(super) model: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Voice {
    pub(super) speed: Spanned<f32>,
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
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) connections: Spanned<usize>,
    pub(super) sessions: Spanned<usize>,
    pub(super) frames_per_s: Spanned<u32>,
    pub(super) bytes_per_s: Spanned<u32>,
    pub(super) tool_calls_per_min: Spanned<u32>,
    pub(super) tool_calls_per_min_per_source: Spanned<u32>,
}

/// A value that stands nowhere in the file.
fn unwritten<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

impl Default for Raw {
    fn default() -> Self {
        Self {
            name: "Lorgnette".to_owned(),
            language: "en".to_owned(),
            data_dir: None,
            models_dir: None,
            listen: Listen::default(),
            model: Written::default(),
            fallback: Vec::new(),
            budgets: Budgets::default(),
            assistant: Assistant::default(),
            hearing: Hearing::default(),
            voice: Voice::default(),
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
        Self { instructions: String::new(), offline_fallback: true, apply_tools_now: false }
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
            model: None,
        }
    }
}

impl Default for Voice {
    fn default() -> Self {
        Self { speed: unwritten(1.0) }
    }
}

impl Default for Store {
    fn default() -> Self {
        Self { size_max_mib: unwritten(1024) }
    }
}

impl Default for Apps {
    fn default() -> Self {
        Self { url: unwritten(String::new()) }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: unwritten(512),
            sessions: unwritten(128),
            frames_per_s: unwritten(400),
            bytes_per_s: unwritten(512_000),
            tool_calls_per_min: unwritten(600),
            tool_calls_per_min_per_source: unwritten(300),
        }
    }
}
