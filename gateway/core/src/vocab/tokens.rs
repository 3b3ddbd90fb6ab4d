//! Estimated token counts of texts: no provider's vocabulary is included, and each has its own.
//!
//! Current models split text with byte pair encoding (R. Sennrich, B. Haddow, A. Birch, "Neural Machine Translation of
//! Rare Words with Subword Units", ACL 2016): first into words with the preceding space, numbers of up to three digits
//! and runs of signs, then each of those into pieces. The first split is reproduced here; the second is averaged by
//! script. The constants lie between the mean of OpenAI's `o200k_base` and `cl100k_base`, which differ by up to five
//! times outside the Latin alphabet, and the larger of both: a budget had better be too small than too large.
//! docs/measurements.md gives the error.

/// Letters of a word that are usually one token, and letters of each further token: in English, and in code.
const PLAIN: [u32; 2] = [8, 4];
/// Likewise in languages that write accents of Latin-1, such as French and German.
const ACCENTED: [u32; 2] = [5, 3];
/// Likewise in languages without accents other than English, such as Indonesian and Swahili.
const BARE: [u32; 2] = [4, 3];
/// Likewise in those with rarer letters or accents everywhere, such as Polish, Turkish and Hungarian.
const RARE: [u32; 2] = [3, 3];
/// One accent in this many letters means a language other than English; fewer are a borrowed word.
const LETTERS_PER_ACCENT: u32 = 100;
/// One of the rarer letters in this many means one of those languages.
const LETTERS_PER_RARE: u32 = 40;
/// One accent in this many letters does likewise.
const LETTERS_PER_MANY_ACCENTS: u32 = 14;
/// In English prose, at least one in this many words is one of the commonest.
const WORDS_PER_COMMON: u32 = 10;
/// Some of the commonest words, and of those typical of requests.
const COMMON: &[&str] = &[
    "the", "of", "and", "to", "a", "in", "it", "is", "was", "i", "for", "that", "you", "be", "on", "with", "as", "by",
    "at", "have", "are", "this", "not", "but", "had", "he", "she", "they", "from", "or", "my", "me", "what", "your",
    "please",
];
/// Prose has at least this many words, and this many letters for each sign or digit: code and data have fewer.
const PROSE_WORDS: u32 = 8;
const PROSE_LETTERS_PER_SIGN: u32 = 10;
/// Tokens per hundred letters of each script, by the last letter of its blocks (unicode.org, Blocks.txt).
const SCRIPTS: &[(char, u32)] = &[
    ('\u{3ff}', 80),   // Greek
    ('\u{52f}', 45),   // Cyrillic
    ('\u{58f}', 145),  // Armenian
    ('\u{5ff}', 87),   // Hebrew
    ('\u{77f}', 66),   // Arabic
    ('\u{8ff}', 100),  // Syriac to Mandaic, more Arabic
    ('\u{97f}', 88),   // Devanagari
    ('\u{bff}', 105),  // Bengali to Tamil
    ('\u{dff}', 150),  // Telugu to Sinhala
    ('\u{e7f}', 76),   // Thai
    ('\u{fff}', 200),  // Lao, Tibetan
    ('\u{109f}', 140), // Burmese
    ('\u{10ff}', 145), // Georgian
    ('\u{11ff}', 115), // Hangul
    ('\u{177f}', 261), // Ethiopic to Mongolian: see below
    ('\u{17ff}', 140), // Khmer
];
/// Tokens per hundred letters of any other script, for each byte of UTF-8: an encoder that knows none of its letters
/// uses at most one token per byte.
const UNKNOWN_PER_BYTE: u32 = 87;
/// Tokens per hundred syllables of kana, of Hangul, and per hundred ideographs.
const KANA: u32 = 90;
const HANGUL: u32 = 115;
const IDEOGRAPHS: u32 = 110;
/// Punctuation signs that are one token; longer runs are a rule or a border, with this many in each further token.
const MARKS: u32 = 3;
const MARKS_IN_RULES: u32 = 8;
/// Digits per token.
const FIGURES: u32 = 3;
/// Tokens of a sign outside all alphabets, such as an emoji.
const SIGN: u32 = 2;

/// Class of a run of characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Latin,
    /// This many tokens per hundred of them.
    Script(u32),
    Figure,
    Space,
    Line,
    Mark,
    Sign,
}

