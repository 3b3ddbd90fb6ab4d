//! A typed request whose sender waits until it is dealt with. Glasses do not wait: they follow the conversation.

use std::sync::Arc;

use gateway_core::vocab::Turn;
use tokio::sync::Notify;

/// What was typed, until it is dealt with: when the turn that it has begun is over, or at once if it has begun none.
pub(super) struct TypedRequest {
    /// Who is told; `None`: nobody waits.
    waiter: Option<Arc<Notify>>,
    /// Whether something was typed and nobody was told yet.
    is_open: bool,
    /// The turn under way.
    turn: Option<Turn>,
}

impl TypedRequest {
    /// None yet. `waiter`: who is told when one is dealt with.
    pub(super) fn new(waiter: Option<Arc<Notify>>) -> Self {
        Self { waiter, is_open: false, turn: None }
    }

    /// Something was typed.
    pub(super) fn begin(&mut self) {
        self.is_open = true;
    }

    /// A turn has begun.
    pub(super) fn turn_begun(&mut self, turn: Turn) {
        self.turn = Some(turn);
    }

    /// A turn is over.
    pub(super) fn turn_done(&mut self, turn: Turn) {
        self.turn.take_if(|begun| begun.id == turn.id);
    }

    /// All that has followed so far is sent: tells who waits if nothing more will follow.
    pub(super) fn settled(&mut self) {
        if self.turn.is_none()
            && std::mem::take(&mut self.is_open)
            && let Some(waiter) = &self.waiter
        {
            waiter.notify_one();
        }
    }

    /// The session ends: a turn that ends with it is not complete, and the goodbye says why.
    pub(super) fn cut_off(&mut self) {
        self.waiter = None;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const FIRST: Turn = Turn { id: 1, revision: 0 };
    const SECOND: Turn = Turn { id: 2, revision: 0 };

    fn open() -> (TypedRequest, Arc<Notify>) {
        let told = Arc::new(Notify::new());
        let mut typed = TypedRequest::new(Some(told.clone()));
        typed.settled();
        assert!(!is_told(&told), "nothing was typed");
        typed.begin();
        (typed, told)
    }

    fn is_told(told: &Notify) -> bool {
        told.notified().now_or_never().is_some()
    }

    #[test]
    fn what_begins_no_turn_is_dealt_with_at_once() {
        let (mut typed, told) = open();
        typed.settled();
        assert!(is_told(&told));
        typed.settled();
        assert!(!is_told(&told), "once");
    }

    #[test]
    fn what_begins_a_turn_is_dealt_with_when_that_is_over() {
        let (mut typed, told) = open();
        typed.turn_begun(SECOND);
        typed.settled();
        assert!(!is_told(&told));
        // One that was interrupted may end late.
        typed.turn_done(FIRST);
        typed.settled();
        assert!(!is_told(&told));
        typed.turn_done(Turn { revision: 3, ..SECOND });
        typed.settled();
        assert!(is_told(&told));
    }

    #[test]
    fn a_turn_that_the_session_takes_with_it_is_not_complete() {
        let (mut typed, told) = open();
        typed.turn_begun(FIRST);
        typed.cut_off();
        typed.turn_done(FIRST);
        typed.settled();
        assert!(!is_told(&told));
    }
}
