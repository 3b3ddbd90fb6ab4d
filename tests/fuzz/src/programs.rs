//! What a process that runs a program sends, after the program has taken it over.

use tools::code::bridge::{Bridge, Message};

/// Lines from the child, in pieces: the pieces do not matter, what passes is within its limits, and each message that
/// is written again is the same.
pub fn bridge(bytes: &[u8]) {
    let whole = messages(bytes, bytes.len().max(1));
    for piece in [1, 7, 4096] {
        assert_eq!(messages(bytes, piece), whole, "pieces of {piece} bytes");
    }
    let (messages, _) = whole;
    let calls = messages.iter().filter(|message| matches!(message, Message::Call { .. })).count();
    assert!(calls <= 64, "{calls} calls");
    for message in messages {
        let line = message.line().expect("what is read can be written");
        assert_eq!(Message::parse(line.trim_ascii_end()), Ok(message));
    }
}

/// The messages of a child until it breaks a rule, and whether it does.
fn messages(bytes: &[u8], piece: usize) -> (Vec<Message>, bool) {
    let (mut bridge, mut messages) = (Bridge::default(), Vec::new());
    for piece in bytes.chunks(piece) {
        bridge.arrived(piece);
        loop {
            match bridge.message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(_) => return (messages, true),
            }
        }
    }
    (messages, false)
}
