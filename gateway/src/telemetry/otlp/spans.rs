//! A record of a turn as a trace of OpenTelemetry: the turn is the root span, its stages are below it. Nothing in it tells what
//! was said, or by whom.
//!
//! Form: <https://opentelemetry.io/docs/specs/otlp/>, by the project's own definitions.

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    resource::v1::Resource,
    trace::v1::{
        ResourceSpans, ScopeSpans, Span, Status,
        span::{Event, SpanKind},
        status::StatusCode,
    },
};

use crate::telemetry::TurnRecord;

/// The name of the service, and of what makes the spans.
const SERVICE: &str = "lorgnette";
const SCOPE: &str = "lorgnette.turns";

/// A finished turn that waits to be sent.
#[derive(Clone, Debug)]
pub(super) struct Finished {
    pub(super) record: TurnRecord,
    /// Wall time minus the gateway's clock, in microseconds.
    pub(super) offset_us: i64,
    /// Random.
    pub(super) trace: [u8; 16],
}

/// A request with these turns.
pub(super) fn request(turns: &[Finished]) -> ExportTraceServiceRequest {
    let attributes = vec![text("service.name", SERVICE), text("service.version", env!("CARGO_PKG_VERSION"))];
    let scope = InstrumentationScope {
        name: SCOPE.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let spans = turns.iter().flat_map(spans).collect();
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource { attributes, ..Resource::default() }),
            scope_spans: vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }],
            ..ResourceSpans::default()
        }],
    }
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn number(key: &str, value: u64) -> KeyValue {
    attribute(key, Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX)))
}

/// Microseconds as attributes, where they are known.
fn durations(parts: [(&str, Option<u64>); 2]) -> Vec<KeyValue> {
    parts.into_iter().filter_map(|(key, us)| Some(number(key, us?))).collect()
}

/// The spans of a turn, the root first. A turn of which no time is known has none.
fn spans(turn: &Finished) -> Vec<Span> {
    let record = &turn.record;
    let began = record.last_voice_us.or(record.final_us);
    let marks = [
        began,
        record.end_decided_us,
        record.final_us,
        record.request_sent_us,
        record.model_first_us,
        record.tool_end_us,
        record.first_display_us,
        record.first_frame_us,
        record.heard_us,
    ];
    let (Some(first), Some(last)) = (began, marks.into_iter().flatten().max()) else { return Vec::new() };
    let mut root = span(turn, 0, "turn", (first, last.max(first)));
    root.attributes = about(record);
    root.status = Some(Status {
        code: if record.outcome == "failed" { StatusCode::Error } else { StatusCode::Unset }.into(),
        ..Status::default()
    });
    root.events = record.first_display_us.map(|at| event(turn, "first_display", at)).into_iter().collect();
    let asr = durations([("asr.queue_us", record.asr_queue_us), ("asr.decode_us", record.asr_decode_us)]);
    let tts = durations([("tts.queue_us", record.tts_queue_us), ("tts.synthesis_us", record.tts_us)]);
    let stages = [
        ("end_of_turn", record.last_voice_us, record.end_decided_us, Vec::new()),
        // A text that was typed is not recognised.
        ("recognition", record.last_voice_us.and(record.end_decided_us), record.final_us, asr),
        ("request", record.final_us, record.request_sent_us, Vec::new()),
        ("model", record.request_sent_us.or(record.final_us), record.model_first_us, Vec::new()),
        ("tools", record.tool_start_us, record.tool_end_us, Vec::new()),
        ("speech", record.first_clause_us, record.first_frame_us, tts),
        ("playback", record.first_frame_us, record.heard_us, Vec::new()),
    ];
    let mut all = vec![root];
    for (name, from, to, attributes) in stages {
        if let (Some(from), Some(to)) = (from, to) {
            let number = u64::try_from(all.len()).unwrap_or(u64::MAX);
            let stage = span(turn, number, name, (from, to.max(from)));
            let parent_span_id = id(&turn.trace, 0);
            all.push(Span { parent_span_id, attributes, ..stage });
        }
    }
    all
}

fn about(record: &TurnRecord) -> Vec<KeyValue> {
    let numbers = [
        ("lorgnette.turn", Some(u64::from(record.turn))),
        ("lorgnette.requests", Some(u64::from(record.requests))),
        ("lorgnette.restarts", Some(u64::from(record.restarts))),
        ("lorgnette.model.rank", record.model_rank.map(u64::from)),
        ("lorgnette.tools.known", record.tools_known.map(u64::from)),
        ("lorgnette.tools.offered", record.tools_offered.map(u64::from)),
        ("lorgnette.network_us", record.network_us),
        ("lorgnette.ear_us", record.ear_us),
        ("gen_ai.usage.input_tokens", Some(record.input_tokens)),
        ("gen_ai.usage.output_tokens", Some(record.output_tokens)),
    ];
    let texts = [("lorgnette.transport", record.transport), ("lorgnette.outcome", record.outcome)];
    let score = record.end_score.map(|score| attribute("lorgnette.end_score", Value::DoubleValue(f64::from(score))));
    let numbers = numbers.into_iter().filter_map(|(key, value)| Some(number(key, value?)));
    texts.into_iter().map(|(key, value)| text(key, value)).chain(numbers).chain(score).collect()
}

