//! Messages that the store did not take: the wearer is told once, and not with each turn.

/// How long after the wearer was told this is not told again, though the store took messages meanwhile: a disk that is nearly
/// full takes some and others not.
const AGAIN_US: u64 = 10 * 60 * 1_000_000;

/// What became of the conversation's messages.
#[derive(Debug, Default)]
pub(super) struct UnkeptMessages {
    /// Ticket of the last ones, until the store has answered.
    last: Option<u64>,
    /// The wearer knows, until the store takes some.
    is_told: bool,
    /// When the wearer was told, monotonic.
    told_us: Option<u64>,
}

impl UnkeptMessages {
    /// Messages are on their way to the store.
    pub(super) fn submitted(&mut self, ticket: u64) {
        self.last = Some(ticket);
    }

    /// The store has taken something.
    pub(super) fn stored(&mut self, ticket: u64) {
        if self.last.take_if(|last| *last == ticket).is_some() {
            self.is_told = false;
        }
    }

    /// The store has not taken something. Whether the wearer is to be told.
    pub(super) fn failed(&mut self, now_us: u64, ticket: u64) -> bool {
        let is_last = self.last.take_if(|last| *last == ticket).is_some();
        let is_soon = self.told_us.is_some_and(|told_us| now_us.saturating_sub(told_us) < AGAIN_US);
        is_last && !self.is_told && !is_soon
    }

    /// The wearer is being told.
    pub(super) fn told(&mut self, now_us: u64) {
        (self.is_told, self.told_us) = (true, Some(now_us));
    }
}
