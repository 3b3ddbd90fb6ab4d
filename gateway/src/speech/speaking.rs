//! Volume and pace of the speech for one device: set by the wearer's words, kept, and offered as tools.
//!
//! Glasses that set their volume themselves offer a tool `audio.volume`; for all others with a speaker the gateway adds
//! one, which scales the sound that it sends. `audio.speed` works in the same way.

use gateway_core::vocab::{ErrorCode, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tools::{definition::Hints, device::Offer};

use super::settings::Voice;
use crate::store::{self, Kind, Store, Write};

/// Name of the tool for the volume.
const VOLUME: &str = "audio.volume";
/// Name of the tool for the pace.
const SPEED: &str = "audio.speed";
/// Step of "louder" and "quieter" in percent.
const VOLUME_STEP: u16 = 20;
/// Step of "faster" and "slower" in percent.
const SPEED_STEP: u16 = 15;
/// Bounds of the pace in percent: those of the voice.
const SPEED_RANGE: std::ops::RangeInclusive<u16> = 50..=200;
/// The pace of `voice.speed = 1.0`.
const SPEED_USUAL: u16 = 100;

const VOLUME_SCHEMA: &str = r#"{"type":"object","properties":{"level":{"type":"integer","minimum":0,"maximum":100,"description":"Percent.","examples":[50]},"change":{"type":"string","enum":["up","down"],"description":"Instead of a level: a step up or down."}},"additionalProperties":false}"#;
const SPEED_SCHEMA: &str = r#"{"type":"object","properties":{"level":{"type":"integer","minimum":50,"maximum":200,"description":"Percent of the usual speed.","examples":[120]},"change":{"type":"string","enum":["faster","slower"],"description":"Instead of a level: a step."}},"additionalProperties":false}"#;

const VOLUME_PHRASES: &[&str] = &[
    // The first one is what help shows.
    "{change=up} louder",
    "{change=down} (quieter|softer)",
    "(set|change|turn|put) [the|my|your] [speaker] volume [up|down] (to|at) {level:number} [percent]",
    "[set] [the|my|your] volume {level:number} [percent]",
    "{level=100} (full|maximum|max) volume",
    "turn [the|my|your] (volume|sound) {change} [a bit|a little]",
    "(turn up|increase|raise) {change=up} [the|my|your] (volume|sound|voice) [a bit|a little]",
    "(turn down|decrease|reduce|lower) {change=down} [the|my|your] (volume|sound|voice) [a bit|a little]",
    "turn it {change} [a bit|a little]",
    "[the] volume {change}",
    "(speak|talk|be|get|make it) {change=up} [a] [bit|little] louder",
    "(speak|talk|be|get|make it) {change=down} [a] [bit|little] (quieter|softer|more quietly|more softly)",
    "you are {change=down} [a] [bit|little] too loud",
    "you are {change=up} [a] [bit|little] too quiet",
    "i (can not|can hardly|can barely) {change=up} hear you",
    "what is (the|my|your) volume",
    "how loud are you",
];
const SPEED_PHRASES: &[&str] = &[
    "(speak|talk) {change=slower} [a] [bit|little] (slower|more slowly)",
    "(speak|talk) {change=faster} [a] [bit|little] (faster|more quickly)",
    "slow down {change=slower} [your speech|your voice]",
    "(speed up|hurry up) {change=faster} your (speech|voice)",
    "not {change=slower} so fast",
    "(you speak|you talk|you are|you are speaking|you are talking) {change=slower} [a] [bit|little] too (fast|quickly)",
    "(you speak|you talk|you are|you are speaking|you are talking) {change=faster} [a] [bit|little] too (slow|slowly)",
    "(speak|talk) {level=100} (at|with) [your|the|a] (normal|usual) (speed|pace) [again]",
    "[set] [the|your|my] (speaking|speech|voice|talking) speed [to|at] {level:number} [percent]",
    "how fast do you (speak|talk)",
];

/// What the wearer has set; the configuration counts for the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Settings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    volume: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    speed: Option<u16>,
}

/// Volume and pace of one device, and whether the gateway has the tools for them.
pub(crate) struct Speaking {
    store: Store,
    user: String,
    device: String,
    configured: Voice,
    kept: Settings,
    own: Vec<&'static str>,
}

impl Speaking {
    /// As the wearer has set it before. A row that cannot be read counts as none.
    pub(crate) fn load(store: &Store, user: &str, device: &str, configured: Voice) -> Self {
        let row = store.disk().row(Kind::Speaking, user, device.as_bytes());
        let row = row.inspect_err(|error| tracing::warn!(%error, device, "volume and pace could not be read"));
        let kept = row.ok().flatten().and_then(|row| serde_json::from_slice(&row).ok()).unwrap_or_default();
        let (store, user, device) = (store.clone(), user.to_owned(), device.to_owned());
        Self { store, user, device, configured, kept, own: Vec::new() }
    }

    fn volume_percent(&self) -> u8 {
        self.kept.volume.unwrap_or(self.configured.volume_percent).min(100)
    }

    fn speed_percent(&self) -> u16 {
        let configured = (self.configured.speed * 100.0).round() as u16;
        self.kept.speed.unwrap_or(configured).clamp(*SPEED_RANGE.start(), *SPEED_RANGE.end())
    }

