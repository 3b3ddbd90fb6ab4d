//! Tests of what outlives the process.

use std::collections::BTreeMap;

use device_protocol::{down::Continued, up::ResumeOwned};
use gateway_core::vocab::{Pending, ToolCall};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tools::journal::{AskedCall, Intent, Journal as _};

use super::*;
use crate::{
    device_task::tokens::token,
    ports::{
        journal::{Left, StoredJournal},
        records::StoredLedger,
        runs::StoredRuns,
        stores::SystemClock,
    },
    store::damage_tests::{V2, copy_of},
};

pub(super) const USER: &str = "ann";

fn resume(token: Vec<u8>) -> ResumeOwned {
    ResumeOwned { token, control_received: 0, audio_received: 0 }
}

pub(super) fn of(number: u64) -> ResumeOwned {
    resume(token(number, [7; 32]).to_vec())
}

/// What a process that was killed leaves, and the next one reads.
pub(super) async fn next(store: &Store) -> StoredSessions {
    store.settled().await.unwrap();
    StoredSessions::read(store, 30_000, Left::default()).unwrap()
}

/// The same, with the calls that were open.
async fn next_with_calls(store: &Store) -> StoredSessions {
    store.settled().await.unwrap();
    let journal = StoredJournal::new(store.clone(), CancellationToken::new());
    let runs = StoredRuns::load(store.clone(), Arc::new(SystemClock)).unwrap();
    let left = journal.tell_of_open(&StoredLedger(store.clone()), &runs).unwrap();
    StoredSessions::read(store, 30_000, left).unwrap()
}

pub(super) fn session(store: &Store, device: &str, number: u64) -> StoredSession {
    StoredSession::new(store.clone(), USER, device, number, mpsc::channel(1).0)
}

#[tokio::test]
async fn a_session_goes_on_from_its_row_and_one_without_a_row_from_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let first = next(&store).await;
    assert_eq!((first.next(), first.next()), (1, 2));
    let mut glasses = session(&store, "glasses", 2);
    glasses.keep();
    assert_eq!(glasses.number(), 2);
    glasses.muted(true, 0, 0);
    glasses.turn(1, "what time is it".into(), 5);
    glasses.utterance_ended(1, Some(9));
    glasses.utterance_ended(2, Some(12));
    glasses.utterances_settled(1);
    let ear = Some(OpenEar { called: false, until_wall_ms: 3 });
    glasses.ear(ear);
    let pending = Pending { words: "set a timer".into(), ..Pending::default() };
    let asked = OpenQuestion { text: "For how long?".into(), pending, heard: true, until_wall_ms: 9 };
    glasses.question(Some(asked.clone()));
    glasses.store();
    let mut calls = session(&store, "calls", 7);
    calls.keep();
    calls.utterance_ended(1, Some(20));
    calls.addressed(Some(30));
    calls.store();
    let mut settled = session(&store, "settled", 8);
    settled.keep();
    settled.addressed(Some(30));
    settled.utterance_ended(1, Some(40));
    settled.utterances_settled(1);
    settled.store();
    let mut ended = session(&store, "ended", 3);
    ended.keep();
    ended.turn(1, "no longer".into(), 4);
    ended.store();
    ended.end();
    ended.store();
    let never = session(&store, "never", 4);
    drop(never);

    let second = next(&store).await;
    assert_eq!(second.next(), 9, "a number that no row has");
    let take = |device: &str, user: &str, number| second.take(device, user, &of(number));
    assert_eq!(take("calls", USER, 7).unwrap().addressed_us, Some(30));
    assert_eq!(
        take("calls", USER, 9).unwrap().addressed_us,
        Some(30),
        "a session of it died before its row was written"
    );
    assert_eq!(take("settled", USER, 8).unwrap().addressed_us, None);
    let begun = Continued { control_received: 0, sound_until_us: 0 };
    let row = take("glasses", USER, 2).unwrap();
    assert_eq!(row.continued, Continued { control_received: 5, sound_until_us: 9 });
    assert_eq!((row.muted, row.ear, row.question), (true, ear, Some(asked)));
    assert_eq!(row.turn.map(|turn| turn.request), Some("what time is it".to_owned()));
    let unwritten = take("glasses", USER, 3).unwrap();
    assert_eq!(unwritten.continued, begun, "what was sent to a session whose row was not written is sent again");
    assert_eq!((unwritten.muted, unwritten.ear), (true, ear), "the row before it says how things stand");
    assert_eq!(unwritten.turn.map(|turn| turn.request), Some("what time is it".to_owned()));
    assert_eq!(take("glasses", USER, 1), None, "long over");
    assert_eq!(take("glasses", "bob", 2), None);
    assert_eq!(take("ended", USER, 3), None);
    assert_eq!(take("never", USER, 4).map(|restored| (restored.continued, restored.turn)), Some((begun, None)));
    assert_eq!(second.take("never", USER, &resume(vec![1; 32])), None, "of a version without numbers");
    let mut late = second;
    late.until_us = 0;
    assert_eq!(late.take("glasses", USER, &of(2)), None);
}

