//! Checks of a session.

use std::time::Duration;

use device_protocol::auth::Handshake;
use device_protocol::{CLOSE_NORMAL, Down, GoodbyeReason, RejectCode, down, limits, up};
use futures_util::FutureExt as _;

use super::probe::{ANSWER_MAX, Probe, Welcome, patch};
use super::{Check, Fault, Gateway, Outcome};

/// How much later than the document says something may come: a slow box and a slow network.
const GRACE: Duration = Duration::from_secs(2);
/// How long an answer to a typed request may take.
const REPLY_MAX: Duration = Duration::from_secs(30);
/// How long it may take until a speech of which nothing is reported as played is hushed.
const HUSH_MAX: Duration = Duration::from_secs(30);

pub(super) const CHECKS: &[Check] = &[
    Check {
        section: 7,
        rule: "heartbeats come each heartbeat_ms, and tell of the device's last one",
        run: |gateway| heartbeat(gateway).boxed(),
    },
    Check { section: 7, rule: "sixteen control frames are acknowledged", run: |gateway| acknowledged(gateway).boxed() },
    Check {
        section: 5,
        rule: "an unknown control kind is skipped, and counts",
        run: |gateway| unknown(gateway).boxed(),
    },
    Check {
        section: 5,
        rule: "bytes behind the last known field are ignored",
        run: |gateway| appended(gateway).boxed(),
    },
    Check {
        section: 4,
        rule: "a control frame that came before is dropped without a word",
        run: |gateway| again(gateway).boxed(),
    },
    Check {
        section: 4,
        rule: "a control sequence that is left out ends the session (bad_sequence)",
        run: |gateway| gap(gateway).boxed(),
    },
    Check {
        section: 8,
        rule: "of a speech that is never reported as played, one second comes, then a hush",
        run: |gateway| pacing(gateway).boxed(),
    },
    Check {
        section: 9,
        rule: "a lost link is resumed, and nothing that was received comes again",
        run: |gateway| resumed(gateway).boxed(),
    },
    Check {
        section: 9,
        rule: "a token stays good until a frame has come over the connection that it has resumed",
        run: |gateway| unconfirmed(gateway).boxed(),
    },
    Check {
        section: 9,
        rule: "a token is void once a frame has come over the connection that it has resumed",
        run: |gateway| void(gateway).boxed(),
    },
    Check {
        section: 9,
        rule: "a second connection of the device replaces the first (replaced)",
        run: |gateway| replaced(gateway).boxed(),
    },
    Check {
        section: 9,
        rule: "of two handshakes at once, the one whose hello came first replaces no session when it ends last (busy)",
        run: |gateway| overtaken(gateway).boxed(),
    },
    Check {
        section: 9,
        rule: "and it does not take up a session that has been resumed since",
        run: |gateway| overtaken_resume(gateway).boxed(),
    },
    Check {
        section: 9,
        rule: "one whose hello came before the first frame over the connection that was resumed replaces no session (busy)",
        run: |gateway| outrun(gateway).boxed(),
    },
    Check {
        section: 10,
        rule: "a goodbye of the device is answered by closing",
        run: |gateway| goodbye(gateway).boxed(),
    },
];

async fn heartbeat(gateway: &Gateway) -> Outcome {
    let mut probe = gateway.connect().await?;
    let every = probe.shake(None).await?.heartbeat;
    let sent_us = probe.last_beat().await;
    let mut came_us = None;
    for _ in 0..2 {
        let beat = probe.find(every + GRACE, "heartbeat", |_, message| match message {
            Down::Heartbeat(beat) => Some(*beat),
            _ => None,
        });
        let beat = beat.await?;
        let now_us = probe.now_us();
        check_echo(beat, now_us.saturating_sub(sent_us), sent_us)?;
        if let Some(came_us) = came_us.replace(now_us) {
            check_pause(Duration::from_micros(now_us.saturating_sub(came_us)), every)?;
        }
    }
    Ok(())
}

