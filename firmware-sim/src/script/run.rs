//! Running a script on a pair of glasses.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use device_protocol::Choice;
use tokio::time::{Instant, sleep, timeout};

use super::{Action, Condition, Saying, Step, WITHIN_DEFAULT};
use crate::error::Error;
use crate::glasses::Glasses;
use crate::microphone::Clip;
use crate::seen::{Event, Log, Seen};

/// Number of recent events searched for an open question or a speech in progress.
const LOOK_BACK: usize = 1_024;

/// Produces the sound of what is to be said.
pub trait Voice {
    /// The sound of a saying.
    fn clip<'a>(&'a self, saying: &'a Saying) -> Pin<Box<dyn Future<Output = Result<Clip, String>> + Send + 'a>>;
}

/// A step that failed.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Failure {
    /// Number of the line, from 1.
    pub line: usize,
    /// What went wrong, as a sentence.
    pub what: String,
}

/// Runs all steps; `report` is called before each one.
///
/// # Errors
/// The first step that failed.
pub async fn run(
    glasses: &Glasses,
    steps: &[Step],
    voice: &(dyn Voice + Sync),
    mut report: impl FnMut(&Step),
) -> Result<(), Failure> {
    let mut runner = Runner::new(glasses, voice);
    for step in steps {
        report(step);
        runner.step(step).await?;
    }
    Ok(())
}

/// Runs steps one by one.
pub struct Runner<'a> {
    glasses: &'a Glasses,
    voice: &'a (dyn Voice + Sync),
    /// Where `expect` starts searching: the wearer's last action.
    mark: u64,
}

impl<'a> Runner<'a> {
    /// A runner before the first action.
    pub fn new(glasses: &'a Glasses, voice: &'a (dyn Voice + Sync)) -> Self {
        Self { glasses, voice, mark: glasses.log().mark() }
    }

    /// Runs one step.
    ///
    /// # Errors
    /// The problem; the next step can still be run.
    pub async fn step(&mut self, step: &Step) -> Result<(), Failure> {
        if !matches!(step.action, Action::Expect(..) | Action::ExpectSilence(_) | Action::Wait(_)) {
            // An interruption first waits for the answer to what was said before.
            if !matches!(step.action, Action::Interrupt(..)) {
                self.mark = self.glasses.log().mark();
            }
        }
        let fail = |what| Failure { line: step.line, what };
        self.mark = perform(self.glasses, &step.action, self.voice, self.mark).await.map_err(fail)?;
        Ok(())
    }
}

async fn perform(glasses: &Glasses, action: &Action, voice: &(dyn Voice + Sync), mark: u64) -> Result<u64, String> {
    let done = |result: Result<(), Error>| result.map_err(|error| error.to_string());
    match action {
        Action::Say(saying) => {
            let clip = voice.clip(saying).await?;
            glasses.say(clip).await.map_err(|error| error.to_string())?;
        }
        Action::Interrupt(saying, after) => {
            let clip = voice.clip(saying).await?;
            expect(glasses, &Condition::Speech, WITHIN_DEFAULT, mark).await?;
            sleep(*after).await;
            let mark = glasses.log().mark();
            glasses.say(clip).await.map_err(|error| error.to_string())?;
            return Ok(mark);
        }
        Action::Text(text) => done(glasses.text(text).await)?,
        Action::Wait(time) => sleep(*time).await,
        Action::Expect(condition, within) => expect(glasses, condition, *within, mark).await?,
        Action::ExpectSilence(time) => expect_silence(glasses.log(), *time).await?,
        Action::Button(button, action) => done(glasses.press(*button, *action).await)?,
        Action::Touch(gesture) => done(glasses.touch(*gesture).await)?,
        Action::Approve(yes) => {
            let approval = open_question(glasses).ok_or("there is no open question")?;
            done(glasses.approve(approval, if *yes { Choice::Yes } else { Choice::No }).await)?;
        }
        Action::Mute(muted) => done(glasses.mute(*muted).await)?,
        Action::Cut => done(glasses.cut().await)?,
        Action::Network(profile) => done(glasses.network(profile.clone()).await)?,
        Action::Acoustics(change) => done(glasses.acoustics(*change).await)?,
        Action::Reconnect(target) => {
            done(glasses.reconnect(target.clone()).await)?;
            let welcome = glasses.log().find(mark, |event| matches!(event.seen, Seen::Welcome { .. }));
            timeout(WITHIN_DEFAULT, welcome).await.map_err(|_| "the gateway did not take the glasses back")?;
        }
        Action::Battery(percent) => done(glasses.battery(*percent).await)?,
    }
    Ok(mark)
}

async fn expect(glasses: &Glasses, condition: &Condition, within: Duration, mark: u64) -> Result<(), String> {
    let began = Instant::now();
    let found = glasses.log().find(mark, |event| is_met(condition, event) || ends(event));
    match timeout(within, found).await {
        Ok((event, _)) if is_met(condition, &event) => Ok(()),
        Ok((event, _)) => Err(format!("{} was expected, but the session ended: {:?}", name(condition), event.seen)),
        Err(_) => Err(format!(
            "{} was expected, but did not come in {:.1} s; seen was: {}",
            name(condition),
            began.elapsed().as_secs_f64(),
            summary(&glasses.log().since(mark))
        )),
    }
}

