//! What apps ask by HTTP: simple storage, settings, permissions.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Method, Request, Response, StatusCode, body::Incoming, header};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::{APP_SOCKET_PATH, PATH_OLD, admission::key_fits, host::Host, storage::Refusal};
use crate::reply::Reply;

/// Bytes of a request's body: all that an app may keep, and its JSON.
const BODY_BYTES_MAX: usize = 1_100_000;
/// How long a body may take.
const BODY_MS_MAX: u64 = 5_000;

const STORAGE: &str = "/api/sdk/simple-storage/";
const SETTINGS: &str = "/appsettings/user/";
const PERMISSIONS: &str = "/api/public/permissions/";

/// A path without the ending that 1.x of the SDK leaves on its base.
fn without_base(path: &str) -> &str {
    [APP_SOCKET_PATH, PATH_OLD]
        .iter()
        .find_map(|base| path.strip_prefix(base).filter(|rest| rest.starts_with('/')))
        .unwrap_or(path)
}

/// Whether a path is one of these.
pub fn owns(path: &str) -> bool {
    let path = without_base(path);
    [STORAGE, SETTINGS, PERMISSIONS].iter().any(|ours| path.starts_with(ours))
}

/// Answers a request.
pub async fn answer(request: Request<Incoming>, host: &Host) -> Reply {
    let path = without_base(request.uri().path()).to_owned();
    if let Some(package) = path.strip_prefix(PERMISSIONS) {
        return permissions(host, package);
    }
    let bearer = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default().trim().to_owned();
    if let Some(package) = path.strip_prefix(SETTINGS) {
        return settings(host, package, &bearer);
    }
    let Some((user, key)) = path.strip_prefix(STORAGE).and_then(parts) else {
        return failed(StatusCode::BAD_REQUEST, "the path names no user");
    };
    let (package, api_key) = bearer.split_once(':').unwrap_or_default();
    let allowed = host.installed.get(package).is_some_and(|app| key_fits(&app, api_key));
    if !allowed {
        return failed(StatusCode::UNAUTHORIZED, "the key does not fit the app");
    }
    if !host.knows(&user) {
        return failed(StatusCode::NOT_FOUND, "there is no such user");
    }
    // From before the body is read: what an app asked for before an erasure of the user is not done after it.
    let Some(lease) = host.in_flight.enter(&user) else { return being_erased() };
    lease.within(storage(request, host, &user, package, key.as_deref())).await.unwrap_or_else(being_erased)
}

fn being_erased() -> Reply {
    failed(StatusCode::SERVICE_UNAVAILABLE, "everything of this user is being erased")
}

/// User and key of a storage path.
fn parts(rest: &str) -> Option<(String, Option<String>)> {
    let decode = |part: &str| percent_decode_str(part).decode_utf8().ok().map(|text| text.into_owned());
    let (user, key) = rest.split_once('/').map_or((rest, None), |(user, key)| (user, Some(key)));
    let key = match key.filter(|key| !key.is_empty()) {
        Some(key) => Some(decode(key)?),
        None => None,
    };
    decode(user).filter(|user| !user.is_empty()).map(|user| (user, key))
}

