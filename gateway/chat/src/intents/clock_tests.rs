//! Tests of times, dates and appointments in words.

use jiff::tz::TimeZone;

use super::{
    super::{language::Language, utterance::Utterance},
    *,
};

/// Times of a day that is a Wednesday.
fn at(hour: i8, minute: i8) -> Zoned {
    jiff::civil::date(2026, 5, 13).at(hour, minute, 0, 0).to_zoned(TimeZone::UTC).expect("a time")
}

fn read(source: &str, reader: fn(View<'_>, usize) -> Vec<(usize, String)>) -> Option<String> {
    let utterance = Utterance::new(source, at(14, 30), Language::english());
    reader(utterance.view(usize::MAX), 0)
        .into_iter()
        .find(|(end, _)| *end == utterance.words.len())
        .map(|(_, value)| value)
}

#[test]
fn a_moment_is_never_before_the_length_of_time_that_was_said() {
    let now = at(14, 30).checked_add(jiff::Span::new().seconds(10)).expect("a time");
    for (said, expected) in [("in 30 seconds", "14:31"), ("in one minute", "14:32"), ("in ten minutes", "14:41")] {
        let utterance = Utterance::new(said, now.clone(), Language::english());
        let read = read_when(utterance.view(usize::MAX), 0).into_iter().next();
        assert_eq!(read.map(|(_, when)| when), Some(format!("2026-05-13T{expected}")), "{said}");
    }
}

#[test]
fn appointments_are_resolved() {
    let cases = [
        ("at 5 pm", "2026-05-13T17:00"),
        ("at 5 in the morning", "2026-05-14T05:00"),
        ("quarter to five", "2026-05-13T16:45"),
        ("half past 3", "2026-05-13T15:30"),
        ("at quarter to one", "2026-05-14T12:45"),
        ("17:30", "2026-05-13T17:30"),
        ("at 9:15", "2026-05-13T21:15"),
        ("at 07:00", "2026-05-14T07:00"),
        ("at 05:30", "2026-05-14T05:30"),
        ("at 07:00 pm", "2026-05-13T19:00"),
        ("tomorrow at 05:00", "2026-05-14T05:00"),
        ("this evening at 07:00", "2026-05-13T19:00"),
        ("at 03:30 in the afternoon", "2026-05-13T15:30"),
        ("at noon", "2026-05-14T12:00"),
        ("tomorrow at eight", "2026-05-14T08:00"),
        ("tomorrow at three", "2026-05-14T15:00"),
        ("at eight tomorrow evening", "2026-05-14T20:00"),
        ("tonight at nine", "2026-05-13T21:00"),
        ("next monday", "2026-05-18T09:00"),
        ("next friday at 10 am", "2026-05-22T10:00"),
        ("on friday", "2026-05-15T09:00"),
        ("the third of june at noon", "2026-06-03T12:00"),
        ("on may 3rd", "2027-05-03T09:00"),
        ("in two hours", "2026-05-13T16:30"),
        ("at six thirty", "2026-05-13T18:30"),
        ("at 12 am", "2026-05-14T00:00"),
        ("on the twenty first of december", "2026-12-21T09:00"),
        ("on the fifteenth at nine", "2026-05-15T09:00"),
        ("on the 15th", "2026-05-15T09:00"),
        ("at nine on the 15th", "2026-05-15T09:00"),
        ("on the twelfth", "2026-06-12T09:00"),
        ("on the 31st at noon", "2026-05-31T12:00"),
        ("the fifteenth at nine", "2026-05-15T09:00"),
        ("on the fifteenth in the evening", "2026-05-15T19:00"),
        ("at three at night", "2026-05-14T03:00"),
        ("tonight at twelve", "2026-05-14T00:00"),
        ("at twelve tonight", "2026-05-14T00:00"),
        ("at half past twelve tonight", "2026-05-14T00:30"),
        ("tonight at midnight", "2026-05-14T00:00"),
        ("tonight at three", "2026-05-14T03:00"),
        ("tonight at 2:30", "2026-05-14T02:30"),
        ("tonight at 2 am", "2026-05-14T02:00"),
        ("tonight at five", "2026-05-13T17:00"),
        ("tonight at eleven", "2026-05-13T23:00"),
        ("tonight", "2026-05-13T20:00"),
        ("tomorrow night at one", "2026-05-15T01:00"),
        ("tomorrow night at ten", "2026-05-14T22:00"),
        ("at quarter to one tomorrow night", "2026-05-15T00:45"),
        ("friday night at twelve", "2026-05-16T00:00"),
        ("at five in the night", "2026-05-14T05:00"),
        ("this evening at twelve", "2026-05-14T00:00"),
        ("at six in the evening", "2026-05-13T18:00"),
        ("at twelve in the afternoon", "2026-05-14T12:00"),
    ];
    for (source, expected) in cases {
        assert_eq!(read(source, read_when).as_deref(), Some(expected), "{source}");
    }
    for source in [
        "five",
        "at",
        "the third",
        "the first one",
        "on the first one",
        "on the 32nd",
        "this",
        "morning",
        "at 25",
        "today",
        "may",
    ] {
        assert_eq!(read(source, read_when), None, "{source}");
    }
}

#[test]
fn an_hour_at_which_somebody_gets_up_is_one_of_the_morning() {
    for (source, expected) in [
        ("at seven", "2026-05-14T07:00"),
        ("at six thirty", "2026-05-14T06:30"),
        ("at three", "2026-05-14T03:00"),
        ("at seven pm", "2026-05-13T19:00"),
        ("at seven in the evening", "2026-05-13T19:00"),
        ("at twelve", "2026-05-14T12:00"),
        ("tomorrow at five", "2026-05-14T05:00"),
        ("on friday at six", "2026-05-15T06:00"),
    ] {
        assert_eq!(read(source, read_wake).as_deref(), Some(expected), "{source}");
    }
    assert_eq!(read("in ten minutes", read_wake), None, "a length is no time of day");
}

#[test]
fn minutes_are_told_from_noon_and_midnight_too() {
    for (tag, source, expected) in [
        ("en", "at five to noon", "2026-05-14T11:55"),
        ("en", "at ten to midnight", "2026-05-13T23:50"),
        ("en", "at half past midnight", "2026-05-14T00:30"),
        ("en", "at quarter past noon tomorrow", "2026-05-14T12:15"),
        ("en", "tonight at ten past midnight", "2026-05-14T00:10"),
        ("de", "um zehn vor Mitternacht", "2026-05-13T23:50"),
        ("de", "um Viertel nach Mitternacht", "2026-05-14T00:15"),
        ("es", "al mediodía y cuarto", "2026-05-14T12:15"),
        ("es", "a medianoche menos diez", "2026-05-13T23:50"),
        ("es", "a las doce de la mañana", "2026-05-14T12:00"),
        ("es", "a las doce y media de la mañana", "2026-05-14T12:30"),
        ("es", "a las doce de la madrugada", "2026-05-14T00:00"),
        ("es", "a las doce de la noche", "2026-05-14T00:00"),
        ("es", "a las siete de la mañana", "2026-05-14T07:00"),
        ("fr", "à midi et demi", "2026-05-14T12:30"),
        ("fr", "à midi et quart", "2026-05-14T12:15"),
        ("fr", "à midi moins dix", "2026-05-14T11:50"),
        ("fr", "à midi vingt", "2026-05-14T12:20"),
        ("fr", "à minuit et demi", "2026-05-14T00:30"),
        ("fr", "à minuit moins le quart", "2026-05-13T23:45"),
    ] {
        let utterance = Utterance::new(source, at(14, 30), Language::of(tag));
        let found = read_when(utterance.view(usize::MAX), 0).into_iter();
        let whole = found.clone().find(|(end, _)| *end == utterance.words.len()).map(|(_, when)| when);
        assert_eq!(whole.as_deref(), Some(expected), "{source}: {:?}", found.collect::<Vec<_>>());
    }
}

#[test]
fn this_weekday_is_today_until_its_time_has_passed() {
    for (tag, source, expected) in [
        ("en", "this wednesday at five", "2026-05-13T17:00"),
        ("en", "at five this wednesday", "2026-05-13T17:00"),
        ("en", "this wednesday evening", "2026-05-13T19:00"),
        ("en", "this wednesday night at one", "2026-05-14T01:00"),
        ("en", "this wednesday at 2 pm", "2026-05-20T14:00"),
        ("en", "this wednesday morning at nine", "2026-05-20T09:00"),
        ("en", "this wednesday", "2026-05-20T09:00"),
        ("en", "this friday at five", "2026-05-15T17:00"),
        ("en", "on wednesday at five", "2026-05-20T17:00"),
        ("en", "coming wednesday at five", "2026-05-20T17:00"),
        ("en", "next wednesday at five", "2026-05-20T17:00"),
        ("de", "diesen Mittwoch um fünf", "2026-05-13T17:00"),
        ("de", "diesen Mittwoch um 14 Uhr", "2026-05-20T14:00"),
        ("de", "nächsten Mittwoch um fünf", "2026-05-20T17:00"),
        ("es", "este miércoles a las cinco", "2026-05-13T17:00"),
        ("es", "próximo miércoles a las cinco", "2026-05-20T17:00"),
        ("fr", "ce mercredi à cinq heures", "2026-05-13T17:00"),
        ("fr", "mercredi à cinq heures", "2026-05-20T17:00"),
    ] {
        let utterance = Utterance::new(source, at(14, 30), Language::of(tag));
        let found = read_when(utterance.view(usize::MAX), 0).into_iter();
        let whole = found.filter(|(end, _)| *end == utterance.words.len()).map(|(_, when)| when);
        assert_eq!(whole.collect::<Vec<_>>(), [expected], "{source}");
    }
    // At half past eight in the evening no five o'clock is left of the day.
    let utterance = Utterance::new("this wednesday at five", at(20, 30), Language::english());
    let found = read_when(utterance.view(usize::MAX), 0);
    assert_eq!(found.first().map(|(_, when)| when.as_str()), Some("2026-05-20T17:00"));
    assert_eq!(read("this wednesday", read_date).as_deref(), Some("2026-05-13"));
}

#[test]
fn a_night_that_has_begun_goes_on() {
    let read_at = |source: &str, hour: i8| {
        let utterance = Utterance::new(source, at(hour, 30), Language::english());
        read_when(utterance.view(usize::MAX), 0).into_iter().next().map(|(_, when)| when)
    };
    for (source, hour, expected) in [
        ("at three at night", 1, "2026-05-13T03:00"),
        ("tonight at three", 1, "2026-05-13T03:00"),
        ("tonight at three", 4, "2026-05-14T03:00"),
        ("tonight at twelve", 1, "2026-05-14T00:00"),
        ("tonight at nine", 1, "2026-05-13T21:00"),
        ("tomorrow night at three", 1, "2026-05-15T03:00"),
        ("at three at night", 23, "2026-05-14T03:00"),
    ] {
        assert_eq!(read_at(source, hour).as_deref(), Some(expected), "{source} at {hour}:30");
    }
}

#[test]
fn times_and_dates_stand_alone() {
    assert_eq!(read("at 5 pm", read_time).as_deref(), Some("17:00"));
    assert_eq!(read("noon", read_time).as_deref(), Some("12:00"));
    assert_eq!(read("at 05:30", read_time).as_deref(), Some("05:30"));
    assert_eq!(read("tomorrow", read_time), None);
    assert_eq!(read("tomorrow", read_date).as_deref(), Some("2026-05-14"));
    assert_eq!(read("february 29th", read_date).as_deref(), Some("2028-02-29"));
    assert_eq!(read("february 30th", read_date), None);
}
