//! How long this wearer pauses within a sentence. Others pause as well, and so does the assistant: the pauses of an utterance are
//! counted by themselves, and count for the wearer once it is known to be his.

/// Pauses that are remembered: a few minutes of talk.
const KEPT_MAX: usize = 16;
/// Pauses before anything is concluded from them.
const KNOWN_MIN: usize = 4;
/// Shortest pause that counts, in milliseconds: a shorter one ends nothing.
const PAUSE_MS_MIN: u32 = 250;
/// Longest one: what comes after a longer silence is another sentence.
const PAUSE_MS_MAX: u32 = 1_200;
/// How much longer than this wearer's long pauses an end is waited for.
const MARGIN_MS: u32 = 100;

/// The latest pauses after which somebody went on with the same sentence, in milliseconds: of one utterance, or of a wearer.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    pauses_ms: [u32; KEPT_MAX],
    /// Pauses so far; the next one replaces the oldest.
    count: usize,
}

impl Pace {
    /// The same voice went on after a pause.
    pub(super) fn went_on(&mut self, pause_ms: u32) {
        if !(PAUSE_MS_MIN..=PAUSE_MS_MAX).contains(&pause_ms) {
            return;
        }
        if let Some(place) = self.pauses_ms.get_mut(self.count % KEPT_MAX) {
            *place = pause_ms;
            self.count = self.count.saturating_add(1);
        }
    }

    /// An utterance with these pauses was the wearer's.
    pub(super) fn add(&mut self, pauses: &Self) {
        let oldest = pauses.count.saturating_sub(KEPT_MAX);
        let places = (oldest..pauses.count).map(|index| index % KEPT_MAX);
        places.filter_map(|place| pauses.pauses_ms.get(place)).for_each(|pause_ms| self.went_on(*pause_ms));
    }

    /// A silence that also outlasts three of four of the wearer's own pauses; never shorter than `silence_ms`.
    pub(super) fn at_least(&self, silence_ms: u32) -> u32 {
        let known = self.count.min(KEPT_MAX);
        if known < KNOWN_MIN {
            return silence_ms;
        }
        let mut sorted = self.pauses_ms;
        let Some(pauses_ms) = sorted.get_mut(..known) else {
            return silence_ms;
        };
        pauses_ms.sort_unstable();
        let long_ms = pauses_ms.get(known * 3 / 4).copied().unwrap_or(0);
        silence_ms.max(long_ms.saturating_add(MARGIN_MS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(pauses_ms: &[u32]) -> u32 {
        let mut pace = Pace::default();
        pauses_ms.iter().for_each(|pause_ms| pace.went_on(*pause_ms));
        pace.at_least(450)
    }

    #[test]
    fn a_wearer_with_long_pauses_is_waited_for() {
        assert_eq!(after(&[700, 720, 740]), 450, "too few to conclude anything");
        assert_eq!(after(&[700, 720, 740, 760]), 860);
        assert_eq!(after(&[300, 310, 320, 330]), 450, "never less than what is set");
        assert_eq!(after(&[800, 300, 300, 300, 300, 300, 300, 300]), 450, "a single long pause");
    }

    #[test]
    fn what_ends_nothing_and_what_is_another_sentence_does_not_count() {
        assert_eq!(after(&[100, 200, 240, 1_201, 5_000, 2_000]), 450);
    }

    #[test]
    fn the_latest_pauses_of_an_utterance_are_added_to_those_before() {
        let mut utterance = Pace::default();
        (0..KEPT_MAX).for_each(|_| utterance.went_on(300));
        (0..6).for_each(|_| utterance.went_on(900));
        let mut pace = Pace::default();
        pace.add(&Pace::default());
        assert_eq!(pace.at_least(450), 450, "nothing was added");
        pace.add(&utterance);
        assert_eq!((pace.count, pace.at_least(450)), (KEPT_MAX, 1_000), "six of sixteen are long");
        // They came last, so that they are forgotten last.
        (0..10).for_each(|_| pace.went_on(310));
        assert_eq!(pace.at_least(450), 1_000);
        (0..6).for_each(|_| pace.went_on(310));
        assert_eq!(pace.at_least(450), 450);
    }

    #[test]
    fn old_pauses_are_forgotten() {
        let (long, short) = ([900; KEPT_MAX], [300; KEPT_MAX]);
        assert_eq!(after(&long), 1_000);
        assert_eq!(after(&[long, short].concat()), 450);
    }
}