#[tokio::test]
async fn glasses_that_were_paired_anew_go_on_with_the_session_of_their_last_user() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    for (first, last, number) in [("zoe", "bob", 1), ("bob", "zoe", 3)] {
        let mut before = StoredSession::new(store.clone(), first, "glasses", number, mpsc::channel(1).0);
        before.keep();
        before.store();
        before.end();
        let mut glasses = StoredSession::new(store.clone(), last, "glasses", number + 1, mpsc::channel(1).0);
        glasses.keep();
        glasses.turn(1, "what time is it".into(), 5);
        glasses.store();
        let sessions = next(&store).await;
        let left = sessions.take("glasses", last, &of(number + 1)).and_then(|left| left.turn);
        assert_eq!(left.map(|turn| turn.request), Some("what time is it".to_owned()), "{last}");
        assert_eq!(sessions.take("glasses", first, &of(number)), None, "{first}");
    }
}

#[tokio::test]
async fn a_token_that_another_device_shows_takes_nothing_of_a_stored_session() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    for (device, number, request) in [("earlier", 1, "own"), ("glasses", 2, "tell ben"), ("later", 3, "own")] {
        let mut before = session(&store, device, number);
        before.keep();
        before.turn(1, request.into(), 5);
        before.store();
    }
    let sessions = next(&store).await;
    let taken = |device: &str, user: &str| {
        let left = sessions.take(device, user, &of(2));
        left.map(|left| (left.continued.control_received, left.turn.map(|turn| turn.request)))
    };
    // Each has proven a key of its own.
    assert_eq!(taken("earlier", USER), Some((0, Some("own".to_owned()))));
    assert_eq!(taken("later", USER), None);
    for user in [USER, "bob"] {
        assert_eq!(taken("without a row", user), Some((0, None)), "{user}");
    }
    for device in ["earlier", "later", "without a row"] {
        sessions.welcome_arrived(device, USER);
    }
    assert_eq!(taken("glasses", USER), Some((5, Some("tell ben".to_owned()))), "it is there for its own device");
}

#[tokio::test]
async fn a_session_of_a_store_of_version_2_goes_on() {
    let folder = copy_of(V2);
    let store = Store::open(folder.path(), 16).unwrap();
    let journal = StoredJournal::new(store.clone(), CancellationToken::new());
    let runs = StoredRuns::load(store.clone(), Arc::new(SystemClock)).unwrap();
    let left = journal.tell_of_open(&StoredLedger(store.clone()), &runs).unwrap();
    let sessions = StoredSessions::read(&store, 30_000, left).unwrap();
    assert_eq!(sessions.take("glasses", USER, &resume(vec![4; 32])), None, "another token");
    let restored = sessions.take("glasses", USER, &resume(vec![5; 32])).unwrap();
    assert_eq!(restored.continued, Continued { control_received: 7, sound_until_us: 9_000_000 });
    let turn = restored.turn.unwrap();
    let unknown: Vec<String> = turn.unknown.into_iter().map(|call| call.tool).collect();
    assert_eq!((restored.muted, turn.request, unknown), (true, String::new(), vec!["send.message".to_owned()]));
    let since = sessions.take("glasses", USER, &of(1)).unwrap();
    assert_eq!(since.continued.control_received, 0, "a session that has begun since then");
}

