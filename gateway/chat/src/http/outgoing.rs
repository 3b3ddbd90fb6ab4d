//! The body of an outgoing request.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::watch::Watch;

/// A body in one piece that reports when the connection takes it. That is immediately before the connection writes it:
/// the connection, including TLS, is established by then, and what remains is to copy and encrypt the bytes, and one
/// system call for each buffer that the peer accepts.
pub(super) struct Outgoing {
    bytes: Option<Bytes>,
    watch: Watch,
    tools: usize,
}

impl Outgoing {
    /// The body of a request that declares this many tools.
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

    /// Exact, so that `content-length` is sent.
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
