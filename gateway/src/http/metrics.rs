//! `/metrics`: the gateway's numbers in Prometheus's text format, for a monitoring system. Nothing in it tells who was
//! here, or what was said: labels are names of parts, of MCP servers, and of this program's own words.
//!
//! The format is written by hand: every number is kept where it arises, for `lorgnette status` and the tools too, and a
//! library would want to keep it once more. Format: <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::{fmt::Write as _, sync::Arc};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    middleware::from_fn_with_state,
    response::{IntoResponse as _, Response},
    routing::any,
};
use gateway_core::vocab::MicrophoneFault;
use serde_json::Value;
use tools::inspection::system::{System, SystemState, SystemStatus};

use super::{
    access::{self, Names},
    peer::Peer,
    reply::Text,
};
use crate::{
    speech::elsewhere::HERE,
    telemetry::histogram::{BOUNDS_US, Histogram, Histograms},
};

/// What does not work is one of these parts.
const PARTS: [&str; 6] = ["gateway", "users", "disk", "store", "descriptors", "erasures"];

/// What is told, and to whom.
#[derive(Clone)]
pub(crate) struct Metrics {
    /// The state of the gateway.
    pub(crate) system: Arc<dyn System>,
    /// Durations.
    pub(crate) histograms: Arc<Histograms>,
    /// Whether other machines may read it, too.
    pub(crate) elsewhere: bool,
}

pub(super) fn routes(metrics: Metrics, names: Names) -> Router {
    let router = Router::new().route("/metrics", any(answer)).layer(from_fn_with_state(names, access::by_name));
    router.with_state(metrics)
}

