//! Questions are settled only by those who were asked, and only for what was asked.

use std::sync::Mutex;

use gateway_core::vocab::{Question, Turn};
use serde_json::json;
use tokio::sync::mpsc;
use tools::{executor::arguments_hash, ports::DeviceStatus};

use super::{event::EventKind, *};
use crate::{
    mailbox::Mailbox,
    roster::{Present, Via},
    transport::Transport,
};

struct Fixture {
    approvals: Arc<ApprovalBroker>,
    roster: Arc<Roster>,
}

impl Fixture {
    fn new() -> Self {
        let roster = Arc::new(Roster::default());
        let registry = Arc::new(Registry::with_built_ins().unwrap());
        Self { approvals: Arc::new(ApprovalBroker::new(roster.clone(), registry)), roster }
    }

    fn connect(&self, device: &str) -> mpsc::Receiver<DeviceMessage> {
        let (mailbox, messages): (Mailbox, _) = mpsc::channel(4);
        let status = Arc::new(Mutex::new(DeviceStatus::default()));
        let via = Via::new(Transport::WSS, ([127, 0, 0, 1], 1).into(), 0);
        let present = Present {
            session: 1,
            user: "ann".into(),
            language: "en".into(),
            mailbox,
            ending: Default::default(),
            status,
            via,
        };
        assert!(matches!(self.roster.enter(device, present, 9), Ok(None)));
        messages
    }

    fn ask<'a>(&self, device: impl Into<Option<&'a str>>) -> tokio::task::JoinHandle<ApprovalOutcome> {
        self.ask_until(device, CancellationToken::new())
    }

    /// The core of `device` decides about exactly this question; `None`: the core of the user.
    fn settle<'a>(&self, approval: &Approval, device: impl Into<Option<&'a str>>, outcome: ApprovalOutcome) {
        self.approvals.settle(device.into(), approval.settled(outcome, AnsweredBy::Voice));
    }

    #[allow(clippy::disallowed_methods, reason = "a test stands in for the work of a turn")]
    fn ask_until<'a>(
        &self,
        device: impl Into<Option<&'a str>>,
        cancel: CancellationToken,
    ) -> tokio::task::JoinHandle<ApprovalOutcome> {
        let (approvals, request) = (self.approvals.clone(), request(device.into()));
        tokio::spawn(async move { approvals.ask(request, cancel).await.outcome })
    }
}

/// Of a turn.
fn request(device: Option<&str>) -> ConsentRequest {
    let arguments = json!({"text": "shopping"});
    ConsentRequest {
        user: "ann".into(),
        device: device.map(str::to_owned),
        turn: Some(Turn { id: 3, revision: 0 }),
        call_id: "c1".into(),
        tool: "note.delete".into(),
        question: Question {
            title: "Delete a note?".into(),
            said: "Delete a note? Text \"shopping\".".into(),
            shown: "text: \"shopping\"".into(),
        },
        arguments_hash: arguments_hash("note.delete", &arguments),
        arguments,
        program: None,
    }
}

async fn asked(messages: &mut mpsc::Receiver<DeviceMessage>) -> Approval {
    match messages.recv().await.and_then(DeviceMessage::input) {
        Some(Input::ApprovalAsked(approval)) => approval,
        _ => panic!("no question came"),
    }
}

#[tokio::test]
async fn a_decision_counts_from_the_glasses_that_were_asked_and_for_the_same_arguments_only() {
    let hash = arguments_hash("note.delete", &json!({"text": "shopping"}));
    let other = arguments_hash("note.delete", &json!({"text": "everything"}));
    let renamed = arguments_hash("note.remove", &json!({"text": "shopping"}));
    for (device, arguments_hash, another_call, expected) in [
        (Some("glasses"), hash, 0, ApprovalOutcome::Approved),
        (Some("glasses"), other, 0, ApprovalOutcome::Denied),
        (Some("glasses"), renamed, 0, ApprovalOutcome::Denied),
        (Some("phone"), hash, 0, ApprovalOutcome::Denied),
        (Some(""), hash, 0, ApprovalOutcome::Denied),
        (None, hash, 0, ApprovalOutcome::Denied),
        (Some("glasses"), hash, 1, ApprovalOutcome::Denied),
    ] {
        let fixture = Fixture::new();
        let mut messages = fixture.connect("glasses");
        let outcome = fixture.ask("glasses");
        let asked = asked(&mut messages).await;
        let reference = asked.reference ^ another_call;
        fixture.settle(&Approval { arguments_hash, reference, ..asked }, device, ApprovalOutcome::Approved);
        assert_eq!(outcome.await.unwrap(), expected, "{device:?} {arguments_hash} {another_call}");
        assert!(fixture.approvals.list().is_empty());
    }
}

