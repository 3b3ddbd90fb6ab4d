//! Answers shared by several endpoints. A short text is `(StatusCode, &'static str)`, which axum sends as `text/plain`.

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};

/// A short text answer.
pub(super) type Text = (StatusCode, &'static str);

/// For every unknown path.
pub(super) const NOTHING_HERE: Text =
    (StatusCode::NOT_FOUND, "nothing here; people open /try on this machine, glasses connect to /glasses\n");

/// An answer of serialised JSON.
pub(super) fn json(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}
