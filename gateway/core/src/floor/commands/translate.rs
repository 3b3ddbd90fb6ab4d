//! "Translate what they say", in each language: a beginning, then pieces in any order, and nothing else.
//!
//! The words are without accents, as [`folded`](crate::vocab::accents::folded) writes them.

/// What a sentence wants of the translation of talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Translate {
    /// Show what is said, in English.
    Show,
    /// Show it and read it out.
    Read,
    /// Translate into another language than English, which the weights cannot do.
    Other,
    /// Show and read no more.
    End,
}

/// The words of one language. Of two words that begin alike the longer one counts.
struct Words {
    /// Whole sentences that end it.
    end: &'static [&'static str],
    /// Whole sentences that begin it; pieces may follow.
    whole: &'static [&'static str],
    /// Beginnings that need to be told what to translate.
    begin: &'static [&'static str],
    /// The same where it can only be talk.
    interpret: &'static [&'static str],
    /// What is translated, which is talk.
    object: &'static [&'static str],
    /// The same, or a text, such as the last answer.
    vague: &'static [&'static str],
    /// "what", before somebody who says something,
    what: &'static [&'static str],
    /// and the end of that.
    says: &'static [&'static str],
    /// Who says it behind "what", where that is a text: the last answer of the assistant, or what is written on a sign.
    of_text: &'static [&'static str],
    /// Into English.
    english: &'static [&'static str],
    /// Before the name of a language.
    into: &'static [&'static str],
    /// It is to be read out.
    aloud: &'static [&'static str],
    /// Words without meaning for it, anywhere.
    filler: &'static [&'static str],
}

/// Words between "what" and the word for saying: "what the man over there says".
const SUBJECT_WORDS_MAX: usize = 4;

const ALL: [Words; 4] = [ENGLISH, GERMAN, SPANISH, FRENCH];

const ENGLISH: Words = Words {
    end: &[
        "stop translating",
        "stop the translation",
        "stop translation",
        "stop the translating",
        "end translation",
        "end the translation",
        "turn off translation",
        "turn off the translation",
        "turn translation off",
        "turn the translation off",
        "translation off",
        "no more translation",
        "no more translations",
        "no more translating",
        "you can stop translating",
        "don't translate any more",
        "don't translate anymore",
        "do not translate any more",
        "quit translating",
    ],
    whole: &[
        "start translating",
        "start the translation",
        "start translation",
        "begin translating",
        "turn on translation",
        "turn on the translation",
        "turn translation on",
        "turn the translation on",
        "translation on",
        "i need a translation",
        "i need an interpreter",
        "i need a translator",
        "be my interpreter",
        "be my translator",
        "interpret for me",
        "what are they saying",
        "what is he saying",
        "what is she saying",
        "what's he saying",
        "what's she saying",
    ],
    begin: &["translate", "can you translate", "could you translate", "would you translate", "will you translate"],
    interpret: &["interpret"],
    object: &[
        "everything",
        "everything you hear",
        "the conversation",
        "this conversation",
        "our conversation",
        "everybody",
        "everyone",
        "people",
        "the speech",
        "this speech",
        "the talk",
        "this talk",
    ],
    vague: &["for me", "them", "him", "her"],
    what: &["what", "everything", "all"],
    says: &["say", "says", "saying", "said", "speak", "speaks", "spoken", "talking about"],
    of_text: &["you", "that you", "it says", "it said", "that says", "this says"],
    english: &["into english", "to english", "in english"],
    into: &["into", "to"],
    aloud: &[
        "aloud",
        "out loud",
        "loud",
        "read it",
        "read it out",
        "read it to me",
        "read it out to me",
        "read them to me",
        "read it aloud",
        "say it",
        "say it to me",
        "speak it",
        "tell me",
    ],
    filler: &["please", "and", "to me", "here", "now", "this", "that", "it", "for me", "live"],
};