#[tokio::test]
async fn a_decision_about_a_question_that_is_settled_or_of_no_one_changes_nothing() {
    let fixture = Fixture::new();
    let mut messages = fixture.connect("glasses");
    let first = fixture.ask("glasses");
    let approval = asked(&mut messages).await;
    let id = approval.id;
    fixture.settle(&approval, "glasses", ApprovalOutcome::Denied);
    fixture.settle(&approval, "glasses", ApprovalOutcome::Approved);
    assert_eq!(first.await.unwrap(), ApprovalOutcome::Denied);
    // A second question of the same kind is another one: the replayed yes has its number no more.
    let second = fixture.ask("glasses");
    let again = asked(&mut messages).await;
    assert_ne!(again.id, id);
    assert_ne!(again.reference, approval.reference);
    fixture.settle(&approval, "glasses", ApprovalOutcome::Approved);
    fixture.settle(&Approval { id: id.wrapping_sub(1), ..approval.clone() }, "glasses", ApprovalOutcome::Approved);
    fixture.settle(&again, "glasses", ApprovalOutcome::Expired);
    assert_eq!(second.await.unwrap(), ApprovalOutcome::Expired);
}

#[tokio::test]
async fn numbers_of_questions_do_not_begin_anew_with_the_gateway() {
    let mut firsts = std::collections::BTreeSet::new();
    for _ in 0..8 {
        let fixture = Fixture::new();
        let mut messages = fixture.connect("glasses");
        let outcome = fixture.ask("glasses");
        let id = asked(&mut messages).await.id;
        assert!((1..=u64::from(u32::MAX)).contains(&id), "it must fit the wire");
        firsts.insert(id);
        outcome.abort();
    }
    assert!(firsts.len() > 4, "{firsts:?}");
}

#[tokio::test]
async fn glasses_that_are_not_connected_are_not_waited_for() {
    let fixture = Fixture::new();
    assert_eq!(fixture.ask("glasses").await.unwrap(), ApprovalOutcome::Unasked);
    assert!(fixture.approvals.list().is_empty());
}

/// On the control socket, "no glasses" is an empty string.
#[tokio::test]
async fn a_call_without_glasses_can_ask_nobody_and_says_so() {
    let fixture = Fixture::new();
    let mut events = fixture.approvals.watch().unwrap();
    assert_eq!(fixture.ask(None).await.unwrap(), ApprovalOutcome::Unasked);
    for outcome in [None, Some("unasked")] {
        let event = events.recv().await.unwrap();
        assert_eq!((event.device.as_deref(), event.outcome.as_deref()), (None, outcome));
        let sent = serde_json::to_value(&event).unwrap();
        assert_eq!(sent["device"], "");
        assert_eq!(serde_json::from_value::<Event>(sent).unwrap(), event);
    }
}

#[tokio::test]
async fn a_question_ends_with_the_task_of_its_glasses_and_with_the_call() {
    let fixture = Fixture::new();
    let mut messages = fixture.connect("glasses");
    let cancel = CancellationToken::new();
    let outcome = fixture.ask_until("glasses", cancel.clone());
    asked(&mut messages).await;
    let mut events = fixture.approvals.watch().unwrap();
    cancel.cancel();
    assert_eq!(outcome.await.unwrap(), ApprovalOutcome::Cancelled);
    assert_eq!(events.recv().await.unwrap().outcome.as_deref(), Some("cancelled"));
    assert!(fixture.approvals.list().is_empty());
    // The glasses need not ask any longer.
    assert!(matches!(messages.recv().await.and_then(DeviceMessage::input), Some(Input::ApprovalWithdrawn { .. })));
    // A task whose mailbox is gone can ask nobody.
    drop(messages);
    assert_eq!(fixture.ask("glasses").await.unwrap(), ApprovalOutcome::Unasked);
    assert!(fixture.approvals.list().is_empty());
}

