//! `@copilotkit/aimock` as a separate process.
//!
//! It differs from the real services. gateway/chat/tests/streams covers the documented behaviour where it does:
//! - Responses: no `sequence_number`, and one `encrypted_content` from the beginning, which the service replaces.
//! - Gemini: ends calls with a `finishReason` that does not exist (`FUNCTION_CALL`), gives calls neither ids nor
//!   signatures, and errors without `details` and with a `status` of OpenAI's.
//! - Anthropic: no `ping`, and no counts of its cache.

use std::process::Stdio;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::{programs::Programs, world::WAIT};

/// The mock while it runs.
pub struct Mock {
    /// `http://127.0.0.1:PORT`
    pub url: String,
    _child: Child,
    _folder: tempfile::TempDir,
}

impl Mock {
    /// Starts it with these answers.
    pub async fn start(fixtures: &Value) -> Self {
        let tools = Programs::providers();
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("answers.json");
        std::fs::write(&file, fixtures.to_string()).expect("the answers");
        let mut child = Command::new(tools.node())
            .arg(tools.script("@copilotkit/aimock/dist/cli.js"))
            .args(["--port", "0", "--strict", "--fixtures"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await.expect("a line") {
                if let Some((_, url)) = line.split_once("listening on ") {
                    return url.trim().to_owned();
                }
            }
            panic!("the mock does not listen");
        };
        let url = tokio::time::timeout(WAIT, listening).await.expect("the mock listens");
        // Its output must be read, or it would block on a full pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { url, _child: child, _folder: folder }
    }

    /// The requests with this `x-test-id`, as parsed by the mock.
    pub async fn journal(&self, id: &str) -> Vec<Value> {
        let url = format!("{}/__aimock/journal?testId={id}", self.url);
        let answer = reqwest::get(url).await.expect("the journal").text().await.expect("its text");
        let document: Value = serde_json::from_str(&answer).expect("JSON");
        let list = document.get("entries").unwrap_or(&document);
        list.as_array().unwrap_or_else(|| panic!("no journal: {answer}")).clone()
    }
}
