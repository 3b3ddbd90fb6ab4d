//! The client side of the control socket, for the other commands.

use std::{
    io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, Error, Result, anyhow, bail};

use super::{Answer, Request, socket_path};
use crate::{environment, private::RUN_AS_ROOT};

/// Longest answer: a list of devices, turns or tools. Of what may be longer, as an export, the gateway makes several.
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
    /// Its end was not read.
    #[error("the gateway's answer is longer than the {} MiB that are read of one; ask for less at once", ANSWER_BYTES_MAX >> 20)]
    TooLong,
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
    let mut answer = Vec::new();
    BufReader::new((&stream).take(ANSWER_BYTES_MAX)).read_until(b'\n', &mut answer).map_err(in_words)?;
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
    let mut line = Vec::new();
    if reader.take(ANSWER_BYTES_MAX).read_until(b'\n', &mut line).map_err(in_words)? == 0 {
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

/// The answer in a line. One that was cut off is none.
fn understood(line: &[u8]) -> Result<Answer> {
    if !line.ends_with(b"\n") {
        let is_cut = line.len() as u64 >= ANSWER_BYTES_MAX;
        return Err(if is_cut { NoAnswer::TooLong } else { NoAnswer::Ended }.into());
    }
    match serde_json::from_slice(line).context("the gateway's answer was not understood: is it another version?")? {
        Answer::Error { message } => bail!("{message}"),
        answer => Ok(answer),
    }
}

/// Sends a request; answers are read from the returned connection.
///
/// # Errors
/// None runs.
pub(crate) fn send(data_dir: &Path, request: &Request) -> Result<UnixStream> {
    let mut stream = UnixStream::connect(socket_path(data_dir)).map_err(|error| unreached(error, data_dir))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line).map_err(in_words)?;
    Ok(stream)
}

/// Why the socket of a data folder cannot be opened.
fn unreached(error: io::Error, data_dir: &Path) -> Error {
    let path = socket_path(data_dir);
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            anyhow!(none_runs(data_dir, environment::installed().is_some()))
        }
        ErrorKind::PermissionDenied => anyhow!("this user may not open {}: {RUN_AS_ROOT}", path.display()),
        _ => Error::new(error).context(format!("opening {}", path.display())),
    }
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
        // In the middle of several answers, and of a character.
        let bytes = b"{\"answer\":\"records\",\"records\":[]}\n{\"answer\":\"records\",\"records\":[\"\xc3";
        let mut taken = 0;
        let error = thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = stopping.accept().unwrap().0;
                BufReader::new(&stream).read_line(&mut String::new()).unwrap();
                stream.write_all(bytes).unwrap();
            });
            let take = |_| {
                taken += 1;
                true
            };
            follow(folder.path(), &Request::Status, take).unwrap_err()
        });
        assert_eq!((error.downcast_ref::<NoAnswer>(), taken), (Some(&NoAnswer::Ended), 1), "{error:#}");
    }

    #[test]
    fn an_answer_that_is_too_long_is_told_from_one_that_is_not_understood() {
        let long = vec![b' '; usize::try_from(ANSWER_BYTES_MAX).unwrap()];
        let error = understood(&long).unwrap_err();
        assert_eq!(error.downcast_ref::<NoAnswer>(), Some(&NoAnswer::TooLong), "{error:#}");
        assert!(error.to_string().contains("longer than the 32 MiB"), "{error:#}");
        let error = understood(b"{\"answer\":\"unknown\"}\n").unwrap_err();
        assert!(error.to_string().contains("another version"), "{error:#}");
    }

    #[test]
    fn a_socket_that_this_user_may_not_open_is_root_s_to_open() {
        let told = |kind: ErrorKind| format!("{:#}", unreached(kind.into(), Path::new("/srv/data")));
        let closed = told(ErrorKind::PermissionDenied);
        assert!(closed.starts_with("this user may not open /srv/data/"), "{closed}");
        assert!(closed.ends_with("run the command as root (`sudo`)"), "{closed}");
        assert!(told(ErrorKind::NotFound).starts_with("no gateway runs on /srv/data"));
        assert!(told(ErrorKind::InvalidInput).starts_with("opening /srv/data/"));
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
