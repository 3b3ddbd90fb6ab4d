//! Recognition and speech that are not this product's own: at a server, or by an installed program. They are optional, and
//! what they fail to do this machine's own engines do.

mod breaker;
mod command;
mod language;
pub(crate) mod recogniser;
pub(crate) mod settings;
#[cfg(test)]
mod test_server;
pub(crate) mod voice;

use std::{
    fmt::{self, Display},
    future::Future,
    sync::{Arc, atomic::AtomicBool},
};

use audio::meter::Meter;
use serde::{Deserialize, Serialize};

use self::{breaker::Breaker, recogniser::RemoteRecogniser, voice::OtherVoice};
use crate::{clock, runtime::io::IoRuntime};

/// Parts of the gateway that may be elsewhere.
const RECOGNITION: &str = "recognition";
const SPEECH: &str = "speech";
/// The place of this machine's own engines.
pub(crate) const HERE: &str = "this machine";

/// Engines outside of the gateway.
#[derive(Clone, Default)]
pub struct Elsewhere {
    /// Recognition at a server.
    pub(crate) recogniser: Option<Arc<RemoteRecogniser>>,
    /// Counts the first passes of the weights on this machine; `None`: there are none.
    pub local: Option<Arc<Meter>>,
    /// A voice beside the product's own.
    pub(crate) voice: Option<Arc<OtherVoice>>,
}

impl Elsewhere {
    /// Whether everything is recognised elsewhere, for want of weights on this machine.
    pub(crate) fn is_alone(&self) -> bool {
        self.recogniser.is_some() && self.local.is_none()
    }

    /// What was asked of them since the start, and of this machine's engine for the same part. `voice`: the meter of the product's
    /// own voice.
    pub(crate) fn usage(&self, voice: &Meter) -> Vec<EngineUse> {
        let mut all = Vec::new();
        if let Some(remote) = &self.recogniser {
            all.push(remote.asked.usage());
            all.extend(self.local.as_ref().map(|meter| used(RECOGNITION, HERE, meter)));
        }
        if let Some(other) = &self.voice {
            all.extend([other.asked.usage(), used(SPEECH, HERE, voice)]);
        }
        all
    }
}

/// What was asked of an engine: one outside of the gateway, or this machine's own for the same part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineUse {
    /// "recognition" or "speech".
    pub part: String,
    /// Where it is: a model at a server, a program, or "this machine".
    pub place: String,
    /// Requests that it answered.
    pub answered: u64,
    /// Requests that it failed; this machine's own engine was asked then, if there is one.
    pub failed: u64,
    /// Half of the latest answers took at most so many milliseconds.
    pub p50_ms: Option<u64>,
    /// 95 of 100 did.
    pub p95_ms: Option<u64>,
    /// Milliseconds that all answers took together.
    pub total_ms: u64,
    /// It failed, and is not asked for so many seconds.
    pub rests_s: Option<u64>,
}

impl fmt::Display for EngineUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, place, answered, failed, p50_ms, p95_ms, rests_s, .. } = self;
        write!(f, "{part} by {place}: {answered} answered")?;
        if let (Some(p50), Some(p95)) = (p50_ms, p95_ms) {
            write!(f, ", half within {p50} ms and 95 % within {p95} ms")?;
        }
        write!(f, ", {failed} failed")?;
        match rests_s {
            Some(s) => write!(f, "; it is not asked for {s} s"),
            None => Ok(()),
        }
    }
}

/// Why there is no result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// It failed a short while ago, and was not asked.
    Rests,
    /// Nobody wants the result any more.
    GivenUp,
    /// It failed; without anything that was said or is to be said.
    Failed(String),
}

/// Asks an engine outside of the gateway, and keeps account of it.
pub(crate) struct RemoteEngine {
    part: &'static str,
    place: String,
    io: IoRuntime,
    breaker: Breaker,
    pub(crate) meter: Arc<Meter>,
}

impl RemoteEngine {
    fn new(part: &'static str, place: String, meter: Arc<Meter>) -> std::io::Result<Self> {
        Ok(Self { part, place, io: IoRuntime::start("elsewhere")?, breaker: Breaker::default(), meter })
    }

