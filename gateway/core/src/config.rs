//! Operator settings of a conversation.

use alloc::{string::String, vec, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::vocab::QuietHours;

/// Default instructions for the model: its answer is heard and read in passing.
const INSTRUCTIONS: &str = "You are the assistant in a pair of smart glasses. The wearer hears your answer and sees it \
    on a small display. Answer in one or two short sentences of plain spoken language: no lists, no markdown, no \
    emoji. Use tools where they help. If a tool fails, say so in a few words and offer another way. Do not repeat what \
    a tool has shown. Say nothing about the wearer that was not asked for.";

/// Settings of one device's conversation. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Phrases that address the assistant, lower case. At most 16 are used.
    pub wake_phrases: Vec<String>,
    /// Whether wake phrases are heard in the sound: if so, words that need one are decoded only once it was heard.
    #[serde(default)]
    pub acoustic_wake: bool,
    /// Whether the recogniser can translate speech into English.
    #[serde(default)]
    pub translates: bool,
    /// Whether a tool's sentence is accepted without the wake word.
    pub always_listening: bool,
    /// Whether a model answers what is no command; if so, there is no second pass in search of one.
    pub conversational: bool,
    /// Whether the wake word is optional during an answer and for `follow_up_ms` after it was heard.
    pub follow_up: bool,
    /// Length of the window after an answer.
    pub follow_up_ms: u32,
    /// How long the ear stays open after a bare wake word or a press.
    pub ear_open_ms: u32,
    /// Silence that ends an utterance.
    pub silence_ms: u32,
    /// The same if the text so far reads as complete.
    pub silence_complete_ms: u32,
    /// The same if the text is a command to which nothing can be added, or the answer to a yes/no question.
    pub silence_command_ms: u32,
    /// The same if something is missing, as in a command without its argument or within a number, or the words may break off.
    pub silence_incomplete_ms: u32,
    /// The same if the text lacks its end, or looks like a beginning: "tomorrow at eight".
    pub silence_trailing_ms: u32,
    /// Minimum time between two partial transcripts; where nobody follows them it is longer.
    pub partial_interval_ms: u32,
    /// Longest wait after the end of turn for a transcript whose decode has not begun.
    pub transcript_ms_max: u32,
    /// Longest wait after the end of turn for a second and third pass.
    pub second_pass_ms_max: u32,
    /// Whether there is a second model for second passes: then free text is also decoded a second time, and what the
    /// second model leaves unclear a third time.
    pub second_model: bool,
    /// What interrupts the assistant.
    pub barge_in: BargeIn,
    /// Voice of this length interrupts, if voice alone may interrupt.
    pub barge_in_ms: u32,
    /// Longest wait for the user's machine to grant a turn.
    pub grant_ms_max: u32,
    /// Longest wait for the first event of a model.
    pub model_first_ms_max: u32,
    /// The same if another model can be asked instead.
    pub model_fall_back_ms: u32,
    /// Longest time from the grant to the end of the model's answer; paused while the wearer is asked for consent, and
    /// longer for a tool whose own time-out is beyond the default.
    pub turn_ms_max: u32,
    /// Longest wait for the results of calls cancelled by an interruption.
    pub settle_ms_max: u32,
    /// Model requests in one turn.
    pub model_requests_max: u8,
    /// Tokens that one turn may use before it makes no further request; `None`: unlimited.
    pub turn_tokens_max: Option<u32>,
    /// Time between two heartbeats.
    pub heartbeat_ms: u32,
    /// A device that sends nothing for this long is closed.
    pub silent_ms_max: u32,
    /// How long a lost device may resume.
    pub resume_ms_max: u32,
    /// Minimum time between two changes of the display while an answer streams. Also applies to apps.
    pub display_interval_ms: u32,
    /// How apps share the display.
    pub display: crate::display::Config,
    /// Short sounds.
    #[serde(default)]
    pub earcons: Earcons,
    /// When apps are not heard, unless the wearer has just done something.
    pub quiet_hours: Option<QuietHours>,
    /// Standing instructions for the model, placed before the history.
    pub instructions: Option<String>,
    /// Where the wearer usually is, in words: part of the model's instructions.
    pub place: Option<String>,
}

impl Config {
    /// Takes over the operator's standing instructions. Without any (empty), a model that answers what is no command
    /// gets the default ones.
    pub fn instruct(&mut self, written: String) {
        self.instructions = match written {
            written if !written.is_empty() => Some(written),
            _ => self.conversational.then(|| INSTRUCTIONS.into()),
        };
    }
}

/// Which short sounds the glasses are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Earcons {
    /// None but for what is due: a timer, a reminder, a question.
    None,
    /// Also when the ear opens, when something fails or is not understood, and when a turn ends without a word.
    #[default]
    Usual,
    /// Also when a spoken request is accepted, and while its answer takes long.
    All,
}

/// What interrupts the assistant while it speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BargeIn {
    /// Voice on devices that cancel their own echo, words on others.
    #[default]
    Auto,
    /// Any sustained voice.
    Voice,
    /// Only a wake word or a cancel word.
    Words,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            wake_phrases: vec!["hey mentra".into(), "ok mentra".into(), "mentra".into()],
            acoustic_wake: false,
            translates: false,
            always_listening: false,
            conversational: false,
            follow_up: true,
            follow_up_ms: 30_000,
            ear_open_ms: 8_000,
            silence_ms: 600,
            silence_complete_ms: 450,
            silence_command_ms: 200,
            silence_incomplete_ms: 1_600,
            silence_trailing_ms: 2_000,
            partial_interval_ms: 100,
            transcript_ms_max: 10_000,
            second_pass_ms_max: 1_500,
            second_model: false,
            barge_in: BargeIn::Auto,
            barge_in_ms: 250,
            grant_ms_max: 20_000,
            model_first_ms_max: 15_000,
            model_fall_back_ms: 8_000,
            turn_ms_max: 60_000,
            settle_ms_max: 3_000,
            model_requests_max: 6,
            turn_tokens_max: None,
            heartbeat_ms: 5_000,
            silent_ms_max: 15_000,
            resume_ms_max: 30_000,
            display_interval_ms: 200,
            display: crate::display::Config::default(),
            earcons: Earcons::default(),
            quiet_hours: None,
            instructions: None,
            place: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_instructions_stand_where_none_are_written_and_a_model_answers() {
        let instructed = |conversational, written: &str| {
            let mut config = Config { conversational, ..Config::default() };
            config.instruct(written.into());
            config.instructions
        };
        assert_eq!((instructed(false, ""), instructed(true, "")), (None, Some(INSTRUCTIONS.into())));
        assert_eq!(instructed(true, "Be brief."), Some("Be brief.".into()));
        assert_eq!(instructed(false, "Be brief."), Some("Be brief.".into()));
    }
}
