//! Which streams an app is given: a name is judged by the app's permissions and by what the gateway can provide.

use audio::asr::{Language, Spoken};

use crate::speech::language::Understood;

/// A stream that the gateway provides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Transcripts, under the app's name for the language.
    Transcription {
        /// As in the stream's name; `None`: any, as it is spoken.
        language: Option<String>,
        /// Whether the SDK names this language where the app names none: then it is for those as well for which the app has no
        /// stream.
        is_default: bool,
    },
    /// Translations into English.
    Translation {
        /// The language that is spoken; `None`: any.
        from: Option<Language>,
        /// The app's name for it.
        source: String,
        /// The app's name for English.
        target: String,
    },
    /// Whether someone speaks.
    Voice,
    /// Sound, as binary frames.
    Audio,
    /// Button presses.
    Button,
    /// Touches; only one gesture if the name contains it.
    Touch(Option<String>),
    /// Movements of the head.
    Head,
    /// The glasses' battery.
    Battery,
    /// Connection of the glasses.
    Connection,
    /// Location of the wearer.
    Location,
}

impl Stream {
    /// From which language it translates, if it does.
    pub(crate) fn translates(&self) -> Option<Spoken> {
        match self {
            Self::Translation { from, .. } => Some(from.map_or(Spoken::Detected, Spoken::Is)),
            _ => None,
        }
    }
}

/// What this gateway can provide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer<'a> {
    /// Which languages the recogniser understands.
    pub understood: Understood,
    /// What is spoken to the user's glasses that are there.
    pub spoken: &'a [Spoken],
    /// Whether the gateway's location is configured.
    pub located: bool,
}

/// The result of one subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// The app is sent its events.
    Served(Stream),
    /// A permission is missing.
    Denied(&'static str),
    /// The gateway does not provide it; with the reason as text.
    Unserved(String),
    /// Not a known stream: names of an app's own messages look like this. Ignored.
    Unknown,
}

/// The answer to a request for the location if none is configured.
pub(crate) const NO_PLACE: &str = "this gateway was not told where it stands (`apps.location` in its settings)";

const MICROPHONE: &str = "MICROPHONE";

/// The language that the SDK names where an app names none, and the option by which an app says that it means no other.
const DEFAULT_LANGUAGE: &str = "en-US";
const ONLY_THIS_LANGUAGE: &str = "no-language-identification=true";
/// A language that the operator excludes.
const ANOTHER_IS_SET: &str =
    "this gateway was told that another language is spoken (`hearing.language` in its settings)";

/// Checks one name.
pub(crate) fn judge(name: &str, permissions: &[String], offer: Offer<'_>) -> Judged {
    let (bare, options) = name.split_once('?').unwrap_or((name, ""));
    let (kind, detail) = bare.split_once(':').map_or((bare, None), |(kind, detail)| (kind, Some(detail)));
    let allowed = |needed: &str| permissions.iter().any(|has| has == needed || has == "ALL");
    let needed = match kind {
        "transcription" | "translation" | "VAD" | "audio_chunk" => Some(MICROPHONE),
        "location_update" | "location_stream" => Some("LOCATION"),
        "calendar_event" => Some("CALENDAR"),
        "phone_notification" | "phone_notification_dismissed" | "notification_dismissed" => Some("READ_NOTIFICATIONS"),
        "photo_taken" | "photo_response" | "video" => Some("CAMERA"),
        "rtmp_stream_status" | "stream_status" | "managed_stream_status" => Some("CAMERA"),
        _ => None,
    };
    if let Some(needed) = needed.filter(|needed| !allowed(needed)) {
        return Judged::Denied(needed);
    }
    match (kind, detail) {
        ("transcription", detail) => transcription(detail.unwrap_or(DEFAULT_LANGUAGE), options, offer),
        ("translation", detail) => translation(detail.unwrap_or_default(), offer.understood),
        ("VAD", _) => Judged::Served(Stream::Voice),
        ("audio_chunk", _) => Judged::Served(Stream::Audio),
        ("button_press", _) => Judged::Served(Stream::Button),
        ("touch_event", gesture) => Judged::Served(Stream::Touch(gesture.map(ToOwned::to_owned))),
        ("head_position", _) => Judged::Served(Stream::Head),
        ("glasses_battery_update", _) => Judged::Served(Stream::Battery),
        ("glasses_connection_state", _) => Judged::Served(Stream::Connection),
        ("video" | "rtmp_stream_status" | "stream_status" | "managed_stream_status", _) => {
            Judged::Unserved("this gateway carries no video".to_owned())
        }
        ("location_update" | "location_stream", _) if offer.located => Judged::Served(Stream::Location),
        ("location_update" | "location_stream" | "vps_coordinates", _) => Judged::Unserved(NO_PLACE.to_owned()),
        ("photo_taken" | "photo_response", _) => {
            Judged::Unserved("photos are delivered to the app that asked for them".to_owned())
        }
        (
            "calendar_event"
            | "phone_notification"
            | "phone_notification_dismissed"
            | "notification_dismissed"
            | "phone_battery_update",
            _,
        ) => Judged::Unserved("no telephone is connected to this gateway".to_owned()),
        _ => Judged::Unknown,
    }
}

fn transcription(wanted: &str, options: &str, Offer { understood, spoken, .. }: Offer<'_>) -> Judged {
    if wanted == "auto" {
        return Judged::Served(Stream::Transcription { language: None, is_default: false });
    }
    let is_default = wanted == DEFAULT_LANGUAGE && !options.split('&').any(|option| option == ONLY_THIS_LANGUAGE);
    match Language::of(wanted) {
        Some(language) if is_default || understood.hears(language, spoken) => {
            Judged::Served(Stream::Transcription { language: Some(wanted.to_owned()), is_default })
        }
        Some(language) if understood.knows(language) => Judged::Unserved(match understood.configured {
            Some(_) => ANOTHER_IS_SET.to_owned(),
            None => format!("this user's glasses are set to another language than `{wanted}`, and are heard in theirs"),
        }),
        _ => Judged::Unserved(format!("the speech model of this gateway does not understand `{wanted}`")),
    }
}

/// "es-ES-to-en-US", or "all-to-en-US".
fn translation(wanted: &str, understood: Understood) -> Judged {
    let Some((source, target)) = wanted.split_once("-to-") else {
        return Judged::Unserved(format!("`{wanted}` does not name two languages, such as `es-ES-to-en-US`"));
    };
    if Language::of(target) != Some(Language::ENGLISH) {
        return Judged::Unserved("this gateway translates into English only".to_owned());
    }
    if !understood.translates {
        let why = "the speech model of this gateway knows English only: its operator can run `lorgnette models fetch whisper-base`";
        return Judged::Unserved(why.to_owned());
    }
    let from = Language::of(source);
    match from {
        None if source != "all" => {
            Judged::Unserved(format!("the speech model of this gateway does not understand `{source}`"))
        }
        _ => Judged::Served(Stream::Translation { from, source: source.to_owned(), target: target.to_owned() }),
    }
}
