//! Parses lines into steps, with exact errors.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use device_protocol::{ButtonAction, ButtonId, Gesture};

use crate::acoustics::{Change, HalfDuplex};
use crate::network;

use super::{Action, Condition, STEPS_MAX, Saying, Step, WITHIN_DEFAULT};

/// Why a script could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ParseError {
    /// Number of the line, from 1.
    pub line: usize,
    /// The problem, and what would be valid.
    pub what: String,
}

/// Parses a script.
///
/// # Errors
/// The first invalid line.
pub fn parse(text: &str) -> Result<Vec<Step>, ParseError> {
    let mut steps = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        let fail = |what| ParseError { line: number, what };
        let words = split(line).map_err(fail)?;
        if words.is_empty() {
            continue;
        }
        if steps.len() == STEPS_MAX {
            return Err(fail(format!("a script has at most {STEPS_MAX} steps")));
        }
        let mut words = Words { words: words.into_iter() };
        let action = action(&mut words).and_then(|action| words.end().map(|()| action)).map_err(fail)?;
        steps.push(Step { line: number, action });
    }
    Ok(steps)
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Bare(String),
    Quoted(String),
}

/// Words and quoted texts; `#` outside quotes ends the line.
fn split(line: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        if let Some(inner) = rest.strip_prefix('"') {
            let (text, behind) = inner.split_once('"').ok_or("a text lacks its closing quote")?;
            words.push(Word::Quoted(text.to_owned()));
            rest = behind.trim_start();
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            words.push(Word::Bare(word.to_owned()));
            rest = behind.trim_start();
        }
    }
    Ok(words)
}

struct Words {
    words: std::vec::IntoIter<Word>,
}

impl Words {
    fn peek(&self, wanted: &str) -> bool {
        matches!(self.words.as_slice().first(), Some(Word::Bare(word)) if word == wanted)
    }

    fn is_empty(&self) -> bool {
        self.words.as_slice().is_empty()
    }

    fn bare(&mut self, what: &str) -> Result<String, String> {
        match self.words.next() {
            Some(Word::Bare(word)) => Ok(word),
            Some(Word::Quoted(text)) => Err(format!("{what} is wanted, not the text \"{text}\"")),
            None => Err(format!("{what} is missing")),
        }
    }

    fn quoted(&mut self) -> Result<String, String> {
        match self.words.next() {
            Some(Word::Quoted(text)) if !text.trim().is_empty() => Ok(text),
            Some(Word::Quoted(_)) => Err("the text is empty".to_owned()),
            Some(Word::Bare(word)) => Err(format!("a text in quotes is wanted, not {word}")),
            None => Err("a text in quotes is missing".to_owned()),
        }
    }

    fn end(&mut self) -> Result<(), String> {
        match self.words.next() {
            None => Ok(()),
            Some(Word::Bare(word) | Word::Quoted(word)) => Err(format!("'{word}' is too much")),
        }
    }

    fn saying(&mut self) -> Result<Saying, String> {
        match self.words.next() {
            Some(Word::Quoted(text)) if !text.trim().is_empty() => Ok(Saying::Text(text)),
            Some(Word::Quoted(_)) => Err("the text is empty".to_owned()),
            Some(Word::Bare(file)) => Ok(Saying::File(PathBuf::from(file))),
            None => Err("say what? a text in quotes or a WAV file".to_owned()),
        }
    }

    fn within(&mut self) -> Result<Duration, String> {
        if self.is_empty() {
            return Ok(WITHIN_DEFAULT);
        }
        if !self.peek("within") {
            return Err("only 'within TIME' may follow".to_owned());
        }
        self.words.next();
        duration(&self.bare("a time such as 5s")?)
    }
}

