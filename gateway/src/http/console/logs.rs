//! The stored log.

use axum::{Extension, Router, extract::State, response::Response, routing::get};
use maud::{Markup, html};
use tools::inspection::{
    logs::{LogEntry, LogFilter, LogLevel},
    moment,
};

use super::{
    Pages,
    layout::{self, badge, field, line, query},
    table::Table,
    visit::{Fields, Visit},
};
use crate::{
    clock,
    control::{Answer, Request},
};

const PATH: &str = "/console/logs";
/// Lines of a page.
const LINES: usize = 100;

pub(super) fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(show))
}

async fn show(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let part = part(&pages, &visit).await;
    let get = |name: &str| visit.query.get(name);
    let fields = ["level", "source", "context", "since", "text"].map(|name| (name, get(name)));
    // An earlier page stays as it is.
    let is_first = visit.query.some("cursor").is_none();
    layout::page(
        &pages,
        &visit,
        "Logs",
        PATH,
        &html! {
            p.soft { "What the gateway logged, newest first. Nothing of it holds what a wearer said." }
            form.fields method="get" action=(PATH) {
                (layout::choice("level", "At least", get("level"), &[("", "everything"), ("warn", "warnings"), ("error", "errors")]))
                (field("source", "Source (gateway, device:…, app:…, mcp:…)", get("source")))
                (field("context", "Part of the program", get("context")))
                (field("since", "Since (90m, 12h, 30d)", get("since")))
                (field("text", "Words", get("text")))
                button.primary { "Show" }
            }
            @if is_first { (layout::live("logs", &query(&fields), &part)) } @else { (part) }
        },
    )
}

pub(super) async fn part(pages: &Pages, visit: &Visit) -> Markup {
    let filter = match filter(&visit.query) {
        Ok(filter) => filter,
        Err(why) => return layout::unavailable(Err(why)),
    };
    let request = Request::Logs { filter, limit: LINES, cursor: visit.query.some("cursor") };
    let (logs, cursor) = match pages.ask(request).await {
        Ok(Answer::Logs { logs, cursor }) => (logs, cursor),
        other => return layout::unavailable(other),
    };
    html! {
        (Table::new("Lines", &["Time", "Level", "Source", "Part", "Line"])
            .rows(logs.iter().map(row))
            .or("No such lines."))
        @if let Some(cursor) = cursor {
            p { a href=(format!("{PATH}?{}", earlier(&visit.query, &cursor))) { "Earlier lines" } }
        }
    }
}

fn filter(fields: &Fields) -> Result<LogFilter, String> {
    let now_ms = clock::wall_ms();
    Ok(LogFilter {
        level: fields.some("level").map(|level| level.parse::<LogLevel>()).transpose()?,
        context: fields.some("context"),
        source: fields.some("source"),
        since_wall_ms: fields.some("since").map(|since| moment::parse(&since, now_ms)).transpose()?,
        before_wall_ms: None,
        text: fields.some("text"),
    })
}

fn earlier(fields: &Fields, cursor: &str) -> String {
    let names = ["level", "source", "context", "since", "text"];
    let mut all: Vec<(&str, &str)> = names.map(|name| (name, fields.get(name))).to_vec();
    all.push(("cursor", cursor));
    query(&all)
}

fn row(entry: &LogEntry) -> Vec<Markup> {
    let kind = match entry.level {
        LogLevel::Error => "bad",
        LogLevel::Warn => "warn",
        LogLevel::Info => "",
    };
    vec![
        layout::moment(entry.wall_ms),
        badge(kind, entry.level.name()),
        html! { span.long { (line(&entry.source)) } },
        layout::name(&line(&entry.context)),
        html! { span.log { (line(&entry.message)) } },
    ]
}
