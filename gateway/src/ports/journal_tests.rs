//! Tests of the records of calls that change something.

use std::time::Duration;

use gateway_core::vocab::{Timestamp, ToolCall};
use tools::programs::CallOutcome;

use super::*;
use crate::ports::{records::StoredLedger, stores::SystemClock};

fn intent(number: u8) -> Intent {
    let (user, tool, arguments) = ("ann".into(), "t".into(), String::new());
    Intent {
        user,
        key: [number; 16],
        tool,
        wall_ms: clock::wall_ms(),
        program: None,
        arguments,
        of_turn: true,
        run: None,
    }
}

fn runs(store: &Store) -> StoredRuns {
    StoredRuns::load(store.clone(), Arc::new(SystemClock)).unwrap()
}

#[tokio::test]
async fn outcomes_outlive_the_process_and_their_absence_too() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let journal = StoredJournal::new(store.clone(), CancellationToken::new());
    assert_eq!(journal.recall(&intent(1)), Ok(None));
    journal.begin(&intent(1)).await.unwrap();
    assert_eq!(journal.recall(&intent(1)), Ok(Some(Past::Unknown)));
    let result = ToolResult::said("done");
    journal.finish(&intent(1), &result);
    // Available at once, before any commit.
    assert_eq!(journal.recall(&intent(1)), Ok(Some(Past::Done(Box::new(result.clone())))));
    journal.begin(&intent(2)).await.unwrap();
    // Writes are ordered: the write of the second was after the first one's outcome.
    let again = StoredJournal::new(store.clone(), CancellationToken::new());
    assert_eq!(again.recall(&intent(1)), Ok(Some(Past::Done(Box::new(result)))));
    assert_eq!(again.recall(&intent(2)), Ok(Some(Past::Unknown)));

    let ledger = StoredLedger(store.clone());
    for _ in 0..2 {
        again.tell_of_open(&ledger, &runs(&store)).unwrap();
        store.settled().await.unwrap();
    }
    let told = ledger.records("ann", i64::MIN).unwrap();
    let [record] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((record.tool.as_str(), record.error), ("t", Some(ErrorCode::ExecutionError)));
    assert_eq!(again.recall(&intent(2)), Ok(Some(Past::Unknown)), "told of, and still unknown");
}

#[tokio::test]
async fn what_a_program_has_done_outlives_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let journal = StoredJournal::new(store.clone(), CancellationToken::new());
    let begun = Run { wall_ms: clock::wall_ms(), call: "c".into(), source: "run();".into(), ..Run::default() };
    let program = Intent { tool: "code.run".into(), run: Some(Box::new(begun.clone())), ..intent(1) };
    let of = |number, tool: &str| {
        let arguments = format!("{{\"n\":{number}}}");
        Intent { tool: tool.into(), program: Some([1; 16]), arguments, ..intent(number) }
    };
    for intent in [&program, &of(2, "note.add"), &of(3, "mail.send"), &intent(4)] {
        journal.begin(intent).await.unwrap();
    }
    let result = ToolResult::said("done");
    journal.finish(&of(2, "note.add"), &result);
    let call = |tool: &str, arguments: &str, past| Made { tool: tool.into(), arguments: arguments.into(), past };
    let made = vec![
        call("note.add", "{\"n\":2}", Past::Done(Box::new(result))),
        call("mail.send", "{\"n\":3}", Past::Unknown),
    ];
    let sorted = |journal: &StoredJournal| {
        let mut made = journal.made_by(&program).unwrap();
        made.sort_by(|a, b| b.tool.cmp(&a.tool));
        made
    };
    assert_eq!(sorted(&journal), made, "at once");
    store.settled().await.unwrap();
    let again = StoredJournal::new(store.clone(), CancellationToken::new());
    assert_eq!(sorted(&again), made);
    let mut left =
        again.tell_of_open(&StoredLedger(store.clone()), &runs(&store)).unwrap().unknown.remove("ann").unwrap();
    left.sort_by(|a, b| a.tool.cmp(&b.tool));
    assert_eq!(left, [unknown(1, "code.run", &["note.add"]), unknown(3, "mail.send", &[]), unknown(4, "t", &[])]);
    // The run is recorded, once.
    for _ in 0..2 {
        store.settled().await.unwrap();
        again.tell_of_open(&StoredLedger(store.clone()), &runs(&store)).unwrap();
    }
    let recorded = runs(&store).list("ann").unwrap();
    let [run] = recorded.as_slice() else { panic!("{recorded:?}") };
    assert!(run.cut_off && run.source == "run();" && run.call == "c" && run.error.is_some(), "{run:?}");
    let mut calls: Vec<_> = run.calls.iter().map(|call| (call.tool.as_str(), call.outcome)).collect();
    calls.sort_by_key(|(tool, _)| *tool);
    assert_eq!(calls, [("mail.send", CallOutcome::Unknown), ("note.add", CallOutcome::Done)]);
    assert_eq!(run.calls.iter().find(|call| call.tool == "note.add").unwrap().arguments, "{\"n\":2}");
}

