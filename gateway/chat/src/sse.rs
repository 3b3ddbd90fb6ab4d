//! An incremental parser of server-sent events: the part of the format that model providers use.
//!
//! Source: WHATWG HTML, "Server-sent events". Only `data` fields are used; lines end with LF, CR or CRLF, wherever the
//! network splits them.

use thiserror::Error;

/// Longest line. OpenAI Responses repeats all tools and instructions of the request in three events of an answer, each
/// in one line: a thousand tools of a kilobyte.
pub const LINE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Longest event: several `data` lines together.
pub const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Why a stream is aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say what the variants mean")]
pub enum SseError {
    #[error("a line of the event stream is longer than {LINE_BYTES_MAX} bytes")]
    LineTooLong,
    #[error("an event of the stream is longer than {EVENT_BYTES_MAX} bytes")]
    EventTooLong,
}

/// An incremental parser: bytes in, the data of complete events out.
#[derive(Debug, Default)]
pub struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
    after_start: bool,
}

impl Events {
    /// Takes the next bytes and appends the data of every event that they complete.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Vec<u8>>) -> Result<(), SseError> {
        for byte in bytes {
            let was_cr = std::mem::replace(&mut self.after_cr, *byte == b'\r');
            match byte {
                b'\n' if was_cr => {}
                b'\n' | b'\r' => self.end_line(out)?,
                _ if self.line.len() >= LINE_BYTES_MAX => return Err(SseError::LineTooLong),
                _ => self.line.push(*byte),
            }
        }
        Ok(())
    }

    /// The stream has ended: an event that lacks only its empty line still counts, since some servers close without it.
    pub fn finish(&mut self, out: &mut Vec<Vec<u8>>) -> Result<(), SseError> {
        if !self.line.is_empty() {
            self.end_line(out)?;
        }
        self.end_event(out);
        Ok(())
    }

    fn end_line(&mut self, out: &mut Vec<Vec<u8>>) -> Result<(), SseError> {
        let mut line = self.line.as_slice();
        if !std::mem::replace(&mut self.after_start, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            self.line.clear();
            self.end_event(out);
            return Ok(());
        }
        let value = match line.strip_prefix(b"data") {
            Some([]) => Some(&b""[..]),
            Some([b':', b' ', value @ ..] | [b':', value @ ..]) => Some(value),
            _ => None,
        };
        if let Some(value) = value {
            if self.data.len() + value.len() >= EVENT_BYTES_MAX {
                return Err(SseError::EventTooLong);
            }
            if std::mem::replace(&mut self.has_data, true) {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value);
        }
        self.line.clear();
        Ok(())
    }

    fn end_event(&mut self, out: &mut Vec<Vec<u8>>) {
        if std::mem::take(&mut self.has_data) {
            out.push(std::mem::take(&mut self.data));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(chunks: &[&[u8]]) -> Vec<String> {
        let mut events = Events::default();
        let mut out = Vec::new();
        for chunk in chunks {
            events.push(chunk, &mut out).expect("within bounds");
        }
        events.finish(&mut out).expect("within bounds");
        let text = |data| String::from_utf8_lossy(data).into_owned();
        out.iter().map(Vec::as_slice).map(text).collect()
    }

    #[test]
    fn events_are_cut_out_of_lines() {
        let stream =
            b"\xef\xbb\xbfdata: one\r\n\r\n: comment\nevent: x\ndata:two\ndata: lines\n\nid: 7\n\ndata\r\rdata: last";
        let expected = ["one", "two\nlines", "", "last"];
        assert_eq!(all(&[stream]), expected);
        for cut in 0..stream.len() {
            assert_eq!(all(&[&stream[..cut], &stream[cut..]]), expected, "{cut}");
        }
    }

    #[test]
    fn endless_lines_and_events_are_refused() {
        let mut out = Vec::new();
        let line = vec![b'x'; LINE_BYTES_MAX + 1];
        let refused = Events::default().push(&line, &mut out);
        assert_eq!(refused, Err(SseError::LineTooLong));
        let mut events = Events::default();
        let line = format!("data: {}\n", "x".repeat(LINE_BYTES_MAX - 10));
        let refused = (0..4).find_map(|_| events.push(line.as_bytes(), &mut out).err());
        assert_eq!(refused, Some(SseError::EventTooLong));
    }

    proptest::proptest! {
        #[test]
        fn any_split_of_any_bytes_gives_the_same_events(
            bytes in proptest::collection::vec(
                proptest::prop_oneof![
                    proptest::prelude::any::<u8>(),
                    proptest::sample::select(b"data:\r\n ".to_vec()),
                ],
                0..200,
            ),
            cuts in proptest::collection::vec(0_usize..200, 0..5),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            chunks.push(&bytes[from..]);
            proptest::prop_assert_eq!(all(&chunks), all(&[&bytes]));
        }
    }
}
