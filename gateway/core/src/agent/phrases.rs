//! The sentences that the core says by itself.

use alloc::{string::String, vec::Vec};

use crate::speech_text::{self, sentences::Splitter};

/// An utterance could not be decoded.
pub(crate) const NOT_UNDERSTOOD: &str = "Sorry, I did not catch that, please say it again.";
/// The microphone sends samples that are all the same.
pub(crate) const MICROPHONE_DEAD: &str = "I get no sound from the microphone. Please check your glasses.";
/// The voice is cut off at the top.
pub(crate) const MICROPHONE_CLIPS: &str = "The microphone is too loud, so I may misunderstand you.";
/// The voice is far too quiet.
pub(crate) const MICROPHONE_QUIET: &str = "I can hardly hear you. Please speak up.";
/// The glasses were gone before the answer was complete.
pub(crate) const CUT_OFF: &str = "I was cut off before I was done.";
/// The gateway was restarted in the middle of a turn.
pub(crate) const RESTARTED: &str = "I was restarted before I was done. Please ask me again.";
/// The same, when a tool was running.
pub(crate) const RESTARTED_IN_CALL: &str = "I was restarted before I was done.";
/// The same, when the wearer was being asked for consent: the question follows.
pub(crate) const RESTARTED_IN_QUESTION: &str = "I was restarted, so I have to ask you again.";
/// In place of that question, where nobody is there to be asked.
pub(crate) const QUESTION_LOST: &str = "A question to you was open. Please ask me again.";
/// A request that waited for something else was not begun.
pub(crate) const REQUEST_LOST: &str = "Something that you said before was not done. Please ask me again.";
/// Before the titles of tools.
pub(crate) const UNKNOWN_CALL: &str = "I don't know whether this was done";
/// Before the titles of what a program had completed.
pub(crate) const ALREADY_DONE: &str = "already done";
/// The model failed for a transient reason.
pub(crate) const MODEL_FAILED: &str = "Sorry, I could not get an answer.";
/// Too many requests, or no budget left.
pub(crate) const MODEL_LIMITED: &str = "Sorry, I have reached my limit for now.";
/// The model refuses to answer.
pub(crate) const MODEL_REFUSED: &str = "Sorry, I cannot help with that.";
/// The model's key is missing or wrong.
pub(crate) const MODEL_AUTH: &str = "Sorry, I may not use the model. Please check the settings.";
/// The model did not respond in time.
pub(crate) const MODEL_SILENT: &str = "Sorry, the answer is taking too long.";
/// The model ended without any text.
pub(crate) const NO_ANSWER: &str = "Sorry, I have no answer to that.";
/// A tool did not answer in time.
pub(crate) const TOOL_SILENT: &str = "Sorry, that took too long.";
/// The model exceeds the limit of steps or calls.
pub(crate) const TOO_MANY_STEPS: &str = "Sorry, that took too many steps.";
/// The turn has used all the tokens that a turn may.
pub(crate) const TOO_MANY_TOKENS: &str = "Sorry, that is more than one answer may take.";
/// Today's budget is used up, and no model is free.
pub(crate) const MONEY_USED_UP: &str = "Sorry, today's budget is used up.";
/// The first model is unavailable; another one answers.
pub(crate) const OTHER_MODEL: &str = "My usual model is away, so another one answers.";
/// No model is available; the local engine answers.
pub(crate) const COMMANDS_ONLY: &str = "My model is away, so I can only do commands.";
/// Today's budget is used up; a free model answers.
pub(crate) const FREE_MODEL: &str = "Today's budget is used up, so a free model answers.";
/// Today's budget is used up; the local engine answers.
pub(crate) const COMMANDS_FREE: &str = "Today's budget is used up, so I can only do commands.";
/// A tool takes long, and nothing was said yet.
pub(crate) const PREAMBLE: &str = "Let me check.";
/// Prefix of the suggested follow-ups.
pub(crate) const YOU_CAN_SAY: &str = "You can say:";
/// A photo that the wearer took by the button is lost.
pub(crate) const PHOTO_NOT_KEPT: &str = "The photo could not be stored.";
/// The store takes no messages.
pub(crate) const MESSAGES_NOT_KEPT: &str = "Our conversation cannot be stored at the moment.";
/// Another device of the user has the turn.
pub(crate) const STILL_BUSY: &str = "Sorry, I am still busy. Please try again.";
/// Talk is translated from now on, and shown.
pub(crate) const TRANSLATING: &str = "Translating into English.";
/// The same, and it is read out.
pub(crate) const TRANSLATING_ALOUD: &str = "I translate into English and read it out.";
/// The wearer ended it.
pub(crate) const NO_LONGER_TRANSLATING: &str = "I no longer translate.";
/// The wearer ended what was not going on.
pub(crate) const NOT_TRANSLATING: &str = "I am not translating.";
/// Nothing was said for long.
pub(crate) const TRANSLATION_IDLE: &str = "Nobody spoke for a while, so I no longer translate.";
/// The weights cannot do it.
pub(crate) const CANNOT_TRANSLATE: &str = "I cannot translate with this model of speech. The one that can comes with the \
    command: lorgnette models fetch whisper-base, and a restart.";