    /// The factor of the sound: its square makes equal steps of the percentage sound about equal.
    pub(crate) fn gain(&self) -> f32 {
        (f32::from(self.volume_percent()) / 100.0).powi(2)
    }

    /// The factor of the pace.
    pub(crate) fn speed(&self) -> f32 {
        f32::from(self.speed_percent()) / 100.0
    }

    /// The offers of the glasses and those that they lack.
    pub(crate) fn complete(&mut self, mut offers: Vec<Offer>) -> Vec<Offer> {
        self.own.clear();
        for own in own_offers() {
            if !offers.iter().any(|offer| offer.name == own.0) {
                self.own.push(own.0);
                offers.push(own.1);
            }
        }
        offers
    }

    /// Whether this is a tool of the gateway, not of the glasses.
    pub(crate) fn has(&self, tool: &str) -> bool {
        self.own.contains(&tool)
    }

    /// Runs a tool of the gateway.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> ToolResult {
        let before = self.kept;
        let done = match tool {
            VOLUME => self.set_volume(arguments),
            _ => self.set_speed(arguments),
        };
        if self.kept != before {
            self.keep();
        }
        let refuse = |text| ToolResult::failed(ErrorCode::InvalidArguments, text, false);
        done.unwrap_or_else(|| refuse("give either 'level' or 'change', within their bounds"))
    }

    fn set_volume(&mut self, arguments: &Value) -> Option<ToolResult> {
        let now = u16::from(self.volume_percent());
        let wanted = match wanted(arguments, ("down", "up"), 0..=100)? {
            Wanted::Told => None,
            Wanted::Level(level) => Some(level),
            Wanted::Less => Some(now.saturating_sub(VOLUME_STEP)),
            Wanted::More => Some((now + VOLUME_STEP).min(100)),
        };
        if let Some(wanted) = wanted {
            self.kept.volume = u8::try_from(wanted).ok();
        }
        let level = self.volume_percent();
        let already = if wanted == Some(now) { "already " } else { "" };
        Some(said(format!("Volume is {already}{level} percent."), level.into()))
    }

    fn set_speed(&mut self, arguments: &Value) -> Option<ToolResult> {
        let now = self.speed_percent();
        let wanted = match wanted(arguments, ("slower", "faster"), SPEED_RANGE)? {
            Wanted::Told => None,
            Wanted::Level(level) => Some(level),
            Wanted::Less => Some(now.saturating_sub(SPEED_STEP).max(*SPEED_RANGE.start())),
            Wanted::More => Some((now + SPEED_STEP).min(*SPEED_RANGE.end())),
        };
        if let Some(wanted) = wanted {
            self.kept.speed = Some(wanted);
        }
        let level = self.speed_percent();
        Some(match (level, wanted) {
            (SPEED_USUAL, _) => said("I speak at the usual speed.".to_owned(), level),
            (_, Some(wanted)) if wanted == now => said(format!("I already speak at {level} percent."), level),
            _ => said(format!("I speak at {level} percent of the usual speed."), level),
        })
    }

    fn keep(&self) {
        let (kind, owner, key) = (Kind::Speaking, self.user.clone(), self.device.clone().into_bytes());
        let value = serde_json::to_vec(&self.kept).unwrap_or_default();
        let failed = |error: store::Error| tracing::warn!(%error, "volume and pace could not be kept");
        let write = Write::PutRow { kind, owner, key, value };
        if let Err(error) = self.store.submit(write, move |written| _ = written.map_err(failed)) {
            failed(error);
        }
    }
}

fn said(content: String, level: u16) -> ToolResult {
    ToolResult { content, data: Some(json!({ "level": level })), ..ToolResult::default() }
}

enum Wanted {
    /// Nothing is set: it is told.
    Told,
    Level(u16),
    Less,
    More,
}

/// What the arguments ask for; `None`: they are invalid.
fn wanted(arguments: &Value, (less, more): (&str, &str), bounds: std::ops::RangeInclusive<u16>) -> Option<Wanted> {
    match (arguments.get("level"), arguments.get("change")) {
        (None, None) => Some(Wanted::Told),
        (Some(level), None) => {
            let level = level.as_u64().and_then(|level| u16::try_from(level).ok());
            level.filter(|level| bounds.contains(level)).map(Wanted::Level)
        }
        (None, Some(change)) if change.as_str() == Some(less) => Some(Wanted::Less),
        (None, Some(change)) if change.as_str() == Some(more) => Some(Wanted::More),
        _ => None,
    }
}

fn own_offers() -> [(&'static str, Offer); 2] {
    let offer = |name: &str, description: &str, schema: &str, phrases: &[&str]| Offer {
        name: name.to_owned(),
        description: description.to_owned(),
        schema_json: schema.to_owned(),
        phrases_json: json!({ "en": phrases }).to_string(),
        reply: String::new(),
        hints: Hints::default(),
        timeout_ms: None,
    };
    let volume = "Sets the volume of the speech: a level in percent, or a change up or down. Without either, tells it.";
    let speed =
        "Sets how fast the assistant speaks: percent of the usual speed, or a change. Without either, tells it.";
    [
        (VOLUME, offer(VOLUME, volume, VOLUME_SCHEMA, VOLUME_PHRASES)),
        (SPEED, offer(SPEED, speed, SPEED_SCHEMA, SPEED_PHRASES)),
    ]
}

#[cfg(test)]
#[path = "speaking_tests.rs"]
mod tests;
