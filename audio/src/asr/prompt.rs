//! The initial prompt that makes Whisper recognise the wake words.
//!
//! Whisper writes an invented name as a similar known word unless the preceding text contains the name. The form of the
//! prompt matters (measured, see the design notes): each phrase begins a whole sentence whose rest has nothing to do
//! with commands. If a prompt ends in a wake word, that word is missing from the transcript; if it contains command
//! words, those are missing.
//!
//! After one of the phrases, with or without other words, a decoder sometimes writes the phrase again, repeatedly. As
//! the cause is known, such a text is cut to the repeated part and not decoded again.
//!
//! Whisper goes on as the preceding text is written. Behind sentences that break off it writes an ellipsis where speech breaks
//! off, in place of the full stop that it writes at any pause, and mishears fewer last words.
//!
//! For unclear speech Whisper sometimes writes the prompt itself ("Hey Mentra, good morning"). This is detected by the
//! rest of the sentence, and the sound is decoded again with a prompt of other sentences.

use super::Language;

/// The set of sentence ends used in a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tails {
    /// The usual ones.
    #[default]
    Usual,
    /// The alternative ones, because the usual ones were echoed.
    Other,
}

/// The sentences of a language.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sentences {
    /// Sentence ends without command words, one per phrase.
    usual: [&'static str; PHRASES_MAX],
    /// The alternative ones.
    other: [&'static str; PHRASES_MAX],
    /// Sentences without a phrase, usual and alternative; one is put first when there are few phrases. If the prompt is a
    /// single word with a sentence end, that word is more often misheard, and the decoder loops on it.
    front: [&'static str; 2],
    /// Sentences that break off, usual and alternative ones, put before the others.
    unfinished: [[&'static str; UNFINISHED]; 2],
}

const ENGLISH: Sentences = Sentences {
    usual: [
        "good morning",
        "thank you very much",
        "the sky is blue",
        "the old bridge was closed",
        "winter came early that year",
        "they walked along the river",
    ],
    other: [
        "snow fell over the hills",
        "her brother lives by the sea",
        "we had a lovely summer",
        "the cat slept on the sofa",
        "my uncle paints wooden boats",
        "apples are cheap in autumn",
    ],
    front: ["the train was late again", "it rained all night"],
    unfinished: [
        ["She went to the...", "My brother wanted to...", "What did they...", "The old bridge..."],
        ["He looked at the...", "Our neighbours used to...", "When did she...", "The green boat..."],
    ],
};
const GERMAN: Sentences = Sentences {
    usual: [
        "guten Morgen",
        "vielen Dank",
        "der Himmel ist blau",
        "der alte Turm war geschlossen",
        "der Winter kam in diesem Jahr bald",
        "sie gingen am Fluss entlang",
    ],
    other: [
        "es schneite auf den Bergen",
        "ihr Bruder wohnt am Meer",
        "wir hatten einen warmen Sommer",
        "die Katze schlief auf dem Sofa",
        "mein Onkel baut Boote aus Holz",
        "im Herbst sind Birnen billig",
    ],
    front: ["der Zug kam wieder zu spät", "es regnete die ganze Nacht"],
    unfinished: [
        ["Sie ging zu dem...", "Mein Bruder wollte...", "Was haben sie...", "Die alte Brücke..."],
        ["Er sah auf die...", "Unsere Nachbarn haben...", "Wann ist sie...", "Das grüne Boot..."],
    ],
};
const SPANISH: Sentences = Sentences {
    usual: [
        "buenos días",
        "muchas gracias",
        "el cielo es azul",
        "el viejo puente estaba cerrado",
        "el invierno vino pronto ese año",
        "caminaban junto al río",
    ],
    other: [
        "la nieve cae sobre los montes",
        "su hermano vive cerca del mar",
        "tuvimos un verano precioso",
        "el gato duerme en el sofá",
        "mi tío pinta barcos de madera",
        "las peras son baratas en otoño",
    ],
    front: ["el tren iba otra vez con retraso", "ha llovido toda la noche"],
    unfinished: [
        ["Ella fue a la...", "Mi hermano quería...", "¿Qué hicieron los...", "El viejo molino..."],
        ["Él miró hacia la...", "Los vecinos solían...", "¿Cuándo llegó la...", "El barco verde..."],
    ],
};
const FRENCH: Sentences = Sentences {
    usual: [
        "bonjour à tous",
        "merci beaucoup",
        "le ciel est bleu",
        "le vieux pont était fermé",
        "cet hiver est venu tôt",
        "ils marchaient le long du fleuve",
    ],
    other: [
        "la neige tombe sur les collines",
        "son frère habite près de la mer",
        "nous avons eu un bel été",
        "le chat dort sur le canapé",
        "mon oncle peint des bateaux en bois",
        "les poires sont bon marché en automne",
    ],
    front: ["le train était encore en retard", "il a plu toute la nuit"],
    unfinished: [
        ["Elle est allée à la...", "Mon frère voulait...", "Qu'est-ce qu'ils...", "La vieille tour..."],
        ["Il a regardé la...", "Nos voisins ont...", "Quand est-ce que la...", "Le bateau vert..."],
    ],
};

/// The sentences of a language. In a prompt of another language Whisper would write that language: without sentences of
/// its own a language gets no prompt.
pub(super) fn sentences_of(language: Language) -> Option<&'static Sentences> {
    match language.code() {
        "en" => Some(&ENGLISH),
        "de" => Some(&GERMAN),
        "es" => Some(&SPANISH),
        "fr" => Some(&FRENCH),
        _ => None,
    }
}

/// Sentences that break off in a prompt.
const UNFINISHED: usize = 4;
/// Up to this number, phrases are few.
const FEW: usize = 2;
/// Most phrases in a prompt: every sentence costs decoding time.
const PHRASES_MAX: usize = 6;
/// Most bytes of vocabulary in a prompt: about 150 tokens, which cost some 40 ms.
const VOCABULARY_BYTES_MAX: usize = 600;
/// Longest phrase in a prompt: a phrase is a few words.
const PHRASE_CHARS_MAX: usize = 40;

impl Tails {
    fn all(self, set: &Sentences) -> [&'static str; PHRASES_MAX] {
        match self {
            Self::Usual => set.usual,
            Self::Other => set.other,
        }
    }

    /// The sentences that break off.
    fn unfinished(self, set: &Sentences) -> [&'static str; UNFINISHED] {
        let [usual, other] = set.unfinished;
        match self {
            Self::Usual => usual,
            Self::Other => other,
        }
    }

    /// The sentence put before `count` phrases, if any.
    fn front(self, count: usize, set: &Sentences) -> Option<&'static str> {
        let [usual, other] = set.front;
        let front = match self {
            Self::Usual => usual,
            Self::Other => other,
        };
        (1..=FEW).contains(&count).then_some(front)
    }

    /// Whether a sentence of the prompt is echoed in a text, one of the first `count` sentence ends or one before them.
    pub(super) fn is_echoed(self, text: &str, count: usize, set: &Sentences) -> bool {
        let lower = text.to_lowercase();
        let unfinished = || self.unfinished(set).into_iter().any(|words| lower.contains(&words.to_lowercase()));
        self.echo(text, count, set).is_some() || (count > 0 && unfinished())
    }

    /// Byte offset at which one of the first `count` sentence ends, or the sentence before them, is echoed in a text. A sentence
    /// that breaks off may be what was said, and what stands behind it is.
    fn echo(self, text: &str, count: usize, set: &Sentences) -> Option<usize> {
        // Keeps byte offsets for any characters.
        let text = text.to_ascii_lowercase();
        let all = self.all(set).into_iter().take(count).chain(self.front(count, set));
        all.filter_map(|sentence| text.find(&sentence.to_ascii_lowercase())).min()
    }

    /// Removes the echoed sentence and everything after it from a text. If nothing precedes that sentence, its wake
    /// phrase stays.
    pub(super) fn cut_echo(self, text: &mut String, count: usize, set: &Sentences) {
        let Some(front) = self.echo(text, count, set) else {
            return;
        };
        text.truncate(front);
        let kept = text.rfind(['.', '!', '?']).map_or_else(|| text.trim_end_matches([' ', ',']).len(), |end| end + 1);
        text.truncate(kept);
    }

    /// Removes sentences of the prompt that a text ends in, each a wake phrase with a sentence end, and the one in front of them.
    /// With words behind it such a sentence may be what was said. If nothing precedes them, the first wake phrase stays.
    pub(super) fn cut_echo_at_end(self, text: &mut String, phrases: &[String], set: &Sentences) {
        let phrases = prompted(phrases);
        while let Some((begin, phrase)) = self.echo_at_end(text, &phrases, set) {
            text.truncate(if begin == 0 { phrase } else { begin });
            let front = self.front(phrases.len(), set);
            let begin = last_sentence(text);
            if front.is_some_and(|front| are_same(text.get(begin..).unwrap_or_default(), front)) {
                text.truncate(begin);
            }
        }
    }

    /// Where the last sentence of a text begins, and the bytes from there to the end of its wake phrase, if it is a phrase with
    /// one of the sentence ends.
    fn echo_at_end(self, text: &str, phrases: &[Vec<String>], set: &Sentences) -> Option<(usize, usize)> {
        let begin = last_sentence(text);
        let sentence = text.get(begin..)?;
        let spoken: Vec<(usize, String)> = words(sentence).collect();
        let ends = self.all(set).into_iter().take(phrases.len());
        let ends: Vec<Vec<String>> = ends.map(|end| words(end).map(|(_, letters)| letters).collect()).collect();
        let is_end =
            |rest: &[(usize, String)]| ends.iter().any(|end| end.len() == rest.len() && begins_with(rest, end));
        let is_echoed =
            |phrase: &&Vec<String>| begins_with(&spoken, phrase) && spoken.get(phrase.len()..).is_some_and(is_end);
        let phrase = phrases.iter().find(is_echoed)?;
        let (end, _) = spoken.get(phrase.len().checked_sub(1)?)?;
        Some((begin, sentence.get(..*end)?.trim_end_matches(',').len()))
    }
}

/// Where the last sentence of a text begins.
fn last_sentence(text: &str) -> usize {
    let is_end = |letter: char| matches!(letter, '.' | '!' | '?' | '…');
    let whole = text.trim_end_matches(|letter: char| is_end(letter) || letter.is_whitespace());
    whole.rmatch_indices(is_end).next().map_or(0, |(at, end)| at + end.len())
}

/// Whether the words are the same.
fn are_same(one: &str, other: &str) -> bool {
    let letters = |text| words(text).map(|(_, letters)| letters);
    letters(one).eq(letters(other))
}

/// The words of the phrases that are put into a prompt.
fn prompted(phrases: &[String]) -> Vec<Vec<String>> {
    let phrases = phrases.iter().filter_map(|phrase| as_written(phrase)).take(PHRASES_MAX);
    phrases.map(|phrase| words(&phrase).map(|(_, letters)| letters).collect()).collect()
}

/// If a text is only prompted phrases, or the same words after one of them, repeated: its first occurrence. If the text
/// is `capped`, the last occurrence may be incomplete.
pub(super) fn first_of_loop<'a>(text: &'a str, phrases: &[String], capped: bool) -> Option<&'a str> {
    let phrases = prompted(phrases);
    let words: Vec<(usize, String)> = words(text).collect();
    let kept = phrases_only(&words, &phrases, capped).or_else(|| repeated(&words, &phrases, capped))?;
    words.get(kept.checked_sub(1)?).and_then(|(end, _)| text.get(..*end))
}

