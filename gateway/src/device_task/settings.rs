//! The sections `[assistant]` and `[display]`, and the settings of a session.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use gateway_core::{
    conversation::{self, DisplayConfig},
    user,
};
use serde::Deserialize;
use toml::Spanned;

use crate::{
    limits::Limits,
    problems::{Problems, unwritten},
    speech::settings::Voice,
};

/// Longest personality in characters: it is part of every request.
const PERSONALITY_CHARS_MAX: usize = 2_000;

/// Settings of device sessions.
#[derive(Clone, Debug)]
pub struct SessionSettings {
    /// BCP 47 tag for devices that send none.
    pub language: String,
    /// Whether devices that hear wake phrases by themselves are taken at their word.
    pub device_wake: bool,
    /// Folder for photos.
    pub data_dir: PathBuf,
    /// Number of sessions, and limits of each.
    pub limits: Limits,
    /// How long a microphone may send samples of one value before it counts as dead, in microseconds; `None`: for ever.
    pub dead_microphone_us: Option<u64>,
    /// What may change while the gateway runs.
    pub current: Current,
}

impl SessionSettings {
    /// The settings of sessions that begin now.
    pub fn now(&self) -> Arc<Changeable> {
        self.current.get()
    }
}

/// Settings that may change while the gateway runs: a session keeps those with which it began.
#[derive(Clone, Debug)]
pub struct Changeable {
    /// The gateway's name as shown to devices.
    pub gateway_name: String,
    /// How the assistant speaks.
    pub voice: Voice,
    /// Settings of every conversation.
    pub conversation: conversation::Config,
}

/// The keys of the configuration, or the sections, that [`Changeable::changed`] takes over.
pub(crate) const CHANGEABLE: [&str; 20] = [
    "name",
    "voice.earcons",
    "voice.speed",
    "voice.volume",
    "display",
    "quiet_hours",
    "hearing.wake_phrases",
    "hearing.always_listening",
    "hearing.follow_up_ms",
    "hearing.silence_ms",
    "hearing.silence_command_ms",
    "hearing.silence_complete_ms",
    "hearing.silence_incomplete_ms",
    "hearing.silence_trailing_ms",
    "hearing.partial_interval_ms",
    "assistant.instructions",
    "assistant.place",
    "budgets.tokens_per_turn",
    "budgets.seconds_per_turn",
    "budgets.steps_per_turn",
];

impl Changeable {
    /// These settings with those of another configuration, as far as they may change: not which models answer.
    pub(crate) fn changed(&self, name: String, voice: Voice, new: conversation::Config) -> Self {
        let mut conversation = self.conversation.clone();
        conversation.wake_phrases = new.wake_phrases;
        conversation.always_listening = new.always_listening;
        conversation.follow_up_ms = new.follow_up_ms;
        conversation.silence_ms = new.silence_ms;
        conversation.silence_command_ms = new.silence_command_ms;
        conversation.silence_complete_ms = new.silence_complete_ms;
        conversation.silence_incomplete_ms = new.silence_incomplete_ms;
        conversation.silence_trailing_ms = new.silence_trailing_ms;
        conversation.partial_interval_ms = new.partial_interval_ms;
        conversation.display = new.display;
        conversation.quiet_hours = new.quiet_hours;
        conversation.earcons = new.earcons;
        conversation.display_interval_ms = new.display_interval_ms;
        conversation.place = new.place;
        conversation.turn_tokens_max = new.turn_tokens_max;
        conversation.turn_ms_max = new.turn_ms_max;
        conversation.model_requests_max = new.model_requests_max;
        // Without written ones they depend on the model.
        if new.conversational == conversation.conversational {
            conversation.instructions = new.instructions;
        }
        Self { gateway_name: name, voice, conversation }
    }
}

/// The settings that count now.
#[derive(Clone, Debug)]
pub struct Current(Arc<RwLock<Arc<Changeable>>>);

impl Current {
    /// From the start.
    pub(crate) fn new(settings: Changeable) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(settings))))
    }

    /// Those that count now.
    pub fn get(&self) -> Arc<Changeable> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Those that count from now on.
    pub(crate) fn put(&self, settings: Changeable) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }
}

/// Checks the name shown to devices.
pub(crate) fn check_name(problems: &mut Problems<'_>, name: &Spanned<String>) {
    let given = name.get_ref();
    let bytes_max = device_protocol::limits::NAME_BYTES_MAX;
    if given.trim().is_empty() || given.len() > bytes_max || given.chars().any(char::is_control) {
        problems.at(name.span(), format!("`name` needs 1 to {bytes_max} bytes without control characters"));
    }
}

/// Checks the language for devices that send none.
pub(crate) fn check_language(problems: &mut Problems<'_>, language: &Spanned<String>) {
    let given = language.get_ref();
    let is_tag = given
        .split('-')
        .all(|part| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    if !is_tag {
        problems.at(language.span(), format!("`language` is `{given}`; it must be a tag such as en or en-GB"));
    }
}

/// `[assistant]` as configured.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawAssistant {
    instructions: String,
    /// Whether the box answers when no model does. Part of the models' settings.
    pub(crate) offline_fallback: bool,
    apply_tools_now: bool,
    place: String,
    conversation_pause_min: Spanned<u32>,
    personality: Spanned<BTreeMap<String, String>>,
}

