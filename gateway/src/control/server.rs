//! The gateway's side of the control socket.

use std::{fs, io::ErrorKind, os::unix::fs::PermissionsExt as _, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader},
    net::{UnixListener, UnixStream, unix::OwnedWriteHalf},
    sync::{OwnedSemaphorePermit, Semaphore, broadcast::error::RecvError},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use tools::mcp::server::{Approver, Who};

use super::{
    Answer, LINE_BYTES_MAX, Request, app_log, ask, backup, commands, invitation, logs, memory,
    reply::{done, say},
    socket_path,
};
use crate::{
    approvals::{ApprovalBroker, WATCHERS_MAX},
    control::admin::Admin,
    runtime::{
        descriptors::{are_used_up, is_broken},
        spawn,
    },
    store::Store,
};

/// Commands at once, from the connection to the answer. Clients that stay, and calls that may wait for a person, have
/// places of their own, so that these are always an operator's.
const COMMANDS_MAX: usize = 16;
/// Clients at once that stay: those that speak MCP stay for hours, those that call a tool until the wearer has answered.
const STAYING_MAX: usize = 32;
/// How long to wait after a connection could not be accepted, in milliseconds: most likely no file descriptor is left.
const ACCEPT_PAUSE_MS: u64 = 50;
/// Descriptors that are kept for commands: when no other is left, an operator can still revoke glasses.
const SPARE: usize = 4;
/// How long a client may take to send its request, in milliseconds.
const REQUEST_MS_MAX: u64 = 5_000;

/// Binds the socket of a data folder, on which no other gateway runs: the caller has its lock.
///
/// # Errors
/// The socket cannot be created.
pub(crate) fn bind(data_dir: &Path) -> Result<UnixListener> {
    let path = socket_path(data_dir);
    match fs::remove_file(&path) {
        // Left by a gateway that was killed, or there was none.
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("removing {}", path.display())),
    }
    let listener = UnixListener::bind(&path).with_context(|| format!("making {}", path.display()))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Answers until `stop`, then removes the socket.
pub(crate) async fn serve(listener: UnixListener, admin: Arc<Admin>, stop: CancellationToken) {
    let (commands, staying) = (Arc::new(Semaphore::new(COMMANDS_MAX)), Arc::new(Semaphore::new(STAYING_MAX)));
    let accept = async || {
        // Where all places are taken, the next client waits for one.
        let place = commands.clone().acquire_owned().await.map_err(std::io::Error::other)?;
        Ok::<_, std::io::Error>((listener.accept().await?.0, place))
    };
    let mut spare = Vec::with_capacity(SPARE);
    let mut is_short = false;
    loop {
        // Not where one was just given up for the next command.
        while !is_short
            && spare.len() < SPARE
            && let Ok(file) = fs::File::open("/dev/null")
        {
            spare.push(file);
        }
        is_short = false;
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept() => accepted,
        };
        let (stream, place) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_broken(&error) => {
                tracing::error!(%error, "the control socket takes no connections any more");
                return;
            }
            Err(error) if are_used_up(&error) && spare.pop().is_some() => {
                tracing::warn!(%error, "a command gets a descriptor that is kept for commands");
                is_short = true;
                continue;
            }
            Err(error) => {
                tracing::warn!(%error, "accepting on the control socket failed");
                tokio::time::sleep(Duration::from_millis(ACCEPT_PAUSE_MS)).await;
                continue;
            }
        };
        let (admin, staying) = (admin.clone(), staying.clone());
        spawn("control", async move {
            if let Err(error) = converse(stream, &admin, place, staying).await {
                tracing::debug!(%error, "a control client went away");
            }
        });
    }
    drop(fs::remove_file(socket_path(&admin.services.settings.data_dir)));
}

