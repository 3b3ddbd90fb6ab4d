//! What an operator writes: commands, the configuration, skills.

use serde_json::Value;

use crate::{
    config, control,
    skills::{self, front_matter},
    text,
};

/// A line of the control socket, and an answer of the gateway to its client.
pub fn control(bytes: &[u8]) {
    if let Ok(request) = serde_json::from_slice::<control::Request>(bytes) {
        let written = serde_json::to_vec(&request).expect("a request has a form");
        let again = serde_json::from_slice::<control::Request>(&written).expect("it is read again");
        assert_eq!(serde_json::to_vec(&again).ok(), Some(written));
        let (name, _) = control::told(&request);
        assert!(!name.is_empty());
    }
    if let Ok(answer) = serde_json::from_slice::<control::Answer>(bytes) {
        // As a terminal shows it.
        let told = serde_json::to_string(&answer).expect("an answer has a form");
        let shown = text::shown(&told);
        assert!(text::is_plain(&shown), "{shown:?}");
        let same = |text: &str| serde_json::from_str::<Value>(text).expect("JSON stays JSON");
        assert_eq!(same(&shown), same(&told));
    }
}

/// The text of a configuration: each problem names a line that is there.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(problems) = config::check(text, "the input") {
        assert!(!problems.is_empty());
        let lines = text.lines().count() + 1;
        for problem in problems {
            assert!(problem.line.is_none_or(|line| (1..=lines).contains(&line)), "{problem:?} in {lines} lines");
            assert!(!problem.what.is_empty());
        }
    }
}

/// The file of a skill.
pub fn skill(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let body = skills::body_of(text);
    assert!(body.len() <= text.len());
    match front_matter::parse(text) {
        Ok(head) => {
            assert!(!head.name.is_empty() && head.name.chars().count() <= front_matter::NAME_CHARS_MAX);
            assert!(!head.description.is_empty());
            assert!(head.description.chars().count() <= front_matter::DESCRIPTION_CHARS_MAX);
            let texts = [&head.name, &head.description].into_iter().chain(&head.tools).chain(&head.programs);
            for text in texts {
                assert!(text::is_plain(text), "{text:?}");
            }
        }
        Err(problem) => assert!((1..=text.lines().count().max(1)).contains(&problem.line), "{problem:?}"),
    }
}
