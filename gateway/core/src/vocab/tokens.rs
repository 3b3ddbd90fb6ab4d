//! How many tokens a text takes, estimated: no provider's vocabulary is here, and each has another one.
//!
//! Models of today cut text as byte pair encoders do (R. Sennrich, B. Haddow, A. Birch, "Neural Machine Translation of
//! Rare Words with Subword Units", ACL 2016): first into words with the space before them, numbers of up to three
//! figures and runs of signs, then each of those into pieces. The first cut is followed here, the second is averaged
//! over. The figures are calibrated against OpenAI's `o200k_base` (docs/measurements.md says how far off they are).

/// Letters of an English word that are one token as a rule; each further token has so many.
const LATIN_LETTERS: [u32; 2] = [8, 4];
/// Letters with accents count as so many: their words are rarer.
const ACCENTED: u32 = 2;
/// Letters of a token in alphabets that are not Latin, in tenths: 2.9.
const OTHER_LETTERS_TENTHS: u32 = 29;
/// Tokens of a syllable or ideograph, in tenths: 0.8.
const IDEOGRAPH_TENTHS: u32 = 8;
/// Signs of punctuation that are one token; more are a rule or a border, with so many in each further token.
const MARKS: u32 = 3;
const MARKS_IN_RULES: u32 = 8;
/// Figures of a token.
const FIGURES: u32 = 3;
/// Tokens of a sign beyond all alphabets, such as an emoji.
const SIGN: u32 = 2;

/// What a run of letters is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Latin,
    Other,
    Ideograph,
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
        '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => {
            Kind::Ideograph
        }
        _ if letter.is_whitespace() => Kind::Space,
        _ if letter.is_alphabetic() || ('\u{300}'..='\u{dff}').contains(&letter) => Kind::Other,
        '\u{2190}'..='\u{21ff}' | '\u{2600}'.. => Kind::Sign,
        _ => Kind::Mark,
    }
}

/// Tokens of a text, about. Never 0 for a text that is not empty.
pub fn of_text(text: &str) -> u32 {
    let mut tokens = 0_u32;
    let mut after_line = false;
    let mut letters = text.chars().peekable();
    while let Some(first) = letters.next() {
        let kind_now = kind(first);
        let mut count = 1_u32;
        let mut weight = u32::from(!first.is_ascii()) * (ACCENTED - 1) + 1;
        let mut before = first;
        while let Some(next) = letters.next_if(|next| {
            // A capital begins another word: "listTasks".
            kind(*next) == kind_now && !(kind_now == Kind::Latin && next.is_uppercase() && before.is_lowercase())
        }) {
            count = count.saturating_add(1);
            weight = weight.saturating_add(if next.is_ascii() { 1 } else { ACCENTED });
            before = next;
        }
        tokens = tokens.saturating_add(match kind_now {
            Kind::Latin => {
                let [first, further] = LATIN_LETTERS;
                1 + weight.saturating_sub(first).div_ceil(further)
            }
            Kind::Other => count.saturating_mul(10).div_ceil(OTHER_LETTERS_TENTHS),
            Kind::Ideograph => count.saturating_mul(IDEOGRAPH_TENTHS).div_ceil(10),
            Kind::Figure => count.div_ceil(FIGURES),
            // One space belongs to the word behind it; more are a token, and so is an end of line with what is
            // before its first word.
            Kind::Space => u32::from(count > 1 && !after_line),
            Kind::Line => 1,
            Kind::Mark if count > MARKS => 1 + count / MARKS_IN_RULES,
            Kind::Mark => 1,
            Kind::Sign => count.saturating_mul(SIGN),
        });
        after_line = kind_now == Kind::Line;
    }
    tokens.max(u32::from(!text.is_empty()))
}
