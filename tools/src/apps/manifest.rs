//! Data about an installed mini-app.

use gateway_core::vocab::{AppKind, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An app with what its manifest says, and how its server is called.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct App {
    /// Its package, for example `com.example.todo`: unique within a gateway.
    pub package: String,
    /// Its display name.
    pub name: String,
    /// What it does, in a sentence.
    pub description: String,
    /// Its version, in its own format.
    pub version: String,
    /// Base URL of its server, without a trailing slash.
    pub public_url: String,
    /// SHA-256 of its API key, in hexadecimal digits; the key itself is not kept.
    pub api_key_sha256: String,
    /// How it shares the glasses with others.
    pub kind: AppKind,
    /// Its permissions, by MentraOS's names: `MICROPHONE`, `LOCATION`, `CAMERA`, `CALENDAR`, `READ_NOTIFICATIONS`,
    /// `ALL`; and [`CONVERSATION_HISTORY`].
    pub permissions: Vec<String>,
    /// Its settings as declared: objects with `key`, `type`, `label`, `defaultValue`.
    pub settings: Vec<Value>,
    /// Required capabilities of the glasses: `DISPLAY`, `CAMERA`, `MICROPHONE`, `SPEAKER`, ...
    pub hardware_required: Vec<String>,
    /// Its tools under their full names.
    pub tools: Vec<AppTool>,
    /// The format of calls to its tools.
    pub shape: CallShape,
    /// The users that it is for, as its operator has said; empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
    /// Parts of its manifest that could not be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
}

/// Permission to get the recent conversation with each call of a tool. It is no part of `ALL`.
pub const CONVERSATION_HISTORY: &str = "CONVERSATION_HISTORY";

impl App {
    /// Whether it has this permission of MentraOS, by itself or as one of `ALL`.
    pub fn may(&self, permission: &str) -> bool {
        self.permissions.iter().any(|has| has == permission || has == "ALL")
    }

    /// Whether it declares that it needs the recent conversation.
    pub fn gets_conversation(&self) -> bool {
        self.permissions.iter().any(|permission| permission == CONVERSATION_HISTORY)
    }
}

/// A tool that is carried out by the app's server, under the app's own name for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AppTool {
    /// The app's own name for it.
    pub local_name: String,
    /// Its definition; the name is the full one.
    pub spec: ToolSpec,
}

/// The format in which an app's server expects tool calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallShape {
    /// `toolId` and `toolParameters`, as in published apps.
    #[default]
    Published,
    /// A call with `context`, and a result with content parts.
    Mcp,
}
