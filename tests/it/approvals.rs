//! Consent from end to end: simulated glasses are asked, on the display and by voice, and a call runs only if its
//! wearer, or an operator in the wearer's place, has agreed.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use device_protocol::Choice;
use firmware_sim::{Glasses, Seen};
use gateway::control::{Answer, Request, apps::AppsRequest, attempt::Tried};
use gateway_core::vocab::{AnsweredBy, ApprovalOutcome, ErrorCode, Phrases, ToolCall, ToolFlags, ToolResult, ToolSpec};
use serde_json::json;
use tools::{
    ledger::Record,
    registry::{RunContext, Runner},
    source::{Scope, Source},
};

use crate::{
    speech::ear,
    world::{USER, WAIT, World, floor, pause, say, text, until},
};

/// A tool that wipes a list, and counts how often.
#[derive(Default)]
pub struct Wiper(AtomicUsize);

#[async_trait]
impl Runner for Wiper {
    async fn run(&self, _context: RunContext, _call: ToolCall) -> ToolResult {
        self.0.fetch_add(1, Ordering::SeqCst);
        ToolResult::said("The list is empty now.")
    }
}

impl Wiper {
    pub fn plant(world: &World) -> Arc<Self> {
        let wiper = Arc::new(Self::default());
        let spec = ToolSpec {
            name: "com.example.todo.wipe".into(),
            description: "Empties a list.".into(),
            input_schema: json!({"type": "object", "properties": {"list": {"type": "string"}}, "required": ["list"]}),
            phrases: vec![Phrases { language: "en".into(), templates: vec!["(clear|wipe) the {list} list".into()] }],
            flags: ToolFlags { persistent: true, requires_approval: true, ..ToolFlags::default() },
            approval: Some("Wipe the list {list}?".into()),
            ..ToolSpec::default()
        };
        let source = Source::Mcp("todo".into());
        let registry = &world.gateway().services().registry;
        registry.register(source, Scope::Global, vec![spec], wiper.clone()).expect("a tool");
        wiper
    }

