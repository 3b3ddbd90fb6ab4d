//! The streams that an app gets, and their content.

use std::{mem, sync::Arc};

use audio::asr::Language;
use serde_json::{Map, Value, json};

use super::{
    feed::{Event, Wants},
    offer::{Judged, Offer, Stream, judge},
    settings::Location,
    wire::Denied,
};

/// Streams in one subscription list: an app registers a handler for each.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 64;
/// Bytes of a stream's name with its options.
pub(crate) const NAME_BYTES_MAX: usize = 256;

/// A location in the apps' format.
pub(crate) fn place(location: Location) -> Map<String, Value> {
    let mut data = Map::new();
    data.insert("type".to_owned(), "location_update".into());
    data.insert("lat".to_owned(), location.latitude.into());
    data.insert("lng".to_owned(), location.longitude.into());
    if let Some(metres) = location.accuracy_m {
        data.insert("accuracy".to_owned(), metres.into());
    }
    data
}

/// A connection's subscriptions.
#[derive(Default)]
pub(crate) struct Subscriptions {
    /// The present list, as it came.
    names: Vec<String>,
    served: Vec<(String, Stream)>,
    /// Refused streams of the present list, with reasons.
    refused: Vec<(String, String)>,
    /// Refusals already reported on this connection.
    told: Vec<String>,
}

/// Changes by a new list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    /// Refused for a missing permission, not reported before.
    pub denied: Vec<Denied>,
    /// Not provided by the gateway, not reported before: name and reason.
    pub unserved: Vec<(String, String)>,
    /// Streams of the location that the list before did not have.
    pub located: Vec<String>,
}

impl Subscriptions {
    /// Replaces the list.
    pub(crate) fn replace(&mut self, names: Vec<String>, permissions: &[String], offer: Offer<'_>) -> Changed {
        self.names = names.into_iter().take(SUBSCRIPTIONS_MAX).filter(|name| name.len() <= NAME_BYTES_MAX).collect();
        self.judge_again(permissions, offer)
    }

    /// Judges the same list by what can be provided now.
    pub(crate) fn judge_again(&mut self, permissions: &[String], offer: Offer<'_>) -> Changed {
        let before = mem::take(&mut self.served);
        self.refused.clear();
        let mut changed = Changed::default();
        for name in self.names.iter().cloned() {
            let judged = judge(&name, permissions, offer);
            let why = match &judged {
                Judged::Served(_) => None,
                Judged::Denied(permission) => Some(format!("needs the permission {permission}")),
                Judged::Unserved(why) => Some(why.clone()),
                Judged::Unknown => Some("no stream that is known here".to_owned()),
            };
            self.refused.extend(why.map(|why| (name.clone(), why)));
            if matches!(judged, Judged::Denied(_) | Judged::Unserved(_)) {
                if self.told.contains(&name) || self.told.len() >= SUBSCRIPTIONS_MAX {
                    continue;
                }
                self.told.push(name.clone());
            }
            match judged {
                Judged::Served(stream) => {
                    let has = |list: &[(String, Stream)]| list.iter().any(|(other, _)| *other == name);
                    if has(&self.served) {
                        continue;
                    }
                    if stream == Stream::Location && !has(&before) {
                        changed.located.push(name.clone());
                    }
                    self.served.push((name, stream));
                }
                Judged::Denied(required_permission) => {
                    let message = format!("`{name}` needs the permission {required_permission}");
                    changed.denied.push(Denied { stream: name, required_permission, message });
                }
                Judged::Unserved(why) => changed.unserved.push((name, why)),
                Judged::Unknown => {}
            }
        }
        changed
    }

    /// The result of the list, for people.
    pub(crate) fn told(&self) -> String {
        let served: Vec<&str> = self.served.iter().map(|(name, _)| name.as_str()).collect();
        let served = if served.is_empty() { "none".to_owned() } else { served.join(", ") };
        let refused: Vec<String> = self.refused.iter().map(|(name, why)| format!("{name} ({why})")).collect();
        let refused = if refused.is_empty() { String::new() } else { format!("; refused: {}", refused.join(", ")) };
        format!("granted: {served}{refused}")
    }