async fn converse(
    stream: UnixStream,
    admin: &Arc<Admin>,
    place: OwnedSemaphorePermit,
    staying: Arc<Semaphore>,
) -> Result<()> {
    let peer = stream.peer_cred().context("the peer's credentials")?;
    let (read, mut write) = stream.into_split();
    let mut line = Vec::new();
    let mut reader = BufReader::new(read).take(LINE_BYTES_MAX as u64);
    timeout(Duration::from_millis(REQUEST_MS_MAX), reader.read_until(b'\n', &mut line)).await??;
    let request = serde_json::from_slice::<Request>(&line);
    let _place = if !request.as_ref().is_ok_and(stays) {
        place
    } else if let Ok(stay) = staying.try_acquire_owned() {
        drop(place);
        stay
    } else {
        let message = format!("{STAYING_MAX} clients of the control socket stay already, and more may not");
        return say(&mut write, &Answer::Error { message }).await;
    };
    let (services, stop) = (&admin.services, &admin.services.admission.stop);
    if matches!(request, Ok(Request::WatchApprovals)) {
        return watch_approvals(reader.into_inner(), write, &services.approvals, stop).await;
    }
    if let Ok(Request::FollowApp { package }) = request {
        tracing::info!(uid = peer.uid(), pid = peer.pid(), command = "apps logs", "control");
        return app_log::follow(reader.into_inner(), write, &admin.installed, stop, &package).await;
    }
    if let Ok(Request::FollowLogs { filter, limit }) = request {
        tracing::info!(uid = peer.uid(), pid = peer.pid(), command = "logs", "control");
        return logs::follow(reader.into_inner(), write, &admin.logs, stop, (filter, limit)).await;
    }
    if let Ok(Request::Backup { device_keys }) = request {
        tracing::info!(uid = peer.uid(), pid = peer.pid(), command = "backup", "control");
        return backup::serve(reader.into_inner(), write, admin, device_keys).await;
    }
    if let Ok(Request::Ask { user, text }) = request {
        tracing::info!(uid = peer.uid(), pid = peer.pid(), command = "ask", about = user, "control");
        return ask::serve(reader.into_inner(), write, services, user, &text).await;
    }
    if let Ok(Request::Invite { user, name, addresses }) = request {
        tracing::info!(uid = peer.uid(), pid = peer.pid(), command = "invite", about = user, "control");
        return invitation::serve(reader.into_inner(), write, admin, (user, name), addresses).await;
    }
    let mut mcp = None;
    let mut export = None;
    let answer = match request {
        Ok(request) => {
            if let Request::Mcp { user, class } = &request {
                mcp =
                    Some(Who { user: user.clone(), class: *class, approves: Approver::of(*class), is_operator: true });
            }
            if let Request::Export { user } = &request {
                export = Some(user.clone());
            }
            let (command, about) = (commands::name(&request), commands::about(&request));
            // A client that watches sends these every second: they would push all others out of the stored log.
            if matches!(request, Request::Status | Request::Turns { .. } | Request::Logs { .. }) {
                tracing::debug!(uid = peer.uid(), pid = peer.pid(), command, "control");
            } else {
                tracing::info!(uid = peer.uid(), pid = peer.pid(), command, about, "control");
            }
            carry_out(admin, request, reader.get_mut()).await
        }
        Err(error) => Answer::Error { message: format!("the request was not understood: {error}") },
    };
    say(&mut write, &answer).await?;
    if let Some(user) = export.filter(|_| !matches!(answer, Answer::Error { .. })) {
        return write_export(write, &services.store, &services.settings.data_dir, user).await;
    }
    if let Some(who) = mcp.filter(|_| !matches!(answer, Answer::Error { .. })) {
        // The client sends nothing before it has read the answer: the buffer is empty.
        let read = reader.into_inner().into_inner();
        admin.mcp.serve_stream(who, tokio::io::join(read, write)).await?;
    }
    Ok(())
}

/// Carries out a request. A call is interrupted when its client leaves, and is driven to its end nevertheless.
async fn carry_out(admin: &Admin, request: Request, mut read: impl AsyncRead + Unpin) -> Answer {
    if !commands::is_call(&request) {
        return commands::run(admin, request).await;
    }
    let gone = CancellationToken::new();
    // Boxed: a call's future is large.
    let mut running = Box::pin(commands::run_for(admin, request, &gone));
    tokio::select! {
        answer = &mut running => return answer,
        // The client sends nothing more: any read is its end.
        _ = read.read_u8() => gone.cancel(),
    }
    running.await
}

/// Whether a client stays after its request's first answer, or for as long as a person may take to answer.
fn stays(request: &Request) -> bool {
    commands::is_call(request)
        || matches!(
            request,
            Request::Mcp { .. }
                | Request::WatchApprovals
                | Request::FollowApp { .. }
                | Request::FollowLogs { .. }
                | Request::Ask { .. }
                | Request::Backup { .. }
                | Request::Invite { .. }
        )
}

/// All data of a user, in pieces; `Done` marks the end.
async fn write_export(mut write: OwnedWriteHalf, store: &Store, data_dir: &Path, user: String) -> Result<()> {
    store.settled().await?;
    let mut export = memory::Export::new(store.clone(), data_dir.to_owned(), user).map_err(anyhow::Error::msg)?;
    loop {
        let answer = match export.next().await {
            Ok(Some((records, following))) => {
                export = following;
                if records.is_empty() {
                    continue;
                }
                Answer::Records { records }
            }
            Ok(None) => return say(&mut write, &done("everything was exported".to_owned())).await,
            Err(message) => return say(&mut write, &Answer::Error { message }).await,
        };
        say(&mut write, &answer).await?;
    }
}

/// Sends open questions, then each new question and decision, until the client disconnects or the gateway stops.
async fn watch_approvals(
    mut read: impl AsyncRead + Unpin,
    mut write: OwnedWriteHalf,
    approvals: &ApprovalBroker,
    stop: &CancellationToken,
) -> Result<()> {
    let Some(mut events) = approvals.watch() else {
        let message = format!("{WATCHERS_MAX} clients watch already, and more may not");
        return say(&mut write, &Answer::Error { message }).await;
    };
    say(&mut write, &Answer::Approvals { approvals: approvals.list() }).await?;
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            // The client sends nothing more: any read is its end.
            _ = read.read_u8() => return Ok(()),
            () = stop.cancelled() => return Ok(()),
        };
        match event {
            Ok(event) => say(&mut write, &Answer::Approvals { approvals: vec![event] }).await?,
            // Missed events are replaced by the list of open questions.
            Err(RecvError::Lagged(_)) => {
                say(&mut write, &Answer::Approvals { approvals: approvals.list() }).await?;
            }
            Err(RecvError::Closed) => return Ok(()),
        }
    }
}
