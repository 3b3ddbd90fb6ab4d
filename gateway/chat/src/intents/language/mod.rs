//! What the engine knows of a language: one table for each, of the same form.
//!
//! Words in the tables are as [`words::cut`](super::words::cut) writes them: lower case, and without accents where the
//! language [folds](Cut::folds) them, so that "manana" is "mañana". Free text keeps the wearer's spelling.

mod english;
mod french;
mod german;
mod spanish;

use std::sync::LazyLock;

use gateway_core::vocab::formulas::Formulas;

/// All that the engine knows of one language, in static tables.
pub(super) struct Language {
    /// ISO 639-1 code.
    pub code: &'static str,
    /// Reader of number words.
    pub numbers: &'static LazyLock<text2num::Language>,
    pub cut: Cut,
    pub kinds: Kinds,
    pub courtesy: Courtesy,
    pub number: NumberWords,
    pub length: LengthWords,
    pub clock: ClockWords,
    pub date: DateWords,
    pub repetition: RepetitionWords,
    pub sums: SumWords,
    pub answer: AnswerWords,
    pub samples: Samples,
}

/// How an utterance is cut into words.
pub(super) struct Cut {
    /// Sounds of thought, which are dropped.
    pub hesitations: &'static [&'static str],
    /// Whether accents are removed.
    pub folds: bool,
    /// Whether an apostrophe ends a word: "l'heure".
    pub elides: bool,
    /// Whether "what's" is opened to "what is".
    pub contracts: bool,
    /// Whether "2,5" is a fraction and "1.200" a thousand.
    pub decimal_comma: bool,
    /// Whether "17h30" is a time.
    pub hour_sign: bool,
    /// Endings of ordinals in digits: "3rd".
    pub ordinals: &'static [&'static str],
}

/// Kinds of words.
pub(super) struct Kinds {
    /// Articles, which recognisers drop and insert.
    pub articles: &'static [&'static str],
    /// Those of a thing that is known: "the ten minute timer" is not a new one.
    pub definite: &'static [&'static str],
    /// Function words, which are no evidence by themselves.
    pub small: &'static [&'static str],
    /// Words that make the opposite of a sentence, a question or a condition: none was misheard, lost or inserted.
    pub negations: &'static [&'static str],
    /// The negations that follow the verb that they negate, and those that end its sentence.
    pub negations_behind: &'static [&'static str],
    pub negations_last: &'static [&'static str],
    pub questions: &'static [&'static str],
    /// Words without meaning anywhere in a command.
    pub skippable: &'static [&'static str],
    /// Words with which no name begins.
    pub before_names: &'static [&'static str],
    /// Words that make another time of the one behind them: "before nine", "last Monday", "not tomorrow".
    pub before_other_times: &'static [&'static str],
    /// Words with which no text ends that has a time behind it, beside articles: they belong to the time ("as of | Friday").
    pub before_times: &'static [&'static str],
    /// Verbs with their object, which weigh as much as the two words that they are elsewhere: "remind me".
    pub with_object: &'static [&'static str],
    /// Forms of "to be": a name that begins with one, or behind one, is part of a statement.
    pub copulas: &'static [&'static str],
    /// Words in place of a name.
    pub pronouns: &'static [&'static str],
    /// Words between two commands: "and".
    pub joins: &'static [&'static str],
    /// Words before a side's name: "with Todo".
    pub naming: &'static [&'static str],
    /// Words that sound the same.
    pub homophones: &'static [&'static [&'static str]],
    /// Endings of the same word.
    pub inflections: &'static [&'static str],
    /// Whether its consonants are read as in English.
    pub sounds_english: bool,
}

/// Polite words around a command.
pub(super) struct Courtesy {
    /// Before it.
    pub openings: &'static [&'static str],
    /// Behind it.
    pub please: &'static [&'static str],
    /// What is all of an utterance; thanks are said behind a command, too.
    pub formulas: &'static Formulas,
    /// Further words behind it.
    pub endings: &'static [&'static str],
    /// The same, unless a template contains them.
    pub loose_endings: &'static [&'static str],
}

/// Numbers beside those that the number reader reads.
pub(super) struct NumberWords {
    /// Words that begin a number; empty: those that are one by themselves.
    pub starts: &'static [&'static str],
    /// Words within a number.
    pub joins: &'static [&'static str],
    /// The words of these that end no number.
    pub and: &'static [&'static str],
    /// Words that multiply digits: "2 hundred".
    pub scales: &'static [(&'static str, f64)],
    /// Articles before such a word: "a hundred".
    pub one: &'static [&'static str],
    /// Before decimals.
    pub point: &'static [&'static str],
}

