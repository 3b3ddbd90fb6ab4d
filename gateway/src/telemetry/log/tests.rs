//! Tests of the stored log on a real file.

use heed::{CommitOrAbort, EnvFlags, types::Bytes};
use tools::inspection::logs::LogLevel;

use super::*;

fn line(wall_ms: i64, level: LogLevel, source: &str, message: &str) -> LogEntry {
    let context = if source == "gateway" { "gateway::serve" } else { "gateway::device_task" };
    LogEntry { wall_ms, level, context: context.to_owned(), source: source.to_owned(), message: message.to_owned() }
}

/// Ten lines, every third an error, of two sources.
fn ten() -> impl Iterator<Item = LogEntry> {
    (0..10).map(|number| {
        let level = if number % 3 == 0 { LogLevel::Error } else { LogLevel::Info };
        let source = if number % 2 == 0 { "gateway" } else { "device:ab12" };
        line(1_000 * number, level, source, &format!("Line {number}"))
    })
}

async fn messages(logs: &Logs, filter: LogFilter, limit: usize) -> Vec<String> {
    let page = logs.query(LogQuery { filter, limit, ..LogQuery::default() }).await.unwrap();
    page.logs.into_iter().map(|entry| entry.message).collect()
}

fn open(folder: &tempfile::TempDir, ring: Ring) -> Logs {
    Logs::open_with(&folder.path().join("log"), ring).unwrap()
}

/// Records of turns, which are numbers here.
fn told(turns: &[Value]) -> String {
    turns.iter().map(Value::to_string).collect::<Vec<_>>().join(" ")
}

/// How often a word stands in the files below a folder.
fn count(folder: &std::path::Path, word: &str) -> usize {
    let mut found = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found += count(&path, word),
            false => {
                let bytes = std::fs::read(&path).unwrap();
                found += bytes.windows(word.len()).filter(|window| *window == word.as_bytes()).count();
            }
        }
    }
    found
}

#[tokio::test]
async fn lines_are_found_by_every_condition() {
    let folder = tempfile::tempdir().unwrap();
    let logs = open(&folder, Ring::default());
    logs.fill(ten()).await.unwrap();
    let of = LogFilter::default;
    for (filter, limit, expected) in [
        (of(), 3, vec![9, 8, 7]),
        (LogFilter { level: Some(LogLevel::Warn), ..of() }, 9, vec![9, 6, 3, 0]),
        (LogFilter { context: Some("gateway::dev".into()), ..of() }, 2, vec![9, 7]),
        (LogFilter { context: Some("device".into()), ..of() }, 9, vec![]),
        (LogFilter { source: Some("device:ab12".into()), ..of() }, 9, vec![9, 7, 5, 3, 1]),
        (LogFilter { source: Some("device:ab1".into()), ..of() }, 9, vec![]),
        (LogFilter { since_wall_ms: Some(8_000), ..of() }, 9, vec![9, 8]),
        (LogFilter { since_wall_ms: Some(i64::MAX), ..of() }, 9, vec![]),
        (LogFilter { before_wall_ms: Some(2_000), ..of() }, 9, vec![1, 0]),
        (LogFilter { text: Some("line 4".into()), ..of() }, 9, vec![4]),
    ] {
        let expected: Vec<_> = expected.iter().map(|number| format!("Line {number}")).collect();
        assert_eq!(messages(&logs, filter.clone(), limit).await, expected, "{filter:?}");
    }
}

#[tokio::test]
async fn pages_follow_each_other_without_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let logs = open(&folder, Ring::default());
    // All in one millisecond, and a line alone that is longer than a page.
    let long = "x".repeat(2 * PAGE_BYTES_MAX);
    logs.fill((0..7).map(|number| line(5, LogLevel::Info, "gateway", if number == 3 { &long } else { "short" })))
        .await
        .unwrap();
    let (mut cursor, mut pages) = (None, Vec::new());
    loop {
        let page = logs.query(LogQuery { limit: 2, cursor, ..LogQuery::default() }).await.unwrap();
        pages.push(page.logs.len());
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(pages, [2, 1, 1, 2, 1]);
    // Exactly as many as there are: there is no next page.
    assert!(logs.query(LogQuery { limit: 3, ..LogQuery::default() }).await.unwrap().cursor.is_some());
    let whole = LogQuery {
        limit: 7,
        filter: LogFilter { text: Some("short".into()), ..LogFilter::default() },
        ..LogQuery::default()
    };
    let page = logs.query(whole).await.unwrap();
    assert_eq!((page.logs.len(), page.cursor), (6, None));
}

