//! Numbers, lengths of time, times, dates and sums in each language.

use jiff::{Zoned, tz::TimeZone};

use super::Language;
use crate::intents::{
    clock, duration, expression,
    utterance::{Utterance, View},
};

/// Wednesday afternoon.
fn now() -> Zoned {
    jiff::civil::date(2026, 5, 13).at(14, 30, 0, 0).to_zoned(TimeZone::UTC).expect("a time")
}

/// The reading of the whole text, if there is one.
fn whole<T>(tag: &str, source: &str, read: impl Fn(View<'_>) -> Vec<(usize, T)>) -> Option<T> {
    let utterance = Utterance::new(source, now(), Language::of(tag));
    let end = utterance.words.len();
    read(utterance.view(usize::MAX)).into_iter().find(|(at, _)| *at == end).map(|(_, value)| value)
}

#[test]
fn numbers_are_read() {
    for (tag, source, expected) in [
        ("de", "fünfundvierzig", 45.0),
        ("de", "zwölf", 12.0),
        ("de", "hundert", 100.0),
        ("de", "drei Komma eins sechs", 3.16),
        ("de", "2,5", 2.5),
        ("de", "1.200", 1_200.0),
        ("es", "cuarenta y cinco", 45.0),
        ("es", "dieciséis", 16.0),
        ("es", "ciento veinte", 120.0),
        ("fr", "quatre-vingt-dix", 90.0),
        ("fr", "soixante et onze", 71.0),
        ("fr", "deux cent trente", 230.0),
    ] {
        let read = whole(tag, source, |view| view.numbers(0).collect());
        assert_eq!(read, Some(expected), "{source}");
    }
}

#[test]
fn lengths_of_time_are_read() {
    for (tag, source, expected) in [
        ("de", "zehn Minuten", 600),
        ("de", "eine halbe Stunde", 1_800),
        ("de", "anderthalb Stunden", 5_400),
        ("de", "zweieinhalb Minuten", 150),
        ("de", "eine Viertelstunde", 900),
        ("de", "drei viertel Stunden", 2_700),
        ("de", "1 Stunde und 20 Minuten", 4_800),
        ("de", "1½ Stunden", 5_400),
        ("de", "½ Stunde", 1_800),
        ("es", "2¼ horas", 8_100),
        ("es", "½ hora", 1_800),
        ("fr", "1½ heure", 5_400),
        ("fr", "¾ heure", 2_700),
        ("es", "media hora", 1_800),
        ("es", "una hora y media", 5_400),
        ("es", "un cuarto de hora", 900),
        ("es", "dos minutos y medio", 150),
        ("es", "1 hora y 20 minutos", 4_800),
        ("fr", "une demi-heure", 1_800),
        ("fr", "une heure et demie", 5_400),
        ("fr", "un quart d'heure", 900),
        ("fr", "trois quarts d'heure", 2_700),
        ("fr", "deux minutes et demie", 150),
    ] {
        assert_eq!(whole(tag, source, |view| duration::read(view, 0)), Some(expected), "{source}");
    }
}

#[test]
fn appointments_are_resolved() {
    for (tag, source, expected) in [
        ("de", "um halb acht", "2026-05-13T19:30"),
        ("de", "um fünf vor halb acht", "2026-05-13T19:25"),
        ("de", "um viertel nach acht", "2026-05-13T20:15"),
        ("de", "um dreiviertel sechs", "2026-05-13T17:45"),
        ("de", "um zehn nach fünf", "2026-05-13T17:10"),
        ("de", "um 17 Uhr 30", "2026-05-13T17:30"),
        ("de", "um 18:30 Uhr", "2026-05-13T18:30"),
        ("de", "um 07:00 Uhr", "2026-05-14T07:00"),
        ("de", "um 07 Uhr", "2026-05-14T07:00"),
        ("de", "um 7 Uhr", "2026-05-13T19:00"),
        ("fr", "à 07h30", "2026-05-14T07:30"),
        ("fr", "à 7h30", "2026-05-13T19:30"),
        ("es", "a las 07:00", "2026-05-14T07:00"),
        ("de", "morgen um neun", "2026-05-14T09:00"),
        ("de", "morgen früh um acht", "2026-05-14T08:00"),
        ("de", "übermorgen abend um acht", "2026-05-15T20:00"),
        ("de", "am Montag um zehn Uhr", "2026-05-18T10:00"),
        ("de", "am dritten Juni", "2026-06-03T09:00"),
        ("de", "am 3. Juni um 12 Uhr", "2026-06-03T12:00"),
        ("de", "in zwei Stunden", "2026-05-13T16:30"),
        ("es", "a las ocho y media", "2026-05-13T20:30"),
        ("es", "a las seis menos cuarto", "2026-05-13T17:45"),
        ("es", "a la una menos cuarto", "2026-05-14T12:45"),
        ("es", "a las cinco y diez", "2026-05-13T17:10"),
        ("es", "a las siete de la mañana", "2026-05-14T07:00"),
        ("es", "mañana a las nueve", "2026-05-14T09:00"),
        ("es", "mañana por la tarde a las cinco", "2026-05-14T17:00"),
        ("es", "pasado mañana a las diez", "2026-05-15T10:00"),
        ("es", "el lunes que viene", "2026-05-18T09:00"),
        ("es", "el tres de junio a las doce", "2026-06-03T12:00"),
        ("es", "al mediodía", "2026-05-14T12:00"),
        ("es", "dentro de dos horas", "2026-05-13T16:30"),
        ("fr", "à huit heures et demie", "2026-05-13T20:30"),
        ("fr", "à six heures moins le quart", "2026-05-13T17:45"),
        ("fr", "à cinq heures dix", "2026-05-13T17:10"),
        ("fr", "à 17h30", "2026-05-13T17:30"),
        ("fr", "à vingt heures quinze", "2026-05-13T20:15"),
        ("fr", "à sept heures du matin", "2026-05-14T07:00"),
        ("fr", "demain à neuf heures", "2026-05-14T09:00"),
        ("fr", "demain soir à huit heures", "2026-05-14T20:00"),
        ("fr", "après-demain à dix heures", "2026-05-15T10:00"),
        ("fr", "lundi prochain à midi", "2026-05-18T12:00"),
        ("fr", "le premier juin", "2026-06-01T09:00"),
        ("fr", "dans deux heures", "2026-05-13T16:30"),
    ] {
        assert_eq!(appointment(tag, source).as_deref(), Some(expected), "{source}");
    }
    for (tag, source) in [("de", "acht"), ("es", "ocho"), ("es", "la mañana"), ("fr", "huit"), ("fr", "soir")] {
        assert_eq!(appointment(tag, source), None, "{source}");
    }
}

#[test]
fn nights_and_days_of_a_month_are_resolved() {
    for (tag, source, expected) in [
        ("de", "am fünfzehnten um neun", "2026-05-15T09:00"),
        ("de", "am 15. um neun", "2026-05-15T09:00"),
        ("de", "am Ersten", "2026-06-01T09:00"),
        ("es", "el quince a las nueve", "2026-05-15T09:00"),
        ("es", "el día 15", "2026-05-15T09:00"),
        ("fr", "le quinze à neuf heures", "2026-05-15T09:00"),
        ("fr", "le 1er", "2026-06-01T09:00"),
        ("de", "heute Nacht um drei", "2026-05-14T03:00"),
        ("de", "um drei heute Nacht", "2026-05-14T03:00"),
        ("de", "heute Nacht um 2 Uhr 30", "2026-05-14T02:30"),
        ("de", "heute Nacht um 0 Uhr 15", "2026-05-14T00:15"),
        ("de", "heute Nacht um zwölf", "2026-05-14T00:00"),
        ("de", "heute Nacht um halb eins", "2026-05-14T00:30"),
        ("de", "heute Nacht um 23 Uhr", "2026-05-13T23:00"),
        ("de", "heute Nacht um elf", "2026-05-13T23:00"),
        ("de", "um vier in der Nacht", "2026-05-14T04:00"),
        ("de", "morgen Nacht um eins", "2026-05-15T01:00"),
        ("de", "Freitag Nacht um zwei", "2026-05-16T02:00"),
        ("de", "heute Abend um zwölf", "2026-05-14T00:00"),
        ("de", "heute Abend um sieben", "2026-05-13T19:00"),
        ("de", "morgen Mittag um halb zwölf", "2026-05-14T11:30"),
        ("de", "morgen Mittag um zwölf", "2026-05-14T12:00"),
        ("de", "morgen Mittag um halb eins", "2026-05-14T12:30"),
        ("de", "morgen Mittag um eins", "2026-05-14T13:00"),
        ("de", "um elf Uhr mittags", "2026-05-14T11:00"),
        ("es", "a las doce de la noche", "2026-05-14T00:00"),
        ("es", "a las nueve de la noche", "2026-05-13T21:00"),
        ("es", "a la una de la noche", "2026-05-14T01:00"),
        ("es", "esta noche a las doce", "2026-05-14T00:00"),
        ("es", "esta noche a las diez", "2026-05-13T22:00"),
        ("es", "mañana por la noche a las once", "2026-05-14T23:00"),
        ("es", "mañana a las nueve de la noche", "2026-05-14T21:00"),
        ("es", "a las doce de la tarde", "2026-05-14T12:00"),
        ("es", "a las tres de la madrugada", "2026-05-14T03:00"),
        ("fr", "cette nuit à trois heures", "2026-05-14T03:00"),
        ("fr", "à trois heures cette nuit", "2026-05-14T03:00"),
        ("fr", "cette nuit à minuit", "2026-05-14T00:00"),
        ("fr", "cette nuit à onze heures", "2026-05-13T23:00"),
        ("fr", "ce soir à huit heures", "2026-05-13T20:00"),
        ("fr", "ce soir à minuit", "2026-05-14T00:00"),
    ] {
        assert_eq!(appointment(tag, source).as_deref(), Some(expected), "{source}");
    }
}

fn appointment(tag: &str, source: &str) -> Option<String> {
    whole(tag, source, |view| clock::read_when(view, 0))
}

#[test]
fn sums_are_read() {
    for (tag, source, expected) in [
        ("de", "zwölf mal sieben", "12 * 7"),
        ("de", "15 % von 80", "15% of 80"),
        ("de", "hundert geteilt durch vier", "100 / 4"),
        ("es", "doce por siete", "12 * 7"),
        ("es", "el 15 por ciento de 80", "15% of 80"),
        ("fr", "douze fois sept", "12 * 7"),
        ("fr", "la racine carrée de 81", "sqrt(81)"),
    ] {
        let read = whole(tag, source, |view| expression::read(view, 0).into_iter().collect());
        assert_eq!(read.as_deref(), Some(expected), "{source}");
    }
}

#[test]
fn an_unknown_language_has_the_rules_of_english() {
    for (tag, code) in [("de-AT", "de"), ("ES", "es"), ("fr_CA", "fr"), ("en-GB", "en"), ("fi", "en"), ("", "en")] {
        assert_eq!(Language::of(tag).code, code, "{tag}");
    }
}
