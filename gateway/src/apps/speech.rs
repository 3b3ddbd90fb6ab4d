//! Speech and sound of apps: `session.audio.speak()` with the glasses' voice, sound files unchanged.

use std::time::Duration;

use gateway_core::{
    input::{Announcement, AnnouncementId, AnnouncementVoice, Input},
    vocab::AppState,
};
use reqwest::Url;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tools::apps::manifest::App;

use super::{host::Host, order::Turn, sound::Sound, speeches::Speech};
use crate::mailbox::DeviceMessage;

/// Characters of one speech: two minutes of speech.
const TEXT_CHARS_MAX: usize = 2_000;
/// How long a speech may take, in milliseconds: the SDK gives up after 60 s. A sound may also take its own length.
const SPEECH_MS_MAX: u64 = 57_000;
/// Ending of the path in URLs that SDKs make for `speak()`. They are never fetched.
const SPEAK_PATH: &str = "/api/tts";

/// Why something was not played, without an error.
pub(super) const INTERRUPTED: &str = "it was interrupted, or the glasses are gone";

/// A playback request of an app.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    /// A URL of the gateway that contains words, or the address of a file.
    pub url: String,
    /// Factor from 0 to 1, for files.
    pub volume: f32,
    /// It stops what apps are currently playing.
    pub alone: bool,
    /// The app's own name for this kind of sound: 0 to 2.
    pub track: Option<u8>,
}

/// What is sent to the glasses.
enum Voice {
    Words(String),
    Sound(Sound),
}

/// A speech that was sent to the glasses and is to be played.
struct Begun {
    id: u64,
    device: String,
    sent: bool,
    sound_ms: Option<u32>,
    seconds: Option<f64>,
    outcome: oneshot::Receiver<bool>,
}

/// The words in an audio URL; `None`: it is a sound file. 3.x of the SDK sends the path alone.
pub(super) fn words_of(url: &str) -> Option<String> {
    let ours = Url::parse("https://gateway/").ok()?;
    let url = ours.join(url).ok()?;
    if !url.path().ends_with(SPEAK_PATH) {
        return None;
    }
    let (_, text) = url.query_pairs().find(|(name, _)| name == "text")?;
    Some(text.into_owned())
}

impl Host {
    /// Speaks or plays something through the user's glasses when its turn has come; returns the seconds of a file once it was
    /// played. `file` is the sound if the app has already sent it.
    ///
    /// # Errors
    /// Why it was not played, as text.
    pub(super) async fn play(
        &self,
        user: &str,
        app: &App,
        wanted: &Wanted,
        file: Option<Vec<u8>>,
        turn: &Turn,
        stop: &CancellationToken,
    ) -> Result<Option<f64>, String> {
        let (device, rate_hz) = self.speaking(user)?;
        let ready = async {
            let voice = self.voice(app, wanted, file, rate_hz).await?;
            turn.comes().await;
            Ok::<_, String>(voice)
        };
        let voice = tokio::select! {
            biased;
            () = stop.cancelled() => return Err(INTERRUPTED.to_owned()),
            voice = ready => voice?,
        };
        let Some(voice) = voice else { return Ok(None) };
        // The app may have been stopped while it waited.
        if matches!(self.tasks.snapshot(user).state(&app.package), None | Some(AppState::Stopping)) {
            return Err(INTERRUPTED.to_owned());
        }
        let begun = self.begin(user, &app.package, device, voice, wanted)?;
        turn.begun();
        self.heard(begun, stop).await
    }

    /// What is to be heard; `None`: there are no words.
    async fn voice(
        &self,
        app: &App,
        wanted: &Wanted,
        file: Option<Vec<u8>>,
        rate_hz: u32,
    ) -> Result<Option<Voice>, String> {
        let sound = match (file, words_of(&wanted.url)) {
            (Some(bytes), _) => self.sounds.decode(app, bytes, rate_hz, wanted.volume).await?,
            (None, None) => self.sounds.get(app, &wanted.url, rate_hz, wanted.volume).await?,
            (None, Some(text)) => {
                let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
                if words.chars().count() > TEXT_CHARS_MAX {
                    return Err(format!("at most {TEXT_CHARS_MAX} characters are said at once"));
                }
                return Ok((!words.is_empty()).then_some(Voice::Words(words)));
            }
        };
        Ok(Some(Voice::Sound(sound)))
    }