/// Word count of the first phrase, if the text is only phrases.
fn phrases_only(words: &[(usize, String)], phrases: &[Vec<String>], capped: bool) -> Option<usize> {
    let (mut rest, mut first) = (words, None);
    while !rest.is_empty() {
        let longest = phrases.iter().filter(|phrase| begins_with(rest, phrase)).map(Vec::len).max();
        let Some(length) = longest.filter(|length| *length > 0) else {
            let cut_off = capped && phrases.iter().any(|phrase| is_begin(rest, phrase));
            return first.filter(|_| cut_off);
        };
        first = first.or(Some(length));
        rest = rest.get(length..).unwrap_or_default();
    }
    first.filter(|first| *first < words.len())
}

/// Word count of the repeated part, if it begins with a phrase.
fn repeated(words: &[(usize, String)], phrases: &[Vec<String>], capped: bool) -> Option<usize> {
    let begins = phrases.iter().filter(|phrase| begins_with(words, phrase));
    let least = begins.map(Vec::len).filter(|length| *length > 0).min()?;
    (least..=words.len() / 2).find(|length| {
        let mut pairs = words.iter().skip(*length).zip(words).enumerate();
        pairs.all(|(at, ((_, word), (_, before)))| {
            let last = at + length + 1 == words.len();
            word == before || (capped && last && before.starts_with(word.as_str()))
        })
    })
}

