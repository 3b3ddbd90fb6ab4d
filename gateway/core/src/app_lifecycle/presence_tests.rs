//! Tests of what becomes of apps without glasses, and behind a restart.

use super::{
    tests::{S, Stage, calls, card, tries},
    *,
};

#[test]
fn without_glasses_nothing_is_tried_again_until_they_come() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.lose("a", 1);
    tries(&mut stage, "a", 20);
    stage.input(AppInput::Present(false));
    assert_eq!(calls(&stage.pass(1_000 * S)), 0);
    assert_eq!(stage.state("a"), Some(AppState::Dormant));
    assert_eq!(calls(&stage.input(AppInput::Present(true))), 1);
}

#[test]
fn without_glasses_apps_go_to_sleep_and_come_back_with_them() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    assert_eq!(stage.input(AppInput::Present(false)), []);
    assert_eq!(stage.pass(ABSENT_MS_MAX * 1_000 - 1), []);
    // A regular stop, as a final one: the app's own stop runs once.
    let out = stage.pass(1);
    assert!(matches!(out.as_slice(), [AppOutput::CallStop { reason: AppStopReason::System, .. }]), "{out:?}");
    stage.answer("a", Ok(()));
    let asleep = AppOutput::Asleep { package: "a".into() };
    assert_eq!(stage.pass(CLOSE_MS * 1_000), [AppOutput::Close { connection: 1, heard: true }, asleep]);
    assert_eq!(stage.state("a"), Some(AppState::Dormant));
    assert_eq!(stage.lose("a", 1), []);
    assert_eq!(calls(&stage.input(AppInput::Present(true))), 1);
    stage.join("a", 2);
    assert_eq!(stage.state("a"), Some(AppState::Running));
}

#[test]
fn glasses_that_come_while_an_app_goes_to_sleep_wake_it_when_it_is_closed() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.input(AppInput::Present(false));
    stage.pass(ABSENT_MS_MAX * 1_000);
    assert_eq!(stage.input(AppInput::Present(true)), []);
    assert_eq!(calls(&stage.lose("a", 1)), 1);
    // One that is stopped while it becomes dormant is not started again.
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.input(AppInput::Present(false));
    stage.pass(ABSENT_MS_MAX * 1_000);
    assert!(stage.stop("a").contains(&AppOutput::Forget { package: "a".into() }));
    assert_eq!(stage.lose("a", 1).last(), Some(&AppOutput::Stopped { package: "a".into() }));
    assert_eq!(calls(&stage.input(AppInput::Present(true))), 0);
}

#[test]
fn glasses_that_come_back_in_time_disturb_nothing() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.input(AppInput::Present(false));
    stage.pass(30 * S);
    assert_eq!(stage.input(AppInput::Present(true)), []);
    assert_eq!(stage.pass(200 * S), []);
    assert_eq!(stage.state("a"), Some(AppState::Running));
}

#[test]
fn a_lost_socket_without_glasses_is_not_called_back_until_they_come() {
    let mut stage = Stage::new();
    stage.run("a", 1);
    stage.input(AppInput::Present(false));
    stage.lose("a", 1);
    assert_eq!(calls(&stage.pass(GRACE_MS * 1_000)), 0);
    assert_eq!(stage.state("a"), Some(AppState::Dormant));
    // A socket that connects later is accepted, and the app is called again with the glasses.
    assert_eq!(calls(&stage.join("a", 2)), 0);
    assert_eq!(stage.state("a"), Some(AppState::Running));
    let out = stage.input(AppInput::Present(true));
    assert!(matches!(out.as_slice(), [AppOutput::Call { afresh: true, .. }]), "{out:?}");
}

#[test]
fn after_a_restart_sockets_are_awaited_and_their_apps_called_anew() {
    let mut stage = Stage::new();
    let restored = stage.input(AppInput::Restore(card("a", AppKind::Foreground)));
    assert_eq!(calls(&restored), 0);
    assert_eq!(stage.lives().by_session("session-a").map(|card| card.package.as_str()), Some("a"));
    assert_eq!(stage.pass(3 * S), []);
    let out = stage.join("a", 7);
    assert!(matches!(out.as_slice(), [AppOutput::Call { afresh: true, .. }]), "{out:?}");
    assert_eq!(calls(&stage.join("a", 8)), 0);
    assert_eq!(stage.state("a"), Some(AppState::Running));
    // One that resumes continues; one that does not connect is called, and retried while its server is unavailable.
    let mut stage = Stage::new();
    stage.input(AppInput::Restore(card("a", AppKind::Foreground)));
    assert_eq!(calls(&stage.resume("a", 7)), 0);
    assert_eq!(stage.state("a"), Some(AppState::Running));
    let mut stage = Stage::new();
    stage.input(AppInput::Restore(card("a", AppKind::Foreground)));
    assert_eq!(tries(&mut stage, "a", 20), [4, 5, 7, 11, 19, 35]);
}
