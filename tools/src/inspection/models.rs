//! The gateway's models and what they have done, as the tools tell it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A model that is loaded or configured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Its name: that of the catalogue of models, of the section of the configuration, or of its file.
    pub id: String,
    /// What it is, for people.
    pub name: String,
    /// `speech_recognition`, `voice_activity`, `end_of_turn`, `speech_synthesis`, `sentence_embedding`, `language_model` or
    /// `command_engine`.
    pub model_type: String,
    /// When it was loaded or set up, in milliseconds since the Unix epoch.
    pub loaded_wall_ms: i64,
    /// Bytes of its files, which are in memory about once. `None`: it is on another machine, or has no weights.
    pub memory_usage_bytes: Option<u64>,
    /// Package and version that it comes from; `None`: an operator's own file, or no file.
    pub package: Option<String>,
    /// Those that were loaded for it.
    pub files: Vec<ModelFile>,
    /// Its settings; no secrets.
    pub settings: Value,
    /// What it has done since it was loaded.
    pub usage: ModelUsage,
}

/// A file that a model is loaded from, with what it must hash to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFile {
    /// Its path, in the folder of models where it is there.
    pub path: String,
    /// SHA-256 in hexadecimal as the catalogue has it, which is verified when it is fetched; `None`: an operator's own.
    pub sha256: Option<String>,
}

/// What a model has done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUsage {
    /// Inferences that ended well.
    pub count: u64,
    /// Inferences that ended with an error.
    pub failed: u64,
    /// Mean time of those that ended well, in microseconds.
    pub mean_us: Option<u64>,
    /// Half of the latest ones took at most so many microseconds.
    pub p50_us: Option<u64>,
    /// 95 of 100 of them did.
    pub p95_us: Option<u64>,
    /// When the last one ended, in milliseconds since the Unix epoch.
    pub last_wall_ms: Option<i64>,
}

/// The models of the gateway.
pub trait Models: Send + Sync {
    /// All of them, at this moment.
    fn models(&self) -> Vec<ModelInfo>;
}
