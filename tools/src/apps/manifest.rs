//! What the gateway knows of an installed mini-app.

use gateway_core::vocab::{AppKind, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An installed app.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct App {
    /// Its package, for example `com.example.todo`: unique on a box.
    pub package: String,
    /// Its name, for people.
    pub name: String,
    /// What it does, in a sentence.
    pub description: String,
    /// Its version, in its own words.
    pub version: String,
    /// Where its server answers, without a slash at the end.
    pub public_url: String,
    /// SHA-256 of its API key, in hexadecimal digits; the key itself is not kept.
    pub api_key_sha256: String,
    /// How it shares the glasses with others.
    pub kind: AppKind,
    /// What it may hear and see, as MentraOS calls it: `MICROPHONE`, `LOCATION`, `CAMERA`, `CALENDAR`,
    /// `READ_NOTIFICATIONS`, `ALL`.
    pub permissions: Vec<String>,
    /// Its settings as it declares them: objects with `key`, `type`, `label`, `defaultValue`.
    pub settings: Vec<Value>,
    /// What the glasses must have: `DISPLAY`, `CAMERA`, `MICROPHONE`, `SPEAKER`, ...
    pub hardware_required: Vec<String>,
    /// Its tools under their full names.
    pub tools: Vec<AppTool>,
    /// How its tools are called.
    pub shape: CallShape,
    /// What of its manifest could not be carried over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
}

/// A tool of an app.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AppTool {
    /// What the app itself calls it.
    pub local_name: String,
    /// Its definition; the name is the full one.
    pub spec: ToolSpec,
}

/// How an app's server wants its tools to be called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallShape {
    /// `toolId` and `toolParameters`, as published apps have it.
    #[default]
    Published,
    /// A call with `context`, and a result with content parts.
    Mcp,
}
