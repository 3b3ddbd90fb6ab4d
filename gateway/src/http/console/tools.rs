//! Tools of a user: which there are, which are switched off, how often each was called.

use std::collections::BTreeMap;

use ::tools::ledger::Usage;
use axum::{
    Extension, Router,
    extract::State,
    response::Response,
    routing::{get, post},
};
use maud::{Markup, html};

use super::{
    Pages,
    layout::{self, badge, line, query},
    table::Table,
    users,
    visit::Visit,
};
use crate::{
    clock,
    control::{Answer, Offered, Request},
};

const PATH: &str = "/console/tools";
const SWITCH: &str = "/console/tools/switch";
/// Days of the usage.
const DAYS: i64 = 7;
const DAY_MS: i64 = 86_400_000;

pub(super) fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(show)).route(SWITCH, post(switch))
}

async fn show(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let (user, choice) = users::chosen(&pages, &visit, PATH).await;
    let list = list(&pages, &visit, &user).await;
    let reports = match pages.ask(Request::ToolReports).await {
        Ok(Answer::ToolReports { reports }) => reports,
        other => return layout::page(&pages, &visit, "Tools", PATH, &layout::unavailable(other)),
    };
    layout::page(
        &pages,
        &visit,
        "Tools",
        PATH,
        &html! {
            p.soft { "What a model may call for this user. A tool that is switched off is offered to nobody who acts for the user." }
            (choice)
            (list)
            @if !reports.is_empty() {
                h2 { "Not converted" }
                @for (source, notes) in &reports {
                    p { b { (source) } }
                    ul { @for note in notes { li { (line(note)) } } }
                }
            }
        },
    )
}

async fn list(pages: &Pages, visit: &Visit, user: &str) -> Markup {
    let tools = match pages.ask(Request::Tools { user: user.to_owned() }).await {
        Ok(Answer::Tools { tools }) => tools,
        other => return layout::unavailable(other),
    };
    let since_wall_ms = clock::wall_ms().saturating_sub(DAYS * DAY_MS);
    let mut used = match pages.ask(Request::Usage { user: Some(user.to_owned()), since_wall_ms }).await {
        Ok(Answer::Usage { users }) => users,
        other => return layout::unavailable(other),
    };
    let used: BTreeMap<String, Usage> =
        used.remove(user).unwrap_or_default().into_iter().map(|usage| (usage.tool.clone(), usage)).collect();
    let rows = tools.iter().map(|tool| row(visit, user, tool, used.get(&tool.spec.name)));
    let columns = ["Tool", "From", "Calls in 7 days", "Failed", "State", "Action"];
    html! { (Table::new("Tools", &columns).rows(rows).or("No tool is offered to this user.")) }
}

fn row(visit: &Visit, user: &str, tool: &Offered, used: Option<&Usage>) -> Vec<Markup> {
    let name = tool.spec.name.as_str();
    let (on, label) = if tool.off { ("true", "Switch on") } else { ("false", "Switch off") };
    let count = |of: fn(&Usage) -> u64| html! { (used.map_or(0, of)) };
    vec![
        html! {
            details.about {
                summary { (tool.spec.title.as_deref().map_or_else(|| line(name), line)) }
                p.lines { (line(&tool.spec.description)) }
            }
            code { (name) }
        },
        html! { span.long { (line(&tool.source)) } },
        count(|usage| usage.calls),
        count(|usage| usage.failed),
        if tool.off { badge("warn", "off") } else { badge("good", "on") },
        html! {
            @if visit.is_operator() {
                form.inline method="post" action=(SWITCH) {
                    (layout::hidden(visit, &[("user", user), ("name", name), ("on", on)]))
                    button { (label) span.sr { " " (name) } }
                }
            }
        },
    ]
}

async fn switch(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let (user, name) = (visit.form.get("user").to_owned(), visit.form.get("name").to_owned());
    let back = format!("{PATH}?{}", query(&[("user", &user)]));
    let request = Request::SwitchTool { user, name, on: visit.form.get("on") == "true" };
    pages.act(&visit, request, &back).await
}
