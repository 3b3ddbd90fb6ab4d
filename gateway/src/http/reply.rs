//! Answers shared by several endpoints. A short text is `(StatusCode, &'static str)`, which axum sends as `text/plain`.

use axum::{
    http::{
        StatusCode,
        header::{self, HeaderValue},
    },
    response::{IntoResponse, Response},
};

use crate::transport::slots::WRONG_KEY_WAIT;

/// A short text answer.
pub(super) type Text = (StatusCode, &'static str);

/// For every unknown path.
pub(super) const NOTHING_HERE: Text = (StatusCode::NOT_FOUND, "nothing here\n");

/// The answer to a wrong key: late, and the last one on its connection.
pub(super) async fn to_wrong_key(answer: impl IntoResponse) -> Response {
    tokio::time::sleep(WRONG_KEY_WAIT).await;
    let mut answer = answer.into_response();
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// An answer of serialised JSON.
pub(super) fn json(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wrong_key_is_answered_late_and_for_the_last_time() {
        let began = tokio::time::Instant::now();
        let answer = to_wrong_key((StatusCode::UNAUTHORIZED, "wrong")).await;
        assert_eq!(began.elapsed(), WRONG_KEY_WAIT, "by the virtual clock");
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(answer.headers()[header::CONNECTION], "close");
    }
}