#[tokio::test]
async fn a_run_that_was_recorded_is_not_recorded_again_although_its_call_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let journal = StoredJournal::new(store.clone(), CancellationToken::new());
    let begun = Run { wall_ms: clock::wall_ms(), call: "c".into(), source: "run();".into(), ..Run::default() };
    let program = Intent { tool: "code.run".into(), run: Some(Box::new(begun.clone())), ..intent(1) };
    journal.begin(&program).await.unwrap();
    let kept = runs(&store);
    kept.record("ann", Run { wall_ms: begun.wall_ms + 3, took_ms: 5, ..begun.clone() });
    store.settled().await.unwrap();
    journal.tell_of_open(&StoredLedger(store.clone()), &kept).unwrap();
    store.settled().await.unwrap();
    assert_eq!(kept.list("ann").unwrap().len(), 1);
    // One that has ended has no program any more.
    journal.begin(&Intent { key: [2; 16], ..program.clone() }).await.unwrap();
    journal.finish(&Intent { key: [2; 16], ..program }, &ToolResult::said("done"));
    store.settled().await.unwrap();
    let row = store.disk().row(Kind::Intents, "ann", &[2; 16]).unwrap().unwrap();
    assert!(!String::from_utf8(row).unwrap().contains("run();"));
}

#[tokio::test]
async fn a_wearer_is_told_of_no_call_that_another_program_made() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let journal = StoredJournal::new(store.clone(), CancellationToken::new());
    for of_turn in [true, false] {
        journal.begin(&Intent { of_turn, ..intent(1 + u8::from(of_turn)) }).await.unwrap();
    }
    store.settled().await.unwrap();
    let ledger = StoredLedger(store.clone());
    for _ in 0..2 {
        let left = journal.tell_of_open(&ledger, &runs(&store)).unwrap();
        assert_eq!(left.unknown["ann"], [unknown(2, "t", &[])]);
        store.settled().await.unwrap();
    }
}

fn unknown(number: u8, tool: &str, done: &[&str]) -> UnknownCall {
    let done = done.iter().map(|tool| (*tool).to_owned()).collect();
    UnknownCall { key: [number; 16], tool: tool.to_owned(), done }
}

fn asked(device: &str) -> AskedCall {
    let call = ToolCall { id: "c".into(), name: "t".into(), arguments: serde_json::json!({"n": 1}) };
    AskedCall { device: device.to_owned(), call, definition: 7 }
}

#[tokio::test]
async fn open_questions_outlive_the_process_until_they_are_answered_or_too_old() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let stop = CancellationToken::new();
    let journal = StoredJournal::new(store.clone(), stop.clone());
    let old = Intent { wall_ms: clock::wall_ms() - ASK_AGAIN_MS_MAX - 1, ..intent(4) };
    for intent in [&intent(1), &intent(2), &intent(3), &old] {
        journal.ask(intent, asked("glasses"));
    }
    // The second one was answered by a no, the third by a yes, and the first one is open when the gateway stops.
    journal.withdraw(&intent(2));
    journal.begin(&intent(3)).await.unwrap();
    stop.cancel();
    journal.withdraw(&intent(1));
    assert_eq!(journal.recall(&intent(1)), Ok(None), "nothing of it was done");
    let again = StoredJournal::new(store.clone(), CancellationToken::new());
    let left = again.tell_of_open(&StoredLedger(store.clone()), &runs(&store)).unwrap();
    let open = LeftQuestion { key: intent(1).key, asked: asked("glasses") };
    assert_eq!(left.asked, BTreeMap::from([(("ann".into(), "glasses".into()), vec![open])]));
    assert_eq!(left.unknown, BTreeMap::from([("ann".into(), vec![unknown(3, "t", &[])])]));
    store.settled().await.unwrap();
    assert_eq!(store.disk().rows(Kind::Intents, "ann", b"", 9).unwrap().len(), 2, "the old one is gone");
}