/// Whisper translates into no other language.
pub(crate) const ENGLISH_ONLY: &str = "I can translate into English only.";
/// Sign on the display that it is on,
pub(crate) const TRANSLATING_SIGN: &str = "Translating";
/// and how it ends.
pub(crate) const HOW_TO_STOP: &str = "Say \"stop translating\" to end it.";
/// Before the name of the language that was heard.
pub(crate) const TRANSLATED_FROM: &str = "From ";
/// What was heard was English.
pub(crate) const ENGLISH: &str = "English";
/// In place of a translation that failed.
pub(crate) const MISSED_A_SENTENCE: &str = "(I missed a sentence.)";
/// There is nothing to repeat.
pub(crate) const NOTHING_TO_REPEAT: &str = "I have not said anything yet.";
/// No word unmutes the glasses.
pub(crate) const HOW_TO_UNMUTE: &str =
    "Press and hold the button of the glasses to unmute them, or use their own switch.";
/// The wearer asked for it, and was heard.
pub(crate) const NOT_MUTED: &str = "The microphone is on.";

/// Those that are spoken as they are. The others are only shown, or are a part of a sentence that has words of a wearer.
const SPOKEN: &[&str] = &[
    NOT_UNDERSTOOD,
    MICROPHONE_DEAD,
    MICROPHONE_CLIPS,
    MICROPHONE_QUIET,
    CUT_OFF,
    RESTARTED,
    RESTARTED_IN_CALL,
    RESTARTED_IN_QUESTION,
    MODEL_FAILED,
    MODEL_LIMITED,
    MODEL_REFUSED,
    MODEL_AUTH,
    MODEL_SILENT,
    NO_ANSWER,
    TOOL_SILENT,
    TOO_MANY_STEPS,
    TOO_MANY_TOKENS,
    MONEY_USED_UP,
    OTHER_MODEL,
    COMMANDS_ONLY,
    FREE_MODEL,
    COMMANDS_FREE,
    PREAMBLE,
    PHOTO_NOT_KEPT,
    MESSAGES_NOT_KEPT,
    STILL_BUSY,
    TRANSLATING,
    TRANSLATING_ALOUD,
    NO_LONGER_TRANSLATING,
    NOT_TRANSLATING,
    TRANSLATION_IDLE,
    CANNOT_TRANSLATE,
    ENGLISH_ONLY,
    NOTHING_TO_REPEAT,
    HOW_TO_UNMUTE,
    NOT_MUTED,
];

/// The clauses in which the core has its own sentences spoken. There are no words of a wearer in them, so that their sound
/// may be kept.
pub fn fixed_clauses() -> Vec<String> {
    let clauses = |sentence: &&str| {
        let mut splitter = Splitter::default();
        let mut clauses = splitter.push(&speech_text::clean(sentence).1);
        clauses.extend(splitter.finish());
        clauses
    };
    SPOKEN.iter().flat_map(clauses).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::Config,
        context::Context,
        output::Output,
        reply::{Purpose, Reply},
    };

    #[test]
    fn fixed_clauses_are_what_the_voice_is_given() {
        let fixed = fixed_clauses();
        for sentence in SPOKEN {
            let mut cx = Context::new(Config::default());
            cx.speaker = true;
            let mut reply = Reply::default();
            reply.begin(&mut cx, Purpose::Aside, None);
            reply.push_aside(&mut cx, sentence, true);
            let outputs = core::iter::from_fn(|| cx.pop());
            let texts = outputs.filter_map(|output| match output {
                Output::Speak { text, .. } => Some(text),
                _ => None,
            });
            let texts: Vec<String> = texts.collect();
            assert!(!texts.is_empty() && texts.iter().all(|text| fixed.contains(text)), "{texts:?}");
        }
        for clause in [PREAMBLE, "Sorry, I did not catch that,", "please say it again."] {
            assert!(fixed.iter().any(|fixed| fixed == clause), "{clause}");
        }
    }

    #[test]
    fn the_beginnings_of_sentences_with_a_wearers_words_are_no_fixed_clauses() {
        let fixed = fixed_clauses();
        for part in [UNKNOWN_CALL, ALREADY_DONE, YOU_CAN_SAY, TRANSLATED_FROM] {
            assert!(!fixed.iter().any(|clause| clause.contains(part.trim_end())), "{part}");
        }
    }
}
