//! Clients that approve their own calls: one that may not speak for the wearer is not even asked, and from one that may,
//! nothing but a yes to the question that was put counts.

use std::sync::LazyLock;

use gateway_core::vocab::{ClientClass, ErrorCode};
use proptest::{prelude::*, test_runner::RngSeed};

use super::*;
use crate::{
    call::CallContext,
    executor::Executor,
    ports::Note,
    registry::Registry,
    test_support::{World, call, context},
};

fn config() -> ProptestConfig {
    let given = ProptestConfig::default();
    let rng_seed = match given.rng_seed {
        RngSeed::Random => RngSeed::Fixed(12),
        seed => seed,
    };
    ProptestConfig { cases: 1_000, failure_persistence: None, rng_seed, ..given }
}

/// What a client sends as an answer, with or without a yes in it.
fn answer() -> impl Strategy<Value = Value> {
    let action = prop_oneof![
        4 => Just(json!("accept")),
        1 => Just(json!("decline")),
        1 => Just(json!("cancel")),
        1 => Just(json!("Accept")),
        1 => Just(json!(true)),
        1 => Just(Value::Null),
    ];
    let approve = prop_oneof![
        4 => Just(json!(true)),
        1 => Just(json!(false)),
        1 => Just(json!("true")),
        1 => Just(json!(1)),
        1 => Just(json!([true])),
        1 => Just(Value::Null),
    ];
    (action, approve, 0_u8..4).prop_map(|(action, approve, form)| match form {
        0 | 1 => json!({"action": action, "content": {"approve": approve}}),
        2 => json!({"action": action, "approve": approve, "content": approve}),
        _ => json!({"result": {"action": action, "content": {"approve": approve}}}),
    })
}

fn class() -> impl Strategy<Value = ClientClass> {
    prop_oneof![Just(ClientClass::Internal), Just(ClientClass::Copilot), Just(ClientClass::External)]
}

/// A client's call that needs consent: what it can, what it sends along, and what it answers when it is asked.
#[derive(Clone, Debug)]
struct Hostile {
    class: ClientClass,
    /// Who its key says; `None`: what goes for its class.
    approves: Option<Approver>,
    elicits: bool,
    given: Option<Value>,
    answers: Vec<Value>,
    key: String,
}

fn hostile() -> impl Strategy<Value = Hostile> {
    let approves = prop_oneof![2 => Just(None), 1 => Just(Some(Approver::Wearer)), 1 => Just(Some(Approver::Client))];
    let key = prop_oneof![4 => Just(APPROVAL.to_owned()), 1 => Just("Approval".to_owned()), 1 => Just(String::new())];
    let given = prop::option::of(answer());
    (class(), approves, any::<bool>(), given, prop::collection::vec(answer(), 1..3), key).prop_map(
        |(class, approves, elicits, given, answers, key)| Hostile { class, approves, elicits, given, answers, key },
    )
}

static BUILT_INS: LazyLock<Arc<Registry>> =
    LazyLock::new(|| Arc::new(Registry::with_built_ins().expect("the built-in tools")));

/// What was erased, and how often client and wearer were asked.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    erased: bool,
    client_asked: usize,
    wearer_asked: usize,
}

fn attempt(hostile: &Hostile, wearer: ApprovalOutcome) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = World::usual();
        *world.consent.lock().unwrap() = wearer;
        let (user, text) = (context().user, "kept".to_owned());
        world.notes.lock().unwrap().push((user, Note { id: 1, text, created_wall_ms: 0 }));
        let asking = Asking {
            capabilities: if hostile.elicits { json!({"elicitation": {}}) } else { json!({"sampling": {}}) },
            level: None,
            given: hostile.given.clone().map(|answer| BTreeMap::from([(hostile.key.clone(), answer)])),
            approves: hostile.approves.unwrap_or(Approver::of(hostile.class)),
            is_operator: false,
        };
        let cancel = CancellationToken::new();
        let (channel, mut client) = CallChannel::new(asking, cancel.clone());
        let context = CallContext { turn: None, client: hostile.class, caller: Some(channel), cancel, ..context() };
        let executor = Executor::new(BUILT_INS.clone(), world.ports());
        let mut answers = hostile.answers.iter().cycle();
        let mut client_asked = 0;
        let asked = async {
            while let Some(event) = client.events.recv().await {
                if let Event::Ask(question) = event {
                    client_asked += 1;
                    let answer = answers.next().cloned().unwrap_or_default();
                    drop(question.reply.send(BTreeMap::from([(hostile.key.clone(), answer)])));
                }
            }
            std::future::pending::<()>().await;
        };
        let calling = executor.call(context, call("note.clear", json!({})));
        tokio::select! {
            _ = calling => {}
            () = asked => {}
        }
        let erased = world.notes.lock().unwrap().is_empty();
        let wearer_asked = world.asked.lock().unwrap().len();
        Outcome { erased, client_asked, wearer_asked }
    })
}

/// What comes of a call about which a client is asked that never answers. `leaves`: it goes away instead of keeping silent.
async fn unanswered(leaves: bool) -> (gateway_core::vocab::ToolResult, u64) {
    let world = World::usual();
    let asking = Asking {
        capabilities: json!({"elicitation": {}}),
        level: None,
        given: None,
        approves: Approver::of(ClientClass::Internal),
        is_operator: false,
    };
    let cancel = CancellationToken::new();
    let (channel, mut client) = CallChannel::new(asking, cancel.clone());
    let context = CallContext { turn: None, client: ClientClass::Internal, caller: Some(channel), cancel, ..context() };
    let executor = Executor::new(BUILT_INS.clone(), world.ports());
    let began = tokio::time::Instant::now();
    let silent = async {
        let Some(Event::Ask(question)) = client.events.recv().await else { panic!("a question") };
        if leaves {
            drop(client);
        } else {
            std::future::pending::<()>().await;
        }
        drop(question);
        std::future::pending::<()>().await
    };
    let result = tokio::select! {
        result = executor.call(context, call("note.clear", json!({}))) => result,
        () = silent => unreachable!("it waits for ever"),
    };
    assert!(world.asked.lock().unwrap().is_empty(), "nobody else is asked in its place");
    (result, began.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn a_client_that_keeps_silent_or_goes_away_has_not_agreed() {
    let (result, seconds) = unanswered(false).await;
    let error = result.error.expect("it is not made");
    assert_eq!((error.code, seconds), (ErrorCode::ApprovalExpired, ANSWER_MS_MAX / 1_000));
    assert!(error.message.contains("client") && error.message.contains("nothing was done"), "{error:?}");
    let (result, seconds) = unanswered(true).await;
    let error = result.error.expect("it is not made");
    assert_eq!((error.code, seconds), (ErrorCode::Cancelled, 0));
    assert!(error.message.contains("nothing was done"), "{error:?}");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_client_that_approves_its_own_call_is_not_heard(hostile in hostile()) {
        let approver = hostile.approves.unwrap_or(Approver::of(hostile.class));
        let is_asked = approver == Approver::Client && hostile.elicits;
        let says_yes = hostile.key == APPROVAL
            && hostile.answers[0] == json!({"action": "accept", "content": {"approve": true}});
        for (wearer, agrees) in [(ApprovalOutcome::Denied, false), (ApprovalOutcome::Approved, true)] {
            let expected = Outcome {
                erased: if is_asked { says_yes } else { agrees },
                client_asked: usize::from(is_asked),
                wearer_asked: usize::from(!is_asked),
            };
            prop_assert_eq!(attempt(&hostile, wearer), expected, "{:?}", wearer);
        }
    }
}