#[test]
fn a_row_without_a_number_has_the_stored_form_that_it_always_had() {
    let stored = |row: &Row| serde_json::to_value(row).unwrap();
    let (old, new) = (Row::default(), Row { number: Some(7), ..Row::default() });
    assert_eq!((stored(&old)["number"].clone(), stored(&new)["number"].clone()), (json!(0), json!(7)));
    for row in [old, new] {
        assert_eq!(serde_json::from_value::<Row>(stored(&row)).unwrap(), row);
    }
    for appended in ["number", "wake"] {
        let Value::Object(mut fields) = stored(&Row::default()) else { panic!("no object") };
        assert!(fields.remove(appended).is_some());
        assert_eq!(serde_json::from_value::<Row>(fields.into()).unwrap(), Row::default(), "{appended}");
    }
}

#[tokio::test]
async fn who_has_a_welcome_of_this_process_has_nothing_left_of_the_one_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let mut glasses = session(&store, "glasses", 2);
    glasses.keep();
    glasses.store();
    let sessions = next(&store).await;
    let take = |device: &str, number| sessions.take(device, USER, &of(number));
    for (device, before) in [("glasses", 2), ("without a row", 1)] {
        assert!(take(device, before).is_some());
        let own = sessions.next();
        assert!(take(device, own).is_some(), "the welcome has come, and nothing that was sent since then");
        sessions.welcome_arrived(device, USER);
        // Its own session cannot go on, for whatever reason: all that it has sent to it was dealt with.
        assert_eq!((take(device, own), take(device, before)), (None, None));
    }
}

#[tokio::test]
async fn what_was_left_of_a_turn_is_told_until_the_welcome_has_arrived() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let mut glasses = session(&store, "glasses", 2);
    glasses.keep();
    glasses.turn(1, "tell ben".into(), 5);
    glasses.store();
    store.settled().await.unwrap();
    let unknown = vec![UnknownCall { key: [1; 16], tool: "send.message".to_owned(), done: Vec::new() }];
    let left = Left { unknown: BTreeMap::from([(USER.to_owned(), unknown.clone())]), ..Left::default() };
    let sessions = StoredSessions::read(&store, 30_000, left).unwrap();
    let take = || sessions.take("glasses", USER, &of(2)).unwrap().turn.unwrap();
    let first = take();
    assert_eq!(first.unknown, unknown);
    assert_eq!(take(), first, "the welcome was lost on its way");
    sessions.welcome_arrived("glasses", USER);
    assert_eq!(sessions.take("glasses", USER, &of(2)), None, "told once");
}

#[tokio::test]
async fn a_session_whose_welcome_was_lost_leaves_the_row_of_the_one_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let mut glasses = session(&store, "glasses", 1);
    glasses.keep();
    glasses.turn(1, "tell ben".into(), 5);
    glasses.muted(true, 6, 7_000_000);
    glasses.store();
    let left = next(&store).await.take("glasses", USER, &of(1));
    let mut second = session(&store, "glasses", 2);
    second.muted(true, 0, 0);
    second.cut_off("tell ben".into(), Vec::new());
    second.store();
    // The process dies, and the device has the first session's token still.
    assert_eq!(next(&store).await.take("glasses", USER, &of(1)), left);
    assert!(left.is_some_and(|left| left.muted && left.turn.is_some()));
}

#[tokio::test]
async fn what_a_restart_has_cut_off_is_left_for_each_process_until_the_wearer_was_told() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let journal = StoredJournal::new(store.clone(), CancellationToken::new());
    let intent = |number: u8| Intent {
        user: USER.into(),
        key: [number; 16],
        tool: "send.message".into(),
        wall_ms: clock::wall_ms(),
        program: None,
        arguments: String::new(),
        of_turn: true,
        run: None,
    };
    let call = ToolCall { id: "c1".into(), name: "notes.delete".into(), arguments: json!({}) };
    journal.ask(&intent(1), AskedCall { device: "glasses".into(), call, definition: 7 });
    journal.begin(&intent(2)).await.unwrap();
    let mut glasses = session(&store, "glasses", 1);
    glasses.keep();
    glasses.turn(1, "tell ben".into(), 5);
    glasses.store();
    for number in 2..=4 {
        // A process goes on with the session, and dies before it has told anything.
        let sessions = next_with_calls(&store).await;
        let turn = sessions.take("glasses", USER, &of(number - 1)).unwrap().turn.unwrap();
        assert_eq!((turn.request.as_str(), turn.unknown.len(), turn.asked.len()), ("tell ben", 1, 1));
        assert_eq!(turn.asked[0].key, intent(1).key);
        glasses = session(&store, "glasses", number);
        glasses.keep();
        glasses.cut_off(turn.request, turn.unknown);
        // Another request comes first.
        glasses.turn(1, "what time is it".into(), 2);
        glasses.turn_done(1, 2);
        assert!(!glasses.is_settled());
        glasses.store();
    }
    glasses.told();
    assert!(glasses.is_settled());
    glasses.store();
    let sessions = next_with_calls(&store).await;
    assert_eq!(sessions.take("glasses", USER, &of(4)).unwrap().turn, None, "told once");
}

