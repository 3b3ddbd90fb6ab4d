//! Mini-apps: which are installed, for whom they run, their logs, and starting them again.

use ::tools::apps::log::Entry;
use axum::{
    Extension, Router,
    extract::State,
    http::StatusCode,
    response::Response,
    routing::{get, post},
};
use gateway_core::vocab::AppState;
use maud::{Markup, html};

use super::{
    Pages,
    layout::{self, badge, facts, field, line, query},
    table::Table,
    users::USER,
    visit::Visit,
};
use crate::control::{
    Answer, Request,
    apps::{AppsRequest, Listed},
};

const PATH: &str = "/console/apps";
const ONE: &str = "/console/apps/of";
const ACT: &str = "/console/apps/act";

pub(super) fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(list)).route(ONE, get(one)).route(ACT, post(act))
}

async fn installed(pages: &Pages) -> Result<Vec<Listed>, Markup> {
    match pages.ask(Request::Apps { request: AppsRequest::List }).await {
        Ok(Answer::Apps { apps }) => Ok(apps),
        other => Err(layout::unavailable(other)),
    }
}

fn path(package: &str) -> String {
    format!("{ONE}?{}", query(&[("package", package)]))
}

async fn list(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let table = match installed(&pages).await {
        Ok(apps) => html! {
            (Table::new("Apps", &["App", "Server", "Runs for", "Tools", "Recent faults"])
                .rows(apps.iter().map(row))
                .or(&html! { "No app is installed. " code { "lorgnette apps add" } " installs one." }))
        },
        Err(why) => why,
    };
    layout::page(&pages, &visit, "Apps", PATH, &table)
}

fn row(app: &Listed) -> Vec<Markup> {
    vec![
        html! { a href=(path(&app.package)) { (line(&app.name)) } " " code { (app.package) } },
        html! { (line(&app.public_url)) },
        running(app),
        html! { (app.tools.len()) },
        if app.faults > 0 {
            badge("warn", &app.faults.to_string())
        } else {
            html! { "0" }
        },
    ]
}

fn running(app: &Listed) -> Markup {
    html! {
        @if app.running.is_empty() { "nobody" }
        @for (user, state) in &app.running {
            @let (kind, word) = told(*state);
            (badge(kind, &format!("{user}: {word}"))) " "
        }
    }
}

/// A state in words, and whether that is good.
fn told(state: AppState) -> (&'static str, &'static str) {
    match state {
        AppState::Connecting => ("", "starting"),
        AppState::Running => ("good", "running"),
        AppState::Grace => ("warn", "its link is lost"),
        AppState::Resurrecting => ("warn", "called again"),
        AppState::Away => ("bad", "its server does not answer"),
        AppState::Stopping => ("", "stopping"),
        AppState::Dormant => ("", "waits for glasses"),
    }
}

async fn one(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let package = visit.query.get("package");
    let apps = match installed(&pages).await {
        Ok(apps) => apps,
        Err(why) => return layout::page(&pages, &visit, "App", PATH, &why),
    };
    let Some(app) = apps.iter().find(|app| app.package == package) else {
        return layout::refusal(StatusCode::NOT_FOUND, "No such app is installed.");
    };
    let log = log(&pages, &visit, app).await;
    let users = if app.users.is_empty() { "all users".to_owned() } else { app.users.join(", ") };
    layout::page(
        &pages,
        &visit,
        &line(&app.name),
        PATH,
        &html! {
            section.card aria-label="What is known" {
                (facts(&[
                    ("Package", html! { code { (app.package) } }),
                    ("Server", html! { (line(&app.public_url)) }),
                    ("For", html! { (users) }),
                    ("Runs for", running(app)),
                    ("Tools", html! { @for tool in &app.tools { code { (tool) } " " } }),
                    ("Last fault", last_fault(&visit, app)),
                ]))
            }
            @if visit.is_operator() { (changes(&visit, app)) }
            h2 { "Log" }
            (log)
        },
    )
}

/// What an app's server says of a fault may repeat what a wearer said: a viewer gets its kind.
fn last_fault(visit: &Visit, app: &Listed) -> Markup {
    match &app.last_fault {
        None => html! { "none" },
        Some(fault) if visit.is_operator() => html! { (line(&fault.message)) },
        Some(fault) => html! { (layout::code(fault.code)) },
    }
}

fn changes(visit: &Visit, app: &Listed) -> Markup {
    let user = app.running.first().map_or(USER, |(user, _)| user.as_str());
    html! {
        section.card aria-labelledby="changes" {
            h2 #changes { "Start and stop" }
            form.fields method="post" action=(ACT) {
                (layout::hidden(visit, &[("package", &app.package)]))
                (field("user", "For user", user))
                button name="act" value="start" { "Start" }
                button name="act" value="restart" { "Restart" }
                button name="act" value="stop" { "Stop" }
            }
        }
    }
}

/// An app's log has what the app was told, and so what wearers said.
async fn log(pages: &Pages, visit: &Visit, app: &Listed) -> Markup {
    if !visit.is_operator() {
        return html! { p.soft { "Only operators see it: it may hold what wearers said." } };
    }
    let request = Request::Apps { request: AppsRequest::Logs { package: app.package.clone() } };
    let entries = match pages.ask(request).await {
        Ok(Answer::AppLog { entries }) => entries,
        other => return layout::unavailable(other),
    };
    let rows = entries.iter().rev().map(|entry| match entry {
        Entry::Fault(fault) => vec![
            layout::moment(fault.wall_ms),
            badge("bad", "fault"),
            html! { (line(fault.user.as_deref().unwrap_or_default())) },
            html! { (line(&fault.what)) },
            html! {
                (line(&fault.message)) @if fault.times > 1 { " (" (fault.times) " times)" }
                details { summary { "Request and answer" } pre { (fault.request) "\n\n" (fault.answer) } }
            },
        ],
        Entry::Event(event) => vec![
            layout::moment(event.wall_ms),
            badge("", "event"),
            html! { (line(&event.user)) },
            html! { (line(&event.what)) },
            html! { (line(&event.message)) },
        ],
    });
    html! {
        p.notice.warn { "It may hold what wearers said." }
        (Table::new("Log", &["Time", "Kind", "User", "What", "Message"]).rows(rows).or("Nothing yet."))
    }
}

async fn act(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let (package, user) = (visit.form.get("package").to_owned(), visit.form.get("user").to_owned());
    let back = path(&package);
    let request = match visit.form.get("act") {
        "start" => AppsRequest::Start { package, user },
        "restart" => AppsRequest::Restart { package, user },
        "stop" => AppsRequest::Stop { package, user },
        _ => return layout::refusal(StatusCode::BAD_REQUEST, "Start, restart or stop."),
    };
    pages.act(&visit, Request::Apps { request }, &back).await
}