/// Lengths of time.
pub(super) struct LengthWords {
    /// Units in seconds.
    pub units: &'static [(&'static str, f64)],
    /// Counts before a unit.
    pub counts: &'static [(&'static str, f64)],
    /// "one" as an article.
    pub one: &'static [&'static str],
    /// Between a count and its unit.
    pub more: &'static [&'static str],
    pub and: &'static [&'static str],
    /// Parts of the last unit, after "and".
    pub parts: &'static [(&'static str, f64)],
    /// Parts after a number and before its unit: "two and a half minutes".
    pub parts_between: &'static [(&'static str, f64)],
    /// An hour without an article after one of these words.
    pub bare_hour: (&'static str, &'static [&'static str]),
    /// Before a length of time from now.
    pub ahead: &'static [&'static str],
}

/// Times of day.
pub(super) struct ClockWords {
    /// Before a time.
    pub at: &'static [&'static str],
    /// The last words of these.
    pub at_last: &'static [&'static str],
    /// Times with a name: hour.
    pub named: &'static [(&'static str, i64)],
    /// Behind an hour.
    pub hour: &'static [&'static str],
    /// Minutes with a name, before "past" and "to".
    pub minutes: &'static [(&'static str, i64)],
    /// The word behind a count of minutes.
    pub minute: &'static [&'static str],
    pub past: &'static [&'static str],
    pub to: &'static [&'static str],
    /// Before an hour that is not full: "halb acht", minutes to it.
    pub not_full: &'static [(&'static str, i64)],
    /// Behind an hour, minutes to add.
    pub behind: &'static [(&'static str, i64)],
    /// Behind an hour, before minutes: to subtract.
    pub less: &'static [&'static str],
    /// The same, to add.
    pub more: &'static [&'static str],
    /// Morning, directly behind a time, and the hour of the day that twelve is with it.
    pub am: &'static [(&'static str, i64)],
    /// The same of the afternoon.
    pub pm: &'static [&'static str],
    /// Parts of the day.
    pub parts: &'static [DayPart],
}

/// Words such as "tonight" or "in the morning", and the hour that they stand for.
pub(super) struct DayPart {
    pub words: &'static str,
    pub half: Half,
    /// Its default hour.
    pub hour: i8,
    pub when: DayScope,
}

/// What a part of the day says about an hour from one to twelve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Morning,
    /// From ten on in the first half of the day.
    Midday,
    Afternoon,
    /// Evening and night: twelve is midnight, and the hours from one to this one are those behind it.
    Night(i8),
}

/// The scope of a part of the day: of which days it may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DayScope {
    Today,
    Any,
    /// Any, but only behind a date: "tomorrow morning".
    BehindDate,
}

/// Words of which dates are made, and whether the month may come first.
pub(super) struct DateWords {
    /// Before a date.
    pub on: &'static [&'static str],
    /// Days from today.
    pub relative: &'static [(&'static str, i64)],
    /// From Monday on.
    pub weekdays: [&'static str; 7],
    /// Further names of them: name, days after Monday.
    pub other_weekdays: &'static [(&'static str, i8)],
    /// Before a weekday: the one of these seven days, today's as well.
    pub this: &'static [&'static str],
    /// Before a weekday: the coming one.
    pub coming: &'static [&'static str],
    /// Before a weekday: that of the coming week.
    pub next: &'static [&'static str],
    /// Behind a weekday: the coming one.
    pub coming_behind: &'static [&'static str],
    pub months: [&'static str; 12],
    /// Before a day of the month.
    pub the: &'static [&'static str],
    /// Before a day without its month.
    pub days: &'static [&'static str],
    /// The same, but only next to a time.
    pub days_bare: &'static [&'static str],
    /// Whether such a day may be a plain number: "el 15".
    pub counts_days: bool,
    /// Between day and month.
    pub of: &'static [&'static str],
    /// Ordinals from the first on.
    pub ordinals: &'static [&'static str],
    /// Single ones beyond these.
    pub other_ordinals: &'static [(&'static str, i8)],
    /// Endings of an ordinal that are not in the table.
    pub ordinal_endings: &'static [char],
    /// Tens before an ordinal.
    pub ordinal_tens: &'static [(&'static str, i8)],
    /// Whether a month may stand before its day.
    pub month_first: bool,
    /// The sign between day and month in digits, where the day is always first, and whether it is a word of its own.
    pub numeric: Option<(&'static str, bool)>,
}