    /// The user's glasses that speak, and the rate of their speaker.
    ///
    /// # Errors
    /// There are none.
    fn speaking(&self, user: &str) -> Result<(String, u32), String> {
        let mut all = self.glasses_of(user).into_iter();
        let speaking = all.find_map(|(device, _, glasses)| Some((device, glasses.speaker_hz?)));
        speaking.ok_or_else(|| "no glasses with a speaker are connected".to_owned())
    }

    fn begin(&self, user: &str, package: &str, device: String, voice: Voice, wanted: &Wanted) -> Result<Begun, String> {
        if wanted.alone {
            // Of all apps, since simultaneous speech cannot be understood. The assistant's own speech is not affected.
            self.speeches.withdraw_all(&self.roster, user);
        }
        let (words, sound) = match voice {
            Voice::Words(words) => (words, None),
            Voice::Sound(sound) => (String::new(), Some(sound)),
        };
        let (sound_ms, seconds) = (sound.as_ref().map(Sound::ms), sound.as_ref().map(Sound::seconds));
        let (done, outcome) = oneshot::channel();
        let speech = Speech { user: user.to_owned(), package: package.to_owned(), device: device.clone(), sound, done };
        let id = self.speeches.begin(speech).ok_or("too many speeches of this app are waiting")?;
        let voice = match sound_ms {
            Some(ms) => AnnouncementVoice::Recording { sound: id, ms },
            None => AnnouncementVoice::Words(words),
        };
        let announcement = Announcement { id: AnnouncementId::App(id), voice, show: None };
        let message = DeviceMessage::from(Input::Announce(announcement));
        let sent = self.roster.get(&device).is_some_and(|present| present.mailbox.try_send(message).is_ok());
        Ok(Begun { id, device, sent, sound_ms, seconds, outcome })
    }

    /// Waits until it was played; returns the seconds of a file.
    ///
    /// # Errors
    /// Why it was not played, as text.
    async fn heard(&self, begun: Begun, stop: &CancellationToken) -> Result<Option<f64>, String> {
        let Begun { id, device, sent, sound_ms, seconds, outcome } = begun;
        let limit_ms = SPEECH_MS_MAX + u64::from(sound_ms.unwrap_or(0));
        let heard = tokio::select! {
            heard = tokio::time::timeout(Duration::from_millis(limit_ms), outcome), if sent => match heard {
                Ok(Ok(true)) => Ok(seconds),
                Ok(_) => Err(INTERRUPTED),
                Err(_) => Err("nobody could be spoken to in time"),
            },
            () = stop.cancelled(), if sent => Err(INTERRUPTED),
            else => Err(INTERRUPTED),
        };
        // Nothing waits any more for what is still queued or playing.
        self.speeches.give_up(&self.roster, &device, id);
        heard.map_err(str::to_owned)
    }

    /// The sound with this id.
    pub fn sound(&self, id: u64) -> Option<Sound> {
        self.speeches.sound(id)
    }

    /// An app's speech or sound with this id has ended.
    pub fn spoken(&self, id: u64, heard: bool) {
        self.speeches.ended(id, heard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_17_speak_is_known_by_its_path_whatever_the_scheme() {
        let said = |url: &str| words_of(url);
        assert_eq!(
            said("https://127.0.0.1:8002/api/tts?text=Hello+%26+bye%3F&voice_id=v1").as_deref(),
            Some("Hello & bye?")
        );
        assert_eq!(said("https://box.lan/app-ws/api/tts?voice_id=v1&text=Zw%C3%B6lf").as_deref(), Some("Zwölf"));
        assert_eq!(said("/api/tts?text=From+3.x").as_deref(), Some("From 3.x"));
        for url in
            ["http://127.0.0.1:9/a.mp3", "https://x/api/tts", "https://x/api/ttsx?text=a", "nonsense", "", "http://"]
        {
            assert_eq!(said(url), None, "{url}");
        }
    }
}