impl Default for RawAssistant {
    fn default() -> Self {
        Self {
            instructions: String::new(),
            offline_fallback: true,
            apply_tools_now: false,
            place: String::new(),
            conversation_pause_min: unwritten(30),
            personality: unwritten(BTreeMap::new()),
        }
    }
}

/// The assistant's behaviour, apart from what the core's settings contain.
#[derive(Clone, Debug)]
pub struct Assistant {
    /// Whether a turn restarts when its tools change.
    pub apply_tools_now: bool,
    /// How it speaks, by parts of models' names; `default` for all others.
    pub personality: BTreeMap<String, String>,
}

impl RawAssistant {
    /// Checks the section; the core's part goes into `conversation`, which must already contain whether a model answers
    /// what is no command.
    pub(crate) fn check(
        self,
        problems: &mut Problems<'_>,
        conversation: &mut conversation::Config,
        user: &mut user::Config,
    ) -> Assistant {
        for (family, text) in self.personality.get_ref() {
            if family.trim().is_empty() || text.trim().is_empty() || text.chars().count() > PERSONALITY_CHARS_MAX {
                let what = format!("`assistant.personality.{family}` has 1 to {PERSONALITY_CHARS_MAX} characters");
                problems.at(self.personality.span(), what);
            }
        }
        let key = "assistant.conversation_pause_min";
        user.pause_ms = problems.between(&self.conversation_pause_min, key, 1..=10_080).saturating_mul(60_000);
        conversation.instruct(self.instructions);
        conversation.place = (!self.place.trim().is_empty()).then_some(self.place);
        Assistant { apply_tools_now: self.apply_tools_now, personality: self.personality.into_inner() }
    }
}

/// `[display]` as configured.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawDisplay {
    interval_ms: Spanned<u32>,
    app_interval_ms: Spanned<u32>,
    boot_ms: Spanned<u32>,
    lock_ms_max: Spanned<u32>,
    lock_idle_ms: Spanned<u32>,
    consumed_ms: Spanned<u32>,
    captions: bool,
    caption_ms: Spanned<u32>,
    timers: bool,
}

impl Default for RawDisplay {
    fn default() -> Self {
        let conversation = conversation::Config::default();
        let display = conversation.display;
        Self {
            interval_ms: unwritten(conversation.display_interval_ms),
            app_interval_ms: unwritten(display.app_interval_ms),
            boot_ms: unwritten(display.boot_ms),
            lock_ms_max: unwritten(display.lock_ms_max),
            lock_idle_ms: unwritten(display.lock_idle_ms),
            consumed_ms: unwritten(display.consumed_ms),
            captions: display.captions,
            caption_ms: unwritten(display.caption_ms),
            timers: display.timers,
        }
    }
}

impl RawDisplay {
    /// Checks the section, all of which belongs to the core.
    pub(crate) fn check(&self, problems: &mut Problems<'_>, conversation: &mut conversation::Config) {
        conversation.display = DisplayConfig {
            app_interval_ms: problems.between(&self.app_interval_ms, "display.app_interval_ms", 0..=10_000),
            boot_ms: problems.between(&self.boot_ms, "display.boot_ms", 0..=10_000),
            lock_ms_max: problems.between(&self.lock_ms_max, "display.lock_ms_max", 0..=300_000),
            lock_idle_ms: problems.between(&self.lock_idle_ms, "display.lock_idle_ms", 0..=300_000),
            consumed_ms: problems.between(&self.consumed_ms, "display.consumed_ms", 0..=60_000),
            captions: self.captions,
            caption_ms: problems.between(&self.caption_ms, "display.caption_ms", 500..=60_000),
            timers: self.timers,
        };
        problems.in_order((&self.lock_idle_ms, "display.lock_idle_ms"), (&self.lock_ms_max, "display.lock_ms_max"));
        conversation.display_interval_ms = problems.between(&self.interval_ms, "display.interval_ms", 50..=10_000);
    }
}

#[cfg(test)]
mod tests {
    use crate::config::check;

    fn problems(text: &str) -> Vec<(usize, String)> {
        check(text, "x.toml").unwrap_err().into_iter().map(|problem| (problem.line.unwrap(), problem.what)).collect()
    }

    #[test]
    fn the_display_has_its_figures_within_bounds() {
        let text = "[display]\ninterval_ms = 1000\nboot_ms = 0\ncaptions = true\ncaption_ms = 5000\ntimers = false\n";
        let conversation = check(text, "x.toml").unwrap().conversation;
        let display = conversation.display;
        assert_eq!((conversation.display_interval_ms, display.boot_ms, display.caption_ms), (1_000, 0, 5_000));
        assert!(display.captions && !display.timers);
        for (line, words) in [
            ("interval_ms = 10", "between 50 and 10000"),
            ("caption_ms = 1", "between 500 and 60000"),
            ("lock_idle_ms = 20000", "at most `display.lock_ms_max`"),
            ("lock_ms_max = 1", "at least `display.lock_idle_ms`"),
            ("captons = true", "captons"),
        ] {
            let found = problems(&format!("[display]\n{line}\n"));
            assert_eq!((found.len(), found[0].0), (1, 2), "{found:?}");
            assert!(found[0].1.contains(words), "{found:?}");
        }
    }
}
