//! Pronunciations: two lexicons (a checked one, "gold", and a larger one, "silver"), readings by part of speech and
//! context, and the endings -s, -ed and -ing. The rules are those of misaki 0.9.4 for American English.

use std::path::Path;

use icu_normalizer::ComposingNormalizerBorrowed;
use serde::Deserialize;

use super::super::Error;
use super::super::assets::{self, Pairs, Pooled, Table};
use super::stress;
use super::token::Token;

/// Sounds after which a t before a vowel is a flap.
const BEFORE_FLAP: &str = "AIOWYiuæɑəɛɪɹʊʌ";

/// What follows a word and changes its pronunciation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Context {
    /// Whether the next sound is a vowel; `None` at a pause.
    pub(super) vowel_next: Option<bool>,
    /// Whether the next word is "to".
    pub(super) to_next: bool,
}

pub(super) struct Lexicon {
    gold: Table<Reading>,
    silver: Table<Reading>,
}

/// One reading, or several by tag. With several the text is `tag=phonemes` or `tag` (not a word with that tag), each
/// preceded by [`VARIANT`].
struct Reading(String);

const VARIANT: char = '\u{1}';

impl<'de> Deserialize<'de> for Reading {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Raw {
            One(String),
            ByTag(Pairs<Option<String>>),
        }
        Ok(Self(match Raw::deserialize(deserializer)? {
            Raw::One(phonemes) => phonemes,
            Raw::ByTag(Pairs(pairs)) => pairs
                .into_iter()
                .map(|(tag, phonemes)| match phonemes {
                    Some(phonemes) => format!("{VARIANT}{tag}={phonemes}"),
                    None => format!("{VARIANT}{tag}"),
                })
                .collect(),
        }))
    }
}

impl Pooled for Reading {
    type Item = u8;
    fn append(self, pool: &mut Vec<u8>) {
        pool.extend_from_slice(self.0.as_bytes());
    }
}

/// The reading under `tag` among several: `None` if there is no such variant, `Some(None)` if the word does not exist
/// with that tag.
fn variant<'r>(reading: &'r str, tag: &str) -> Option<Option<&'r str>> {
    reading.split(VARIANT).skip(1).find_map(|variant| match variant.split_once('=') {
        Some((name, phonemes)) => (name == tag).then_some(Some(phonemes)),
        None => (variant == tag).then_some(None),
    })
}

/// Looks `word` up as written, and with the case of its first letter changed.
fn find<'t>(table: &'t Table<Reading>, word: &str) -> Option<&'t str> {
    let text = |bytes: &'t [u8]| std::str::from_utf8(bytes).ok();
    if let Some(reading) = table.get(word) {
        return text(reading);
    }
    // A single letter has no other form.
    word.chars().nth(1)?;
    let lower = word.to_lowercase();
    let capital = capitalized(&lower);
    if word == lower {
        table.get(&capital).and_then(text)
    } else if word == capital {
        table.get(&lower).and_then(text)
    } else {
        None
    }
}

fn capitalized(lower: &str) -> String {
    let mut chars = lower.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The main class of a tag: verb, noun, adverb, adjective.
fn class(tag: &str) -> &str {
    match tag {
        _ if tag.starts_with("VB") => "VERB",
        _ if tag.starts_with("NN") => "NOUN",
        _ if tag.starts_with("ADV") || tag.starts_with("RB") => "ADV",
        _ if tag.starts_with("ADJ") || tag.starts_with("JJ") => "ADJ",
        _ => tag,
    }
}

fn all_letters(word: &str) -> bool {
    !word.is_empty() && word.chars().all(char::is_alphabetic)
}

fn is_upper(word: &str) -> bool {
    word == word.to_uppercase()
}

/// A sign that is read as a word.
fn sign(word: &str) -> Option<&'static str> {
    match word {
        "%" => Some("percent"),
        "&" => Some("and"),
        "+" => Some("plus"),
        "@" => Some("at"),
        _ => None,
    }
}

impl Lexicon {
    pub(super) fn load(dir: &Path) -> Result<Self, Error> {
        Ok(Self {
            gold: assets::read_json(dir, assets::LEXICON_GOLD)?,
            silver: assets::read_json(dir, assets::LEXICON_SILVER)?,
        })
    }

