//! The order of a socket's requests for sound: each begins after all before it, however long these take to be fetched.

use tokio_util::sync::CancellationToken;

/// The turn that was given last.
#[derive(Default)]
pub(super) struct Order(Option<CancellationToken>);

impl Order {
    /// The next request's turn.
    pub(super) fn turn(&mut self) -> Turn {
        let own = CancellationToken::new();
        Turn { before: self.0.replace(own.clone()), own }
    }
}

/// A request's turn. Dropped, it holds up nobody any more.
pub(super) struct Turn {
    /// Cancelled when the request before this one has begun, or will not begin.
    before: Option<CancellationToken>,
    /// The same of this request.
    own: CancellationToken,
}

impl Turn {
    /// Waits until it comes. Cancel safe.
    pub(super) async fn comes(&self) {
        if let Some(before) = &self.before {
            before.cancelled().await;
        }
    }

    /// The request has begun.
    pub(super) fn begun(&self) {
        self.own.cancel();
    }

    /// The request is over. If it has not begun, those behind it still wait for those before it.
    pub(super) async fn pass(self) {
        self.comes().await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.own.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn each_request_waits_for_all_before_it_whatever_becomes_of_them() {
        let mut order = Order::default();
        let (first, second, third, fourth) = (order.turn(), order.turn(), order.turn(), order.turn());
        let comes = |turn: &Turn| turn.comes().now_or_never().is_some();
        assert!(comes(&first) && !comes(&second));
        // The second one fails while the first is fetched.
        let mut second = pin!(second.pass());
        assert!(second.as_mut().now_or_never().is_none() && !comes(&third));
        first.begun();
        assert!(second.now_or_never().is_some() && comes(&third) && !comes(&fourth));
        // The task of the third one panics.
        drop(third);
        assert!(comes(&fourth));
    }
}
