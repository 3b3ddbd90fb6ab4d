//! What every request for the console passes before a page sees it: the way it came, the name under which it came, the
//! page that sent it, who sent it, and what that person may do.

use std::time::Duration;

use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{
        HeaderMap, Method, StatusCode,
        header::{self, HeaderName, HeaderValue},
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use tokio::time::timeout;

use super::{
    Pages, files, layout, paths, session,
    visit::{Fields, TOKEN, Visit},
};
use crate::{
    clock,
    http::{origin::host, peer::Peer, reply::Text},
    identity::operators::{Role, is_same},
};

/// Longest body of a form: a rename, a code, a search.
const FORM_BYTES_MAX: usize = 16 * 1024;
/// How long it may take, in milliseconds.
const FORM_MS_MAX: u64 = 5_000;

/// On every answer. Nothing is loaded from elsewhere, nothing inline is run or styled, no other page may embed this one or
/// get hold of its window, and nothing is kept in a cache.
static HEADERS: [(HeaderName, &str); 9] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CACHE_CONTROL, "no-store"),
    // With `no-referrer`, browsers would send forms with the Origin `null`.
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "microphone=(), camera=(), geolocation=()"),
    (HeaderName::from_static("x-robots-tag"), "noindex"),
];

/// Before all routes of the console.
pub(super) async fn guard(State(pages): State<Pages>, request: Request, next: Next) -> Response {
    let mut response = match let_in(&pages, request).await {
        Ok(request) => next.run(request).await,
        Err(refusal) => refusal,
    };
    for (name, value) in &HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The request with a [`Visit`], or the answer in place of a page.
async fn let_in(pages: &Pages, mut request: Request) -> Result<Request, Response> {
    const METHOD: Text = (StatusCode::METHOD_NOT_ALLOWED, "wrong method\n");
    let peer = request.extensions().get::<Peer>().cloned();
    let peer = peer.ok_or_else(|| (StatusCode::INTERNAL_SERVER_ERROR, "no peer\n").into_response())?;
    if !peer.is_here() && !peer.is_encrypted() {
        return Err(layout::unreachable(
            StatusCode::FORBIDDEN,
            "From other machines the console is reached over https:// only.",
        ));
    }
    if !host(request.headers()).is_some_and(|host| pages.names.knows(host)) {
        return Err(layout::unreachable(
            StatusCode::MISDIRECTED_REQUEST,
            "This machine is not known by the name in the address: use its IP address, or add the name to `mcp.hosts`.",
        ));
    }
    let (path, method) = (request.uri().path().to_owned(), request.method().clone());
    let is_post = method == Method::POST;
    if !is_post && method != Method::GET && method != Method::HEAD {
        return Err(METHOD.into_response());
    }
    if is_post && !is_own_page(request.headers(), &peer) {
        return Err(from_another_page());
    }
    if files::is_file(&path) || path == session::ENTER {
        return match is_post {
            true => with_form(request).await,
            false => Ok(request),
        };
    }
    if is_sent_by_another_page(request.headers()) {
        return Err(from_another_page());
    }
    let is_live = path.starts_with(paths::LIVE);
    let secret = session::secret(request.headers());
    let visitor = secret.and_then(|secret| pages.operators().visit(clock::mono_us(), &secret, !is_live));
    let visitor = visitor.ok_or_else(session::stranger)?;
    peer.slot.admit_requester();
    let query = Fields::parse(request.uri().query().unwrap_or_default().as_bytes());
    let mut form = Fields::default();
    if is_post {
        request = with_form(request).await?;
        form = request.extensions_mut().remove::<Fields>().unwrap_or_default();
        if !is_same(form.get(TOKEN), &visitor.form_token) {
            return Err(layout::refusal(
                StatusCode::FORBIDDEN,
                "This form is from another session. Load its page again.",
            ));
        }
        if visitor.role != Role::Operator && path != paths::LEAVE {
            return Err(layout::refusal(
                StatusCode::FORBIDDEN,
                "You may look at the console, and change nothing in it.",
            ));
        }
    }
    request.extensions_mut().insert(Visit { visitor, query, form });
    Ok(request)
}

/// The link on it leads to the console from a page of the console.
fn from_another_page() -> Response {
    layout::refusal(StatusCode::FORBIDDEN, "This request comes from another page. Open the console by itself.")
}

/// The request with the fields of its body as an extension.
async fn with_form(request: Request) -> Result<Request, Response> {
    const WRONG: Text = (StatusCode::BAD_REQUEST, "send a form\n");
    let is_form = request.headers().get(header::CONTENT_TYPE).is_some_and(|kind| {
        kind.to_str().is_ok_and(|kind| kind.split(';').next() == Some("application/x-www-form-urlencoded"))
    });
    if !is_form {
        return Err(WRONG.into_response());
    }
    let (parts, body) = request.into_parts();
    let read = timeout(Duration::from_millis(FORM_MS_MAX), to_bytes(body, FORM_BYTES_MAX)).await;
    let Ok(Ok(body)) = read else { return Err(WRONG.into_response()) };
    let mut request = Request::from_parts(parts, Body::empty());
    request.extensions_mut().insert(Fields::parse(&body));
    Ok(request)
}

/// Whether a form was sent by a page of this gateway: its Origin is there, and is exactly this one.
fn is_own_page(headers: &HeaderMap, peer: &Peer) -> bool {
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let scheme = if peer.is_encrypted() { "https" } else { "http" };
    let own = host(headers).map(|host| format!("{scheme}://{host}"));
    origin.is_some() && origin == own.as_deref() && !is_sent_by_another_page(headers)
}

/// Whether a browser says that another page, perhaps one of another port of this machine, caused the request.
fn is_sent_by_another_page(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_pages_are_recognised() {
        let from = |site: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("sec-fetch-site", HeaderValue::from_static(site));
            is_sent_by_another_page(&headers)
        };
        assert!(!from("same-origin") && !from("none") && from("same-site") && from("cross-site") && from("x"));
        assert!(!is_sent_by_another_page(&HeaderMap::new()), "older browsers and tools say nothing");
    }
}