fn span(turn: &Finished, number: u64, name: &str, (from, to): (u64, u64)) -> Span {
    Span {
        trace_id: turn.trace.to_vec(),
        span_id: id(&turn.trace, number),
        name: name.to_owned(),
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: nanos(turn, from),
        end_time_unix_nano: nanos(turn, to),
        ..Span::default()
    }
}

fn event(turn: &Finished, name: &str, at_us: u64) -> Event {
    Event { time_unix_nano: nanos(turn, at_us), name: name.to_owned(), ..Event::default() }
}

/// A span's id, derived from the trace's id and the span's number. Never zero: that would mean no id.
fn id(trace: &[u8; 16], number: u64) -> Vec<u8> {
    let base = trace.last_chunk::<8>().map_or(1, |bytes| u64::from_be_bytes(*bytes));
    // The highest bit stands, and the sum of the others cannot reach it for as few spans as a turn has.
    let id = ((base >> 2) + number) | (1 << 63);
    id.to_be_bytes().to_vec()
}

/// Nanoseconds since the Unix epoch of a time of the gateway's clock.
fn nanos(turn: &Finished, us: u64) -> u64 {
    us.saturating_add_signed(turn.offset_us).saturating_mul(1_000)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn finished(record: TurnRecord) -> Finished {
        Finished { record, offset_us: 1_000_000, trace: [0xff; 16] }
    }

    /// As a turn that a wearer has spoken, and that called a tool.
    fn spoken() -> TurnRecord {
        TurnRecord {
            device: "3f9a61c0".to_owned(),
            transport: "wss",
            turn: 7,
            outcome: "completed",
            input_tokens: 40,
            last_voice_us: Some(100),
            end_decided_us: Some(300),
            asr_decode_us: Some(150),
            final_us: Some(400),
            request_sent_us: Some(450),
            model_first_us: Some(900),
            tool_start_us: Some(910),
            tool_end_us: Some(950),
            first_display_us: Some(960),
            first_clause_us: Some(970),
            tts_us: Some(20),
            first_frame_us: Some(1_000),
            heard_us: Some(1_500),
            ..TurnRecord::default()
        }
    }

    #[test]
    fn stages_lie_below_their_turn_and_in_its_time() {
        let all = spans(&finished(spoken()));
        let names: Vec<_> = all.iter().map(|span| span.name.as_str()).collect();
        let stages = ["turn", "end_of_turn", "recognition", "request", "model", "tools", "speech", "playback"];
        assert_eq!(names, stages);
        let root = &all[0];
        assert_eq!((root.start_time_unix_nano, root.end_time_unix_nano), (1_000_100_000, 1_001_500_000));
        assert!(root.parent_span_id.is_empty() && root.events.len() == 1);
        for span in &all[1..] {
            assert_eq!((&span.parent_span_id, &span.trace_id), (&root.span_id, &root.trace_id), "{}", span.name);
            let within = root.start_time_unix_nano..=root.end_time_unix_nano;
            assert!(within.contains(&span.start_time_unix_nano) && within.contains(&span.end_time_unix_nano));
            assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        }
        let ids: BTreeSet<_> = all.iter().map(|span| span.span_id.clone()).collect();
        assert!(ids.len() == all.len() && ids.iter().all(|id| id.len() == 8));
    }

    #[test]
    fn a_typed_turn_a_failed_one_and_one_without_times() {
        let typed = TurnRecord { transport: "text", final_us: Some(5), heard_us: Some(9), ..TurnRecord::default() };
        let all = spans(&finished(typed.clone()));
        assert_eq!(all.len(), 1, "{all:?}");
        let failed = TurnRecord { outcome: "failed", ..typed };
        let status = spans(&finished(failed))[0].status.clone().unwrap();
        assert_eq!(status.code, i32::from(StatusCode::Error));
        assert!(spans(&finished(TurnRecord::default())).is_empty());
        // A stage that was reached before the one that it follows, as after a restart.
        let back = TurnRecord { final_us: Some(50), request_sent_us: Some(20), ..TurnRecord::default() };
        let all = spans(&finished(back));
        assert_eq!(all[1].start_time_unix_nano, all[1].end_time_unix_nano);
    }

    #[test]
    fn nobody_is_named() {
        let told = format!("{:?}", request(&[finished(spoken())]));
        assert!(told.contains("lorgnette.transport") && !told.contains("3f9a61c0"), "{told}");
    }
}
