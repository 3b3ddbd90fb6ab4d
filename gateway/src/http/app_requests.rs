//! HTTP requests of mini-apps, as in docs/apps-host.md: simple storage, settings, permissions.

use std::{borrow::Cow, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::any,
};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::{peer::Peer, reply};
use crate::apps::{self, APP_SOCKET_PATH, host::Host, storage::Refusal};

/// Longest request body in bytes: all that an app may store, and its JSON.
const BODY_BYTES_MAX: usize = 1_100_000;
/// How long a body may take.
const BODY_MS_MAX: u64 = 5_000;

/// Followed by a user and, optionally, a key.
pub(super) const STORAGE: &str = "/api/sdk/simple-storage/";
/// Followed by a package.
const SETTINGS: &str = "/appsettings/user/";
/// Followed by a package.
const PERMISSIONS: &str = "/api/public/permissions/";

/// At the root, and under the suffix that 1.x of the SDK leaves on its base.
pub(super) fn routes(apps: &Arc<Host>) -> Router {
    let with_anything = |path| format!("{path}{{*rest}}");
    let requests = Router::new()
        .route(STORAGE, any(storage))
        .route(&with_anything(STORAGE), any(storage))
        .route(SETTINGS, any(settings))
        .route(&with_anything(SETTINGS), any(settings))
        .route(PERMISSIONS, any(permissions))
        .route(&with_anything(PERMISSIONS), any(permissions))
        .with_state(apps.clone());
    Router::new().merge(requests.clone()).nest(APP_SOCKET_PATH, requests.clone()).nest(apps::PATH_OLD, requests)
}

/// The key or session in a request's bearer header.
pub(super) fn bearer(headers: &HeaderMap) -> &str {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    bearer.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default().trim()
}

async fn permissions(State(apps): State<Arc<Host>>, uri: Uri) -> Result<Response, Failure> {
    let package = uri.path().strip_prefix(PERMISSIONS).unwrap_or_default();
    let app = apps.installed.get(package).ok_or(failure(StatusCode::NOT_FOUND, "no such app is installed"))?;
    let permissions: Vec<Value> = app.permissions.iter().map(|kind| json!({"type": kind})).collect();
    Ok(done(&json!({"packageName": app.package, "permissions": permissions})))
}

/// Settings of the app whose session the bearer names.
async fn settings(State(apps): State<Arc<Host>>, peer: Peer, uri: Uri, headers: HeaderMap) -> Response {
    let package = uri.path().strip_prefix(SETTINGS).unwrap_or_default();
    let session = bearer(&headers);
    let Some(settings) = apps.settings_in(session, package) else {
        return unauthorized(session, "no such session runs").await;
    };
    peer.slot.admit_requester();
    done(&json!({"success": true, "settings": settings}))
}

/// The answer to a wrong key or session, or to none.
async fn unauthorized(given: &str, why: &'static str) -> Response {
    let answer = failure(StatusCode::UNAUTHORIZED, why);
    if given.is_empty() { answer.into_response() } else { reply::to_wrong_key(answer).await }
}

async fn storage(State(apps): State<Arc<Host>>, peer: Peer, request: Request) -> Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    let (user, key) = parts
        .uri
        .path()
        .strip_prefix(STORAGE)
        .and_then(user_and_key)
        .ok_or(failure(StatusCode::BAD_REQUEST, "the path names no user"))?;
    let given = bearer(&parts.headers);
    let (package, api_key) = given.split_once(':').unwrap_or_default();
    if !apps.is_key_of(package, api_key) {
        return Ok(unauthorized(given, "the key does not fit the app").await);
    }
    peer.slot.admit_requester();
    // The same for a user whom the gateway does not have: an app must not find out who else uses it.
    if !apps.has_run_for(package, &user) {
        return Err(failure(StatusCode::NOT_FOUND, "the app has not run for such a user"));
    }
    let erasing = || failure(StatusCode::SERVICE_UNAVAILABLE, "everything of this user is being erased");
    // Entered before the body is read: what an app requested before an erasure of the user is not done after it.
    let lease = apps.in_flight.enter(&user).ok_or_else(erasing)?;
    let stored = Stored { apps: &apps, user: &user, package, key: key.as_deref() };
    let answer = lease.within(stored.answer(&parts.method, body)).await.ok_or_else(erasing)?;
    answer.map(|answer| done(&answer))
}

