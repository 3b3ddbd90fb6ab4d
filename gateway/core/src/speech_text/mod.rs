//! From a model's text to what is shown and what is spoken: markup is removed while the text streams, and clauses are
//! split off.

mod marks;
pub(crate) mod markup;
pub(crate) mod sentences;

use alloc::string::{String, ToString as _};

use self::markup::Markup;

/// A complete text: what is shown and what is spoken.
pub(crate) fn clean(text: &str) -> (String, String) {
    let mut markup = Markup::default();
    let mut pieces = markup.push(text);
    pieces.extend(markup.finish());
    let (mut shown, mut said) = (String::new(), String::new());
    for piece in pieces {
        shown.push_str(&piece.text);
        if piece.spoken {
            said.push_str(&piece.text);
        }
    }
    (shown.trim_end().to_string(), said.trim_end().to_string())
}