async fn storage(request: Request<Incoming>, host: &Host, user: &str, package: &str, key: Option<&str>) -> Reply {
    let method = request.method().clone();
    let done = match (method, key) {
        (Method::GET, None) => host.stored(user, package).map(|data| json!({"success": true, "data": data})),
        (Method::GET, Some(key)) => match host.stored(user, package).map(|mut data| data.remove(key)) {
            Ok(Some(value)) => Ok(json!({"success": true, "data": value})),
            Ok(None) => return failed(StatusCode::NOT_FOUND, "nothing is kept under this key"),
            Err(refusal) => Err(refusal),
        },
        (Method::PUT | Method::POST, key) => {
            let body = match body(request).await {
                Ok(body) => body,
                Err(reply) => return *reply,
            };
            let values = match (key, body) {
                (Some(key), mut body) => body.remove("value").map(|value| Map::from_iter([(key.to_owned(), value)])),
                (None, mut body) => match body.remove("data") {
                    Some(Value::Object(data)) => Some(data),
                    _ => None,
                },
            };
            let Some(values) = values else {
                return failed(StatusCode::BAD_REQUEST, "the body needs `data`, an object, or `value` with a key");
            };
            host.put(user, package, values).await.map(|()| json!({"success": true}))
        }
        (Method::DELETE, key) => host.drop_stored(user, package, key).await.map(|()| json!({"success": true})),
        _ => return failed(StatusCode::METHOD_NOT_ALLOWED, "GET, PUT or DELETE"),
    };
    match done {
        Ok(answer) => reply(StatusCode::OK, &answer),
        Err(Refusal::Value(why)) => failed(StatusCode::BAD_REQUEST, &why),
        Err(Refusal::Total) => failed(StatusCode::PAYLOAD_TOO_LARGE, "an app keeps at most 1 MB for a user"),
        Err(Refusal::Store(why)) => {
            tracing::warn!(package, why, "an app's storage failed");
            failed(StatusCode::SERVICE_UNAVAILABLE, "the storage failed")
        }
    }
}

async fn body(request: Request<Incoming>) -> Result<Map<String, Value>, Box<Reply>> {
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
    let bytes = match timeout(Duration::from_millis(BODY_MS_MAX), body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => return Err(Box::new(failed(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"))),
        Err(_) => return Err(Box::new(failed(StatusCode::REQUEST_TIMEOUT, "the body took too long"))),
    };
    serde_json::from_slice(&bytes).map_err(|_| Box::new(failed(StatusCode::BAD_REQUEST, "the body is no JSON object")))
}

fn permissions(host: &Host, package: &str) -> Reply {
    let Some(app) = host.installed.get(package) else {
        return failed(StatusCode::NOT_FOUND, "no such app is installed");
    };
    let permissions: Vec<Value> = app.permissions.iter().map(|kind| json!({"type": kind})).collect();
    reply(StatusCode::OK, &json!({"packageName": app.package, "permissions": permissions}))
}

/// For the app whose session the bearer names.
fn settings(host: &Host, package: &str, session: &str) -> Reply {
    let user = host.tasks.by_session(session).filter(|(_, card)| card.package == package).map(|(user, _)| user);
    let (Some(user), Some(app)) = (user, host.installed.get(package)) else {
        return failed(StatusCode::UNAUTHORIZED, "no such session runs");
    };
    reply(StatusCode::OK, &json!({"success": true, "settings": host.settings_of(&user, &app)}))
}

impl Host {
    /// Whether a user is one of this box.
    fn knows(&self, user: &str) -> bool {
        let paired = self.store.disk().devices().unwrap_or_default();
        self.tasks.knows(user) || paired.iter().any(|(_, device)| device.user == user)
    }
}

fn failed(status: StatusCode, why: &str) -> Reply {
    reply(status, &json!({"success": false, "error": why}))
}

fn reply(status: StatusCode, body: &Value) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body.to_string())).boxed());
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_2_and_19_paths_of_all_sdks() {
        for path in
            ["/api/sdk/simple-storage/ann", "/app-ws/api/sdk/simple-storage/ann/k", "/tpa-ws/appsettings/user/a"]
        {
            assert!(owns(path), "{path}");
        }
        for path in ["/", "/app-ws", "/app-wsx/api/sdk/simple-storage/a", "/api/tts", "/api/sdk/simple-storage"] {
            assert!(!owns(path), "{path}");
        }
        assert_eq!(parts("ann%40example.com"), Some(("ann@example.com".into(), None)));
        assert_eq!(parts("ann/a%2Fb"), Some(("ann".into(), Some("a/b".into()))));
        assert_eq!(parts("ann/"), Some(("ann".into(), None)));
        assert_eq!(parts(""), None);
        assert_eq!(parts("%ff"), None);
    }
}
