//! What of a session outlives the process, so that a device that comes back soon after a restart goes on
//! (PROTOCOL.md, section 9). A row of the store for each device; writes take effect in the order in which they are
//! submitted, so a row is there before the first effect of the turn that it is about.
//!
//! Nothing waits for a row, not even the welcome. Sessions are numbered in the order in which they begin, and their tokens
//! hold the number. A token with a higher number than the device's row is of a session whose row was never written; so
//! none of its intents was either, and whether the glasses are muted, and what is still to be told of a turn, is as in the row
//! before it. Its device still has what it sent, because nothing is acknowledged while a row is on its way to the disk, and
//! sends all of it again. So a row is written only when the device has shown that it has the welcome: until then it asks
//! with the token of the session before it.
//!
//! A row that the store does not take holds nothing up: without acknowledgements the device would soon have to drop what
//! it keeps, and a lost link, which is far more frequent than a restart on a full disk, would end the session.

mod before;

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use device_protocol::limits;
use gateway_core::vocab::{OpenEar, OpenQuestion};
use serde::{Deserialize, Serialize};
use tools::absent;

pub(super) use self::before::RestoredTurn;
pub(crate) use self::before::{Restored, StoredSessions};
use crate::{
    clock,
    mailbox::{DeviceMessage, Mailbox},
    ports::intents::{self, UnknownCall},
    store::{Kind, Store, Write},
};

/// The stored form of a session: JSON, to which fields are added with a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Row {
    /// SHA-256 of the token; only in rows of a version whose sessions had no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<[u8; 32]>,
    /// Its number; `None` in rows of that version.
    #[serde(default, with = "absent")]
    number: Option<u64>,
    /// It ended for good. The row stays, so that its token is not taken for that of a session without a row.
    #[serde(default)]
    over: bool,
    muted: bool,
    /// A turn is under way.
    turn: bool,
    control_received: u32,
    sound_until_us: u64,
    /// The request of that turn.
    #[serde(default)]
    request: String,
    /// The request of a turn that an earlier restart has cut off, as long as the wearer is still to be told of it, or to be
    /// asked again.
    #[serde(default)]
    cut_off: Option<String>,
    /// The time in which no wake phrase is needed.
    #[serde(default)]
    ear: Option<OpenEar>,
    /// The question that waits for its answer.
    #[serde(default)]
    question: Option<OpenQuestion>,
    /// Capture time at which somebody was certainly speaking to the assistant, last.
    #[serde(default)]
    called_us: Option<u64>,
}

/// A session's row, which follows the session: [`store`](Self::store) after each round of its loop.
pub(super) struct StoredSession {
    store: Store,
    user: String,
    device: String,
    number: u64,
    row: Row,
    /// The turn that began last.
    turn: u32,
    /// Calls of which the wearer is still to be told that nobody knows what became of them.
    unknown: Vec<UnknownCall>,
    /// The row as it was last stored; `None`: nothing is to be stored, since the session cannot be resumed, or is over.
    stored: Option<Row>,
    /// Utterances whose words are awaited, and where each has ended: as many as the core awaits.
    ended: VecDeque<(u32, Option<u64>)>,
    /// Rows on their way to the disk.
    unwritten: Arc<AtomicUsize>,
    /// The last one of them did not get there.
    has_failed: Arc<AtomicBool>,
    /// When it is tried again.
    again_us: u64,
    mailbox: Mailbox,
}

impl StoredSession {
    /// `number`: the session's, above that of each session before it.
    pub(super) fn new(store: Store, user: &str, device: &str, number: u64, mailbox: Mailbox) -> Self {
        let (user, device, row) = (user.to_owned(), device.to_owned(), Row { number: Some(number), ..Row::default() });
        Self {
            store,
            user,
            device,
            number,
            row,
            turn: 0,
            unknown: Vec::new(),
            stored: None,
            ended: VecDeque::new(),
            unwritten: Arc::default(),
            has_failed: Arc::default(),
            again_us: 0,
            mailbox,
        }
    }

