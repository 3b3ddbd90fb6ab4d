//! Tests of the life cycle, input by input. Rule numbers are those of the twenty rules in docs/apps-host.md.

use super::*;
use crate::driver::Driver;

pub(super) const S: u64 = 1_000_000;

pub(super) fn card(package: &str, kind: AppKind) -> AppCard {
    AppCard { package: package.into(), name: package.to_uppercase(), kind, session: format!("session-{package}") }
}

pub(super) struct Stage {
    driver: Driver<AppLifecycles>,
    now_us: u64,
}

impl Stage {
    pub(super) fn new() -> Self {
        let mut stage = Self { driver: Driver::new(AppLifecycles::default()), now_us: S };
        assert_eq!(stage.input(AppInput::Present(true)), []);
        stage
    }

    pub(super) fn lives(&self) -> &AppLifecycles {
        self.driver.machine()
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp { mono_us: self.now_us, ..Timestamp::default() }
    }

    pub(super) fn drain(&mut self) -> Vec<AppOutput> {
        let now = self.now();
        core::iter::from_fn(|| self.driver.poll_output(now)).collect()
    }

    pub(super) fn input(&mut self, input: AppInput) -> Vec<AppOutput> {
        self.driver.push(input);
        self.drain()
    }

    /// Lets this much time pass, with every timer at its time.
    pub(super) fn pass(&mut self, us: u64) -> Vec<AppOutput> {
        let until_us = self.now_us + us;
        let mut said = Vec::new();
        while let Some((due_us, _)) = self.driver.poll_timeout().filter(|(due_us, _)| *due_us <= until_us) {
            self.now_us = self.now_us.max(due_us);
            self.driver.push_timeout();
            said.extend(self.drain());
        }
        self.now_us = until_us;
        said
    }

    pub(super) fn start(&mut self, package: &str, kind: AppKind) -> Vec<AppOutput> {
        self.input(AppInput::Start(card(package, kind)))
    }

    /// Starts a foreground app, which runs on this connection.
    pub(super) fn run(&mut self, package: &str, connection: AppConnection) {
        self.start(package, AppKind::Foreground);
        self.join(package, connection);
        self.answer(package, Ok(()));
    }

    pub(super) fn join(&mut self, package: &str, connection: AppConnection) -> Vec<AppOutput> {
        self.input(AppInput::Joined { package: package.into(), connection, resumed: false })
    }

    /// A socket connects and resumes its session.
    pub(super) fn resume(&mut self, package: &str, connection: AppConnection) -> Vec<AppOutput> {
        self.input(AppInput::Joined { package: package.into(), connection, resumed: true })
    }

    /// Answers the last call of a webhook.
    pub(super) fn answer(&mut self, package: &str, outcome: Result<(), &str>) -> Vec<AppOutput> {
        let (call, outcome) = (self.lives().calls, outcome.map_err(Into::into));
        self.input(AppInput::Answered { package: package.into(), call, outcome })
    }

    pub(super) fn lose(&mut self, package: &str, connection: AppConnection) -> Vec<AppOutput> {
        self.input(AppInput::Lost { package: package.into(), connection })
    }

    pub(super) fn stop(&mut self, package: &str) -> Vec<AppOutput> {
        self.input(AppInput::Stop { package: package.into(), reason: AppStopReason::User })
    }

    pub(super) fn state(&self, package: &str) -> Option<AppState> {
        self.lives().state(package)
    }
}

pub(super) fn calls(outputs: &[AppOutput]) -> usize {
    outputs.iter().filter(|output| matches!(output, AppOutput::Call { .. })).count()
}

#[test]
fn it_runs_once_its_socket_is_acknowledged_and_not_before() {
    let mut stage = Stage::new();
    let out = stage.start("a", AppKind::Foreground);
    let a = card("a", AppKind::Foreground);
    assert_eq!(
        out,
        [
            AppOutput::Remember(a.clone()),
            AppOutput::Glasses(starting(&a)),
            AppOutput::Call { package: "a".into(), session: "session-a".into(), call: 1, afresh: false, old: None },
        ]
    );
    assert_eq!(stage.state("a"), Some(AppState::Connecting));
    assert_eq!(stage.join("a", 1), [AppOutput::Glasses(AppEvent::Running { package: "a".into() })]);
    assert_eq!((stage.state("a"), stage.lives().connection("a")), (Some(AppState::Running), Some(1)));
    assert_eq!(stage.answer("a", Ok(())), [AppOutput::Started { package: "a".into() }]);
}

