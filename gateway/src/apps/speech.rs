//! `session.audio.speak()` and its kin: said by the glasses' own voice.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gateway_core::{
    input::{Announcement, Input},
    vocab::Content,
};
use reqwest::Url;
use tokio::sync::oneshot;

use super::host::Host;
use crate::{mail::Mail, roster::Roster};

/// Announcements of apps have numbers from here on; those of the schedule count from 1.
const FIRST_ID: u64 = 1 << 63;
/// Speeches of one app that may wait: each may stand for a minute.
const WAITING_PER_APP_MAX: usize = 4;
/// Characters of one speech: two minutes of talk.
const TEXT_CHARS_MAX: usize = 2_000;
/// How long a speech may take: the SDK gives up after 60 s.
const SPEECH_MS_MAX: u64 = 57_000;
/// What an SDK makes of `speak()`: a URL whose path ends so. It is never fetched.
const SPEAK_PATH: &str = "/api/tts";

struct Speech {
    user: String,
    package: String,
    device: String,
    done: oneshot::Sender<bool>,
}

/// What apps say at the moment.
#[derive(Default)]
pub struct Speeches {
    next: AtomicU64,
    open: Mutex<BTreeMap<u64, Speech>>,
}

impl Speeches {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Speech>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, speech: Speech) -> Option<u64> {
        let mut open = self.open();
        let same = |other: &&Speech| other.user == speech.user && other.package == speech.package;
        if open.values().filter(same).count() >= WAITING_PER_APP_MAX {
            return None;
        }
        let id = FIRST_ID + self.next.fetch_add(1, Ordering::Relaxed);
        open.insert(id, speech);
        Some(id)
    }

    /// Takes back all that an app says or wants to say.
    pub fn withdraw(&self, roster: &Roster, user: &str, package: &str) {
        let theirs: Vec<(u64, String)> = self
            .open()
            .iter()
            .filter(|(_, speech)| speech.user == user && speech.package == package)
            .map(|(id, speech)| (*id, speech.device.clone()))
            .collect();
        for (id, device) in theirs {
            if let Some(present) = roster.get(&device) {
                drop(present.mail.try_send(Mail::Input(Input::Withdraw { id })));
            }
        }
    }
}

/// The words that an audio URL stands for; `None`: it is a file of sound.
pub fn words_of(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    if !url.path().ends_with(SPEAK_PATH) {
        return None;
    }
    let (_, text) = url.query_pairs().find(|(name, _)| name == "text")?;
    Some(text.into_owned())
}

impl Host {
    /// Says something through the user's glasses; returns when it was heard.
    ///
    /// # Errors
    /// Why it was not, in words.
    pub(super) async fn speak(&self, user: &str, package: &str, text: &str, alone: bool) -> Result<(), String> {
        let say = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if say.is_empty() {
            return Ok(());
        }
        if say.chars().count() > TEXT_CHARS_MAX {
            return Err(format!("at most {TEXT_CHARS_MAX} characters are said at once"));
        }
        let device = {
            let users = self.users();
            let glasses = users.get(user).map(|apps| &apps.glasses);
            let speaking = glasses.into_iter().flatten().find(|(_, glasses)| glasses.speaker);
            speaking.map(|(device, _)| device.clone()).ok_or("no glasses with a speaker are connected")?
        };
        if alone {
            self.speeches.withdraw(&self.roster, user, package);
        }
        let (done, outcome) = oneshot::channel();
        let speech = Speech { user: user.to_owned(), package: package.to_owned(), device: device.clone(), done };
        let id = self.speeches.begin(speech).ok_or("too many speeches of this app are waiting")?;
        let announcement = Announcement { id, say, show: Content::Text { text: String::new() } };
        let letter = Mail::Input(Input::Announce(announcement));
        let sent = self.roster.get(&device).is_some_and(|present| present.mail.try_send(letter).is_ok());
        let heard = if sent {
            tokio::time::timeout(Duration::from_millis(SPEECH_MS_MAX), outcome).await
        } else {
            Ok(Ok(false))
        };
        self.speeches.open().remove(&id);
        match heard {
            Ok(Ok(true)) => Ok(()),
            Ok(_) => Err("it was interrupted, or the glasses are gone".to_owned()),
            Err(_) => {
                if let Some(present) = self.roster.get(&device) {
                    drop(present.mail.try_send(Mail::Input(Input::Withdraw { id })));
                }
                Err("nobody could be spoken to in time".to_owned())
            }
        }
    }

    /// An announcement has come to its end. Whether it was an app's.
    pub fn spoken(&self, id: u64, heard: bool) -> bool {
        if id < FIRST_ID {
            return false;
        }
        if let Some(speech) = self.speeches.open().remove(&id) {
            let _ = speech.done.send(heard);
        }
        true
    }
}

/// Says something and gives the answer to whoever asked.
pub(super) async fn say(
    host: Arc<Host>,
    user: String,
    package: String,
    url: String,
    alone: bool,
) -> Result<(), String> {
    match words_of(&url) {
        Some(text) => host.speak(&user, &package, &text, alone).await,
        None => Err("these glasses speak text, but play no files: use speak()".to_owned()),
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
        for url in ["http://127.0.0.1:9/a.mp3", "https://x/api/tts", "https://x/api/ttsx?text=a", "nonsense", ""] {
            assert_eq!(said(url), None, "{url}");
        }
    }
}