    /// Whether any stream is served.
    pub(crate) fn any(&self) -> bool {
        !self.served.is_empty()
    }

    /// Whether sound and transcripts are subscribed.
    pub(crate) fn wants(&self) -> Wants {
        let has = |is: fn(&Stream) -> bool| self.served.iter().any(|(_, stream)| is(stream));
        Wants {
            audio: has(|stream| *stream == Stream::Audio),
            words: has(|stream| matches!(stream, Stream::Transcription { .. } | Stream::Translation { .. })),
            translations: self.served.iter().filter_map(|(_, stream)| stream.translates()).collect(),
        }
    }

    /// The data to send for an event: name of the stream and its data. A stream that got words in a language in which an utterance
    /// was not, in the end, gets an empty last text of it, so that its app does not wait.
    pub(crate) fn of<'a>(&'a self, event: &Event) -> Vec<(&'a str, Map<String, Value>)> {
        let mut told = self.fitting(event);
        if let Event::Transcript { utterance, others, last, start_ms, end_ms, .. } = event {
            for language in others.iter().copied() {
                let (utterance, text, others) = (utterance.clone(), "".into(), Arc::new([]));
                let (last, start_ms, end_ms) = (*last, *start_ms, *end_ms);
                let empty = Event::Transcript { utterance, text, language, others, last, start_ms, end_ms };
                for (name, data) in self.fitting(&empty) {
                    if told.iter().all(|(other, _)| *other != name) {
                        told.push((name, data));
                    }
                }
            }
        }
        told
    }

    /// The data for each subscription that the event fits best.
    fn fitting<'a>(&'a self, event: &Event) -> Vec<(&'a str, Map<String, Value>)> {
        let Some(best) = self.served.iter().filter_map(|(_, stream)| fit(stream, event)).max() else {
            return Vec::new();
        };
        let served = self.served.iter().filter(|(_, stream)| fit(stream, event) == Some(best));
        served.filter_map(|(name, stream)| Some((name.as_str(), data(stream, event)?))).collect()
    }
}

/// How well an event fits a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// Its language is another one: it goes there if the app has no stream for it. The SDK's default is no choice, and a language that
    /// is detected is a guess: no words may be lost by them.
    Instead,
    /// It is what the stream is for.
    Full,
}

/// `None`: not at all.
fn fit(stream: &Stream, event: &Event) -> Option<Fit> {
    match (stream, event) {
        (Stream::Transcription { language: wanted, is_default }, Event::Transcript { language, .. }) => match wanted {
            Some(wanted) if !is_of(wanted, language) => is_default.then_some(Fit::Instead),
            _ => Some(Fit::Full),
        },
        (Stream::Translation { from, .. }, Event::Translation { language, is_own, .. }) => match from {
            Some(from) if from.code() != *language => {
                // What is said in English needs no translation, and what the wearer says was not asked for.
                (!is_own && *language != Language::ENGLISH.code()).then_some(Fit::Instead)
            }
            _ => Some(Fit::Full),
        },
        (_, Event::Transcript { .. } | Event::Translation { .. }) => None,
        _ => Some(Fit::Full),
    }
}

