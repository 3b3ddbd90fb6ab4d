//! How sure the recogniser usually is of what this wearer says: less in noise, and of some voices.

/// Texts that are remembered.
const KEPT_MAX: usize = 8;
/// Texts before anything is concluded from them.
const KNOWN_MIN: usize = 4;
/// The usual confidence of clean voices: the median of synthetic ones.
const CLEAN: f32 = 0.86;
/// Part of the usual confidence below which words are often not what was said, and half a sentence looks whole. Of synthetic voices
/// (the tuning half of `tests/data/end_of_turn`) a quarter of the halves that look whole are below it, and 5 % of the ends.
const DOUBTFUL_PART: f32 = 0.64;

/// Confidences of the latest texts that were meant for the assistant, 0 to 1.
#[derive(Clone, Debug, Default)]
pub(super) struct Clarity {
    confidences: [f32; KEPT_MAX],
    /// Texts so far; the next one replaces the oldest.
    count: usize,
}

impl Clarity {
    /// A text was understood with this confidence. A certain one tells nothing: it comes from elsewhere.
    pub(super) fn heard(&mut self, confidence: f32) {
        if !(0.0..1.0).contains(&confidence) {
            return;
        }
        if let Some(place) = self.confidences.get_mut(self.count % KEPT_MAX) {
            *place = confidence;
            self.count = self.count.saturating_add(1);
        }
    }

    /// Confidence below which a text is doubtful. In noise all texts have less, and half of them are not waited for.
    pub(super) fn doubtful_below(&self) -> f32 {
        DOUBTFUL_PART * self.usual()
    }

    /// The median, and at most that of clean voices.
    fn usual(&self) -> f32 {
        let known = self.count.min(KEPT_MAX);
        let mut sorted = self.confidences;
        let usual = sorted.get_mut(..known).filter(|_| known >= KNOWN_MIN).and_then(|confidences| {
            confidences.sort_unstable_by(f32::total_cmp);
            confidences.get(known / 2).copied()
        });
        usual.unwrap_or(CLEAN).min(CLEAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(confidences: &[f32]) -> f32 {
        let mut clarity = Clarity::default();
        confidences.iter().for_each(|confidence| clarity.heard(*confidence));
        clarity.usual()
    }

    #[test]
    fn who_is_never_heard_well_is_not_doubted_each_time() {
        assert_eq!(after(&[0.5, 0.5, 0.5]), CLEAN, "too few to conclude anything");
        assert_eq!(after(&[0.5, 0.6, 0.4, 0.5]), 0.5);
        assert_eq!(after(&[0.99; 8]), CLEAN, "never more than of clean voices");
        assert_eq!(after(&[[0.5; 8], [0.8; 8]].concat()), 0.8, "old texts are forgotten");
    }

    #[test]
    fn what_is_certain_or_no_probability_does_not_count() {
        assert_eq!(after(&[1.0, 1.0, f32::NAN, -1.0, 2.0, 0.5, 0.5, 0.5]), CLEAN);
    }
}
