//! How the wearer notices a lost link: by soft sounds (PROTOCOL.md, section 9).

use super::*;

/// How long the link is lost before it is told: nobody needs to know of a blink.
const TOLD_AFTER_US: u64 = 1_000_000;

/// The link is lost.
const LOST: &str = "lost";
/// It is back, and the session goes on.
const BACK: &str = "back";
/// It is back, and another session has begun, or something was said too long ago to be kept: nobody knows to whom.
const LOST_FOR_GOOD: &str = "error";

/// Whether the link is lost, and whether the wearer knows it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loss {
    since_us: Option<u64>,
    is_told: bool,
}

impl Loss {
    /// The link is lost.
    fn begin(&mut self, now_us: u64) {
        self.since_us.get_or_insert(now_us);
    }

    /// When the wearer is told, if that is still to be done.
    pub(super) fn due_us(&self) -> Option<u64> {
        self.since_us.filter(|_| !self.is_told).map(|since_us| since_us + TOLD_AFTER_US)
    }

    /// The sound that is due.
    fn poll(&mut self, now_us: u64) -> Option<&'static str> {
        let is_due = self.due_us().is_some_and(|due_us| due_us <= now_us);
        self.is_told |= is_due;
        is_due.then_some(LOST)
    }

    /// There is a link again; `keeps_all`: with the same session, and all that was said meanwhile. What is lost is always
    /// told.
    fn end(&mut self, keeps_all: bool) -> Option<&'static str> {
        let Self { since_us, is_told } = std::mem::take(self);
        let sound = if keeps_all { BACK } else { LOST_FOR_GOOD };
        (is_told || (since_us.is_some() && !keeps_all)).then_some(sound)
    }
}

impl Driver {
    /// Handles a lost link; the session may be resumed.
    pub(crate) fn lose(&mut self, reason: &str) {
        if self.link.take().is_none() {
            return;
        }
        self.see(Seen::LinkLost { reason: reason.to_owned() });
        self.loss.begin(self.clock.now_us());
        if self.options.reconnect && !self.over {
            self.retry_later();
        }
    }

    /// Plays the sound of a link that has been lost for a while.
    pub(super) fn tell_of_loss(&mut self, now_us: u64) {
        if let Some(sound) = self.loss.poll(now_us) {
            self.see(Seen::LinkSound { sound });
        }
    }

    /// Plays the sound of a link that is back; `has_lost`: the session goes on, but sound was too old to be kept.
    pub(super) fn tell_of_return(&mut self, goes_on: bool, has_lost: bool) {
        if let Some(sound) = self.loss.end(goes_on && !has_lost) {
            self.see(Seen::LinkSound { sound });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sounds of a link that is lost at 5 s and back after so long.
    fn sounds(lost_us: u64, keeps_all: bool) -> (Option<&'static str>, Option<&'static str>) {
        let mut loss = Loss::default();
        loss.begin(5_000_000);
        // Another connection that fails changes nothing.
        loss.begin(5_300_000);
        let lost = loss.due_us().filter(|due_us| *due_us <= 5_000_000 + lost_us).and_then(|due_us| loss.poll(due_us));
        assert_eq!(loss.poll(5_000_000 + lost_us), None, "once");
        let back = loss.end(keeps_all);
        assert_eq!((loss.due_us(), loss.end(keeps_all)), (None, None), "it is over");
        (lost, back)
    }

    #[test]
    fn the_wearer_is_told_after_a_second_and_then_what_became_of_the_session() {
        assert_eq!(sounds(999_999, true), (None, None));
        assert_eq!(sounds(1_000_000, true), (Some(LOST), Some(BACK)));
        assert_eq!(sounds(9_000_000, false), (Some(LOST), Some(LOST_FOR_GOOD)));
        assert_eq!(sounds(10_000, false), (None, Some(LOST_FOR_GOOD)), "what was said is lost");
    }

    #[test]
    fn a_first_connection_makes_no_sound() {
        assert_eq!((Loss::default().poll(u64::MAX), Loss::default().end(false)), (None, None));
    }
}