#[test]
fn who_waits_for_a_start_waits_until_the_app_knows_its_session_and_not_for_ever() {
    let started = [AppOutput::Started { package: "a".into() }];
    // Its webhook does not answer.
    let mut stage = Stage::new();
    stage.start("a", AppKind::Foreground);
    stage.join("a", 1);
    assert_eq!(stage.start("a", AppKind::Foreground), []);
    assert_eq!(stage.pass(SETTLE_MS * 1_000 - 1), []);
    assert!(!stage.lives().is_ready("a"));
    assert_eq!(stage.pass(1), started);
    assert!(stage.lives().is_ready("a"));
    assert_eq!(stage.answer("a", Err("much later")), []);
    assert_eq!(stage.start("a", AppKind::Foreground), started);
    // It fails, although the socket is there.
    let mut stage = Stage::new();
    stage.start("a", AppKind::Foreground);
    stage.join("a", 1);
    assert_eq!(stage.answer("a", Err("late")), started);
    // It is stopped meanwhile.
    let mut stage = Stage::new();
    stage.start("a", AppKind::Foreground);
    stage.join("a", 1);
    assert!(stage.stop("a").iter().any(|output| matches!(output, AppOutput::Failed { .. })));
    // It answers first.
    let mut stage = Stage::new();
    stage.start("a", AppKind::Foreground);
    assert_eq!(stage.answer("a", Ok(())), []);
    assert_eq!(stage.join("a", 1).last(), started.last());
}

#[test]
fn rule_11_a_second_start_never_calls_the_webhook_of_a_live_app() {
    let mut stage = Stage::new();
    stage.start("a", AppKind::Foreground);
    assert_eq!(stage.start("a", AppKind::Foreground), []);
    stage.run("a", 1);
    assert_eq!(stage.start("a", AppKind::Foreground), [AppOutput::Started { package: "a".into() }]);
    stage.lose("a", 1);
    assert_eq!(stage.start("a", AppKind::Foreground), []);
}

#[test]
fn a_socket_that_never_comes_fails_the_start() {
    let mut stage = Stage::new();
    stage.start("a", AppKind::Foreground);
    assert_eq!(stage.pass(START_MS_MAX * 1_000 - 1), []);
    let out = stage.pass(1);
    assert!(matches!(out.last(), Some(AppOutput::Failed { .. })), "{out:?}");
    assert!(out.contains(&AppOutput::Forget { package: "a".into() }));
    assert!(out.contains(&AppOutput::Glasses(AppEvent::Stopped { package: "a".into() })));
    assert_eq!(stage.state("a"), None);
}

#[test]
fn rule_10_a_webhook_that_fails_late_does_not_stop_what_runs() {
    let mut stage = Stage::new();
    stage.start("a", AppKind::Foreground);
    stage.join("a", 1);
    assert_eq!(stage.answer("a", Err("500")), [AppOutput::Started { package: "a".into() }]);
    assert_eq!(stage.state("a"), Some(AppState::Running));
    let mut stage = Stage::new();
    stage.start("a", AppKind::Foreground);
    let out = stage.answer("a", Err("500"));
    assert_eq!(out.last(), Some(&AppOutput::Failed { package: "a".into(), why: "500".into(), again_ms: None }));
    assert_eq!(stage.state("a"), None);
}

#[test]
fn an_answer_to_an_earlier_start_says_nothing_of_this_one() {
    let mut stage = Stage::new();
    stage.start("a", AppKind::Foreground);
    let first = stage.lives().calls;
    stage.input(AppInput::TurnedAway { package: "a".into(), why: "wrong key".into() });
    stage.start("a", AppKind::Foreground);
    let late = AppInput::Answered { package: "a".into(), call: first, outcome: Err("500".into()) };
    assert_eq!(stage.input(late), []);
    assert_eq!(stage.state("a"), Some(AppState::Connecting));
}