/// What the gateway's heartbeat tells of the device's only one, which was sent so long ago.
fn check_echo(beat: down::Heartbeat, ago_us: u64, sent_us: u64) -> Outcome {
    let down::Heartbeat { echo_us, held_us } = beat;
    let (ago, held) = (Duration::from_micros(ago_us), Duration::from_micros(held_us));
    // It may have crossed the device's.
    let is_before = (echo_us, held_us) == (0, 0) && ago < GRACE;
    if is_before || (echo_us == sent_us && held.abs_diff(ago) <= GRACE) {
        return Ok(());
    }
    let what =
        format!("echo_us {echo_us}, held_us {held_us}; a heartbeat with the time {sent_us} was sent {ago:?} before");
    Err(Fault::Failed(what))
}

/// The time between two heartbeats of the gateway. That they come in time was seen.
fn check_pause(pause: Duration, every: Duration) -> Outcome {
    if pause < every / 2 {
        return Err(Fault::Failed(format!("heartbeats {pause:?} apart; one each {every:?} was agreed")));
    }
    Ok(())
}

/// Waits for an acknowledgement of all control frames that were sent.
async fn acks(probe: &mut Probe, welcome: &Welcome) -> Outcome {
    if welcome.resume_ms == 0 {
        return Err(Fault::NotOffered("resume_ms is 0: a gateway that resumes nothing may leave ack out".to_owned()));
    }
    let sent = probe.sent;
    let within = Duration::from_millis(limits::ACK_EVERY_MS_MAX.into()) + GRACE;
    let what = format!("ack of control frame {sent}");
    probe
        .find(within, &what, |_, message| matches!(message, Down::Ack(ack) if ack.control == sent).then_some(()))
        .await?;
    Ok(())
}

async fn acknowledged(gateway: &Gateway) -> Outcome {
    let mut probe = gateway.connect().await?;
    let welcome = probe.shake(None).await?;
    for percent in 0..16 {
        probe.control(up::Battery { percent: 60 + percent, charging: false }).await;
    }
    acks(&mut probe, &welcome).await
}

async fn unknown(gateway: &Gateway) -> Outcome {
    let mut probe = gateway.connect().await?;
    let welcome = probe.shake(None).await?;
    probe.sent += 1;
    let mut frame = probe.frame(probe.sent, up::Mute { muted: false }.into());
    patch(&mut frame, 2, &[0xfe, 0x1f]);
    probe.raw(frame).await;
    probe.control(up::Mute { muted: false }).await;
    acks(&mut probe, &welcome).await
}

async fn appended(gateway: &Gateway) -> Outcome {
    let mut probe = gateway.connect().await?;
    let welcome = probe.shake(None).await?;
    probe.sent += 1;
    let mut frame = probe.frame(probe.sent, up::Mute { muted: false }.into());
    frame.extend([1, 2, 3]);
    let length = (frame.len() - limits::HEADER_BYTES) as u32;
    patch(&mut frame, 4, &length.to_le_bytes());
    probe.raw(frame).await;
    acks(&mut probe, &welcome).await
}

async fn again(gateway: &Gateway) -> Outcome {
    let mut probe = gateway.connect().await?;
    let welcome = probe.shake(None).await?;
    probe.control(up::Mute { muted: false }).await;
    probe.raw(probe.frame(probe.sent, up::Mute { muted: false }.into())).await;
    probe.control(up::Mute { muted: false }).await;
    acks(&mut probe, &welcome).await
}

async fn gap(gateway: &Gateway) -> Outcome {
    let mut probe = gateway.welcomed().await?;
    probe.sent += 1;
    probe.control(up::Mute { muted: false }).await;
    ended(&mut probe, "bad_sequence", GoodbyeReason::BadSequence).await
}

async fn ended(probe: &mut Probe, reason: &str, number: GoodbyeReason) -> Outcome {
    let code = number.close_code();
    match probe.end().await? {
        (said, closed) if said == reason && probe.is_closed_with(closed, code) => Ok(()),
        (said, closed) => Err(Fault::Failed(format!("`{said}`, closed with {closed}; `{reason}` and {code} are due"))),
    }
}

