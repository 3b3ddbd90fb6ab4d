//! The language of a text that is to be spoken: that of the conversation, unless the text says otherwise. Trigrams of letters
//! tell languages apart (crate `whatlang`), but not over all languages for a few words: a text in Latin letters is either
//! English or in the conversation's language, if that is written in them.

use whatlang::{Detector, Lang, Script, detect_lang, detect_script};

const ENGLISH: &str = "en";

/// Two-letter codes (ISO 639-1) of the languages that can be told apart by their letters or trigrams.
const CODES: [(&str, Lang); 71] = [
    ("af", Lang::Afr),
    ("ak", Lang::Aka),
    ("am", Lang::Amh),
    ("ar", Lang::Ara),
    ("az", Lang::Aze),
    ("be", Lang::Bel),
    ("bn", Lang::Ben),
    ("bg", Lang::Bul),
    ("ca", Lang::Cat),
    ("cs", Lang::Ces),
    ("cy", Lang::Cym),
    ("zh", Lang::Cmn),
    ("da", Lang::Dan),
    ("de", Lang::Deu),
    ("el", Lang::Ell),
    ("en", Lang::Eng),
    ("eo", Lang::Epo),
    ("et", Lang::Est),
    ("fi", Lang::Fin),
    ("fr", Lang::Fra),
    ("gu", Lang::Guj),
    ("he", Lang::Heb),
    ("hi", Lang::Hin),
    ("hr", Lang::Hrv),
    ("hu", Lang::Hun),
    ("hy", Lang::Hye),
    ("id", Lang::Ind),
    ("it", Lang::Ita),
    ("jv", Lang::Jav),
    ("ja", Lang::Jpn),
    ("kn", Lang::Kan),
    ("ka", Lang::Kat),
    ("km", Lang::Khm),
    ("ko", Lang::Kor),
    ("la", Lang::Lat),
    ("lv", Lang::Lav),
    ("lt", Lang::Lit),
    ("ml", Lang::Mal),
    ("mr", Lang::Mar),
    ("mk", Lang::Mkd),
    ("my", Lang::Mya),
    ("ne", Lang::Nep),
    ("nl", Lang::Nld),
    ("nb", Lang::Nob),
    ("no", Lang::Nob),
    ("or", Lang::Ori),
    ("pa", Lang::Pan),
    ("fa", Lang::Pes),
    ("pl", Lang::Pol),
    ("pt", Lang::Por),
    ("ro", Lang::Ron),
    ("ru", Lang::Rus),
    ("si", Lang::Sin),
    ("sk", Lang::Slk),
    ("sl", Lang::Slv),
    ("sn", Lang::Sna),
    ("es", Lang::Spa),
    ("sr", Lang::Srp),
    ("sv", Lang::Swe),
    ("ta", Lang::Tam),
    ("te", Lang::Tel),
    ("tl", Lang::Tgl),
    ("th", Lang::Tha),
    ("tk", Lang::Tuk),
    ("tr", Lang::Tur),
    ("uk", Lang::Ukr),
    ("ur", Lang::Urd),
    ("uz", Lang::Uzb),
    ("vi", Lang::Vie),
    ("yi", Lang::Yid),
    ("zu", Lang::Zul),
];

/// A code of two or three lower-case letters, and nothing else: `conversation` comes from a device.
pub(super) fn of(text: &str, conversation: &str) -> String {
    let spoken = conversation.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    let is_code = (2..=3).contains(&spoken.len()) && spoken.bytes().all(|letter| letter.is_ascii_lowercase());
    let spoken = if is_code { spoken } else { ENGLISH.to_owned() };
    let known = CODES.iter().find(|(code, _)| *code == spoken).map(|(_, language)| *language);
    let code_of =
        |language: Lang| CODES.iter().find(|(_, other)| *other == language).map(|(code, _)| (*code).to_owned());
    match detect_script(text) {
        None => spoken,
        Some(Script::Latin) => {
            let Some(known) = known.filter(|known| *known != Lang::Eng) else { return spoken };
            match Detector::with_allowlist(vec![Lang::Eng, known]).detect_lang(text) {
                Some(Lang::Eng) => ENGLISH.to_owned(),
                _ => spoken,
            }
        }
        Some(script) if known.is_some_and(|known| script.langs().contains(&known)) => spoken,
        Some(_) => detect_lang(text).and_then(code_of).unwrap_or(spoken),
    }
}

/// Whether the product's own voice speaks it.
pub(super) fn is_english(code: &str) -> bool {
    code == ENGLISH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_in_the_conversations_language_or_in_english() {
        for (text, conversation, expected) in [
            ("Timer set for ten minutes.", "en-US", "en"),
            ("Le minuteur est réglé sur dix minutes.", "en", "en"),
            ("Der Timer ist auf zehn Minuten gestellt.", "de", "de"),
            ("The timer is set for ten minutes, and it will ring.", "de-AT", "en"),
            ("Le minuteur est réglé sur dix minutes.", "fr_CA", "fr"),
            ("Il timer suonerà tra dieci minuti.", "it", "it"),
            ("You have three notes, and the first of them is about milk.", "es", "en"),
            ("10:30", "fr", "fr"),
        ] {
            assert_eq!(of(text, conversation), expected, "{text} {conversation}");
        }
    }

    #[test]
    fn letters_tell_what_no_setting_does() {
        for (text, conversation, expected) in [
            ("Сейчас половина девятого, и на улице идёт снег.", "en", "ru"),
            ("OK.", "ru", "en"),
            ("Зараз пів на дев'яту.", "uk", "uk"),
            ("今日は雨が降っています。", "de", "ja"),
            ("Καλημέρα, τι κάνεις;", "en", "el"),
        ] {
            assert_eq!(of(text, conversation), expected, "{text} {conversation}");
        }
    }

    #[test]
    fn nothing_of_a_device_becomes_an_argument_of_its_own() {
        for conversation in ["", "-", "--file=/etc/passwd", "../x", "d", "deutsch", "d;", "DE\n", "日本"] {
            assert_eq!(of("10:30", conversation), "en", "{conversation:?}");
        }
        assert_eq!(of("10:30", "DE"), "de");
    }
}
