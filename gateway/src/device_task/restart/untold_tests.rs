//! Tests of what is left to be told where no session goes on, and of calls whose turn is none any more.

use std::collections::BTreeMap;

use gateway_core::vocab::ToolCall;
use serde_json::json;
use tools::journal::{AskedCall, LeftQuestion};

use super::{
    tests::{USER, next, of, session},
    *,
};
use crate::ports::journal::Left;

fn unknown() -> Vec<UnknownCall> {
    vec![UnknownCall { key: [1; 16], tool: "send.message".to_owned(), done: Vec::new() }]
}

/// A question that was open on glasses whose name is "late".
fn question() -> LeftQuestion {
    let call = ToolCall { id: "c1".into(), name: "notes.delete".into(), arguments: json!({}) };
    LeftQuestion { key: [2; 16], asked: AskedCall { device: "late".into(), call, definition: 7 } }
}

/// What a process that was killed leaves, with a call and a question that were open.
async fn next_with_calls(store: &Store) -> StoredSessions {
    store.settled().await.unwrap();
    let unknown = BTreeMap::from([(USER.to_owned(), unknown())]);
    let asked = BTreeMap::from([((USER.to_owned(), "late".to_owned()), vec![question()])]);
    StoredSessions::read(store, 30_000, Left { unknown, asked }).unwrap()
}

/// A session in the middle of a turn.
fn in_a_turn(store: &Store, device: &str, number: u64) {
    let mut session = session(store, device, number);
    session.keep();
    session.turn(1, "tell ben".into(), 5);
    session.store();
}

#[tokio::test]
async fn a_call_is_told_though_a_later_turn_than_its_own_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let mut glasses = session(&store, "glasses", 1);
    glasses.keep();
    glasses.turn(1, "tell ben".into(), 3);
    // The wearer interrupts it while its tool works, and the process dies before that has ended.
    glasses.turn(2, "what time is it".into(), 4);
    glasses.turn_done(2, 5);
    glasses.store();
    let sessions = next_with_calls(&store).await;
    let turn = sessions.take("glasses", USER, &of(1)).unwrap().turn;
    assert_eq!(turn, Some(RestoredTurn { unknown: unknown(), ..RestoredTurn::default() }));
    assert_eq!(sessions.take("phone", USER, &of(9)).unwrap().turn, None, "on one device");
}

#[tokio::test]
async fn a_call_is_told_where_its_turn_is() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    in_a_turn(&store, "glasses", 1);
    let mut phone = session(&store, "phone", 2);
    phone.keep();
    phone.store();
    let sessions = next_with_calls(&store).await;
    assert_eq!(sessions.take("phone", USER, &of(2)).unwrap().turn, None);
    assert_eq!(sessions.give_up("new", USER), None);
    assert_eq!(sessions.take("glasses", USER, &of(1)).unwrap().turn.unwrap().unknown, unknown());
}

#[tokio::test]
async fn what_no_device_comes_back_for_is_handed_out_when_the_time_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    in_a_turn(&store, "late", 1);
    let mut sessions = next_with_calls(&store).await;
    assert!(sessions.left_us() > 0);
    sessions.until_us = 0;
    assert_eq!((sessions.left_us(), sessions.take("late", USER, &of(1))), (0, None));
    let left = RestoredTurn { request: String::new(), unknown: unknown(), asked: vec![question()] };
    assert_eq!(sessions.expire(&store, |_| true), BTreeMap::from([(USER.to_owned(), left)]));
    assert!(sessions.expire(&store, |_| true).is_empty() && sessions.give_up("late", USER).is_none(), "once");
    // Its session is over for the next process, too.
    let after = next(&store).await;
    assert_eq!(after.take("late", USER, &of(1)), None);
    assert!(after.expire(&store, |_| true).is_empty());
}

#[tokio::test]
async fn what_a_session_goes_on_with_is_left_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    in_a_turn(&store, "back", 1);
    in_a_turn(&store, "on its way", 2);
    let mut sessions = next_with_calls(&store).await;
    for (device, number) in [("back", 1), ("on its way", 2)] {
        assert!(sessions.take(device, USER, &of(number)).unwrap().turn.is_some());
    }
    sessions.welcome_arrived("back", USER);
    assert!(!sessions.is_left_for("back", USER) && sessions.is_left_for("on its way", USER));
    sessions.until_us = 0;
    assert!(sessions.expire(&store, |_| true).is_empty());
    // Until its welcome has arrived, the glasses have the token of the session before.
    assert!(next(&store).await.take("on its way", USER, &of(2)).unwrap().turn.is_some());
}

#[tokio::test]
async fn of_glasses_that_begin_anew_it_is_handed_out_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    in_a_turn(&store, "late", 1);
    let sessions = next_with_calls(&store).await;
    assert_eq!(sessions.give_up("late", "bob"), None);
    let left = RestoredTurn { request: "tell ben".to_owned(), unknown: unknown(), asked: vec![question()] };
    assert_eq!(sessions.give_up("late", USER), Some(left));
    assert_eq!(sessions.give_up("late", USER), None, "once");
    // The welcome is lost on its way, and they ask for their last session after all.
    assert_eq!(sessions.take("late", USER, &of(1)).unwrap().turn, None);
    assert!(sessions.expire(&store, |_| true).is_empty());
}

#[tokio::test]
async fn what_was_told_elsewhere_is_given_to_no_further_session() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    in_a_turn(&store, "late", 1);
    let sessions = next_with_calls(&store).await;
    assert!(sessions.take("late", USER, &of(1)).unwrap().turn.is_some());
    // Its session ends before the welcome has arrived.
    sessions.told("late", USER);
    assert_eq!(sessions.take("late", USER, &of(1)).unwrap().turn, None);
}

#[tokio::test]
async fn what_was_given_to_a_session_that_never_came_to_be_is_handed_out_when_the_time_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    in_a_turn(&store, "late", 1);
    let sessions = next_with_calls(&store).await;
    assert!(sessions.take("late", USER, &of(1)).unwrap().turn.is_some());
    let left = RestoredTurn { request: String::new(), unknown: unknown(), asked: vec![question()] };
    assert_eq!(sessions.expire(&store, |_| false), BTreeMap::from([(USER.to_owned(), left)]));
    assert_eq!(next(&store).await.take("late", USER, &of(1)), None);
}

#[tokio::test]
async fn nothing_is_given_again_of_a_user_who_was_erased() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let sessions = next_with_calls(&store).await;
    // It has no row, but a token of the process before.
    assert_eq!(sessions.take("phone", USER, &of(9)).unwrap().turn.unwrap().unknown, unknown());
    sessions.erase(USER);
    assert_eq!(sessions.take("phone", USER, &of(9)).unwrap().turn, None);
}