async fn pacing(gateway: &Gateway) -> Outcome {
    let mut probe = gateway.welcomed().await?;
    // Long enough for more than a second of speech, in any gateway that answers at all.
    probe.control(up::TextInput { text: "What can you do?" }).await;
    let started = probe.find(REPLY_MAX, "speech_start", |_, message| match message {
        Down::SpeechStart(start) => Some(start.speech),
        _ => None,
    });
    let Ok(speech) = started.await else {
        return Err(Fault::NotOffered("a typed question is not answered by speech".to_owned()));
    };
    let most_us = u64::from(limits::SPEECH_HOLD_MS_MAX) * 1_000;
    let mut heard_us = 0;
    let outcome = probe.find(HUSH_MAX, "hush", |_, message| match message {
        Down::SpeechChunk(chunk) if chunk.speech == speech => {
            heard_us = heard_us.max(chunk.position_us + u64::from(chunk.duration_us));
            (heard_us > most_us).then_some(Err(heard_us))
        }
        Down::SpeechEnd(end) if end.speech == speech => Some(Ok(false)),
        Down::Hush(hush) if hush.speech == speech || hush.speech == 0 => Some(Ok(true)),
        _ => None,
    });
    match outcome.await? {
        Ok(true) => Ok(()),
        Ok(false) => Err(Fault::NotOffered(format!("the answer is over after {heard_us} us of speech"))),
        Err(heard_us) => Err(Fault::Failed(format!("{heard_us} us of speech came beyond what was played"))),
    }
}

/// A session with a token, and how much of it was received.
async fn resumable(gateway: &Gateway) -> Result<(Probe, Welcome), Fault> {
    let mut probe = gateway.connect().await?;
    let welcome = probe.shake(None).await?;
    if welcome.resume_ms == 0 || welcome.token.is_empty() {
        return Err(Fault::NotOffered("the gateway resumes nothing".to_owned()));
    }
    // Something that it knows of after the resume.
    probe.control(up::Mute { muted: true }).await;
    acks(&mut probe, &welcome).await?;
    Ok((probe, welcome))
}

fn token(welcome: &Welcome, control_received: u32) -> up::Resume<'_> {
    up::Resume { token: &welcome.token, control_received, audio_received: 0 }
}

async fn resumed(gateway: &Gateway) -> Outcome {
    let (first, welcome) = resumable(gateway).await?;
    let (sent, received) = (first.sent, first.received);
    drop(first);
    let mut second = gateway.connect().await?;
    let again = second.shake(Some(token(&welcome, received))).await?;
    let Some(told) = again.resumed else {
        return Err(Fault::Failed("welcome has no `resumed`".to_owned()));
    };
    if again.session != welcome.session || again.token == welcome.token {
        return Err(Fault::Failed("the session must be the same, and the token another one".to_owned()));
    }
    if told != sent {
        return Err(Fault::Failed(format!("control_received is {told}, and {sent} was acknowledged")));
    }
    second.sent = sent;
    second.control(up::Mute { muted: false }).await;
    let unmuted = second.find(ANSWER_MAX, "a control frame", |stamp, _| (stamp.sequence > 0).then_some(stamp.sequence));
    match unmuted.await? {
        sequence if sequence > received => Ok(()),
        sequence => Err(Fault::Failed(format!("control frame {sequence} came again; {received} was received"))),
    }
}

async fn unconfirmed(gateway: &Gateway) -> Outcome {
    let (first, welcome) = resumable(gateway).await?;
    let received = first.received;
    drop(first);
    // For the gateway this is a welcome that was lost on its way.
    let mut second = gateway.connect().await?;
    second.shake(Some(token(&welcome, received))).await?;
    drop(second);
    let mut third = gateway.connect().await?;
    let again = third.shake(Some(token(&welcome, received))).await?;
    match again.resumed {
        Some(_) if again.session == welcome.session => Ok(()),
        _ => Err(Fault::Failed("a welcome that the device may not have got ended its session".to_owned())),
    }
}

async fn void(gateway: &Gateway) -> Outcome {
    let (first, welcome) = resumable(gateway).await?;
    let (sent, received) = (first.sent, first.received);
    drop(first);
    let mut second = gateway.connect().await?;
    let again = second.shake(Some(token(&welcome, received))).await?;
    if again.resumed.is_none() {
        return Err(Fault::Failed("welcome has no `resumed`".to_owned()));
    }
    second.sent = sent;
    second.control(up::Mute { muted: true }).await;
    acks(&mut second, &again).await?;
    drop(second);
    let mut third = gateway.connect().await?;
    match third.shake(Some(token(&welcome, received))).await?.resumed {
        None => Ok(()),
        Some(_) => Err(Fault::Failed("it resumes the session once more".to_owned())),
    }
}

