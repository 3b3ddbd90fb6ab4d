//! The other commands' side of the control socket.

use std::{
    io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use super::{Answer, Request, socket_path};

/// Longest answer: a list of devices or turns.
const ANSWER_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Asks the gateway that runs on this data folder.
///
/// # Errors
/// None runs, or it refuses.
pub fn ask(data_dir: &Path, request: &Request) -> Result<Answer> {
    converse(data_dir, request).map(|(answer, _)| answer)
}

/// Asks, and keeps the connection for what comes after the answer.
///
/// # Errors
/// None runs, or it refuses.
pub fn converse(data_dir: &Path, request: &Request) -> Result<(Answer, UnixStream)> {
    let path = socket_path(data_dir);
    let mut stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            bail!(
                "no gateway runs on {}; start one with `lorgnette serve`, or name its configuration with --config",
                data_dir.display()
            )
        }
        Err(error) => return Err(error).with_context(|| format!("opening {}", path.display())),
    };
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new((&stream).take(ANSWER_BYTES_MAX)).read_line(&mut answer)?;
    match serde_json::from_str(&answer).context("the gateway's answer was not understood: is it another version?")? {
        Answer::Error { message } => bail!("{message}"),
        answer => Ok((answer, stream)),
    }
}
