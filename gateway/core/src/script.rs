//! Scripts without spaces between words, and their punctuation, behind which no space stands either.

use alloc::string::String;

/// Signs that end a sentence, whatever follows.
pub(crate) const ENDS: [char; 4] = ['。', '！', '？', '｡'];
/// Signs that end a part of a sentence.
pub(crate) const PAUSES: [char; 5] = ['、', '，', '；', '：', '､'];
/// Quotes and brackets that may stand behind the end of a sentence.
pub(crate) const CLOSING: [char; 7] = ['」', '』', '）', '》', '】', '”', '’'];
/// Those that may stand before its beginning.
const OPENING: [char; 6] = ['「', '『', '（', '《', '【', '“'];

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

/// Appends the next clause, behind a space where its script has one.
pub(crate) fn append(text: &mut String, clause: &str) {
    let is_of_script = |sign: char| is_unspaced(sign) || ENDS.contains(&sign) || PAUSES.contains(&sign);
    let begins_so = clause.starts_with(|sign| is_unspaced(sign) || OPENING.contains(&sign));
    let is_joined = text.ends_with(is_of_script) || (begins_so && text.ends_with(CLOSING));
    if !text.is_empty() && !is_joined {
        text.push(' ');
    }
    text.push_str(clause);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_are_joined_as_their_script_is_written() {
        for (clauses, expected) in [
            (["Yes.", "It rains."], "Yes. It rains."),
            (["今天是晴天，", "没有风。"], "今天是晴天，没有风。"),
            (["很长的话", "很长的话"], "很长的话很长的话"),
            (["“好。”", "他说。"], "“好。”他说。"),
            (["He said “yes.”", "Then he left."], "He said “yes.” Then he left."),
            (["「はい。」", "と彼は言った。"], "「はい。」と彼は言った。"),
            (["", "Yes."], "Yes."),
        ] {
            let mut text = String::new();
            clauses.into_iter().for_each(|clause| append(&mut text, clause));
            assert_eq!(text, expected);
        }
    }
}
