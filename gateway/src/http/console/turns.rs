//! Turns: where the time of each went, and how long wearers waited over time.

use axum::{Extension, Router, extract::State, http::StatusCode, response::Response, routing::get};
use maud::{Markup, html};
use serde_json::Value;
use tools::inspection::moment;

use super::{
    Pages,
    layout::{self, badge, facts, query, short},
    paths,
    plot::{self, Bar, Series},
    table::Table,
    visit::Visit,
};
use crate::{
    clock,
    control::{Answer, Request},
    runtime::on_own_thread,
    telemetry::spans::{Kind, columns, kinds, share},
    units::number_of,
};

const PATH: &str = "/console/turns";
const ONE: &str = "/console/turns/one";
/// Turns of this run that are listed.
const LISTED_MAX: usize = 50;
/// Turns that percentiles are made of: all that are stored.
const STORED_MAX: usize = 10_000;
/// Points of a line over time.
const STEPS: usize = 24;
/// Ranges of time that can be chosen: value, label.
const RANGES: [(&str, &str); 4] = [("1h", "1 hour"), ("24h", "24 hours"), ("7d", "7 days"), ("30d", "30 days")];

pub(super) fn routes() -> Router<Pages> {
    Router::new().route(PATH, get(show)).route(ONE, get(one))
}

async fn show(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let wanted = visit.query.get("since");
    let since = RANGES.iter().map(|(value, _)| *value).find(|value| *value == wanted).unwrap_or("24h");
    let now_ms = clock::wall_ms();
    let since_ms = moment::parse(since, now_ms).unwrap_or(now_ms);
    let request = Request::StoredTurns { count: STORED_MAX, since_wall_ms: since_ms, until_wall_ms: None };
    // One page at a time: all turns are some megabytes. Held until it is drawn, also where its reader has gone.
    let place = pages.drawing.clone().lock_owned().await;
    let over_time = match pages.ask(request).await {
        Ok(Answer::Turns { turns }) => {
            let drawing = on_own_thread(move || {
                let _place = place;
                over_time(&turns, since_ms, now_ms)
            });
            drawing.await.unwrap_or_else(|_fell| layout::unavailable(Err("they could not be drawn".to_owned())))
        }
        other => layout::unavailable(other),
    };
    let latest = part(&pages).await;
    layout::page(
        &pages,
        &visit,
        "Turns",
        PATH,
        &html! {
            p.soft { "Times count from the last voiced sample of a request, or from a typed text." }
            form.fields method="get" action=(PATH) {
                (layout::choice("since", "Since", since, &RANGES))
                button { "Show" }
            }
            (over_time)
            h2 { "Latest turns of this run" }
            (legend())
            (layout::live("turns", "", &latest))
        },
    )
}

pub(super) async fn part(pages: &Pages) -> Markup {
    match pages.ask(Request::Turns { count: LISTED_MAX }).await {
        Ok(Answer::Turns { turns }) => table(turns.iter().rev()),
        other => layout::unavailable(other),
    }
}

/// From the beginning of a turn to the first that a wearer perceives, in milliseconds.
fn wait_ms(turn: &Value) -> Option<f64> {
    let at = |name: &str| turn[name].as_u64();
    let answered = [at("first_frame_us"), at("first_display_us")].into_iter().flatten().min()?;
    Some(answered.saturating_sub(began(turn)?) as f64 / 1e3)
}

fn began(turn: &Value) -> Option<u64> {
    turn["last_voice_us"].as_u64().or(turn["final_us"].as_u64())
}

fn over_time(turns: &[Value], since_ms: i64, now_ms: i64) -> Markup {
    let mut steps: Vec<Vec<u64>> = vec![Vec::new(); STEPS];
    let length = (now_ms.saturating_sub(since_ms) / STEPS as i64).max(1);
    for turn in turns {
        let at = turn["ended_wall_ms"].as_i64().map(|ended| ended.saturating_sub(since_ms) / length);
        let step = at.and_then(|at| usize::try_from(at).ok()).map(|at| at.min(STEPS - 1));
        if let (Some(step), Some(wait)) = (step.and_then(|step| steps.get_mut(step)), wait_ms(turn)) {
            step.push(wait as u64);
        }
    }
    steps.iter_mut().for_each(|step| step.sort_unstable());
    let series = |name, class, percent| Series {
        name,
        class,
        values: steps.iter().map(|step| share(step, percent).map(|ms| ms as f64)).collect(),
    };
    let written = |wall_ms| jiff::Timestamp::from_millisecond(wall_ms).map(|at| at.to_zoned(clock::zone()));
    let end = |wall_ms| written(wall_ms).map(|at| at.strftime("%b %d, %H:%M").to_string()).unwrap_or_default();
    html! {
        @if turns.is_empty() {
            p.soft { "No turns in this time." }
        } @else {
            (plot::lines(
                "Wait for the first word of an answer",
                "ms",
                &[series("half of the turns", "one", 50), series("95 of 100", "two", 95)],
                (&end(since_ms), &end(now_ms)),
            ))
            details {
                summary { "Percentiles of every stage (" (turns.len()) " turns)" }
                (stages(turns))
            }
        }
    }
}

