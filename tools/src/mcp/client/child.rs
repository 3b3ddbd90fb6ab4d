//! A server that is a child process of the gateway: its messages are sent over its standard input and output.
//!
//! The library silently drops a line that exceeds its limit, and the call that the line answers would wait until its
//! timeout. Therefore the length of each line is measured here, and after such an answer an error is inserted in its
//! place.

use std::{
    io,
    pin::Pin,
    process::Stdio,
    task::{Context, Poll, ready},
    time::Duration,
};

use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{Transport, async_rw::AsyncRwTransport},
};
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};
use serde_json::{Deserializer, Value, json};
use tokio::{
    io::{AsyncRead, ReadBuf},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    time::timeout,
};

/// Maximum bytes of one message.
pub(super) const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Code of the error that replaces an answer; not one of the protocol's own codes.
pub(super) const TOO_LARGE: i32 = -32_077;
/// Bytes of a line that contain the members before the result.
const HEAD_BYTES: usize = 512;
/// Bytes of a line that contain the members after the result.
const TAIL_BYTES: usize = 256;
/// Bytes per read.
const CHUNK_BYTES: usize = 64 * 1024;
/// How long a child may take to exit after its input was closed, and after a signal.
const END_MS_MAX: u64 = 3_000;

/// The child and its streams.
pub(super) struct ChildTransport {
    child: Child,
    group: Group,
    messages: AsyncRwTransport<RoleClient, Measured<ChildStdout>, ChildStdin>,
}

/// Starts a program as a server; also returns its standard error.
pub(super) fn start(mut command: Command) -> io::Result<(ChildTransport, Option<ChildStderr>)> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // A group of its own: programs such as npx run the server as a child of theirs.
    command.process_group(0);
    end_with_parent(&mut command);
    let mut child = command.spawn()?;
    let group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
    let taken = || io::Error::other("its input and output are not there");
    let (stdin, stdout) = (child.stdin.take().ok_or_else(taken)?, child.stdout.take().ok_or_else(taken)?);
    let stderr = child.stderr.take();
    let messages = AsyncRwTransport::new_client(Measured::new(stdout), stdin).with_max_line_length(MESSAGE_BYTES_MAX);
    Ok((ChildTransport { child, group, messages }, stderr))
}

/// Has the child get a signal when the gateway ends, however it ends: SIGTERM, which npx and its like pass on. The system
/// sends it at the end of the thread that started the child; the threads of the runtime live as long as the gateway.
#[allow(unsafe_code, reason = "the only way to set it: between fork and exec")]
fn end_with_parent(command: &mut Command) {
    // SAFETY: the closure makes one system call, which is async-signal-safe, and allocates nothing.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::TERM))?));
    }
}

/// The processes of a child: itself, and those that it started. What is left of them is killed in the end.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) -> bool {
        self.0.is_some_and(|pid| kill_process_group(pid, signal).is_ok())
    }

    /// Kills what is left, once: the number is not given to another process while one of the group lives, but later.
    fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

impl ChildTransport {
    async fn has_ended(&mut self) -> bool {
        timeout(Duration::from_millis(END_MS_MAX), self.child.wait()).await.is_ok()
    }

    /// As the protocol specifies: its input is closed; then it gets a signal; then it is killed. Its own children get both
    /// signals, too.
    async fn end(&mut self) -> io::Result<()> {
        self.messages.close().await?;
        if !self.has_ended().await && self.group.signal(Signal::TERM) {
            // If it does not end, it is killed.
            self.has_ended().await;
        }
        self.group.kill();
        match self.child.id() {
            Some(_) => self.child.kill().await,
            // It has ended, and was waited for.
            None => Ok(()),
        }
    }
}

impl Transport<RoleClient> for ChildTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.messages.send(message)
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleClient>>> + Send {
        self.messages.receive()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.end()
    }
}

/// Forwards what it reads, and after an overlong line the error that replaces it as an answer.
struct Measured<R> {
    inner: R,
    chunk: Box<[u8]>,
    /// The part of the chunk that is not yet forwarded.
    left: std::ops::Range<usize>,
    line: Line,
    /// Forwarded before anything else.
    own: Vec<u8>,
}

/// The line that is currently being read.
#[derive(Default)]
struct Line {
    bytes: usize,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Line {
    fn pass(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        let missing = HEAD_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..missing]);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]);
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
    }

    /// The error that replaces the line, if the line is an answer and too long.
    fn error(&self) -> Option<Vec<u8>> {
        if self.bytes <= MESSAGE_BYTES_MAX {
            return None;
        }
        let id = answered(&String::from_utf8_lossy(&self.head), &String::from_utf8_lossy(&self.tail))?;
        let message = format!("an answer of {} bytes; at most {MESSAGE_BYTES_MAX} are read", self.bytes);
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": TOO_LARGE, "message": message}});
        Some(format!("{error}\n").into_bytes())
    }
}

/// The id of the request that a line answers, found in its first and last bytes: between them is only the result.
fn answered(head: &str, tail: &str) -> Option<Value> {
    let mut id = None;
    let mut rest = head.trim_start().strip_prefix('{')?;
    loop {
        let (key, after) = next::<String>(rest)?;
        rest = after.trim_start().strip_prefix(':')?;
        match key.as_str() {
            "result" => break,
            // A request or a notification: its id is one of the server's own.
            "method" => return None,
            _ => {}
        }
        let (value, after) = next::<Value>(rest)?;
        if key == "id" {
            id = Some(value);
        }
        rest = after.trim_start().strip_prefix(',')?;
    }
    let behind = || {
        // Only the last brace of the line is skipped, so that no object within the result is mistaken for the message
        // itself.
        let members = tail.trim_end().strip_suffix('}')?;
        let (_, members) = members.rsplit_once("\"id\"")?;
        let (id, after) = next::<Value>(members.trim_start().strip_prefix(':')?)?;
        (!after.contains(['{', '}', '[', ']'])).then_some(id)
    };
    id.or_else(behind).filter(|id| id.is_number() || id.is_string())
}

