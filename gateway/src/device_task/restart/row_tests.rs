//! Tests of the rows on their way to the disk.

use std::sync::mpsc::{SyncSender, sync_channel};

use tokio::sync::mpsc;

use super::{
    tests::{USER, next, of, session},
    *,
};

/// Holds the store's thread until the sender is dropped.
fn stalled(store: &Store) -> SyncSender<()> {
    let ((begun, has_begun), (release, released)) = (sync_channel(1), sync_channel::<()>(1));
    let nothing = Write::RemoveRow { kind: Kind::Ledger, owner: String::new(), key: Vec::new() };
    store
        .submit(nothing, move |_| {
            begun.send(()).unwrap();
            assert!(released.recv().is_err(), "the sender is dropped");
        })
        .unwrap();
    has_begun.recv().unwrap();
    release
}

#[tokio::test]
async fn a_flood_of_changes_has_one_row_on_its_way_and_its_last_state_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let (mailbox, mut messages) = mpsc::channel(1);
    let mut glasses = StoredSession::new(store.clone(), USER, "glasses", 1, mailbox);
    glasses.keep();
    let release = stalled(&store);
    for control in 1..=101 {
        glasses.muted(control % 2 == 1, control, 0);
        glasses.store();
    }
    assert_eq!(store.load().0, 1, "rows that wait");
    assert!(!glasses.is_written());
    drop(release);
    assert!(matches!(messages.recv().await, Some(DeviceMessage::Stored)));
    assert!(!glasses.is_written(), "the first row is on the disk, and the last one is not on its way");
    glasses.store();
    let left = next(&store).await.take("glasses", USER, &of(1)).unwrap();
    assert_eq!((left.muted, left.continued.control_received), (true, 101));
    assert!(glasses.is_written());
}

#[tokio::test]
async fn what_effects_may_follow_waits_for_no_other_row() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let mut glasses = session(&store, "glasses", 1);
    glasses.keep();
    let release = stalled(&store);
    glasses.muted(true, 1, 0);
    glasses.store();
    glasses.turn(1, "tell ben".into(), 2);
    glasses.store();
    assert_eq!(store.load().0, 2, "before the first effect of the turn");
    // A flood of turns takes no more than its places either.
    for turn in 2..100 {
        glasses.turn(turn, format!("request {turn}"), turn);
        glasses.store();
    }
    assert_eq!(store.load().0, UNWRITTEN_MAX);
    drop(release);
    store.settled().await.unwrap();
    glasses.store();
    let left = next(&store).await.take("glasses", USER, &of(1)).unwrap();
    assert_eq!(left.turn.map(|turn| turn.request), Some("request 99".to_owned()));
}

#[tokio::test]
async fn the_last_state_of_a_session_is_stored_behind_a_row_that_is_on_its_way() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let release = stalled(&store);
    let [mut stopped, mut over] = [(1, "stopped"), (2, "over")].map(|(number, device)| session(&store, device, number));
    for session in [&mut stopped, &mut over] {
        session.keep();
        session.store();
        session.muted(true, 4, 0);
        session.mute_stays(true);
        session.store();
    }
    stopped.freeze();
    over.end();
    drop(release);
    let sessions = next(&store).await;
    assert!(sessions.take("stopped", USER, &of(1)).unwrap().muted);
    assert_eq!(sessions.take("over", USER, &of(2)), None);
    assert!(sessions.stays_muted("over", USER));
}

#[tokio::test]
async fn a_row_that_takes_long_withholds_acknowledgements_for_no_more_than_half_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let mut glasses = session(&store, "glasses", 1);
    glasses.keep();
    glasses.store();
    store.settled().await.unwrap();
    glasses.store();
    assert_eq!((glasses.withheld_until_us(), glasses.dealt_with_us(0, Some(9_000_000))), (0, 7_000_000));
    // The data of another user is being erased.
    let release = stalled(&store);
    let before_us = clock::mono_us();
    glasses.muted(true, 4, 9_000_000);
    glasses.store();
    let until_us = glasses.withheld_until_us();
    assert!((before_us..=clock::mono_us()).contains(&(until_us - WITHHELD_US_MAX)));
    // What changes meanwhile, urgent or not, withholds none for longer, nor does a row that follows at once.
    glasses.muted(false, 5, 9_500_000);
    glasses.store();
    drop(release);
    store.settled().await.unwrap();
    let release = stalled(&store);
    glasses.store();
    assert_eq!(glasses.withheld_until_us(), until_us);
    glasses.turn(1, "tell ben".into(), 6);
    glasses.store();
    assert_eq!(glasses.withheld_until_us(), until_us);
    assert_eq!(glasses.dealt_with_us(9_500_000, None), 0, "the process behind this one would hear it again");
    drop(release);
    store.settled().await.unwrap();
    assert_eq!((glasses.withheld_until_us(), glasses.dealt_with_us(9_500_000, None)), (0, 9_500_000));
}

#[tokio::test]
async fn a_row_that_could_not_be_stored_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let mut glasses = session(&store, "glasses", 1);
    glasses.keep();
    store.bar(USER, true);
    glasses.store();
    store.bar(USER, false);
    glasses.store();
    store.settled().await.unwrap();
    assert!(store.disk().keys(Kind::DeviceSessions, USER, 9).unwrap().is_empty(), "not at once");
    glasses.again_us = 0;
    glasses.store();
    store.settled().await.unwrap();
    assert_eq!(store.disk().keys(Kind::DeviceSessions, USER, 9).unwrap().len(), 1);
    // Once it is stored, it is stored.
    glasses.again_us = 0;
    glasses.store();
    assert!(glasses.is_written());
}

#[tokio::test]
async fn nothing_is_acknowledged_before_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 16).unwrap();
    let (mailbox, mut messages) = mpsc::channel(4);
    let mut glasses = StoredSession::new(store.clone(), USER, "glasses", 1, mailbox);
    glasses.store();
    assert!(glasses.is_written(), "not kept");
    glasses.keep();
    let release = stalled(&store);
    glasses.store();
    assert!(!glasses.is_written());
    drop(release);
    assert!(matches!(messages.recv().await, Some(DeviceMessage::Stored)));
    assert!(glasses.is_written());
    // What has not changed is not written again.
    glasses.store();
    assert!(glasses.is_written());
}
