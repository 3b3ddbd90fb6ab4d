//! WebSocket on hyper and tokio-tungstenite. One message is one envelope, or one JSON object if the client requested
//! the JSON form, which is converted to the binary form here.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use device_protocol::{CLOSE_NORMAL, Decoded, Up, json, limits, up};
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    task::JoinHandle,
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self, Message,
        protocol::{CloseFrame, Role, WebSocketConfig},
    },
};

use super::{
    CLOSE_MS_MAX, LinkError, Outbound, Sender, WRITE_MS_MAX, envelope, farewell,
    meter::{Meter, Metered},
};
use crate::{runtime::spawn, text::crop};

/// Position of the kind in an envelope.
const KIND_AT: std::ops::Range<usize> = 2..4;

/// Longest reason of a close frame (RFC 6455, section 5.5: 125 bytes with the code).
const CLOSE_REASON_BYTES_MAX: usize = 123;

/// A WebSocket on an upgraded HTTP connection.
pub(crate) type Socket = WebSocketStream<Metered<TokioIo<Upgraded>>>;

/// The form of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Sub-protocol `lorgnette.v1`.
    Binary,
    /// Sub-protocol `lorgnette.v1+json`.
    Json,
}

/// A JSON text may have this many bytes for each one of the frame's binary form: twice what escapes make of any text,
/// for numbers and indentation.
const JSON_BYTES_PER_BYTE: usize = 8;
/// And this many more: names of fields, and fields of a later version.
const JSON_BYTES_MORE: usize = 4 * 1024;
/// Bytes read at a time from a connection whose data is discarded.
const DRAIN_BYTES: usize = 4 * 1024;
/// Bytes discarded in all: a message that is far too large for anything, and more than the buffers of both ends hold.
const DRAINED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The writer's half; the one of a stalled writer is lost.
type Sink = SplitSink<Socket, Message>;

/// Receiving half.
pub struct Receiver {
    socket: SplitStream<Socket>,
    form: Form,
    pub(super) meter: Meter,
    /// Returns its half once everything is sent.
    writer: JoinHandle<Option<Sink>>,
}

/// The server's end of an upgraded connection, for messages of at most `message_bytes_max` in both directions. What
/// comes in is counted by `meter`.
pub(crate) async fn server_socket(upgraded: Upgraded, message_bytes_max: usize, meter: Meter) -> Socket {
    let config = WebSocketConfig::default()
        // The default of 128 KiB per connection exceeds the needs of a whole session.
        .read_buffer_size(4 * 1024)
        .write_buffer_size(0)
        .max_write_buffer_size(2 * message_bytes_max.max(limits::JSON_BYTES_MAX))
        .max_message_size(Some(message_bytes_max))
        .max_frame_size(Some(message_bytes_max));
    let connection = Metered::new(TokioIo::new(upgraded), meter);
    WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await
}

/// Takes over an upgraded connection of glasses.
pub(crate) async fn open(upgraded: Upgraded, form: Form) -> (Receiver, Sender) {
    let message_bytes_max = match form {
        Form::Binary => limits::FRAME_BYTES_MAX,
        Form::Json => limits::JSON_BYTES_MAX,
    };
    let meter = Meter::newcomer();
    let socket = server_socket(upgraded, message_bytes_max, meter.clone()).await;
    let (sink, stream) = socket.split();
    let (sender, frames) = Sender::to_writer();
    let writer = spawn("websocket-writer", write(sink, frames, form));
    (Receiver { socket: stream, form, meter, writer }, sender)
}

impl Receiver {
    pub(super) async fn recv(&mut self) -> Result<Option<Bytes>, LinkError> {
        loop {
            let message = match self.socket.next().await {
                None | Some(Err(tungstenite::Error::ConnectionClosed)) => return Ok(None),
                Some(Err(tungstenite::Error::Capacity(error))) => {
                    return Err(LinkError::Malformed(error.to_string()));
                }
                Some(Err(error)) => {
                    return Err(flooding(error).unwrap_or_else(|error| LinkError::Transport(error.to_string())));
                }
                Some(Ok(message)) => message,
            };
            // Pings count too; the bytes were counted when they were read.
            self.meter.count(1, 0)?;
            match (message, self.form) {
                (Message::Binary(bytes), Form::Binary) => return Ok(Some(bytes)),
                (Message::Text(text), Form::Json) => {
                    return binary_of(text.as_str()).map(Some);
                }
                (Message::Close(_), _) => return Ok(None),
                (Message::Ping(_) | Message::Pong(_) | Message::Frame(_), _) => {}
                (Message::Binary(_), Form::Json) => {
                    return Err(LinkError::Malformed("a binary message where JSON was agreed".to_owned()));
                }
                (Message::Text(_), Form::Binary) => {
                    return Err(LinkError::Malformed("a text message where the binary form was agreed".to_owned()));
                }
            }
        }
    }