fn begins_with(words: &[(usize, String)], phrase: &[String]) -> bool {
    words.len() >= phrase.len() && words.iter().zip(phrase).all(|((_, word), of_phrase)| word == of_phrase)
}

/// Whether the words are the beginning of a phrase; the last word may be cut off too.
fn is_begin(words: &[(usize, String)], phrase: &[String]) -> bool {
    let Some(((_, last), whole)) = words.split_last() else {
        return false;
    };
    begins_with(words, phrase.get(..whole.len()).unwrap_or(phrase))
        && phrase.get(whole.len()).is_some_and(|of_phrase| of_phrase.starts_with(last.as_str()))
}

/// The words of a text, in lower case and without punctuation, each with the byte offset of its end in the text.
fn words(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut end = 0;
    text.split_inclusive(char::is_whitespace).filter_map(move |written| {
        let begin = end;
        end += written.len();
        let letters: String = written.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        let letters = if letters == "okay" { "ok".to_owned() } else { letters };
        (!letters.is_empty()).then(|| (begin + written.trim_end().len(), letters))
    })
}

/// The English prompt for these wake phrases, empty when there are none.
pub fn prompt_for(phrases: &[String]) -> String {
    prompt_with(&[], phrases, (Tails::Usual, &ENGLISH))
}

