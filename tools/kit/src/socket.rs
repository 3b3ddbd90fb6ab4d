//! The socket to the gateway: connecting, acknowledgement, transfer of messages, and reconnecting.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::{
    net::TcpStream,
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{
        Message,
        protocol::{WebSocketConfig, frame::coding::CloseCode},
    },
};

use crate::{
    Error,
    limits::{ACK_MS_MAX, MESSAGE_BYTES_MAX, RECONNECT_MS},
    session::Session,
};

/// An open and acknowledged socket.
pub(crate) type Opened = WebSocketStream<TcpStream>;

/// Opens the socket and waits for its acknowledgement. `again`: the session is continued.
pub(crate) async fn open(session: &Session, again: bool) -> Result<Opened, Error> {
    timeout(Duration::from_millis(ACK_MS_MAX), shake_hands(session, again))
        .await
        .unwrap_or(Err(Error::Timeout(ACK_MS_MAX)))
}

async fn shake_hands(session: &Session, again: bool) -> Result<Opened, Error> {
    let target = session.target();
    let lost = |source| Error::Socket(tokio_tungstenite::tungstenite::Error::Io(source));
    let (host, port) = target.address();
    let stream = TcpStream::connect((host.as_str(), port)).await.map_err(lost)?;
    stream.set_nodelay(true).map_err(lost)?;
    let config =
        WebSocketConfig::default().max_message_size(Some(MESSAGE_BYTES_MAX)).max_frame_size(Some(MESSAGE_BYTES_MAX));
    let (mut socket, _) = client_async_with_config(target.url(), stream, Some(config)).await?;
    socket.send(Message::text(session.first(again).to_string())).await?;
    while let Some(message) = socket.next().await {
        let Some(answer) = parsed(&message?) else { continue };
        match answer.get("type").and_then(Value::as_str) {
            Some("tpa_connection_ack" | "reconnect_ack") => return Ok(socket),
            Some("tpa_connection_error" | "connection_error" | "reconnect_rejected") => {
                let why = answer.get("message").and_then(Value::as_str).unwrap_or("no reason was given");
                return Err(Error::Refused(why.to_owned()));
            }
            _ => {}
        }
    }
    Err(Error::Refused("the socket was closed before it was acknowledged".to_owned()))
}

fn parsed(message: &Message) -> Option<Value> {
    serde_json::from_str(message.to_text().ok()?).ok()
}

/// How a connection ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// Permanently.
    Over,
    /// Without a close reason: the gateway may come back.
    Lost,
}

/// Transfers a session's messages until it ends.
pub(crate) async fn run(session: &Session, mut socket: Opened, mut out: mpsc::Receiver<Value>) {
    loop {
        // The full list first: after a loss the gateway no longer has it.
        let list = session.message("subscription_update", session.subscriptions());
        let sent = socket.send(Message::text(list.to_string())).await;
        if sent.is_ok() && converse(session, &mut socket, &mut out).await == End::Over {
            return;
        }
        match come_back(session).await {
            Some(opened) => socket = opened,
            None => return,
        }
    }
}

async fn converse(session: &Session, socket: &mut Opened, out: &mut mpsc::Receiver<Value>) -> End {
    loop {
        tokio::select! {
            () = session.ended() => {
                // The gateway may have closed before.
                drop(socket.close(None).await);
                return End::Over;
            }
            message = out.recv() => {
                let Some(message) = message else { return End::Over };
                if socket.send(Message::text(message.to_string())).await.is_err() {
                    return End::Lost;
                }
            }
            message = socket.next() => match message {
                Some(Ok(Message::Close(frame))) => {
                    // A close without a reason is deliberate; a loss comes without a close frame.
                    let over = frame.is_none_or(|frame| {
                        matches!(frame.code, CloseCode::Normal | CloseCode::Away | CloseCode::Policy)
                    });
                    return if over { End::Over } else { End::Lost };
                }
                Some(Ok(message)) => {
                    if let Some(message) = parsed(&message) {
                        session.handle(&message);
                    }
                }
                Some(Err(_)) | None => return End::Lost,
            }
        }
    }
}

async fn come_back(session: &Session) -> Option<Opened> {
    for pause_ms in RECONNECT_MS {
        tokio::select! {
            () = session.ended() => return None,
            () = sleep(Duration::from_millis(pause_ms)) => {}
        }
        match open(session, true).await {
            Ok(socket) => return Some(socket),
            // The gateway is reachable, and the session is over.
            Err(Error::Refused(_)) => return None,
            Err(error) => tracing::debug!(%error, "the gateway is not back yet"),
        }
    }
    tracing::warn!("the gateway did not come back; the session is over");
    None
}
