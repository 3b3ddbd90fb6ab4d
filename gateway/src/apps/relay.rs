//! Sound that 3.x of the SDK sends over its socket: `session.speaker.createStream()`.
//!
//! An app announces a stream, requests its playback, sends pieces of an MP3 as binary frames and ends it. Pieces are
//! collected, and played once the stream has ended.

use std::collections::BTreeMap;

use super::speech::Wanted;

/// Bytes before each piece: the stream's id as text.
const NUMBER_BYTES: usize = 36;
/// Streams of one app that are open at once; the SDK itself opens one.
const STREAMS_MAX: usize = 2;
/// Bytes of one stream, as MentraOS keeps them.
const STREAM_BYTES_MAX: usize = 2_000_000;
/// Path of a stream's address as sent to apps. It is never fetched.
const PATH: &str = "/api/audio/stream/";

/// A stream being collected.
#[derive(Default)]
struct Stream {
    bytes: Vec<u8>,
    too_long: bool,
    request: Option<(String, Wanted)>,
    ended: bool,
}

/// A complete stream whose playback was requested.
#[derive(Debug, PartialEq)]
pub(super) struct Whole {
    /// The app's id of the playback request.
    pub(super) request: String,
    /// Format and track.
    pub(super) wanted: Wanted,
    /// The file, or an error.
    pub(super) file: Result<Vec<u8>, String>,
}

/// The streams of one socket.
#[derive(Default)]
pub(super) struct Relay(BTreeMap<String, Stream>);

