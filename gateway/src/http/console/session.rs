//! Signing in by a one-time link, and out.
//!
//! The link leads to a page with a button: what only looks at an address (a preview, a browser that loads ahead) uses up
//! nothing. The button's form makes a session, whose secret is kept in a cookie that no script and no other site gets.

use axum::{
    Extension, Router,
    extract::{Request, State},
    http::{
        HeaderMap, StatusCode,
        header::{self, HeaderValue},
    },
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use maud::html;

use super::{
    Pages,
    layout::{self, seconds},
    paths::{HOME, LEAVE},
    table::Table,
    visit::{Fields, Visit},
};
use crate::{
    clock,
    http::{peer::Peer, reply::to_wrong_key},
    identity::operators::Refusal,
    units::number_of,
};

/// Where a link leads.
pub(super) const ENTER: &str = "/console/enter";
const PATH: &str = "/console/access";
const END: &str = "/console/access/end";
const COOKIE: &str = "lorgnette_console";
/// Longest secret that is looked at: the digits of 256 bits.
const SECRET_BYTES_MAX: usize = 64;

pub(super) fn routes() -> Router<Pages> {
    Router::new()
        .route(ENTER, get(ask).post(enter))
        .route(LEAVE, post(leave))
        .route(PATH, get(access))
        .route(END, post(end))
}

/// The secret of a request's cookie.
pub(super) fn secret(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    let mut values = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| {
        let (name, value) = cookie.trim().split_once('=')?;
        (name == COOKIE && value.len() <= SECRET_BYTES_MAX).then(|| value.to_owned())
    });
    values.next()
}

/// The answer to somebody without a session, also to a form that comes after its end.
pub(super) fn stranger() -> Response {
    layout::outside(
        StatusCode::UNAUTHORIZED,
        "Sign in",
        &html! {
            p { "This is the console of a Lorgnette gateway. Its operator gets a link that lets one browser in once, on \
                 the machine of the gateway:" }
            pre { "lorgnette console" }
            p.soft { "With " code { "--viewer" } " it is for somebody who looks and changes nothing. A session ends after 30 \
                 minutes without a request, and after 12 hours." }
        },
    )
}

/// The page of a link.
async fn ask(request: Request) -> Response {
    let query = Fields::parse(request.uri().query().unwrap_or_default().as_bytes());
    let Some(link) = query.some("link") else { return stranger() };
    layout::outside(
        StatusCode::OK,
        "Sign in",
        &html! {
            p { "This link lets this browser into the console of the gateway, once." }
            form method="post" action=(ENTER) {
                input type="hidden" name="link" value=(link);
                button.primary { "Sign in" }
            }
        },
    )
}

async fn enter(State(pages): State<Pages>, peer: Peer, Extension(form): Extension<Fields>) -> Response {
    let redeemed = pages.operators().redeem(clock::mono_us(), peer.address.ip(), form.get("link"));
    match redeemed {
        Ok((secret, number, role)) => {
            tracing::info!(session = number, role = role.name(), peer = %peer.address.ip(), "signed in at the console");
            let mut response = see_other(HOME);
            set_cookie(&mut response, &secret, &peer);
            response
        }
        Err(refusal) => {
            if let Some(left_out) = pages.wrong.line() {
                tracing::warn!(peer = %peer.address.ip(), %refusal, left_out, "a wrong link to the console");
            }
            let status = match refusal {
                Refusal::TooMany => StatusCode::TOO_MANY_REQUESTS,
                Refusal::Unknown => StatusCode::FORBIDDEN,
                Refusal::NoRandom => StatusCode::SERVICE_UNAVAILABLE,
            };
            to_wrong_key(layout::refusal(status, &format!("Not signed in: {refusal}."))).await
        }
    }
}

async fn leave(State(pages): State<Pages>, Extension(visit): Extension<Visit>, peer: Peer) -> Response {
    pages.operators().end(Some(visit.visitor.number));
    tracing::info!(session = visit.visitor.number, "signed out of the console");
    let mut response = layout::outside(
        StatusCode::OK,
        "Signed out",
        &html! {
            p { "This session has ended. " code { "lorgnette console" } " prints a link for another one." }
        },
    );
    set_cookie(&mut response, "", &peer);
    response
}

/// The cookie: for this host and the console only, for no script, not with requests of other sites. It ends with the browser.
fn set_cookie(response: &mut Response, secret: &str, peer: &Peer) {
    let secure = if peer.is_encrypted() { "; Secure" } else { "" };
    let end = if secret.is_empty() { "; Max-Age=0" } else { "" };
    let cookie = format!("{COOKIE}={secret}; Path=/console; HttpOnly; SameSite=Strict{secure}{end}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
}

pub(super) fn see_other(path: &str) -> Response {
    let path = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static(HOME));
    (StatusCode::SEE_OTHER, [(header::LOCATION, path)]).into_response()
}

/// Who is signed in.
async fn access(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let rows = pages.operators().list(clock::mono_us()).into_iter().map(|session| {
        let own = session.number == visit.visitor.number;
        vec![
            html! { (session.number) @if own { " (this one)" } },
            html! { (session.role.name()) },
            html! { (session.from) },
            html! { (seconds(session.for_s)) },
            html! { (seconds(session.idle_s)) },
            html! {
                @if visit.is_operator() {
                    (layout::button(&visit, END, "End", &[("session", &session.number.to_string())]))
                }
            },
        ]
    });
    let table = Table::new("Sessions", &["Session", "Role", "From", "For", "Idle", "Action"]).rows(rows);
    layout::page(
        &pages,
        &visit,
        "Access",
        PATH,
        &html! {
            p.soft { "Sessions of this console. Each began with a link that " code { "lorgnette console" } " printed. None of them \
                 outlives the gateway's process." }
            (table)
            @if visit.is_operator() {
                p { (layout::button(&visit, END, "End all sessions", &[("session", "all")])) }
            }
        },
    )
}

async fn end(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let wanted = visit.form.get("session");
    let number = match wanted.parse() {
        Ok(number) => Some(number),
        Err(_) if wanted == "all" => None,
        Err(_) => return layout::refusal(StatusCode::BAD_REQUEST, "Name a session."),
    };
    let ended = pages.operators().end(number);
    tracing::info!(session = visit.visitor.number, ended, "sessions of the console were ended");
    pages.operators().tell(&visit.visitor, ended > 0, &format!("{} ended", number_of(ended, "session")));
    see_other(PATH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_is_found_among_cookies() {
        let of = |cookies: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for cookie in cookies {
                headers.append(header::COOKIE, HeaderValue::from_static(cookie));
            }
            secret(&headers)
        };
        assert_eq!(of(&["a=b; lorgnette_console=12; c=d"]).as_deref(), Some("12"));
        assert_eq!(of(&["a=b", "lorgnette_console=3"]).as_deref(), Some("3"));
        assert_eq!(of(&["xlorgnette_console=12", "lorgnette_console", ""]), None);
        let long: &'static str = Box::leak(format!("lorgnette_console={}", "0".repeat(65)).into_boxed_str());
        assert_eq!(of(&[long]), None);
    }
}
