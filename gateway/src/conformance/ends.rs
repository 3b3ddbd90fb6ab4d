//! Steps that end a link: resume, goodbye, a gap, another gateway.

use std::time::Duration;

use device_protocol::{Decoded, Down, GoodbyeReason, Up, decode_up, down};
use tokio::time::{Instant, timeout_at};

use super::{
    Rule, handshake,
    script::{BACK_MAX, Done, no_session},
    session::{Ended, Session},
    visit::{Entry, Visit},
};
use crate::{clock, http::links::Arrival, runtime::spawn, transport::Link};

/// How long nothing is acknowledged before the link is cut: this much is replayed.
const UNACKNOWLEDGED: Duration = Duration::from_millis(2_500);
/// How long a replay may take, beside what is new.
const REPLAY_MAX: Duration = Duration::from_secs(5);
/// How long the other side may take to close (section 10).
const CLOSE_MAX: Duration = Duration::from_secs(1);
/// `retry_after_ms` of the judge.
const RETRY_MS: u32 = 2_000;

const RESUME: [Rule; 3] = [Rule::Resume, Rule::Replay, Rule::ReplayPace];

impl Visit<'_> {
    pub(super) async fn lost_link(&mut self) -> Done {
        let (acks, grace) = (self.watch.acks, self.grace());
        if let Some(session) = &mut self.session {
            session.acks = false;
        }
        self.until(UNACKNOWLEDGED, |_| false).await?;
        self.session.take().ok_or_else(no_session)?.cut();
        self.resumable = true;
        let entry = self.enter(BACK_MAX + grace).await;
        self.resumable = false;
        match entry {
            Entry::Resumed => {
                self.watch.report.pass(Rule::Reconnect);
                self.at = Rule::Replay;
                let is_whole =
                    |watch: &super::watch::Watch| watch.replay.as_ref().is_none_or(|replay| replay.is_whole());
                self.until(REPLAY_MAX + grace, is_whole).await?;
                if let Some(replay) = self.watch.replay.take() {
                    replay.settle(&mut self.watch.report);
                }
            }
            Entry::New => {
                self.watch.report.pass(Rule::Reconnect);
                RESUME.into_iter().for_each(|rule| self.watch.report.skip(rule, "the device began a new session"));
            }
            Entry::None if acks => {
                self.watch.report.fail(Rule::Reconnect, format!("not within {} s", (BACK_MAX + grace).as_secs()))
            }
            Entry::None => {
                let why = "the device resumes nothing, and did not connect again";
                self.watch.report.skip(Rule::Reconnect, why);
                RESUME.into_iter().for_each(|rule| self.watch.report.skip(rule, why));
            }
        }
        Ok(())
    }

    pub(super) async fn goodbye(&mut self) -> Done {
        let grace = self.grace();
        let Session { link, _slot, .. } = self.session.take().ok_or_else(no_session)?;
        let said_us = clock::mono_us();
        let goodbye = down::Goodbye { reason: GoodbyeReason::ShuttingDown, message: "", retry_after_ms: RETRY_MS };
        link.down.send_last(said_us, Down::Goodbye(goodbye))?;
        let loses_order = !link.transport.ordered;
        match closing(link, CLOSE_MAX + grace).await {
            Ok(()) => self.watch.report.pass(Rule::Goodbye),
            // There the transport ends the connection itself, 100 ms behind the acknowledged goodbye.
            Err(why) if loses_order => {
                self.watch.report.skip(Rule::Goodbye, format!("the judge has closed before it ({why})"))
            }
            Err(why) => self.watch.report.fail(Rule::Goodbye, why),
        }
        match self.arrive(Duration::from_millis(RETRY_MS.into()) + BACK_MAX + grace).await {
            // Section 7 lets a device open a second connection while the first one stands.
            Some((arrival, hello)) if arrival.link.opened_us <= said_us => {
                self.watch.report.skip(Rule::Retry, "another connection was open before the goodbye");
                self.waiting = Some((arrival, hello));
            }
            Some((arrival, hello)) => {
                let passed_ms = arrival.link.opened_us.saturating_sub(said_us) / 1_000;
                self.watch.report.check(Rule::Retry, passed_ms >= RETRY_MS.into(), || {
                    format!("it connected {passed_ms} ms behind the goodbye; {RETRY_MS} ms were asked for")
                });
                self.waiting = Some((arrival, hello));
            }
            None => self.watch.report.skip(Rule::Retry, "the device did not connect again"),
        }
        Ok(())
    }

    pub(super) async fn gap(&mut self) -> Done {
        let within = CLOSE_MAX + self.grace();
        self.out.leave_out();
        self.send_idle()?;
        match self.until(within, |_| false).await {
            Err(Ended::Goodbye(GoodbyeReason::BadSequence)) => self.watch.report.pass(Rule::Gap),
            Err(Ended::Goodbye(reason)) => self.watch.report.fail(Rule::Gap, format!("the reason is {reason:?}")),
            Err(Ended::Closed(why)) => self.watch.report.fail(Rule::Gap, format!("no goodbye: {why}")),
            Ok(_) => self.watch.report.fail(Rule::Gap, "the session goes on"),
        }
        if let Some(session) = self.session.take() {
            session.close();
        }
        Ok(())
    }

    pub(super) async fn other_gateway(&mut self) -> Done {
        if let Some(session) = self.session.take() {
            session.cut();
        }
        let grace = self.grace();
        let Some((Arrival { mut link, slot }, hello)) = self.arrive(BACK_MAX + grace).await else {
            self.watch.report.skip(Rule::Pin, "the device did not connect again");
            return Ok(());
        };
        handshake::challenge(&link, &self.judge.other, &hello).map_err(Ended::Closed)?;
        match handshake::next(&mut link).await {
            Ok(bytes) => {
                let has_proven =
                    matches!(decode_up(&bytes), Ok(Decoded::Frame(frame)) if matches!(frame.message, Up::Proof(_)));
                self.watch.report.check(Rule::Pin, !has_proven, || "it sent `proof`".to_owned());
            }
            Err(error) => self.watch.report.check(Rule::Pin, !error.starts_with(handshake::NOTHING), || error),
        }
        drop(slot);
        spawn("closing", link.close());
        Ok(())
    }
}

/// Waits until the device has closed a link whose last frame was sent.
async fn closing(link: Link, within: Duration) -> Result<(), String> {
    let (mut up, by) = (link.up, Instant::now() + within);
    drop(link.down);
    loop {
        match timeout_at(by, up.recv()).await {
            // It may have sent something before.
            Ok(Ok(Some(_))) => {}
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err(format!("the device did not close within {} ms", within.as_millis())),
        }
    }
}