    pub fn runs(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Waits until the glasses are asked and show the question; its number and text.
async fn asked(glasses: &mut Glasses) -> (u32, String) {
    let seen = until(glasses, "a question", |event| matches!(event.seen, Seen::ApprovalRequest { .. })).await;
    let Seen::ApprovalRequest { approval, message, .. } = seen else { unreachable!("it was picked") };
    let shown = |event: &firmware_sim::Event| match &event.seen {
        Seen::Display { text, .. } => text.contains("Wipe the list"),
        _ => false,
    };
    assert!(glasses.log().since(0).iter().any(shown), "{:#?}", glasses.log().since(0));
    (approval, message)
}

/// Waits until playback of the question has begun.
async fn sounds(glasses: &mut Glasses) {
    until(glasses, "the question's voice", |event| matches!(event.seen, Seen::FirstSound { .. })).await;
    pause(glasses).await;
}

async fn settled(glasses: &mut Glasses) -> String {
    let seen = until(glasses, "the end of the question", |event| matches!(event.seen, Seen::ApprovalSettled { .. }));
    match seen.await {
        Seen::ApprovalSettled { choice, .. } => choice,
        _ => unreachable!("it was picked"),
    }
}

/// Waits until the turn's answer was played completely.
async fn over(glasses: &mut Glasses) {
    until(glasses, "the answer's end", |event| matches!(event.seen, Seen::SpeechHeard { complete: true, .. })).await;
}

/// All decisions, oldest first.
async fn decisions(world: &World) -> Vec<Record> {
    let request = Request::Decisions { user: Some(USER.to_owned()), since_wall_ms: i64::MIN };
    let Answer::Decisions { mut decisions, .. } = world.ask(request).await.expect("decisions") else { panic!("none") };
    decisions.reverse();
    decisions
}

fn made(decisions: &[Record]) -> Vec<(ApprovalOutcome, AnsweredBy)> {
    decisions.iter().filter_map(|record| record.approval.as_ref()).map(|made| (made.outcome, made.by)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_by_voice_runs_after_a_spoken_yes_and_not_after_a_no() {
    let _floor = floor().await;
    let world = World::start().await;
    let wiper = Wiper::plant(&world);
    let mut glasses = world.glasses("wss", "glasses").await;
    for (answer, choice, runs) in [("Yes, please.", "yes", 1), ("No, don't.", "no", 1)] {
        let before = glasses.heard().len();
        say(&mut glasses, "Hey Mentra, clear the shopping list.").await;
        let (_, message) = asked(&mut glasses).await;
        assert!(message.to_lowercase().contains("wipe the list \"shopping"), "{message}");
        sounds(&mut glasses).await;
        say(&mut glasses, answer).await;
        assert_eq!(settled(&mut glasses).await, choice);
        over(&mut glasses).await;
        let sound = ear::heard(&glasses.heard()[before..]);
        assert!(sound.contains("list") && sound.contains("shopping"), "the question was not heard: {sound}");
        assert_eq!(wiper.runs(), runs, "{answer}");
        pause(&glasses).await;
    }
    let made = made(&decisions(&world).await);
    assert_eq!(made, [(ApprovalOutcome::Approved, AnsweredBy::Voice), (ApprovalOutcome::Denied, AnsweredBy::Voice)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_by_text_is_answered_by_text_tap_and_operator() {
    let world = World::start().await;
    let wiper = Wiper::plant(&world);
    let mut glasses = world.glasses("wss", "glasses").await;
    let mut runs = 0;
    for (by, yes) in
        [AnsweredBy::Text, AnsweredBy::Tap, AnsweredBy::Operator].into_iter().flat_map(|by| [(by, true), (by, false)])
    {
        text(&mut glasses, "wipe the shopping list").await;
        let (number, _) = asked(&mut glasses).await;
        assert_eq!(wiper.runs(), runs, "before the answer");
        match by {
            AnsweredBy::Text => {
                // Text that was typed before the question could be read does not answer it.
                pause(&glasses).await;
                glasses.text(if yes { "yes" } else { "no" }).await.expect("typed");
            }
            AnsweredBy::Tap => {
                glasses.approve(number, if yes { Choice::Yes } else { Choice::No }).await.expect("tapped");
            }
            _ => {
                let Answer::Approvals { approvals } = world.ask(Request::Approvals).await.expect("a list") else {
                    panic!("no list");
                };
                let [open] = approvals.as_slice() else { panic!("{approvals:?}") };
                assert_eq!((open.id, &open.params), (number.into(), &json!({"list": "shopping"})));
                let answer = Request::AnswerApproval { id: open.id, yes };
                let Answer::Done { message } = world.ask(answer).await.expect("taken") else { panic!("not done") };
                assert!(message.contains(if yes { "approved" } else { "denied" }), "{message}");
            }
        }
        assert_eq!(settled(&mut glasses).await, if yes { "yes" } else { "no" });
        over(&mut glasses).await;
        runs += usize::from(yes);
        assert_eq!(wiper.runs(), runs, "{by:?} {yes}");
    }
    let decisions = decisions(&world).await;
    let expected: Vec<_> = [AnsweredBy::Text, AnsweredBy::Tap, AnsweredBy::Operator]
        .into_iter()
        .flat_map(|by| [(ApprovalOutcome::Approved, by), (ApprovalOutcome::Denied, by)])
        .collect();
    assert_eq!(made(&decisions), expected);
    assert!(decisions.iter().all(|record| record.device == record.approval.as_ref().expect("one").device));
}

/// An operator's call of the tool.
fn call() -> Request {
    let arguments = json!({"list": "shopping"});
    Request::CallTool { user: USER.to_owned(), name: "com.example.todo.wipe".to_owned(), arguments }
}

/// An operator's sentence that leads to the same call.
fn trial() -> Request {
    let request =
        AppsRequest::Try { text: "wipe the shopping list".into(), user: USER.into(), device: None, run: true };
    Request::Apps { request }
}

/// Calls the tool as an operator does; the error code if it was refused.
async fn by_operator(world: &World) -> Option<ErrorCode> {
    match world.ask(call()).await.expect("an answer") {
        Answer::ToolResult { result, .. } => result.error.map(|error| {
            assert!(!error.message.is_empty());
            error.code
        }),
        answer => panic!("{answer:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_an_operator_is_asked_on_the_glasses() {
    let world = World::start().await;
    let wiper = Wiper::plant(&world);
    let mut glasses = world.glasses("wss", "glasses").await;
    let wearer = async {
        for answer in ["yes", "no"] {
            let (_, message) = asked(&mut glasses).await;
            assert_eq!(message, "Todo: com example todo wipe\nWipe the list \"shopping\"?");
            sounds(&mut glasses).await;
            text(&mut glasses, answer).await;
            assert_eq!(settled(&mut glasses).await, answer);
        }
        // Nobody waited for the questions: a sound of their own calls the wearer.
        let events = glasses.log().since(0);
        let chimes = events.iter().filter_map(|event| match &event.seen {
            Seen::Chime { sound } => Some(sound.as_str()),
            _ => None,
        });
        assert_eq!(chimes.collect::<Vec<_>>(), ["attention", "attention"]);
    };
    let operator = async { (by_operator(&world).await, wiper.runs(), by_operator(&world).await) };
    let (outcomes, ()) = tokio::time::timeout(WAIT, async { tokio::join!(operator, wearer) }).await.expect("in time");
    assert_eq!((outcomes, wiper.runs()), ((None, 1, Some(ErrorCode::ApprovalDenied)), 1));

    // Neither glasses nor a watching operator are connected.
    glasses.goodbye().await;
    let gone = async {
        while !world.gateway().services().roster.all().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(WAIT, gone).await.expect("the glasses are gone");
    assert_eq!((by_operator(&world).await, wiper.runs()), (Some(ErrorCode::ApprovalExpired), 1));

    // A sentence in a trial run asks in the same way.
    let Answer::Tried { tried: Tried::Calls(calls) } = world.ask(trial()).await.expect("an answer") else {
        panic!("it leads to no call");
    };
    let error = calls[0].result.as_ref().and_then(|result| result.error.as_ref());
    assert_eq!(error.map(|error| error.code), Some(ErrorCode::ApprovalExpired));

    // A watching operator can answer, either way.
    let mut events = world.gateway().services().approvals.watch().expect("a place");
    for (yes, code, runs) in [(true, None, 2), (false, Some(ErrorCode::ApprovalDenied), 2)] {
        let answering = async {
            let event = tokio::time::timeout(WAIT, events.recv()).await.expect("in time").expect("a question");
            assert_eq!((event.device.as_deref(), event.outcome.as_deref()), (None, None));
            let Answer::Done { message } =
                world.ask(Request::AnswerApproval { id: event.id, yes }).await.expect("taken")
            else {
                panic!("not done");
            };
            assert!(message.contains(if yes { "approved" } else { "denied" }), "{message}");
            events.recv().await.expect("its end")
        };
        let (outcome, event) = tokio::join!(by_operator(&world), answering);
        assert_eq!((outcome, wiper.runs(), event.by.as_deref()), (code, runs, Some("operator")));
    }
    let decisions = made(&decisions(&world).await);
    use ApprovalOutcome::{Approved, Denied, Unasked};
    let expected = [
        (Approved, AnsweredBy::Text),
        (Denied, AnsweredBy::Text),
        (Unasked, AnsweredBy::Nobody),
        (Unasked, AnsweredBy::Nobody),
        (Approved, AnsweredBy::Operator),
        (Denied, AnsweredBy::Operator),
    ];
    assert_eq!(decisions, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_disconnects_takes_its_question_back() {
    let world = World::start().await;
    let wiper = Wiper::plant(&world);
    let mut glasses = world.glasses("wss", "glasses").await;
    let mut events = world.gateway().services().approvals.watch().expect("a place");
    for request in [call(), trial()] {
        let caller = world.send(&request).await;
        let (number, _) = asked(&mut glasses).await;
        drop(caller);
        assert_eq!(settled(&mut glasses).await, "dismissed");
        let end = async {
            loop {
                let event = events.recv().await.expect("an event");
                if event.outcome.is_some() {
                    return event;
                }
            }
        };
        let event = tokio::time::timeout(WAIT, end).await.expect("the end of the question");
        assert_eq!(event.id, u64::from(number));
        assert_eq!((event.outcome.as_deref(), event.by.as_deref()), (Some("cancelled"), Some("nobody")));
        let late = world.ask(Request::AnswerApproval { id: event.id, yes: true }).await;
        assert!(late.as_ref().is_err_and(|why| why.contains("no question")), "{late:?}");
    }
    assert_eq!(wiper.runs(), 0);
}