fn action(words: &mut Words) -> Result<Action, String> {
    let verb = words.bare("a step")?;
    Ok(match verb.as_str() {
        "say" => Action::Say(words.saying()?),
        "text" => Action::Text(words.quoted()?),
        "wait" => Action::Wait(duration(&words.bare("a time such as 2s")?)?),
        "wait-for" => {
            let condition = match words.bare("speech, display, idle or text")?.as_str() {
                "speech" => Condition::Speech,
                "display" => Condition::AnyDisplay,
                "idle" => Condition::Idle,
                "text" => Condition::AnyText(words.quoted()?),
                other => {
                    return Err(format!("wait-for speech, display, idle or text, not {other}"));
                }
            };
            Action::Expect(condition, words.within()?)
        }
        "expect" => expect(words)?,
        "interrupt" => {
            let saying = words.saying()?;
            if !words.peek("after") {
                return Err("interrupt \"...\" after TIME".to_owned());
            }
            words.words.next();
            Action::Interrupt(saying, duration(&words.bare("a time such as 1s")?)?)
        }
        "press" => Action::Button(button(words)?, ButtonAction::Press),
        "double-press" => Action::Button(button(words)?, ButtonAction::DoublePress),
        "long-press" => Action::Button(button(words)?, ButtonAction::LongPress),
        "touch" => {
            let name = words.bare("a gesture")?;
            Action::Touch(Gesture::from_name(&name).ok_or_else(|| one_of("gesture", &name, Gesture::NAMES))?)
        }
        "approve" => match words.bare("yes or no")?.as_str() {
            "yes" => Action::Approve(true),
            "no" => Action::Approve(false),
            other => return Err(format!("approve yes or no, not {other}")),
        },
        "mute" => Action::Mute(true),
        "unmute" => Action::Mute(false),
        "cut" => Action::Cut,
        "network" => {
            let name = words.bare("a network")?;
            Action::Network(network::Profile::named(&name).ok_or_else(|| {
                let names = network::NAMES.map(|(name, _)| name);
                format!("'{name}' is no network; there are {}", names.join(", "))
            })?)
        }
        "echo" => Action::Acoustics(Change::Echo(part(words, "an echo such as 80,12")?)),
        "room" => Action::Acoustics(Change::Room(part(words, "a room such as living")?)),
        "noise" => Action::Acoustics(Change::Noise(part(words, "a noise such as babble,10")?)),
        "microphone" => Action::Acoustics(Change::Fault(part(words, "a fault such as dead")?)),
        "half-duplex" if words.peek("on") => {
            words.words.next();
            Action::Acoustics(Change::HalfDuplex(Some(HalfDuplex::default())))
        }
        "half-duplex" => Action::Acoustics(Change::HalfDuplex(part(words, "on, off or a hangover in milliseconds")?)),
        "reconnect" if words.is_empty() => Action::Reconnect(None),
        "reconnect" => {
            let address = words.bare("an address")?;
            Action::Reconnect(Some(address.parse().map_err(|error: crate::transport::Error| error.to_string())?))
        }
        "battery" => {
            let percent = words.bare("a percentage")?;
            let percent: u8 = percent.parse().ok().filter(|percent| *percent <= 100).ok_or("0 to 100 percent")?;
            Action::Battery(percent)
        }
        other => {
            return Err(format!(
                "'{other}' is no step; there are say, text, wait, wait-for, expect, interrupt, press, double-press, \
                 long-press, touch, approve, mute, unmute, cut, network, echo, room, noise, half-duplex, microphone, reconnect and \
                 battery"
            ));
        }
    })
}

fn expect(words: &mut Words) -> Result<Action, String> {
    let condition = match words.bare("display, heard, transcript, tool or silence")?.as_str() {
        "display" => Condition::Display(words.quoted()?),
        "heard" => Condition::Heard(words.quoted()?),
        "transcript" => Condition::Transcript(words.quoted()?),
        "tool" => Condition::Tool(words.bare("the name of a device tool")?),
        "silence" => {
            return Ok(Action::ExpectSilence(duration(&words.bare("a time such as 3s")?)?));
        }
        other => {
            return Err(format!("expect display, heard, transcript, tool or silence, not {other}"));
        }
    };
    Ok(Action::Expect(condition, words.within()?))
}

fn button(words: &mut Words) -> Result<ButtonId, String> {
    if words.is_empty() {
        return Ok(ButtonId::Main);
    }
    let name = words.bare("a button")?;
    ButtonId::from_name(&name).ok_or_else(|| one_of("button", &name, ButtonId::NAMES))
}

/// A part of the acoustic world; `off` removes it.
fn part<T: FromStr<Err = String>>(words: &mut Words, what: &str) -> Result<Option<T>, String> {
    let word = words.bare(what)?;
    if word == "off" { Ok(None) } else { word.parse().map(Some) }
}