    /// The phonemes of a token, or `None` if it is neither a known word nor a figure.
    pub(super) fn read(&self, token: &Token<'_>, context: &Context) -> Option<String> {
        let word = token.alias.unwrap_or(&token.text).replace(['‘', '’'], "'");
        let word = ComposingNormalizerBorrowed::new_nfkc().normalize(&word);
        let stress = match &*word {
            word if word == word.to_lowercase() => None,
            word if is_upper(word) => Some(2.0),
            _ => Some(0.5),
        };
        if let Some(phonemes) = self.word(&word, token.tag, stress, context) {
            let unit = token.currency.and_then(|sign| self.currency_plural(sign));
            return Some(unit.map_or(phonemes.clone(), |unit| format!("{phonemes} {unit}")));
        }
        self.figure(&word, token.currency, token.is_head)
    }

    fn word(&self, written: &str, tag: &str, stress: Option<f32>, context: &Context) -> Option<String> {
        if let Some(phonemes) = self.function_word(written, tag, stress, context) {
            return Some(phonemes);
        }
        let lower = written.to_lowercase();
        let mut word = written;
        let plain = written.chars().nth(1).is_some()
            && all_letters(&written.replace('\'', ""))
            && written != lower
            && (tag != "NNP" || written.chars().count() > 7)
            && !self.has(written)
            && (is_upper(written) || written.chars().skip(1).eq(lower.chars().skip(1)));
        if plain && (self.has(&lower) || self.ending(&lower, tag, stress, context).is_some()) {
            word = &lower;
        }
        if self.is_known(word) {
            return self.look_up(word, Some(tag), stress, Some(context));
        }
        if let Some(owner) = word.strip_suffix('\'') {
            let with_s = format!("{}'s", owner.strip_suffix('s').unwrap_or(owner));
            if owner.ends_with('s') && self.is_known(&with_s) {
                return self.look_up(&with_s, Some(tag), stress, Some(context));
            }
            if self.is_known(owner) {
                return self.look_up(owner, Some(tag), stress, Some(context));
            }
        }
        self.ending(word, tag, stress, context)
    }

    /// Words whose reading depends on their neighbours or their tag.
    fn function_word(&self, word: &str, tag: &str, stress: Option<f32>, context: &Context) -> Option<String> {
        let gold = |word| find(&self.gold, word).map(str::to_owned);
        let dotted = word.trim_matches('.').contains('.')
            && all_letters(&word.replace('.', ""))
            && word.split('.').all(|part| part.chars().count() < 3);
        match word {
            "." if tag == "ADD" => self.look_up("dot", None, Some(-0.5), Some(context)),
            "/" if tag == "ADD" => self.look_up("slash", None, Some(-0.5), Some(context)),
            _ if sign(word).is_some() => self.look_up(sign(word)?, None, None, Some(context)),
            _ if dotted => self.spelled(word),
            "a" | "A" => Some(if tag == "DT" { "ɐ" } else { "ˈA" }.to_owned()),
            "am" | "Am" | "AM" if tag.starts_with("NN") => self.spelled(word),
            "am" | "Am" | "AM" => {
                let strong = context.vowel_next.is_none() || word != "am" || stress.is_some_and(|stress| stress > 0.0);
                if strong { gold("am") } else { Some("ɐm".to_owned()) }
            }
            "AN" if tag.starts_with("NN") => self.spelled(word),
            "an" | "An" | "AN" => Some("ɐn".to_owned()),
            "I" if tag == "PRP" => Some("ˌI".to_owned()),
            "by" | "By" | "BY" if class(tag) == "ADV" => Some("bˈI".to_owned()),
            "to" | "To" | "TO" if word != "TO" || matches!(tag, "TO" | "IN") => match context.vowel_next {
                None => gold("to"),
                Some(false) => Some("tə".to_owned()),
                Some(true) => Some("tʊ".to_owned()),
            },
            "in" | "In" | "IN" if word != "IN" || tag != "NNP" => {
                let strong = context.vowel_next.is_none() || tag != "IN";
                Some(if strong { "ˈɪn" } else { "ɪn" }.to_owned())
            }
            "the" | "The" | "THE" if word != "THE" || tag == "DT" => {
                Some(if context.vowel_next == Some(true) { "ði" } else { "ðə" }.to_owned())
            }
            _ if tag == "IN" && word.trim_end_matches('.').eq_ignore_ascii_case("vs") => {
                self.look_up("versus", None, None, Some(context))
            }
            "used" | "Used" | "USED" => {
                let habit = matches!(tag, "VBD" | "JJ") && context.to_next;
                let reading = find(&self.gold, "used")?;
                variant(reading, if habit { "VBD" } else { "DEFAULT" })?.map(str::to_owned)
            }
            _ => None,
        }
    }