#[test]
fn a_socket_that_is_turned_away_ends_the_start_at_once() {
    let mut stage = Stage::new();
    stage.start("a", AppKind::Foreground);
    let turned_away = AppInput::TurnedAway { package: "a".into(), why: "wrong key".into() };
    let out = stage.input(turned_away.clone());
    assert_eq!(out.last(), Some(&AppOutput::Failed { package: "a".into(), why: "wrong key".into(), again_ms: None }));
    // A running app is not affected by another socket that is rejected in its name.
    stage.run("a", 1);
    assert_eq!(stage.input(turned_away), []);
    assert_eq!(stage.state("a"), Some(AppState::Running));
}

#[test]
fn rule_15_a_lost_socket_that_resumes_is_only_a_reconnect() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    assert_eq!(stage.lose("a", 1), []);
    assert_eq!(stage.state("a"), Some(AppState::Grace));
    assert_eq!(stage.pass(3 * S), []);
    let out = stage.resume("a", 2);
    assert_eq!(calls(&out), 0, "{out:?}");
    assert_eq!(stage.lives().connection("a"), Some(2));
    assert_eq!(stage.pass(100 * S), []);
}

/// Its SDK has told it that it was disconnected, and most apps drop their state then.
#[test]
fn a_lost_socket_that_comes_back_without_resuming_is_called_anew() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.lose("a", 1);
    stage.pass(S);
    assert_eq!(
        stage.join("a", 2),
        [AppOutput::Call { package: "a".into(), session: "session-a".into(), call: 2, afresh: true, old: Some(2) }]
    );
    assert_eq!((stage.state("a"), stage.lives().connection("a")), (Some(AppState::Resurrecting), None));
    // The SDK releases the session that it is to take up again, and closes its socket.
    assert_eq!(stage.input(AppInput::Released { package: "a".into(), connection: 2 }), []);
    assert_eq!(stage.lose("a", 2), []);
    stage.join("a", 3);
    assert_eq!(stage.answer("a", Ok(())), [AppOutput::Started { package: "a".into() }]);
    assert_eq!(stage.pass(100 * S), []);
    assert_eq!(stage.lives().connection("a"), Some(3));
}

#[test]
fn a_redial_whose_loss_was_not_noticed_is_called_anew_too() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    let out = stage.join("a", 2);
    assert_eq!((out.first(), calls(&out)), (Some(&AppOutput::Close { connection: 1, heard: true }), 1));
    assert_eq!(calls(&stage.join("a", 3)), 0, "the call's own socket");
    assert_eq!(stage.lives().connection("a"), Some(3));
}

#[test]
fn a_redial_that_meets_the_call_does_no_harm() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.lose("a", 1);
    stage.pass(GRACE_MS * 1_000);
    // The reconnect of the old socket comes first, is closed by the stop, and then the call's own socket connects.
    assert_eq!(calls(&stage.join("a", 2)), 0);
    stage.lose("a", 2);
    assert_eq!(calls(&stage.join("a", 3)), 0);
    stage.answer("a", Ok(()));
    assert_eq!((stage.state("a"), stage.lives().connection("a")), (Some(AppState::Running), Some(3)));
}

/// The times, in seconds, of the calls of an app's webhook during this time, if each one fails at once.
pub(super) fn tries(stage: &mut Stage, package: &str, seconds: u64) -> Vec<u64> {
    let (began_us, mut at) = (stage.now_us, Vec::new());
    while stage.now_us < began_us + seconds * S {
        let (due_us, _) = stage.driver.poll_timeout().expect("it is tried again");
        if calls(&stage.pass(due_us - stage.now_us)) > 0 {
            at.push((stage.now_us - began_us) / S);
            let out = stage.answer(package, Err("its server does not answer"));
            assert!(matches!(out.last(), Some(AppOutput::Failed { again_ms: Some(_), .. })), "{out:?}");
        }
    }
    at
}

#[test]
fn what_ran_and_cannot_be_called_is_tried_again_ever_less_often() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.lose("a", 1);
    assert_eq!(tries(&mut stage, "a", 240), [5, 6, 8, 12, 20, 36, 68, 128, 188, 248]);
    assert_eq!(stage.state("a"), Some(AppState::Away));
    // Its server is available again.
    stage.pass(RETRY_MS_MAX * 1_000);
    let out = stage.join("a", 2);
    let a = card("a", AppKind::Foreground);
    let wanted = [AppOutput::Glasses(starting(&a)), AppOutput::Glasses(AppEvent::Running { package: "a".into() })];
    assert_eq!(out, wanted, "the glasses were told that it is gone");
    stage.answer("a", Ok(()));
    stage.lose("a", 2);
    assert_eq!(tries(&mut stage, "a", 10), [5, 6, 8, 12], "it begins anew");
}