/// Of each kind of turns that there are.
fn stages(turns: &[Value]) -> Markup {
    html! {
        @for kind in kinds(turns).into_iter().filter(|kind| !kind.turns.is_empty()) {
            (of_kind(kind))
        }
    }
}

fn of_kind(Kind { name, from, turns }: Kind<'_>) -> Markup {
    let count = turns.len();
    let rows = columns(turns).into_iter().map(|(stage, sorted)| {
        let cell = |percent| match share(&sorted, percent) {
            Some(us) => html! { (plot::number(us as f64 / 1e3)) " ms" },
            None => html! { "none" },
        };
        vec![html! { (stage) }, html! { (sorted.len()) }, cell(50), cell(90), cell(95), cell(99)]
    });
    html! {
        p.soft { (number_of(count, &format!("{name} turn"))) ", from " (from) " on" }
        (Table::new("Percentiles", &["Stage", "Turns", "p50", "p90", "p95", "p99"]).rows(rows))
    }
}

/// Turns with their parts drawn.
pub(super) fn table<'a>(turns: impl Iterator<Item = &'a Value>) -> Markup {
    let turns: Vec<&Value> = turns.collect();
    let most = turns.iter().flat_map(|turn| bars(turn)).map(|bar| bar.to_ms).fold(1.0, f64::max);
    let columns = ["Turn", "Ended", "Glasses", "Outcome", "First answer", "Where the time went"];
    let rows = turns.iter().map(|turn| {
        let device = turn["device"].as_str().unwrap_or_default();
        let ended = turn["ended_wall_ms"].as_i64().unwrap_or_default();
        let link = query(&[("device", device), ("turn", &turn["turn"].to_string()), ("ended", &ended.to_string())]);
        vec![
            html! { a href=(format!("{ONE}?{link}")) { (turn["turn"].to_string()) } },
            layout::moment(ended),
            html! { code { (short(device)) } },
            outcome(turn),
            html! { (wait_ms(turn).map_or_else(|| "none".to_owned(), |ms| format!("{ms:.0} ms"))) },
            plot::strip(&bars(turn), most),
        ]
    });
    html! { (Table::new("Turns", &columns).rows(rows).or("No turns yet.")) }
}

fn outcome(turn: &Value) -> Markup {
    match turn["outcome"].as_str().unwrap_or_default() {
        "completed" => badge("good", "completed"),
        "failed" => badge("bad", "failed"),
        other => badge("warn", other),
    }
}

/// The parts of a turn: name, class, first and last field.
const PARTS: [(&str, &str, &str, &str); 8] = [
    ("end of turn", "end", "last_voice_us", "end_decided_us"),
    ("recognition", "asr", "end_decided_us", "final_us"),
    ("request", "ask", "final_us", "request_sent_us"),
    ("model", "model", "request_sent_us", "model_first_us"),
    ("tools", "tool", "tool_start_us", "tool_end_us"),
    ("first display", "show", "final_us", "first_display_us"),
    ("synthesis", "tts", "first_clause_us", "first_frame_us"),
    ("to the ear", "ear", "first_frame_us", "heard_us"),
];

/// What a turn came through.
fn bars(turn: &Value) -> Vec<Bar> {
    let Some(began) = began(turn) else { return Vec::new() };
    let ms = |name: &str| Some(turn[name].as_u64()?.saturating_sub(began) as f64 / 1e3);
    let bar = |(name, class, from, to): (&'static str, &'static str, &str, &str)| {
        let (from_ms, to_ms) = (ms(from)?, ms(to)?);
        (to_ms >= from_ms).then_some(Bar { name, class, from_ms, to_ms })
    };
    PARTS.into_iter().filter_map(bar).collect()
}

