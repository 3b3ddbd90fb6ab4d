//! Questions that wait for a wearer's consent, and what was decided.

use ::tools::ledger::Record;
use axum::{
    Extension, Router,
    extract::State,
    http::StatusCode,
    response::Response,
    routing::{get, post},
};
use maud::{Markup, html};

use super::{
    Pages,
    layout::{self, badge, line, short},
    table::Table,
    visit::Visit,
};
use crate::{
    approvals::Event,
    clock,
    control::{Answer, Request},
    units::number_of,
};

const PATH: &str = "/console/approvals";
const ANSWER: &str = "/console/approvals/answer";
/// How far back decisions are listed, in milliseconds: a week.
const BACK_MS: i64 = 7 * 86_400_000;

pub(super) fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(show)).route(ANSWER, post(answer))
}

async fn show(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let part = part(&pages, &visit).await;
    let since_wall_ms = clock::wall_ms().saturating_sub(BACK_MS);
    let decisions = match pages.ask(Request::Decisions { user: None, since_wall_ms }).await {
        Ok(Answer::Decisions { decisions, left_out }) => decided(&decisions, left_out),
        other => layout::unavailable(other),
    };
    layout::page(
        &pages,
        &visit,
        "Approvals",
        PATH,
        &html! {
            p.soft { "Calls that wait for a yes. Your answer counts as that of the operator; the wearer may answer first." }
            h2 { "Open questions" }
            (layout::live_questions("approvals", &part))
            h2 { "Decisions of the last 7 days" }
            (decisions)
        },
    )
}

pub(super) async fn part(pages: &Pages, visit: &Visit) -> Markup {
    let open = match pages.ask(Request::Approvals).await {
        Ok(Answer::Approvals { approvals }) => approvals,
        other => return layout::unavailable(other),
    };
    html! {
        @if open.is_empty() { p.soft.empty { "Nothing waits." } }
        @for event in &open { (question(visit, event)) }
    }
}

fn question(visit: &Visit, event: &Event) -> Markup {
    let id = event.id.to_string();
    html! {
        section.card aria-label=(format!("Question {id}")) {
            h3 { (event.function) " of " (event.capability) }
            p.soft {
                "For " (event.user) ", "
                @match &event.device {
                    Some(device) => { "asked on " code { (short(device)) } }
                    None => "no glasses are there to be asked",
                }
                @if event.origin.is_some() { ", by a program" }
            }
            @if visit.is_operator() {
                p.lines { (event.message) }
                details { summary { "Arguments" } pre { (serde_json::to_string_pretty(&event.params).unwrap_or_default()) } }
                div.row {
                    (layout::button(visit, ANSWER, "No", &[("id", &id), ("answer", "no")]))
                    (layout::button(visit, ANSWER, "Yes", &[("id", &id), ("answer", "yes")]))
                }
            } @else {
                p.soft { "Only operators see the question, and may answer it." }
            }
        }
    }
}

fn decided(decisions: &[Record], left_out: usize) -> Markup {
    let rows = decisions.iter().filter_map(|record| {
        let approval = record.approval.as_ref()?;
        let word = serde_json::to_value(approval.outcome).ok()?;
        let by = serde_json::to_value(approval.by).ok()?;
        let word = word.as_str().unwrap_or_default();
        Some(vec![
            layout::moment(approval.wall_ms),
            html! { code { (line(&record.tool)) } },
            html! { (record.user) },
            badge(if word == "approved" { "good" } else { "" }, word),
            html! { (by.as_str().unwrap_or_default()) },
            html! { (approval.took_ms / 1_000) " s" },
        ])
    });
    html! {
        (Table::new("Decisions", &["When", "Tool", "User", "Decision", "By", "After"]).rows(rows))
        @if left_out > 0 { p.soft { "Left out: " (number_of(left_out, "older decision")) "." } }
    }
}

async fn answer(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let yes = match visit.form.get("answer") {
        "yes" => true,
        "no" => false,
        _ => return layout::refusal(StatusCode::BAD_REQUEST, "Answer yes or no."),
    };
    let Ok(id) = visit.form.get("id").parse() else {
        return layout::refusal(StatusCode::BAD_REQUEST, "Name a question.");
    };
    pages.act(&visit, Request::AnswerApproval { id, yes }, PATH).await
}