const GERMAN: Words = Words {
    end: &[
        "hor auf zu ubersetzen",
        "hore auf zu ubersetzen",
        "nicht mehr ubersetzen",
        "nicht ubersetzen",
        "ubersetze nicht mehr",
        "ubersetz nicht mehr",
        "beende die ubersetzung",
        "beende das ubersetzen",
        "stopp die ubersetzung",
        "stoppe die ubersetzung",
        "schalte die ubersetzung aus",
        "schalt die ubersetzung aus",
        "mach die ubersetzung aus",
        "ubersetzung aus",
        "ubersetzung ausschalten",
        "ubersetzung beenden",
        "keine ubersetzung mehr",
        "ende der ubersetzung",
    ],
    whole: &[
        "fang an zu ubersetzen",
        "fange an zu ubersetzen",
        "schalte die ubersetzung ein",
        "schalt die ubersetzung ein",
        "schalte die ubersetzung an",
        "mach die ubersetzung an",
        "ubersetzung ein",
        "ubersetzung an",
        "ubersetzung einschalten",
        "ich brauche eine ubersetzung",
        "ich brauche einen ubersetzer",
        "ich brauche einen dolmetscher",
        "dolmetsche fur mich",
        "was sagen die",
        "was sagen sie",
        "was sagt er",
        "was sagt sie",
        "was sagen die leute",
    ],
    begin: &[
        "ubersetze",
        "ubersetz",
        "ubersetzen sie",
        "kannst du ubersetzen",
        "konntest du ubersetzen",
        "kannst du mir ubersetzen",
    ],
    interpret: &["dolmetsche", "dolmetsch"],
    object: &[
        "dieses gesprach",
        "das gesprach",
        "die unterhaltung",
        "diese unterhaltung",
        "alles",
        "alles was du horst",
        "die leute",
        "diese rede",
        "die rede",
    ],
    vague: &["fur mich", "mir", "sie"],
    what: &["was", "alles was"],
    says: &["sagt", "sagen", "sage", "sagst", "gesagt", "spricht", "sprechen", "reden", "redet"],
    of_text: &["du", "es sagt"],
    english: &["ins englische", "auf englisch", "in englisch", "nach englisch"],
    into: &["ins", "auf", "nach"],
    aloud: &[
        "laut",
        "lies es vor",
        "lies es mir vor",
        "lies mir vor",
        "lies mir das vor",
        "lies vor",
        "lies das vor",
        "lies sie vor",
        "sprich es",
        "sprich es aus",
        "sprich sie",
        "sag es",
        "sag es mir",
        "sag es laut",
    ],
    filler: &["bitte", "und", "hier", "jetzt", "das", "dies", "es", "wird", "mir", "fur mich", "mal"],
};

const SPANISH: Words = Words {
    end: &[
        "deja de traducir",
        "para de traducir",
        "para la traduccion",
        "deten la traduccion",
        "desactiva la traduccion",
        "termina la traduccion",
        "termina de traducir",
        "apaga la traduccion",
        "quita la traduccion",
        "no traduzcas mas",
        "no traduzcas",
        "fin de la traduccion",
        "basta de traducir",
        "ya no traduzcas",
    ],
    whole: &[
        "empieza a traducir",
        "comienza a traducir",
        "activa la traduccion",
        "pon la traduccion",
        "enciende la traduccion",
        "necesito una traduccion",
        "necesito un traductor",
        "necesito un interprete",
        "traduceme",
        "que dicen",
        "que dice",
        "que estan diciendo",
        "que esta diciendo",
    ],
    begin: &["traduce", "traduceme", "traduzca", "puedes traducir", "podrias traducir", "puedes traducirme"],
    interpret: &["interpreta", "interpretame"],
    object: &[
        "la conversacion",
        "esta conversacion",
        "todo",
        "todo lo que oigas",
        "todo lo que oyes",
        "todo lo que escuches",
        "la charla",
        "esta charla",
        "el discurso",
    ],
    vague: &["para mi"],
    what: &["lo que", "todo lo que"],
    says: &["dice", "dicen", "diciendo", "digo", "diga", "digan", "hablan", "habla"],
    of_text: &["usted"],
    english: &["al ingles", "en ingles", "a ingles"],
    into: &["al", "en", "a"],
    aloud: &[
        "en voz alta",
        "leelo",
        "leemelo",
        "leela",
        "leemela",
        "leelo en voz alta",
        "dilo",
        "dimelo",
        "dimelo en voz alta",
        "dilo en voz alta",
    ],
    filler: &["por favor", "y", "aqui", "ahora", "esto", "eso", "la gente", "ellos", "ella", "el", "me", "para mi"],
};

