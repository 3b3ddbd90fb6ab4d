//! The child process: it puts up its fences, says so, runs one program, and ends.

use std::{io, os::fd::AsFd as _, process::ExitCode};

use rustix::fs::{FileType, fstat};
use serde_json::Value;

use crate::{
    engine::{Channel, Closed, Engine},
    failure::internal,
    fences,
    protocol::{CallError, Failure, Hello, Run, TO_CHILD_BYTES_MAX, ToChild, ToParent, VERSION},
    strip,
};

/// The first and only argument of a child.
pub const ARGUMENT: &str = "code-sandbox";
/// Bytes of one read.
const CHUNK_BYTES: usize = 64 * 1024;

/// Runs one program for the parent, which is at the other end of standard input.
pub fn child_main() -> ExitCode {
    let is_socket = fstat(io::stdin()).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_socket());
    if !is_socket {
        eprintln!("`{ARGUMENT}` is how the gateway starts itself to run programs; it has no use by hand");
        return ExitCode::FAILURE;
    }
    // The panic's words would go to a closed descriptor; the parent gets an error instead.
    std::panic::set_hook(Box::new(|_| {}));
    match std::panic::catch_unwind(serve) {
        Ok(Some(())) => ExitCode::SUCCESS,
        Ok(None) => ExitCode::FAILURE,
        Err(_) => {
            let mut socket = Socket::default();
            let _ = socket.send(&ToParent::Failed(internal("it panicked")));
            ExitCode::FAILURE
        }
    }
}

/// `None` where the parent has gone, or fences could not be put up.
fn serve() -> Option<()> {
    let mut socket = Socket::default();
    let fences = match fences::put_up() {
        Ok(fences) => fences,
        Err(error) => {
            let failed = ToParent::Failed(internal(format_args!("its fences are not up: {error}")));
            return socket.send(&failed).ok();
        }
    };
    strip::warm_up();
    let engine = match Engine::new(Socket::default()) {
        Ok(engine) => engine,
        Err(failure) => return socket.send(&ToParent::Failed(failure)).ok(),
    };
    let hello = Hello { version: VERSION, landlock: fences.landlock, seccomp: fences.seccomp };
    engine.send(&ToParent::Hello(hello));
    let end = match socket.program()? {
        Ok(run) => engine.run(run)?,
        Err(failure) => ToParent::Failed(failure),
    };
    let sent = socket.send(&end).ok();
    // The process ends now: nobody has to wait until its values are freed one by one.
    std::mem::forget(engine);
    sent
}

/// The socket to the parent. Nothing follows the program until its first call, so that each part may read with one of
/// its own.
#[derive(Default)]
struct Socket {
    /// What has arrived and is not read yet.
    arrived: Vec<u8>,
}

impl Socket {
    /// Waits for the program.
    fn program(&mut self) -> Option<Result<Run, Failure>> {
        match ToChild::parse(&self.line()?) {
            Ok(ToChild::Run(run)) => Some(Ok(run)),
            Ok(ToChild::Answer { .. }) => Some(Err(internal("an answer arrived instead of a program"))),
            Err(error) => Some(Err(internal(error))),
        }
    }

    /// Waits for a line.
    fn line(&mut self) -> Option<Vec<u8>> {
        let mut searched = 0;
        loop {
            let fresh = self.arrived.get(searched..).unwrap_or_default();
            if let Some(end) = fresh.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.arrived.drain(..=searched + end).collect();
                line.pop();
                return Some(line);
            }
            searched = self.arrived.len();
            if searched > TO_CHILD_BYTES_MAX {
                return None;
            }
            let mut chunk = vec![0; CHUNK_BYTES];
            let read = rustix::io::retry_on_intr(|| rustix::io::read(io::stdin().as_fd(), &mut *chunk)).ok()?;
            if read == 0 {
                return None;
            }
            self.arrived.extend_from_slice(chunk.get(..read)?);
        }
    }
}

impl Channel for Socket {
    fn send(&mut self, message: &ToParent) -> Result<(), Closed> {
        let line = message.line().map_err(|_| Closed)?;
        let mut rest = &line[..];
        while !rest.is_empty() {
            let written = rustix::io::retry_on_intr(|| rustix::io::write(io::stdin().as_fd(), rest));
            rest = rest.get(written.map_err(|_| Closed)?..).unwrap_or_default();
        }
        Ok(())
    }

    fn answer(&mut self) -> Result<(u32, Result<Value, CallError>), Closed> {
        match ToChild::parse(&self.line().ok_or(Closed)?) {
            Ok(ToChild::Answer { id, result }) => Ok((id, result)),
            _ => Err(Closed),
        }
    }
}
