//! The life cycle, input by input. Rule numbers are those of the twenty rules in docs/apps-host.md.

use super::*;

const S: u64 = 1_000_000;

fn card(package: &str, kind: AppKind) -> Card {
    Card { package: package.into(), name: package.to_uppercase(), kind, session: format!("session-{package}") }
}

struct Stage {
    lives: Lives,
    now_us: u64,
}

impl Stage {
    fn new() -> Self {
        let mut stage = Self { lives: Lives::default(), now_us: S };
        assert_eq!(stage.input(Input::Present(true)), []);
        stage
    }

    fn drain(&mut self) -> Vec<Output> {
        core::iter::from_fn(|| self.lives.poll_output()).collect()
    }

    fn input(&mut self, input: Input) -> Vec<Output> {
        self.lives.handle_input(self.now_us, input);
        self.drain()
    }

    /// Lets so much time pass, every timer at its moment.
    fn pass(&mut self, us: u64) -> Vec<Output> {
        let until_us = self.now_us + us;
        while let Some(due_us) = self.lives.poll_timeout().filter(|due_us| *due_us <= until_us) {
            self.now_us = self.now_us.max(due_us);
            self.lives.handle_timeout(self.now_us);
        }
        self.now_us = until_us;
        self.drain()
    }

    fn start(&mut self, package: &str, kind: AppKind) -> Vec<Output> {
        self.input(Input::Start(card(package, kind)))
    }

    /// A foreground app that runs on this connection.
    fn run(&mut self, package: &str, connection: Connection) {
        self.start(package, AppKind::Foreground);
        self.join(package, connection);
    }

    fn join(&mut self, package: &str, connection: Connection) -> Vec<Output> {
        self.input(Input::Joined { package: package.into(), connection })
    }

    fn lose(&mut self, package: &str, connection: Connection) -> Vec<Output> {
        self.input(Input::Lost { package: package.into(), connection })
    }

    fn stop(&mut self, package: &str) -> Vec<Output> {
        self.input(Input::Stop { package: package.into(), reason: StopReason::User })
    }

    fn state(&self, package: &str) -> Option<State> {
        self.lives.state(package)
    }
}

fn calls(outputs: &[Output]) -> usize {
    outputs.iter().filter(|output| matches!(output, Output::Call { .. })).count()
}

#[test]
fn it_runs_once_its_socket_is_acknowledged_and_not_before() {
    let mut stage = Stage::new();
    let out = stage.start("a", AppKind::Foreground);
    let a = card("a", AppKind::Foreground);
    assert_eq!(
        out,
        [
            Output::Remember(a.clone()),
            Output::Glasses(AppEventOf::Starting(a)),
            Output::Call { package: "a".into(), session: "session-a".into(), afresh: false },
        ]
    );
    assert_eq!(stage.state("a"), Some(State::Connecting));
    let out = stage.join("a", 1);
    assert_eq!(out, [Output::Glasses(AppEventOf::Running("a".into())), Output::Started { package: "a".into() }]);
    assert_eq!((stage.state("a"), stage.lives.connection("a")), (Some(State::Running), Some(1)));
}

#[test]
fn rule_11_a_second_start_never_calls_the_webhook_of_a_live_app() {
    let mut stage = Stage::new();
    stage.start("a", AppKind::Foreground);
    assert_eq!(stage.start("a", AppKind::Foreground), []);
    stage.join("a", 1);
    assert_eq!(stage.start("a", AppKind::Foreground), [Output::Started { package: "a".into() }]);
    stage.lose("a", 1);
    assert_eq!(stage.start("a", AppKind::Foreground), []);
}

#[test]
fn a_socket_that_never_comes_fails_the_start() {
    let mut stage = Stage::new();
    stage.start("a", AppKind::Foreground);
    assert_eq!(stage.pass(START_MS_MAX * 1_000 - 1), []);
    let out = stage.pass(1);
    assert!(matches!(out.last(), Some(Output::Failed { .. })), "{out:?}");
    assert!(out.contains(&Output::Forget { package: "a".into() }));
    assert!(out.contains(&Output::Glasses(AppEventOf::Stopped("a".into()))));
    assert_eq!(stage.state("a"), None);
}