#[tokio::test]
async fn the_oldest_lines_go_first_and_the_numbers_agree() {
    let folder = tempfile::tempdir().unwrap();
    let ring = Ring { lines_max: 4, bytes_max: usize::MAX, ..Ring::default() };
    let logs = open(&folder, ring);
    logs.fill(ten()).await.unwrap();
    let stats = logs.stats().unwrap();
    assert_eq!(messages(&logs, LogFilter::default(), 9).await, ["Line 9", "Line 8", "Line 7", "Line 6"]);
    let by = |counts: &std::collections::BTreeMap<String, u64>| {
        counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(stats.total_logs, 4);
    assert_eq!(by(&stats.by_level), "error 2, info 2, warn 0");
    assert_eq!(by(&stats.by_source), "device:ab12 2, gateway 2");
    assert_eq!((stats.oldest_wall_ms, stats.newest_wall_ms), (Some(6_000), Some(9_000)));
    logs.close().await.unwrap();
    // The next run counts them, and numbers go on: nothing is overwritten.
    let again = open(&folder, Ring { bytes_max: 3 * 150, ..ring });
    assert_eq!(LogStats { dropped: 0, ..again.stats().unwrap() }, LogStats { dropped: 0, ..stats });
    again.fill([line(9_000, LogLevel::Warn, "gateway", &"y".repeat(60))]).await.unwrap();
    let kept = messages(&again, LogFilter::default(), 9).await;
    assert!(kept[0].starts_with('y') && kept[1] == "Line 9" && kept.len() < 5, "{kept:?}");
    again.close().await.unwrap();
    assert!(matches!(again.settled().await, Err(Error::Closed)));
    assert!(matches!(again.query(LogQuery::default()).await, Err(Error::Closed)));
}

#[tokio::test]
async fn what_is_cleared_is_gone_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let logs = open(&folder, Ring::default());
    logs.fill(ten()).await.unwrap();
    assert!(count(folder.path(), "Line 6") > 0 && count(folder.path(), "Line 7") > 0);
    let filter = LogFilter { level: Some(LogLevel::Error), before_wall_ms: Some(9_000), ..LogFilter::default() };
    assert_eq!(logs.clear(filter, LogScope::Everybody).await.unwrap(), 3);
    assert_eq!((count(folder.path(), "Line 6"), logs.stats().unwrap().total_logs), (0, 7));
    assert!(count(folder.path(), "Line 7") > 0);
    // It goes on.
    logs.fill([line(10_000, LogLevel::Info, "gateway", "Line 10")]).await.unwrap();
    assert_eq!(messages(&logs, LogFilter::default(), 2).await, ["Line 10", "Line 9"]);
    assert_eq!(logs.clear(LogFilter::default(), LogScope::Everybody).await.unwrap(), 8);
    assert_eq!(logs.stats().unwrap().oldest_wall_ms, None);
}

#[tokio::test]
async fn nothing_of_an_erased_user_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let logs = open(&folder, Ring::default());
    let row = |user: Option<&str>, device: Option<&str>, message: &str| row::Row {
        user: user.map(str::to_owned),
        device: device.map(str::to_owned),
        message: message.to_owned(),
        ..row::Row::default()
    };
    let rows = [
        row(Some("zq-ann"), None, "paired"),
        row(None, Some("zq-device"), "photo received"),
        row(None, None, "control command=export about=zq-ann"),
        row(None, None, "refused device zq-device."),
        row(Some("zq-anne"), None, "another user"),
        row(None, None, "about=zq-annette"),
        row(None, None, "a word like zq-ann stands alone"),
    ];
    for (wall_ms, row) in (0..).zip(rows) {
        logs.jobs.try_send(Job::Line(row::Line { wall_ms, level: LogLevel::Info, row })).unwrap();
    }
    logs.settled().await.unwrap();
    assert!(count(folder.path(), "zq-device") > 0);
    assert_eq!(logs.erase("zq-ann", vec!["zq-device".into()]).await.unwrap(), 4);
    assert_eq!((count(folder.path(), "zq-device"), count(folder.path(), "zq-ann")), (0, 3), "the others' remain");
    let left = ["a word like zq-ann stands alone", "about=zq-annette", "another user"];
    assert_eq!(messages(&logs, LogFilter::default(), 9).await, left);
}