fn legend() -> Markup {
    html! { p.legend { @for (name, class, _, _) in PARTS { span.key .(class) { (name) } " " } } }
}

async fn one(State(pages): State<Pages>, Extension(visit): Extension<Visit>) -> Response {
    let ended: i64 = visit.query.get("ended").parse().unwrap_or_default();
    // Records are found by their time, over restarts.
    let request = Request::StoredTurns { count: STORED_MAX, since_wall_ms: ended, until_wall_ms: Some(ended) };
    let turns = match pages.ask(request).await {
        Ok(Answer::Turns { turns }) => turns,
        other => return layout::page(&pages, &visit, "Turn", PATH, &layout::unavailable(other)),
    };
    let (device, number) = (visit.query.get("device"), visit.query.get("turn").parse::<u64>().unwrap_or_default());
    let is_it = |turn: &&Value| turn["device"] == device && turn["turn"] == number && turn["ended_wall_ms"] == ended;
    let Some(turn) = turns.iter().find(is_it) else {
        return layout::refusal(StatusCode::NOT_FOUND, "No such turn is stored.");
    };
    let title = format!("Turn {number}");
    layout::page(
        &pages,
        &visit,
        &title,
        PATH,
        &html! {
            (known(turn, device))
            h2 { "Where the time went" }
            (plot::waterfall("The parts of the turn, in time", &bars(turn)))
            h2 { "Stages" }
            (numbers(turn))
            p { a href=(PATH) { "All turns" } }
        },
    )
}

fn known(turn: &Value, device: &str) -> Markup {
    let text = |name: &str| match &turn[name] {
        Value::Null => html! { "none" },
        Value::String(text) => html! { (text) },
        other => html! { (other.to_string()) },
    };
    html! {
        section.card aria-label="What is known" {
            (facts(&[
                ("Device", html! { a href=(paths::device(device)) { (short(device)) } }),
                ("Ended", layout::moment(turn["ended_wall_ms"].as_i64().unwrap_or_default())),
                ("Outcome", outcome(turn)),
                ("Via", text("transport")),
                ("Requests to models", text("requests")),
                ("Rank of the last model", text("model_rank")),
                ("Begun anew", text("restarts")),
                ("Tools offered, known", html! { (text("tools_offered")) ", " (text("tools_known")) }),
                ("Tokens in, out", html! { (text("input_tokens")) ", " (text("output_tokens")) }),
            ]))
        }
    }
}

fn numbers(turn: &Value) -> Markup {
    let one = [turn.clone()];
    let rows = columns(&one).into_iter().filter_map(|(stage, sorted)| {
        let us = sorted.first()?;
        Some(vec![html! { (stage) }, html! { (format!("{:.1} ms", *us as f64 / 1e3)) }])
    });
    html! {
        (Table::new("Stages", &["Stage", "Time"]).rows(rows))
        p.soft { "decode, queue, ask and tts are durations; all others count from the beginning of the turn." }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_turn_is_drawn_from_its_beginning_and_without_what_it_did_not_come_through() {
        let turn = json!({"last_voice_us": 1_000_000, "end_decided_us": 1_450_000, "final_us": 1_700_000,
            "first_display_us": 1_710_000, "first_clause_us": 1_705_000, "first_frame_us": 1_805_000, "model_first_us": null});
        let drawn: Vec<(&str, f64, f64)> =
            bars(&turn).into_iter().map(|bar| (bar.name, bar.from_ms, bar.to_ms)).collect();
        assert_eq!(
            drawn,
            [
                ("end of turn", 0.0, 450.0),
                ("recognition", 450.0, 700.0),
                ("first display", 700.0, 710.0),
                ("synthesis", 705.0, 805.0)
            ]
        );
        assert_eq!(wait_ms(&turn), Some(710.0));
        assert!(bars(&json!({})).is_empty() && wait_ms(&json!({"final_us": 3})).is_none());
    }

    #[test]
    fn turns_of_any_time_have_a_place() {
        let turn = |ended: i64| json!({"ended_wall_ms": ended, "final_us": 0, "first_display_us": 5_000});
        let turns = [turn(i64::MIN), turn(0), turn(50), turn(i64::MAX), json!({"ended_wall_ms": "x"})];
        let drawn = over_time(&turns, 0, 100).into_string();
        // Two series: at the beginning, in the middle, at the end.
        assert_eq!(drawn.matches("<circle").count(), 6, "{drawn}");
    }
}
