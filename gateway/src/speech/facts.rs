//! What the listener detects, in the core's words.

use audio::{listener::Fact, microphone::Fault};
use gateway_core::vocab::{MicrophoneFault, VoiceFact};

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

/// A fault of the microphone as the core's.
pub fn of_microphone(fault: Fault) -> MicrophoneFault {
    match fault {
        Fault::Dead => MicrophoneFault::Dead,
        Fault::Clipping => MicrophoneFault::Clipping,
        Fault::Quiet => MicrophoneFault::Quiet,
        Fault::Offset => MicrophoneFault::Offset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_keeps_its_times_and_a_pause_its_score() {
        let (utterance, at_us, silence_us) = (7, 1_000, 320);
        for score in [None, Some(0.0), Some(0.75)] {
            let fact = of_listener(Fact::Silence { utterance, at_us, silence_us, score });
            assert_eq!(fact, VoiceFact::Silence { utterance, at_us, silence_us, score });
        }
        for (fact, wanted) in [
            (
                Fact::SpeechStarted { utterance, at_us, voiced_us: 64 },
                VoiceFact::SpeechStarted { utterance, at_us, voiced_us: 64 },
            ),
            (Fact::Paused { utterance, at_us, silence_us }, VoiceFact::Paused { utterance, at_us, silence_us }),
            (Fact::Resumed { utterance, at_us }, VoiceFact::Resumed { utterance, at_us }),
            (Fact::Ended { utterance, at_us }, VoiceFact::Ended { utterance, at_us }),
        ] {
            assert_eq!(of_listener(fact), wanted);
        }
    }
}