#[tokio::test]
async fn turns_are_kept_apart_from_lines_and_without_a_user_erased_with_their_device() {
    let folder = tempfile::tempdir().unwrap();
    let ring = Ring { turns_max: 4, ..Ring::default() };
    let logs = open(&folder, ring);
    let turns = async |logs: &Logs, since, count| told(&logs.turns(since..=i64::MAX, count).await.unwrap());
    for number in 0..6 {
        let device = if number % 2 == 0 { "zq-even" } else { "zq-odd" };
        logs.turn(1_000 * number, device.to_owned(), number.to_string());
    }
    logs.settled().await.unwrap();
    assert_eq!(turns(&logs, 0, 99).await, "2 3 4 5");
    assert_eq!(turns(&logs, 0, 2).await, "4 5");
    assert_eq!(turns(&logs, 5_000, 99).await, "5");
    assert_eq!(logs.clear(LogFilter::default(), LogScope::Everybody).await.unwrap(), 0);
    logs.close().await.unwrap();
    let again = open(&folder, ring);
    assert_eq!(again.erase("nobody", vec!["zq-even".into()]).await.unwrap(), 0);
    assert_eq!(turns(&again, 0, 99).await, "3 5");
    assert_eq!(count(folder.path(), "zq-even"), 0);
    again.turn(5_000, "zq-odd".to_owned(), "6".to_owned());
    again.settled().await.unwrap();
    assert_eq!(turns(&again, 0, 99).await, "3 5 6", "no number is used twice");
}

/// Typed requests have no glasses, and glasses may be somebody else's since.
#[tokio::test]
async fn turns_that_name_their_user_are_erased_with_the_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let logs = open(&folder, Ring::default());
    for (device, user) in [("text.1", "zq-ann"), ("zq-glasses", "zq-ann"), ("zq-glasses", "zq-bob")] {
        logs.turn(1_000, device.to_owned(), format!("{{\"user\":\"{user}\"}}"));
    }
    logs.settled().await.unwrap();
    assert!(count(folder.path(), "zq-ann") > 0);
    // They are Bob's now, then Ann's again.
    for devices in [Vec::new(), vec!["zq-glasses".to_owned()]] {
        logs.erase("zq-ann", devices).await.unwrap();
        assert_eq!(told(&logs.turns(0..=i64::MAX, 9).await.unwrap()), "{\"user\":\"zq-bob\"}");
        assert_eq!(count(folder.path(), "zq-ann"), 0);
    }
}

