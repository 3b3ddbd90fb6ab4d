//! Confidence of the recogniser: of one text, and the usual one of what this wearer says, which noise and some voices lower.

/// Texts that are remembered.
const KEPT_MAX: usize = 8;
/// Texts before anything is concluded from them.
const KNOWN_MIN: usize = 4;
/// The usual confidence of clean voices: the median of synthetic ones.
const CLEAN_THOUSANDTHS: u16 = 860;
/// Part of the usual confidence below which words are often not what was said, and half a sentence looks whole. Of synthetic voices
/// (the tuning half of `tests/data/end_of_turn`) a quarter of the halves that look whole are below it, and 5 % of the ends.
const DOUBTFUL_PART: f32 = 0.64;

/// Probabilities of a text by its recogniser, 0 to 1; certain until something else is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Confidence {
    /// Mean of the tokens.
    pub(super) text: f32,
    pub(super) last_word: f32,
    /// That the words break off behind the last one.
    pub(super) breaks_off: f32,
}

impl Default for Confidence {
    fn default() -> Self {
        Self { text: 1.0, last_word: 1.0, breaks_off: 0.0 }
    }
}

/// Confidences of the latest texts that were meant for the assistant, in thousandths.
#[derive(Clone, Debug, Default)]
pub(super) struct ConfidenceHistory {
    confidences: [u16; KEPT_MAX],
    /// Texts so far; the next one replaces the oldest.
    count: usize,
}

impl ConfidenceHistory {
    /// A text was understood with this confidence. A certain one tells nothing: it comes from elsewhere.
    pub(super) fn heard(&mut self, confidence: f32) {
        if !(0.0..1.0).contains(&confidence) {
            return;
        }
        if let Some(place) = self.confidences.get_mut(self.count % KEPT_MAX) {
            *place = (confidence * 1_000.0) as u16;
            self.count = self.count.saturating_add(1);
        }
    }

    /// Confidence below which a text is doubtful. In noise all texts have less, and not each of them is waited for.
    pub(super) fn doubtful_below(&self) -> f32 {
        DOUBTFUL_PART * f32::from(self.usual_thousandths()) / 1_000.0
    }

    /// The median, and at most that of clean voices.
    fn usual_thousandths(&self) -> u16 {
        let known = self.count.min(KEPT_MAX);
        let mut sorted = self.confidences;
        let usual = sorted.get_mut(..known).filter(|_| known >= KNOWN_MIN).and_then(|confidences| {
            confidences.sort_unstable();
            confidences.get(known / 2).copied()
        });
        usual.unwrap_or(CLEAN_THOUSANDTHS).min(CLEAN_THOUSANDTHS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(confidences: &[f32]) -> u16 {
        let mut history = ConfidenceHistory::default();
        confidences.iter().for_each(|confidence| history.heard(*confidence));
        history.usual_thousandths()
    }

    #[test]
    fn who_is_never_heard_well_is_not_doubted_each_time() {
        assert_eq!(after(&[0.5, 0.5, 0.5]), CLEAN_THOUSANDTHS, "too few to conclude anything");
        assert_eq!(after(&[0.5, 0.625, 0.375, 0.5]), 500);
        assert_eq!(after(&[0.99; 8]), CLEAN_THOUSANDTHS, "never more than of clean voices");
        assert_eq!(after(&[[0.5; 8], [0.75; 8]].concat()), 750, "old texts are forgotten");
        assert!((ConfidenceHistory::default().doubtful_below() - 0.55).abs() < 0.001);
    }

    #[test]
    fn what_is_certain_or_no_probability_does_not_count() {
        assert_eq!(after(&[1.0, 1.0, f32::NAN, -1.0, 2.0, 0.5, 0.5, 0.5]), CLEAN_THOUSANDTHS);
    }
}
