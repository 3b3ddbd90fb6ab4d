//! Splits text into words by spaCy's English rules: special cases first, then marks removed from both ends of each
//! space-separated string, then splits inside.

use std::collections::HashMap;
use std::path::Path;

use super::super::{Error, assets};

const QUOTES: &str = "'\"”“`‘´’‚,„»«「」『』（）〔〕【】《》〈〉";
const MARKS: &str = "…,:;!?¿¡()[]{}<>_#*&。？！，、；：～·";
const ICONS: &str = "™®©°§¶†‡•";
const CURRENCIES: &[&str] = &[
    "US$", "C$", "A$", "$", "£", "€", "¥", "฿", "₽", "₹", "₩", "₪", "₺", "₴", "₦", "₫", "₱", "₲", "₵", "₸", "₼", "₾",
    "₿",
];
const UNITS: &[&str] = &[
    "km", "km²", "km³", "m", "m²", "m³", "dm", "dm²", "dm³", "cm", "cm²", "cm³", "mm", "mm²", "mm³", "ha", "µm", "nm",
    "yd", "in", "ft", "kg", "g", "mg", "µg", "t", "lb", "oz", "m/s", "km/h", "kmh", "mph", "hPa", "Pa", "mbar", "mb",
    "MB", "kb", "KB", "gb", "GB", "tb", "TB", "T", "G", "M", "K", "%",
];
const POSSESSIVES: &[&str] = &["'s", "'S", "’s", "’S"];
/// Most pieces that are joined back into one special case.
const JOINED_MAX: usize = 3;

pub(super) struct Tokenizer {
    special: HashMap<String, Vec<String>>,
}

impl Tokenizer {
    pub(super) fn load(dir: &Path) -> Result<Self, Error> {
        Ok(Self { special: assets::read_json(dir, assets::TOKENIZER)? })
    }

    /// Words, each with whether white space follows; no word is empty.
    pub(super) fn tokenize(&self, text: &str) -> Vec<(String, bool)> {
        let mut tokens = Vec::new();
        let mut chunks = text.split_whitespace().peekable();
        while let Some(chunk) = chunks.next() {
            tokens.extend(self.split(chunk).into_iter().map(|word| (word, false)));
            if let Some(last) = tokens.last_mut() {
                last.1 = chunks.peek().is_some() || text.ends_with(char::is_whitespace);
            }
        }
        tokens
    }

    fn split(&self, chunk: &str) -> Vec<String> {
        if let Some(words) = self.special.get(chunk) {
            return words.clone();
        }
        let mut rest = chunk;
        let (mut tokens, mut tail) = (Vec::new(), Vec::new());
        while !rest.is_empty() && !self.special.contains_key(rest) {
            let (prefix, after) = rest.split_at(prefix_len(rest));
            if !prefix.is_empty() && self.special.contains_key(after) {
                tokens.push(prefix.to_owned());
                rest = after;
                break;
            }
            let suffix_len = suffix_len(after);
            let (before, suffix) = rest.split_at(rest.len() - suffix_len);
            if !suffix.is_empty() && self.special.contains_key(before) {
                tail.push(suffix.to_owned());
                rest = before;
                break;
            }
            if prefix.is_empty() && suffix.is_empty() {
                break;
            }
            if !prefix.is_empty() {
                tokens.push(prefix.to_owned());
            }
            if !suffix.is_empty() {
                tail.push(suffix.to_owned());
            }
            rest = &rest[prefix.len()..rest.len() - suffix_len];
        }
        match self.special.get(rest) {
            Some(words) => tokens.extend(words.iter().cloned()),
            None => split_inside(rest, &mut tokens),
        }
        tokens.extend(tail.into_iter().rev());
        self.rejoin(tokens)
    }

    /// Joins pieces that together are a special case: `Sept` and `.`.
    fn rejoin(&self, pieces: Vec<String>) -> Vec<String> {
        if pieces.len() < 2 {
            return pieces;
        }
        let mut words = Vec::with_capacity(pieces.len());
        let mut rest = pieces.as_slice();
        'pieces: while let [first, others @ ..] = rest {
            for len in (2..=JOINED_MAX.min(rest.len())).rev() {
                if let Some(special) = self.special.get(&rest[..len].concat()) {
                    words.extend(special.iter().cloned());
                    rest = &rest[len..];
                    continue 'pieces;
                }
            }
            words.push(first.clone());
            rest = others;
        }
        words
    }
}

/// Bytes of the mark that `text` begins with; 0 when there is none.
fn prefix_len(text: &str) -> usize {
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return 0 };
    let dots = dots(text);
    match first {
        '+' if chars.next().is_none_or(|c| !c.is_numeric()) => 1,
        _ if dots > 1 => dots,
        '§' | '%' | '=' | '—' | '–' => first.len_utf8(),
        _ if is_mark(first) => first.len_utf8(),
        _ => CURRENCIES.iter().find(|sign| text.starts_with(**sign)).map_or(0, |sign| sign.len()),
    }
}