    fn has(&self, word: &str) -> bool {
        find(&self.gold, word).is_some() || find(&self.silver, word).is_some()
    }

    /// Whether `word` can be read without removing an ending: listed, a letter, or an acronym.
    fn is_known(&self, word: &str) -> bool {
        if self.has(word) || sign(word).is_some() {
            return true;
        }
        if word.is_empty() || !word.chars().all(|c| c.is_ascii_alphabetic()) {
            return false;
        }
        word.len() == 1 || (is_upper(word) && find(&self.gold, &word.to_lowercase()).is_some()) || is_upper(&word[1..])
    }

    /// The reading of a listed word under `tag`, else letter by letter.
    pub(super) fn look_up(
        &self,
        written: &str,
        tag: Option<&str>,
        stress: Option<f32>,
        context: Option<&Context>,
    ) -> Option<String> {
        let mut word = written.to_owned();
        let mut is_name = false;
        if is_upper(written) && find(&self.gold, written).is_none() {
            word = written.to_lowercase();
            is_name = tag == Some("NNP");
        }
        let mut reading = find(&self.gold, &word);
        if reading.is_none() && !is_name {
            reading = find(&self.silver, &word);
        }
        let phonemes = reading.and_then(|reading| by_tag(reading, tag, context));
        match phonemes {
            Some(phonemes) if !is_name || stress::has_primary(phonemes) => Some(stress::apply(phonemes, stress)),
            _ => self.spelled(&word).or_else(|| phonemes.map(|phonemes| stress::apply(phonemes, stress))),
        }
    }

    /// The letters of `word` by name; `None` if one has no name.
    fn spelled(&self, word: &str) -> Option<String> {
        let mut phonemes = String::new();
        for letter in word.chars().filter(|c| c.is_alphabetic()) {
            let name = find(&self.gold, &letter.to_uppercase().to_string())?;
            phonemes.push_str(by_tag(name, None, None)?);
        }
        Some(stress::stress_last(&phonemes))
    }

    fn ending(&self, word: &str, tag: &str, stress: Option<f32>, context: &Context) -> Option<String> {
        self.with_s(word, Some(tag), stress, Some(context))
            .or_else(|| self.with_ed(word, tag, stress, context))
            .or_else(|| self.with_ing(word, tag, Some(stress.unwrap_or(0.5)), context))
    }

    /// Plurals, possessives and third persons.
    pub(super) fn with_s(
        &self,
        word: &str,
        tag: Option<&str>,
        stress: Option<f32>,
        context: Option<&Context>,
    ) -> Option<String> {
        let long = word.chars().count() > 4;
        let cut = word.strip_suffix('s').filter(|_| word.chars().count() > 2)?;
        let known = |stem: &str| self.is_known(stem).then(|| stem.to_owned());
        let stem = (!cut.ends_with('s')).then(|| known(cut)).flatten().or_else(|| {
            let owner = cut.strip_suffix('\'');
            let sibilant = cut.strip_suffix('e').filter(|stem| long && !stem.ends_with('i'));
            owner.or(sibilant).and_then(known)
        });
        let stem = stem.or_else(|| {
            let stem = cut.strip_suffix("ie").filter(|_| long)?;
            known(&format!("{stem}y"))
        })?;
        add_s(&self.look_up(&stem, tag, stress, context)?)
    }

    fn with_ed(&self, word: &str, tag: &str, stress: Option<f32>, context: &Context) -> Option<String> {
        let len = word.chars().count();
        let cut = word.strip_suffix('d').filter(|_| len > 3)?;
        let stem = if !cut.ends_with('d') && self.is_known(cut) {
            cut
        } else {
            cut.strip_suffix('e').filter(|stem| len > 4 && !stem.ends_with('e') && self.is_known(stem))?
        };
        add_ed(&self.look_up(stem, Some(tag), stress, Some(context))?)
    }

