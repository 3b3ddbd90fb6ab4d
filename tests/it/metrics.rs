//! `/metrics`: in Prometheus's format, with the numbers of what happened, for programs on this machine.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    namespaces::{OUTSIDE, again_outside},
    world::{World, answered, text},
};

/// A sample: its name with its labels, and its value.
type Samples = BTreeMap<String, f64>;

/// Reads the text format as its description wants it, and more strictly: each family has its help and its type first, stands
/// together, and no sample is there twice.
fn parsed(text: &str) -> Samples {
    let (mut samples, mut families, mut current) = (Samples::new(), BTreeSet::new(), (String::new(), String::new()));
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').expect("words");
            assert!(!words.is_empty() && families.insert(name.to_owned()), "{line}");
            current = (name.to_owned(), String::new());
            continue;
        }
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a type");
            assert!(name == current.0 && ["gauge", "counter", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            current.1 = kind.to_owned();
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').expect("a value");
        let name = sample.split('{').next().unwrap_or_default();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{line}");
        let family = match current.1.as_str() {
            "histogram" => ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)),
            _ => Some(name),
        };
        assert_eq!(family, Some(current.0.as_str()), "{line}");
        if let Some(labels) = sample.strip_prefix(name).filter(|labels| !labels.is_empty()) {
            let inner = labels.strip_prefix('{').and_then(|labels| labels.strip_suffix("\"}")).expect("labels");
            for label in inner.split("\",") {
                let (name, value) = label.split_once("=\"").expect("a label");
                assert!(
                    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
                    "{line}"
                );
                assert!(!value.contains(['"', '\\']), "none of this test's labels needs that: {line}");
            }
        }
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        assert!(samples.insert(sample.to_owned(), value).is_none(), "twice: {line}");
    }
    samples
}

/// Buckets grow, and the last one has all.
fn check_histogram(samples: &Samples, name: &str, labels: &str) {
    let prefix = format!("{name}_bucket{{{labels}le=\"");
    let mut buckets: Vec<(f64, f64)> = samples
        .iter()
        .filter_map(|(sample, count)| Some((sample.strip_prefix(&prefix)?.strip_suffix("\"}")?, count)))
        .map(|(bound, count)| (bound.replace("+Inf", "inf").parse().expect("a bound"), *count))
        .collect();
    buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(buckets.len() > 10 && buckets.is_sorted_by(|a, b| a.1 <= b.1), "{buckets:?}");
    let labels = labels.trim_end_matches(',');
    let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    assert_eq!(buckets.last().map(|(_, count)| *count), samples.get(&format!("{name}_count{labels}")).copied());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_numbers_of_what_happened_are_told_to_this_machine() {
    if again_outside("metrics::the_numbers_of_what_happened_are_told_to_this_machine") {
        return;
    }
    // Nobody takes traces there.
    let traced = "[telemetry]\notlp = \"http://127.0.0.1:1\"\n";
    let world = World::tuned(traced, |config| config.listen.web = "0.0.0.0:0".parse().expect("an address")).await;
    let address = format!("http://127.0.0.1:{}/metrics", world.web().port());
    let read = async || {
        let answer = reqwest::get(&address).await.expect("an answer");
        assert_eq!(answer.status(), 200);
        let kind = answer.headers()["content-type"].to_str().expect("text").to_owned();
        assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
        answer.text().await.expect("its text")
    };
    let before = parsed(&read().await);
    assert_eq!((before["lorgnette_sessions"], before["lorgnette_sessions_max"]), (0.0, 128.0));
    assert_eq!(before[&format!("lorgnette_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"))], 1.0);
    assert!(!before.contains_key("lorgnette_turn_stage_seconds_count{stage=\"final\"}"));
    let mut glasses = world.glasses("wss", "glasses").await;
    text(&mut glasses, "take a note visit the elephant").await;
    answered(&mut glasses).await;
    let device = glasses.fingerprint().replace(['-', ':', ' '], "").to_lowercase();
    let (mut told, mut after) = (String::new(), Samples::new());
    assert_eq!((before["lorgnette_traces_sent_total"], before["lorgnette_traces_dropped_total"]), (0.0, 0.0));
    // The turn ends a moment after its answer was heard, and its trace is dropped another one later.
    while !after.contains_key("lorgnette_turn_stage_seconds_count{stage=\"heard\"}")
        || after["lorgnette_traces_dropped_total"] < 1.0
    {
        told = read().await;
        after = parsed(&told);
    }
    assert_eq!(after["lorgnette_sessions"], 1.0);
    for stage in ["final", "display", "speech", "heard"] {
        check_histogram(&after, "lorgnette_turn_stage_seconds", &format!("stage=\"{stage}\","));
    }
    check_histogram(&after, "lorgnette_asr_queue_seconds", "");
    check_histogram(&after, "lorgnette_tool_call_seconds", "source=\"built_in\",outcome=\"ok\",");
    assert_eq!(after["lorgnette_tool_call_seconds_count{source=\"built_in\",outcome=\"ok\"}"], 1.0);
    // Neither who was here, nor what was said.
    for word in ["elephant", "\"wearer\"", &device] {
        assert!(!told.to_lowercase().contains(word), "{word} in {told}");
    }
    let client = reqwest::Client::builder().danger_accept_invalid_certs(true).build().expect("a client");
    let refused = client.get(format!("https://{OUTSIDE}:{}/metrics", world.web().port())).send().await;
    let refused = refused.expect("an answer");
    assert_eq!(refused.status(), 403);
    assert!(refused.text().await.expect("words").contains("listen.metrics_elsewhere"));
    world.stop().await;
}