/// Checks that no sound is played for this time, including speech that began before.
async fn expect_silence(log: &Log, time: Duration) -> Result<(), String> {
    let mark = log.mark();
    let instead = |what: &str, event: &Event| {
        Err(format!("silence was expected, but {what} at {:.2} s", event.at_us as f64 / 1e6))
    };
    if let Some(event) = sounding(&log.since(mark.saturating_sub(LOOK_BACK as u64))) {
        return instead("a speech still plays that began", &event);
    }
    match timeout(time, log.find(mark, |event| is_met(&Condition::Speech, event))).await {
        Ok((event, _)) => instead("a speech began", &event),
        Err(_) => Ok(()),
    }
}

/// The first sound of a speech that is not over.
fn sounding(events: &[Event]) -> Option<Event> {
    let mut playing = None;
    for event in events {
        match (&event.seen, playing) {
            (Seen::FirstSound { speech, .. }, _) => playing = Some((*speech, event)),
            (Seen::SpeechHeard { speech, .. }, Some((number, _))) if *speech == number => playing = None,
            _ => {}
        }
    }
    playing.map(|(_, event)| event.clone())
}

/// A gateway that comes back, as at its upgrade, ends nothing.
fn ends(event: &Event) -> bool {
    matches!(event.seen, Seen::Goodbye { resumes: false, .. } | Seen::Rejected { .. } | Seen::Violation { .. })
}

fn has(text: &str, words: &str) -> bool {
    // A display breaks lines where needed.
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    flat(text).contains(&flat(words))
}

fn is_met(condition: &Condition, event: &Event) -> bool {
    match (condition, &event.seen) {
        (Condition::Speech, Seen::FirstSound { .. }) => true,
        (Condition::AnyDisplay, Seen::Display { text, .. }) => !text.is_empty(),
        (Condition::Idle, Seen::Listening { state, .. }) => state == "idle",
        (Condition::Display(words) | Condition::AnyText(words), Seen::Display { text, .. }) => has(text, words),
        (Condition::Heard(words), Seen::SpeechHeard { text, .. }) => has(text, words),
        (Condition::AnyText(words), Seen::SpeechStart { text, .. } | Seen::Transcript { text, .. }) => has(text, words),
        (Condition::Transcript(words), Seen::Transcript { is_final: true, text, .. }) => has(text, words),
        (Condition::Tool(wanted), Seen::ToolCalled { name, .. }) => name == wanted,
        _ => false,
    }
}

fn name(condition: &Condition) -> String {
    match condition {
        Condition::Speech => "speech".to_owned(),
        Condition::AnyDisplay => "a display".to_owned(),
        Condition::Idle => "the state idle".to_owned(),
        Condition::AnyText(words) => format!("the text \"{words}\""),
        Condition::Display(words) => format!("\"{words}\" on the display"),
        Condition::Heard(words) => format!("\"{words}\" in the ear"),
        Condition::Transcript(words) => format!("the transcript \"{words}\""),
        Condition::Tool(tool) => format!("a call of the glasses' own tool {tool}"),
    }
}

/// The events seen instead, in one line.
fn summary(events: &[Event]) -> String {
    let parts = events.iter().filter_map(|event| match &event.seen {
        Seen::Transcript { is_final: true, text, .. } => Some(format!("transcript \"{text}\"")),
        Seen::Display { text, .. } => Some(format!("display \"{text}\"")),
        Seen::SpeechStart { text, .. } => Some(format!("speech \"{text}\"")),
        Seen::ToolCalled { name, .. } => Some(format!("call of {name}")),
        Seen::LinkLost { reason } => Some(format!("link lost ({reason})")),
        _ => None,
    });
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

fn open_question(glasses: &Glasses) -> Option<u32> {
    let log = glasses.log();
    let events = log.since(log.mark().saturating_sub(LOOK_BACK as u64));
    let settled = |number: u32| {
        events.iter().any(|event| matches!(event.seen, Seen::ApprovalSettled { approval, .. } if approval == number))
    };
    events.iter().rev().find_map(|event| match event.seen {
        Seen::ApprovalRequest { approval, .. } if !settled(approval) => Some(approval),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(3);

    fn first_sound(speech: u32) -> Seen {
        Seen::FirstSound { turn: 1, speech }
    }

    fn heard(speech: u32) -> Seen {
        Seen::SpeechHeard { turn: 1, speech, text: String::new(), played_us: 1, complete: true }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_that_nothing_sounds() {
        let log = Log::default();
        assert_eq!(expect_silence(&log, TIME).await, Ok(()));
        log.push(1_500_000, first_sound(7));
        let error = expect_silence(&log, TIME).await.unwrap_err();
        assert!(error.contains("still plays that began at 1.50 s"), "{error}");
        // Over, and nothing new.
        log.push(2_000_000, heard(7));
        assert_eq!(expect_silence(&log, TIME).await, Ok(()));
        // A new one within the time, and one after it.
        for (after, passes) in [(TIME / 2, false), (TIME * 2, true)] {
            let later = async {
                tokio::time::sleep(after).await;
                log.push(9_000_000, first_sound(8));
                log.push(9_100_000, heard(8));
            };
            let (silence, ()) = tokio::join!(expect_silence(&log, TIME), later);
            assert_eq!(silence.is_ok(), passes, "{silence:?}");
        }
    }
}