/// User and key of a storage path.
pub(super) fn user_and_key(rest: &str) -> Option<(String, Option<String>)> {
    let decode = |part: &str| percent_decode_str(part).decode_utf8().ok().map(|text| text.into_owned());
    let (user, key) = rest.split_once('/').map_or((rest, None), |(user, key)| (user, Some(key)));
    let key = match key.filter(|key| !key.is_empty()) {
        Some(key) => Some(decode(key)?),
        None => None,
    };
    decode(user).filter(|user| !user.is_empty()).map(|user| (user, key))
}

/// What an app stores for a user, or one value of it.
struct Stored<'a> {
    apps: &'a Host,
    user: &'a str,
    package: &'a str,
    key: Option<&'a str>,
}

impl Stored<'_> {
    async fn answer(&self, method: &Method, body: Body) -> Result<Value, Failure> {
        match *method {
            Method::GET => self.read().await,
            Method::PUT | Method::POST => self.write(body).await,
            Method::DELETE => self.remove().await,
            _ => Err(failure(StatusCode::METHOD_NOT_ALLOWED, "GET, PUT or DELETE")),
        }
    }

    async fn read(&self) -> Result<Value, Failure> {
        let mut data = self.apps.stored(self.user, self.package).await.map_err(|refusal| self.refused(refusal))?;
        let Some(key) = self.key else {
            return Ok(json!({"success": true, "data": data}));
        };
        match data.remove(key) {
            Some(value) => Ok(json!({"success": true, "data": value})),
            None => Err(failure(StatusCode::NOT_FOUND, "nothing is kept under this key")),
        }
    }

    async fn write(&self, body: Body) -> Result<Value, Failure> {
        let mut body = object(body).await?;
        let values = match self.key {
            Some(key) => body.remove("value").map(|value| Map::from_iter([(key.to_owned(), value)])),
            None => match body.remove("data") {
                Some(Value::Object(data)) => Some(data),
                _ => None,
            },
        };
        let needed = "the body needs `data`, an object, or `value` with a key";
        let values = values.ok_or(failure(StatusCode::BAD_REQUEST, needed))?;
        let put = self.apps.put(self.user, self.package, values).await;
        put.map(|()| json!({"success": true})).map_err(|refusal| self.refused(refusal))
    }

    async fn remove(&self) -> Result<Value, Failure> {
        let dropped = self.apps.drop_stored(self.user, self.package, self.key).await;
        dropped.map(|()| json!({"success": true})).map_err(|refusal| self.refused(refusal))
    }

    fn refused(&self, refusal: Refusal) -> Failure {
        match refusal {
            Refusal::Value(why) => Failure(StatusCode::BAD_REQUEST, why.into()),
            Refusal::Total => failure(StatusCode::PAYLOAD_TOO_LARGE, "an app keeps at most 1 MB for a user"),
            Refusal::Store(why) => {
                tracing::warn!(package = self.package, why, "an app's storage failed");
                failure(StatusCode::SERVICE_UNAVAILABLE, "the storage failed")
            }
        }
    }
}

pub(super) async fn object(body: Body) -> Result<Map<String, Value>, Failure> {
    let bytes = match timeout(Duration::from_millis(BODY_MS_MAX), to_bytes(body, BODY_BYTES_MAX)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => return Err(failure(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large")),
        Err(_) => return Err(failure(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
    };
    serde_json::from_slice(&bytes).map_err(|_| failure(StatusCode::BAD_REQUEST, "the body is no JSON object"))
}

fn done(answer: &Value) -> Response {
    reply::json(StatusCode::OK, answer.to_string())
}

/// Why a request was not carried out.
pub(super) struct Failure(StatusCode, Cow<'static, str>);

const fn failure(status: StatusCode, why: &'static str) -> Failure {
    Failure(status, Cow::Borrowed(why))
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        reply::json(self.0, json!({"success": false, "error": self.1}).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_path_names_a_user_and_perhaps_a_key() {
        assert_eq!(user_and_key("ann%40example.com"), Some(("ann@example.com".into(), None)));
        assert_eq!(user_and_key("ann/a%2Fb"), Some(("ann".into(), Some("a/b".into()))));
        assert_eq!(user_and_key("ann/"), Some(("ann".into(), None)));
        assert_eq!(user_and_key(""), None);
        assert_eq!(user_and_key("%ff"), None);
    }
}
