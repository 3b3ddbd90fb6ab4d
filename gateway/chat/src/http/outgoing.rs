//! A request's body on its way out.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::watch::Watch;

/// A body in one piece that tells when the connection takes it up. That is right before the connection writes it:
/// there is a connection by then, TLS included, and what is left is to copy and encrypt the bytes and one call of the
/// system for each buffer that the peer has room for.
pub(super) struct Outgoing {
    bytes: Option<Bytes>,
    watch: Watch,
    tools: usize,
}

impl Outgoing {
    /// The body of a request that declares so many tools.
    pub(super) fn new(bytes: Bytes, watch: Watch, tools: usize) -> Self {
        Self { bytes: Some(bytes), watch, tools }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = self.bytes.take();
        if bytes.is_some() {
            self.watch.sent(self.tools);
        }
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    /// Exact, so that the length is sent in front.
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
