//! What is wrong: the findings of `lorgnette doctor`, and the banner of all pages.

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
    layout::{self, NOTHING, badge, line, seconds},
    session,
    table::Table,
    visit::Visit,
};
use crate::{
    clock,
    findings::{Finding, Level},
};

const PATH: &str = "/console/problems";
const AGAIN: &str = "/console/problems/again";

pub(super) fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(show)).route(AGAIN, post(again))
}

/// Names what is wrong, on every page.
pub(super) fn banner(pages: &Pages) -> Markup {
    let Some(examined) = pages.examined() else { return NOTHING };
    let count = |level| examined.findings.count(level);
    let (faults, warnings) = (count(Level::Fault), count(Level::Warning));
    // They are sorted: the worst is the first.
    let Some(worst) = examined.findings.0.first().filter(|_| faults + warnings > 0) else { return NOTHING };
    html! {
        aside.notice .bad[faults > 0] .warn[faults == 0] aria-label="What is wrong" {
            p { b { (counted(faults, warnings)) ": " } (line(&worst.what)) }
            p { a href=(PATH) { "What is wrong, and what to do" } }
        }
    }
}

/// In words, without what there is none of.
fn counted(faults: usize, warnings: usize) -> String {
    let of = |count: usize, what: &str| match count {
        0 => None,
        1 => Some(format!("1 {what}")),
        count => Some(format!("{count} {what}s")),
    };
    [of(faults, "fault"), of(warnings, "warning")].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

async fn show(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let examined = pages.examine(false).await;
    layout::page(
        &pages,
        &visit,
        "Problems",
        PATH,
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
        html! { (line(&finding.what)) },
        html! { (finding.remedy.as_deref().map(line).unwrap_or_default()) },
    ]
}

async fn again(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let done = pages.examine(true).await.is_some();
    let told = if done { "the box was looked at again" } else { "the box could not be examined" };
    pages.operators().tell(&visit.visitor, done, told);
    session::see_other(PATH)
}
