//! Settings of apps, in the apps' format: those that they declare with the user's values, and the gateway's.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use serde_json::{Map, Value, json};
use tokio::sync::OwnedMutexGuard;

use crate::clock;

/// Bytes of one value: a choice or a line of text.
pub(super) const VALUE_BYTES_MAX: usize = 8 * 1024;

/// The settings with their `value`: the user's, else the default. `session.settings.get` of the SDK reads nothing else.
pub(super) fn filled(declared: &[Value], set: &Map<String, Value>) -> Vec<Value> {
    let fill = |setting: &Value| {
        let mut setting = setting.clone();
        let fields = setting.as_object_mut()?;
        let key = fields.get("key")?.as_str()?;
        let value = set.get(key).or_else(|| fields.get("value")).or_else(|| fields.get("defaultValue")).cloned();
        fields.insert("value".to_owned(), value.unwrap_or(Value::Null));
        Some(setting)
    };
    declared.iter().filter_map(fill).collect()
}

/// Stores a value in `set`.
///
/// # Errors
/// The app has no such setting, or the value does not fit its kind.
pub(super) fn set(declared: &[Value], set: &mut Map<String, Value>, key: &str, value: Value) -> Result<(), String> {
    let Some(setting) = declared.iter().find(|setting| setting.get("key").and_then(Value::as_str) == Some(key)) else {
        let known: Vec<&str> = declared.iter().filter_map(|setting| setting.get("key")?.as_str()).collect();
        return Err(match known.is_empty() {
            true => format!("the app has no setting `{key}`, and no others"),
            false => format!("the app has no setting `{key}`; it has: {}", known.join(", ")),
        });
    };
    if value.to_string().len() > VALUE_BYTES_MAX {
        return Err(format!("a setting has at most {VALUE_BYTES_MAX} bytes"));
    }
    let fits = match setting.get("type").and_then(Value::as_str) {
        Some("toggle") => value.is_boolean(),
        Some("number" | "slider" | "numeric_input") => value.is_number(),
        Some("text" | "text_no_save_button") => value.is_string(),
        Some("select" | "select_with_search") => {
            let choices = setting.get("options").and_then(Value::as_array);
            choices.is_none_or(|choices| choices.iter().any(|choice| choice.get("value") == Some(&value)))
        }
        _ => true,
    };
    if !fits {
        return Err(format!("{value} does not fit the setting `{key}`"));
    }
    set.insert(key.to_owned(), value);
    Ok(())
}

/// The gateway's settings in the apps' format. 3.x reads the time zone under another name, and the app's permissions.
pub(super) fn system_settings(zone: &str, permissions: &[String]) -> Value {
    let may = |permission: &str| permissions.iter().any(|has| has == permission || has == "ALL");
    json!({
        "permissions": {
            "location": may("LOCATION"),
            "microphone": may("MICROPHONE"),
            "camera": may("CAMERA"),
            "notifications": may("READ_NOTIFICATIONS"),
            "calendar": may("CALENDAR"),
        },
        "metricSystemEnabled": true,
        "contextualDashboard": true,
        "sensingEnabled": true,
        "alwaysOnStatusBar": false,
        "bypassVad": false,
        "bypassAudioEncoding": false,
        "preferredMic": "glasses",
        "useOnboardMic": true,
        "userTimezone": zone,
        "timezone": zone,
    })
}

/// The name of the time zone, in the apps' format.
pub(super) fn zone() -> String {
    clock::zone().iana_name().unwrap_or("UTC").to_owned()
}

/// Locks of settings by user and package, as long as somebody holds one or waits for it.
#[derive(Default)]
pub(super) struct SettingsLocks(Mutex<BTreeMap<(String, String), Weak<Lock>>>);

type Lock = tokio::sync::Mutex<()>;

impl SettingsLocks {
    /// Waits until nobody else has the settings of this user and package.
    pub(super) async fn lock(&self, user: &str, package: &str) -> OwnedMutexGuard<()> {
        let own = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            locks.retain(|_, lock| lock.strong_count() > 0);
            let place = locks.entry((user.to_owned(), package.to_owned())).or_default();
            place.upgrade().unwrap_or_else(|| {
                let made = Arc::default();
                *place = Arc::downgrade(&made);
                made
            })
        };
        own.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared() -> Vec<Value> {
        vec![
            json!({"type": "group", "title": "no key"}),
            json!({"key": "lang", "type": "text", "label": "Lang", "defaultValue": "en"}),
            json!({"key": "loud", "type": "toggle"}),
            json!({"key": "size", "type": "select", "options": [{"value": "s"}, {"value": "l"}], "defaultValue": "s"}),
        ]
    }

    #[test]
    fn rule_4_every_setting_has_a_value() {
        let mut own = Map::new();
        own.insert("size".into(), "l".into());
        let filled = filled(&declared(), &own);
        assert_eq!(filled.len(), 3);
        assert_eq!(
            (&filled[0]["value"], &filled[1]["value"], &filled[2]["value"]),
            (&json!("en"), &json!(null), &json!("l"))
        );
    }

    #[test]
    fn what_an_app_may_do_stands_in_the_system_settings() {
        let settings = system_settings("Europe/Paris", &["MICROPHONE".to_owned()]);
        assert_eq!(
            (&settings["permissions"]["microphone"], &settings["permissions"]["camera"]),
            (&json!(true), &json!(false))
        );
        assert_eq!(
            (&settings["userTimezone"], &settings["timezone"]),
            (&json!("Europe/Paris"), &json!("Europe/Paris"))
        );
        assert_eq!(system_settings("UTC", &["ALL".to_owned()])["permissions"]["location"], true);
    }

    #[test]
    fn only_what_fits_is_taken() {
        let mut own = Map::new();
        assert!(set(&declared(), &mut own, "lang", json!("fr")).is_ok());
        assert!(set(&declared(), &mut own, "loud", json!("yes")).unwrap_err().contains("loud"));
        assert!(set(&declared(), &mut own, "size", json!("xl")).is_err());
        assert!(set(&declared(), &mut own, "nothing", json!(1)).unwrap_err().contains("lang, loud, size"));
        assert!(set(&declared(), &mut own, "lang", json!("x".repeat(VALUE_BYTES_MAX))).is_err());
        assert_eq!(Value::Object(own), json!({"lang": "fr"}));
    }
}
