//! Answers, and how they get to a client.

use std::time::Duration;

use anyhow::Result;
use tokio::{io::AsyncWriteExt as _, net::unix::OwnedWriteHalf, time::timeout};

use super::Answer;

/// How long a client may take to read an answer, in milliseconds.
const ANSWER_MS_MAX: u64 = 5_000;

pub(super) fn done(message: String) -> Answer {
    Answer::Done { message }
}

/// Sends an answer.
///
/// # Errors
/// The client has gone away, or does not read.
pub(super) async fn say(write: &mut OwnedWriteHalf, answer: &Answer) -> Result<()> {
    let mut reply = serde_json::to_vec(answer)?;
    reply.push(b'\n');
    timeout(Duration::from_millis(ANSWER_MS_MAX), write.write_all(&reply)).await??;
    Ok(())
}