    fn with_ing(&self, word: &str, tag: &str, stress: Option<f32>, context: &Context) -> Option<String> {
        let len = word.chars().count();
        let cut = word.strip_suffix("ing").filter(|_| len > 4)?;
        let with_e = format!("{cut}e");
        let stem = if len > 5 && self.is_known(cut) {
            cut
        } else if self.is_known(&with_e) {
            &with_e
        } else {
            let mut ends = cut.chars().rev();
            let (last, before) = (ends.next()?, ends.next()?);
            let doubled = (last == before && "bcdgklmnprstvxz".contains(last)) || (last == 'k' && before == 'c');
            cut.strip_suffix(last).filter(|stem| len > 5 && doubled && self.is_known(stem))?
        };
        add_ing(&self.look_up(stem, Some(tag), stress, Some(context))?)
    }
}

/// The reading of one entry for a tag.
fn by_tag<'r>(reading: &'r str, tag: Option<&str>, context: Option<&Context>) -> Option<&'r str> {
    if !reading.starts_with(VARIANT) {
        return Some(reading);
    }
    let at_pause = context.is_some_and(|context| context.vowel_next.is_none());
    let pause = if at_pause { variant(reading, "None") } else { None };
    let tagged = || tag.and_then(|tag| variant(reading, tag).or_else(|| variant(reading, class(tag))));
    pause.or_else(tagged).or_else(|| variant(reading, "DEFAULT"))?
}

pub(super) fn add_s(stem: &str) -> Option<String> {
    Some(match stem.chars().next_back()? {
        'p' | 't' | 'k' | 'f' | 'θ' => format!("{stem}s"),
        's' | 'z' | 'ʃ' | 'ʒ' | 'ʧ' | 'ʤ' => format!("{stem}ᵻz"),
        _ => format!("{stem}z"),
    })
}

pub(super) fn add_ed(stem: &str) -> Option<String> {
    Some(match stem.chars().next_back()? {
        'p' | 'k' | 'f' | 'θ' | 'ʃ' | 's' | 'ʧ' => format!("{stem}t"),
        'd' => format!("{stem}ᵻd"),
        't' => match flapped(stem) {
            Some(flapped) => format!("{flapped}ᵻd"),
            None if stem.chars().nth(1).is_none() => format!("{stem}ɪd"),
            None => format!("{stem}ᵻd"),
        },
        _ => format!("{stem}d"),
    })
}

pub(super) fn add_ing(stem: &str) -> Option<String> {
    (!stem.is_empty()).then(|| format!("{}ɪŋ", flapped(stem).as_deref().unwrap_or(stem)))
}

/// `stem` with its final t as a flap, where American English has one.
fn flapped(stem: &str) -> Option<String> {
    let cut = stem.strip_suffix('t')?;
    cut.ends_with(|c| BEFORE_FLAP.contains(c)).then(|| format!("{cut}ɾ"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_agree_with_the_stem() {
        assert_eq!(add_s("kˈæt").unwrap(), "kˈæts");
        assert_eq!(add_s("bˈʌs").unwrap(), "bˈʌsᵻz");
        assert_eq!(add_s("dˈɔɡ").unwrap(), "dˈɔɡz");
        assert_eq!(add_ed("wˈɑnt").unwrap(), "wˈɑntᵻd");
        assert_eq!(add_ed("wˈAt").unwrap(), "wˈAɾᵻd");
        assert_eq!(add_ed("hˈOp").unwrap(), "hˈOpt");
        assert_eq!(add_ing("wˈAt").unwrap(), "wˈAɾɪŋ");
        assert_eq!(add_s(""), None);
    }

    #[test]
    fn variants_by_tag() {
        let reading = "\u{1}DEFAULT=ɹˈid\u{1}VBD=ɹˈɛd\u{1}NOUN";
        assert_eq!(by_tag(reading, Some("VBD"), None), Some("ɹˈɛd"));
        assert_eq!(by_tag(reading, Some("VB"), None), Some("ɹˈid"));
        assert_eq!(by_tag(reading, Some("NN"), None), None);
        assert_eq!(by_tag("ðə", Some("DT"), None), Some("ðə"));
    }
}
