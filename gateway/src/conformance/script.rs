//! The steps through which a device is led, and those in which nothing is spoken.

use std::time::Duration;

use bytes::Bytes;
use device_protocol::{Down, GoodbyeReason, ListeningState, down, limits};
use futures_util::{FutureExt as _, future::BoxFuture};

use super::{
    Judgement, Rule,
    session::Ended,
    visit::{Entry, Visit, micros},
    watch::Watch,
};
use crate::clock;

/// How long a device may take to connect again: the longest pause of section 7, with a quarter more.
pub(super) const BACK_MAX: Duration = Duration::from_secs(10);
/// How long a frame may take to be acknowledged.
const ACK_MAX: Duration = Duration::from_millis(limits::ACK_EVERY_MS_MAX as u64);
/// A control kind of a later version: the last of its class.
const UNKNOWN_KIND: u16 = 0x9fff;
/// Position of the kind and of the length in an envelope.
const KIND_AT: usize = 2;
const LENGTH_AT: usize = 4;
/// What a later version appends.
const APPENDED: [u8; 3] = [1, 2, 3];
/// A tool that no device offers.
const NO_TOOL: &str = "conformance.no_such_tool";

pub(super) type Done = Result<(), Ended>;

/// A step: what people are told of it, and the rule that fails if the device ends the session in it.
struct Step(&'static str, Rule, for<'a> fn(&'a mut Visit<'_>) -> BoxFuture<'a, Done>);

const STEPS: &[Step] = &[
    Step("first frames", Rule::Introduction, |visit| visit.introduction().boxed()),
    Step("frames of later versions, and one that came before", Rule::Unknown, |visit| visit.later().boxed()),
    Step("acknowledgements", Rule::Ack, |visit| visit.acknowledgements().boxed()),
    Step("tools", Rule::Tool, |visit| visit.tools().boxed()),
    Step("sound", Rule::SoundFormat, |visit| visit.sound().boxed()),
    Step("a speech", Rule::Finished, |visit| visit.speech().boxed()),
    Step("a speech that is hushed", Rule::Hush, |visit| visit.hush().boxed()),
    Step("a lost link", Rule::Reconnect, |visit| visit.lost_link().boxed()),
    Step("a goodbye", Rule::Goodbye, |visit| visit.goodbye().boxed()),
    Step("a control frame that is left out", Rule::Gap, |visit| visit.gap().boxed()),
    Step("another gateway's key", Rule::Pin, |visit| visit.other_gateway().boxed()),
];

/// Leads a device through all steps.
pub(super) async fn run(mut visit: Visit<'_>) -> Judgement {
    for Step(what, rule, run) in STEPS {
        // The last step has no session.
        if *rule != Rule::Pin && !visit.is_ready().await {
            break;
        }
        visit.say(what, Duration::ZERO, false);
        visit.at = *rule;
        if let Err(ended) = run(&mut visit).await {
            visit.lost(ended);
        }
    }
    for rule in Rule::ALL {
        let missing = visit.session.is_none() && visit.watch.report.verdict(Rule::Pin).is_none();
        if missing {
            visit.watch.report.skip(*rule, "the device did not come so far");
        }
    }
    visit.judgement()
}

impl Visit<'_> {
    /// Whether there is a session; if not, the device is waited for.
    async fn is_ready(&mut self) -> bool {
        if self.session.is_some() {
            return true;
        }
        let (within, grace) = (BACK_MAX, self.judge.options.grace);
        !matches!(self.enter(within + grace).await, Entry::None)
    }

    /// The device ended the session.
    pub(super) fn lost(&mut self, ended: Ended) {
        let rule = self.at;
        match ended {
            Ended::Goodbye(GoodbyeReason::PowerOff) => self.watch.report.skip(rule, "the device said goodbye"),
            Ended::Goodbye(reason) => self.watch.report.fail(rule, format!("the device ended the session: {reason:?}")),
            Ended::Closed(why) => self.watch.report.fail(rule, why),
        }
        if let Some(session) = self.session.take() {
            session.close();
        }
    }

    /// Goes on until `done`, or for this time; whether it is done.
    pub(super) async fn until(&mut self, within: Duration, done: impl FnMut(&Watch) -> bool) -> Result<bool, Ended> {
        let until_us = clock::mono_us().saturating_add(micros(within));
        let session = self.session.as_mut().ok_or_else(no_session)?;
        session.run((&mut self.out, &mut self.watch), until_us, done).await
    }

    /// Sends a control message; its bytes.
    pub(super) fn send<'a>(&mut self, turn: u32, message: impl Into<Down<'a>>) -> Result<Bytes, Ended> {
        let session = self.session.as_ref().ok_or_else(no_session)?;
        session.control((&mut self.out, &mut self.watch), turn, message)
    }

    pub(super) fn grace(&self) -> Duration {
        self.judge.options.grace
    }

    pub(super) fn send_idle(&mut self) -> Result<Bytes, Ended> {
        self.send(0, down::Listening { state: ListeningState::Idle })
    }

    async fn introduction(&mut self) -> Done {
        if self.hello.capabilities.tools == 0 {
            self.watch.report.skip(Rule::Introduction, "the device has no tools");
            return Ok(());
        }
        let has_come = self.until(ACK_MAX + self.grace(), |watch| watch.tools.is_some()).await?;
        self.watch.report.check(Rule::Introduction, has_come, || "no tool_list came".to_owned());
        Ok(())
    }

    /// A control frame that was made to differ from this version.
    fn send_changed(&mut self, change: impl FnOnce(&mut Vec<u8>)) -> Done {
        let idle = Down::Listening(down::Listening { state: ListeningState::Idle });
        let mut bytes = self.out.frame(0, clock::mono_us(), idle)?.to_vec();
        change(&mut bytes);
        let session = self.session.as_ref().ok_or_else(no_session)?;
        session.numbered((&mut self.out, &mut self.watch), 0, bytes.into())
    }

    async fn later(&mut self) -> Done {
        self.send_changed(|bytes| put(bytes, KIND_AT, &UNKNOWN_KIND.to_le_bytes()))?;
        self.send_idle()?;
        self.taken(Rule::Unknown).await?;
        self.at = Rule::Appended;
        self.send_changed(|bytes| {
            bytes.extend(APPENDED);
            let length = u32::try_from(bytes.len() - limits::HEADER_BYTES).unwrap_or(0);
            put(bytes, LENGTH_AT, &length.to_le_bytes());
        })?;
        self.taken(Rule::Appended).await?;
        self.at = Rule::Again;
        let sent = self.send_idle()?;
        self.session.as_ref().ok_or_else(no_session)?.put(sent)?;
        self.send_idle()?;
        self.taken(Rule::Again).await
    }

    /// Waits for an acknowledgement of all that was sent. Of a device that acknowledges nothing it is enough that it goes on.
    async fn taken(&mut self, rule: Rule) -> Done {
        let sent = self.watch.sent.0;
        let is_taken =
            self.until(ACK_MAX + self.grace(), |watch| watch.ack.is_some_and(|ack| ack.control == sent)).await?;
        let (acks, last) = (self.watch.acks, self.watch.ack);
        self.watch
            .report
            .check(rule, is_taken || !acks, || format!("the last acknowledgement is {last:?}; {sent} were sent"));
        Ok(())
    }

    async fn acknowledgements(&mut self) -> Done {
        if !self.watch.acks {
            for rule in [Rule::Ack, Rule::AckTruth] {
                self.watch.report.skip(rule, "the device acknowledges nothing, and so resumes nothing");
            }
            return Ok(());
        }
        for _ in 0..limits::ACK_CONTROL_FRAMES_MAX {
            self.send_idle()?;
        }
        self.taken(Rule::Ack).await
    }

    async fn tools(&mut self) -> Done {
        if self.hello.capabilities.tools == 0 {
            for rule in [Rule::Tool, Rule::ToolAgain] {
                self.watch.report.skip(rule, "the device has no tools");
            }
            return Ok(());
        }
        let call = down::ToolCall { call: 1, name: NO_TOOL, arguments: "{}", deadline_ms: 5_000 };
        let sent = self.send(0, call)?;
        // The same frame again is no call.
        self.session.as_ref().ok_or_else(no_session)?.put(sent)?;
        let grace = self.grace();
        self.until(ACK_MAX + grace, |watch| !watch.results.is_empty()).await?;
        // A second one would come right behind it.
        self.until(ACK_MAX / 2, |watch| watch.results.len() > 1).await?;
        let results = &self.watch.results;
        let is_right = matches!(&results[..], [result] if (result.call, result.ok) == (1, false) && result.error == "unknown_tool");
        let seen = format!(
            "{} results; errors: {:?}",
            results.len(),
            results.iter().map(|result| &result.error).collect::<Vec<_>>()
        );
        if results.len() > 1 {
            self.watch.report.fail(Rule::Again, "a call whose frame came before is answered");
        }
        self.watch.report.check(Rule::Tool, is_right, || seen);
        self.at = Rule::ToolAgain;
        let before = self.watch.results.len();
        self.send(0, call)?;
        let is_answered = self.until(ACK_MAX + grace, |watch| watch.results.len() > before).await?;
        let is_same = is_answered && self.watch.results.first() == self.watch.results.last();
        self.watch.report.check(Rule::ToolAgain, is_same, || "no result, or another one".to_owned());
        Ok(())
    }
}

pub(super) fn no_session() -> Ended {
    Ended::Closed("there is no session".to_owned())
}

/// Writes bytes into a frame.
fn put(frame: &mut [u8], at: usize, bytes: &[u8]) {
    for (place, byte) in frame.iter_mut().skip(at).zip(bytes) {
        *place = *byte;
    }
}
