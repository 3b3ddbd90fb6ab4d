//! What is wrong: the findings of `lorgnette doctor`.

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::State,
    response::Response,
    routing::{get, post},
};
use maud::{Markup, html};

use super::{
    Examined, Pages,
    layout::{self, badge, line, prose, seconds},
    paths::PROBLEMS,
    session,
    table::Table,
    visit::Visit,
};
use crate::{
    clock,
    findings::{Finding, Level},
};

const AGAIN: &str = "/console/problems/again";

pub(super) fn routes() -> Router<Pages> {
    Router::new().route(PROBLEMS, get(show)).route(AGAIN, post(again))
}

async fn show(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let examined = pages.examine(false).await;
    layout::page(
        &pages,
        &visit,
        "Problems",
        PROBLEMS,
        &html! {
            p.soft { "What " code { "lorgnette doctor" } " finds on this box, the worst first. It is looked at again after a \
                     minute. How many devices the box carries is measured by the command only." }
            @if visit.is_operator() { (layout::button(&visit, AGAIN, "Look again", &[])) }
            (found(examined.as_ref()))
        },
    )
}

fn found(examined: Option<&Arc<Examined>>) -> Markup {
    let Some(examined) = examined else { return html! { p { "The box could not be examined." } } };
    let ago = clock::mono_us().saturating_sub(examined.at_us) / 1_000_000;
    html! {
        p.soft { "Looked at " (seconds(ago)) " ago." }
        (Table::new("Findings", &["Level", "What was looked at", "What is the case", "What to do"])
            .rows(examined.findings.0.iter().map(row)))
    }
}

fn row(finding: &Finding) -> Vec<Markup> {
    let kind = match finding.level {
        Level::Fault => "bad",
        Level::Warning => "warn",
        Level::Note => "",
        Level::Ok => "good",
    };
    vec![
        badge(kind, finding.level.word()),
        html! { (finding.check) },
        prose(&line(&finding.what)),
        prose(&finding.remedy.as_deref().map(line).unwrap_or_default()),
    ]
}

async fn again(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let done = pages.examine(true).await.is_some();
    let told = if done { "the box was looked at again" } else { "the box could not be examined" };
    pages.operators().tell(&visit.visitor, done, told);
    session::see_other(PROBLEMS)
}
