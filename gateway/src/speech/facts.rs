//! What the listener detects, in the core's words.

use audio::listener::Fact;
use gateway_core::vocab::VoiceFact;

/// The listener's fact as the core's. Times stay capture times in microseconds.
pub fn of_listener(fact: Fact) -> VoiceFact {
    match fact {
        Fact::SpeechStarted { utterance, at_us, voiced_us } => VoiceFact::SpeechStarted { utterance, at_us, voiced_us },
        Fact::Paused { utterance, at_us, silence_us } => VoiceFact::Paused { utterance, at_us, silence_us },
        Fact::Resumed { utterance, at_us } => VoiceFact::Resumed { utterance, at_us },
        Fact::Silence { utterance, at_us, silence_us, score } => {
            VoiceFact::Silence { utterance, at_us, silence_us, score }
        }
        Fact::Ended { utterance, at_us } => VoiceFact::Ended { utterance, at_us },
    }
}
