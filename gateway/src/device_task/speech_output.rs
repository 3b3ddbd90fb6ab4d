//! Speech for the device: what makes it, and how much of it the device was told.

use audio::speaker::{Packet, Report};
use device_protocol::down::SpeechEnd;
use gateway_core::{
    input::Input,
    vocab::{SoundCoding, ToolResult, Turn, VoiceFact},
};
use serde_json::Value;
use tools::device::Offer;

use super::link::turn_on_wire;
use crate::{
    clock,
    mailbox::{Mailbox, Synthesised},
    speech::{
        ear::Ear,
        mouth::{Due, Mouth},
        speaking::Speaking,
    },
};

/// The speech output of a session. Without a speaker it plays nothing.
pub(super) struct SpeechOutput {
    mouth: Option<Mouth>,
    /// Volume and pace of a device with a speaker.
    speaking: Option<Speaking>,
    /// Where the mouth reports what was synthesised.
    mailbox: Mailbox,
    /// The speech that was started last, and its turn.
    latest: Option<(u32, Option<Turn>)>,
    /// The end of a speech, which follows its last packet.
    end: Option<(u32, SpeechEnd)>,
}

impl SpeechOutput {
    /// `speaker`: `None` for a device without one.
    pub(super) fn new(speaker: Option<(Mouth, Speaking)>, mailbox: Mailbox) -> Self {
        let (mouth, speaking) = speaker.unzip();
        let mut output = Self { mouth, speaking, mailbox, latest: None, end: None };
        output.adjust();
        output
    }

    pub(super) fn has_speaker(&self) -> bool {
        self.mouth.is_some()
    }

    /// Sets the mouth to the wearer's volume and pace.
    fn adjust(&mut self) {
        if let (Some(mouth), Some(speaking)) = (&mut self.mouth, &self.speaking) {
            mouth.set(speaking.gain(), speaking.speed());
        }
    }

    /// The offers of the glasses, and the tools for volume and pace that they lack.
    pub(super) fn complete(&mut self, offers: Vec<Offer>) -> Vec<Offer> {
        match &mut self.speaking {
            Some(speaking) => speaking.complete(offers),
            None => offers,
        }
    }

    /// Whether the gateway has added this tool.
    pub(super) fn has_tool(&self, tool: &str) -> bool {
        self.speaking.as_ref().is_some_and(|speaking| speaking.has(tool))
    }

    /// The result of a tool that the gateway has added; `None`: the tool is one of the glasses.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Option<ToolResult> {
        let speaking = self.speaking.as_mut().filter(|speaking| speaking.has(tool))?;
        let result = speaking.call(tool, arguments);
        self.adjust();
        Some(result)
    }

    /// Begins to synthesise a clause; `true`: it is the first of a new speech. `None`: nothing can be said.
    pub(super) fn speak(&mut self, turn: Option<Turn>, speech: u32, due: Due) -> Option<bool> {
        let is_new = self.mouth.as_mut()?.speak(speech, turn_on_wire(turn), due, &self.mailbox);
        if is_new {
            self.latest = Some((speech, turn));
        }
        Some(is_new)
    }

    /// Plays a piece of a recorded sound as a clause; as [`Mouth::play`]. `None`: nothing can be played.
    pub(super) fn play(
        &mut self,
        (speech, clause): (u32, u16),
        sound: (&[i16], u32),
        from: f32,
        last: bool,
    ) -> Option<(bool, Option<Input>)> {
        let (is_new, failed) = self.mouth.as_mut()?.play((speech, clause), sound, from, last);
        if is_new {
            self.latest = Some((speech, None));
        }
        Some((is_new, failed))
    }

    /// Ends a speech after the clauses that it has.
    pub(super) fn finish(&mut self, speech: u32, clause: u16) {
        if let Some(mouth) = &mut self.mouth {
            mouth.end(speech, clause, &self.mailbox);
        }
    }

    /// Stops a speech at once.
    pub(super) fn hush(&mut self, speech: u32) {
        if let Some(mouth) = &mut self.mouth {
            mouth.hush(speech, clock::mono_us());
        }
        self.end.take_if(|(_, end)| end.speech == speech);
    }

    /// The turn of a speech, if it is the latest one and has a turn.
    pub(super) fn turn_of(&self, speech: u32) -> Option<Turn> {
        self.latest.filter(|(number, _)| *number == speech).and_then(|(_, turn)| turn)
    }

    /// Takes a synthesised clause; returns the input for the core, if any.
    pub(super) fn synthesised(&mut self, clause: Synthesised) -> Option<Input> {
        self.mouth.as_mut()?.take(clause, &self.mailbox)
    }

    /// How packets are coded from now on.
    pub(super) fn set_coding(&mut self, coding: SoundCoding) {
        if let Some(mouth) = &mut self.mouth {
            mouth.set_coding(coding);
        }
    }

    /// The next packet that is due.
    pub(super) fn poll_packet(&mut self, now_us: u64) -> Option<Packet> {
        self.mouth.as_mut()?.poll_packet(now_us)
    }

    /// A packet was sent, with this sequence; returns the input for the core, if it is the first of its clause.
    pub(super) fn sent(&mut self, packet: &Packet, sequence: u32) -> Option<Input> {
        if packet.last_of_speech {
            let end = SpeechEnd {
                speech: packet.speech,
                last_audio_sequence: sequence,
                duration_us: packet.playout_us + packet.duration_us,
            };
            self.end = Some((packet.turn, end));
        }
        self.mouth.as_mut()?.first_of_clause(packet)
    }

    /// The end of a speech whose last packet was sent, and its turn in frames.
    pub(super) fn take_end(&mut self) -> Option<(u32, SpeechEnd)> {
        self.end.take()
    }

    /// The device reports its playback; as [`Mouth::played`].
    pub(super) fn played(&mut self, speech: u32, report: Report, stopped: bool) -> Option<Input> {
        self.mouth.as_mut()?.played(speech, report, stopped)
    }

    /// Tells when the ear begins or ceases to hear this speech; `None`: nothing has changed.
    pub(super) fn hear_echo(&mut self, ear: &Ear) -> Option<VoiceFact> {
        self.mouth.as_mut()?.hear_echo(ear)
    }

    /// When a packet is due.
    pub(super) fn next_wake_us(&self) -> Option<u64> {
        self.mouth.as_ref().and_then(Mouth::next_wake_us)
    }

    /// Whether something is still to be sent.
    pub(super) fn is_under_way(&self) -> bool {
        self.end.is_some() || self.next_wake_us().is_some()
    }
}
