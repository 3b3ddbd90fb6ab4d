//! The client side of the control socket, for the other commands.

use std::{
    io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, Error, Result, bail};

use super::{Answer, Request, socket_path};
use crate::environment;

/// Longest answer: a list of devices, turns or tools.
const ANSWER_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// How long to wait for an answer.
pub(crate) const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// Why there is no answer of a gateway that has its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAnswer {
    /// It has accepted nothing yet, or takes longer.
    #[error(
        "the gateway runs and has not answered in time: it is starting, which takes minutes where its store is brought \
         to a new version or an erasure is finished, or it is very busy; its log says which. Try again"
    )]
    Late,
    /// The connection ended without one.
    #[error(
        "the gateway ended the connection without an answer: it is stopping, or being replaced; try again in a moment"
    )]
    Ended,
}

/// Sends a request to the gateway that runs on this data folder.
///
/// # Errors
/// None runs, or it refuses.
pub fn ask(data_dir: &Path, request: &Request) -> Result<Answer> {
    ask_within(data_dir, request, ANSWER_WAIT)
}

/// As [`ask`], with a longer wait.
///
/// # Errors
/// None runs, it refuses, or it does not answer in time.
pub(crate) fn ask_within(data_dir: &Path, request: &Request, wait: Duration) -> Result<Answer> {
    converse(data_dir, request, wait).map(|(answer, _)| answer)
}

/// As `ask_within`, and keeps the connection for further data after the answer.
///
/// # Errors
/// As of `ask_within`.
pub fn converse(data_dir: &Path, request: &Request, wait: Duration) -> Result<(Answer, UnixStream)> {
    let stream = send(data_dir, request)?;
    stream.set_read_timeout(Some(wait))?;
    let mut answer = String::new();
    BufReader::new((&stream).take(ANSWER_BYTES_MAX)).read_line(&mut answer).map_err(in_words)?;
    // An answer that was cut off is none.
    if !answer.ends_with('\n') {
        return Err(NoAnswer::Ended.into());
    }
    Ok((understood(&answer)?, stream))
}

/// Sends a request, and passes on each answer until the gateway stops or `take` returns `false`.
///
/// # Errors
/// None runs, or it refuses.
pub fn follow(data_dir: &Path, request: &Request, mut take: impl FnMut(Answer) -> bool) -> Result<()> {
    let mut reader = BufReader::new(send(data_dir, request)?);
    while next(&mut reader)?.is_some_and(&mut take) {}
    Ok(())
}

/// The next answer of a connection that carries several; `None` when the gateway has closed it.
///
/// # Errors
/// It refuses, or the connection broke.
pub(crate) fn next(reader: &mut BufReader<UnixStream>) -> Result<Option<Answer>> {
    let mut line = String::new();
    if reader.take(ANSWER_BYTES_MAX).read_line(&mut line)? == 0 {
        return Ok(None);
    }
    understood(&line).map(Some)
}

/// What an error of the connection says about the gateway.
fn in_words(error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => NoAnswer::Late.into(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => NoAnswer::Ended.into(),
        _ => error.into(),
    }
}

fn understood(answer: &str) -> Result<Answer> {
    match serde_json::from_str(answer).context("the gateway's answer was not understood: is it another version?")? {
        Answer::Error { message } => bail!("{message}"),
        answer => Ok(answer),
    }
}

/// Sends a request; answers are read from the returned connection.
///
/// # Errors
/// None runs.
pub(crate) fn send(data_dir: &Path, request: &Request) -> Result<UnixStream> {
    let path = socket_path(data_dir);
    let mut stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            bail!(none_runs(data_dir, environment::installed().is_some()))
        }
        Err(error) => return Err(error).with_context(|| format!("opening {}", path.display())),
    };
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line).map_err(in_words)?;
    Ok(stream)
}

/// Nobody answers; `is_installed`: there is the configuration of an installed gateway, which a program in another place does not
/// use by itself.
fn none_runs(data_dir: &Path, is_installed: bool) -> String {
    let its = if is_installed {
        format!("that of the installed one with --config {}", environment::CONFIG)
    } else {
        "its configuration with --config".to_owned()
    };
    format!("no gateway runs on {}; start one with `lorgnette serve`, or name {its}", data_dir.display())
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixListener, thread};

    use super::*;

    #[test]
    fn a_gateway_that_starts_and_one_that_stops_are_told_from_another_version() {
        let asked = |folder: &Path, wait| ask_within(folder, &Request::Status, wait).unwrap_err();
        // The socket is there before anything is loaded.
        let folder = tempfile::tempdir().unwrap();
        let _starting = UnixListener::bind(socket_path(folder.path())).unwrap();
        let error = asked(folder.path(), Duration::from_millis(10));
        assert_eq!(error.downcast_ref::<NoAnswer>(), Some(&NoAnswer::Late), "{error:#}");
        let folder = tempfile::tempdir().unwrap();
        let stopping = UnixListener::bind(socket_path(folder.path())).unwrap();
        for bytes in [&b""[..], b"{\"half an ans"] {
            let error = thread::scope(|scope| {
                scope.spawn(|| stopping.accept().unwrap().0.write_all(bytes).unwrap());
                asked(folder.path(), ANSWER_WAIT)
            });
            assert_eq!(error.downcast_ref::<NoAnswer>(), Some(&NoAnswer::Ended), "{error:#}");
        }
    }

    #[test]
    fn the_configuration_of_an_installed_gateway_is_named() {
        let told = |is_installed| none_runs(Path::new("/srv/data"), is_installed);
        assert!(
            told(true).contains("/srv/data; start one") && told(true).ends_with("--config /etc/lorgnette/config.toml")
        );
        assert!(told(false).ends_with("or name its configuration with --config"));
    }
}