#[test]
fn what_is_tried_again_ends_when_somebody_stops_it() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.lose("a", 1);
    tries(&mut stage, "a", 20);
    let out = stage.stop("a");
    assert!(out.contains(&AppOutput::Forget { package: "a".into() }), "{out:?}");
    assert!(!out.iter().any(|output| matches!(output, AppOutput::CallStop { .. })), "nobody is there: {out:?}");
    assert_eq!((stage.state("a"), stage.pass(1_000 * S)), (None, Vec::new()));
}

#[test]
fn a_start_of_what_is_tried_again_is_tried_at_once_and_answered() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.lose("a", 1);
    tries(&mut stage, "a", 100);
    assert_eq!(calls(&stage.start("a", AppKind::Foreground)), 1);
    let out = stage.answer("a", Err("its server does not answer"));
    assert!(matches!(out.last(), Some(AppOutput::Failed { again_ms: Some(RETRY_MS_MIN), .. })), "{out:?}");
    assert_eq!(calls(&stage.start("a", AppKind::Foreground)), 1);
    stage.join("a", 2);
    assert_eq!(stage.answer("a", Ok(())), [AppOutput::Started { package: "a".into() }]);
}

#[test]
fn a_socket_replaced_by_a_newer_one_is_dropped_and_its_loss_means_nothing() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    assert!(stage.resume("a", 2).contains(&AppOutput::Drop { connection: 1 }));
    assert_eq!(stage.lose("a", 1), []);
    assert_eq!(stage.lives().connection("a"), Some(2));
}

#[test]
fn rule_13_stopping_calls_the_webhook_and_the_app_closes() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    let out = stage.stop("a");
    let wanted =
        AppOutput::CallStop { package: "a".into(), session: "session-a".into(), call: 2, reason: AppStopReason::User };
    assert!(out.contains(&wanted), "{out:?}");
    assert!(out.contains(&AppOutput::Glasses(AppEvent::Stopped { package: "a".into() })));
    assert!(!out.iter().any(|output| matches!(output, AppOutput::Close { .. })), "{out:?}");
    assert!(stage.lives().by_session("session-a").is_none());
    assert_eq!(stage.lose("a", 1).last(), Some(&AppOutput::Stopped { package: "a".into() }));
    assert_eq!(stage.state("a"), None);
    assert_eq!(stage.answer("a", Ok(())), [], "it is gone already");
}

/// An SDK whose `onStop` is overridden answers, and leaves its socket open.
#[test]
fn an_app_that_has_answered_its_stop_and_does_not_close_is_closed_soon() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.stop("a");
    stage.pass(S / 10);
    assert_eq!(stage.answer("a", Ok(())), []);
    assert_eq!(stage.pass(CLOSE_MS * 1_000 - 1), []);
    let out = stage.pass(1);
    assert_eq!(out.first(), Some(&AppOutput::Close { connection: 1, heard: true }));
    assert_eq!(out.last(), Some(&AppOutput::Stopped { package: "a".into() }));
}

#[test]
fn an_app_that_never_heard_of_its_stop_hears_of_it_by_the_closing() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.stop("a");
    stage.answer("a", Err("its server does not answer"));
    assert_eq!(stage.pass(0).first(), Some(&AppOutput::Close { connection: 1, heard: false }));
}

#[test]
fn an_app_that_does_not_answer_its_stop_is_closed_in_time() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.stop("a");
    assert_eq!(stage.pass(STOP_MS_MAX * 1_000 - 1), []);
    let out = stage.pass(1);
    assert_eq!(out.first(), Some(&AppOutput::Close { connection: 1, heard: true }));
    assert_eq!(out.last(), Some(&AppOutput::Stopped { package: "a".into() }));
}

#[test]
fn stopping_what_does_not_run_is_no_error() {
    let mut stage = Stage::new();
    assert_eq!(stage.stop("a"), [AppOutput::Stopped { package: "a".into() }]);
}