#[tokio::test]
async fn an_unknown_outcome_is_left_for_each_process_until_the_wearer_was_told() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let journal = StoredJournal::new(store.clone(), CancellationToken::new());
    let old = Intent { wall_ms: clock::wall_ms() - ASK_AGAIN_MS_MAX - 1, ..intent(2) };
    for intent in [&intent(1), &old] {
        journal.begin(intent).await.unwrap();
    }
    let ledger = StoredLedger(store.clone());
    let mut left = Vec::new();
    for told in [false, false, true] {
        // A process starts, and dies.
        let next = StoredJournal::new(store.clone(), CancellationToken::new());
        left = next.tell_of_open(&ledger, &runs(&store)).unwrap().unknown.remove("ann").unwrap_or_default();
        store.settled().await.unwrap();
        assert!(left.contains(&unknown(1, "t", &[])), "{left:?}");
        if told {
            wearer_told(&store, "ann", &left);
            store.settled().await.unwrap();
        }
    }
    assert_eq!(left.len(), 1, "the other one is told once, since it is old");
    assert!(journal.tell_of_open(&ledger, &runs(&store)).unwrap().unknown.is_empty());
    assert_eq!(ledger.records("ann", i64::MIN).unwrap().len(), 2, "an operator is told once of each");
    assert_eq!(journal.recall(&intent(1)), Ok(Some(Past::Unknown)), "told of, and still unknown");
}

#[tokio::test]
async fn old_intents_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let journal = StoredJournal::new(store.clone(), CancellationToken::new());
    let old = Intent { wall_ms: clock::wall_ms() - KEEP_MS - 1, ..intent(1) };
    journal.begin(&old).await.unwrap();
    journal.finish(&old, &ToolResult::said("done"));
    // As after a jump of the clock: nobody knows its outcome yet.
    let open = Intent { key: [4; 16], ..old.clone() };
    journal.begin(&open).await.unwrap();
    journal.begin(&intent(2)).await.unwrap();
    prune(&store, "ann", clock::wall_ms()).unwrap();
    journal.begin(&intent(3)).await.unwrap();
    assert_eq!(journal.recall(&old), Ok(None));
    assert_eq!(journal.recall(&open), Ok(Some(Past::Unknown)));
    assert_eq!(journal.recall(&intent(2)), Ok(Some(Past::Unknown)));
}

/// A clock that stands.
struct Stopped(i64);

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp { mono_us: 0, wall_ms: self.0, offset_s: 0 }
    }

    fn zone(&self) -> jiff::tz::TimeZone {
        jiff::tz::TimeZone::UTC
    }
}

#[tokio::test(start_paused = true)]
async fn old_intents_of_every_user_go_although_nothing_else_happens() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    for user in ["ann", "bob"] {
        for (number, wall_ms) in [(1, 0), (2, KEEP_MS)] {
            let intent = Intent { user: user.into(), wall_ms, ..intent(number) };
            let row = Row::ended(&intent, ToolResult::said("I'll remember that your PIN is 4711."));
            store.write(put(user, &intent.key, &row)).await.unwrap();
        }
    }
    let stop = CancellationToken::new();
    let clock = Arc::new(Stopped(KEEP_MS + 1));
    let sweeping = spawn("intents", keep_sweeping(store.clone(), clock, stop.clone()));
    tokio::time::sleep(SWEEP_EVERY + Duration::from_secs(1)).await;
    // The sweep that has begun ends first.
    stop.cancel();
    sweeping.await.unwrap();
    store.settled().await.unwrap();
    for user in ["ann", "bob"] {
        assert_eq!(store.disk().keys(Kind::Intents, user, 9).unwrap(), [vec![2; 16]], "{user}");
    }
}

#[tokio::test]
async fn no_more_are_kept_than_may_be_whoever_else_begins_calls() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let nth = |number: usize| {
        let mut key = Key::default();
        key[..8].copy_from_slice(&(number as u64).to_be_bytes());
        Intent { key, wall_ms: clock::wall_ms() - ROWS_MAX as i64 + number as i64, ..intent(0) }
    };
    // An earlier process has left as many as there may be.
    for intent in (0..ROWS_MAX).map(nth) {
        let row = Row::ended(&intent, ToolResult::said("done"));
        store.submit(put("ann", &intent.key, &row), |_| {}).unwrap();
    }
    store.settled().await.unwrap();
    let journal = StoredJournal::new(store.clone(), CancellationToken::new());
    journal.begin(&Intent { user: "bob".into(), ..intent(1) }).await.unwrap();
    let newest = nth(ROWS_MAX);
    journal.begin(&newest).await.unwrap();
    let kept = || store.disk().keys(Kind::Intents, "ann", ROWS_MAX * 2).unwrap();
    let dropped = async {
        while kept().len() > ROWS_MAX {
            store.settled().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(30), dropped).await.expect("the oldest are dropped");
    assert!(kept().contains(&newest.key.to_vec()) && !kept().contains(&nth(0).key.to_vec()));
}

#[test]
fn long_results_are_kept_in_short() {
    let long = ToolResult { data: Some("x".repeat(40_000).into()), ..ToolResult::said("y".repeat(40_000)) };
    let kept = short(&long);
    assert!(kept.content.len() <= RESULT_TEXT_BYTES && kept.data.is_none());
    let small = ToolResult::said("small");
    assert_eq!(short(&small), small);
}