#[tokio::test]
async fn what_is_shown_before_the_welcome_has_arrived_is_told_once_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let journal = StoredJournal::new(store.clone(), CancellationToken::new());
    let intent = Intent {
        user: USER.into(),
        key: [1; 16],
        tool: "send.message".into(),
        wall_ms: clock::wall_ms(),
        program: None,
        arguments: String::new(),
        of_turn: true,
        run: None,
    };
    journal.begin(&intent).await.unwrap();
    let mut glasses = session(&store, "glasses", 1);
    glasses.keep();
    glasses.turn(1, "tell ben".into(), 5);
    glasses.store();
    for (number, arrives) in [(2, false), (3, true)] {
        let sessions = next_with_calls(&store).await;
        let turn = sessions.take("glasses", USER, &of(1)).unwrap().turn.unwrap();
        assert_eq!(turn.unknown.len(), 1, "{number}");
        glasses = session(&store, "glasses", number);
        glasses.cut_off(turn.request, turn.unknown);
        glasses.told();
        assert!(!glasses.is_settled());
        if arrives {
            glasses.keep();
        }
        assert_eq!(glasses.is_settled(), arrives);
        // The process dies.
        glasses.store();
    }
    let sessions = next_with_calls(&store).await;
    assert_eq!(sessions.take("glasses", USER, &of(3)).unwrap().turn, None);
}

#[tokio::test]
async fn sound_is_dealt_with_while_nobody_speaks_and_when_its_words_are() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let mut glasses = session(&store, "glasses", 1);
    assert_eq!(glasses.dealt_with_us(0, Some(9_000_000)), 0, "not kept");
    glasses.keep();
    glasses.store();
    store.settled().await.unwrap();
    assert_eq!(glasses.dealt_with_us(0, None), 0, "nothing was heard, or somebody is speaking");
    assert_eq!(glasses.dealt_with_us(0, Some(9_000_000)), 7_000_000, "a voice may just have begun");
    // Its words are awaited, and somebody else may be silent.
    glasses.utterance_ended(1, Some(9_500_000));
    assert_eq!(glasses.dealt_with_us(0, Some(15_000_000)), 0);
    glasses.utterances_settled(1);
    assert_eq!(glasses.dealt_with_us(0, None), 0, "the disk does not have it yet");
    glasses.store();
    store.settled().await.unwrap();
    assert_eq!(glasses.dealt_with_us(0, None), 9_500_000, "the next utterance is open");
    assert_eq!(glasses.dealt_with_us(0, Some(10_000_000)), 9_500_000);
    assert_eq!(glasses.dealt_with_us(0, Some(15_000_000)), 13_000_000);
    // What the disk does not have does not outlive the process.
    glasses.stream_ended(Some(14_000_000));
    store.bar(USER, true);
    glasses.store();
    assert_eq!(glasses.dealt_with_us(0, Some(15_000_000)), 0);
    store.bar(USER, false);
    glasses.again_us = 0;
    glasses.store();
    store.settled().await.unwrap();
    assert_eq!(glasses.dealt_with_us(0, Some(15_000_000)), 13_000_000);
    // A process that stops leaves its sentences to the next one.
    glasses.freeze();
    assert_eq!(glasses.dealt_with_us(0, Some(15_000_000)), 0);
}

