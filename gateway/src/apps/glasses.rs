//! Descriptions of glasses for apps.

use audio::asr::Spoken;
use serde_json::{Value, json};

/// A pair of glasses, with the properties that apps ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Glasses {
    /// Maker and model.
    pub model: String,
    /// Columns and rows of text, if they can draw; 0: unknown.
    pub display: Option<(u16, u16)>,
    /// Pixels, if they draw bitmaps.
    pub pixels: Option<(u16, u16)>,
    /// Whether the display has colours.
    pub colour: bool,
    /// What is spoken to their microphone, if they have one.
    pub microphone: Option<Spoken>,
    /// Sample rate of the speaker, if any.
    pub speaker_hz: Option<u32>,
    /// Whether they take photos.
    pub camera: bool,
    /// Whether they sense the position of the head.
    pub imu: bool,
    /// Whether they have buttons.
    pub button: bool,
}

impl Glasses {
    /// Whether they have the hardware that a manifest calls by this name. Unknown hardware is never present.
    pub(crate) fn has(&self, hardware: &str) -> bool {
        match hardware.to_ascii_uppercase().as_str() {
            "DISPLAY" => self.display.is_some(),
            "MICROPHONE" => self.microphone.is_some(),
            "SPEAKER" => self.speaker_hz.is_some(),
            "CAMERA" => self.camera,
            "IMU" => self.imu,
            "BUTTON" => self.button,
            // Whatever they are connected by, it reaches the network.
            "WIFI" => true,
            _ => false,
        }
    }

    /// In MentraOS' terms.
    pub(crate) fn capabilities(&self) -> Value {
        let display = self.display.map(|(columns, rows)| {
            let (width, height) = self.pixels.unwrap_or((columns.saturating_mul(8), rows.saturating_mul(16)));
            let mut display = json!({
                "count": 1,
                "isColor": self.colour,
                "canDisplayBitmap": self.pixels.is_some(),
            });
            // Unknown values are left out, as in MentraOS.
            if width > 0 && height > 0 {
                display["resolution"] = json!({"width": width, "height": height});
            }
            if columns > 0 && rows > 0 {
                display["maxTextLines"] = json!(rows);
                display["columns"] = json!(columns);
            }
            display
        });
        json!({
            "modelName": self.model,
            "hasDisplay": self.display.is_some(),
            "display": display,
            "hasMicrophone": self.microphone.is_some(),
            "microphone": self.microphone.map(|_| json!({"count": 1, "hasVAD": true})),
            "hasSpeaker": self.speaker_hz.is_some(),
            "speaker": self.speaker_hz.map(|_| json!({"count": 1, "isPrivate": true})),
            "hasCamera": self.camera,
            "camera": self.camera.then(|| json!({"video": {"canRecord": false, "canStream": false}})),
            "hasIMU": self.imu,
            "imu": self.imu.then(|| json!({"axisCount": 3, "hasAccelerometer": true})),
            "hasButton": self.button,
            "button": self.button.then(|| json!({"count": 1, "buttons": [{"type": "press", "events": ["press", "long_press"]}]})),
            "hasLight": false,
            "light": null,
            "power": {"hasExternalBattery": false},
            "hasWifi": true,
        })
    }
}

/// The description for apps if no glasses are connected.
pub(crate) fn none() -> Value {
    Glasses { model: "None".to_owned(), ..Glasses::default() }.capabilities()
}

/// What is spoken to these glasses, as far as they hear.
pub(crate) fn spoken<'a>(glasses: impl IntoIterator<Item = &'a Glasses>) -> Vec<Spoken> {
    glasses.into_iter().filter_map(|one| one.microphone).collect()
}

/// The required hardware that none of these glasses has.
pub(crate) fn missing<'a>(required: &'a [String], glasses: &[&Glasses]) -> Option<&'a str> {
    required.iter().find(|needed| !glasses.iter().any(|one| one.has(needed))).map(String::as_str)
}

/// Whether a message is an update about the glasses, introduced by 2.1.29 of the SDK.
pub(crate) fn is_news(message: &Value) -> bool {
    matches!(message["type"].as_str(), Some("device_state_update" | "capabilities_update"))
}

/// The full state, or changes.
pub(crate) fn state_update(fields: Value, full: bool, time: String) -> Value {
    json!({"type": "device_state_update", "state": fields, "fullSnapshot": full, "timestamp": time})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let eyes = Glasses { display: Some((40, 6)), ..Glasses::default() };
        let ears = Glasses { microphone: Spoken::of("en"), camera: true, ..Glasses::default() };
        let required = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(missing(&required(&["DISPLAY"]), &[&eyes]), None);
        assert_eq!(missing(&required(&["display", "CAMERA"]), &[&eyes]), Some("CAMERA"));
        assert_eq!(missing(&required(&["DISPLAY", "CAMERA"]), &[&eyes, &ears]), None);
        assert_eq!(missing(&required(&["TELEPORTER"]), &[&eyes, &ears]), Some("TELEPORTER"));
        // As their capabilities say.
        assert_eq!(missing(&required(&["WIFI", "LIGHT"]), &[&eyes]), Some("LIGHT"));
        assert_eq!(missing(&required(&["DISPLAY"]), &[]), Some("DISPLAY"));
        assert_eq!(missing(&[], &[]), None);
    }

    #[test]
    fn capabilities_say_what_apps_branch_on() {
        let eyes = Glasses { model: "Sim".into(), display: Some((40, 6)), ..Glasses::default() }.capabilities();
        assert_eq!(
            (&eyes["hasDisplay"], &eyes["hasCamera"], &eyes["modelName"]),
            (&json!(true), &json!(false), &json!("Sim"))
        );
        assert_eq!(eyes["display"]["maxTextLines"], 6);
        assert_eq!((&none()["modelName"], &none()["hasDisplay"]), (&json!("None"), &json!(false)));
    }
}
