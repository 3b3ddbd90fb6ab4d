//! Events of live glasses for apps: one bounded stream per user.
//!
//! Device tasks send events and never wait; without listeners an event costs one check. A slow listener loses the
//! oldest events, without effect on others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use audio::asr::Spoken;
use bytes::Bytes;
use tokio::sync::broadcast;

/// Events that a slow listener may lag behind: about five seconds of sound.
const BEHIND_MAX: usize = 256;
/// Bytes of sound from others after which the glasses that are listened to count as silent: two seconds.
const OTHERS_BYTES_MAX: usize = 2 * 2 * 16_000;

/// An event for apps.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are those of the streams")]
pub enum Event {
    /// Words in the language of this code, growing until `last`. Times in milliseconds since the gateway started.
    Transcript {
        utterance: Arc<str>,
        text: Arc<str>,
        language: &'static str,
        /// With the last text: codes of other languages in which words of the utterance were told before.
        others: Arc<[&'static str]>,
        last: bool,
        start_ms: u64,
        end_ms: u64,
    },
    /// The words of an utterance in English, and as they were said in the language of this code, where they are known. Which language
    /// it is was guessed by the sound, unless only one may be spoken.
    Translation {
        utterance: Arc<str>,
        text: Arc<str>,
        original: Option<Arc<str>>,
        language: &'static str,
        /// Whether it is that of the glasses.
        is_own: bool,
        start_ms: u64,
        end_ms: u64,
    },
    /// Whether someone speaks to any of the user's glasses.
    Voice(bool),
    /// A button press.
    Button { id: &'static str, long: bool },
    /// A touch, in MentraOS' terms.
    Touch { model: Arc<str>, gesture: &'static str },
    /// A movement of the head.
    Head { up: bool },
    /// The charge of the glasses.
    Battery { percent: u8, charging: bool },
    /// The glasses connected or disconnected.
    Connection { model: Arc<str>, connected: bool },
    /// Sound that this device has heard: PCM of 16 bits, little endian, mono, 16 kHz.
    Audio { device: Arc<str>, pcm: Bytes },
}

/// Events that are costly to make: they are made only while a listener wants them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Sound.
    pub audio: bool,
    /// Transcripts, word by word.
    pub words: bool,
    /// Translations into English: from these languages, or from whichever is detected. Their words are wanted as well.
    pub translations: Vec<Spoken>,
}

/// One user's events.
#[derive(Default)]
pub struct Feed {
    /// Made for the first listener: it takes memory for all events that may wait.
    events: OnceLock<broadcast::Sender<Event>>,
    audio_wanted: AtomicUsize,
    words_wanted: AtomicUsize,
    /// Those of all listeners.
    translations_wanted: Mutex<Vec<Spoken>>,
    /// The sessions in which somebody speaks.
    speaking: Mutex<BTreeSet<Arc<str>>>,
}

impl Feed {
    /// Sends an event to all listeners.
    pub fn tell(&self, event: impl FnOnce() -> Event) {
        if let Some(events) = self.events.get().filter(|events| events.receiver_count() > 0) {
            drop(events.send(event()));
        }
    }

    /// Somebody speaks in this session, or nobody does any more. Apps are told when the first one begins and the last one ends.
    pub(crate) fn voice(&self, session: &Arc<str>, speaks: bool) {
        // Events are sent under the lock, so that they come in order.
        let mut speaking = self.speaking.lock().unwrap_or_else(PoisonError::into_inner);
        let before = !speaking.is_empty();
        if speaks {
            speaking.insert(session.clone());
        } else {
            speaking.remove(session);
        }
        if speaking.is_empty() == before {
            self.tell(|| Event::Voice(!before));
        }
    }

    /// Whether any listener wants sound.
    pub(crate) fn wants_audio(&self) -> bool {
        self.audio_wanted.load(Ordering::Relaxed) > 0
    }

    /// Whether any listener wants transcripts.
    pub(crate) fn wants_words(&self) -> bool {
        self.words_wanted.load(Ordering::Relaxed) > 0
    }

    /// From which languages listeners want translations; empty: they want none.
    pub(crate) fn wants_translations(&self) -> Vec<Spoken> {
        self.translations_wanted().clone()
    }

    fn translations_wanted(&self) -> MutexGuard<'_, Vec<Spoken>> {
        self.translations_wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subscribes from now on.
    pub fn listen(self: &Arc<Self>, wants: Wants) -> Listener {
        self.audio_wanted.fetch_add(wants.audio.into(), Ordering::Relaxed);
        self.words_wanted.fetch_add(wants.words.into(), Ordering::Relaxed);
        self.translations_wanted().extend_from_slice(&wants.translations);
        let events = self.events.get_or_init(|| broadcast::Sender::new(BEHIND_MAX)).subscribe();
        Listener { feed: self.clone(), events, wants, source: None }
    }
}

/// A subscription to a feed.
pub struct Listener {
    feed: Arc<Feed>,
    events: broadcast::Receiver<Event>,
    wants: Wants,
    /// The device whose sound is passed on, and how many bytes came from others since.
    source: Option<(Arc<str>, usize)>,
}

impl Listener {
    /// What it subscribed to.
    pub fn wants(&self) -> &Wants {
        &self.wants
    }

    /// The next event. Cancel safe.
    pub async fn next(&mut self) -> Event {
        loop {
            match self.events.recv().await {
                Ok(event) if self.passes(&event) => return event,
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(lost)) => {
                    tracing::debug!(lost, "an app is too slow for its streams");
                }
                Err(broadcast::error::RecvError::Closed) => return std::future::pending().await,
            }
        }
    }

    /// Whether an event is for this listener. The sound of one pair of glasses is: that of several makes no stream.
    fn passes(&mut self, event: &Event) -> bool {
        let Event::Audio { device, pcm } = event else { return true };
        if !self.wants.audio {
            return false;
        }
        let (source, others) = self.source.get_or_insert_with(|| (device.clone(), 0));
        if source != device {
            *others += pcm.len();
            if *others < OTHERS_BYTES_MAX {
                return false;
            }
            source.clone_from(device);
        }
        *others = 0;
        true
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.feed.audio_wanted.fetch_sub(self.wants.audio.into(), Ordering::Relaxed);
        self.feed.words_wanted.fetch_sub(self.wants.words.into(), Ordering::Relaxed);
        let mut wanted = self.feed.translations_wanted();
        for from in &self.wants.translations {
            if let Some(index) = wanted.iter().position(|other| other == from) {
                wanted.swap_remove(index);
            }
        }
    }
}

/// The feeds of all users, created on first use.
#[derive(Default)]
pub struct Feeds(Mutex<BTreeMap<String, Arc<Feed>>>);

impl Feeds {
    /// A user's feed.
    pub fn of(&self, user: &str) -> Arc<Feed> {
        let mut feeds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        feeds.entry(user.to_owned()).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_is_made_for_nobody_and_sound_only_for_those_who_want_it() {
        let feed = Arc::new(Feed::default());
        feed.tell(|| unreachable!("nobody listens"));
        let mut plain = feed.listen(Wants { words: true, ..Wants::default() });
        assert!(!feed.wants_audio() && feed.wants_words());
        let mut hearing = feed.listen(Wants { audio: true, ..Wants::default() });
        assert!(feed.wants_audio());
        let sound = || Event::Audio { device: "d".into(), pcm: Bytes::from_static(b"ab") };
        feed.tell(sound);
        feed.tell(|| Event::Voice(true));
        assert_eq!(plain.next().await, Event::Voice(true));
        assert_eq!(hearing.next().await, sound());
        drop(hearing);
        assert!(!feed.wants_audio() && feed.wants_words());
        drop(plain);
        assert!(!feed.wants_words());
    }

    #[tokio::test]
    async fn of_two_pairs_of_glasses_one_is_heard_until_it_is_silent_for_two_seconds() {
        let feed = Arc::new(Feed::default());
        let mut hearing = feed.listen(Wants { audio: true, ..Wants::default() });
        let mut passed = async |device: &str, tenths: usize| {
            let mut passed = 0;
            for _ in 0..tenths {
                feed.tell(|| Event::Audio { device: device.into(), pcm: vec![0_u8; 3_200].into() });
                feed.tell(|| Event::Voice(true));
                while let Event::Audio { .. } = hearing.next().await {
                    passed += 1;
                }
            }
            passed
        };
        assert_eq!((passed("one", 5).await, passed("two", 19).await, passed("one", 1).await), (5, 0, 1));
        // The other one's count begins anew with each piece.
        assert_eq!(passed("two", 30).await, 11);
        assert_eq!((passed("one", 5).await, passed("two", 1).await), (0, 1));
    }

    #[tokio::test]
    async fn voice_begins_with_the_first_and_ends_with_the_last_who_speaks() {
        let feed = Arc::new(Feed::default());
        let (one, two) = ("one".into(), "two".into());
        feed.voice(&one, true);
        let mut heard = feed.listen(Wants::default());
        for (session, speaks) in
            [(&two, true), (&one, false), (&one, false), (&two, false), (&two, false), (&one, true)]
        {
            feed.voice(session, speaks);
        }
        assert_eq!([heard.next().await, heard.next().await], [Event::Voice(false), Event::Voice(true)]);
        assert!(heard.events.is_empty());
    }

    #[test]
    fn translations_are_wanted_from_the_languages_of_all_listeners() {
        let feed = Arc::new(Feed::default());
        let spanish = || Spoken::of("es").into_iter();
        let listen = |from: Vec<Spoken>| feed.listen(Wants { translations: from, ..Wants::default() });
        assert!(feed.wants_translations().is_empty());
        let (first, second) = (listen(spanish().collect()), listen(spanish().chain([Spoken::Detected]).collect()));
        assert_eq!(feed.wants_translations().len(), 3);
        drop(second);
        assert_eq!(feed.wants_translations(), spanish().collect::<Vec<_>>());
        drop(first);
        assert!(feed.wants_translations().is_empty());
    }

    #[tokio::test]
    async fn a_slow_listener_loses_the_oldest_and_blocks_nobody() {
        let feed = Arc::new(Feed::default());
        let mut slow = feed.listen(Wants::default());
        for percent in 0..=255 {
            for charging in [false, true] {
                feed.tell(|| Event::Battery { percent, charging });
            }
        }
        let Event::Battery { percent, .. } = slow.next().await else { panic!() };
        assert_eq!(percent, 128);
    }
}
