//! Lost links: an open utterance waits for the sound that the device keeps meanwhile.

use super::{
    Activity, Event, Floor,
    barge_in::watch_voice,
    caption,
    lifecycle::{OPEN_TIMERS, UTTERANCE_STALLED_MS},
    origin::Origin,
    sound_clock::SoundClock,
};
use crate::{context::Context, output::Output, timers::Timer};

/// Packets that may be missing where a replay begins. At 20 ms each this is less than a word, which recognition conceals
/// or not, as it does any loss on the way.
const MISSED_PACKETS_MAX: u32 = 16;

/// A voice that begins this soon behind missing sound was there before: the detector notices a voice within this time.
const REST_US: u64 = 400_000;

/// Sound that was not received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missed {
    /// Capture time of the first sound behind it.
    until_us: u64,
    /// Whether the wearer was told, if there was anything to tell.
    told: bool,
}

impl Missed {
    /// Whether a voice that begins then goes on from what is missing.
    fn goes_on(self, at_us: u64) -> bool {
        at_us <= self.until_us.saturating_add(REST_US)
    }
}

impl Floor {
    /// A session begins, and with it the clock of the glasses.
    pub(crate) fn handle_begun(&mut self) {
        self.sound_clock = SoundClock::default();
        self.resumed_us = 0;
    }

    /// The link is lost: the open utterance waits for the sound that the device has kept meanwhile.
    pub(crate) fn handle_lost(&mut self, cx: &mut Context) {
        self.deaf = true;
        for timer in OPEN_TIMERS {
            cx.disarm(timer);
        }
    }

    /// The link is back after `lost_us`, and the sound of that time follows: for the utterance, and for whether it
    /// needs a wake word, that time has not passed.
    pub(crate) fn handle_resumed(&mut self, cx: &mut Context, activity: &Activity, lost_us: u64) {
        self.deaf = false;
        self.resumed_us = cx.now_us();
        self.sound_clock.handle_resumed(cx.now_us(), lost_us);
        self.delay_addressing(cx, lost_us);
        self.own_voice.delay(lost_us);
        let Some(open) = &mut self.open else {
            return;
        };
        open.delay(lost_us);
        cx.arm(Timer::UtteranceStalled, UTTERANCE_STALLED_MS);
        if open.voiced && !open.origin.background && !open.echo.is_present() {
            watch_voice(cx, activity, 0);
        }
        self.watch_words(cx, activity);
    }

    /// Sound of the open utterance is missing: half a sentence could mean something else. A few packets may as well be
    /// late: the first ones of a replay overtake one another.
    pub(crate) fn handle_missed(&mut self, cx: &mut Context, packets: u32, until_us: u64) -> Option<Event> {
        if packets <= MISSED_PACKETS_MAX {
            return None;
        }
        self.missed = Some(Missed { until_us, told: self.open.is_some() });
        let open = self.open.take()?;
        self.end_hold();
        self.last_closed = Some(open.id);
        for timer in OPEN_TIMERS {
            cx.disarm(timer);
        }
        super::cancel_all(cx, open.id);
        cx.push(Output::CloseUtterance { utterance: open.id });
        caption::last(cx, (open.id, open.captions), false, "");
        Some(open.origin.lost(open.is_interrupting() || open.wake.in_text))
    }

    /// A voice begins. Behind missing sound it is the rest of a sentence, in which only a wake or cancel word counts; what would
    /// have counted without one is reported as lost, unless that was done.
    pub(super) fn take_rest(&mut self, origin: &mut Origin, at_us: u64) -> Option<Event> {
        let missed = self.missed.take().filter(|missed| missed.goes_on(at_us))?;
        let whole = *origin;
        *origin = Origin { rest: true, background: true, echo: whole.echo, ..Origin::default() };
        (!missed.told).then(|| whole.lost(false))
    }
}
