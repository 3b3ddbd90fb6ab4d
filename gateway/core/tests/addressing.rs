//! Tests of what recognition is told of an utterance in advance, so that it can skip work.

use gateway_core::{
    conversation::{Config, Conversation},
    driver::Machine as _,
    input::{Button, Input},
    output::Output,
    vocab::{Addressing, DeviceInfo, DisplaySize, Timestamp, Transcript, TranscriptKind, VoiceFact},
};

struct World {
    conversation: Conversation,
    now: Timestamp,
}

impl World {
    fn new(config: Config) -> Self {
        let device = DeviceInfo {
            id: "a".into(),
            user: "ann".into(),
            display: Some(DisplaySize::new(40, 5)),
            bitmaps: false,
            speaker: true,
            echo_cancelled: true,
            // With captions, overheard speech is decoded, too.
            captions: true,
        };
        let mut world = Self { conversation: Conversation::new(config), now: Timestamp::default() };
        world.input(Input::Connected { device, resumed: false });
        world
    }

    fn input(&mut self, input: Input) -> Vec<Output> {
        self.now.mono_us += 10_000;
        self.conversation.handle_input(self.now, input);
        std::iter::from_fn(|| self.conversation.poll_output()).collect()
    }

    /// The decode that was requested, and its relevance to the core.
    fn asked(&mut self, fact: VoiceFact) -> (u16, Addressing) {
        let outputs = self.input(Input::Voice(fact));
        let asked = outputs.iter().find_map(|output| match output {
            Output::Transcribe { revision, kind: TranscriptKind::Speculative, meant, .. } => Some((*revision, *meant)),
            _ => None,
        });
        asked.unwrap_or_else(|| panic!("{outputs:?}"))
    }

    fn begins(&mut self, utterance: u32) {
        self.input(Input::Voice(VoiceFact::SpeechStarted { utterance, at_us: self.now.mono_us, voiced_us: 0 }));
    }

    fn pauses(&mut self, utterance: u32) -> (u16, Addressing) {
        self.asked(VoiceFact::Paused { utterance, at_us: self.now.mono_us, silence_us: 100_000 })
    }

    /// A partial transcript.
    fn looked_at(&mut self, utterance: u32, text: &str) {
        self.now.mono_us += 3_000_000;
        self.conversation.handle_timeout(self.now);
        let outputs: Vec<Output> = std::iter::from_fn(|| self.conversation.poll_output()).collect();
        let asked = outputs.iter().find_map(|output| match output {
            Output::Transcribe { revision, kind: TranscriptKind::Partial, .. } => Some(*revision),
            _ => None,
        });
        let revision = asked.expect("a look");
        let (text, kind) = (text.to_owned(), TranscriptKind::Partial);
        self.input(Input::Transcript(Transcript {
            utterance,
            revision,
            kind,
            text,
            confidence: 0.9,
            last_word: 0.9,
            breaks_off: 0.0,
            foreign: false,
        }));
    }
}

#[test]
fn what_is_known_of_an_utterance_is_told_with_its_decode() {
    let mut world = World::new(Config::default());
    world.begins(1);
    assert_eq!(world.pauses(1).1, Addressing::Unsure, "nobody knows yet");
    world.input(Input::Voice(VoiceFact::Ended { utterance: 1, at_us: 0 }));

    world.begins(2);
    world.looked_at(2, "The weather was nice in the mountains");
    assert_eq!(world.pauses(2).1, Addressing::Overheard);
    world.input(Input::Voice(VoiceFact::Ended { utterance: 2, at_us: 0 }));

    world.begins(3);
    world.looked_at(3, "Hey Mentra, what time");
    assert_eq!(world.pauses(3).1, Addressing::Addressed);
    world.input(Input::Voice(VoiceFact::Ended { utterance: 3, at_us: 0 }));

    world.input(Input::Button(Button::Press));
    world.begins(4);
    assert_eq!(world.pauses(4).1, Addressing::Addressed, "the wearer has pressed");
}

#[test]
fn what_is_lost_is_told_for_the_books() {
    for pressed in [false, true] {
        let mut world = World::new(Config::default());
        if pressed {
            world.input(Input::Button(Button::Press));
        }
        world.begins(1);
        world.input(Input::Voice(VoiceFact::Ended { utterance: 1, at_us: 0 }));
        let mut lost = Vec::new();
        for revision in 1..=4 {
            let outputs = world.input(Input::TranscriptFailed { utterance: 1, revision });
            lost.extend(outputs.into_iter().filter_map(|output| match output {
                Output::UtteranceLost { addressed } => Some(addressed),
                _ => None,
            }));
        }
        assert_eq!(lost, [pressed]);
    }
}
