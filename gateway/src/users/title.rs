//! Titles of conversations.

use gateway_core::vocab::{Message, Role};

/// Characters of a conversation's title: one line.
const TITLE_CHARS_MAX: usize = 80;

/// The title of a conversation that begins with these messages.
pub(super) fn title(messages: &[Message]) -> String {
    let first = messages.iter().find(|message| message.role == Role::User).map(Message::plain_text);
    let words = tools::arguments::clean(&first.unwrap_or_default());
    if words.chars().count() <= TITLE_CHARS_MAX {
        return words;
    }
    words.chars().take(TITLE_CHARS_MAX - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_one_short_line() {
        assert_eq!(title(&[Message::text(Role::User, "two\nlines")]), "two lines");
        assert_eq!(title(&[Message::text(Role::User, "x".repeat(200))]).chars().count(), TITLE_CHARS_MAX);
        assert_eq!(title(&[]), "");
    }
}
