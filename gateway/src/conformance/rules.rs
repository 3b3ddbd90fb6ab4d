//! The rules of PROTOCOL.md by which devices are judged, and the verdicts.

use std::collections::BTreeMap;

/// How a rule came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As the document says.
    Passed,
    /// This device did not do what the rule is about, and need not.
    NotDone(String),
    /// Otherwise: what was seen.
    Failed(String),
}

/// A rule and its verdict.
#[derive(Clone, Debug)]
pub struct Judged {
    /// One rule of PROTOCOL.md.
    pub rule: Rule,
    /// How it came out.
    pub verdict: Verdict,
}

macro_rules! rules {
    ($($name:ident $section:literal $text:literal)+) => {
        /// A rule for devices, in the order of a report.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rule {
            $(#[doc = $text] $name,)+
        }

        impl Rule {
            /// All rules.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Section of PROTOCOL.md.
            pub fn section(self) -> u8 {
                match self { $(Self::$name => $section,)+ }
            }

            /// The rule in words.
            pub fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

rules! {
    Hello 6 "hello is well formed: texts that show as themselves, rates and sizes of this version"
    Proof 6 "proof reveals the nonce of hello, and is signed with the key of hello"
    Nonce 6 "each connection has a new nonce"
    UnknownLink 5 "an unknown link kind in the handshake is skipped"
    Invitation 6 "a device that was invited shows that it knows the code"
    PairingBeats 6 "heartbeats come every 5 s while pairing waits"
    Introduction 6 "a device with tools sends their list right after the welcome"
    Control 4 "control frames are numbered from 1 without a gap"
    Turn 4 "frames name a turn that the device has seen, and `played` that of its speech"
    Unknown 5 "an unknown control kind is skipped, and counts"
    Appended 5 "bytes behind the last known field are ignored"
    Again 4 "a control frame that came before is dropped without a word"
    Ack 7 "sixteen control frames are acknowledged within 1 s"
    AckTruth 7 "acknowledgements name what was sent, and never go back"
    Heartbeat 7 "heartbeats come each heartbeat_ms"
    Echo 7 "heartbeats tell of the gateway's last one"
    Tool 11 "a call of an unknown tool gets one result (unknown_tool)"
    ToolAgain 11 "a call that was answered gets the same result again"
    SoundFormat 6 "sound has the codec, the rate and the packet length of the welcome"
    SoundSequence 4 "packets of sound are numbered from 1, each one more"
    SoundTime 8 "capture times go on by the length of a packet, or more"
    SoundPace 8 "sound comes in real time"
    Pause 8 "of a pause of Opus only the first empty packet is sent"
    SoundEnd 8 "audio_end names the last packet of sound"
    Mute 8 "a muted device sends no sound"
    Played 8 "`played` comes when a speech begins, and at least each 200 ms"
    PlayedSent 8 "nothing is told as played that was not sent"
    PlayedTime 8 "nothing is told as played ahead of real time"
    PlayedClause 8 "`played` names the clause that is played, and tells of each"
    Starved 8 "an empty buffer is told (`starved`), and that it goes on (`playing`)"
    Finished 8 "the end of a speech is told once (`finished`), with its whole length"
    Hush 8 "a hush stops a speech, which is told (`stopped`)"
    Hushed 8 "nothing of a hushed speech is told after its end"
    Reconnect 7 "a device whose link is lost connects again"
    Resume 9 "a resume names the last token, and what was received"
    Replay 9 "what was not received is sent again, unchanged and in the order of times"
    ReplayPace 9 "sound is replayed at most four times as fast as real time"
    Goodbye 10 "a goodbye is answered by closing"
    Retry 10 "no attempt comes before retry_after_ms"
    Gap 4 "a control sequence that is left out ends the session (bad_sequence)"
    Pin 6 "a gateway with another key than the pinned one gets no proof"
}

/// What has been found about one device.
#[derive(Debug, Default)]
pub(super) struct Report(BTreeMap<Rule, Verdict>);

impl Report {
    /// The rule was kept. A failure stays.
    pub(super) fn pass(&mut self, rule: Rule) {
        if !matches!(self.0.get(&rule), Some(Verdict::Failed(_))) {
            self.0.insert(rule, Verdict::Passed);
        }
    }

    /// The rule was broken. The first failure counts.
    pub(super) fn fail(&mut self, rule: Rule, what: impl Into<String>) {
        if !matches!(self.0.get(&rule), Some(Verdict::Failed(_))) {
            self.0.insert(rule, Verdict::Failed(what.into()));
        }
    }

    /// The rule could not be judged. Whatever else was found counts.
    pub(super) fn skip(&mut self, rule: Rule, why: impl Into<String>) {
        self.0.entry(rule).or_insert_with(|| Verdict::NotDone(why.into()));
    }

    /// Passes or fails.
    pub(super) fn check(&mut self, rule: Rule, holds: bool, what: impl FnOnce() -> String) {
        if holds { self.pass(rule) } else { self.fail(rule, what()) }
    }

    pub(super) fn verdict(&self, rule: Rule) -> Option<&Verdict> {
        self.0.get(&rule)
    }

    /// All rules with their verdicts.
    pub(super) fn finish(mut self) -> Vec<Judged> {
        let mut verdict =
            |rule| self.0.remove(&rule).unwrap_or_else(|| Verdict::NotDone("nothing of it was seen".into()));
        Rule::ALL.iter().map(|&rule| Judged { rule, verdict: verdict(rule) }).collect()
    }
}
