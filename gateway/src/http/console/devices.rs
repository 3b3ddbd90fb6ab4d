//! Devices: pairing, names, revocation, and what is known of each.

use axum::{
    Extension, Router,
    extract::{Path, State},
    http::StatusCode,
    response::Response,
    routing::{get, post},
};
use maud::{Markup, html};

use super::{
    Pages, firmware, invitation,
    layout::{self, badge, facts, field, moment, seconds, short},
    paths::{self, DEVICES},
    session::see_other,
    sessions::{battery, state},
    table::Table,
    turns,
    users::USER,
    visit::Visit,
};
use crate::control::{Answer, Paired, Request, Waits};

const PAIR: &str = "/console/devices/pair";
const WINDOW: &str = "/console/devices/window";
const RENAME: &str = "/console/devices/rename";
const REVOKE: &str = "/console/devices/revoke";
const REVOKED: &str = "Its session ends now, and it stays out until somebody pairs it again by its fingerprint, with \
                       `lorgnette devices pair --fingerprint`.";
/// Turns on a device's page.
const TURNS_MAX: usize = 10;
/// Turns among which these are looked for: all of this run.
const TURNS_KEPT: usize = 256;

pub(super) fn routes() -> Router<Pages> {
    Router::new()
        .route(DEVICES, get(list))
        .route(PAIR, post(pair))
        .route(WINDOW, post(window))
        .route(RENAME, post(rename))
        .route(REVOKE, post(revoke))
        .route("/console/devices/of/{device}", get(one))
}

async fn list(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let part = part(&pages, &visit).await;
    layout::page(
        &pages,
        &visit,
        "Devices",
        DEVICES,
        &html! {
            @if visit.is_operator() { (pairing(&visit)) }
            (layout::live("devices", "", &part))
        },
    )
}

fn pairing(visit: &Visit) -> Markup {
    let user = visit.query.some("user").unwrap_or_else(|| USER.to_owned());
    html! {
        section.card aria-labelledby="pairing" {
            h2 #pairing { "Pair glasses" }
            form.fields method="post" action=(PAIR) {
                (layout::hidden(visit, &[]))
                p.field {
                    label for="code" { "Code on their display" }
                    input id="code" name="code" inputmode="numeric" autocomplete="off" maxlength="16" required;
                }
                (field("user", "User", &user))
                (field("name", "Name (default: the model)", visit.query.get("name")))
                button.primary { "Pair" }
            }
            p.soft { "Glasses without a display appear below while they wait." }
            (invitation::form(visit))
        }
    }
}

pub(super) async fn part(pages: &Pages, visit: &Visit) -> Markup {
    let (paired, waiting) = match pages.ask(Request::Devices).await {
        Ok(Answer::Devices { paired, waiting }) => (paired, waiting),
        other => return layout::unavailable(other),
    };
    let columns = ["Device", "User", "Model", "State", "Last seen", "Firmware"];
    html! {
        @if !waiting.is_empty() {
            h2 { "Waiting for pairing" }
            (Table::new("Waiting for pairing", &["Fingerprint", "Model", "Shows a code", "Time left", "Action"])
                .rows(waiting.iter().map(|waits| waits_row(visit, waits))))
        }
        h2 { "Paired" }
        (Table::new("Paired devices", &columns)
            .rows(paired.iter().map(paired_row))
            .or("No device is paired. Glasses that connect show a code, which is typed in here."))
    }
}

fn waits_row(visit: &Visit, waits: &Waits) -> Vec<Markup> {
    vec![
        html! { code { (waits.fingerprint) } },
        html! { (waits.model) },
        html! { (if waits.shows_code { "yes" } else { "no" }) },
        html! { (seconds(waits.expires_s)) },
        html! {
            @if visit.is_operator() && !waits.shows_code { (admission(visit, &waits.fingerprint)) }
        },
    ]
}

/// Pairs glasses that show no code. Whoever reaches the gateway has a row here, and rows move: one click is not enough.
fn admission(visit: &Visit, fingerprint: &str) -> Markup {
    layout::confirmed_with(
        visit,
        WINDOW,
        (
            "Pair",
            fingerprint,
            "Compare this fingerprint with that of the glasses: whoever has its key may do what their user may.",
        ),
        &[("fingerprint", fingerprint)],
        &html! {
            div.fields {
                // Without an id, since there may be several.
                label.field { "User" input name="user" value=(USER) autocomplete="off" maxlength="256"; }
            }
        },
    )
}

fn paired_row(device: &Paired) -> Vec<Markup> {
    let session = device.session.as_ref();
    vec![
        html! { a href=(paths::device(&device.device)) { (device.name) } " " code { (short(&device.device)) } },
        html! { (device.user) },
        html! { (device.model) },
        match session {
            _ if device.revoked => badge("bad", "revoked"),
            Some(session) => state(session),
            None => badge("", "away"),
        },
        seen(device),
        html! { (session.map_or("", |session| session.firmware.as_str())) },
    ]
}