fn kind(letter: char) -> Kind {
    match letter {
        'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Kind::Latin,
        '0'..='9' => Kind::Figure,
        '\n' | '\r' => Kind::Line,
        '\u{3040}'..='\u{30ff}' => Kind::Script(KANA),
        '\u{ac00}'..='\u{d7af}' => Kind::Script(HANGUL),
        '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => Kind::Script(IDEOGRAPHS),
        _ if letter.is_whitespace() => Kind::Space,
        // Unicode classifies vowels of Indic scripts as marks.
        _ if letter.is_alphabetic() || ('\u{300}'..='\u{11ff}').contains(&letter) => Kind::Script(script(letter)),
        '\u{2190}'..='\u{21ff}' | '\u{2600}'.. => Kind::Sign,
        _ => Kind::Mark,
    }
}

fn script(letter: char) -> u32 {
    let known = SCRIPTS.iter().find(|(last, _)| letter <= *last);
    let bytes = || UNKNOWN_PER_BYTE * letter.len_utf8() as u32;
    known.map_or_else(bytes, |(_, tokens)| *tokens)
}

/// Letters of a word's first token and of each further one, judged by the whole text.
fn latin(text: &str) -> [u32; 2] {
    let (mut letters, mut accents, mut rare, mut signs) = (0_u32, 0_u32, 0_u32, 0_u32);
    for letter in text.chars() {
        match kind(letter) {
            Kind::Latin => {
                letters = letters.saturating_add(1);
                accents = accents.saturating_add(u32::from(!letter.is_ascii()));
                rare = rare.saturating_add(u32::from(letter > '\u{ff}' && !"œŒ".contains(letter)));
            }
            Kind::Mark | Kind::Figure => signs = signs.saturating_add(1),
            _ => {}
        }
    }
    let one_in = |count: u32, many: u32| count > 0 && count >= letters / many;
    if one_in(rare, LETTERS_PER_RARE) || (letters > LETTERS_PER_RARE && one_in(accents, LETTERS_PER_MANY_ACCENTS)) {
        return RARE;
    }
    let is_prose = letters / PROSE_LETTERS_PER_SIGN >= signs;
    match () {
        () if one_in(accents, LETTERS_PER_ACCENT) => ACCENTED,
        () if is_prose && !is_english(text) => BARE,
        () => PLAIN,
    }
}

/// Whether its words indicate English, or are too few to indicate otherwise.
fn is_english(text: &str) -> bool {
    let (mut words, mut common) = (0_u32, 0_u32);
    for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
        words = words.saturating_add(1);
        common = common.saturating_add(u32::from(COMMON.iter().any(|known| word.eq_ignore_ascii_case(known))));
    }
    words < PROSE_WORDS || common >= words / WORDS_PER_COMMON
}

/// Estimated tokens of a text. Never 0 for a text that is not empty.
pub fn of_text(text: &str) -> u32 {
    let [first_letters, further_letters] = latin(text);
    let mut tokens = 0_u32;
    // Hundredths of tokens not counted yet: shared by the words of one script.
    let mut hundredths = 0_u64;
    let mut after_line = false;
    let mut letters = text.chars().peekable();
    while let Some(first) = letters.next() {
        let kind_now = kind(first);
        let mut count = 1_u32;
        let mut stacked = u32::from(first > '\u{1dff}');
        let mut before = first;
        while let Some(next) = letters.next_if(|next| {
            // A capital begins a new word: "listTasks".
            kind(*next) == kind_now && !(kind_now == Kind::Latin && next.is_uppercase() && before.is_lowercase())
        }) {
            count = count.saturating_add(1);
            stacked = stacked.saturating_add(u32::from(next > '\u{1dff}'));
            before = next;
        }
        tokens = tokens.saturating_add(match kind_now {
            // Letters with two accents, as in Vietnamese, are separate tokens.
            Kind::Latin => 1 + count.saturating_sub(first_letters).div_ceil(further_letters) + stacked,
            Kind::Script(per_hundred) => {
                hundredths += u64::from(count) * u64::from(per_hundred);
                0
            }
            Kind::Figure => count.div_ceil(FIGURES),
            // One space belongs to the following word; more are a token, as is a line end together with the indentation
            // after it.
            Kind::Space => u32::from(count > 1 && !after_line),
            Kind::Line => 1,
            Kind::Mark if count > MARKS => 1 + count / MARKS_IN_RULES,
            Kind::Mark => 1,
            Kind::Sign => count.saturating_mul(SIGN),
        });
        after_line = kind_now == Kind::Line;
    }
    let tokens = tokens.saturating_add(u32::try_from(hundredths.div_ceil(100)).unwrap_or(u32::MAX));
    tokens.max(u32::from(!text.is_empty()))
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