/// A stream's data for an event; `None`: nothing.
fn data(stream: &Stream, event: &Event) -> Option<Map<String, Value>> {
    let value = match (stream, event) {
        (
            Stream::Transcription { language: wanted, .. },
            Event::Transcript { utterance, text, language, others: _, last, start_ms, end_ms },
        ) => json!({
            "type": "transcription",
            "text": &**text,
            "isFinal": last,
            "utteranceId": utterance,
            "transcribeLanguage": wanted.as_deref().unwrap_or(language),
            "detectedLanguage": language,
            "startTime": start_ms,
            "endTime": end_ms,
            "duration": end_ms.saturating_sub(*start_ms),
            "provider": "lorgnette",
        }),
        (
            Stream::Translation { from, source, target },
            Event::Translation { utterance, text, original, language, is_own: _, start_ms, end_ms },
        ) => json!({
            "type": "translation",
            "text": &**text,
            "originalText": original.as_deref(),
            "isFinal": true,
            "utteranceId": utterance,
            "transcribeLanguage": if from.is_some() { source } else { *language },
            "translateLanguage": target,
            "didTranslate": *language != Language::ENGLISH.code(),
            "startTime": start_ms,
            "endTime": end_ms,
            "duration": end_ms.saturating_sub(*start_ms),
            "provider": "lorgnette",
        }),
        (Stream::Voice, Event::Voice(active)) => json!({"type": "VAD", "status": active}),
        (Stream::Button, Event::Button { id, long }) => {
            json!({"type": "button_press", "buttonId": id, "pressType": if *long { "long" } else { "short" }})
        }
        (Stream::Touch(only), Event::Touch { model, gesture }) if only.as_deref().is_none_or(|it| it == *gesture) => {
            json!({"type": "touch_event", "device_model": &**model, "gesture_name": gesture})
        }
        (Stream::Head, Event::Head { up }) => {
            json!({"type": "head_position", "position": if *up { "up" } else { "down" }})
        }
        (Stream::Battery, Event::Battery { percent, charging }) => {
            json!({"type": "glasses_battery_update", "level": percent, "charging": charging})
        }
        (Stream::Connection, Event::Connection { model, connected }) => json!({
            "type": "glasses_connection_state",
            "modelName": &**model,
            "status": if *connected { "CONNECTED" } else { "DISCONNECTED" },
        }),
        _ => return None,
    };
    match value {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

/// Whether an app's name for a language is of the language of this code.
fn is_of(wanted: &str, code: &str) -> bool {
    Language::of(wanted).is_some_and(|language| language.code() == code)
}

#[cfg(test)]
mod tests {
    use audio::asr::Spoken;

    use super::*;
    use crate::speech::language::Understood;

    const OFFER: Offer<'static> = Offer {
        understood: Understood { own: None, configured: None, multilingual: false, translates: false },
        spoken: &[],
        located: false,
    };
    const MANY: Offer<'static> =
        Offer { understood: Understood { own: None, configured: None, multilingual: true, translates: true }, ..OFFER };

    fn all() -> Vec<String> {
        vec!["ALL".to_owned()]
    }

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }

    fn said(last: bool) -> Event {
        Event::Transcript {
            utterance: "u1".into(),
            text: Arc::from("hello"),
            language: "en",
            others: Arc::new([]),
            last,
            start_ms: 10,
            end_ms: 910,
        }
    }

    #[test]
    fn rule_5_a_stream_keeps_its_name_byte_for_byte() {
        let mut subscriptions = Subscriptions::default();
        let wanted = ["transcription:en-US?hints=en%2Cja&no-language-identification=true", "transcription:auto"];
        assert_eq!(subscriptions.replace(names(&wanted), &all(), OFFER), Changed::default());
        let event = said(true);
        let out = subscriptions.of(&event);
        assert_eq!(out.iter().map(|(name, _)| *name).collect::<Vec<_>>(), wanted);
        assert_eq!(out[0].1["transcribeLanguage"], "en-US");
        assert_eq!((&out[0].1["isFinal"], &out[0].1["text"]), (&json!(true), &json!("hello")));
        // The gateway does not distinguish speakers.
        assert_eq!(out[0].1.get("speakerId"), None);
        assert_eq!((&out[0].1["startTime"], &out[0].1["endTime"]), (&json!(10), &json!(910)));
    }

    #[test]
    fn rule_12_a_list_replaces_the_one_before() {
        let mut subscriptions = Subscriptions::default();
        subscriptions.replace(names(&["VAD", "audio_chunk"]), &all(), OFFER);
        assert!(subscriptions.wants().audio);
        subscriptions.replace(names(&["button_press"]), &all(), OFFER);
        assert!(subscriptions.any() && !subscriptions.wants().audio);
        assert!(subscriptions.of(&Event::Voice(true)).is_empty());
        subscriptions.replace(Vec::new(), &all(), OFFER);
        assert!(!subscriptions.any());
    }

    #[test]
    fn every_stream_and_what_becomes_of_it() {
        let served = |name: &str| matches!(judge(name, &all(), OFFER), Judged::Served(_));
        let streams =
            ["transcription", "transcription:en-GB", "transcription:auto", "VAD", "audio_chunk", "head_position"];
        for name in streams.into_iter().chain(["button_press", "touch_event", "touch_event:forward_swipe"]) {
            assert!(served(name), "{name}");
        }
        assert!(served("glasses_battery_update") && served("glasses_connection_state"));
        for name in ["transcription:fr-FR?hints=en%2Cja", "translation:es-ES-to-en-US", "video", "location_update"] {
            assert!(matches!(judge(name, &all(), OFFER), Judged::Unserved(_)), "{name}");
        }
        let located = Offer { located: true, ..OFFER };
        assert_eq!(judge("location_stream", &all(), located), Judged::Served(Stream::Location));
        assert_eq!(judge("location_update", &[], located), Judged::Denied("LOCATION"));
        for name in ["vps_coordinates", "photo_taken", "stream_status", "phone_battery_update", "calendar_event"] {
            assert!(matches!(judge(name, &all(), located), Judged::Unserved(_)), "{name}");
        }
        for name in ["custom_cmd", "", "all", "*", ":::", "transcriptions"] {
            assert_eq!(judge(name, &all(), OFFER), Judged::Unknown, "{name}");
        }
    }

    #[test]
    fn permissions_of_each_stream() {
        let cases = [
            ("transcription:en-US", "MICROPHONE"),
            ("translation:es-ES-to-en-US", "MICROPHONE"),
            ("VAD", "MICROPHONE"),
            ("audio_chunk", "MICROPHONE"),
            ("location_update", "LOCATION"),
            ("calendar_event", "CALENDAR"),
            ("phone_notification", "READ_NOTIFICATIONS"),
            ("photo_taken", "CAMERA"),
        ];
        for (name, permission) in cases {
            assert_eq!(judge(name, &[], OFFER), Judged::Denied(permission), "{name}");
            assert_ne!(judge(name, &names(&[permission]), OFFER), Judged::Denied(permission), "{name}");
            let others: Vec<String> =
                cases.iter().map(|(_, other)| *other).filter(|other| *other != permission).map(Into::into).collect();
            assert_eq!(judge(name, &others, OFFER), Judged::Denied(permission), "{name}");
        }
        assert!(matches!(judge("button_press", &[], OFFER), Judged::Served(_)));
    }

    #[test]
    fn a_refusal_is_told_once_for_each_name() {
        let mut subscriptions = Subscriptions::default();
        let list = ["audio_chunk", "translation:es-ES-to-en-US", "button_press"];
        let changed = subscriptions.replace(names(&list), &names(&["CAMERA"]), OFFER);
        assert_eq!(changed.denied.len(), 2);
        let told = "granted: button_press; refused: audio_chunk (needs the permission MICROPHONE), \
                    translation:es-ES-to-en-US (needs the permission MICROPHONE)";
        assert_eq!(subscriptions.told(), told);
        assert_eq!(changed.denied[0].required_permission, "MICROPHONE");
        assert_eq!(subscriptions.replace(names(&list), &names(&["CAMERA"]), OFFER), Changed::default());
        let changed = subscriptions.replace(names(&["transcription:fr-FR"]), &all(), OFFER);
        assert_eq!(changed.unserved.len(), 1);
        assert!(changed.unserved[0].1.contains("fr-FR"), "{changed:?}");
    }

    #[test]
    fn a_touch_goes_to_whoever_wants_it() {
        let mut subscriptions = Subscriptions::default();
        subscriptions.replace(
            names(&["touch_event", "touch_event:forward_swipe", "touch_event:single_tap"]),
            &[],
            OFFER,
        );
        let touch = Event::Touch { model: "Sim".into(), gesture: "forward_swipe" };
        let out: Vec<&str> = subscriptions.of(&touch).into_iter().map(|(name, _)| name).collect();
        assert_eq!(out, ["touch_event", "touch_event:forward_swipe"]);
    }

    #[test]
    fn a_list_is_bounded() {
        let mut subscriptions = Subscriptions::default();
        let many = (0..1_000).map(|index| format!("touch_event:{index}")).collect();
        subscriptions.replace(many, &[], OFFER);
        assert_eq!(subscriptions.served.len(), SUBSCRIPTIONS_MAX);
        subscriptions.replace(vec![format!("touch_event:{}", "x".repeat(300))], &[], OFFER);
        assert!(!subscriptions.any());
    }

    #[test]
    fn the_location_is_for_the_names_that_a_list_adds() {
        let located = Offer { located: true, ..OFFER };
        let mut subscriptions = Subscriptions::default();
        let mut replace = |names| subscriptions.replace(names, &all(), located);
        // An app that gives its streams other names again and again.
        for round in 0..1_000 {
            let list: Vec<String> = (0..SUBSCRIPTIONS_MAX).map(|n| format!("location_update?{round}.{n}")).collect();
            assert_eq!(replace(list.clone()), Changed { located: list.clone(), ..Changed::default() });
            assert_eq!(replace(list), Changed::default(), "{round}");
        }
        let of = |located: &[&str]| Changed { located: names(located), ..Changed::default() };
        assert_eq!(replace(names(&["location_stream", "VAD", "location_stream"])), of(&["location_stream"]));
        assert_eq!(replace(names(&["location_update", "location_stream"])), of(&["location_update"]));
        assert_eq!(replace(names(&["location_stream"])), of(&[]));
    }

    /// Words in the language of this code.
    fn words(language: &'static str) -> Event {
        let (utterance, text, others) = ("u1".into(), "...".into(), Arc::new([]));
        Event::Transcript { utterance, text, language, others, last: true, start_ms: 0, end_ms: 1 }
    }

    fn spoken(tags: &[&str]) -> Vec<Spoken> {
        tags.iter().filter_map(|tag| Spoken::of(tag)).collect()
    }

    #[test]
    fn what_is_granted_is_delivered_from_the_glasses_that_are_there() {
        let list =
            ["transcription:en-GB", "transcription:es-ES", "transcription:es-MX?hints=ca", "transcription:fr-FR"];
        for (tags, expected) in [
            (vec!["en"], vec![0]),
            (vec!["es", "es"], vec![1, 2]),
            (vec!["en", "fr"], vec![0, 3]),
            (vec!["de"], vec![]),
        ] {
            let mut subscriptions = Subscriptions::default();
            let offer = Offer { spoken: &spoken(&tags), ..MANY };
            let changed = subscriptions.replace(names(&list), &all(), offer);
            assert_eq!(changed.unserved.len(), list.len() - expected.len(), "{tags:?}: {changed:?}");
            for index in expected {
                let is_delivered = |tag: &&str| {
                    let event = words(Language::of(tag).expect("a language").code());
                    subscriptions.of(&event).iter().any(|(name, _)| *name == list[index])
                };
                assert!(tags.iter().any(is_delivered), "{tags:?}: {} is granted, and gets nothing", list[index]);
            }
        }
    }

    #[test]
    fn streams_are_judged_again_when_other_glasses_are_there() {
        let mut subscriptions = Subscriptions::default();
        let refused = |changed: Changed| changed.unserved.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let wanted = ["transcription:es-ES", "transcription:fr-FR", "VAD"];
        let english = Offer { spoken: &spoken(&["en"]), ..MANY };
        assert_eq!(refused(subscriptions.replace(names(&wanted), &all(), english)), wanted[..2]);
        assert!(subscriptions.told().starts_with("granted: VAD; refused: transcription:es-ES (this user's glasses"));
        assert!(subscriptions.of(&words("es")).is_empty());
        let mut judged = |tags: &[&str]| {
            let changed = subscriptions.judge_again(&all(), Offer { spoken: &spoken(tags), ..MANY });
            (refused(changed), subscriptions.of(&words("es")).len())
        };
        assert_eq!(judged(&["en", "es"]), (vec![], 1));
        assert_eq!(judged(&["en"]), (vec![], 0), "each is told once");
        assert_eq!(judged(&["auto"]), (vec![], 1));
        // Spanish glasses may come.
        assert_eq!(judged(&[]), (vec![], 1));
    }

    #[test]
    fn the_sdks_default_gets_what_no_other_stream_is_for() {
        let only_english = "transcription:en-US?no-language-identification=true";
        let told = |wanted: &[&str], tags: &[&str]| {
            let mut subscriptions = Subscriptions::default();
            let offer = Offer { spoken: &spoken(tags), ..MANY };
            let refused = subscriptions.replace(names(wanted), &all(), offer).unserved.len();
            let event = words("de");
            let of = |data: &Map<String, Value>, field: &str| data[field].as_str().unwrap_or_default().to_owned();
            let out = subscriptions.of(&event).into_iter().map(|(name, data)| {
                assert_eq!(of(&data, "detectedLanguage"), "de");
                format!("{name} in {}", of(&data, "transcribeLanguage"))
            });
            (refused, out.collect::<Vec<_>>().join(", "))
        };
        for default in ["transcription:en-US", "transcription:en-US?hints=en%2Cja", "transcription"] {
            assert_eq!(told(&[default], &["de"]), (0, format!("{default} in en-US")));
            assert_eq!(
                told(&[default, "transcription:de-DE"], &["de"]),
                (0, "transcription:de-DE in de-DE".to_owned())
            );
            assert_eq!(told(&[default, "transcription:auto"], &["auto"]), (0, "transcription:auto in de".to_owned()));
        }
        assert_eq!(told(&[only_english], &["de"]), (1, String::new()), "it gets nothing, and is told so");
        assert_eq!(told(&[only_english], &["auto"]), (0, String::new()));
    }

    #[test]
    fn a_stream_that_got_words_of_another_language_gets_an_empty_last_text() {
        let told = |wanted: &[&str]| {
            let mut subscriptions = Subscriptions::default();
            assert_eq!(subscriptions.replace(names(wanted), &all(), MANY), Changed::default());
            let (utterance, text, others) = ("u1".into(), "Hello.".into(), Arc::new(["es", "fr"]));
            let event =
                Event::Transcript { utterance, text, language: "en", others, last: true, start_ms: 0, end_ms: 1 };
            let out = subscriptions.of(&event).into_iter().map(|(name, data)| {
                assert_eq!((&data["isFinal"], &data["utteranceId"]), (&json!(true), &json!("u1")));
                let of = |field: &str| data[field].as_str().unwrap_or_default().to_owned();
                format!("{name}: {} {}", of("detectedLanguage"), of("text"))
            });
            out.collect::<Vec<_>>()
        };
        let [english, spanish, any] = ["transcription:en-GB", "transcription:es-ES", "transcription:auto"];
        assert_eq!(told(&[spanish, english]), [format!("{english}: en Hello."), format!("{spanish}: es ")]);
        assert_eq!(told(&[spanish]), [format!("{spanish}: es ")]);
        assert_eq!(told(&[any, spanish]), [format!("{any}: en Hello."), format!("{spanish}: es ")]);
        // The SDK's default has got all of them.
        assert_eq!(told(&["transcription:en-US"]), ["transcription:en-US: en Hello."]);
        assert!(told(&["transcription:de-DE"]).is_empty());
    }

    #[test]
    fn a_translation_from_a_language_that_no_stream_names_goes_to_those_that_there_are() {
        let mut subscriptions = Subscriptions::default();
        let mut told_of = |wanted: &[&str], language, is_own| {
            assert_eq!(subscriptions.replace(names(wanted), &all(), MANY), Changed::default());
            let (utterance, text) = ("u1".into(), "hello".into());
            let event =
                Event::Translation { utterance, text, original: None, language, is_own, start_ms: 0, end_ms: 1 };
            let out = subscriptions.of(&event).into_iter();
            out.map(|(_, data)| data["transcribeLanguage"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        let (spanish, any) = ("translation:es-ES-to-en-US", "translation:all-to-en-US");
        assert!(told_of(&[spanish], "de", true).is_empty(), "the wearer's own words are no Spanish");
        assert_eq!(told_of(&[spanish, any], "de", true), ["de"]);
        assert_eq!(told_of(&[spanish], "es", true), ["es-ES"]);
        let mut told = |wanted: &[&str], language| told_of(wanted, language, false);
        assert_eq!(told(&[spanish], "es"), ["es-ES"]);
        assert_eq!(told(&[spanish, "VAD"], "ca"), ["es-ES"], "the detection is a guess");
        assert_eq!(told(&[spanish, "translation:ca-ES-to-en-US"], "ca"), ["ca-ES"]);
        assert_eq!(told(&[spanish, any], "ca"), ["ca"]);
        assert!(told(&[spanish], "en").is_empty(), "there is nothing to translate");
        assert_eq!(told(&[spanish, any], "en"), ["en"]);
    }

    #[test]
    fn what_is_translated_need_not_be_in_the_language_of_the_settings() {
        for tag in ["fr", "en", "auto"] {
            let offer = Offer { understood: Understood { configured: Spoken::of(tag), ..MANY.understood }, ..MANY };
            for from in ["es", "fr", "all"] {
                let judged = judge(&format!("translation:{from}-to-en"), &all(), offer);
                assert!(matches!(judged, Judged::Served(_)), "{from} where {tag} is set");
            }
        }
    }

    #[test]
    fn languages_are_served_as_the_weights_know_them() {
        let mut subscriptions = Subscriptions::default();
        let wanted = ["transcription:en-US", "transcription:es-ES", "transcription:auto", "translation:es-ES-to-en-US"];
        let all_to = "translation:all-to-en-GB";
        let of_two = names(&[&wanted[..], &[all_to]].concat());
        assert_eq!(subscriptions.replace(of_two, &all(), MANY), Changed::default());
        let spanish = Spoken::of("es").expect("a language");
        assert!(subscriptions.wants().translations == [spanish, Spoken::Detected] && subscriptions.wants().words);
        let told = |event: &Event| {
            let out = subscriptions.of(event);
            out.into_iter().map(|(name, data)| (name.to_owned(), data)).collect::<Vec<_>>()
        };
        let out = told(&words("es"));
        assert_eq!(out.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), [wanted[1], wanted[2]]);
        assert_eq!((&out[0].1["transcribeLanguage"], &out[1].1["transcribeLanguage"]), (&json!("es-ES"), &json!("es")));
        let translated = |language| Event::Translation {
            utterance: "u1".into(),
            text: Arc::from("hello"),
            original: None,
            language,
            is_own: false,
            start_ms: 0,
            end_ms: 1,
        };
        let out = told(&translated("es"));
        assert_eq!(out.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), [wanted[3], all_to]);
        assert_eq!((&out[1].1["transcribeLanguage"], &out[1].1["translateLanguage"]), (&json!("es"), &json!("en-GB")));
        assert_eq!((&out[0].1["didTranslate"], &out[0].1["isFinal"]), (&json!(true), &json!(true)));
        assert_eq!(told(&translated("fr")).len(), 1);
        for name in ["translation:en-US-to-fr-FR", "translation:es", "translation", "translation:xx-to-en"] {
            assert!(matches!(judge(name, &all(), MANY), Judged::Unserved(_)), "{name}");
        }
        assert!(matches!(judge("transcription:xx", &all(), MANY), Judged::Unserved(_)));
        let french = Offer {
            understood: Understood { configured: Language::of("fr").map(Spoken::Is), ..MANY.understood },
            ..MANY
        };
        for (name, served) in
            [("transcription:en-GB", false), ("transcription:en-US", true), ("transcription:fr", true)]
        {
            assert_eq!(matches!(judge(name, &all(), french), Judged::Served(_)), served, "{name}");
        }
    }
}