#[test]
fn one_foreground_app_and_many_in_the_background() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.start("b", AppKind::Background);
    stage.join("b", 2);
    let out = stage.start("c", AppKind::Foreground);
    let stopped: Vec<_> = out.iter().filter(|output| matches!(output, AppOutput::CallStop { .. })).collect();
    let wanted = AppOutput::CallStop {
        package: "a".into(),
        session: "session-a".into(),
        call: 3,
        reason: AppStopReason::System,
    };
    assert_eq!(stopped, [&wanted]);
    assert_eq!(stage.state("b"), Some(AppState::Running));
    assert_eq!(stage.state("a"), Some(AppState::Stopping));
}

#[test]
fn an_app_that_released_its_session_is_not_called_back() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.input(AppInput::Released { package: "a".into(), connection: 1 });
    let out = stage.lose("a", 1);
    assert_eq!(calls(&out), 0);
    assert_eq!(stage.state("a"), None);
    assert_eq!(stage.pass(100 * S), []);
}

#[test]
fn an_app_may_release_its_session_before_its_webhook_has_answered() {
    let mut stage = Stage::new();
    stage.start("a", AppKind::Foreground);
    stage.join("a", 1);
    stage.input(AppInput::Released { package: "a".into(), connection: 1 });
    let out = stage.lose("a", 1);
    assert_eq!(calls(&out), 0);
    let told = out.iter().filter(|out| matches!(out, AppOutput::Failed { .. })).count();
    assert_eq!(told, 1, "who waits for the start: {out:?}");
    assert_eq!((stage.answer("a", Ok(())), stage.state("a")), (Vec::new(), None));
    assert_eq!(stage.pass(100 * S), []);
}

#[test]
fn a_start_while_stopping_closes_the_old_socket_first() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.stop("a");
    let out = stage.start("a", AppKind::Foreground);
    // Without a second stop of the app's own, and so that it does not reconnect under the same name.
    assert_eq!(out.first(), Some(&AppOutput::Close { connection: 1, heard: true }));
    assert_eq!(out.get(1), Some(&AppOutput::Stopped { package: "a".into() }), "who waits for the stop is answered");
    assert_eq!(calls(&out), 1);
    assert_eq!(stage.lose("a", 1), []);
    assert_eq!(stage.state("a"), Some(AppState::Connecting));
}

#[test]
fn there_is_a_limit() {
    let mut stage = Stage::new();
    for index in 0..RUNNING_MAX {
        stage.start(&format!("b{index}"), AppKind::Background);
    }
    let out = stage.start("one too many", AppKind::Background);
    assert!(matches!(out.as_slice(), [AppOutput::Failed { .. }]), "{out:?}");
}

#[test]
fn whatever_comes_in_whatever_order_leaves_nobody_waiting_for_ever() {
    // Every start is followed by Started or Failed once time has passed: exhaustive over all short sequences of inputs.
    let steps: [fn(&mut Stage) -> Vec<AppOutput>; 9] = [
        |stage| stage.start("a", AppKind::Foreground),
        |stage| stage.join("a", 1),
        |stage| stage.lose("a", 1),
        |stage| stage.stop("a"),
        |stage| stage.input(AppInput::Present(false)),
        |stage| stage.input(AppInput::Present(true)),
        |stage| stage.start("b", AppKind::Foreground),
        |stage| stage.answer("a", Ok(())),
        |stage| stage.answer("a", Err("away")),
    ];
    for walk in 0..9_usize.pow(5) {
        let mut stage = Stage::new();
        let mut out = Vec::new();
        let mut left = walk;
        for _ in 0..5 {
            out.extend(steps[left % 9](&mut stage));
            left /= 9;
        }
        out.extend(stage.pass(200 * S));
        // An app that ran is retried without end.
        if matches!(stage.state("a"), Some(AppState::Away | AppState::Resurrecting)) {
            out.extend(stage.stop("a"));
            out.extend(stage.pass(200 * S));
        }
        let last_call =
            out.iter().rposition(|output| matches!(output, AppOutput::Call { package, .. } if package == "a"));
        if let Some(at) = last_call {
            let answered = out.iter().skip(at).any(|output| {
                let (AppOutput::Started { package }
                | AppOutput::Failed { package, .. }
                | AppOutput::Asleep { package }) = output
                else {
                    return false;
                };
                package == "a"
            });
            assert!(answered, "{walk}: {out:#?}");
        }
        assert!(!matches!(
            stage.state("a"),
            Some(AppState::Connecting | AppState::Grace | AppState::Resurrecting | AppState::Stopping)
        ));
    }
}
