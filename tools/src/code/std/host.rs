//! Carries out the calls of `@lorgnette/std`.

use std::sync::Arc;

use gateway_core::vocab::{ErrorCode, ToolError};
use serde_json::Value;

use super::{
    crypto, files,
    http::{Http, HttpClientError},
    policy::StdPolicy,
    record::{Recording, StdCaller},
    time,
    values::{read, unknown},
};
use crate::{code::HostError, ledger::Ledger, ports::Clock, secret::Secrets, workspace::Workspace};

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
                self.secrets.redact_value(&mut answer);
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
        // Nothing was sent.
        "http_failed" if error.retryable => ErrorCode::AppNotAvailable,
        "unavailable" => ErrorCode::AppNotAvailable,
        "http_failed" => ErrorCode::HttpError,
        "timeout" => ErrorCode::Timeout,
        _ => ErrorCode::ExecutionError,
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