#[tokio::test]
async fn admin_clients_are_told_what_is_asked_and_how_it_ended() {
    let fixture = Fixture::new();
    let mut messages = fixture.connect("glasses");
    let mut events = fixture.approvals.watch().unwrap();
    let outcome = fixture.ask("glasses");
    let approval = asked(&mut messages).await;
    let event = events.recv().await.unwrap();
    let mut told = serde_json::to_value(&event).unwrap();
    let time = told["timestamp"].take();
    assert!(time.as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{time}");
    assert_eq!(
        told,
        json!({
            "type": "approvalRequired", "timestamp": null, "id": approval.id, "user": "ann", "device": "glasses",
            "source": "capability", "provider": "built_in", "capability": "lorgnette", "function": "note.delete",
            "params": {"text": "shopping"}, "message": "Delete a note?\ntext: \"shopping\"",
        })
    );
    assert_eq!(fixture.approvals.list(), [event]);
    fixture.settle(&approval, "glasses", ApprovalOutcome::Denied);
    let settled = events.recv().await.unwrap();
    assert_eq!((settled.kind, settled.outcome.as_deref()), (EventKind::ApprovalSettled, Some("denied")));
    assert_eq!(settled.by.as_deref(), Some("voice"));
    assert_eq!(outcome.await.unwrap(), ApprovalOutcome::Denied);
}

#[tokio::test]
async fn an_operators_answer_goes_to_the_core_which_decides() {
    let fixture = Fixture::new();
    let mut messages = fixture.connect("glasses");
    let outcome = fixture.ask("glasses");
    let approval = asked(&mut messages).await;
    let core = async {
        let told = messages.recv().await.and_then(DeviceMessage::input);
        let Some(Input::ApprovalAnswered { id, choice, by }) = told else {
            panic!("no answer came");
        };
        assert_eq!((id, choice, by), (approval.id, ApprovalChoice::Yes, AnsweredBy::Operator));
        fixture.settle(&approval, "glasses", ApprovalOutcome::Approved);
    };
    let (answered, ()) = tokio::join!(fixture.approvals.answer(approval.id, ApprovalChoice::Yes), core);
    assert_eq!(answered, Ok("approved".to_owned()));
    assert_eq!(outcome.await.unwrap(), ApprovalOutcome::Approved);
    let late = fixture.approvals.answer(approval.id, ApprovalChoice::Yes).await;
    assert_eq!(late, Err(AnswerError::NotOpen(approval.id)));
    // Where nobody is there to decide, nothing is decided.
    let second = fixture.ask("glasses");
    let waiting = asked(&mut messages).await;
    drop(messages);
    let early = fixture.approvals.answer(waiting.id, ApprovalChoice::Yes).await;
    assert_eq!(early, Err(AnswerError::NotPut(waiting.id)));
    second.abort();
}

#[tokio::test]
async fn only_so_many_may_watch() {
    let fixture = Fixture::new();
    let watching: Vec<_> = std::iter::from_fn(|| fixture.approvals.watch()).take(WATCHERS_MAX + 1).collect();
    assert_eq!(watching.len(), WATCHERS_MAX);
    drop(watching);
    assert!(fixture.approvals.watch().is_some());
}

#[tokio::test]
async fn an_operator_who_looks_at_a_page_counts_as_one_who_watches_beside_the_clients() {
    let fixture = Fixture::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let machine = told.clone();
    fixture.approvals.set_users(Box::new(move |_, input| {
        if let UserInput::ApprovalAsked { watched, .. } = input {
            machine.lock().unwrap().push(watched);
        }
        true
    }));
    // It is over as soon as it is asked.
    let over = CancellationToken::new();
    over.cancel();
    let ask = async || drop(fixture.approvals.ask(ConsentRequest { turn: None, ..request(None) }, over.clone()).await);
    ask().await;
    let pages = [fixture.approvals.look(), fixture.approvals.look()];
    ask().await;
    let clients: Vec<_> = std::iter::from_fn(|| fixture.approvals.watch()).take(WATCHERS_MAX + 1).collect();
    assert_eq!(clients.len(), WATCHERS_MAX);
    drop(clients);
    let [one, other] = pages;
    drop(one);
    ask().await;
    drop(other);
    ask().await;
    assert_eq!(*told.lock().unwrap(), [false, true, true, false]);
}