#[test]
fn rule_10_a_webhook_that_fails_late_does_not_stop_what_runs() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    let failed = Input::WebhookFailed { package: "a".into(), why: "500".into() };
    assert_eq!(stage.input(failed.clone()), []);
    assert_eq!(stage.state("a"), Some(State::Running));
    let mut stage = Stage::new();
    stage.start("a", AppKind::Foreground);
    let out = stage.input(failed);
    assert_eq!(out.last(), Some(&Output::Failed { package: "a".into(), why: "500".into() }));
}

#[test]
fn rule_15_a_lost_socket_that_comes_back_is_only_a_reconnect() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    assert_eq!(stage.lose("a", 1), []);
    assert_eq!(stage.state("a"), Some(State::Grace));
    assert_eq!(stage.pass(3 * S), []);
    let out = stage.join("a", 2);
    assert_eq!(calls(&out), 0, "{out:?}");
    assert_eq!(stage.lives.connection("a"), Some(2));
    assert_eq!(stage.pass(100 * S), []);
}

#[test]
fn a_lost_socket_that_stays_away_is_resurrected_once() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.lose("a", 1);
    let out = stage.pass(GRACE_MS * 1_000);
    assert_eq!(out, [Output::Call { package: "a".into(), session: "session-a".into(), afresh: true }]);
    assert_eq!(stage.state("a"), Some(State::Resurrecting));
    let out = stage.pass(60 * S);
    assert!(matches!(out.last(), Some(Output::Failed { .. })), "{out:?}");
    assert_eq!(stage.state("a"), None);
}

#[test]
fn a_socket_replaced_by_a_newer_one_is_dropped_and_its_loss_means_nothing() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    assert!(stage.join("a", 2).contains(&Output::Drop { connection: 1 }));
    assert_eq!(stage.lose("a", 1), []);
    assert_eq!(stage.lives.connection("a"), Some(2));
}

#[test]
fn rule_13_stopping_calls_the_webhook_and_waits_for_the_app_to_close() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    let out = stage.stop("a");
    let wanted = Output::CallStop { package: "a".into(), session: "session-a".into(), reason: StopReason::User };
    assert!(out.contains(&wanted), "{out:?}");
    assert!(out.contains(&Output::Glasses(AppEventOf::Stopped("a".into()))));
    assert!(!out.iter().any(|output| matches!(output, Output::Close { .. })), "{out:?}");
    assert!(stage.lives.by_session("session-a").is_none());
    assert_eq!(stage.lose("a", 1).last(), Some(&Output::Stopped { package: "a".into() }));
    assert_eq!(stage.state("a"), None);
}

#[test]
fn an_app_that_does_not_close_is_closed() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.stop("a");
    let out = stage.pass(STOP_MS_MAX * 1_000);
    assert_eq!(out.first(), Some(&Output::Close { connection: 1 }));
    assert_eq!(out.last(), Some(&Output::Stopped { package: "a".into() }));
}

#[test]
fn stopping_what_does_not_run_is_no_error() {
    let mut stage = Stage::new();
    assert_eq!(stage.stop("a"), [Output::Stopped { package: "a".into() }]);
}

#[test]
fn one_foreground_app_and_many_in_the_background() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.start("b", AppKind::Background);
    stage.join("b", 2);
    let out = stage.start("c", AppKind::Foreground);
    let stopped: Vec<_> = out.iter().filter(|output| matches!(output, Output::CallStop { .. })).collect();
    let wanted = Output::CallStop { package: "a".into(), session: "session-a".into(), reason: StopReason::System };
    assert_eq!(stopped, [&wanted]);
    assert_eq!(stage.state("b"), Some(State::Running));
    assert_eq!(stage.state("a"), Some(State::Stopping));
}

#[test]
fn an_app_that_released_its_session_is_not_called_back() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.input(Input::Released { package: "a".into(), connection: 1 });
    let out = stage.lose("a", 1);
    assert_eq!(calls(&out), 0);
    assert_eq!(stage.state("a"), None);
    assert_eq!(stage.pass(100 * S), []);
}