async fn replaced(gateway: &Gateway) -> Outcome {
    let mut first = gateway.welcomed().await?;
    let _second = gateway.welcomed().await?;
    ended(&mut first, "replaced", GoodbyeReason::Replaced).await
}

/// Ends an earlier handshake than that of the session that stands: it is refused, and the session goes on.
async fn refused_behind(early: (&mut Probe, &Handshake), stands: (&mut Probe, &Welcome)) -> Outcome {
    early.0.prove(early.1, false).await;
    match early.0.end().await? {
        (said, code) if said == "busy" && early.0.is_closed_with(code, RejectCode::Busy.close_code()) => {}
        (said, code) => return Err(Fault::Failed(format!("`{said}`, closed with {code}; `busy` and 4109 are due"))),
    }
    stands.0.control(up::Mute { muted: true }).await;
    acks(stands.0, stands.1).await
}

async fn overtaken(gateway: &Gateway) -> Outcome {
    let mut early = gateway.connect().await?;
    let handshake = early.hello(None).await?;
    let mut stands = gateway.connect().await?;
    let welcome = stands.shake(None).await?;
    refused_behind((&mut early, &handshake), (&mut stands, &welcome)).await
}

async fn overtaken_resume(gateway: &Gateway) -> Outcome {
    let mut first = gateway.connect().await?;
    let welcome = first.shake(None).await?;
    first.control(up::Mute { muted: true }).await;
    acks(&mut first, &welcome).await?;
    let (sent, received) = (first.sent, first.received);
    drop(first);
    let mut early = gateway.connect().await?;
    let handshake = early.hello(Some(token(&welcome, received))).await?;
    let mut stands = gateway.connect().await?;
    // Nothing is sent over it before the other one ends, so that their token is still good.
    let again = stands.shake(Some(token(&welcome, received))).await?;
    if again.resumed.is_none() {
        return Err(Fault::Failed("welcome has no `resumed`".to_owned()));
    }
    stands.sent = sent;
    refused_behind((&mut early, &handshake), (&mut stands, &again)).await
}

async fn outrun(gateway: &Gateway) -> Outcome {
    let (first, welcome) = resumable(gateway).await?;
    let (sent, resume) = (first.sent, Some(token(&welcome, first.received)));
    drop(first);
    let mut stands = gateway.connect().await?;
    let handshake = stands.hello(resume).await?;
    let mut late = gateway.connect().await?;
    let late_handshake = late.hello(resume).await?;
    let again = stands.join(&handshake, resume).await?;
    if again.resumed.is_none() {
        return Err(Fault::Failed("welcome has no `resumed`".to_owned()));
    }
    stands.sent = sent;
    // From here on the token of both is void.
    stands.control(up::Mute { muted: false }).await;
    acks(&mut stands, &again).await?;
    refused_behind((&mut late, &late_handshake), (&mut stands, &again)).await
}

async fn goodbye(gateway: &Gateway) -> Outcome {
    let mut probe = gateway.welcomed().await?;
    probe.link(up::Goodbye { reason: GoodbyeReason::PowerOff, message: "", retry_after_ms: 0 }).await;
    match probe.end().await? {
        (said, code) if said.is_empty() && probe.is_closed_with(code, CLOSE_NORMAL) => Ok(()),
        (said, code) => Err(Fault::Failed(format!("`{said}`, closed with {code}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_that_tells_of_another_one_or_of_a_wrong_time_is_found() {
        let is_right =
            |echo_us, held_us, ago_us| check_echo(down::Heartbeat { echo_us, held_us }, ago_us, 7_000).is_ok();
        assert!(is_right(7_000, 4_990_000, 5_000_000), "behind a round trip");
        assert!(is_right(0, 0, 1_000_000) && !is_right(0, 0, 5_000_000), "it may have crossed it");
        assert!(!is_right(6_000, 4_990_000, 5_000_000));
        assert!(!is_right(7_000, 0, 5_000_000) && !is_right(7_000, 9_000_000, 5_000_000));
    }

    #[test]
    fn heartbeats_that_come_far_too_often_are_found() {
        let every = Duration::from_secs(5);
        assert!(check_pause(Duration::from_secs(4), every).is_ok());
        assert!(check_pause(Duration::from_secs(2), every).is_err());
    }
}
