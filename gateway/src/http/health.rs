//! `/healthz`: whether the gateway can store data.

use std::{path::PathBuf, sync::Arc};

use axum::{
    Router,
    extract::State,
    http::StatusCode,
    middleware::from_fn_with_state,
    response::{IntoResponse as _, Response},
    routing::any,
};
use serde_json::json;

use super::{
    access::{self, Names},
    reply,
};
use crate::{health::Health, store::Store};

/// What a request to `/healthz` tries.
#[derive(Clone)]
struct Tried {
    health: Arc<Health>,
    data_dir: PathBuf,
    store: Store,
}

pub(super) fn routes(health: Arc<Health>, data_dir: PathBuf, store: Store, names: Names) -> Router {
    Router::new().route("/healthz", any(answer)).layer(from_fn_with_state(names, access::by_name)).with_state(Tried {
        health,
        data_dir,
        store,
    })
}

/// `ok` in one line, or what does not work. Supervisors look at the status only.
async fn answer(State(tried): State<Tried>) -> Response {
    let problems = tried.health.problems(&tried.data_dir, &tried.store).await;
    if problems.is_empty() {
        return (StatusCode::OK, "ok\n").into_response();
    }
    let told = json!({"status": "failing", "problems": problems}).to_string() + "\n";
    reply::json(StatusCode::SERVICE_UNAVAILABLE, told)
}