/// The first value of a text, and the rest of the text.
fn next<T: serde::de::DeserializeOwned>(text: &str) -> Option<(T, &str)> {
    let mut values = Deserializer::from_str(text).into_iter::<T>();
    let value = values.next()?.ok()?;
    Some((value, text.get(values.byte_offset()..)?))
}

impl<R> Measured<R> {
    fn new(inner: R) -> Self {
        Self { inner, chunk: vec![0; CHUNK_BYTES].into(), left: 0..0, line: Line::default(), own: Vec::new() }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Measured<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.own.is_empty() {
            let count = this.own.len().min(out.remaining());
            out.put_slice(&this.own[..count]);
            this.own.drain(..count);
            return Poll::Ready(Ok(()));
        }
        if this.left.is_empty() {
            let mut chunk = ReadBuf::new(&mut this.chunk);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut chunk))?;
            this.left = 0..chunk.filled().len();
        }
        let left = &this.chunk[this.left.clone()];
        // Up to the end of a line, so that an error after the line can be inserted right there.
        let end = left.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let count = end.unwrap_or(left.len()).min(out.remaining());
        let bytes = &left[..count];
        out.put_slice(bytes);
        this.line.pass(bytes);
        if bytes.last() == Some(&b'\n') {
            this.own = this.line.error().unwrap_or_default();
            this.line = Line::default();
        }
        this.left.start += count;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::test_kill_process;
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};

    use super::*;

    /// A server that ignores the end of its input, with a child that does the same; and the number of the latter.
    async fn stubborn() -> (ChildTransport, Pid) {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 </dev/null >/dev/null 2>&1 & echo $! >&2; exec sleep 1000 2>/dev/null"]);
        let (child, stderr) = start(command).unwrap();
        let mut line = String::new();
        BufReader::new(stderr.unwrap()).read_line(&mut line).await.unwrap();
        (child, Pid::from_raw(line.trim().parse().unwrap()).unwrap())
    }

    /// Waits until a process is gone, or is only waited for by its parent.
    async fn gone(pid: Pid) {
        let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
        let is_there = || {
            let state = std::fs::read_to_string(&stat).unwrap_or_default();
            test_kill_process(pid).is_ok() && !state.contains(") Z ") && !state.is_empty()
        };
        while is_there() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn the_children_of_a_server_end_with_it() {
        let (mut child, grandchild) = stubborn().await;
        child.end().await.unwrap();
        gone(grandchild).await;
        let (child, grandchild) = stubborn().await;
        drop(child);
        gone(grandchild).await;
    }

    #[tokio::test]
    async fn a_server_ends_with_the_gateway() {
        let (send, started) = tokio::sync::oneshot::channel();
        // The system takes the end of this thread for that of the gateway.
        let thread = std::thread::Builder::new().spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let (child, grandchild) = runtime.block_on(stubborn());
            let (own, group) = (child.group.0.unwrap(), Group(child.group.0));
            // As by kill -9: nothing is dropped.
            std::mem::forget(child);
            send.send((own, group, grandchild)).ok().unwrap();
            std::mem::forget(runtime);
        });
        let (own, group, _) = started.await.unwrap();
        thread.unwrap().join().unwrap();
        gone(own).await;
        drop(group);
    }

    #[test]
    fn an_answer_names_its_request() {
        for (head, tail, id) in [
            (r#"{"jsonrpc":"2.0","id":5,"result":{"content":["#, "xxx", Some(json!(5))),
            (r#" { "id" : "a-1" , "jsonrpc":"2.0", "result" : {"#, "xxx", Some(json!("a-1"))),
            (r#"{"result":{"id":7,"content":["#, r#"xxxx"}]},"jsonrpc":"2.0","id":9}"#, Some(json!(9))),
            (r#"{"result":{"content":["#, "\"id\":9,\"jsonrpc\":\"2.0\"}\r\n", Some(json!(9))),
            // An object within the result.
            (r#"{"result":{"content":["#, r#""id":7}}"#, None),
            (r#"{"result":{"content":["#, r#""id":7},"jsonrpc":"2.0"}"#, None),
            // Requests of the server have ids of the server's own.
            (r#"{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":{"#, r#""id":5}"#, None),
            (r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"#, r#""id":5}"#, None),
            (r#"{"jsonrpc":"2.0","id":null,"result":{"#, "x", None),
            (r#"{"jsonrpc":"2.0","id":[5],"result":{"#, "x", None),
            ("yyyyyyyyyyy", "yyyyy", None),
            ("", "", None),
        ] {
            assert_eq!(answered(head, tail), id, "{head} ... {tail}");
        }
    }

    #[tokio::test]
    async fn what_fits_passes_and_what_does_not_is_answered_in_its_place() {
        let small = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
        let large = format!("{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":\"{}\"}}\n", "y".repeat(MESSAGE_BYTES_MAX));
        let noise = "z".repeat(MESSAGE_BYTES_MAX + 1) + "\n";
        let sent = [small, &large, &noise, small].concat();
        let mut read = String::new();
        Measured::new(sent.as_bytes()).read_to_string(&mut read).await.unwrap();
        let lines: Vec<&str> = read.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[4]), (5, small.trim_end(), small.trim_end()));
        assert_eq!((lines[1].len() + 1, lines[3].len() + 1), (large.len(), noise.len()));
        let error: Value = serde_json::from_str(lines[2]).unwrap();
        assert_eq!((&error["id"], &error["error"]["code"]), (&json!(2), &json!(TOO_LARGE)));
    }
}