#[tokio::test]
async fn what_was_said_into_a_muted_microphone_is_dealt_with() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let mut glasses = session(&store, "glasses", 1);
    glasses.keep();
    glasses.addressed(Some(9_000_000));
    // Words are awaited, and are dropped with everything else.
    glasses.utterance_ended(1, Some(9_500_000));
    glasses.muted(true, 4, 10_000_000);
    glasses.utterances_settled(1);
    glasses.store();
    store.settled().await.unwrap();
    assert_eq!(glasses.dealt_with_us(30_000_000, None), 30_000_000, "the glasses need not keep it");
    let muted = next(&store).await.take("glasses", USER, &of(1)).unwrap();
    assert_eq!((muted.muted, muted.addressed_us), (true, None), "who mutes is not asked to say it again");
    glasses.muted(false, 5, 31_000_000);
    glasses.store();
    // Before anything else was heard.
    let open = next(&store).await.take("glasses", USER, &of(1)).unwrap();
    assert_eq!((open.muted, open.continued.sound_until_us), (false, 31_000_000));
    assert_eq!(glasses.dealt_with_us(31_500_000, Some(31_500_000)), 31_000_000, "somebody may have begun to speak");
}

#[tokio::test]
async fn where_a_stream_has_ended_is_known_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let mut glasses = session(&store, "glasses", 1);
    glasses.keep();
    glasses.utterance_ended(1, Some(9_500_000));
    glasses.stream_ended(Some(9_600_000));
    // Another turn ends: the frames so far have been dealt with, the end of the stream among them, and its sound has not.
    glasses.turn_done(1, 6);
    glasses.store();
    let left = next(&store).await.take("glasses", USER, &of(1)).unwrap();
    assert_eq!(left.continued, Continued { control_received: 6, sound_until_us: 0 });
    assert_eq!(left.stream_end_us, Some(9_600_000));
}

#[tokio::test]
async fn a_wake_phrase_is_known_after_a_restart_until_its_sound_has_been_dealt_with() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let reported = ReportedWake { phrase: "hey mentra".to_owned(), at_us: 8_000_000, score_permille: 900 };
    let mut glasses = session(&store, "glasses", 1);
    glasses.keep();
    assert!(glasses.wake_told(&reported));
    // What was said before is dealt with, and this is awaited still.
    glasses.utterance_ended(1, Some(7_000_000));
    glasses.utterance_ended(2, Some(9_500_000));
    glasses.utterances_settled(1);
    glasses.store();
    let left = next(&store).await;
    assert_eq!(left.take("glasses", USER, &of(1)).unwrap().wake, Some(reported.clone()));
    assert_eq!(
        left.take("glasses", USER, &of(2)).unwrap().wake,
        Some(reported.clone()),
        "it died before its row was written"
    );
    // The next process goes on with it, and a device that has no acknowledgement of it says it again.
    let mut second = session(&store, "glasses", 2);
    second.keep();
    assert!(second.wake_told(&reported) && !second.wake_told(&reported));
    second.store();
    assert_eq!(next(&store).await.take("glasses", USER, &of(2)).unwrap().wake, Some(reported.clone()), "killed again");
    second.utterance_ended(1, Some(9_500_000));
    second.utterances_settled(1);
    second.store();
    assert_eq!(next(&store).await.take("glasses", USER, &of(2)).unwrap().wake, None, "its words are known");
    let later = ReportedWake { at_us: 12_000_000, ..reported };
    assert!(second.wake_told(&later));
    second.muted(true, 3, 13_000_000);
    second.store();
    assert_eq!(next(&store).await.take("glasses", USER, &of(2)).unwrap().wake, None, "dropped with its sound");
}

#[tokio::test]
async fn a_button_that_mutes_is_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let mut glasses = session(&store, "glasses", 1);
    glasses.keep();
    glasses.turn(1, "what time is it".into(), 3);
    for (muted, pressed) in [(true, 4), (false, 7)] {
        glasses.muted(muted, pressed, 0);
        glasses.store();
        let left = next(&store).await.take("glasses", USER, &of(1)).unwrap();
        assert_eq!((left.muted, left.continued.control_received), (muted, pressed));
        assert_eq!(left.turn.map(|turn| turn.request), Some("what time is it".to_owned()), "it goes on");
    }
}