async fn answer(State(metrics): State<Metrics>, peer: Peer) -> Response {
    const ELSEWHERE: Text = (
        StatusCode::FORBIDDEN,
        "metrics are for programs on this machine; for a monitoring system on another one, set `listen.metrics_elsewhere`\n",
    );
    if !metrics.elsewhere && !peer.is_here() {
        return ELSEWHERE.into_response();
    }
    match metrics.system.state().await {
        Ok(state) => {
            let text = exposition(&state, &metrics.histograms);
            (StatusCode::OK, [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
        }
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
    }
}

/// All families.
fn exposition(state: &SystemState, histograms: &Histograms) -> String {
    let mut out = Exposition(String::new());
    out.status(&state.status);
    out.limits(&state.limits);
    out.microphones(&state.limits);
    out.engines(&state.limits);
    out.servers(&state.servers);
    out.histograms(histograms);
    out.0
}

/// Text in the format.
struct Exposition(String);

impl Exposition {
    // Writing to a string cannot fail.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _written = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.0.push_str(name);
        if !labels.is_empty() {
            let labels: Vec<String> =
                labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
            let _written = write!(self.0, "{{{}}}", labels.join(","));
        }
        let _written = writeln!(self.0, " {value}");
    }

    /// A family of one number, if it is known.
    fn one(&mut self, name: &str, kind: &str, help: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.family(name, kind, help);
            self.sample(name, &[], value);
        }
    }

    fn gauge(&mut self, name: &str, help: &str, value: Option<f64>) {
        self.one(name, "gauge", help, value);
    }

    fn status(&mut self, status: &SystemStatus) {
        self.family("lorgnette_build_info", "gauge", "The version that runs.");
        self.sample("lorgnette_build_info", &[("version", &status.version)], 1.0);
        self.gauge("lorgnette_uptime_seconds", "Seconds since the start.", Some(status.uptime_s as f64));
        self.family("lorgnette_problem", "gauge", "Whether a part does not work.");
        for part in PARTS {
            let is_broken = status.problems.iter().any(|problem| problem.part == part);
            self.sample("lorgnette_problem", &[("part", part)], f64::from(u8::from(is_broken)));
        }
        let memory = status.memory.map(|memory| memory.gateway_bytes as f64);
        self.gauge("process_resident_memory_bytes", "Memory of the gateway.", memory);
        let free = status.disk.map(|disk| disk.free_bytes as f64);
        self.gauge("lorgnette_disk_free_bytes", "Free space for the data folder.", free);
        self.gauge("lorgnette_temperature_celsius", "Temperature of the processor.", status.temperature_c);
    }

    fn limits(&mut self, limits: &Value) {
        let number = |pointer: &str| limits.pointer(pointer).and_then(Value::as_f64);
        for (name, part, what) in [
            ("lorgnette_sessions", "sessions", "Devices in a session"),
            ("lorgnette_users", "users", "Users with a running task"),
            ("lorgnette_connections", "connections", "Open connections"),
            ("lorgnette_store_bytes", "store_bytes", "Bytes of the store"),
        ] {
            self.gauge(name, &format!("{what}."), number(&format!("/{part}/used")));
            self.gauge(&format!("{name}_max"), &format!("{what}, at most."), number(&format!("/{part}/max")));
        }
        self.gauge("process_open_fds", "Open file descriptors.", number("/descriptors/used"));
        self.gauge("process_max_fds", "File descriptors at most.", number("/descriptors/max"));
        self.gauge("lorgnette_questions_open", "Questions to wearers that are open.", number("/questions_open"));
        let empty = Vec::new();
        let queues = limits["queues"].as_array().unwrap_or(&empty);
        let of_queues = |out: &mut Self, name: &str, field: &str| {
            for queue in queues {
                let label = [("queue", queue["name"].as_str().unwrap_or_default())];
                out.sample(name, &label, queue[field].as_f64().unwrap_or_default());
            }
        };
        self.family("lorgnette_queue_waiting", "gauge", "Jobs that wait.");
        of_queues(self, "lorgnette_queue_waiting", "waiting");
        self.family("lorgnette_queue_refused_total", "counter", "Jobs refused because too many waited.");
        of_queues(self, "lorgnette_queue_refused_total", "refused");
        self.gauge("lorgnette_decodes_running", "Decodes that run.", number("/recognition/running"));
        self.gauge("lorgnette_decodes_waiting", "Decodes that wait.", number("/recognition/waiting"));
        self.family("lorgnette_decodes_dropped_total", "counter", "Decodes dropped for lack of time, by kind.");
        for kind in ["partial", "second_pass", "overheard", "unsure", "addressed"] {
            let count = number(&format!("/recognition/left_out/{kind}")).unwrap_or_default();
            self.sample("lorgnette_decodes_dropped_total", &[("kind", kind)], count);
        }
        let wake = |name: &str| number(&format!("/recognition/wake/{name}"));
        if wake("heard").is_some() {
            self.family(
                "lorgnette_wake_phrases_total",
                "counter",
                "Wake phrases in the sound, by what became of them.",
            );
            for outcome in ["heard", "verified", "vetoed"] {
                let count = wake(outcome).unwrap_or_default();
                self.sample("lorgnette_wake_phrases_total", &[("outcome", outcome)], count);
            }
            self.one(
                "lorgnette_utterances_unheard_total",
                "counter",
                "Utterances that were not decoded, because no wake phrase was heard in them.",
                wake("unheard"),
            );
            self.one(
                "lorgnette_utterances_skipped_total",
                "counter",
                "Utterances in which wake phrases were not listened for in full.",
                wake("skipped"),
            );
        }
        self.one(
            "lorgnette_frames_received_total",
            "counter",
            "Packets of sound that were decoded, in ended sessions.",
            number("/packets/heard"),
        );
        self.family(
            "lorgnette_frames_dropped_total",
            "counter",
            "Packets of sound that were given up, in ended sessions.",
        );
        let lost = number("/packets/lost").unwrap_or_default();
        self.sample("lorgnette_frames_dropped_total", &[("reason", "lost")], lost);
        for (name, what) in
            [("sent", "Turns that a collector has taken."), ("dropped", "Turns that no collector has taken.")]
        {
            let count = number(&format!("/traces/{name}"));
            self.one(&format!("lorgnette_traces_{name}_total"), "counter", what, count);
        }
        let dropped = number("/log_lines_dropped");
        self.one("lorgnette_log_lines_dropped_total", "counter", "Lines of the log that were not stored.", dropped);
    }

    /// What is wrong with microphones.
    fn microphones(&mut self, limits: &Value) {
        self.family("lorgnette_microphone_faults", "gauge", "Sessions whose microphone has a fault, by its sound.");
        for fault in MicrophoneFault::ALL.map(MicrophoneFault::name) {
            let count = limits.pointer(&format!("/microphone_faults/{fault}")).and_then(Value::as_f64);
            self.sample("lorgnette_microphone_faults", &[("fault", fault)], count.unwrap_or_default());
        }
    }

    /// Engines outside of the gateway, and this machine's own for the same parts.
    fn engines(&mut self, limits: &Value) {
        let engines: Vec<(&Value, [(&str, &str); 2])> = limits["elsewhere"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|engine| {
                let place = if engine["place"] == HERE { "here" } else { "elsewhere" };
                (engine, [("part", engine["part"].as_str().unwrap_or_default()), ("place", place)])
            })
            .collect();
        if engines.is_empty() {
            return;
        }
        let number = |engine: &Value, field: &str| engine[field].as_f64();
        let name = "lorgnette_engine_requests_total";
        self.family(name, "counter", "Requests to recognition and speech, by place and outcome.");
        for (engine, labels) in &engines {
            for outcome in ["answered", "failed"] {
                let labels = [&labels[..], &[("outcome", outcome)]].concat();
                self.sample(name, &labels, number(engine, outcome).unwrap_or_default());
            }
        }
        let name = "lorgnette_engine_seconds";
        self.family(name, "summary", "Time of the latest answers of recognition and speech.");
        for (engine, labels) in &engines {
            for (field, quantile) in [("p50_ms", "0.5"), ("p95_ms", "0.95")] {
                if let Some(ms) = number(engine, field) {
                    self.sample(name, &[&labels[..], &[("quantile", quantile)]].concat(), ms / 1e3);
                }
            }
            self.sample(&format!("{name}_sum"), labels, number(engine, "total_ms").unwrap_or_default() / 1e3);
            self.sample(&format!("{name}_count"), labels, number(engine, "answered").unwrap_or_default());
        }
        let name = "lorgnette_engine_rests";
        self.family(name, "gauge", "Whether an engine elsewhere has failed and is not asked for a while.");
        for (engine, labels) in engines.iter().filter(|(_, labels)| labels[1].1 == "elsewhere") {
            self.sample(name, labels, f64::from(u8::from(!engine["rests_s"].is_null())));
        }
    }

    fn servers(&mut self, servers: &[Value]) {
        self.family("lorgnette_mcp_server_up", "gauge", "Whether an MCP server behind the gateway is up.");
        for server in servers {
            let name = server["name"].as_str().unwrap_or_default();
            let is_up = server["state"] == "up";
            self.sample("lorgnette_mcp_server_up", &[("server", name)], f64::from(u8::from(is_up)));
        }
    }

    fn histograms(&mut self, histograms: &Histograms) {
        let name = "lorgnette_turn_stage_seconds";
        self.family(name, "histogram", "From the last voiced sample, or from a typed text, to a stage of its turn.");
        for (stage, histogram) in histograms.stages() {
            self.histogram(name, &[("stage", stage)], &histogram);
        }
        let name = "lorgnette_asr_queue_seconds";
        self.family(name, "histogram", "Wait of a final decode for a thread.");
        self.histogram(name, &[], &histograms.asr_queues());
        let name = "lorgnette_tool_call_seconds";
        self.family(name, "histogram", "Calls of tools, by kind of their source and by outcome.");
        for ((source, outcome), histogram) in histograms.tool_calls() {
            self.histogram(name, &[("source", source), ("outcome", outcome)], &histogram);
        }
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        let (bucket, mut below) = (format!("{name}_bucket"), 0);
        for (bound, count) in BOUNDS_US.iter().zip(histogram.buckets) {
            below += count;
            let le = seconds(*bound).to_string();
            self.sample(&bucket, &[labels, &[("le", &le)]].concat(), below as f64);
        }
        self.sample(&bucket, &[labels, &[("le", "+Inf")]].concat(), histogram.count as f64);
        self.sample(&format!("{name}_sum"), labels, seconds(histogram.sum_us));
        self.sample(&format!("{name}_count"), labels, histogram.count as f64);
    }
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

/// The value of a label, in quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_stand_under_their_names() {
        let histograms = Histograms::default();
        histograms.stage("final", 600_000);
        histograms.tool_call("mcp", "timeout", 30_000_001);
        let state = SystemState {
            limits: json!({"sessions": {"used": 2, "max": 128}, "microphone_faults": {"dead": 1, "quiet": 0}, "queues": [{"name": "long reads", "waiting": 1, "refused": 3}],
                "elsewhere": [
                    {"part": "recognition", "place": "m at http://x", "answered": 4, "failed": 1, "p50_ms": 250, "p95_ms": 900,
                     "total_ms": 1500, "rests_s": 7},
                    {"part": "recognition", "place": "this machine", "answered": 2, "failed": 0, "p50_ms": null, "p95_ms": null,
                     "total_ms": 80, "rests_s": null}]}),
            servers: vec![json!({"name": "a\"b\\c", "state": "down"})],
            ..SystemState::default()
        };
        let text = exposition(&state, &histograms);
        for line in [
            "# TYPE lorgnette_sessions gauge",
            "lorgnette_sessions 2",
            "lorgnette_sessions_max 128",
            "lorgnette_queue_refused_total{queue=\"long reads\"} 3",
            "lorgnette_mcp_server_up{server=\"a\\\"b\\\\c\"} 0",
            "lorgnette_problem{part=\"store\"} 0",
            "lorgnette_microphone_faults{fault=\"dead\"} 1",
            "lorgnette_microphone_faults{fault=\"clipping\"} 0",
            "lorgnette_turn_stage_seconds_bucket{stage=\"final\",le=\"0.5\"} 0",
            "lorgnette_turn_stage_seconds_bucket{stage=\"final\",le=\"1\"} 1",
            "lorgnette_turn_stage_seconds_sum{stage=\"final\"} 0.6",
            "lorgnette_tool_call_seconds_bucket{source=\"mcp\",outcome=\"timeout\",le=\"120\"} 1",
            "lorgnette_tool_call_seconds_bucket{source=\"mcp\",outcome=\"timeout\",le=\"30\"} 0",
            "lorgnette_asr_queue_seconds_count 0",
            "lorgnette_engine_requests_total{part=\"recognition\",place=\"elsewhere\",outcome=\"failed\"} 1",
            "lorgnette_engine_requests_total{part=\"recognition\",place=\"here\",outcome=\"answered\"} 2",
            "lorgnette_engine_seconds{part=\"recognition\",place=\"elsewhere\",quantile=\"0.5\"} 0.25",
            "lorgnette_engine_seconds_sum{part=\"recognition\",place=\"elsewhere\"} 1.5",
            "lorgnette_engine_rests{part=\"recognition\",place=\"elsewhere\"} 1",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
        }
        assert!(!text.contains("lorgnette_store_bytes"), "what is not known is not told");
    }
}
