//! The server over streamable HTTP.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fmt::Display,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, combinators::BoxBody};
use hyper::{HeaderMap, Method, Request, Response, StatusCode, body::Body};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::{Endpoint, Hub, Who, handler::Session, sessions::Sessions};

/// Maximum bytes of a request: ten times the maximum of arguments, since answers may contain a picture.
const REQUEST_BYTES_MAX: usize = 1024 * 1024;
/// Maximum combinations of user and class that are served at once: as many as there are keys.
const ENDPOINTS_MAX: usize = 256;

/// A response; its body may be a stream.
pub type HttpReply = Response<BoxBody<Bytes, Infallible>>;

type Service = StreamableHttpService<Session, Sessions>;

/// Headers of a client that comes back.
const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";

/// Whether a client reconnects to a stream that is unknown or has nothing more for it.
fn asks_for_nothing(method: &Method, headers: &HeaderMap, sessions: &Sessions) -> bool {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let comes_back = header(SESSION).zip(header(LAST_EVENT)).filter(|_| method == Method::GET);
    comes_back.is_some_and(|(session, last)| !sessions.may_go_on(&session.into(), last))
}

/// The accepted origins of requests.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Accepted names in the Host header.
    pub hosts: Vec<String>,
    /// Accepted origins of web pages, with scheme and port; requests without an Origin header do not come from a page.
    pub origins: Vec<String>,
}

/// The server over streamable HTTP: one service for each user and class, so that a session id is useless to any other
/// user.
pub struct Http {
    hub: Arc<Hub>,
    limits: Limits,
    services: Mutex<BTreeMap<Who, (Service, Arc<Sessions>)>>,
}

impl Http {
    /// Serves the hub's clients.
    pub fn new(hub: Arc<Hub>, limits: Limits) -> Self {
        Self { hub, limits, services: Mutex::default() }
    }

    /// Handles a request of a client whose key has been checked.
    pub async fn answer<B>(&self, who: Who, request: Request<B>) -> HttpReply
    where
        B: Body<Error: Display> + Send + 'static,
    {
        let (service, sessions) = self.service(who);
        let ends_session = request.method() == Method::DELETE;
        let is_over = asks_for_nothing(request.method(), request.headers(), &sessions);
        let mut reply = service.handle(request).await;
        // The library responds with an empty stream, and clients ask again and again. This status ends it: nothing follows.
        if is_over && reply.status() == StatusCode::OK {
            reply = Response::new(Empty::new().boxed());
            *reply.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        }
        // The library responds 202 to the end of a session. The session has ended already, and older clients do not
        // accept 202.
        if ends_session && reply.status() == StatusCode::ACCEPTED {
            *reply.status_mut() = StatusCode::NO_CONTENT;
        }
        reply
    }

    fn service(&self, who: Who) -> (Service, Arc<Sessions>) {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(service) = services.get(&who) {
            return service.clone();
        }
        if services.len() >= ENDPOINTS_MAX {
            services.clear();
        }
        let endpoint = Endpoint::new(self.hub.clone(), who.clone());
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(self.limits.hosts.iter().cloned())
            .with_allowed_origins(self.limits.origins.iter().cloned())
            .enforce_origin_validation()
            .with_max_request_body_bytes(REQUEST_BYTES_MAX)
            .with_cancellation_token(self.hub.stop.child_token());
        let sessions = Arc::new(Sessions::default());
        let service = StreamableHttpService::new(move || Ok(endpoint.session()), sessions.clone(), config);
        services.insert(who, (service.clone(), sessions.clone()));
        (service, sessions)
    }
}
