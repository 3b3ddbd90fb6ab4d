//! The socket to the gateway: opening, acknowledgement, the way of every message, and coming back
//! after a loss.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use hyper::Uri;
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

/// Where a gateway's socket is, and with it everything else of the gateway's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    url: String,
    /// Host and port.
    authority: String,
    /// What comes before `/app-ws`.
    prefix: String,
}

impl Target {
    /// Reads an address from a webhook. `allowed` is the only gateway that may be meant.
    pub(crate) fn parse(url: &str, allowed: Option<&str>) -> Result<Self, Error> {
        let wrong = || Error::Address(url.chars().take(200).collect());
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let authority = uri.authority().ok_or_else(wrong)?;
        // A name before the host would go into every request that is made of it.
        if uri.scheme_str() != Some("ws") || authority.as_str().contains('@') {
            return Err(wrong());
        }
        if allowed.is_some_and(|origin| origin != format!("ws://{authority}")) {
            return Err(wrong());
        }
        let path = uri.path();
        let prefix = path.strip_suffix("/app-ws").or_else(|| path.strip_suffix("/tpa-ws")).unwrap_or_default();
        Ok(Self { url: url.to_owned(), authority: authority.to_string(), prefix: prefix.to_owned() })
    }

    /// Host and port, for connecting.
    pub(crate) fn address(&self) -> (String, u16) {
        let authority: Option<hyper::http::uri::Authority> = self.authority.parse().ok();
        let (host, port) = authority.as_ref().map_or(("", None), |parts| (parts.host(), parts.port_u16()));
        (host.trim_matches(['[', ']']).to_owned(), port.unwrap_or(80))
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// The path of a request to the gateway's web server.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("{}{rest}", self.prefix)
    }

    /// The address that stands for spoken words. It is never fetched: the gateway reads the words
    /// from it. Always https, as apps have it.
    pub(crate) fn speech_url(&self, text: &str) -> String {
        let query: String = form_urlencoded::Serializer::new(String::new()).append_pair("text", text).finish();
        format!("https://{}{}?{query}", self.authority, self.path("/api/tts"))
    }
}

/// Opens the socket and waits for its acknowledgement. `again`: the session goes on where it was.
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
    let (mut socket, _) = client_async_with_config(target.url.as_str(), stream, Some(config)).await?;
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
    /// For good.
    Over,
    /// Without a word: the gateway may come back.
    Lost,
}

/// Carries a session's messages until it ends.
pub(crate) async fn run(session: &Session, mut socket: Opened, mut out: mpsc::Receiver<Value>) {
    loop {
        // The full list first: after a loss the gateway has forgotten it.
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
                    // Whoever closes without a reason means it; a loss comes without a close.
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
            // The gateway is there, and the session is over.
            Err(Error::Refused(_)) => return None,
            Err(error) => tracing::debug!(%error, "the gateway is not back yet"),
        }
    }
    tracing::warn!("the gateway did not come back; the session is over");
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_gateways() {
        let target = Target::parse("ws://127.0.0.1:8002/gw/u1/app-ws", None).unwrap();
        assert_eq!(target.address(), ("127.0.0.1".to_owned(), 8002));
        assert_eq!(target.path("/api/x"), "/gw/u1/api/x");
        assert_eq!(target.speech_url("Hi & bye"), "https://127.0.0.1:8002/gw/u1/api/tts?text=Hi+%26+bye");
        assert_eq!(Target::parse("ws://[::1]:9/app-ws", None).unwrap().address(), ("::1".to_owned(), 9));
        assert_eq!(Target::parse("ws://box/tpa-ws", None).unwrap().path("/a"), "/a");
        for wrong in ["", "x", "/app-ws", "http://a/app-ws", "wss://a/app-ws", "ws://me:pw@a/app-ws", "ws://"] {
            assert!(Target::parse(wrong, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_the_allowed_gateway_learns_the_key() {
        let allowed = Some("ws://127.0.0.1:8002");
        assert!(Target::parse("ws://127.0.0.1:8002/app-ws", allowed).is_ok());
        for other in ["ws://127.0.0.1:8003/app-ws", "ws://127.0.0.1/app-ws", "ws://127.0.0.1:8002.evil/app-ws"] {
            assert!(Target::parse(other, allowed).is_err(), "{other}");
        }
    }
}
