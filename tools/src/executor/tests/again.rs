//! Questions are recorded while they are open, so that they can be asked again after a restart.

use futures_util::FutureExt as _;

use super::*;
use crate::journal::LeftQuestion;

const ASKING: ToolFlags = ToolFlags { requires_approval: true, ..CHANGING };

/// Questions that are recorded while a call waits for consent, and afterwards.
fn interrupted(fixture: &Fixture) -> (Vec<AskedCall>, usize) {
    *fixture.world.consent_after.lock().unwrap() = Duration::from_secs(3_600);
    let asked = || fixture.journal.asked.lock().unwrap().values().cloned().collect::<Vec<_>>();
    let mut calling = Box::pin(fixture.executor.call(context(), good()));
    assert!((&mut calling).now_or_never().is_none(), "it waits");
    let during = asked();
    drop(calling);
    *fixture.world.consent_after.lock().unwrap() = Duration::ZERO;
    (during, asked().len())
}

#[tokio::test]
async fn a_question_is_recorded_until_it_is_answered() {
    for (flags, begun) in [(ASKING, 1), (ToolFlags { read_only: true, ..ASKING }, 0)] {
        let fixture = fixture(flags, done());
        let (during, after) = interrupted(&fixture);
        let [AskedCall { device, call, .. }] = during.as_slice() else { panic!("{during:?}") };
        assert_eq!((device.as_str(), call, after), ("glasses", &good(), 0));
        assert_eq!(fixture.journal.begun.load(Ordering::SeqCst), 0);
        for (outcome, runs) in [(ApprovalOutcome::Denied, 0), (ApprovalOutcome::Approved, 1)] {
            *fixture.world.consent.lock().unwrap() = outcome;
            fixture.executor.call(context(), good()).await;
            assert_eq!(fixture.started(), runs);
            assert!(fixture.journal.asked.lock().unwrap().is_empty());
        }
        assert_eq!(fixture.journal.begun.load(Ordering::SeqCst), begun);
    }
    // Nobody is there to be asked again: the caller of this one ended with the process.
    let fixture = fixture(ASKING, done());
    let outside = CallContext { session: None, turn: None, ..context() };
    *fixture.world.consent_after.lock().unwrap() = Duration::from_secs(3_600);
    let mut calling = Box::pin(fixture.executor.call(outside, good()));
    assert!((&mut calling).now_or_never().is_none() && fixture.journal.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_call_of_before_a_restart_is_asked_about_again_and_made_only_by_the_same_tool() {
    let fixture = fixture(ASKING, done());
    *fixture.world.consent.lock().unwrap() = ApprovalOutcome::Approved;
    let question = LeftQuestion { key: [9; 16], asked: interrupted(&fixture).0.remove(0) };
    let recorded = || fixture.journal.asked.lock().unwrap().keys().copied().collect::<Vec<_>>();
    let source = || Source::App("com.test".into());
    let offer = |spec: ToolSpec| {
        let runner = fixture.runner.clone();
        fixture.registry.register_named(source(), Scope::Global, vec![(spec, "tool".into())], runner).unwrap();
    };
    let again = |turn: u32| {
        // As the process before this one has left it.
        fixture.journal.asked.lock().unwrap().insert(question.key, question.asked.clone());
        let turn = Some(gateway_core::vocab::Turn { id: turn, revision: 0 });
        let context = CallContext { turn, session: Some("next".into()), ..context() };
        fixture.executor.call_again(context, question.clone())
    };
    let questions = || fixture.world.asked.lock().unwrap().len();
    let before = questions();
    offer(ToolSpec { description: "Does something else.".into(), ..spec(ASKING) });
    assert_eq!(code(&again(1).await), Some(ErrorCode::ToolNotFound));
    // Not even one that asks nobody any more.
    offer(spec(CHANGING));
    assert_eq!(code(&again(2).await), Some(ErrorCode::ToolNotFound));
    fixture.registry.unregister(&source(), &Scope::Global);
    assert_eq!(code(&again(3).await), Some(ErrorCode::ToolNotFound));
    assert_eq!((fixture.started(), questions(), recorded()), (0, before, Vec::new()));
    offer(spec(ASKING));
    *fixture.world.consent_after.lock().unwrap() = Duration::from_secs(3_600);
    let mut asking = Box::pin(again(4));
    assert!((&mut asking).now_or_never().is_none(), "it waits");
    assert_eq!(recorded(), [question.key], "a process that died now would leave the question once more, and once");
    drop(asking);
    *fixture.world.consent_after.lock().unwrap() = Duration::ZERO;
    assert_eq!(code(&again(5).await), None);
    assert_eq!((fixture.started(), questions(), recorded()), (1, before + 2, Vec::new()));
    let begun = fixture.journal.rows.lock().unwrap().contains_key(&(context().user, question.key));
    assert!(begun, "in the place of the question");
    assert_eq!(fixture.world.asked.lock().unwrap().last().unwrap().arguments, good().arguments);
}