#[test]
fn without_glasses_apps_go_to_sleep_and_come_back_with_them() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    assert_eq!(stage.input(Input::Present(false)), []);
    assert_eq!(stage.pass(ABSENT_MS_MAX * 1_000 - 1), []);
    let out = stage.pass(1);
    assert!(out.contains(&Output::Close { connection: 1 }), "{out:?}");
    assert!(!out.contains(&Output::Forget { package: "a".into() }));
    assert_eq!(stage.state("a"), Some(State::Dormant));
    assert_eq!(stage.lose("a", 1), []);
    assert_eq!(calls(&stage.input(Input::Present(true))), 1);
    stage.join("a", 2);
    assert_eq!(stage.state("a"), Some(State::Running));
}

#[test]
fn glasses_that_come_back_in_time_disturb_nothing() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.input(Input::Present(false));
    stage.pass(30 * S);
    assert_eq!(stage.input(Input::Present(true)), []);
    assert_eq!(stage.pass(200 * S), []);
    assert_eq!(stage.state("a"), Some(State::Running));
}

#[test]
fn a_lost_socket_without_glasses_is_not_called_back_until_they_come() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.input(Input::Present(false));
    stage.lose("a", 1);
    assert_eq!(calls(&stage.pass(GRACE_MS * 1_000)), 0);
    assert_eq!(stage.state("a"), Some(State::Dormant));
    // A socket that comes later all the same is welcome.
    stage.join("a", 2);
    assert_eq!(stage.state("a"), Some(State::Running));
}

#[test]
fn after_a_restart_sockets_are_awaited_and_then_called() {
    let mut stage = Stage::new();
    let restored = stage.input(Input::Restore(card("a", AppKind::Foreground)));
    assert_eq!(calls(&restored), 0);
    assert_eq!(stage.lives.by_session("session-a").map(|card| card.package.as_str()), Some("a"));
    assert_eq!(stage.pass(3 * S), []);
    assert_eq!(calls(&stage.join("a", 7)), 0);
    assert_eq!(stage.state("a"), Some(State::Running));

    let mut stage = Stage::new();
    stage.input(Input::Restore(card("a", AppKind::Foreground)));
    assert_eq!(calls(&stage.pass(RESTART_GRACE_MS * 1_000)), 1);
}

#[test]
fn a_start_while_stopping_closes_the_old_socket_first() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.stop("a");
    let out = stage.start("a", AppKind::Foreground);
    assert_eq!(out.first(), Some(&Output::Close { connection: 1 }));
    assert_eq!(calls(&out), 1);
    assert_eq!(stage.lose("a", 1), []);
    assert_eq!(stage.state("a"), Some(State::Connecting));
}

#[test]
fn there_is_a_limit() {
    let mut stage = Stage::new();
    for index in 0..RUNNING_MAX {
        stage.start(&format!("b{index}"), AppKind::Background);
    }
    let out = stage.start("one too many", AppKind::Background);
    assert!(matches!(out.as_slice(), [Output::Failed { .. }]), "{out:?}");
}

#[test]
fn whatever_comes_in_whatever_order_leaves_nobody_waiting_for_ever() {
    // Every start is followed by Started or Failed once time has passed: a small exhaustive walk.
    let steps: [fn(&mut Stage) -> Vec<Output>; 7] = [
        |stage| stage.start("a", AppKind::Foreground),
        |stage| stage.join("a", 1),
        |stage| stage.lose("a", 1),
        |stage| stage.stop("a"),
        |stage| stage.input(Input::Present(false)),
        |stage| stage.input(Input::Present(true)),
        |stage| stage.start("b", AppKind::Foreground),
    ];
    for walk in 0..7_usize.pow(5) {
        let mut stage = Stage::new();
        let mut out = Vec::new();
        let mut left = walk;
        for _ in 0..5 {
            out.extend(steps[left % 7](&mut stage));
            left /= 7;
        }
        out.extend(stage.pass(200 * S));
        let last_call = out.iter().rposition(|output| matches!(output, Output::Call { package, .. } if package == "a"));
        if let Some(at) = last_call {
            let answered = out.iter().skip(at).any(|output| {
                matches!(output, Output::Started { package } | Output::Failed { package, .. } if package == "a")
            });
            assert!(answered, "{walk}: {out:#?}");
        }
        assert!(!matches!(
            stage.state("a"),
            Some(State::Connecting | State::Grace | State::Resurrecting | State::Stopping)
        ));
    }
}
