//! From normalised text to phonemes: tokens, tags, readings from the last word to the first (a reading may depend on
//! the sound that follows), and the stress of compounds. The rules are those of misaki 0.9.4.

use fancy_regex::Regex;

use super::super::Error;
use super::figures;
use super::lexicon::{Context, Lexicon};
use super::oov::Oov;
use super::stress;
use super::tagger::Tagger;
use super::token::Token;
use super::tokenize::Tokenizer;

/// Parts of a written word: leading quotes, figures, hyphens, runs of letters (cut where a small letter meets a
/// capital), single signs.
const PARTS: &str = r"(?x)
    ^['‘’]+
  | [A-ZÀ-ÖØ-Þ](?=[A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ])
  | (?:^-)?(?:\d?[,.]?\d)+
  | [-_]+
  | ['‘’]{2,}
  | [^\W\d_]*?(?:['‘’][^\W\d_])*?[a-zß-öø-ÿ](?=[A-ZÀ-ÖØ-Þ])
  | [^\W\d_]+(?:['‘’][^\W\d_])*
  | [^\w\-'‘’]
  | ['‘’]+$";

const MARKS: &str = ";:,.!?—…\"“”";
/// Signs inside a word that need no reading of their own.
const SILENT: &str = "',-._‘’/";

/// Parts of a word that are looked up as one: no entry of the lexicon has as many. Time grows with the square of it.
const RUN_PARTS_MAX: usize = 24;

/// A written word: one token, or parts that are read together.
enum Word<'t> {
    One(Token<'t>),
    Parts(Vec<Token<'t>>),
}

pub(super) struct Phonemizer {
    tokenizer: Tokenizer,
    tagger: Tagger,
    lexicon: Lexicon,
    oov: Oov,
    parts: Regex,
}

/// The earliest part that a run which ends before `end` may begin with.
fn first_of_run(end: usize) -> usize {
    end.saturating_sub(RUN_PARTS_MAX)
}

impl Phonemizer {
    pub(super) fn new(tokenizer: Tokenizer, tagger: Tagger, lexicon: Lexicon, oov: Oov) -> Result<Self, Error> {
        let parts = Regex::new(PARTS)
            .map_err(|error| Error::Model { model: "text", reason: format!("pattern of word parts: {error}") })?;
        Ok(Self { tokenizer, tagger, lexicon, oov, parts })
    }

    /// The phonemes of one sentence, with spaces between words as written.
    pub(super) fn phonemize(&self, text: &str) -> Result<String, Error> {
        let pairs = self.tokenizer.tokenize(text);
        let words: Vec<&str> = pairs.iter().map(|(word, _)| word.as_str()).collect();
        let tags = self.tagger.tag(&words);
        let tokens = pairs.iter().zip(tags).map(|((word, space), tag)| Token::new(word, tag, *space)).collect();
        let mut words = self.group(tokens);
        let mut context = Context::default();
        for word in words.iter_mut().rev() {
            match word {
                Word::One(token) => self.read_one(token, &mut context)?,
                Word::Parts(parts) => self.read_parts(parts, &mut context)?,
            }
        }
        let mut phonemes = String::new();
        for word in &words {
            match word {
                Word::One(token) => phonemes.push_str(token.phonemes.as_deref().unwrap_or_default()),
                Word::Parts(parts) => phonemes.push_str(&join(parts)),
            }
            if word.space() {
                phonemes.push(' ');
            }
        }
        Ok(phonemes.trim().replace('ɾ', "T").replace('ʔ', "t"))
    }

    /// Splits tokens into parts, resolves marks and currency signs, and groups parts that are written together.
    fn group<'t>(&self, tokens: Vec<Token<'t>>) -> Vec<Word<'t>> {
        let mut words: Vec<Word<'t>> = Vec::new();
        let mut currency = None;
        for (at, token) in tokens.iter().enumerate() {
            let texts = self.part_texts(&token.text);
            for (n, text) in texts.iter().enumerate() {
                let is_last = n + 1 == texts.len();
                let mut part = Token::new(*text, token.tag, is_last && token.space);
                let around = (n > 0).then(|| texts.get(n - 1)).flatten().zip(texts.get(n + 1));
                if let Some(sign) = figures::is_currency(text).filter(|_| token.tag == "$") {
                    currency = Some(sign);
                    part.phonemes = Some(String::new());
                } else if let Some(phonemes) = mark_phonemes(&part) {
                    part.phonemes = Some(phonemes);
                } else if currency.is_some() {
                    if token.tag != "CD" {
                        currency = None;
                    } else if is_last && tokens.get(at + 1).is_none_or(|next| next.tag != "CD") {
                        part.currency = currency;
                    }
                } else if *text == "2" && around.is_some_and(|(before, after)| between_letters(before, after)) {
                    part.alias = Some("to");
                }
                push(&mut words, part);
            }
        }
        words.into_iter().map(Word::unwrapped).collect()
    }

    fn part_texts<'w>(&self, word: &'w str) -> Vec<&'w str> {
        // If the pattern's bounded search gives up, the word stays whole.
        let texts: Result<Vec<&str>, _> =
            self.parts.find_iter(word).map(|part| part.map(|part| part.as_str())).collect();
        texts.ok().filter(|texts| !texts.is_empty()).unwrap_or_else(|| vec![word])
    }

    fn read_one(&self, token: &mut Token<'_>, context: &mut Context) -> Result<(), Error> {
        if token.phonemes.is_none() {
            token.phonemes = match self.lexicon.read(token, context) {
                Some(phonemes) => Some(phonemes),
                None => Some(self.guess(&token.text)?),
            };
        }
        *context = context_before(*context, token.phonemes.as_deref().unwrap_or_default(), token);
        Ok(())
    }

    /// Reads the longest known run of parts, of [`RUN_PARTS_MAX`] at most, at the end of the word, then the next before it,
    /// and so on; a part in no known run makes the whole word unknown.
    fn read_parts(&self, parts: &mut [Token<'_>], context: &mut Context) -> Result<(), Error> {
        let mut end = parts.len();
        let mut start = first_of_run(end);
        while start < end {
            let run = &parts[start..end];
            let merged = if run.iter().any(Token::is_fixed) { None } else { Token::merge(run) };
            let read = merged.and_then(|token| Some((self.lexicon.read(&token, context)?, token)));
            if let Some((phonemes, token)) = read {
                *context = context_before(*context, &phonemes, &token);
                for part in &mut parts[start + 1..end] {
                    part.phonemes = Some(String::new());
                }
                parts[start].phonemes = Some(phonemes);
                (start, end) = (first_of_run(start), start);
                continue;
            }
            if start + 1 < end {
                start += 1;
                continue;
            }
            end -= 1;
            start = first_of_run(end);
            let part = &mut parts[end];
            if part.phonemes.is_none() {
                if !part.text.chars().all(|c| SILENT.contains(c)) {
                    return self.guess_parts(parts);
                }
                part.phonemes = Some(String::new());
            }
        }
        settle(parts);
        Ok(())
    }

    fn guess_parts(&self, parts: &mut [Token<'_>]) -> Result<(), Error> {
        let whole = Token::merge(parts).map_or_else(String::new, |token| token.text);
        let mut guess = Some(self.guess(&whole)?);
        for part in parts {
            part.phonemes = Some(guess.take().unwrap_or_default());
        }
        Ok(())
    }

    /// An unknown word: letters by the network, digits as figures, signs by name.
    fn guess(&self, text: &str) -> Result<String, Error> {
        let mut readings = Vec::new();
        for piece in pieces(text) {
            let first = piece.chars().next().unwrap_or_default();
            let reading = if first.is_ascii_digit() {
                self.lexicon.figure(piece, None, false).unwrap_or_default()
            } else if first.is_alphabetic() {
                self.oov.read(piece)?
            } else {
                piece.chars().filter_map(sign_phonemes).collect()
            };
            if !reading.is_empty() {
                readings.push(reading);
            }
        }
        Ok(readings.join(" "))
    }
}

impl<'t> Word<'t> {
    /// Turns a word of a single part into one token.
    fn unwrapped(self) -> Self {
        match self {
            Word::Parts(mut parts) if parts.len() == 1 => parts.pop().map_or(Word::Parts(parts), Word::One),
            other => other,
        }
    }

    fn space(&self) -> bool {
        match self {
            Word::One(token) => token.space,
            Word::Parts(parts) => parts.last().is_some_and(|part| part.space),
        }
    }
}

fn push<'t>(words: &mut Vec<Word<'t>>, mut part: Token<'t>) {
    if part.is_fixed() {
        words.push(Word::One(part));
        return;
    }
    match words.last_mut() {
        Some(Word::Parts(parts)) if parts.last().is_some_and(|part| !part.space) => {
            part.is_head = false;
            parts.push(part);
        }
        _ if part.space => words.push(Word::One(part)),
        _ => words.push(Word::Parts(vec![part])),
    }
}

/// The phonemes of a mark, by its tag; `None` if it is no mark.
fn mark_phonemes(part: &Token<'_>) -> Option<String> {
    if part.tag == ":" && matches!(part.text.as_str(), "-" | "–") {
        return Some("—".to_owned());
    }
    let is_mark_tag =
        matches!(part.tag, "." | "," | "-LRB-" | "-RRB-" | "``" | "\"\"" | "''" | ":" | "$" | "#" | "NFP");
    if !is_mark_tag || part.text.chars().all(|c| c.is_ascii_alphabetic()) {
        return None;
    }
    Some(match part.tag {
        "-LRB-" => "(".to_owned(),
        "-RRB-" => ")".to_owned(),
        "``" => "“".to_owned(),
        "\"\"" | "''" => "”".to_owned(),
        _ => part.text.chars().filter(|c| MARKS.contains(*c)).collect(),
    })
}

fn between_letters(before: &str, after: &str) -> bool {
    before.ends_with(char::is_alphabetic) && after.starts_with(char::is_alphabetic)
}

fn is_pause(c: char) -> bool {
    MARKS.contains(c) && !"\"“”".contains(c)
}

/// The context for the word before `token`.
fn context_before(context: Context, phonemes: &str, token: &Token<'_>) -> Context {
    let sound = phonemes.chars().find(|c| stress::is_vowel(*c) || stress::is_consonant(*c) || is_pause(*c));
    let vowel_next = match sound {
        Some(c) if is_pause(c) => None,
        Some(c) => Some(stress::is_vowel(c)),
        None => context.vowel_next,
    };
    let to_next = match token.text.as_str() {
        "to" | "To" => true,
        "TO" => matches!(token.tag, "TO" | "IN"),
        _ => false,
    };
    Context { vowel_next, to_next }
}

/// Fills silent parts and weakens the stress of all but the heaviest parts of a compound.
fn settle(parts: &mut [Token<'_>]) {
    let gaps = has_gaps(parts);
    let last = parts.len().saturating_sub(1);
    for (n, part) in parts.iter_mut().enumerate() {
        if part.phonemes.is_some() {
            part.gap_before = n > 0 && gaps;
        } else if n == last && part.text.chars().all(is_pause) {
            part.phonemes = Some(part.text.clone());
        } else if part.text.chars().all(|c| SILENT.contains(c)) {
            part.phonemes = Some(String::new());
        }
    }
    if gaps {
        return;
    }
    let mut sounding: Vec<(bool, usize, usize)> = parts
        .iter()
        .enumerate()
        .filter_map(|(n, part)| {
            let phonemes = part.phonemes.as_deref().filter(|phonemes| !phonemes.is_empty())?;
            Some((stress::has_primary(phonemes), stress::weight(phonemes), n))
        })
        .collect();
    let weaken = |part: &mut Token<'_>| part.phonemes = part.phonemes.as_deref().map(|p| stress::apply(p, Some(-0.5)));
    if let [(_, _, first), (_, _, second)] = sounding[..]
        && parts[first].text.chars().count() == 1
    {
        return weaken(&mut parts[second]);
    }
    let stressed = sounding.iter().filter(|(primary, _, _)| *primary).count();
    if sounding.len() < 2 || stressed <= sounding.len().div_ceil(2) {
        return;
    }
    sounding.sort_unstable();
    for (_, _, n) in &sounding[..sounding.len() / 2] {
        weaken(&mut parts[*n]);
    }
}

/// Whether the parts are read with gaps: letters next to figures or signs.
fn has_gaps(parts: &[Token<'_>]) -> bool {
    let last = parts.len().saturating_sub(1);
    if parts.iter().enumerate().any(|(n, part)| part.text.contains([' ', '/']) || (n < last && part.space)) {
        return true;
    }
    let mut kinds = [false; 3];
    for c in parts.iter().flat_map(|part| part.text.chars()).filter(|c| !SILENT.contains(*c)) {
        let kind = if c.is_alphabetic() {
            0
        } else if c.is_ascii_digit() {
            1
        } else {
            2
        };
        kinds[kind] = true;
    }
    kinds.into_iter().filter(|kind| *kind).count() > 1
}

fn join(parts: &[Token<'_>]) -> String {
    let mut phonemes = String::new();
    for part in parts {
        let part_phonemes = part.phonemes.as_deref().unwrap_or_default();
        if part.gap_before && !part_phonemes.is_empty() && phonemes.ends_with(|c: char| !c.is_whitespace()) {
            phonemes.push(' ');
        }
        phonemes.push_str(part_phonemes);
    }
    phonemes
}

/// Runs of letters (with apostrophes inside), of digits (with points inside) and of signs.
fn pieces(text: &str) -> Vec<&str> {
    #[derive(PartialEq, Clone, Copy)]
    enum Kind {
        Letter,
        Digit,
        Sign,
        None,
    }
    let kind = |c: char| match c {
        _ if c.is_ascii_digit() => Kind::Digit,
        _ if c.is_alphabetic() => Kind::Letter,
        '_' => Kind::None,
        _ if c.is_whitespace() || c.is_numeric() => Kind::None,
        _ => Kind::Sign,
    };
    let mut pieces = Vec::new();
    let mut start = None::<(usize, Kind)>;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| kind(*next));
        let joins = match start {
            Some((_, Kind::Letter)) => matches!(c, '\'' | '’') && next == Some(Kind::Letter),
            Some((_, Kind::Digit)) => matches!(c, ',' | '.') && next == Some(Kind::Digit),
            _ => false,
        };
        if joins || start.is_some_and(|(_, running)| running == kind(c)) {
            continue;
        }
        if let Some((from, _)) = start.take() {
            pieces.push(&text[from..at]);
        }
        if kind(c) != Kind::None {
            start = Some((at, kind(c)));
        }
    }
    if let Some((from, _)) = start {
        pieces.push(&text[from..]);
    }
    pieces
}

/// Names of signs that the lexicon does not have.
fn sign_phonemes(c: char) -> Option<&'static str> {
    Some(match c {
        '/' => "slˈæʃ",
        '=' => "ˈikwᵊlz",
        '+' => "plˈʌs",
        '&' => "ænd",
        '@' => "æt",
        '%' => "pəɹsˈɛnt",
        '#' => "hˈæʃ",
        '*' => "ˈæstəɹˌɪsk",
        '~' => "tˈɪldə",
        '^' => "kˈɛɹət",
        '<' => "lˈɛs ðən",
        '>' => "ɡɹˈATəɹ ðən",
        '—' => "—",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_words_come_in_pieces() {
        assert_eq!(pieces("B12-x"), ["B", "12", "-", "x"]);
        assert_eq!(pieces("o'neill's"), ["o'neill's"]);
        assert_eq!(pieces("1,000.5."), ["1,000.5", "."]);
        assert_eq!(pieces("a_b"), ["a", "b"]);
        assert!(pieces("").is_empty());
    }

    #[test]
    fn written_words_have_parts() {
        let parts = Regex::new(PARTS).unwrap();
        let split =
            |word: &str| parts.find_iter(word).map(|part| part.unwrap().as_str().to_owned()).collect::<Vec<_>>();
        assert_eq!(split("iPhone"), ["i", "Phone"]);
        assert_eq!(split("B12"), ["B", "12"]);
        assert_eq!(split("-5"), ["-5"]);
        assert_eq!(split("1,250.50"), ["1,250.50"]);
        assert_eq!(split("O'Neill"), ["O'N", "eill"]);
        assert_eq!(split("half-written"), ["half", "-", "written"]);
    }
}