/// How many of these phrases are put into a prompt.
pub(super) fn sentences(phrases: &[String]) -> usize {
    phrases.iter().filter_map(|phrase| as_written(phrase)).take(PHRASES_MAX).count()
}

fn wake_sentences(phrases: &[String], tails: Tails, set: &Sentences) -> String {
    let front = tails.front(sentences(phrases), set).and_then(as_sentence);
    let phrases = phrases.iter().filter_map(|phrase| as_written(phrase));
    let sentences = phrases.zip(tails.all(set)).take(PHRASES_MAX).map(|(phrase, tail)| format!("{phrase}, {tail}."));
    front.into_iter().chain(sentences).collect::<Vec<_>>().join(" ")
}

/// The prompt for these wake phrases, with likely sentences before them, or such that break off. The likely sentences come
/// first, because a sentence at the end of the prompt is missing from the transcript.
pub(super) fn prompt_with(vocabulary: &[String], phrases: &[String], (tails, set): (Tails, &Sentences)) -> String {
    let mut prompt = String::new();
    for sentence in vocabulary.iter().filter_map(|sentence| as_sentence(sentence)) {
        if prompt.len() + sentence.len() < VOCABULARY_BYTES_MAX {
            prompt.push_str(&sentence);
            prompt.push(' ');
        }
    }
    if vocabulary.is_empty() && sentences(phrases) > 0 {
        tails.unfinished(set).iter().for_each(|sentence| prompt.extend([sentence, " "]));
    }
    prompt.push_str(&wake_sentences(phrases, tails, set));
    prompt.trim_end().to_owned()
}

/// "take a photo" becomes "Take a photo."
fn as_sentence(words: &str) -> Option<String> {
    // An ellipsis stands for any words.
    let words = words.trim().trim_end_matches(['.', ' ', '…']);
    let printable = |letter: char| !letter.is_control() && letter.len_utf8() < 3;
    let mut letters = words.chars();
    let first = letters.next().filter(|_| words.chars().all(printable))?;
    Some(first.to_uppercase().chain(letters).chain(['.']).collect())
}