#[tokio::test]
async fn a_mute_of_the_gateway_outlives_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    for (device, number, stays) in [("glasses", 1, true), ("with a switch", 2, false)] {
        let mut session = session(&store, device, number);
        session.keep();
        session.muted(true, 4, 0);
        session.mute_stays(stays);
        session.store();
        // The device does not come back in time.
        session.end();
    }
    let sessions = next(&store).await;
    assert_eq!(sessions.take("glasses", USER, &of(1)), None);
    let stays = |device: &str, user: &str| sessions.stays_muted(device, user);
    assert!(stays("glasses", USER) && !stays("with a switch", USER) && !stays("glasses", "bob"));
    sessions.mute_stays("glasses", USER, false);
    assert!(!stays("glasses", USER));
    sessions.mute_stays("glasses", USER, true);
    sessions.erase("bob");
    assert!(stays("glasses", USER));
    sessions.erase(USER);
    assert!(!stays("glasses", USER));
}

#[tokio::test]
async fn of_a_session_that_cannot_be_resumed_only_the_mute_of_the_gateway_outlives_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let mut glasses = session(&store, "glasses", 1);
    glasses.keep_mute(false);
    glasses.turn(1, "what time is it".into(), 5);
    glasses.store();
    store.settled().await.unwrap();
    assert!(store.disk().keys(Kind::DeviceSessions, USER, 9).unwrap().is_empty(), "there is nothing to keep");
    glasses.muted(true, 6, 7_000_000);
    glasses.mute_stays(true);
    glasses.store();
    // The process is killed.
    let sessions = next(&store).await;
    assert!(sessions.stays_muted("glasses", USER));
    assert_eq!(sessions.take("glasses", USER, &of(1)), None);
    let mut anew = session(&store, "glasses", sessions.next());
    anew.keep_mute(true);
    anew.muted(true, 0, 0);
    anew.mute_stays(true);
    anew.store();
    assert!(anew.is_written(), "the store has it from the process before");
    anew.muted(false, 3, 9_000_000);
    anew.mute_stays(false);
    anew.freeze();
    assert!(!next(&store).await.stays_muted("glasses", USER));
}

#[tokio::test]
async fn a_turn_that_ends_late_does_not_end_the_one_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let mut glasses = session(&store, "glasses", 1);
    glasses.keep();
    glasses.turn(1, "send the mail".into(), 3);
    // The wearer interrupts it while its tool works.
    glasses.turn(2, "what time is it".into(), 4);
    for (done, request) in [(1, Some("what time is it".to_owned())), (2, None)] {
        glasses.turn_done(done, 4);
        glasses.store();
        let left = next(&store).await.take("glasses", USER, &of(1)).unwrap();
        assert_eq!(left.turn.map(|turn| turn.request), request);
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_read_continues_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let (kind, owner, key) = (Kind::DeviceSessions, USER.to_owned(), b"glasses".to_vec());
    store.write(Write::PutRow { kind, owner, key, value: b"{}".to_vec() }).await.unwrap();
    let sessions = next(&store).await;
    assert_eq!(sessions.take("glasses", USER, &of(7)), None);
    assert_eq!(sessions.next(), 1);
}

#[tokio::test]
async fn nothing_goes_on_of_a_user_whose_erasure_is_still_to_be_finished() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let mut glasses = session(&store, "glasses", 2);
    glasses.keep();
    glasses.muted(true, 0, 0);
    glasses.turn(1, "what time is it".into(), 5);
    glasses.store();
    store.settled().await.unwrap();
    store.bar(USER, true);
    let sessions = next(&store).await;
    assert_eq!(sessions.next(), 3, "no number is given twice");
    let begun = sessions.take("glasses", USER, &of(2)).unwrap();
    assert!(!begun.muted && begun.turn.is_none() && begun.continued.control_received == 0, "{begun:?}");
}

#[tokio::test]
async fn nothing_goes_on_of_a_user_who_was_erased_since_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    for (user, device, number) in [(USER, "glasses", 1), ("bob", "others", 2)] {
        let mut session = StoredSession::new(store.clone(), user, device, number, mpsc::channel(1).0);
        session.keep();
        session.turn(1, "what time is it".into(), 5);
        session.store();
    }
    let sessions = next(&store).await;
    let request = |device: &str, user: &str, number| {
        let left = sessions.take(device, user, &of(number))?;
        left.turn.map(|turn| turn.request)
    };
    let asked = Some("what time is it".to_owned());
    assert_eq!(request("glasses", USER, 1), asked, "its welcome is on its way");
    sessions.erase(USER);
    assert!(sessions.take("glasses", USER, &of(1)).is_none());
    assert_eq!(request("others", "bob", 2), asked);
}