/// Bytes of the longest mark that `text` ends with; 0 when there is none.
fn suffix_len(text: &str) -> usize {
    let Some(last) = text.chars().next_back() else {
        return 0;
    };
    let before = &text[..text.len() - last.len_utf8()];
    let previous = before.chars().next_back();
    let after_digit = |len: usize| text[..text.len() - len].ends_with(|c: char| c.is_ascii_digit());
    let dots = text.len() - text.trim_end_matches('.').len();
    let mut len = if dots > 1 { dots } else { 0 };
    if text.ends_with("……") {
        len = len.max("……".len());
    }
    if is_mark(last) || matches!(last, '—' | '–') || (last == '+' && after_digit(1)) {
        len = len.max(last.len_utf8());
    }
    for ending in POSSESSIVES.iter().filter(|ending| text.ends_with(**ending)) {
        len = len.max(ending.len());
    }
    for ending in CURRENCIES.iter().chain(UNITS).filter(|ending| text.ends_with(**ending)) {
        if after_digit(ending.len()) {
            len = len.max(ending.len());
        }
    }
    if last == '.' {
        let capitals = before.chars().rev().take(2).filter(|c| is_upper(*c)).count() == 2;
        let peeled = previous.is_some_and(|c| {
            c.is_ascii_digit() || is_lower(c) || "%²-+".contains(c) || MARKS.contains(c) || QUOTES.contains(c)
        });
        let degrees = previous.is_some_and(|c| "FfCcKk".contains(c)) && before.chars().nth_back(1) == Some('°');
        if capitals || peeled || degrees {
            len = len.max(1);
        }
    }
    len
}

/// Splits `text` at dots, hyphens, slashes and the like between letters, keeping the separators.
fn split_inside(text: &str, tokens: &mut Vec<String>) {
    let mut start = 0;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let len = infix_len(text, at);
        if len == 0 {
            at += c.len_utf8();
            continue;
        }
        if at > 0 {
            if at > start {
                tokens.push(text[start..at].to_owned());
            }
            tokens.push(text[at..at + len].to_owned());
            start = at + len;
        }
        at += len;
    }
    if start < text.len() {
        tokens.push(text[start..].to_owned());
    }
}

/// Bytes of the separator at `at`; 0 when there is none.
fn infix_len(text: &str, at: usize) -> usize {
    let (before, here) = text.split_at(at);
    let previous = before.chars().next_back();
    let Some(c) = here.chars().next() else {
        return 0;
    };
    let next = here[c.len_utf8()..].chars().next();
    let (was, comes) = (|is: fn(char) -> bool| previous.is_some_and(is), |is: fn(char) -> bool| next.is_some_and(is));
    let dots = dots(here);
    if dots > 1 {
        return dots;
    }
    let quote = |c: char| QUOTES.contains(c);
    let cut = match c {
        '…' => true,
        _ if ICONS.contains(c) => true,
        '.' => was(|c| is_lower(c) || QUOTES.contains(c)) && next.is_some_and(|c| is_upper(c) || quote(c)),
        ',' => was(char::is_alphabetic) && comes(char::is_alphabetic),
        ':' | '<' | '>' | '=' | '/' => was(char::is_alphanumeric) && comes(char::is_alphabetic),
        '+' | '-' | '*' | '^' if was(|c| c.is_ascii_digit()) && comes(|c| c.is_ascii_digit() || c == '-') => true,
        _ => false,
    };
    if cut {
        return c.len_utf8();
    }
    let dash = ["---", "--", "-", "——", "—", "–", "~"].iter().find(|dash| here.starts_with(**dash));
    match dash {
        Some(dash) if was(char::is_alphanumeric) && here[dash.len()..].starts_with(char::is_alphabetic) => dash.len(),
        _ => 0,
    }
}

fn is_mark(c: char) -> bool {
    MARKS.contains(c) || QUOTES.contains(c) || ICONS.contains(c)
}

fn dots(text: &str) -> usize {
    text.len() - text.trim_start_matches('.').len()
}

fn is_lower(c: char) -> bool {
    matches!(c, 'a'..='z' | 'ß'..='ö' | 'ø'..='ÿ')
}

fn is_upper(c: char) -> bool {
    matches!(c, 'A'..='Z' | 'À'..='Ö' | 'Ø'..='Þ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        let special = [("don't", vec!["do", "n't"]), ("Dr.", vec!["Dr."]), ("10am", vec!["10", "am"])];
        let special = special.map(|(key, words)| (key.into(), words.into_iter().map(String::from).collect()));
        let tokenizer = Tokenizer { special: HashMap::from(special) };
        tokenizer.tokenize(text).into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn words_and_marks_come_apart() {
        for (text, words) in [
            ("Hello, there!", vec!["Hello", ",", "there", "!"]),
            ("(don't)", vec!["(", "do", "n't", ")"]),
            ("Dr. Smith's", vec!["Dr.", "Smith", "'s"]),
            ("well-known A/C", vec!["well", "-", "known", "A", "/", "C"]),
            ("$4.99.", vec!["$", "4.99", "."]),
            ("20%", vec!["20", "%"]),
            ("wait...what", vec!["wait", "...", "what"]),
            ("5km²", vec!["5", "km²"]),
            ("10am?", vec!["10", "am", "?"]),
            ("a--b", vec!["a", "--", "b"]),
            ("...", vec!["..."]),
        ] {
            assert_eq!(split(text), words, "{text}");
        }
    }

    #[test]
    fn nothing_is_lost_or_empty() {
        for text in ["§§°°", "'''", "-+-.-", "US$", "°C.", "..", "a…b", "–", "€5€", "１２：３０"] {
            let words = split(text);
            assert_eq!(words.concat(), text);
            assert!(words.iter().all(|word| !word.is_empty()));
        }
    }
}