    /// Waits for the answer, on a thread that may wait. `insist`: it is asked though it failed a short while ago.
    fn ask<T, E: Display>(
        &self,
        insist: bool,
        given_up: &AtomicBool,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Unanswered> {
        let permit = if insist { Some(self.breaker.insist()) } else { self.breaker.permit(clock::mono_us()) };
        let permit = permit.ok_or(Unanswered::Rests)?;
        let running = self.meter.begin();
        let answered = self.io.run(given_up, answer).ok_or(Unanswered::GivenUp)?;
        running.end(answered.is_ok());
        match answered {
            Ok(answer) => {
                permit.answered();
                Ok(answer)
            }
            Err(error) => {
                let now_us = clock::mono_us();
                permit.failed(now_us);
                let (part, place, error) = (self.part, &self.place, error.to_string());
                let rests_s = self.breaker.rest_us(now_us).unwrap_or(0) / 1_000_000;
                tracing::warn!(part, place, error, rests_s, "an engine outside of the gateway failed");
                Err(Unanswered::Failed(error))
            }
        }
    }

    /// Whether it is to be asked at this moment.
    fn rests(&self) -> bool {
        self.breaker.rest_us(clock::mono_us()).is_some()
    }

    fn usage(&self) -> EngineUse {
        EngineUse {
            rests_s: self.breaker.rest_us(clock::mono_us()).map(|us| us.div_ceil(1_000_000)),
            ..used(self.part, &self.place, &self.meter)
        }
    }
}

fn used(part: &str, place: &str, meter: &Meter) -> EngineUse {
    let usage = meter.read();
    let ms = |us: u64| us / 1_000;
    EngineUse {
        part: part.to_owned(),
        place: place.to_owned(),
        answered: usage.count,
        failed: usage.failed,
        p50_ms: usage.p50_us.map(ms),
        p95_ms: usage.p95_us.map(ms),
        total_ms: ms(usage.total_us),
        rests_s: None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    fn asked() -> RemoteEngine {
        RemoteEngine::new(SPEECH, "somewhere".to_owned(), Arc::default()).unwrap()
    }

    #[test]
    fn what_fails_is_not_asked_again_unless_somebody_insists() {
        let (asked, never) = (asked(), AtomicBool::new(false));
        let fails = || async { Err::<(), _>("broken") };
        assert_eq!(asked.ask(false, &never, async { Ok::<_, String>(7) }), Ok(7));
        assert_eq!(asked.ask(false, &never, fails()), Err(Unanswered::Failed("broken".to_owned())));
        assert_eq!(asked.ask(false, &never, fails()), Err(Unanswered::Rests));
        assert!(asked.rests());
        assert_eq!(asked.ask(true, &never, fails()), Err(Unanswered::Failed("broken".to_owned())));
        assert_eq!(asked.ask(true, &never, async { Ok::<_, String>(8) }), Ok(8));
        assert!(!asked.rests());
        let usage = asked.usage();
        assert_eq!((usage.answered, usage.failed, usage.rests_s), (2, 2, None));
    }

    #[test]
    fn what_is_given_up_counts_for_nothing() {
        let (asked, given_up) = (asked(), AtomicBool::new(false));
        let answer = async {
            given_up.store(true, Ordering::Relaxed);
            std::future::pending::<Result<(), String>>().await
        };
        assert_eq!(asked.ask(false, &given_up, answer), Err(Unanswered::GivenUp));
        let usage = asked.usage();
        assert_eq!((usage.answered, usage.failed, usage.rests_s), (0, 0, None));
    }

    #[test]
    fn engines_are_told_in_one_line_each() {
        let mut engine = EngineUse { part: SPEECH.into(), place: "espeak-ng".into(), ..EngineUse::default() };
        assert_eq!(engine.to_string(), "speech by espeak-ng: 0 answered, 0 failed");
        engine = EngineUse { answered: 4, failed: 1, p50_ms: Some(80), p95_ms: Some(120), rests_s: Some(9), ..engine };
        assert_eq!(
            engine.to_string(),
            "speech by espeak-ng: 4 answered, half within 80 ms and 95 % within 120 ms, 1 failed; it is not asked for 9 s"
        );
    }
}
