//! One run: passes a program's calls to its host and the answers back, until it ends or has to.

use std::{collections::VecDeque, time::Duration};

use code_sandbox::protocol::{
    ANSWER_BYTES_MAX, CALLS_AT_ONCE_MAX, Call, CallError, FailureKind, MESSAGE_BYTES_MAX, Run, ToChild, ToParent,
    beginning, is_shallow,
};
use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::unix::{ReadHalf, WriteHalf},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    Ended, Host, HostError, Limits, Outcome, ProgramError,
    bridge::Bridge,
    process::{CHUNK_BYTES, Process, computed},
};

/// From the end of a program's time to the kill: the engine ends it by itself, with the place where it was.
const GRACE: Duration = Duration::from_millis(500);
/// Between two looks at what a process has used, where it is about to have used it all.
const LOOK_MIN: Duration = Duration::from_millis(10);
/// Bytes of an error's code.
const CODE_BYTES_MAX: usize = 64;

/// Why a run stops.
enum Stop {
    /// It ends so. The child is no longer needed.
    Ended(Outcome),
    /// The child closed its socket.
    Closed,
}

/// When a run has to end. Its computing time is the processor time of its process: it stands still in calls, and while
/// others have the processor.
struct Deadlines {
    process: Option<u32>,
    /// What the process may have used at most, with what it had used before.
    compute: Duration,
    /// When it can have used that at the earliest.
    look: Instant,
    whole: Instant,
}

impl Deadlines {
    fn new(limits: Limits, process: Option<u32>) -> Self {
        let (now, left) = (Instant::now(), limits.compute + GRACE);
        let before = process.and_then(computed).unwrap_or_default();
        Self { process, compute: before + left, look: now + left, whole: now + limits.wall }
    }

    fn next(&self) -> Instant {
        self.whole.min(self.look)
    }

    /// Whether the time is over, now that the [next](Self::next) moment has come. Where the kernel does not tell what
    /// a process has used, it still ends it itself, after [`code_sandbox::fences::CPU_SECONDS_MAX`].
    fn are_over(&mut self) -> bool {
        let now = Instant::now();
        let used = self.process.and_then(computed).unwrap_or_default();
        let left = self.compute.saturating_sub(used);
        self.look = now + left.max(LOOK_MIN);
        now >= self.whole || left.is_zero()
    }
}

type Running<'a> = FuturesUnordered<BoxFuture<'a, (u32, Result<Value, HostError>)>>;

/// A run in progress.
struct Session<'a> {
    host: &'a dyn Host,
    logs: Vec<String>,
    queue: VecDeque<(u32, Call)>,
    running: Running<'a>,
    /// What is still to be written to the child.
    outgoing: Vec<u8>,
    deadlines: Deadlines,
}

/// Runs a program in a process that is ready.
pub(super) async fn run(
    mut process: Process,
    program: Run,
    host: &dyn Host,
    limits: Limits,
    cancel: &CancellationToken,
) -> Outcome {
    let outgoing = match ToChild::Run(program).line() {
        Ok(line) => line,
        Err(error) => return Outcome::early(Ended::Failed, error.to_string()),
    };
    let mut session = Session {
        host,
        logs: Vec::new(),
        queue: VecDeque::new(),
        running: FuturesUnordered::new(),
        outgoing,
        deadlines: Deadlines::new(limits, process.id()),
    };
    let (reader, writer) = process.socket.split();
    let stop = session.exchange(reader, writer, &mut process.bridge, cancel).await;
    let mut outcome = match stop {
        Stop::Ended(outcome) => {
            process.kill().await;
            outcome
        }
        Stop::Closed => {
            let how = process.end().await;
            Outcome::early(Ended::Crashed, format!("the program broke off: {how}"))
        }
    };
    if outcome.ended != Ended::Cancelled {
        session.finish_calls(cancel).await;
    }
    outcome.logs = session.logs;
    outcome
}