fn seen(device: &Paired) -> Markup {
    match (&device.session, device.left_wall_ms) {
        (Some(_), _) => html! { "now" },
        (None, Some(left)) => moment(left),
        (None, None) => html! { "not since the start" },
    }
}

async fn one(State(pages): State<Pages>, Extension(visit): Extension<Visit>, Path(id): Path<String>) -> Response {
    let paired = match pages.ask(Request::Devices).await {
        Ok(Answer::Devices { paired, .. }) => paired,
        other => return layout::page(&pages, &visit, "Device", DEVICES, &layout::unavailable(other)),
    };
    let Some(device) = paired.into_iter().find(|device| device.device == id) else {
        return layout::refusal(StatusCode::NOT_FOUND, "No such device is paired.");
    };
    let turns = match pages.ask(Request::Turns { count: TURNS_KEPT }).await {
        Ok(Answer::Turns { turns }) => turns,
        other => return layout::page(&pages, &visit, "Device", DEVICES, &layout::unavailable(other)),
    };
    let firmware = firmware::of(&pages, &visit, &id).await;
    let own = turns.iter().rev().filter(|turn| turn["device"] == id.as_str()).take(TURNS_MAX);
    layout::page(
        &pages,
        &visit,
        &device.name,
        DEVICES,
        &html! {
            (known(&device))
            (firmware)
            @if device.session.is_some() { (words(&visit, &device)) }
            h2 { "Latest turns of this run" }
            (turns::table(own))
            @if visit.is_operator() && !device.revoked { (changes(&visit, &device)) }
        },
    )
}

fn known(device: &Paired) -> Markup {
    let mut known = vec![
        ("Fingerprint", html! { code { (device.device) } }),
        ("User", html! { (device.user) }),
        ("Model", html! { (device.model) }),
        ("Last seen", seen(device)),
    ];
    if device.revoked {
        known.push(("State", badge("bad", "revoked")));
    }
    if let Some(session) = &device.session {
        known.extend([
            ("State", state(session)),
            ("Firmware", html! { (session.firmware) }),
            ("Battery", battery(session)),
            ("Connected via", html! { (session.transport) ", from " (session.peer) }),
            ("Connected for", html! { (seconds(session.for_s)) }),
        ]);
    }
    html! { section.card aria-label="What is known" { (facts(&known)) } }
}

/// Words are off until an operator asks for them, and then are shown under a note.
fn words(visit: &Visit, device: &Paired) -> Markup {
    html! {
        section.card aria-labelledby="words-title" {
            h2 #words-title { "What is being said" }
            @if visit.is_operator() {
                div #words data-words=(format!("{}words/{}", paths::LIVE, device.device)) {
                    p.soft { "Off. The wearer of these glasses does not see that you read along. It is written into the \
                             log that you did." }
                    button type="button" #words-button disabled { "Show words" }
                    div #words-note .notice.warn hidden {
                        p { b { "You are reading what " (device.user) " says now. " } "This page keeps none of it. \
                            Words from all glasses of " (device.user) " are shown, as far as they are recognised anyway." }
                    }
                    ol #words-list aria-live="polite" aria-label="Words" {}
                    noscript { p.soft { "This needs scripts." } }
                }
            } @else {
                p.soft { "Only operators may read along." }
            }
        }
    }
}

fn changes(visit: &Visit, device: &Paired) -> Markup {
    html! {
        section.card aria-labelledby="changes" {
            h2 #changes { "Change" }
            form.fields method="post" action=(RENAME) {
                (layout::hidden(visit, &[("device", &device.device)]))
                (field("name", "Name", &device.name))
                button { "Rename" }
            }
            (layout::confirmed(
                visit,
                REVOKE,
                ("Revoke", &device.name, REVOKED),
                &[("device", &device.device)],
            ))
        }
    }
}

async fn pair(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let of = |name: &str| visit.form.get(name).to_owned();
    let (code, user, name) = (of("code"), of("user"), of("name"));
    let back = layout::again(DEVICES, &[("user", &user), ("name", &name)]);
    let is_paired = pages.acted(&visit, Request::PairCode { code, user, name }).await;
    see_other(if is_paired { DEVICES } else { &back })
}

async fn window(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let of = |name: &str| visit.form.get(name).to_owned();
    let request = Request::PairFingerprint { fingerprint: of("fingerprint"), user: of("user"), name: of("name") };
    pages.act(&visit, request, DEVICES).await
}

async fn rename(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let device = visit.form.get("device").to_owned();
    let back = back(&device);
    pages.act(&visit, Request::Rename { device, name: visit.form.get("name").to_owned() }, &back).await
}

async fn revoke(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let device = visit.form.get("device").to_owned();
    let back = back(&device);
    pages.act(&visit, Request::Revoke { device }, &back).await
}

/// The device's page, if this is a fingerprint.
fn back(device: &str) -> String {
    if device.bytes().all(|byte| byte.is_ascii_hexdigit()) && !device.is_empty() {
        paths::device(device)
    } else {
        DEVICES.to_owned()
    }
}