    /// Its number, for its token.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The device has a welcome with a token: from now on the session is stored. Before that the device would ask the next
    /// process for the session before this one, whose row is needed for the answer.
    pub(super) fn keep(&mut self) {
        self.stored.get_or_insert_default();
    }

    /// Whether no row is on its way: the disk has it, or does not take it. Before that nothing is acknowledged: the device
    /// would forget it.
    pub(super) fn is_written(&self) -> bool {
        self.unwritten.load(Ordering::Relaxed) == 0
    }

    /// Capture time before which all sound has been dealt with, also for the process behind this one, as far as the disk has the
    /// row ([`is_written`](Self::is_written)); 0: nothing can be said. `come_us`: the end of the sound so far, heard or
    /// not; `quiet_us`: the same of what was heard, if nobody is speaking in it.
    pub(super) fn dealt_with_us(&self, come_us: u64, quiet_us: Option<u64>) -> u64 {
        if self.stored.is_none() || self.has_failed.load(Ordering::Relaxed) {
            return 0;
        }
        // Nobody is to hear what glasses send into a muted microphone, nor the process behind this one.
        if self.row.muted {
            return come_us.max(self.row.sound_until_us);
        }
        // Behind the last voice there is nothing to deal with, once its words are.
        let quiet_us = quiet_us.filter(|_| self.ended.is_empty()).unwrap_or(0);
        quiet_us.saturating_sub(ONSET_US_MAX).max(self.row.sound_until_us)
    }

    /// The microphone is muted from now on, or open. The frames up to here have been dealt with: a button may have done it,
    /// and does the opposite if it comes again. So has the sound so far, which ends at `come_us`: to mute is to drop what
    /// was said, and what was said since then was said into a muted microphone.
    pub(super) fn muted(&mut self, muted: bool, control_received: u32, come_us: u64) {
        self.row.muted = muted;
        self.row.control_received = control_received;
        self.dealt_with_until(come_us);
    }

    /// This turn begins, or has another request. The frames up to here have been dealt with.
    pub(super) fn turn(&mut self, turn: u32, request: String, control_received: u32) {
        self.turn = turn;
        self.row.turn = true;
        self.row.request = request;
        self.row.control_received = control_received;
    }

    /// This turn is over. One that was interrupted may wait for its calls, and end after the next one has begun.
    pub(super) fn turn_done(&mut self, turn: u32, control_received: u32) {
        if self.turn == turn {
            self.row.turn = false;
            self.row.request.clear();
        }
        self.row.control_received = control_received;
    }

    /// The restart has cut off a turn with this request, of which the wearer is still to be told, and of these calls.
    pub(super) fn cut_off(&mut self, request: String, unknown: Vec<UnknownCall>) {
        self.row.cut_off = Some(request);
        self.unknown = unknown;
    }

    /// The wearer was told of it, and what is to be asked again is being asked.
    pub(super) fn told(&mut self) {
        self.row.cut_off = None;
        intents::wearer_told(&self.store, &self.user, &std::mem::take(&mut self.unknown));
    }

    /// Whether no turn is under way, and none that was cut off is still to be told.
    pub(super) fn is_settled(&self) -> bool {
        !self.row.turn && self.row.cut_off.is_none()
    }

    /// An utterance has ended here; its words are not known yet.
    pub(super) fn utterance_ended(&mut self, utterance: u32, sound_until_us: Option<u64>) {
        self.ended.push_back((utterance, sound_until_us));
    }

    /// The utterances up to this one have been dealt with.
    pub(super) fn utterances_settled(&mut self, until: u32) {
        while let Some((_, sound_until_us)) = self.ended.pop_front_if(|(utterance, _)| *utterance <= until) {
            self.dealt_with_until(sound_until_us.unwrap_or(0));
        }
    }

    fn dealt_with_until(&mut self, at_us: u64) {
        self.row.sound_until_us = self.row.sound_until_us.max(at_us);
    }

    pub(super) fn ear(&mut self, ear: Option<OpenEar>) {
        self.row.ear = ear;
    }

