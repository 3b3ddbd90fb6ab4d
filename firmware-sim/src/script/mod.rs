//! Scripts: what the wearer does and what must be seen, one step a line. `#` begins a remark.
//!
//! ```text
#![doc = include_str!("steps.txt")]
//! ```
//!
//! `wait-for` and `expect` look at everything since the last thing that the wearer did. `expect silence` fails where
//! anything sounds from now on for so long, also the rest of a speech that began before: what stops one takes a moment,
//! which a `wait` in front gives it.

mod parse;
mod run;

use std::path::PathBuf;
use std::time::Duration;

use device_protocol::{ButtonAction, ButtonId, Gesture};

use crate::transport::Target;

pub use parse::parse;
pub use run::{Failure, Runner, Voice, run};

/// All steps, as a person writes them.
pub const STEPS: &str = include_str!("steps.txt");

/// Steps of one script: hours of talk.
pub const STEPS_MAX: usize = 10_000;

/// How long is waited where a step does not say.
pub const WITHIN_DEFAULT: Duration = Duration::from_secs(10);

/// A step with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Number of the line, from 1.
    pub line: usize,
    /// What to do.
    pub action: Action,
}

/// What to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saying {
    /// With the simulator's own voice.
    Text(String),
    /// A WAV file, relative to the script.
    File(PathBuf),
}

/// What must be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The first sound of a speech.
    Speech,
    /// Any text on the display.
    AnyDisplay,
    /// The conversation rests.
    Idle,
    /// Words on the display, in a transcript or in a caption.
    AnyText(String),
    /// Words on the display.
    Display(String),
    /// Words in the caption of a speech that was heard to its end or its interruption.
    Heard(String),
    /// Words in a final transcript.
    Transcript(String),
    /// A call of a device tool.
    Tool(String),
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Say something, to its end.
    Say(Saying),
    /// Type something.
    Text(String),
    /// Do nothing for so long.
    Wait(Duration),
    /// Wait until something is seen; it is an error where it is not.
    Expect(Condition, Duration),
    /// Nothing may sound for so long.
    ExpectSilence(Duration),
    /// Wait for speech, then for so long, then say something.
    Interrupt(Saying, Duration),
    /// Use a button.
    Button(ButtonId, ButtonAction),
    /// Touch the temple.
    Touch(Gesture),
    /// Answer the open question.
    Approve(bool),
    /// Switch the microphone.
    Mute(bool),
    /// Break the link off.
    Cut,
    /// Connect again.
    Reconnect(Option<Target>),
    /// Charge of the battery in percent.
    Battery(u8),
}
