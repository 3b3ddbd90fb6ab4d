//! Scripts without spaces between words, and their punctuation, behind which no space stands either.

/// Signs that end a sentence, whatever follows.
pub(crate) const ENDS: [char; 4] = ['。', '！', '？', '｡'];
/// Signs that end a part of a sentence.
pub(crate) const PAUSES: [char; 5] = ['、', '，', '；', '：', '､'];
/// Quotes and brackets that may stand behind the end of a sentence.
pub(crate) const CLOSING: [char; 7] = ['」', '』', '）', '》', '】', '”', '’'];

/// Whether it is a Chinese character or a Japanese syllable: words of these are not set apart by spaces.
pub(crate) fn is_unspaced(letter: char) -> bool {
    matches!(letter,
        '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9d}' | '\u{20000}'..='\u{3ffff}')
}

/// Whether a text ends in a question, without the signs behind it.
pub(crate) fn ends_in_question(text: &str) -> bool {
    text.trim_end_matches(is_closing).ends_with(['?', '？'])
}

/// Whether a text ends a sentence, without the signs behind it.
pub(crate) fn ends_sentence(text: &str) -> bool {
    text.trim_end_matches(is_closing).ends_with(|sign| matches!(sign, '.' | '!' | '?' | '…') || ENDS.contains(&sign))
}

/// Whether it may stand behind the sign that ends a sentence.
fn is_closing(sign: char) -> bool {
    matches!(sign, '"' | ')') || sign.is_whitespace() || CLOSING.contains(&sign)
}
