//! Carries out the calls of `@lorgnette/std`.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gateway_core::vocab::{ClientClass, ErrorCode, ToolError};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    crypto, files,
    http::{Http, HttpClientError},
    policy::StdPolicy,
    record::Recording,
    time,
};
use crate::{
    code::HostError,
    ledger::{Ledger, OfProgram},
    ports::Clock,
    secret::Secrets,
    workspace::Workspace,
};

/// Who calls: the user of a program, and what the ledger says of the call.
#[derive(Clone, Debug, Default)]
pub struct StdCaller {
    /// For whom the program runs.
    pub user: String,
    /// The device on which the program was requested, if any.
    pub device: Option<String>,
    /// Class of the client that has called the program.
    pub client: ClientClass,
    /// Number of the turn, if it belongs to one.
    pub turn: Option<u32>,
    /// The program, if one calls.
    pub program: Option<OfProgram>,
}

/// The functions of `@lorgnette/std`.
pub struct StdHost {
    policy: StdPolicy,
    workspace: Arc<dyn Workspace>,
    clock: Arc<dyn Clock>,
    ledger: Option<Arc<dyn Ledger>>,
    secrets: Secrets,
    http: Http,
}

impl StdHost {
    /// The functions under a policy. Its secrets are redacted by `secrets` from now on. The process must have installed
    /// its TLS provider before, unless the policy names no host.
    ///
    /// # Errors
    /// The system's certificates cannot be used.
    pub fn new(
        policy: StdPolicy,
        workspace: Arc<dyn Workspace>,
        clock: Arc<dyn Clock>,
        ledger: Option<Arc<dyn Ledger>>,
        secrets: Secrets,
    ) -> Result<Self, HttpClientError> {
        let http = Http::new(&policy)?;
        for secret in policy.secrets() {
            secrets.keep(secret);
        }
        Ok(Self { policy, workspace, clock, ledger, secrets, http })
    }

    /// The secrets that are redacted.
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Carries out a function of the module, such as `fs.readFile`. Writes and HTTP requests are recorded in the ledger,
    /// also if nobody waits for them any more.
    ///
    /// # Errors
    /// There is no such function, the arguments do not fit, the policy does not allow it, or it failed; the program gets
    /// the error.
    pub async fn call(&self, caller: &StdCaller, function: &str, arguments: Value) -> Result<Value, HostError> {
        let recording = has_effect(function).then(|| {
            let bytes_in = arguments.to_string().len() as u64;
            Recording::begin(self.ledger.clone(), Arc::clone(&self.clock), caller, function, bytes_in)
        });
        let result = self.run(caller, function, arguments).await.map_err(|mut error| {
            self.secrets.redact(&mut error.message);
            error
        });
        if let Some(recording) = recording {
            match &result {
                Ok(value) => recording.end(None, value.to_string().len() as u64),
                Err(error) => recording.end(Some(kind(error)), 0),
            }
        }
        result
    }

    async fn run(&self, caller: &StdCaller, function: &str, arguments: Value) -> Result<Value, HostError> {
        let user = caller.user.as_str();
        match function.split_once('.') {
            Some(("fs", name)) => files::call(&*self.workspace, user, name, arguments).await,
            Some(("http", "request")) => {
                let request = read(function, arguments)?;
                let mut answer = self.http.request(&self.policy, user, request).await?;
                self.secrets.blot_value(&mut answer);
                Ok(answer)
            }
            Some(("crypto", name)) => crypto::call(&self.policy, user, name, arguments),
            Some(("time", name)) => time::call(&*self.clock, name, arguments),
            _ => Err(unknown(function)),
        }
    }
}

/// Whether a function changes something, or sends something.
pub fn has_effect(function: &str) -> bool {
    matches!(function, "fs.writeFile" | "fs.appendFile" | "fs.remove" | "fs.mkdir" | "http.request")
}

/// Whether such a call changes something: requests by these methods are for reading.
pub fn changes(function: &str, arguments: &Value) -> bool {
    let method = arguments.get("method").and_then(Value::as_str).unwrap_or("GET").to_ascii_uppercase();
    has_effect(function) && !(function == "http.request" && matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS"))
}

/// The error of such a call as that of a tool.
pub fn as_tool_error(error: &HostError) -> ToolError {
    ToolError { code: kind(error), message: error.message.clone(), retryable: error.retryable }
}

/// What the ledger says of an error.
fn kind(error: &HostError) -> ErrorCode {
    match error.code.as_str() {
        "invalid_arguments" => ErrorCode::InvalidArguments,
        "not_allowed" => ErrorCode::PermissionDenied,
        "unavailable" => ErrorCode::AppNotAvailable,
        "http_failed" => ErrorCode::HttpError,
        "timeout" => ErrorCode::Timeout,
        _ => ErrorCode::ExecutionError,
    }
}

pub(super) fn error(code: &str, message: impl Into<String>) -> HostError {
    HostError { code: code.to_owned(), message: message.into(), retryable: false }
}

pub(super) fn unknown(function: &str) -> HostError {
    let name: String = function.chars().take(64).collect();
    error("unknown_function", format!("@lorgnette/std has no function '{name}'"))
}

/// The arguments of a function.
pub(super) fn read<T: DeserializeOwned>(function: &str, arguments: Value) -> Result<T, HostError> {
    serde_json::from_value(arguments).map_err(|misfit| error("invalid_arguments", format!("{function}: {misfit}")))
}

/// Content that is a text or, in base64, bytes: exactly one of them.
pub(super) fn content(text: Option<String>, bytes: Option<String>) -> Result<Vec<u8>, HostError> {
    match (text, bytes) {
        (Some(text), None) => Ok(text.into_bytes()),
        (None, Some(bytes)) => from_base64(&bytes),
        _ => Err(error("invalid_arguments", "give either a text or bytes")),
    }
}

pub(super) fn from_base64(text: &str) -> Result<Vec<u8>, HostError> {
    STANDARD.decode(text).map_err(|why| error("invalid_arguments", format!("no valid base64: {why}")))
}

pub(super) fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