#[tokio::test]
async fn lines_are_followed_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let logs = open(&folder, Ring::default());
    logs.fill(ten()).await.unwrap();
    let (mut stored, end) = (logs.watch(), logs.end().unwrap());
    stored.mark_unchanged();
    logs.fill([line(9_000, LogLevel::Info, "gateway", "a"), line(11_000, LogLevel::Error, "gateway", "b")])
        .await
        .unwrap();
    stored.changed().await.unwrap();
    let (all, last) = logs.after(end, LogFilter::default(), 9).await.unwrap();
    assert_eq!(all.iter().map(|entry| entry.message.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let errors = LogFilter { level: Some(LogLevel::Error), ..LogFilter::default() };
    assert_eq!(logs.after(end, errors, 9).await.unwrap().0.len(), 1);
    assert_eq!(logs.after(last, LogFilter::default(), 9).await.unwrap(), (Vec::new(), last));
}

#[tokio::test]
async fn new_lines_are_kept_and_followed_when_the_clock_is_set_back() {
    let folder = tempfile::tempdir().unwrap();
    let logs = open(&folder, Ring { lines_max: 4, turns_max: 4, ..Ring::default() });
    for number in 0..4 {
        logs.fill([line(9_000 + number, LogLevel::Info, "gateway", &format!("Line {number}"))]).await.unwrap();
        logs.turn(9_000 + number, "glasses".to_owned(), number.to_string());
    }
    logs.settled().await.unwrap();
    let end = logs.end().unwrap();
    logs.fill([line(1_000, LogLevel::Info, "gateway", "set back")]).await.unwrap();
    logs.turn(1_000, "glasses".to_owned(), "4".to_owned());
    logs.settled().await.unwrap();
    assert_eq!(messages(&logs, LogFilter::default(), 9).await, ["set back", "Line 3", "Line 2", "Line 1"]);
    let (followed, _) = logs.after(end, LogFilter::default(), 9).await.unwrap();
    assert_eq!(followed.iter().map(|entry| entry.message.as_str()).collect::<Vec<_>>(), ["set back"]);
    let turns = async |ended, count| told(&logs.turns(ended, count).await.unwrap());
    assert_eq!(turns(0..=i64::MAX, 9).await, "1 2 3 4");
    // By their times, those before are found behind it.
    let since = LogFilter { since_wall_ms: Some(9_002), ..LogFilter::default() };
    assert_eq!(messages(&logs, since, 9).await, ["Line 3", "Line 2"]);
    assert_eq!(turns(9_002..=i64::MAX, 9).await, "2 3");
    assert_eq!(turns(9_002..=i64::MAX, 1).await, "3");
    assert_eq!(turns(9_002..=9_002, 9).await, "2", "one, by its time");
}

#[tokio::test]
async fn a_log_in_the_form_of_a_version_before_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    std::fs::create_dir(&path).unwrap();
    let former = crate::store::open_environment(&path, 64, EnvFlags::empty()).unwrap();
    let made = former.create_databases_and_commit(former.write_txn().unwrap(), |opener, txn| {
        let lines = opener.create_database::<Bytes, Bytes>(txn, Some("lines"))?;
        lines.put(txn, &[0_u8; 17], b"zq-former")?;
        Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(()))
    });
    assert!(made.unwrap().commit().is_some());
    former.prepare_for_closing().wait();
    assert!(count(folder.path(), "zq-former") > 0);
    for kept in [10, 20] {
        let logs = open(&folder, Ring::default());
        assert_eq!(count(folder.path(), "zq-former"), 0);
        logs.fill(ten()).await.unwrap();
        assert_eq!(logs.stats().unwrap().total_logs, kept);
        logs.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_log_without_handles_can_be_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let logs = Logs::open(&path).unwrap();
    logs.fill(ten()).await.unwrap();
    assert!(Logs::open(&path).is_err(), "a process opens a file once");
    // As a gateway that could not start.
    drop(logs);
    let again = loop {
        // Its writer ends a moment later.
        if let Ok(again) = Logs::open(&path) {
            break again;
        }
        tokio::task::yield_now().await;
    };
    assert!(again.stats().unwrap().total_logs >= 10);
}

#[tokio::test]
async fn a_damaged_file_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log/data.mdb");
    let logs = open(&folder, Ring::default());
    logs.fill(ten()).await.unwrap();
    logs.close().await.unwrap();
    let whole = std::fs::read(&file).unwrap();
    for damaged in [vec![0xff; 40_000], b"text".repeat(5_000), whole[..8_192].to_vec()] {
        std::fs::write(&file, damaged).unwrap();
        let logs = open(&folder, Ring::default());
        logs.fill(ten()).await.unwrap();
        assert!(messages(&logs, LogFilter::default(), 99).await.len() >= 10);
        logs.close().await.unwrap();
    }
}

/// Overwrites all pages with this word in them, as a card does that returns nothing for a block.
fn blank_pages_with(file: &std::path::Path, word: &[u8]) -> usize {
    const PAGE: usize = 4_096;
    let mut bytes = std::fs::read(file).unwrap();
    let mut blanked = 0;
    for page in bytes.chunks_mut(PAGE).filter(|page| page.windows(word.len()).any(|window| window == word)) {
        page.fill(0);
        blanked += 1;
    }
    std::fs::write(file, bytes).unwrap();
    blanked
}