const FRENCH: Words = Words {
    end: &[
        "arrete de traduire",
        "arretez de traduire",
        "arrete la traduction",
        "desactive la traduction",
        "coupe la traduction",
        "termine la traduction",
        "fin de la traduction",
        "fin de traduction",
        "ne traduis plus",
        "ne traduisez plus",
        "plus de traduction",
    ],
    whole: &[
        "commence a traduire",
        "active la traduction",
        "lance la traduction",
        "mets la traduction",
        "j'ai besoin d'une traduction",
        "j'ai besoin d'un interprete",
        "j'ai besoin d'un traducteur",
        "qu'est ce qu'ils disent",
        "qu'est ce qu'il dit",
        "qu'est ce qu'elle dit",
        "qu'est ce qu'elles disent",
        "que disent ils",
        "que dit il",
        "que dit elle",
    ],
    begin: &["traduis", "traduisez", "peux tu traduire", "pourrais tu traduire", "tu peux traduire", "traduis moi"],
    interpret: &["interprete", "interpretez"],
    object: &[
        "la conversation",
        "cette conversation",
        "tout",
        "tout ce que tu entends",
        "les gens",
        "le discours",
        "ce discours",
    ],
    vague: &["pour moi"],
    what: &["ce", "tout ce"],
    says: &["dit", "disent", "dis", "disons", "parlent", "raconte", "racontent"],
    of_text: &["que tu", "que vous", "que ca dit", "que cela dit"],
    english: &["en anglais", "vers l'anglais"],
    into: &["en", "vers"],
    aloud: &[
        "a voix haute",
        "a haute voix",
        "lis le",
        "lis le moi",
        "lis la",
        "lis la moi",
        "dis le",
        "dis le moi",
        "lis le a voix haute",
    ],
    filler: &[
        "s'il te plait",
        "s'il vous plait",
        "et",
        "ici",
        "maintenant",
        "ca",
        "cela",
        "les gens",
        "moi",
        "pour moi",
    ],
};

/// What `said`, folded and without politeness around it, wants of the translation.
pub(super) fn translate(said: &str) -> Option<Translate> {
    ALL.iter().find_map(|words| words.read(said))
}

impl Words {
    fn read(&self, said: &str) -> Option<Translate> {
        if self.end.iter().any(|end| cut(said, end).is_some_and(|rest| self.is_filler(rest))) {
            return Some(Translate::End);
        }
        let begun = longest(said, self.begin);
        // A text may be meant where the same words begin a request: "tradúceme" and what.
        let whole = longest(said, self.whole).and_then(|rest| self.pieces(rest, true, begun.is_none()));
        let interpreted = || self.pieces(longest(said, self.interpret)?, false, true);
        whole.or_else(interpreted).or_else(|| self.pieces(begun?, false, false))
    }

    /// Reads the pieces behind a beginning; `told`: what is translated was said, `talk`: it is certainly talk. Into another
    /// language only talk is refused here: "translate that into Spanish" is for a model.
    fn pieces(&self, mut rest: &str, mut told: bool, mut talk: bool) -> Option<Translate> {
        let (mut aloud, mut other) = (false, false);
        while !rest.is_empty() {
            let lists = [self.object, self.vague, self.english, self.aloud, self.filler];
            let pieces = lists.iter().enumerate().filter_map(|(kind, list)| Some((kind, longest(rest, list)?)));
            let piece = pieces.min_by_key(|(kind, left)| (left.len(), *kind));
            let clause = self.clause(rest).map(|(is_text, left)| (usize::from(is_text), left));
            rest = match clause.into_iter().chain(piece).min_by_key(|(_, left)| left.len()) {
                Some((kind, left)) => {
                    talk |= kind == 0;
                    told |= kind < 4;
                    aloud |= kind == 3;
                    left
                }
                None => {
                    let named = longest(rest, self.into).filter(|left| !left.is_empty())?;
                    other = true;
                    named.split_once(' ').map_or("", |(_, left)| left)
                }
            };
        }
        match (other, aloud) {
            (true, _) => talk.then_some(Translate::Other),
            (false, true) => told.then_some(Translate::Read),
            (false, false) => told.then_some(Translate::Show),
        }
    }

