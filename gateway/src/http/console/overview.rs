//! The first page: how the gateway is.

use axum::{Extension, Router, extract::State, response::Response, routing::get};
use maud::{Markup, html};

use super::{
    Pages,
    layout::{self, badge, facts, seconds},
    paths::{DEVICES, HOME},
    table::Table,
    visit::Visit,
};
use crate::{
    control::{
        gather,
        status::{Queue, Status},
    },
    units::{bytes, number_of},
};

pub(super) fn routes() -> Router<Pages> {
    Router::new().route(HOME, get(show)).route("/console/", get(show))
}

async fn show(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let part = part(&pages).await;
    layout::page(&pages, &visit, "Overview", HOME, &layout::live("overview", "", &part))
}

pub(super) async fn part(pages: &Pages) -> Markup {
    let status = gather::status(&pages.admin).await;
    html! {
        @for problem in &status.problems {
            div.notice.bad { p { b { (problem.part) } ": " (problem.why) } }
        }
        div.cards {
            (gateway(&status))
            (people(&status))
            (machine(&status))
            (speech(&status))
        }
        h2 { "Queues" }
        (queues(&status.queues))
    }
}

fn gateway(status: &Status) -> Markup {
    html! {
        section.card aria-label="Gateway" {
            h2 { "Gateway" }
            (facts(&[
                ("State", match status.problems.len() {
                    0 => badge("good", "works"),
                    count => badge("bad", &number_of(count, "problem")),
                }),
                ("Version", html! { (status.version) }),
                ("Up for", html! { (seconds(status.up_s)) }),
                ("Pages, WebSocket", html! { (status.web) }),
                ("QUIC", html! { (status.quic.as_deref().unwrap_or("off")) }),
                ("Fingerprint", html! { code { (status.fingerprint) } }),
                ("Watched", html! { (if status.watchdog { "by the service manager" } else { "by no service manager" }) }),
            ]))
        }
    }
}

fn people(status: &Status) -> Markup {
    let lost = status.sessions.iter().filter(|(_, _, session)| session.lost_s.is_some()).count();
    html! {
        section.card aria-label="Sessions" {
            h2 { "Sessions" }
            (share("Sessions", status.sessions.len() as u64, status.sessions_max as u64, "sessions"))
            (share("Users", status.users as u64, status.users_max as u64, "users"))
            (facts(&[
                ("Without a link now", html! { (lost) }),
                ("Wait for pairing", html! { a href=(DEVICES) { (status.waiting) } }),
                ("Open questions", html! { a href="/console/approvals" { (status.questions) } }),
                ("Tools", html! { a href="/console/tools" { (status.tools) } }),
                ("Apps", html! { a href="/console/apps" { (status.apps) " installed, " (status.apps_running) " running" } }),
                ("MCP servers up", html! {
                    a href="/console/mcp" {
                        (status.mcp.iter().filter(|server| server.state == "up").count()) " of " (status.mcp.len())
                    }
                }),
            ]))
        }
    }
}

fn machine(status: &Status) -> Markup {
    let load = status.load.map(|[one, five, fifteen]| format!("{one:.2}, {five:.2}, {fifteen:.2}"));
    html! {
        section.card aria-label="Machine" {
            h2 { "Machine" }
            @if let Some(memory) = &status.memory {
                (amount("Memory", memory.total_bytes.saturating_sub(memory.available_bytes), memory.total_bytes))
            }
            @if let Some((free, all)) = status.disk { (amount("Disk", all.saturating_sub(free), all)) }
            @if let Some((used, most)) = status.store { (amount("Store", used, most)) }
            @if let Some((open, most)) = status.descriptors { (share("Files", open, most, "open")) }
            (facts(&[
                ("Load", html! { (load.as_deref().unwrap_or("unknown")) " on " (status.cores) " cores" }),
                ("Gateway's memory", html! {
                    (status.memory.map_or_else(|| "unknown".to_owned(), |memory| bytes(memory.gateway_bytes)))
                }),
                ("Temperature", html! {
                    (status.temperature_c.map_or_else(|| "unknown".to_owned(), |degrees| format!("{degrees:.0} °C")))
                }),
                ("Damaged records", match status.damaged {
                    0 => html! { "none" },
                    count => badge("bad", &count.to_string()),
                }),
            ]))
        }
    }
}

fn speech(status: &Status) -> Markup {
    let recogniser = &status.recogniser;
    let (heard, lost) = status.sound;
    let left_out = recogniser.left_out;
    html! {
        section.card aria-label="Speech" {
            h2 { "Speech" }
            @match &status.latency {
                Some(latency) => {
                    p.big { (latency.median_ms) " ms" }
                    p.soft { "from the last word to the first sound of the answer, in half of the latest " (latency.turns)
                             " spoken turns; " (latency.p90_ms) " ms in nine of ten" }
                }
                None => p.soft { "Nobody has spoken since the start." },
            }
            (facts(&[
                ("Recogniser", html! { (recogniser.model) ", " (recogniser.workers) " threads" }),
                ("Decodes", html! { (recogniser.running) " running, " (recogniser.waiting) " waiting" }),
                ("Elsewhere", html! {
                    @if status.elsewhere.is_empty() { "nothing" }
                    @for engine in &status.elsewhere { p { (engine) } }
                }),
                ("Left out", html! { (left_out.partial + left_out.second_pass + left_out.overheard + left_out.unsure) }),
                ("Sentences lost", html! { (recogniser.lost.0) " to the assistant, " (recogniser.lost.1) " others" }),
                ("Packets", html! { (heard) " heard, " (lost) " lost in ended sessions" }),
                ("Models", html! { a href="/console/models" { (status.models.join(", ")) } }),
            ]))
        }
    }
}

fn queues(queues: &[Queue]) -> Markup {
    let rows = queues.iter().map(|queue| {
        let refused = if queue.refused > 0 {
            badge("warn", &queue.refused.to_string())
        } else {
            html! { "0" }
        };
        vec![html! { (queue.name) }, html! { (queue.waiting) }, refused]
    });
    html! { (Table::new("Queues", &["Queue", "Waiting", "Refused since the start"]).rows(rows)) }
}

/// A used part of a maximum, drawn and in words.
fn share(name: &str, used: u64, most: u64, unit: &str) -> Markup {
    meter(name, used, most, &format!("{used} of {most} {unit}"))
}

fn amount(name: &str, used: u64, most: u64) -> Markup {
    meter(name, used, most, &format!("{} of {}", bytes(used), bytes(most)))
}

fn meter(name: &str, used: u64, most: u64, words: &str) -> Markup {
    let most = most.max(1);
    html! {
        div.meter {
            span { (name) }
            span { (words) }
            meter aria-label=(name) min="0" max=(most) high=(most / 10 * 9) value=(used.min(most)) { (words) }
        }
    }
}