    /// Somebody was speaking to the assistant at this capture time, or it does not matter any more (`None`).
    pub(super) fn called(&mut self, at_us: Option<u64>) {
        self.row.called_us = at_us;
    }

    pub(super) fn question(&mut self, question: Option<OpenQuestion>) {
        self.row.question = question;
    }

    /// Stores what has changed, and from time to time what could not be stored.
    pub(super) fn store(&mut self) {
        let now_us = clock::mono_us();
        let is_late = self.has_failed.load(Ordering::Relaxed) && now_us >= self.again_us;
        let Some(stored) = self.stored.as_mut().filter(|stored| is_late || **stored != self.row) else { return };
        stored.clone_from(&self.row);
        self.again_us = now_us.saturating_add(AGAIN_US);
        let (kind, owner, key) = (Kind::DeviceSessions, self.user.clone(), self.device.clone().into_bytes());
        let value = serde_json::to_vec(&self.row).unwrap_or_default();
        self.submit(Write::PutRow { kind, owner, key, value });
    }

    /// The process stops: what the session was doing stays as it is.
    pub(super) fn freeze(&mut self) {
        self.stored = None;
    }

    /// The session is over for good.
    pub(super) fn end(&mut self) {
        self.row = Row { number: self.row.number, over: true, ..Row::default() };
        self.store();
        self.stored = None;
    }

    fn submit(&self, write: Write) {
        let failed =
            |error| tracing::debug!(%error, "a session's state was not stored: it would not survive a restart");
        self.unwritten.fetch_add(1, Ordering::Relaxed);
        let (unwritten, has_failed) = (self.unwritten.clone(), self.has_failed.clone());
        let mailbox = self.mailbox.clone();
        let submitted = self.store.submit(write, move |written| {
            has_failed.store(written.is_err(), Ordering::Relaxed);
            unwritten.fetch_sub(1, Ordering::Relaxed);
            if let Err(error) = written {
                failed(error);
            }
            // Only wakes the session: one with so much to read is awake.
            drop(mailbox.try_send(DeviceMessage::Stored));
        });
        if let Err(error) = submitted {
            self.has_failed.store(true, Ordering::Relaxed);
            self.unwritten.fetch_sub(1, Ordering::Relaxed);
            failed(error);
        }
    }
}

/// Length of a token, in bytes: the session's number, and random ones.
pub(super) const TOKEN_BYTES: usize = 8 + 32;
const _: () = assert!(TOKEN_BYTES <= limits::TOKEN_BYTES_MAX);

/// A token of the session with this number.
pub(super) fn token(number: u64, random: [u8; 32]) -> [u8; TOKEN_BYTES] {
    let mut token = [0; TOKEN_BYTES];
    let (head, tail) = token.split_at_mut(8);
    head.copy_from_slice(&number.to_be_bytes());
    tail.copy_from_slice(&random);
    token
}