#[tokio::test]
async fn a_damaged_page_of_lines_stops_no_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log/data.mdb");
    let logs = open(&folder, Ring::default());
    // More than a page: the tables themselves are found.
    let text = "zq-page".repeat(20);
    logs.fill((0..200).map(|number| line(number, LogLevel::Info, "gateway", &text))).await.unwrap();
    logs.close().await.unwrap();
    assert!(blank_pages_with(&file, b"zq-page") > 1);
    let logs = open(&folder, Ring::default());
    assert_eq!(logs.stats().unwrap().total_logs, 0, "it is begun anew");
    logs.fill(ten()).await.unwrap();
    assert_eq!(messages(&logs, LogFilter::default(), 99).await.len(), 10);
}

#[tokio::test]
async fn a_log_that_could_not_be_opened_again_is_tried_when_it_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log/data.mdb");
    let logs = open(&folder, Ring { lines_max: 10, ..Ring::default() });
    for erases in [true, false] {
        logs.fill(ten()).await.unwrap();
        // Neither can the file be exchanged, nor the old one be opened.
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir_all(file.join("no file")).unwrap();
        assert!(logs.erase("ann", Vec::new()).await.is_err());
        assert!(logs.erase("ann", Vec::new()).await.is_err(), "it still cannot");
        std::fs::remove_dir_all(&file).unwrap();
        if erases {
            logs.erase("ann", Vec::new()).await.unwrap();
        }
        // The new file is empty: no line has to go for these.
        logs.fill(ten()).await.unwrap();
        assert_eq!(messages(&logs, LogFilter::default(), 99).await.len(), 10, "erases: {erases}");
        assert_eq!(logs.stats().unwrap().total_logs, 10, "erases: {erases}");
    }
    logs.close().await.unwrap();
    assert!(matches!(logs.erase("ann", Vec::new()).await, Err(Error::Closed)));
}

#[tokio::test]
async fn a_panic_does_not_end_the_writer() {
    let folder = tempfile::tempdir().unwrap();
    let logs = open(&folder, Ring::default());
    assert!(matches!(logs.job(Job::Panic).await, Err(Error::Unknown)));
    assert!(logs.is_running());
    logs.fill(ten()).await.unwrap();
    logs.erase("ann", Vec::new()).await.unwrap();
    logs.close().await.unwrap();
    while logs.is_running() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_user_sees_lines_about_that_user_and_about_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let logs = open(&folder, Ring::default());
    let row = |user: Option<&str>, device: Option<&str>, source: &str, message: &str| row::Row {
        user: user.map(str::to_owned),
        device: device.map(str::to_owned),
        source: source.to_owned(),
        message: message.to_owned(),
        ..row::Row::default()
    };
    let rows = [
        row(None, None, "gateway", "started"),
        row(Some("ann"), None, "gateway", "ann paired"),
        row(None, Some("d1"), "device:d1", "ann's glasses"),
        row(Some("bob"), Some("d1"), "device:d1", "bob's on her glasses"),
        row(None, Some("d2"), "device:d2", "bob's glasses"),
        row(Some("bob"), None, "app:x", "bob's app"),
        row(None, None, "mcp:files", "anybody's server"),
    ];
    for (wall_ms, row) in (0..).zip(rows) {
        logs.jobs.try_send(Job::Line(row::Line { wall_ms, level: LogLevel::Info, row })).unwrap();
    }
    logs.settled().await.unwrap();
    let scope = LogScope::User { user: "ann".to_owned(), devices: vec!["d1".to_owned()] };
    let page = logs.query(LogQuery { limit: 9, scope: scope.clone(), ..LogQuery::default() }).await.unwrap();
    let seen: Vec<_> = page.logs.iter().map(|entry| entry.message.as_str()).collect();
    assert_eq!(seen, ["ann's glasses", "ann paired", "started"]);
    let stats = logs.stats_of(scope.clone()).await.unwrap();
    assert_eq!((stats.total_logs, stats.oldest_wall_ms, stats.newest_wall_ms), (3, Some(0), Some(2)));
    assert_eq!(stats.by_source.keys().collect::<Vec<_>>(), ["device:d1", "gateway"]);
    assert_eq!(logs.clear(LogFilter::default(), scope).await.unwrap(), 3);
    assert_eq!(logs.stats().unwrap().total_logs, 4, "the others' remain");
}
