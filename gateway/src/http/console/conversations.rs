//! Conversations: list, read, search, export, erase. For operators only: it is what wearers said. Reading is logged.

use std::{collections::VecDeque, convert::Infallible};

use axum::{
    Extension, Router,
    body::Body,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use bytes::Bytes;
use futures_util::stream;
use maud::{Markup, html};
use serde_json::Value;

use super::{
    Pages,
    layout::{self, field, line, query},
    operators_only,
    table::Table,
    users,
    visit::Visit,
};
use crate::control::{Answer, Request, memory::MemoryRequest};

const PATH: &str = "/console/conversations";
const ONE: &str = "/console/conversations/one";
const SEARCH: &str = "/console/conversations/search";
const EXPORT: &str = "/console/conversations/export";
const ERASE: &str = "/console/conversations/erase";

pub(super) fn routes() -> Router<Pages> {
    Router::new()
        .route(PATH, get(list))
        .route(ONE, get(one))
        .route(SEARCH, get(search))
        .route(EXPORT, get(export))
        .route(ERASE, post(erase))
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn number(value: &Value, name: &str) -> i64 {
    value[name].as_i64().unwrap_or_default()
}

/// Records about wearers; that they were read is logged.
async fn read(pages: &Pages, visit: &Visit, request: MemoryRequest) -> Result<Vec<Value>, Markup> {
    let request = Request::Memory { request };
    pages.note(visit, crate::control::name(&request), crate::control::about(&request));
    match pages.ask(request).await {
        Ok(Answer::Records { records }) => Ok(records),
        other => Err(layout::unavailable(other)),
    }
}

async fn list(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    if !visit.is_operator() {
        return operators_only();
    }
    let (user, choice) = users::chosen(&pages, &visit, PATH).await;
    let found = read(&pages, &visit, MemoryRequest::Conversations { user: user.clone() }).await;
    let content = match found {
        Ok(found) => listed(&visit, &user, &found),
        Err(why) => why,
    };
    layout::page(
        &pages,
        &visit,
        "Conversations",
        PATH,
        &html! {
            p.notice.warn { "This is what wearers said. That you read it is written into the log, without the words." }
            (choice)
            form.fields method="get" action=(SEARCH) {
                input type="hidden" name="user" value=(user);
                (field("words", "Words", ""))
                button { "Search" }
            }
            (content)
        },
    )
}

fn listed(visit: &Visit, user: &str, found: &[Value]) -> Markup {
    let rows = found.iter().rev().map(|conversation| {
        let id = number(conversation, "id").to_string();
        vec![
            html! { a href=(format!("{ONE}?{}", query(&[("user", user), ("id", &id)]))) { (id) } },
            html! { (line(text(conversation, "title"))) },
            layout::moment(number(conversation, "began_wall_ms")),
            html! { (number(conversation, "messages")) },
        ]
    });
    html! {
        (Table::new("Conversations", &["Number", "Title", "Began", "Messages"])
            .rows(rows)
            .or("No conversation of this user is kept."))
        @if !found.is_empty() {
            div.row {
                a.button href=(format!("{EXPORT}?{}", query(&[("user", user)]))) { "Export all" }
                (layout::confirmed(
                    visit,
                    ERASE,
                    ("Erase all conversations", &format!("of {user}"), "They are erased for good, also from the store's file."),
                    &[("user", user)],
                ))
            }
        }
    }
}

async fn one(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    if !visit.is_operator() {
        return operators_only();
    }
    let (user, id) = (visit.query.get("user").to_owned(), visit.query.get("id").to_owned());
    let Ok(wanted) = id.parse() else { return layout::missing() };
    let found = read(&pages, &visit, MemoryRequest::Conversation { user: user.clone(), id: wanted }).await;
    let conversation = match found.map(|mut found| found.pop()) {
        Ok(Some(conversation)) => conversation,
        Ok(None) => return layout::missing(),
        Err(why) => return layout::page(&pages, &visit, "Conversation", PATH, &why),
    };
    let title = format!("Conversation {id} of {user}");
    layout::page(
        &pages,
        &visit,
        &title,
        PATH,
        &html! {
            p { b { (line(text(&conversation, "title"))) } " " (layout::moment(number(&conversation, "began_wall_ms"))) }
            @if let Some(summary) = conversation["summary"]["text"].as_str() {
                details { summary { "What the model is told of its beginning" } p.lines { (summary) } }
            }
            (messages(&conversation))
            div.row {
                a.button href=(format!("{EXPORT}?{}", query(&[("user", &user), ("id", &id)]))) { "Export" }
                (layout::confirmed(
                    &visit,
                    ERASE,
                    ("Erase", &format!("conversation {id}"), "It is erased for good, also from the store's file."),
                    &[("user", &user), ("id", &id)],
                ))
            }
            p { a href=(format!("{PATH}?{}", query(&[("user", &user)]))) { "All conversations of " (user) } }
        },
    )
}

/// What was said, without calls of tools.
fn messages(conversation: &Value) -> Markup {
    let said = conversation["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        ol.said {
            @for message in said {
                @let role = message["message"]["role"].as_str().unwrap_or_default();
                @let parts = message["message"]["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
                @let words: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
                @if !words.is_empty() && matches!(role, "user" | "assistant") {
                    li .(role) {
                        p.soft { (if role == "user" { "Wearer" } else { "Lorgnette" }) ", " (layout::moment(number(message, "wall_ms"))) }
                        p.lines { (words) }
                    }
                }
            }
        }
    }
}

async fn search(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    if !visit.is_operator() {
        return operators_only();
    }
    let (user, words) = (visit.query.get("user").to_owned(), visit.query.get("words").to_owned());
    let found = read(&pages, &visit, MemoryRequest::Search { user: user.clone(), query: words.clone() }).await;
    let content = match found {
        Ok(found) => found_table(&user, &found),
        Err(why) => why,
    };
    layout::page(
        &pages,
        &visit,
        "Search",
        PATH,
        &html! {
            form.fields method="get" action=(SEARCH) {
                input type="hidden" name="user" value=(user);
                (field("words", "Words", &words))
                button { "Search" }
            }
            (content)
            p { a href=(format!("{PATH}?{}", query(&[("user", &user)]))) { "All conversations of " (user) } }
        },
    )
}

fn found_table(user: &str, found: &[Value]) -> Markup {
    let rows = found.iter().map(|message| {
        let id = number(message, "conversation").to_string();
        vec![
            layout::moment(number(message, "wall_ms")),
            html! { (if message["by"] == "user" { "Wearer" } else { "Lorgnette" }) },
            html! { (line(text(message, "text"))) },
            html! { a href=(format!("{ONE}?{}", query(&[("user", user), ("id", &id)]))) { "Conversation " (id) } },
        ]
    });
    html! { (Table::new("Found", &["When", "Who", "Words", "Where"]).rows(rows).or("Nobody said this.")) }
}

/// One JSON object per line and conversation.
async fn export(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    if !visit.is_operator() {
        return operators_only();
    }
    let user = visit.query.get("user").to_owned();
    let ids: VecDeque<u64> = match visit.query.get("id").parse() {
        Ok(id) => VecDeque::from([id]),
        Err(_) => match read(&pages, &visit, MemoryRequest::Conversations { user: user.clone() }).await {
            Ok(found) => found.iter().filter_map(|conversation| conversation["id"].as_u64()).collect(),
            Err(_) => return layout::refusal(StatusCode::BAD_REQUEST, "Name a user."),
        },
    };
    let next = async |(pages, visit, user, mut ids): (Pages, Visit, String, VecDeque<u64>)| {
        while let Some(id) = ids.pop_front() {
            // One that was erased meanwhile is left out.
            let found = read(&pages, &visit, MemoryRequest::Conversation { user: user.clone(), id }).await;
            if let Ok(Some(conversation)) = found.map(|mut found| found.pop()) {
                let line = Bytes::from(format!("{conversation}\n"));
                return Some((Ok::<_, Infallible>(line), (pages, visit, user, ids)));
            }
        }
        None
    };
    let body = Body::from_stream(stream::unfold((pages, visit, user, ids), next));
    let headers = [
        (header::CONTENT_TYPE, "application/jsonl; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"conversations.jsonl\""),
    ];
    (headers, body).into_response()
}

async fn erase(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let user = visit.form.get("user").to_owned();
    let id = match visit.form.some("id").map(|id| id.parse()).transpose() {
        Ok(id) => id,
        Err(_) => return layout::refusal(StatusCode::BAD_REQUEST, "Name a conversation."),
    };
    let back = format!("{PATH}?{}", query(&[("user", &user)]));
    pages.act(&visit, Request::Memory { request: MemoryRequest::EraseConversations { user, id } }, &back).await
}