/// Words for what happens again and again.
pub(super) struct RepetitionWords {
    /// Words that say it alone: "on weekdays".
    pub alone: &'static [&'static str],
    /// Words that say it at the end of a text, and at its beginning unless they describe what follows: "daily".
    pub attached: &'static [&'static str],
    /// Before a unit or a weekday: "every". A longer phrase stands before one that it begins with.
    pub every: &'static [&'static str],
    /// Units beside those of lengths of time, and parts of the day.
    pub units: &'static [&'static str],
}

/// Words of which sums are made: operators, functions, fractions, powers.
pub(super) struct SumWords {
    pub operators: &'static [(&'static str, &'static str)],
    /// Verbs before two numbers, the word between these, and the sign: "divide 87 by three".
    pub orders: &'static [(&'static str, &'static str, &'static str)],
    pub the: &'static [&'static str],
    pub functions: &'static [(&'static str, &'static str)],
    /// Parts of a number: divisor.
    pub shares: &'static [(&'static str, &'static str)],
    pub percent: &'static [&'static str],
    /// Behind a percentage: what it is taken from.
    pub off: &'static [&'static str],
    pub of: &'static [&'static str],
    /// Behind a number.
    pub powers: &'static [(&'static str, &'static str)],
    /// Before an exponent.
    pub power: &'static [&'static str],
    pub negative: &'static [&'static str],
    /// Whether conversions of units are read.
    pub converts: bool,
}

/// Answers to questions.
pub(super) struct AnswerWords {
    pub yes: &'static [&'static str],
    pub no: &'static [&'static str],
    /// Answers that give nothing. What cancels is the core's, where there is something to cancel.
    pub none: &'static [&'static str],
    /// Words before an answer that carry no information.
    pub front: &'static [&'static str],
    /// Which one of several.
    pub places: &'static [(&'static str, usize)],
}

/// Values in example sentences.
pub(super) struct Samples {
    pub length: &'static str,
    pub time: &'static str,
    pub date: &'static str,
    pub when: &'static str,
    pub sum: &'static str,
}

/// Language of tools without phrases in the wearer's language.
pub(super) const FALLBACK: &str = "en";

impl Language {
    /// The language of a BCP 47 tag; English where there is no table for it.
    pub fn of(tag: &str) -> &'static Self {
        let primary = primary(tag);
        let known = [&german::LANGUAGE, &spanish::LANGUAGE, &french::LANGUAGE];
        known.into_iter().find(|language| language.code == primary).unwrap_or(&english::LANGUAGE)
    }

    #[cfg(test)]
    pub fn english() -> &'static Self {
        &english::LANGUAGE
    }

    /// Weight of a fixed word as evidence.
    pub fn weight(&self, word: &str) -> f32 {
        if self.is_article(word) {
            0.1
        } else if self.is_small(word) {
            0.5
        } else if self.kinds.with_object.contains(&word) {
            1.5
        } else {
            1.0
        }
    }

    pub fn is_small(&self, word: &str) -> bool {
        self.kinds.small.contains(&word)
    }

    /// Whether a sentence without this word says something else.
    pub fn is_telling(&self, word: &str) -> bool {
        self.is_negation(word) || self.kinds.questions.contains(&word)
    }

    pub fn is_negation(&self, word: &str) -> bool {
        self.kinds.negations.contains(&word)
    }

    pub fn is_article(&self, word: &str) -> bool {
        self.kinds.articles.contains(&word)
    }

    /// Whether a word says that a thing is known where this article says that it is not.
    pub fn is_other_article(&self, word: &str, article: &str) -> bool {
        let is_definite = |word: &str| self.kinds.definite.contains(&word);
        self.is_article(article) && is_definite(word) && !is_definite(article)
    }

    pub fn is_skippable(&self, word: &str) -> bool {
        self.is_article(word) || self.kinds.skippable.contains(&word)
    }

    /// Whether it is English, whose recogniser's mistakes are known.
    pub fn is_english(&self) -> bool {
        self.code == FALLBACK
    }
}

/// The primary part of a tag, in lower case.
pub(super) fn primary(tag: &str) -> String {
    tag.split(['-', '_']).next().unwrap_or("").to_lowercase()
}

#[cfg(test)]
mod tests;
