//! The gateway's side of the control socket.

use std::{fs, io::ErrorKind, os::unix::fs::PermissionsExt as _, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream, unix::OwnedWriteHalf},
    sync::{Semaphore, broadcast::error::RecvError},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use tools::mcp::server::Who;

use super::{Answer, LINE_BYTES_MAX, Request, app_log, ask, commands, memory, socket_path};
use crate::{approvals::WATCHERS_MAX, control::admin::Admin, device_task::services::Services, runtime::spawn};

/// Clients at once; one that speaks MCP stays for hours.
const CLIENTS_MAX: usize = 32;
/// How long a client may take to send its request, in milliseconds.
const REQUEST_MS_MAX: u64 = 5_000;

/// Binds the socket of a data folder. It also prevents a second gateway on the folder.
///
/// # Errors
/// A gateway already runs on this folder, or the socket cannot be created.
pub(crate) fn bind(data_dir: &Path) -> Result<UnixListener> {
    let path = socket_path(data_dir);
    match std::os::unix::net::UnixStream::connect(&path) {
        Ok(_) => bail!(
            "another gateway already runs on {}; stop it, or give this one its own `data_dir`",
            data_dir.display()
        ),
        // Left by a gateway that was killed.
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
        Err(_) => {}
    }
    let listener = UnixListener::bind(&path).with_context(|| format!("making {}", path.display()))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Answers until `stop`, then removes the socket.
pub(crate) async fn serve(listener: UnixListener, admin: Arc<Admin>, stop: CancellationToken) {
    let clients = Arc::new(Semaphore::new(CLIENTS_MAX));
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "accepting on the control socket failed");
                    continue;
                }
            },
        };
        let Ok(permit) = clients.clone().try_acquire_owned() else {
            continue;
        };
        let admin = admin.clone();
        spawn("control", async move {
            if let Err(error) = converse(stream, &admin).await {
                tracing::debug!(%error, "a control client went away");
            }
            drop(permit);
        });
    }
    drop(fs::remove_file(socket_path(&admin.services.settings.data_dir)));
}

async fn converse(stream: UnixStream, admin: &Arc<Admin>) -> Result<()> {
    let peer = stream.peer_cred().context("the peer's credentials")?;
    let (read, mut write) = stream.into_split();
    let mut line = Vec::new();
    let mut reader = BufReader::new(read).take(LINE_BYTES_MAX as u64);
    timeout(Duration::from_millis(REQUEST_MS_MAX), reader.read_until(b'\n', &mut line)).await??;
    let request = serde_json::from_slice::<Request>(&line);
    if matches!(request, Ok(Request::WatchApprovals)) {
        return watch_approvals(reader.into_inner(), write, &admin.services).await;
    }
    if let Ok(Request::FollowApp { package }) = request {
        tracing::info!(uid = peer.uid(), pid = peer.pid(), command = "apps logs", "control");
        return app_log::follow(reader.into_inner(), write, admin, &package).await;
    }
    if let Ok(Request::Ask { user, text }) = request {
        tracing::info!(uid = peer.uid(), pid = peer.pid(), command = "ask", about = user, "control");
        return ask::serve(reader.into_inner(), write, &admin.services, user, &text).await;
    }
    let mut mcp = None;
    let mut export = None;
    let answer = match request {
        Ok(request) => {
            if let Request::Mcp { user, class } = &request {
                mcp = Some(Who { user: user.clone(), class: *class });
            }
            if let Request::Export { user } = &request {
                export = Some(user.clone());
            }
            let (command, about) = (commands::name(&request), commands::about(&request));
            tracing::info!(uid = peer.uid(), pid = peer.pid(), command, about, "control");
            commands::run(admin, request).await
        }
        Err(error) => Answer::Error { message: format!("the request was not understood: {error}") },
    };
    say(&mut write, &answer).await?;
    if let Some(user) = export.filter(|_| !matches!(answer, Answer::Error { .. })) {
        return write_export(write, admin.services.clone(), user).await;
    }
    if let Some(who) = mcp.filter(|_| !matches!(answer, Answer::Error { .. })) {
        // The client sends nothing before it has read the answer: the buffer is empty.
        let read = reader.into_inner().into_inner();
        admin.mcp.serve_stream(who, tokio::io::join(read, write)).await?;
    }
    Ok(())
}

/// All data of a user, in pieces; `Done` marks the end.
async fn write_export(mut write: OwnedWriteHalf, services: Arc<Services>, user: String) -> Result<()> {
    services.store.settled().await?;
    let mut export = memory::Export::new(services, user).map_err(anyhow::Error::msg)?;
    loop {
        let answer = match export.next().await {
            Ok(Some((records, following))) => {
                export = following;
                if records.is_empty() {
                    continue;
                }
                Answer::Records { records }
            }
            Ok(None) => return say(&mut write, &commands::done("everything was exported".to_owned())).await,
            Err(message) => return say(&mut write, &Answer::Error { message }).await,
        };
        say(&mut write, &answer).await?;
    }
}

/// Sends open questions, then each new question and decision, until the client disconnects or the gateway stops.
async fn watch_approvals(
    mut read: impl AsyncRead + Unpin,
    mut write: OwnedWriteHalf,
    services: &Services,
) -> Result<()> {
    let Some(mut events) = services.approvals.watch() else {
        let message = format!("{WATCHERS_MAX} clients watch already, and more may not");
        return say(&mut write, &Answer::Error { message }).await;
    };
    say(&mut write, &Answer::Approvals { approvals: services.approvals.list() }).await?;
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            // The client sends nothing more: any read is its end.
            _ = read.read_u8() => return Ok(()),
            () = services.admission.stop.cancelled() => return Ok(()),
        };
        match event {
            Ok(event) => say(&mut write, &Answer::Approvals { approvals: vec![event] }).await?,
            // Missed events are replaced by the list of open questions.
            Err(RecvError::Lagged(_)) => {
                say(&mut write, &Answer::Approvals { approvals: services.approvals.list() }).await?;
            }
            Err(RecvError::Closed) => return Ok(()),
        }
    }
}

pub(super) async fn say(write: &mut OwnedWriteHalf, answer: &Answer) -> Result<()> {
    let mut reply = serde_json::to_vec(answer)?;
    reply.push(b'\n');
    timeout(Duration::from_millis(REQUEST_MS_MAX), write.write_all(&reply)).await??;
    Ok(())
}
