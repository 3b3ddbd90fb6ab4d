//! `/healthz`: whether the gateway can keep what it is told.

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::any,
};
use serde_json::json;

use super::reply;
use crate::{config::Checked, health::Health, store::Store};

/// What is tried.
#[derive(Clone)]
struct Tried {
    health: Arc<Health>,
    config: Arc<Checked>,
    store: Store,
}

pub(super) fn routes(health: Arc<Health>, config: Arc<Checked>, store: Store) -> Router {
    Router::new().route("/healthz", any(answer)).with_state(Tried { health, config, store })
}

/// `ok` in one line, or what does not work: whoever supervises the gateway looks at the status alone.
async fn answer(State(tried): State<Tried>) -> Response {
    let problems = tried.health.problems(&tried.config.data_dir, &tried.store).await;
    if problems.is_empty() {
        return (StatusCode::OK, "ok\n").into_response();
    }
    let told = json!({"status": "failing", "problems": problems}).to_string() + "\n";
    reply::json(StatusCode::SERVICE_UNAVAILABLE, told)
}