impl Relay {
    /// Opens a stream, in place of one of this number that is open; returns the address to play it from, and the request for
    /// that other one, which stays unanswered otherwise.
    ///
    /// # Errors
    /// Why it is not opened.
    pub(super) fn start(&mut self, number: &str) -> Result<(String, Option<String>), String> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if number.len() != NUMBER_BYTES || !number.bytes().all(fits) {
            return Err(format!("a stream's number has {NUMBER_BYTES} letters, digits and dashes"));
        }
        if self.0.len() >= STREAMS_MAX && !self.0.contains_key(number) {
            return Err(format!("at most {STREAMS_MAX} streams are open at once"));
        }
        let replaced = self.0.insert(number.to_owned(), Stream::default()).and_then(|stream| stream.request);
        Ok((format!("https://gateway{PATH}{number}"), replaced.map(|(request, _)| request)))
    }

    /// Whether an address belongs to a stream.
    pub(super) fn owns(url: &str) -> bool {
        url.contains(PATH)
    }

    /// Requests playback of a stream; returns another request for it that this one replaces, which stays unanswered
    /// otherwise, and the stream if it is complete.
    pub(super) fn play(&mut self, request: String, wanted: Wanted) -> (Option<String>, Option<Whole>) {
        let number = wanted.url.rsplit('/').next().unwrap_or_default().to_owned();
        match self.0.get_mut(&number) {
            Some(stream) => {
                let earlier = stream.request.take().map(|(earlier, _)| earlier);
                let replaced = earlier.filter(|earlier| *earlier != request);
                stream.request = Some((request, wanted));
                (replaced, self.whole(&number))
            }
            None => (None, Some(Whole { request, wanted, file: Err("no such stream is open".to_owned()) })),
        }
    }

    /// Adds a piece. One without a stream is dropped.
    pub(super) fn push(&mut self, frame: &[u8]) {
        let Some((number, piece)) = frame.split_at_checked(NUMBER_BYTES) else { return };
        let Some(stream) = std::str::from_utf8(number).ok().and_then(|number| self.0.get_mut(number)) else { return };
        if stream.ended || stream.too_long {
            return;
        }
        if stream.bytes.len() + piece.len() > STREAM_BYTES_MAX {
            stream.too_long = true;
            stream.bytes = Vec::new();
            return;
        }
        stream.bytes.extend_from_slice(piece);
    }

    /// Ends a stream.
    pub(super) fn end(&mut self, number: &str) -> Option<Whole> {
        self.0.get_mut(number)?.ended = true;
        self.whole(number)
    }

    /// Drops the streams collected on a track, or on all; returns the requests that would otherwise stay unanswered.
    pub(super) fn stop(&mut self, track: Option<u8>) -> Vec<String> {
        let mut stopped = Vec::new();
        self.0.retain(|_, stream| {
            let Some((request, wanted)) = &stream.request else { return track.is_some() };
            let stays = track.is_some() && wanted.track != track;
            if !stays {
                stopped.push(request.clone());
            }
            stays
        });
        stopped
    }

    fn whole(&mut self, number: &str) -> Option<Whole> {
        if !self.0.get(number).is_some_and(|stream| stream.ended && stream.request.is_some()) {
            return None;
        }
        let stream = self.0.remove(number)?;
        let (request, wanted) = stream.request?;
        let file = if stream.too_long {
            Err(format!("a stream has at most {STREAM_BYTES_MAX} bytes"))
        } else {
            Ok(stream.bytes)
        };
        Some(Whole { request, wanted, file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: &str = "01234567-89ab-cdef-0123-456789abcdef";

    fn wanted(url: String) -> Wanted {
        Wanted { url, volume: 1.0, alone: true, track: Some(1) }
    }

    fn piece(bytes: &[u8]) -> Vec<u8> {
        [NUMBER.as_bytes(), bytes].concat()
    }

    #[test]
    fn a_stream_is_whole_when_it_is_wanted_and_has_ended() {
        let mut relay = Relay::default();
        let (url, _) = relay.start(NUMBER).unwrap();
        assert!(Relay::owns(&url) && !Relay::owns("https://x/a.mp3"));
        assert_eq!(relay.play("r".into(), wanted(url.clone())), (None, None));
        relay.push(&piece(b"ab"));
        relay.push(&piece(b"c"));
        relay.push(b"short");
        let whole = relay.end(NUMBER).unwrap();
        assert_eq!((whole.request.as_str(), whole.file), ("r", Ok(b"abc".to_vec())));
        // That removed it.
        assert_eq!(relay.end(NUMBER), None);
        assert!(relay.play("r2".into(), wanted(url)).1.unwrap().file.is_err());
    }

    #[test]
    fn streams_are_bounded() {
        let mut relay = Relay::default();
        let (url, _) = relay.start(NUMBER).unwrap();
        relay.play("r".into(), wanted(url));
        for _ in 0..3 {
            relay.push(&piece(&[0; 900_000]));
        }
        relay.push(&piece(b"late"));
        assert!(relay.end(NUMBER).unwrap().file.unwrap_err().contains("at most"));
        for bad in ["", "short", &"x/".repeat(18), &"é".repeat(18)] {
            assert!(relay.start(bad).is_err(), "{bad}");
        }
        for last in 0..STREAMS_MAX {
            relay.start(&format!("{}{last}", &NUMBER[..35])).unwrap();
        }
        assert!(relay.start(NUMBER).is_err());
    }

    #[test]
    fn a_request_that_another_one_replaces_is_named() {
        let mut relay = Relay::default();
        let (url, replaced) = relay.start(NUMBER).unwrap();
        assert_eq!(replaced, None);
        relay.play("one".into(), wanted(url.clone()));
        assert_eq!(relay.play("two".into(), wanted(url.clone())), (Some("one".to_owned()), None));
        assert_eq!(relay.play("two".into(), wanted(url.clone())), (None, None), "its answer is still to come");
        // A stream of the same number begins.
        relay.push(&piece(b"of the first"));
        assert_eq!(relay.start(NUMBER).unwrap(), (url.clone(), Some("two".to_owned())));
        relay.push(&piece(b"abc"));
        assert_eq!(relay.end(NUMBER), None);
        let (replaced, whole) = relay.play("three".into(), wanted(url));
        let whole = whole.unwrap();
        assert_eq!((replaced, whole.request.as_str(), whole.file), (None, "three", Ok(b"abc".to_vec())));
    }

    #[test]
    fn what_is_stopped_is_forgotten_and_its_request_named() {
        let mut relay = Relay::default();
        let (url, _) = relay.start(NUMBER).unwrap();
        relay.play("r".into(), wanted(url));
        assert!(relay.stop(Some(2)).is_empty());
        assert_eq!(relay.stop(Some(1)), ["r"]);
        assert_eq!(relay.end(NUMBER), None);
        relay.start(NUMBER).unwrap();
        assert!(relay.stop(None).is_empty());
        assert_eq!(relay.end(NUMBER), None);
    }
}