/// How long a voice may have lasted before an utterance is open: a detector takes a few tenths of a second, and a phrase that is said
/// softly at first is noticed late.
const ONSET_US_MAX: u64 = 2_000_000;
/// After this time a row that could not be stored is tried again: the disk may be full or read-only for long.
const AGAIN_US: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use device_protocol::{down::Continued, up::ResumeOwned};
    use gateway_core::vocab::{Pending, ToolCall};
    use serde_json::{Value, json};
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;
    use tools::intents::{AskedCall, Intent, Journal as _};

    use super::*;
    use crate::{
        ports::{
            intents::{Left, StoredIntents},
            records::StoredLedger,
            runs::StoredRuns,
            stores::SystemClock,
        },
        store::damage_tests::{V2, copy_of},
    };

    const USER: &str = "ann";

    fn resume(token: Vec<u8>) -> ResumeOwned {
        ResumeOwned { token, control_received: 0, audio_received: 0 }
    }

    fn of(number: u64) -> ResumeOwned {
        resume(token(number, [7; 32]).to_vec())
    }

    /// What a process that was killed leaves, and the next one reads.
    async fn next(store: &Store) -> StoredSessions {
        store.settled().await.unwrap();
        StoredSessions::read(store, 30_000, Left::default()).unwrap()
    }

    /// The same, with the calls that were open.
    async fn next_with_calls(store: &Store) -> StoredSessions {
        store.settled().await.unwrap();
        let intents = StoredIntents::new(store.clone(), CancellationToken::new());
        let runs = StoredRuns::load(store.clone(), Arc::new(SystemClock)).unwrap();
        let left = intents.tell_of_open(&StoredLedger(store.clone()), &runs).unwrap();
        StoredSessions::read(store, 30_000, left).unwrap()
    }

    fn session(store: &Store, device: &str, number: u64) -> StoredSession {
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
        calls.called(Some(30));
        calls.store();
        let mut settled = session(&store, "settled", 8);
        settled.keep();
        settled.called(Some(30));
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
        assert_eq!(take("calls", USER, 7).unwrap().called_us, Some(30));
        assert_eq!(
            take("calls", USER, 9).unwrap().called_us,
            Some(30),
            "a session of it died before its row was written"
        );
        assert_eq!(take("settled", USER, 8).unwrap().called_us, None);
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
    async fn a_session_of_a_store_of_version_2_goes_on() {
        let folder = copy_of(V2);
        let store = Store::open(folder.path(), 16).unwrap();
        let intents = StoredIntents::new(store.clone(), CancellationToken::new());
        let runs = StoredRuns::load(store.clone(), Arc::new(SystemClock)).unwrap();
        let left = intents.tell_of_open(&StoredLedger(store.clone()), &runs).unwrap();
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
        let Value::Object(mut fields) = stored(&Row::default()) else { panic!("no object") };
        fields.remove("number");
        assert_eq!(serde_json::from_value::<Row>(fields.into()).unwrap(), Row::default());
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
            sessions.welcome_arrived(device);
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
        sessions.welcome_arrived("glasses");
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
        let journal = StoredIntents::new(store.clone(), CancellationToken::new());
        let intent = |number: u8| Intent {
            user: USER.into(),
            key: [number; 16],
            tool: "send.message".into(),
            wall_ms: clock::wall_ms(),
            program: None,
            arguments: String::new(),
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
        assert_eq!(glasses.dealt_with_us(0, None), 9_500_000, "the next utterance is open");
        assert_eq!(glasses.dealt_with_us(0, Some(10_000_000)), 9_500_000);
        assert_eq!(glasses.dealt_with_us(0, Some(15_000_000)), 13_000_000);
        // What the disk does not have does not outlive the process.
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
        glasses.called(Some(9_000_000));
        // Words are awaited, and are dropped with everything else.
        glasses.utterance_ended(1, Some(9_500_000));
        glasses.muted(true, 4, 10_000_000);
        glasses.utterances_settled(1);
        glasses.store();
        store.settled().await.unwrap();
        assert_eq!(glasses.dealt_with_us(30_000_000, None), 30_000_000, "the glasses need not keep it");
        let muted = next(&store).await.take("glasses", USER, &of(1)).unwrap();
        assert_eq!((muted.muted, muted.called_us), (true, None), "who mutes is not asked to say it again");
        glasses.muted(false, 5, 31_000_000);
        glasses.store();
        // Before anything else was heard.
        let open = next(&store).await.take("glasses", USER, &of(1)).unwrap();
        assert_eq!((open.muted, open.continued.sound_until_us), (false, 31_000_000));
        assert_eq!(glasses.dealt_with_us(31_500_000, Some(31_500_000)), 31_000_000, "somebody may have begun to speak");
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
        let (held, release) = std::sync::mpsc::sync_channel::<()>(0);
        // The store's thread waits in the answer to the write before.
        let before = Write::RemoveRow { kind: Kind::Ledger, owner: String::new(), key: Vec::new() };
        store
            .submit(before, move |_| {
                let _ = release.recv();
            })
            .unwrap();
        glasses.store();
        assert!(!glasses.is_written());
        drop(held);
        assert!(matches!(messages.recv().await, Some(DeviceMessage::Stored)));
        assert!(glasses.is_written());
        // What has not changed is not written again.
        glasses.store();
        assert!(glasses.is_written());
    }
}
