//! The models that answer, and what they cost.

use std::collections::BTreeMap;

use axum::{Extension, Router, extract::State, response::Response, routing::get};
use maud::{Markup, html};
use serde_json::Value;

use super::{
    Pages, layout,
    plot::{self, Series},
    table::Table,
    visit::Visit,
};
use crate::control::{Answer, Request, gather, memory::MemoryRequest};

const PATH: &str = "/console/models";
/// Days that are shown.
const DAYS: usize = 30;

pub(super) fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(show))
}

async fn show(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let status = gather::status(&pages.admin).await;
    let request = Request::Memory { request: MemoryRequest::Spending { user: None, days: DAYS } };
    let spent = match pages.ask(request).await {
        Ok(Answer::Records { records }) => spent(&records),
        other => layout::unavailable(other),
    };
    let rows = status.models.iter().enumerate().map(|(rank, model)| vec![html! { (rank) }, html! { (model) }]);
    layout::page(
        &pages,
        &visit,
        "Models",
        PATH,
        &html! {
            p.soft { "Each is asked where the one before does not answer." }
            (Table::new("Models", &["Rank", "Model"]).rows(rows))
            h2 { "Use in the last 30 days" }
            (spent)
        },
    )
}

fn spent(records: &[Value]) -> Markup {
    let mut days: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    for record in records {
        let day = days.entry(record["date"].as_str().unwrap_or_default()).or_default();
        let tokens = |name: &str| record[name].as_u64().unwrap_or_default();
        day.0 += tokens("input_tokens") + tokens("output_tokens");
        day.1 += record["money"].as_f64().unwrap_or_default();
    }
    let (Some((first, _)), Some((last, _))) = (days.first_key_value(), days.last_key_value()) else {
        return html! { p.soft.empty { "No model was asked in this time." } };
    };
    let tokens = Series { name: "tokens", class: "one", values: days.values().map(|day| Some(day.0 as f64)).collect() };
    let money = Series { name: "money", class: "two", values: days.values().map(|day| Some(day.1)).collect() };
    let has_price = days.values().any(|day| day.1 > 0.0);
    html! {
        (plot::lines("Tokens of each day with requests", "", &[tokens], (first, last)))
        @if has_price { (plot::lines("Money of each day with requests", "", &[money], (first, last))) }
        (Table::new("Use", &["Day", "User", "Tokens in", "Tokens out", "Money", "Limit of the day"])
            .rows(records.iter().rev().map(row)))
    }
}

fn row(record: &Value) -> Vec<Markup> {
    let money = |name: &str| match record[name].as_f64() {
        Some(amount) => html! { (format!("{amount:.4}")) },
        None => html! { "none" },
    };
    vec![
        html! { (record["date"].as_str().unwrap_or_default()) },
        html! { (record["user"].as_str().unwrap_or_default()) },
        html! { (record["input_tokens"].as_u64().unwrap_or_default()) },
        html! { (record["output_tokens"].as_u64().unwrap_or_default()) },
        money("money"),
        money("budget"),
    ]
}
