//! Scripts: actions of the wearer and expected results, one step per line. `#` begins a comment.
//!
//! ```text
#![doc = include_str!("steps.txt")]
//! ```
//!
//! `wait-for` and `expect` search all events since the wearer's last action. `expect silence` fails if any sound is
//! played within the given time, including the rest of a speech that began before. Stopping a speech takes a moment:
//! put a `wait` before the step.

mod parse;
mod run;

use std::path::PathBuf;
use std::time::Duration;

use device_protocol::{ButtonAction, ButtonId, Gesture};

use crate::acoustics::Change;
use crate::network;
use crate::transport::Target;

pub use parse::parse;
pub use run::{Failure, Runner, Voice, run};

/// All steps, in the form shown to people.
pub const STEPS: &str = include_str!("steps.txt");

/// Most steps of one script.
pub const STEPS_MAX: usize = 10_000;

/// Time limit of a step that does not name one.
pub const WITHIN_DEFAULT: Duration = Duration::from_secs(10);

/// A step with its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Number of the line, from 1.
    pub line: usize,
    /// What to do.
    pub action: Action,
}

/// Sound for the microphone, as `say` and `interrupt` name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saying {
    /// With the simulator's own voice.
    Text(String),
    /// A WAV file, relative to the script.
    File(PathBuf),
}

/// What `wait-for` and `expect` look for in the events of the glasses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The first sound of a speech.
    Speech,
    /// Any text on the display.
    AnyDisplay,
    /// The conversation is idle.
    Idle,
    /// Words on the display, in a transcript or in a caption.
    AnyText(String),
    /// Words on the display.
    Display(String),
    /// Words in the caption of a speech that was played to its end or its interruption.
    Heard(String),
    /// Words in a final transcript.
    Transcript(String),
    /// A call of a device tool.
    Tool(String),
}

/// What one line of a script does, or waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Say something, to its end.
    Say(Saying),
    /// Type a request.
    Text(String),
    /// Do nothing for this time.
    Wait(Duration),
    /// Wait until something occurs; an error if it does not.
    Expect(Condition, Duration),
    /// No sound may be played for this time.
    ExpectSilence(Duration),
    /// Wait for speech, then for this time, then say something.
    Interrupt(Saying, Duration),
    /// Use a button.
    Button(ButtonId, ButtonAction),
    /// Touch the temple.
    Touch(Gesture),
    /// Answer the open question.
    Approve(bool),
    /// Mute or unmute the microphone.
    Mute(bool),
    /// Break the link.
    Cut,
    /// Another network from here on.
    Network(network::Profile),
    /// Another echo, room or noise, or half duplex, from here on.
    Acoustics(Change),
    /// Connect again.
    Reconnect(Option<Target>),
    /// Charge of the battery in percent.
    Battery(u8),
}