    /// Sends what is queued, then closes. The sender must have been dropped.
    pub(super) async fn close(mut self) {
        let mut readable = true;
        let written = async {
            loop {
                tokio::select! {
                    sink = &mut self.writer => return sink.ok().flatten(),
                    // A peer may not read before it has sent everything.
                    message = self.socket.next(), if readable => readable = matches!(message, Some(Ok(_))),
                }
            }
        };
        let sink = timeout(Duration::from_millis(WRITE_MS_MAX), written).await.ok().flatten();
        self.writer.abort();
        if let Some(Ok(mut socket)) = sink.map(|sink| self.socket.reunite(sink)) {
            drain(socket.get_mut().unmetered()).await;
        }
    }
}

/// Shuts down sending and reads for a while what the peer still sends: closing with unread bytes would reset the
/// connection, and a reset discards what the peer has not read yet, above all the reason. Works below the WebSocket
/// layer, whose reader stops after a broken message. No meter counts what is discarded; it is bounded in time and in bytes.
pub(crate) async fn drain(connection: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    let drained = async {
        let (mut unread, mut left) = ([0; DRAIN_BYTES], DRAINED_BYTES_MAX);
        connection.shutdown().await?;
        while left > 0 {
            match connection.read(&mut unread).await? {
                0 => break,
                bytes => left = left.saturating_sub(bytes),
            }
        }
        Ok::<_, std::io::Error>(())
    };
    drop(timeout(Duration::from_millis(CLOSE_MS_MAX), drained).await);
}

/// The error of the meter below a socket; any other one is given back.
pub(crate) fn flooding(error: tungstenite::Error) -> Result<LinkError, tungstenite::Error> {
    match error {
        tungstenite::Error::Io(error) => error.downcast().map_err(tungstenite::Error::Io),
        error => Err(error),
    }
}

fn binary_of(text: &str) -> Result<Bytes, LinkError> {
    let malformed = |error: &dyn std::fmt::Display| LinkError::Malformed(error.to_string());
    match json::decode_up(text).map_err(|error| malformed(&error))? {
        Decoded::Frame(frame) => {
            let frame = frame.to_borrowed();
            let bytes = envelope(frame.stamp, frame.message)?;
            let bytes_max = JSON_BYTES_PER_BYTE * bytes.len() + JSON_BYTES_MORE;
            if text.len() > bytes_max {
                let bytes = text.len();
                return Err(LinkError::Malformed(format!(
                    "{bytes} bytes of JSON for this message; at most {bytes_max}"
                )));
            }
            Ok(bytes)
        }
        // Sequences must remain gapless for their receiver: forward the smallest envelope with this stamp and the
        // unknown kind.
        Decoded::Skipped { kind, stamp } => {
            let beat = up::Heartbeat { echo_us: 0, held_us: 0 };
            let mut bytes = BytesMut::from(envelope(stamp, Up::Heartbeat(beat))?);
            bytes[KIND_AT].copy_from_slice(&kind.to_le_bytes());
            Ok(bytes.freeze())
        }
    }
}

fn text_of(bytes: &[u8]) -> Option<String> {
    match device_protocol::decode_down(bytes) {
        Ok(Decoded::Frame(frame)) => json::encode(&frame).ok(),
        _ => None,
    }
}