impl Session<'_> {
    async fn exchange(
        &mut self,
        mut reader: ReadHalf<'_>,
        mut writer: WriteHalf<'_>,
        bridge: &mut Bridge,
        cancel: &CancellationToken,
    ) -> Stop {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            self.start_calls();
            tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    return Stop::Ended(Outcome::early(Ended::Cancelled, "the program was cancelled"));
                }
                () = sleep_until(self.deadlines.next()) => if self.deadlines.are_over() {
                    return Stop::Ended(Outcome::early(Ended::TimedOut, "the program took too long and was killed"));
                },
                Some((id, result)) = self.running.next(), if !self.running.is_empty() => self.answer(id, result),
                written = writer.write(&self.outgoing), if !self.outgoing.is_empty() => match written {
                    Ok(0) | Err(_) => return Stop::Closed,
                    Ok(written) => drop(self.outgoing.drain(..written)),
                },
                read = reader.read(&mut chunk) => match read {
                    Ok(0) | Err(_) => return Stop::Closed,
                    Ok(read) => {
                        bridge.arrived(chunk.get(..read).unwrap_or_default());
                        if let Some(outcome) = self.messages(bridge) {
                            return Stop::Ended(outcome);
                        }
                    }
                },
            }
        }
    }

    /// Takes what has arrived; the outcome if it is the end.
    fn messages(&mut self, bridge: &mut Bridge) -> Option<Outcome> {
        loop {
            match bridge.message() {
                Ok(None) => return None,
                Ok(Some(ToParent::Hello(_))) => {}
                Ok(Some(ToParent::Call { id, call })) => self.queue.push_back((id, call)),
                Ok(Some(ToParent::Log(line))) => {
                    self.host.log(&line);
                    self.logs.push(line);
                }
                Ok(Some(ToParent::Done(done))) => {
                    let cut = done.cut.map(|cut| (cut.text, cut.bytes));
                    return Some(Outcome { result: done.result, cut, ..Outcome::new(Ended::Finished) });
                }
                Ok(Some(ToParent::Failed(failure))) => {
                    let ended = match failure.kind {
                        FailureKind::Error => Ended::Failed,
                        FailureKind::TimedOut => Ended::TimedOut,
                        FailureKind::OutOfMemory => Ended::OutOfMemory,
                        FailureKind::Internal => Ended::Crashed,
                    };
                    let (line, column) = (failure.line, failure.column);
                    let error = ProgramError { message: failure.message, line, column };
                    return Some(Outcome { error: Some(error), ..Outcome::new(ended) });
                }
                Err(violation) => {
                    tracing::debug!(%violation, "the rule that a program broke");
                    tracing::warn!("a program broke the rules of its sandbox and was killed");
                    let message = format!("the program broke the rules of its sandbox and was killed: {violation}");
                    return Some(Outcome::early(Ended::Crashed, message));
                }
            }
        }
    }

    /// Starts calls that wait, as many as may run at a time.
    fn start_calls(&mut self) {
        while self.running.len() < CALLS_AT_ONCE_MAX
            && let Some((id, call)) = self.queue.pop_front()
        {
            let host = self.host;
            self.running
                .push(Box::pin(async move { (id, host.call(&call.module, &call.function, call.arguments).await) }));
        }
    }

    fn answer(&mut self, id: u32, result: Result<Value, HostError>) {
        let result = result.map_err(for_program).and_then(|value| {
            let bytes = value.to_string().len();
            if bytes > ANSWER_BYTES_MAX {
                let message = format!("the result has {bytes} bytes, {ANSWER_BYTES_MAX} are the maximum: ask for less");
                return Err(CallError { code: "result_too_large".to_owned(), message, retryable: false });
            }
            if !is_shallow(&value) {
                let message = "the result nests too deeply".to_owned();
                return Err(CallError { code: "result_too_large".to_owned(), message, retryable: false });
            }
            Ok(value)
        });
        match (ToChild::Answer { id, result }).line() {
            Ok(line) => self.outgoing.extend(line),
            Err(error) => tracing::error!(%error, "an answer for a program could not be written"),
        }
    }

    /// Waits for calls that have begun, so that their outcomes are known. Those that wait are not made.
    async fn finish_calls(&mut self, cancel: &CancellationToken) {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = sleep_until(self.deadlines.whole) => {}
            () = async { while self.running.next().await.is_some() {} } => {}
        }
    }
}

fn for_program(error: HostError) -> CallError {
    CallError {
        code: beginning(&error.code, CODE_BYTES_MAX).to_owned(),
        message: beginning(&error.message, MESSAGE_BYTES_MAX).to_owned(),
        retryable: error.retryable,
    }
}
