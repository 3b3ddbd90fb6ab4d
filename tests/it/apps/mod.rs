//! Mini-apps with a real gateway: the twenty rules of docs/apps-host.md with a fake app, and an app on the published
//! SDK.

pub mod fake;
mod faults;
mod first;
mod gaps;
mod installing;
mod life;
mod logs;
mod rest;
mod rules;
mod screens;
mod sdk;
mod sdk_third;
mod sessions;
mod sides;
mod sound;
mod third;

use std::{path::Path, sync::Arc, time::Duration};

use gateway::control::{
    Request,
    apps::{AppsRequest, Given},
};
use gateway_core::vocab::{ClientClass, Turn};
use tokio_util::sync::CancellationToken;
use tools::call::CallContext;

use crate::world::{USER, ask};

/// The context of a call by the assistant of the tests' user.
fn context() -> CallContext {
    CallContext {
        session: None,
        user: USER.to_owned(),
        device: Some("glasses".to_owned()),
        turn: Some(Turn { id: 1, revision: 0 }),
        cancel: CancellationToken::new(),
        default_timeout: Duration::from_secs(20),
        conversation: Arc::default(),
        language: None,
        client: ClientClass::Internal,
        caller: None,
        session_lease: None,
        watcher: None,
    }
}

/// Starts an app as an operator does.
async fn start(data: &Path, package: &str) {
    let request = AppsRequest::Start { package: package.to_owned(), user: USER.to_owned() };
    ask(data, Request::Apps { request }).await.expect("the app starts");
}

/// Stops an app as an operator does.
async fn stop(data: &Path, package: &str) {
    let request = AppsRequest::Stop { package: package.to_owned(), user: USER.to_owned() };
    ask(data, Request::Apps { request }).await.expect("the app stops");
}

/// Installs an app as an operator does.
async fn install(data: &Path, manifest: String, url: String, key: &str) {
    let given = Given { manifest, url: Some(url), api_key: Some(key.to_owned()), ..Given::default() };
    let request = AppsRequest::Add(given);
    ask(data, Request::Apps { request }).await.expect("the app is installed");
}
