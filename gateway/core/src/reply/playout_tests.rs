//! Tests of the clauses of an answer: handed out, played, paused, failed.

use super::*;

#[test]
fn a_paused_answer_goes_on_where_it_was_paused() {
    let mut cx = Context::new(crate::config::Config::default());
    let mut playout = playout(&mut cx, &["One is here.", "Two is here.", "Three is here."]);
    playout.handle_played(&mut cx, 1, 1, 0.4, false);
    playout.pause(&mut cx);
    assert_eq!((playout.is_paused(), playout.is_speaking(), playout.is_over()), (true, false, false));
    assert_eq!(heard(&playout), "One is here. Two");
    assert!(!playout.release(&mut cx, &mut 1), "it is paused");
    playout.resume();
    while cx.pop().is_some() {}
    assert!(playout.release(&mut cx, &mut 1));
    assert_eq!(spoken(&mut cx), [(2, 0, "Two is here.".into(), 0.4), (2, 1, "Three is here.".into(), 0.0)]);
    assert_eq!(heard(&playout), "One is here. Two", "as before");
    // It begins a little earlier, and is paused again, for which the device reports nothing.
    playout.handle_played(&mut cx, 2, 0, 0.35, false);
    assert_eq!(heard(&playout), "One is here. Two", "what was heard was heard");
    playout.handle_played(&mut cx, 2, 0, 0.8, false);
    playout.pause(&mut cx);
    playout.resume();
    playout.release(&mut cx, &mut 2);
    playout.pause(&mut cx);
    playout.resume();
    spoken(&mut cx);
    playout.release(&mut cx, &mut 3);
    assert_eq!(spoken(&mut cx), [(4, 0, "Two is here.".into(), 0.8), (4, 1, "Three is here.".into(), 0.0)]);
    playout.handle_played(&mut cx, 4, 2, 0.0, true);
    assert_eq!((heard(&playout).as_str(), playout.is_over()), ("(all)", true));
}

#[test]
fn a_clause_that_failed_is_waited_for_when_it_is_handed_out_again() {
    let mut cx = Context::new(crate::config::Config::default());
    let mut playout = playout(&mut cx, &["One is here.", "Two is here."]);
    playout.handle_played(&mut cx, 1, 0, 0.4, false);
    assert!(playout.handle_failed(1, 1));
    playout.pause(&mut cx);
    playout.resume();
    spoken(&mut cx);
    playout.release(&mut cx, &mut 1);
    assert_eq!(spoken(&mut cx), [(2, 0, "One is here.".into(), 0.4), (2, 1, "Two is here.".into(), 0.0)]);
    playout.handle_played(&mut cx, 2, 1, 0.5, false);
    assert_eq!((playout.is_speaking(), playout.is_over()), (true, false), "it still plays");
    playout.handle_played(&mut cx, 2, 2, 0.0, true);
    assert!(playout.is_over());
}

#[test]
fn a_question_that_is_settled_while_the_answer_is_paused_is_not_said_when_it_goes_on() {
    let mut cx = Context::new(crate::config::Config::default());
    let mut playout = playout(&mut cx, &["One is here."]);
    playout.push_question("Shall I?", 7);
    playout.push_sentence(0, "Two is here.");
    playout.release(&mut cx, &mut 1);
    playout.handle_played(&mut cx, 1, 0, 0.4, false);
    playout.pause(&mut cx);
    playout.drop_question(&mut cx, 7);
    assert!(playout.is_paused());
    playout.resume();
    spoken(&mut cx);
    playout.release(&mut cx, &mut 1);
    assert_eq!(spoken(&mut cx), [(2, 0, "One is here.".into(), 0.4), (2, 1, "Two is here.".into(), 0.0)]);
}

/// The clauses that are to be said, each with the part from which on.
fn spoken(cx: &mut Context) -> Vec<(u32, u16, String, f32)> {
    let outputs = core::iter::from_fn(|| cx.pop());
    let spoken = outputs.filter_map(|output| match output {
        Output::Speak { speech, clause, text, from, .. } => Some((speech, clause, text, from)),
        _ => None,
    });
    spoken.collect()
}

