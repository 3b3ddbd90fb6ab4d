//! Whether the voice of an utterance is the assistant's own, from the device's speaker: what follows from its likeness
//! to the sound that is played.

/// Likeness from which on one look tells an echo. These thresholds are judged by `cargo xtask bench echo`.
const SAME: f32 = 0.75;
/// Likeness from which on [`LOOKS`] looks in a row tell an echo.
const LIKE: f32 = 0.6;
/// Likeness below which as many tell that somebody else speaks.
const UNLIKE: f32 = 0.45;
/// Looks in a row: a single one is sometimes wrong.
const LOOKS: u8 = 2;

/// What the looks at one utterance tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Echo {
    is_present: bool,
    /// Looks in a row that found the echo, and that did not.
    like: u8,
    unlike: u8,
}

impl Echo {
    /// Whether the voice is the assistant's, as far as is known.
    pub(super) fn is_present(&self) -> bool {
        self.is_present
    }

    /// Counts another look. Whether it is an echo from now on; `None`: as before.
    pub(super) fn judge(&mut self, likeness: f32) -> Option<bool> {
        let count = |before: u8, another: bool| if another { before.saturating_add(1) } else { 0 };
        self.like = count(self.like, likeness >= LIKE);
        self.unlike = count(self.unlike, likeness < UNLIKE);
        let is_echo = if self.is_present { self.unlike < LOOKS } else { self.like >= LOOKS || likeness >= SAME };
        (core::mem::replace(&mut self.is_present, is_echo) != is_echo).then_some(is_echo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_plain_or_found_twice_before_it_counts_and_missed_twice_before_it_does_not() {
        let mut echo = Echo::default();
        let told = [0.7, 0.5, 0.7, 0.7, 0.3, 0.5, 0.2, 0.1, 0.5, 0.9].map(|one| echo.judge(one));
        assert_eq!(told, [None, None, None, Some(true), None, None, None, Some(false), None, Some(true)]);
    }
}