/// The phrase as written at the start of a sentence: "ok mentra" becomes "OK Mentra".
fn as_written(phrase: &str) -> Option<String> {
    let allowed = |letter: char| letter.is_alphanumeric() || matches!(letter, ' ' | '\'' | '-');
    if phrase.chars().count() > PHRASE_CHARS_MAX || !phrase.chars().all(allowed) {
        return None;
    }
    let words: Vec<String> = phrase.split_whitespace().map(word_as_written).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn word_as_written(word: &str) -> String {
    if word.eq_ignore_ascii_case("ok") {
        return "OK".into();
    }
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(phrases: &[&str]) -> String {
        prompt_for(&phrases.iter().map(|phrase| phrase.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn the_shipped_phrases_give_the_measured_prompt() {
        assert_eq!(
            prompt(&["hey mentra", "ok mentra", "mentra"]),
            "She went to the... My brother wanted to... What did they... The old bridge... Hey Mentra, good morning. \
             OK Mentra, thank you very much. Mentra, the sky is blue."
        );
    }

    #[test]
    fn few_phrases_stand_behind_a_sentence_without_one() {
        let ends_in = |prompt: &str, end: &str| assert!(prompt.ends_with(&format!("... {end}")), "{prompt}");
        ends_in(&prompt(&["computer"]), "The train was late again. Computer, good morning.");
        ends_in(
            &prompt(&["nova", "hey nova"]),
            "The train was late again. Nova, good morning. Hey Nova, thank you very much.",
        );
        let computer = ["computer".to_owned()];
        ends_in(
            &prompt_with(&[], &computer, (Tails::Other, &ENGLISH)),
            "It rained all night. Computer, snow fell over the hills.",
        );
        assert_eq!(Tails::Usual.echo("The train was late again.", 1, &ENGLISH), Some(0));
        assert_eq!(Tails::Usual.echo("The train was late again.", 3, &ENGLISH), None);
    }

    #[test]
    fn odd_phrases_are_left_out() {
        assert_eq!(prompt(&[]), "");
        assert_eq!(prompt(&["", "  ", "nul\0byte", "a. b", &"x".repeat(41)]), "");
        assert!(prompt(&["bad\n", "élan vital"]).ends_with("... The train was late again. Élan Vital, good morning."));
        assert_eq!(prompt(&["a"; 50]).matches("A, ").count(), PHRASES_MAX);
    }

    #[test]
    fn vocabulary_stands_in_front_and_has_an_end() {
        let texts = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        let phrases = texts(&["hey mentra"]);
        let vocabulary = texts(&["take a photo", "ba\nd", "", "  read my notes. "]);
        assert_eq!(
            prompt_with(&vocabulary, &phrases, (Tails::Usual, &ENGLISH)),
            "Take a photo. Read my notes. The train was late again. Hey Mentra, good morning."
        );
        assert_eq!(prompt_with(&[], &phrases, (Tails::Usual, &ENGLISH)), prompt_for(&phrases));
        assert_eq!(prompt_with(&vocabulary, &[], (Tails::Usual, &ENGLISH)), "Take a photo. Read my notes.");
        let many = vec!["set a timer".to_owned(); 500];
        assert!(prompt_with(&many, &phrases, (Tails::Usual, &ENGLISH)).len() < VOCABULARY_BYTES_MAX + 60);
    }

    #[test]
    fn a_prompt_that_comes_back_is_known_and_the_other_one_is_not_alike() {
        let phrases = ["hey mentra", "ok mentra", "mentra"].map(str::to_owned);
        let other = prompt_with(&[], &phrases, (Tails::Other, &ENGLISH));
        let count = sentences(&phrases);
        assert_eq!(Tails::Usual.echo(&other, count, &ENGLISH), None);
        assert_eq!(Tails::Other.echo(&prompt_for(&phrases), count, &ENGLISH), None);
        for (text, expected) in [
            ("Hey Mentra, good morning.", Some(12)),
            ("Hey Mentra, Good morning today.", Some(12)),
            ("İ, thank you very much, good morning", Some(4)),
            ("Hey Mentra, set a timer.", None),
            ("Hey Mentra, the old bridge was closed.", None),
            ("", None),
        ] {
            assert_eq!(Tails::Usual.echo(text, count, &ENGLISH), expected, "{text}");
        }
        for (text, expected) in
            [("Hey Mentra, good morning.", true), ("What did they... Hey Mentra", true), ("What did they say?", false)]
        {
            assert_eq!(Tails::Usual.is_echoed(text, count, &ENGLISH), expected, "{text}");
        }
        for (text, expected) in [
            ("He looked at the... Hey Mentra, stop.", "He looked at the... Hey Mentra, stop."),
            ("Hey Mentra, snow fell over the hills.", "Hey Mentra"),
            ("Set a timer. Hey Mentra, snow fell over the hills. So", "Set a timer."),
            ("Snow fell over the hills.", ""),
            ("Hey Mentra, good morning.", "Hey Mentra, good morning."),
        ] {
            let mut text = text.to_owned();
            Tails::Other.cut_echo(&mut text, count, &ENGLISH);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn only_sentences_of_the_prompt_at_the_end_of_a_text_are_cut_there() {
        let phrases = ["hey mentra", "ok mentra"].map(str::to_owned);
        for (text, expected) in [
            ("Stop the timer. Hey Mentra, good morning.", "Stop the timer."),
            ("Stop the timer! Okay, Mentra. OK Mentra, Thank you very much", "Stop the timer! Okay, Mentra."),
            ("Hey Mentra, good morning. OK Mentra, thank you very much.", "Hey Mentra"),
            ("The old bridge... The train was late again. Hey Mentra, good morning.", "The old bridge..."),
            ("Hey Mentra, good morning, stop the timer.", "Hey Mentra, good morning, stop the timer."),
            ("Hey Mentra, the sky is blue.", "Hey Mentra, the sky is blue."),
            ("Say hey Mentra, good morning.", "Say hey Mentra, good morning."),
            ("The train was late again.", "The train was late again."),
            ("", ""),
        ] {
            let mut text = text.to_owned();
            Tails::Usual.cut_echo_at_end(&mut text, &phrases, &ENGLISH);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn a_text_of_phrases_only_is_cut_to_the_first() {
        let cut = |phrases: &[&str], text: &'static str, capped| {
            let phrases: Vec<String> = phrases.iter().map(|phrase| phrase.to_string()).collect();
            first_of_loop(text, &phrases, capped)
        };
        let usual = ["hey mentra", "ok mentra", "mentra"];
        for (phrases, text, capped, expected) in [
            (&["computer"][..], "Computer. Computer. Computer. Computer.", true, Some("Computer.")),
            (&["computer"], "Computer. Computer. Comp", true, Some("Computer.")),
            (&["computer"], "Computer, Comp", true, Some("Computer,")),
            (&["computer"], "Computer, Comp", false, None),
            (&["sophie"], "Sophie, sophie", false, Some("Sophie,")),
            (&["atlas"], "Atlas!", false, None),
            (&["atlas"], "Atlas! ", true, None),
            (&["atlas"], "Atlas - Atlas", false, Some("Atlas")),
            (&usual, "OK Mentra, OK Mentra,", false, Some("OK Mentra,")),
            (&usual, "Okay, Mentra. Mentra. Hey Mentra.", false, Some("Okay, Mentra.")),
            (&usual, "Hey Mentra, hey Men", true, Some("Hey Mentra,")),
            (&usual, "Hey Mentra, hey man", true, None),
            (&usual, "Mentra, Mentra, stop.", false, None),
            (&["athena"], "Athena, what time is it? Athena, what time is it?", false, Some("Athena, what time is it?")),
            (&["athena"], "Athena, stop. Athena, stop. Athena, st", true, Some("Athena, stop.")),
            (&["athena"], "Athena, stop. Athena, stop. Athena, st", false, None),
            (&["athena"], "Athena, play a song by Athena", true, None),
            (&["athena"], "go on go on", false, None),
            (&["na na"], "Na na na na", false, Some("Na na")),
            (&usual, "Set a timer. Mentra.", true, None),
            (&usual, "", true, None),
            (&[], "Computer. Computer.", true, None),
            (&["", "?"], "Computer. Computer.", true, None),
        ] {
            assert_eq!(cut(phrases, text, capped), expected, "{text}");
        }
    }

    #[test]
    fn no_prompt_ends_in_a_phrase() {
        for count in 1..=8 {
            let phrases: Vec<String> = (0..count).map(|i| format!("name{i}")).collect();
            let prompt = prompt_for(&phrases);
            assert!(phrases.iter().all(|phrase| !prompt.to_lowercase().ends_with(&format!("{phrase}."))));
        }
    }

    #[test]
    fn a_language_is_prompted_in_its_own_words_or_not_at_all() {
        let of = |tag: &str| Language::of(tag).and_then(sentences_of);
        assert_eq!(of("en"), Some(&ENGLISH));
        assert_eq!((of("it"), of("ru")), (None, None));
        let phrases = ["hey mentra".to_owned()];
        for (tag, expected) in [
            ("de", "Die alte Brücke... Der Zug kam wieder zu spät. Hey Mentra, guten Morgen."),
            ("es", "El viejo molino... El tren iba otra vez con retraso. Hey Mentra, buenos días."),
            ("fr", "La vieille tour... Le train était encore en retard. Hey Mentra, bonjour à tous."),
        ] {
            let set = of(tag).unwrap();
            let prompt = prompt_with(&[], &phrases, (Tails::Usual, set));
            assert!(prompt.ends_with(expected), "{prompt}");
            let echoed = Tails::Usual.echo(expected, 1, set);
            assert!(echoed.is_some() && Tails::Other.echo(expected, 1, set).is_none(), "{tag}");
        }
    }
}
