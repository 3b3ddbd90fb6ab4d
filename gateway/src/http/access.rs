//! Which machines may send a request, and under which name of this one.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{
        StatusCode,
        header::{self, HeaderValue},
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use super::{origin::host_is_known, peer::Peer, reply::Text};

/// Names of this machine in a Host header, in addition to its addresses and `localhost`.
#[derive(Clone)]
pub(super) struct Names(Arc<[String]>);

impl Names {
    pub(super) fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().map(|name| name.to_ascii_lowercase()).collect())
    }

    /// Whether a Host header has one of them, an address, or `localhost`.
    pub(super) fn knows(&self, host: &str) -> bool {
        host_is_known(host, &self.0)
    }
}

/// Refuses requests under a name that is not this machine's: a page of another site could let its own name resolve to
/// this machine, and would then read the answers. A request without a name comes from no browser.
pub(super) async fn by_name(State(names): State<Names>, request: Request, next: Next) -> Response {
    const UNKNOWN: Text = (
        StatusCode::MISDIRECTED_REQUEST,
        "this machine is not known by the name in the Host header: use its address, or add the name to `mcp.hosts`\n",
    );
    let is_known = |name: &HeaderValue| name.to_str().is_ok_and(|name| names.knows(name));
    if request.headers().get(header::HOST).is_none_or(is_known) {
        next.run(request).await
    } else {
        UNKNOWN.into_response()
    }
}

/// Refuses requests of other machines, for endpoints of programs on this one. `refusal`: the endpoint's own words, with
/// what to do.
pub(super) async fn from_here(State(refusal): State<&'static str>, request: Request, next: Next) -> Response {
    match request.extensions().get::<Peer>() {
        Some(peer) if peer.is_here() => next.run(request).await,
        _ => (StatusCode::FORBIDDEN, refusal).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::{
        Router,
        body::{Body, to_bytes},
        middleware::from_fn_with_state,
        routing::get,
    };
    use tower_service::Service as _;

    use super::*;

    #[tokio::test]
    async fn a_request_from_elsewhere_is_refused_in_the_words_of_its_endpoint() {
        const REFUSAL: &str = "printers are used from this machine only\n";
        let mut router: Router =
            Router::new().route("/", get(async || "printed")).layer(from_fn_with_state(REFUSAL, from_here));
        // Of this request nobody knows where it comes from.
        let answer = router.call(Request::new(Body::empty())).await.unwrap();
        assert_eq!(answer.status(), StatusCode::FORBIDDEN);
        assert_eq!(to_bytes(answer.into_body(), 1_024).await.unwrap(), REFUSAL);
    }
}
