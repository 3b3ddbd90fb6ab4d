//! An app's storage for a wearer: texts by key, in the gateway's store.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Method, Request,
    client::conn::http1,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST},
};
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};

use crate::{
    Error,
    limits::{STORAGE_BYTES_MAX, STORAGE_MS_MAX},
    target::Target,
};

/// The storage for one wearer.
pub struct Storage {
    target: Target,
    path: String,
    authorization: String,
}

impl Storage {
    pub(crate) fn new(target: Target, user: &str, package: &str, key: &str) -> Self {
        let user = utf8_percent_encode(user, NON_ALPHANUMERIC);
        let path = target.path(&format!("/api/sdk/simple-storage/{user}"));
        Self { target, path, authorization: format!("Bearer {package}:{key}") }
    }

    /// All entries, by key.
    ///
    /// # Errors
    /// The gateway does not respond, or refuses.
    pub async fn all(&self) -> Result<BTreeMap<String, String>, Error> {
        let answer = self.ask(Method::GET, &self.path, None).await?;
        let data = answer.get("data").and_then(Value::as_object);
        let texts =
            data.into_iter().flatten().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
        Ok(texts.collect())
    }

    /// The text under a key.
    ///
    /// # Errors
    /// The gateway does not respond, or refuses.
    pub async fn get(&self, key: &str) -> Result<Option<String>, Error> {
        Ok(self.all().await?.remove(key))
    }

    /// Stores a text of at most 100 kB; returns when it is stored.
    ///
    /// # Errors
    /// The gateway does not respond, or refuses.
    pub async fn set(&self, key: &str, value: &str) -> Result<(), Error> {
        self.ask(Method::PUT, &self.path_of(key), Some(json!({"value": value}))).await.map(drop)
    }

    /// Removes a key.
    ///
    /// # Errors
    /// The gateway does not respond, or refuses.
    pub async fn remove(&self, key: &str) -> Result<(), Error> {
        self.ask(Method::DELETE, &self.path_of(key), None).await.map(drop)
    }

    fn path_of(&self, key: &str) -> String {
        format!("{}/{}", self.path, utf8_percent_encode(key, NON_ALPHANUMERIC))
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, Error> {
        let asked = self.exchange(method, path, body);
        timeout(Duration::from_millis(STORAGE_MS_MAX), asked).await.unwrap_or(Err(Error::Timeout(STORAGE_MS_MAX)))
    }

    async fn exchange(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, Error> {
        let failed = |error: &dyn std::fmt::Display| Error::Storage(error.to_string());
        let (host, port) = self.target.address();
        let stream = TcpStream::connect((host.as_str(), port)).await.map_err(|error| failed(&error))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.target.authority())
            .header(AUTHORIZATION, &self.authorization)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body.map_or_else(String::new, |body| body.to_string()))))
            .map_err(|error| failed(&error))?;
        let answered = async {
            let response = sender.send_request(request).await.map_err(|error| failed(&error))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), STORAGE_BYTES_MAX).collect().await;
            let body = body.map_err(|error| failed(&error))?.to_bytes();
            let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
            if status.is_success() && answer.get("success") != Some(&Value::Bool(false)) {
                return Ok(answer);
            }
            let why = ["message", "error"].iter().find_map(|key| answer.get(key)?.as_str());
            Err(Error::Storage(format!("{status} {}", why.unwrap_or_default())))
        };
        // The connection makes progress only while it is polled; its errors also fail the response.
        let carried = async {
            drop(connection.await);
            std::future::pending::<Result<Value, Error>>().await
        };
        tokio::select! {
            answer = answered => answer,
            never = carried => never,
        }
    }
}
