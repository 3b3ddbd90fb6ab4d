//! Answers over HTTP.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::{
    Response, StatusCode,
    header::{self, HeaderValue},
};

/// An answer; its body may be a stream.
pub type Reply = Response<BoxBody<Bytes, Infallible>>;

/// A short text answer.
pub fn plain(status: StatusCode, text: &'static str) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    reply
}