    /// Whether "what they say" is of a text, and what is left behind it.
    fn clause<'a>(&self, text: &'a str) -> Option<(bool, &'a str)> {
        let mut rest = longest(text, self.what)?;
        let is_text = longest(rest, self.of_text).is_some();
        for _ in 0..=SUBJECT_WORDS_MAX {
            if let Some(left) = longest(rest, self.says) {
                return Some((is_text, left));
            }
            rest = rest.split_once(' ')?.1;
        }
        None
    }

    fn is_filler(&self, mut rest: &str) -> bool {
        while !rest.is_empty() {
            let Some(left) = longest(rest, self.filler) else { return false };
            rest = left;
        }
        true
    }
}

/// What is left of `text` behind the longest of these that it begins with.
fn longest<'a>(text: &'a str, list: &[&str]) -> Option<&'a str> {
    list.iter().filter_map(|words| cut(text, words)).min_by_key(|left| left.len())
}

/// What is left of `text` behind these words.
fn cut<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(words)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use alloc::vec::Vec;
    use std::println;

    use crate::floor::commands::{Command, command};

    use super::*;

    /// As `tests/it/intents` divides its sentences.
    fn is_held_out(sentence: &str) -> bool {
        let hash = sentence
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        (hash >> 40) & 1 == 1
    }

    #[test]
    fn a_text_in_another_language_than_english_is_for_a_model() {
        let wanted = |said: &str| match command(said) {
            Some(Command::Translate(wanted)) => Some(wanted),
            _ => None,
        };
        for said in [
            "Translate that into Spanish.",
            "Translate it to German for me, please.",
            "Translate that into Spanish and read it to me.",
            "Translate into French.",
            "Übersetze mir das ins Spanische.",
            "Tradúceme eso al francés.",
            "Traduis-moi ça en espagnol.",
            "Translate what you just said into Spanish.",
            "Translate everything that you said into Spanish, please.",
            "Translate what it says into French.",
            "Übersetze, was du sagst, ins Spanische.",
            "Traduce lo que usted dice al francés.",
            "Traduis ce que tu as dit en espagnol.",
        ] {
            assert_eq!(wanted(said), None, "{said}");
        }
        for said in [
            "Translate what they say into Spanish.",
            "Translate this conversation into German for me.",
            "Start translating into French.",
            "Übersetze alles ins Spanische.",
            "Tradúceme lo que dicen al francés.",
            "Traduis la conversation en espagnol.",
            "Translate what that woman says into Spanish.",
            "Interpret into French.",
            "Interpret for me into French.",
            "Interpret this into French.",
            "Dolmetsche ins Französische.",
            "Dolmetsche für mich ins Französische.",
            "Interpreta al francés.",
            "Interprète pour moi en espagnol.",
        ] {
            assert_eq!(wanted(said), Some(Translate::Other), "{said}");
        }
        for said in
            ["Translate that into English.", "Interpret for me.", "Interpret what they say.", "Dolmetsche für mich."]
        {
            assert_eq!(wanted(said), Some(Translate::Show), "{said}");
        }
        assert_eq!(wanted("Interpret this poem."), None);
    }

    #[test]
    fn the_sentences_that_were_written_before_are_understood() {
        let table = include_str!("../../../../../tests/data/intents/languages/translate.tsv");
        let mut right = [[0_usize; 2]; 4];
        let mut all = right;
        let mut missed = Vec::new();
        for row in table.lines().filter(|line| !line.starts_with('#')) {
            let cells: Vec<&str> = row.split('\t').collect();
            let &[language, said, expected] = &cells[..] else { panic!("three cells: {row}") };
            let got = match command(said) {
                Some(Command::Translate(Translate::Show)) => "show",
                Some(Command::Translate(Translate::Read)) => "read",
                Some(Command::Translate(Translate::Other)) => "other",
                Some(Command::Translate(Translate::End)) => "end",
                _ => "-",
            };
            let of = ["en", "de", "es", "fr"].iter().position(|known| *known == language).expect("a known language");
            let half = usize::from(is_held_out(said));
            all[of][half] += 1;
            right[of][half] += usize::from(got == expected);
            if got != expected && half == 0 {
                missed.push((language, said, got));
            }
        }
        println!("right {right:?} of {all:?}");
        assert!(missed.is_empty(), "{missed:?}");
    }
}