/// A complete answer of these sentences, handed out as far as allowed.
fn playout(cx: &mut Context, sentences: &[&str]) -> Playout {
    cx.speaker = true;
    let mut playout = Playout::new(cx, Purpose::Answer, Some(Turn { id: 1, revision: 0 }));
    for sentence in sentences {
        playout.push_sentence(0, sentence);
    }
    playout.finish();
    playout.release(cx, &mut 0);
    playout
}

fn heard(playout: &Playout) -> String {
    match playout.heard() {
        Heard::All => String::from("(all)"),
        Heard::Part(steps) => steps.concat(),
    }
}

#[test]
fn what_was_never_given_was_not_heard() {
    let mut cx = Context::new(crate::config::Config::default());
    let mut playout = playout(&mut cx, &["One is here.", "Two is here.", "Three is here."]);
    assert_eq!(playout.released, CLAUSES_AHEAD_MAX);
    assert!(!playout.handle_failed(1, 2), "it was not given");
    playout.handle_spoken(&mut cx, 1, 2, 1);
    assert_eq!(playout.clauses[2].duration_us, None);
    assert!(playout.handle_played(&mut cx, 1, 9, 0.9, false));
    assert_eq!(heard(&playout), "One is here. Two is here.");
}

#[test]
fn a_device_that_tells_of_whole_clauses_only_is_heard_too() {
    let mut cx = Context::new(crate::config::Config::default());
    let mut playout = playout(&mut cx, &["One is here.", "Two is here."]);
    while cx.pop().is_some() {}
    let mut heard = |done: u16| {
        playout.handle_played(&mut cx, 1, done, 0.0, false);
        let marks = core::iter::from_fn(|| cx.pop());
        marks.filter(|output| matches!(output, Output::Mark { stage: Stage::Heard, .. })).count()
    };
    assert_eq!([heard(0), heard(1), heard(2)], [0, 1, 0]);
}

#[test]
fn a_sound_that_fails_in_its_middle_was_heard_so_far() {
    for (part, expected) in [(0.5, "The capital of"), (0.0, "(all)")] {
        let mut cx = Context::new(crate::config::Config::default());
        let mut playout = playout(&mut cx, &["The capital of France is Paris."]);
        // With a display, all of what cannot be said was read.
        playout.readable = true;
        playout.handle_played(&mut cx, 1, 0, part, false);
        assert!(playout.handle_failed(1, 0));
        assert_eq!(heard(&playout), expected, "{part}");
        assert!(!playout.handle_failed(1, 0), "once");
    }
}

#[test]
fn a_device_has_time_for_what_is_not_made_yet() {
    let mut cx = Context::new(crate::config::Config::default());
    let mut playout = playout(&mut cx, &["The capital of France is Paris."]);
    // 31 characters.
    assert_eq!(cx.next_timer(), Some((31 * 80_000 + 30_000_000, Timer::SpeechStalled)));
    playout.handle_spoken(&mut cx, 1, 0, 2_000_000);
    assert_eq!(cx.next_timer(), Some((10_000_000, Timer::SpeechStalled)));
}

#[test]
fn a_recorded_sound_is_given_in_pieces() {
    let purpose = Purpose::Notice { id: AnnouncementId::App(7) };
    let mut playout = Playout::new(&Context::new(crate::config::Config::default()), purpose, None);
    playout.push_sound(7, 2 * SOUND_PIECE_MS + 1);
    let pieces: Vec<_> = playout.clauses.iter().map(|clause| (clause.sound, clause.duration_us)).collect();
    let whole = u64::from(SOUND_PIECE_MS) * 1_000;
    let expected = [(Some((7, 0)), Some(whole)), (Some((7, 1)), Some(whole)), (Some((7, 2)), Some(1_000))];
    assert_eq!(pieces, expected);
}
