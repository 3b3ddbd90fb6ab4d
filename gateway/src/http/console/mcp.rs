//! The MCP servers behind the gateway.

use axum::{
    Extension, Router,
    extract::State,
    response::Response,
    routing::{get, post},
};
use maud::{Markup, html};

use super::{
    Pages,
    layout::{self, badge, line, query, seconds},
    table::Table,
    visit::Visit,
};
use crate::control::{Answer, McpServer, Request};

const PATH: &str = "/console/mcp";
const LOG: &str = "/console/mcp/log";
const RESTART: &str = "/console/mcp/restart";

pub(super) fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(show)).route(LOG, get(log)).route(RESTART, post(restart))
}

async fn show(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let part = part(&pages, &visit).await;
    layout::page(&pages, &visit, "MCP servers", PATH, &layout::live("mcp", "", &part))
}

pub(super) async fn part(pages: &Pages, visit: &Visit) -> Markup {
    let servers = match pages.ask(Request::McpServers).await {
        Ok(Answer::McpServers { servers }) => servers,
        other => return layout::unavailable(other),
    };
    let columns = ["Server", "State", "For", "Tools", "Last down", "Last failed call", "Action"];
    html! {
        (Table::new("MCP servers", &columns)
            .rows(servers.iter().map(|server| row(visit, server)))
            .or("None is configured. The section [mcp.servers] of the configuration names them."))
    }
}

fn row(visit: &Visit, server: &McpServer) -> Vec<Markup> {
    let kind = match server.state.as_str() {
        "up" => "good",
        "down" => "bad",
        _ => "warn",
    };
    let when = |what: &Option<(String, u64)>| match what {
        Some((why, ago)) => html! { (line(why)) " (" (seconds(*ago)) " ago)" },
        None => html! { "never" },
    };
    vec![
        html! { (server.name) },
        html! { (badge(kind, &server.state)) " " (line(&server.detail)) },
        html! { (seconds(server.for_s)) },
        html! { (server.tools) },
        when(&server.last_down),
        when(&last_failure(visit, server)),
        html! {
            @if visit.is_operator() {
                div.row {
                    a href=(format!("{LOG}?{}", query(&[("name", &server.name)]))) { "Log" span.sr { " of " (server.name) } }
                    (layout::button(visit, RESTART, "Restart", &[("name", &server.name)]))
                }
            }
        },
    ]
}

/// Why a call failed may be told in the server's words, which may repeat those of a wearer: a viewer gets the kind.
fn last_failure(visit: &Visit, server: &McpServer) -> Option<(String, u64)> {
    let (why, ago) = server.last_failure.as_ref()?;
    if visit.is_operator() {
        return Some((why.clone(), *ago));
    }
    let (tool, code) = server.last_failed.as_ref()?;
    Some((format!("{tool}: {}", layout::code(*code)), *ago))
}

/// What a server wrote may be about what wearers said.
async fn log(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    if !visit.is_operator() {
        return super::operators_only();
    }
    let name = visit.query.get("name");
    let lines = match pages.ask(Request::McpServerLogs { name: name.to_owned() }).await {
        Ok(Answer::Lines { lines }) => html! {
            (Table::new("Lines", &["Ago", "Line"])
                .rows(lines.iter().rev().map(|(ago, text)| vec![html! { (seconds(*ago)) }, html! { span.log { (line(text)) } }]))
                .or("It has written nothing."))
        },
        other => layout::unavailable(other),
    };
    layout::page(
        &pages,
        &visit,
        &format!("Log of {}", line(name)),
        PATH,
        &html! {
            p.soft { "The latest lines of its standard error and log, newest first." }
            (lines)
            p { a href=(PATH) { "All servers" } }
        },
    )
}

async fn restart(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    pages.act(&visit, Request::RestartMcpServer { name: visit.form.get("name").to_owned() }, PATH).await
}