async fn write(mut sink: Sink, mut frames: Outbound, form: Form) -> Option<Sink> {
    // Without its own reason, this answers the peer's goodbye.
    let mut close = CloseFrame { code: CLOSE_NORMAL.into(), reason: "".into() };
    while let Some(bytes) = frames.recv().await {
        if let Some((code, reason)) = farewell(&bytes) {
            close = CloseFrame { code: code.into(), reason: crop(&reason, CLOSE_REASON_BYTES_MAX).into() };
        }
        let message = match form {
            Form::Binary => Message::Binary(bytes),
            Form::Json => match text_of(&bytes) {
                Some(text) => Message::Text(text.into()),
                None => continue,
            },
        };
        match timeout(Duration::from_millis(WRITE_MS_MAX), sink.send(message)).await {
            Ok(Ok(())) => {}
            // The peer has closed, or the connection broke.
            Ok(Err(_)) => break,
            Err(_) => {
                tracing::info!("a peer took no frame for {WRITE_MS_MAX} ms; closing");
                return None;
            }
        }
    }
    // Everything is sent: close on the WebSocket level too.
    let said = timeout(Duration::from_millis(WRITE_MS_MAX), sink.send(Message::Close(Some(close)))).await;
    said.is_ok().then_some(sink)
}

#[cfg(test)]
mod tests {
    use device_protocol::{Class, decode_up};

    use super::*;

    #[test]
    fn an_unknown_kind_in_json_keeps_its_place_in_the_sequence() {
        let text =
            r#"{"kind":"of_tomorrow","kind_number":8190,"sequence":70000,"turn":3,"time_us":8600000,"new":true}"#;
        let bytes = binary_of(text).unwrap();
        let Ok(Decoded::Skipped { kind, stamp }) = decode_up(&bytes) else {
            panic!("{bytes:?}");
        };
        assert_eq!((kind, Class::of_kind(kind)), (8190, Class::Control));
        assert_eq!((stamp.sequence, stamp.turn, stamp.time_us), (70_000, 3, 8_600_000));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_peer_sends_into_a_closing_connection_is_bounded_in_bytes_and_in_time() {
        // It sends for ever.
        let (mut connection, mut peer) = tokio::io::duplex(64 * 1024);
        let sender = spawn("peer", async move {
            let mut sent = 0;
            while let Ok(bytes) = peer.write(&[7; 32 * 1024]).await {
                sent += bytes;
            }
            sent
        });
        let start = tokio::time::Instant::now();
        drain(&mut connection).await;
        assert_eq!(start.elapsed(), Duration::ZERO, "it is given up before its time is over");
        drop(connection);
        let sent = sender.await.unwrap();
        assert!((DRAINED_BYTES_MAX..=DRAINED_BYTES_MAX + 128 * 1024).contains(&sent), "{sent} bytes");
        // It sends nothing, and stays.
        let (mut connection, _peer) = tokio::io::duplex(64 * 1024);
        let start = tokio::time::Instant::now();
        drain(&mut connection).await;
        assert_eq!(start.elapsed(), Duration::from_millis(CLOSE_MS_MAX));
        // It sends the rest, and closes.
        let (mut connection, mut peer) = tokio::io::duplex(64 * 1024);
        peer.write_all(&[7; 10_000]).await.unwrap();
        drop(peer);
        let start = tokio::time::Instant::now();
        drain(&mut connection).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[test]
    fn a_message_that_is_padded_is_malformed() {
        let heartbeat = |padding: usize, fields: &str| {
            let space = " ".repeat(padding);
            format!(
                r#"{{"kind":"heartbeat","kind_number":3,"sequence":0,"turn":0,"time_us":1,"echo_us":0,"held_us":0{fields}{space}}}"#
            )
        };
        let later = format!(r#","of_tomorrow":"{}""#, "x".repeat(3_000));
        assert!(binary_of(&heartbeat(0, "")).is_ok() && binary_of(&heartbeat(1_000, &later)).is_ok());
        let unknown = format!(r#","unknown":[{}]"#, "1,".repeat(4_000) + "1");
        for text in [heartbeat(10_000, ""), heartbeat(0, &unknown)] {
            assert!(
                matches!(binary_of(&text), Err(LinkError::Malformed(why)) if why.contains("of JSON")),
                "{}",
                text.len()
            );
        }
        // Texts whose every character is escaped pass.
        let escaped = "\\u0041".repeat(8_000);
        let text = format!(
            r#"{{"kind":"text_input","kind_number":4109,"sequence":1,"turn":0,"time_us":1,"text":"{escaped}"}}"#
        );
        assert!(binary_of(&text).is_ok(), "{:?}", binary_of(&text));
    }

    #[test]
    fn text_that_is_no_message_is_malformed() {
        for text in ["", "{}", "[1]", "null", r#"{"kind":"mute"}"#] {
            assert!(matches!(binary_of(text), Err(LinkError::Malformed(_))), "{text}");
        }
    }
}