fn one_of(what: &str, found: &str, names: &[(u32, &str)]) -> String {
    let names: Vec<&str> = names.iter().map(|(_, name)| *name).collect();
    format!("'{found}' is no {what}; there are {}", names.join(", "))
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is no time; write 500ms or 2s, at most 600s");
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 0.001),
        None => (text.strip_suffix('s').ok_or_else(wrong)?, 1.0),
    };
    let seconds = number.parse::<f64>().map_err(|_| wrong())? * unit;
    if !(0.0..=600.0).contains(&seconds) {
        return Err(wrong());
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acoustics::Fault;
    use crate::script::STEPS;

    fn one(line: &str) -> Action {
        let mut steps = parse(line).unwrap();
        assert_eq!(steps.len(), 1, "{line}");
        steps.remove(0).action
    }

    #[test]
    fn every_step_of_the_manual() {
        let text = |text: &str| Saying::Text(text.to_owned());
        let seconds = Duration::from_secs;
        for (line, action) in [
            (r#"say "Hello # there""#, Action::Say(text("Hello # there"))),
            ("say a/b.wav # greeting", Action::Say(Saying::File("a/b.wav".into()))),
            (r#"text "x""#, Action::Text("x".into())),
            ("wait 500ms", Action::Wait(Duration::from_millis(500))),
            ("wait-for speech", Action::Expect(Condition::Speech, WITHIN_DEFAULT)),
            ("wait-for display within 2s", Action::Expect(Condition::AnyDisplay, seconds(2))),
            ("wait-for idle", Action::Expect(Condition::Idle, WITHIN_DEFAULT)),
            (r#"wait-for text "ten""#, Action::Expect(Condition::AnyText("ten".into()), WITHIN_DEFAULT)),
            (r#"expect display "a" within 5s"#, Action::Expect(Condition::Display("a".into()), seconds(5))),
            (r#"expect heard "a""#, Action::Expect(Condition::Heard("a".into()), WITHIN_DEFAULT)),
            (r#"expect transcript "a""#, Action::Expect(Condition::Transcript("a".into()), WITHIN_DEFAULT)),
            ("expect tool camera.photo", Action::Expect(Condition::Tool("camera.photo".into()), WITHIN_DEFAULT)),
            ("expect silence 3s", Action::ExpectSilence(seconds(3))),
            (r#"interrupt "stop" after 1s"#, Action::Interrupt(text("stop"), seconds(1))),
            ("press main", Action::Button(ButtonId::Main, ButtonAction::Press)),
            ("press volume_up", Action::Button(ButtonId::VolumeUp, ButtonAction::Press)),
            ("double-press", Action::Button(ButtonId::Main, ButtonAction::DoublePress)),
            ("long-press", Action::Button(ButtonId::Main, ButtonAction::LongPress)),
            ("touch double_tap", Action::Touch(Gesture::DoubleTap)),
            ("approve yes", Action::Approve(true)),
            ("mute", Action::Mute(true)),
            ("unmute", Action::Mute(false)),
            ("cut", Action::Cut),
            ("reconnect", Action::Reconnect(None)),
            ("reconnect quic://h:1", Action::Reconnect(Some("quic://h:1".parse().unwrap()))),
            ("network train", Action::Network(network::Profile::named("train").unwrap())),
            ("echo 80,12", Action::Acoustics(Change::Echo(Some("80,12".parse().unwrap())))),
            ("echo off", Action::Acoustics(Change::Echo(None))),
            ("room hall,3", Action::Acoustics(Change::Room(Some("hall,3".parse().unwrap())))),
            ("noise babble,-5", Action::Acoustics(Change::Noise(Some("babble,-5".parse().unwrap())))),
            ("half-duplex on", Action::Acoustics(Change::HalfDuplex(Some(HalfDuplex::default())))),
            ("half-duplex 50", Action::Acoustics(Change::HalfDuplex(Some("50".parse().unwrap())))),
            ("half-duplex off", Action::Acoustics(Change::HalfDuplex(None))),
            ("microphone dead", Action::Acoustics(Change::Fault(Some(Fault::Dead)))),
            ("microphone quiet,40", Action::Acoustics(Change::Fault(Some(Fault::Quiet(40.0))))),
            ("microphone off", Action::Acoustics(Change::Fault(None))),
            ("battery 20", Action::Battery(20)),
        ] {
            assert_eq!(one(line), action, "{line}");
        }
    }

    #[test]
    fn every_step_is_shown_to_people() {
        let what = parse("jump").unwrap_err().what;
        let (_, steps) = what.split_once("there are ").unwrap();
        let shown: Vec<&str> = STEPS.split_whitespace().collect();
        for step in steps.replace(" and ", ", ").split(", ") {
            assert!(shown.contains(&step), "{step}");
        }
    }

    #[test]
    fn remarks_and_empty_lines_count_as_lines() {
        let steps = parse("# a\n\n  cut\n").unwrap();
        assert_eq!(steps, [Step { line: 3, action: Action::Cut }]);
    }

    #[test]
    fn errors_name_line_and_remedy() {
        for (script, line, hint) in [
            ("say", 1, "say what?"),
            ("cut\nsay \"x", 2, "closing quote"),
            ("say \"\"", 1, "empty"),
            ("jump", 1, "'jump' is no step; there are say"),
            ("wait 5", 1, "500ms or 2s"),
            ("wait 1e9s", 1, "at most 600s"),
            ("wait -1s", 1, "500ms or 2s"),
            ("wait NaNs", 1, "no time"),
            ("press nose", 1, "there are main, volume_up"),
            ("expect display hello", 1, "in quotes"),
            ("expect luck \"x\"", 1, "not luck"),
            ("expect display \"x\" soon", 1, "within TIME"),
            ("cut now", 1, "'now' is too much"),
            ("interrupt \"stop\"", 1, "after TIME"),
            ("approve maybe", 1, "yes or no"),
            ("network moon", 1, "there are home, office-roam"),
            ("echo", 1, "such as 80,12 is missing"),
            ("echo 80", 1, "such as 80,12"),
            ("noise purple,3", 1, "there are white"),
            ("room moon", 1, "small, living and hall"),
            ("half-duplex maybe", 1, "not 'maybe'"),
            ("battery 101", 1, "0 to 100"),
            ("reconnect http://x", 1, "wss://"),
            ("\"say\"", 1, "a step is wanted"),
        ] {
            let error = parse(script).unwrap_err();
            assert_eq!(error.line, line, "{script}");
            assert!(error.to_string().contains(hint), "{script}: {error}");
        }
    }
}
