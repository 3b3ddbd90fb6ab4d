//! Passes a device's data to mini-apps. Each call is a single check while no app listens.

use std::{collections::BTreeMap, sync::Arc};

use audio::asr::{Language, Spoken};
use bytes::Bytes;
use device_protocol::{
    ButtonAction, ButtonId, Buttons, DisplayKind, Gesture, Posture, Sensors,
    up::{Button, HeadPosition, HelloOwned},
};
use gateway_core::{limits::PRESS_US_MAX, vocab::VoiceFact};

use super::formats;
use crate::{
    apps::{
        feed::{Event, Feed},
        glasses::Glasses,
    },
    clock,
    speech::ear::Ear,
};

/// Utterances whose times are kept at once: one is open, a few wait for their final words.
const UTTERANCES_MAX: usize = 8;

/// What apps receive from one device.
pub(super) struct AppFeed {
    feed: Arc<Feed>,
    device: Arc<str>,
    /// Name of the device's session. With it utterances are unique: an app's session may see several of a device's, and
    /// several devices.
    session: Arc<str>,
    model: Arc<str>,
    tapped: bool,
    /// Whether an app gets words, as last reported to the core.
    followed: bool,
    /// Code of the device's own language: used where none is detected.
    own: &'static str,
    /// The last utterances that ended, for translations that come later.
    ended: BTreeMap<u32, Ended>,
    /// The utterances whose last words have not come.
    open: BTreeMap<u32, Open>,
    /// The utterance in which a voice is heard at this moment.
    voiced: Option<u32>,
    /// When the main button went down that has not come up, on the device's clock.
    down_us: Option<u64>,
}

/// An utterance whose last words have not come: its start and latest end, in milliseconds on the gateway's clock.
struct Open {
    start_ms: u64,
    end_ms: u64,
    /// Codes of the languages in which apps were told words of it, each once.
    told: Vec<&'static str>,
}

impl Open {
    /// One that begins at this time, in milliseconds on the gateway's clock.
    fn at(now_ms: u64) -> Self {
        Self { start_ms: now_ms, end_ms: now_ms, told: Vec::new() }
    }
}

/// An utterance: its words, if they were made out, the code of their language, its start and end.
struct Ended {
    text: Option<Arc<str>>,
    language: &'static str,
    start_ms: u64,
    end_ms: u64,
}

/// What apps are told about these glasses, to which this is spoken.
pub(super) fn glasses(hello: &HelloOwned, formats: &formats::Agreed, spoken: Spoken) -> Glasses {
    let has = &hello.capabilities;
    let screen = &has.display;
    let drawn = screen.kind != DisplayKind::None;
    Glasses {
        model: hello.model.clone(),
        display: drawn.then_some((screen.columns, screen.rows)),
        pixels: (drawn && screen.width_px > 0 && screen.height_px > 0).then_some((screen.width_px, screen.height_px)),
        colour: screen.colour_bits > 1,
        microphone: formats.up.map(|_| spoken),
        speaker_hz: formats.down.map(|(_, rate_hz)| rate_hz),
        camera: has.sensors.contains(Sensors::CAMERA),
        imu: has.sensors.contains(Sensors::HEAD_POSITION),
        button: has.buttons.contains(Buttons::MAIN),
    }
}

/// The language of the wearer: where any is heard, that of this tag.
pub(super) fn own_of(spoken: Spoken, tag: &str) -> Language {
    match spoken {
        Spoken::Is(language) => language,
        Spoken::Detected => Language::of(tag).unwrap_or(Language::ENGLISH),
    }
}

impl AppFeed {
    pub(super) fn new(feed: Arc<Feed>, (device, session): (&str, &str), model: &str, own: &'static str) -> Self {
        let (device, session, model) = (device.into(), session.into(), model.into());
        Self {
            feed,
            device,
            session,
            model,
            tapped: false,
            followed: false,
            own,
            ended: BTreeMap::new(),
            open: BTreeMap::new(),
            voiced: None,
            down_us: None,
        }
    }

    /// What apps know an utterance by.
    fn name_of(&self, utterance: u32) -> Arc<str> {
        format!("{}-u{utterance}", self.session).into()
    }

    /// From which languages apps want translations; empty: they want none.
    pub(super) fn wants_translations(&self) -> Vec<Spoken> {
        self.feed.wants_translations()
    }

    /// The language of these glasses.
    pub(super) fn own(&self) -> Language {
        Language::of(self.own).unwrap_or(Language::ENGLISH)
    }

    /// Passes on the translation of an utterance, which was spoken in the language of this code.
    pub(super) fn translated(&mut self, utterance: u32, text: &str, language: &'static str) {
        let Some(Ended { text: original, language: heard, start_ms, end_ms }) = self.ended.remove(&utterance) else {
            return;
        };
        if text.is_empty() {
            return;
        }
        self.feed.tell(|| Event::Translation {
            utterance: self.name_of(utterance),
            text: text.into(),
            // Words that were decoded as those of another language are not what was said.
            original: original.filter(|_| heard == language),
            language,
            is_own: language == self.own,
            start_ms,
            end_ms,
        });
    }

    /// Passes on sound as it was heard.
    pub(super) fn sound(&mut self, ear: &mut Ear) {
        let wanted = self.feed.wants_audio();
        if wanted != self.tapped {
            ear.set_tapped(wanted);
            self.tapped = wanted;
        }
        if !wanted {
            return;
        }
        let pcm = ear.take_tapped();
        if !pcm.is_empty() {
            let bytes: Bytes = pcm.iter().flat_map(|sample| sample.to_le_bytes()).collect();
            self.feed.tell(|| Event::Audio { device: self.device.clone(), pcm: bytes });
        }
    }

    /// Whether an app gets words, if that has changed since the last call.
    pub(super) fn newly_followed(&mut self) -> Option<bool> {
        let wanted = self.feed.wants_words();
        (std::mem::replace(&mut self.followed, wanted) != wanted).then_some(wanted)
    }

    pub(super) fn voice(&mut self, fact: VoiceFact) {
        let now_ms = clock::mono_us() / 1_000;
        match fact {
            VoiceFact::SpeechStarted { utterance, .. } => {
                if self.open.len() >= UTTERANCES_MAX {
                    self.open.pop_first();
                }
                self.open.insert(utterance, Open::at(now_ms));
                self.tell_voice(Some(utterance));
            }
            VoiceFact::Resumed { utterance, .. } => self.tell_voice(Some(utterance)),
            VoiceFact::Paused { utterance, .. } => {
                if let Some(open) = self.open.get_mut(&utterance) {
                    open.end_ms = now_ms;
                }
                self.tell_voice(None);
            }
            // Without a pause, where it became too long or its sound has stopped.
            VoiceFact::Ended { .. } => self.tell_voice(None),
            VoiceFact::Silence { .. } | VoiceFact::Echo { .. } | VoiceFact::WakeHeard { .. } => {}
        }
    }

    fn tell_voice(&mut self, voiced: Option<u32>) {
        self.voiced = voiced;
        self.feed.voice(&self.session, voiced.is_some());
    }

    /// The utterance was closed, perhaps in the middle of its voice. The next one may have begun already.
    pub(super) fn closed(&mut self, utterance: u32) {
        if self.voiced == Some(utterance) {
            self.tell_voice(None);
        }
    }

    /// The microphone is off, or the session is over: nobody is heard any more, and no words come of what was heard.
    pub(super) fn silenced(&mut self) {
        self.tell_voice(None);
        while let Some(utterance) = self.open.keys().next().copied() {
            self.words(utterance, "", self.own, true);
        }
    }

    /// Passes on words of an utterance in the language of this code, whether or not they were meant for the assistant. Whoever got
    /// words that turn out to be none, or to be of another language, gets an empty last text, so as not to wait for it.
    pub(super) fn words(&mut self, utterance: u32, text: &str, language: &'static str, last: bool) {
        let now_ms = clock::mono_us() / 1_000;
        let mut unknown = Open::at(now_ms);
        let open = self.open.get_mut(&utterance).unwrap_or(&mut unknown);
        let start_ms = open.start_ms;
        let end_ms = if last && open.end_ms > start_ms { open.end_ms } else { now_ms };
        let mut others = Vec::new();
        if last {
            others = std::mem::take(&mut open.told);
            self.open.remove(&utterance);
            if self.ended.len() >= UTTERANCES_MAX {
                self.ended.pop_first();
            }
            // What is no words in the wearer's language may be some in another.
            let words = (!text.is_empty()).then(|| text.into());
            self.ended.insert(utterance, Ended { text: words, language, start_ms, end_ms });
        } else if !text.is_empty() && !open.told.contains(&language) {
            open.told.push(language);
        }
        // An empty text is for those who were told words.
        let language = if text.is_empty() { others.pop() } else { Some(language) };
        let Some(language) = language else { return };
        others.retain(|other| *other != language);
        self.feed.tell(|| Event::Transcript {
            language,
            others: others.into(),
            utterance: self.name_of(utterance),
            text: text.into(),
            last,
            start_ms,
            end_ms,
        });
    }

    /// Passes on a press. Where the device tells both edges of the main button in place of one, at these times of its clock,
    /// the time between them says whether it was a long one.
    pub(super) fn button(&mut self, button: &Button, at_us: u64) {
        let long = match (button.button, button.action) {
            (_, ButtonAction::Press) => false,
            (_, ButtonAction::LongPress) => true,
            (ButtonId::Main, ButtonAction::Down) => {
                self.down_us = Some(at_us);
                return;
            }
            (ButtonId::Main, ButtonAction::Up) => match self.down_us.take() {
                Some(down_us) => at_us.saturating_sub(down_us) >= PRESS_US_MAX,
                None => return,
            },
            _ => return,
        };
        let id = match button.button {
            ButtonId::Main => "main",
            ButtonId::VolumeUp => "volume_up",
            ButtonId::VolumeDown => "volume_down",
            ButtonId::Camera => "camera",
            ButtonId::Power => "power",
            _ => return,
        };
        self.feed.tell(|| Event::Button { id, long });
    }

    /// Passes on the gesture, and returns it.
    pub(super) fn touch(&self, gesture: Gesture) -> Gesture {
        let name = match gesture {
            Gesture::Tap => "single_tap",
            Gesture::DoubleTap => "double_tap",
            Gesture::LongTap => "long_press",
            Gesture::SwipeForward => "forward_swipe",
            Gesture::SwipeBack => "backward_swipe",
            Gesture::SwipeUp => "up_swipe",
            Gesture::SwipeDown => "down_swipe",
            _ => return gesture,
        };
        self.feed.tell(|| Event::Touch { model: self.model.clone(), gesture: name });
        gesture
    }

    pub(super) fn head(&self, head: &HeadPosition) {
        let up = match head.posture {
            Posture::Up => true,
            Posture::Down | Posture::Level => false,
            _ => return,
        };
        self.feed.tell(|| Event::Head { up });
    }

    pub(super) fn battery(&self, percent: u8, charging: bool) {
        self.feed.tell(|| Event::Battery { percent, charging });
    }
}

impl Drop for AppFeed {
    fn drop(&mut self) {
        self.silenced();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::apps::feed::{Listener, Wants};

    fn started(utterance: u32) -> VoiceFact {
        VoiceFact::SpeechStarted { utterance, at_us: 0, voiced_us: 0 }
    }

    /// What apps were told since the last call: voice, and words with their languages.
    fn told(heard: &mut Listener) -> Vec<String> {
        let events = std::iter::from_fn(|| heard.next().now_or_never());
        let told = events.map(|event| match event {
            Event::Voice(true) => "voice".to_owned(),
            Event::Voice(false) => "silence".to_owned(),
            Event::Transcript { utterance, text, language, others, last, .. } => {
                let end = if last { "." } else { "" };
                let others = if others.is_empty() { String::new() } else { format!(", not {}", others.join(", ")) };
                format!("{utterance} {language}{others}: {text}{end}")
            }
            other => format!("{other:?}"),
        });
        told.collect()
    }

    #[test]
    fn words_are_in_their_own_language_and_those_that_got_others_are_told_so() {
        let events = Arc::new(Feed::default());
        let mut heard = events.listen(Wants { words: true, ..Wants::default() });
        let mut feed = AppFeed::new(events, ("d", "s"), "", "es");
        feed.voice(started(1));
        feed.words(1, "Son", "es", false);
        feed.words(1, "Sound", "en", false);
        feed.words(1, "Sound of", "en", false);
        feed.words(1, "Sound of rain", "en", true);
        feed.voice(started(2));
        feed.words(2, "Dos", "es", false);
        feed.words(2, "Dos.", "es", true);
        let expected = [
            "voice",
            "s-u1 es: Son",
            "s-u1 en: Sound",
            "s-u1 en: Sound of",
            "s-u1 en, not es: Sound of rain.",
            "s-u2 es: Dos",
            "s-u2 es: Dos..",
        ];
        assert_eq!(told(&mut heard), expected);
    }

    #[test]
    fn no_words_in_the_end_are_told_in_every_language_that_was_told_and_in_no_other() {
        let events = Arc::new(Feed::default());
        let mut heard = events.listen(Wants { words: true, ..Wants::default() });
        let mut feed = AppFeed::new(events, ("d", "s"), "", "es");
        feed.words(1, "Hm", "fr", true);
        feed.voice(started(2));
        feed.words(2, "Son", "es", false);
        feed.words(2, "Sound", "en", false);
        feed.words(2, "", "fr", true);
        assert_eq!(told(&mut heard), ["s-u1 fr: Hm.", "voice", "s-u2 es: Son", "s-u2 en: Sound", "s-u2 en, not es: ."]);
    }

    #[test]
    fn a_microphone_that_is_switched_off_ends_voice_and_words() {
        let events = Arc::new(Feed::default());
        let mut heard = events.listen(Wants { words: true, ..Wants::default() });
        let mut feed = AppFeed::new(events, ("d", "s"), "", "en");
        feed.voice(started(1));
        feed.words(1, "One", "en", false);
        feed.voice(VoiceFact::Paused { utterance: 1, at_us: 0, silence_us: 0 });
        // The first one still waits for its last words.
        feed.closed(1);
        feed.voice(started(2));
        feed.words(2, "Two", "en", false);
        told(&mut heard);
        feed.silenced();
        assert_eq!(told(&mut heard), ["silence", "s-u1 en: .", "s-u2 en: ."]);
        feed.silenced();
        assert!(told(&mut heard).is_empty(), "each once");
        feed.voice(started(3));
        feed.words(3, "Three", "en", false);
        drop(feed);
        assert_eq!(told(&mut heard), ["voice", "s-u3 en: Three", "silence", "s-u3 en: ."], "the session is over");
    }

    #[test]
    fn an_utterance_that_is_closed_within_its_voice_ends_that() {
        let events = Arc::new(Feed::default());
        let mut heard = events.listen(Wants { words: true, ..Wants::default() });
        let mut feed = AppFeed::new(events, ("d", "s"), "", "en");
        feed.voice(started(1));
        feed.words(1, "One", "en", false);
        feed.closed(1);
        feed.words(1, "One.", "en", true);
        assert_eq!(told(&mut heard), ["voice", "s-u1 en: One", "silence", "s-u1 en: One.."]);
        feed.voice(started(2));
        feed.closed(1);
        assert_eq!(told(&mut heard), ["voice"], "another one's goes on");
    }

    #[test]
    fn a_main_button_that_tells_both_edges_is_passed_on_as_one_press() {
        let events = Arc::new(Feed::default());
        let mut heard = events.listen(Wants::default());
        let mut feed = AppFeed::new(events, ("d", "s"), "", Language::ENGLISH.code());
        let mut tell = |button, action, at_ms: u64| {
            feed.button(&Button { button, action }, at_ms * 1_000);
            std::iter::from_fn(|| heard.next().now_or_never()).collect::<Vec<Event>>()
        };
        let press = |id, long| [Event::Button { id, long }];
        let (main, volume) = (ButtonId::Main, ButtonId::VolumeUp);
        assert_eq!(tell(main, ButtonAction::Up, 900), [], "it went down before this session");
        assert_eq!(tell(main, ButtonAction::Down, 1_000), []);
        assert_eq!(tell(main, ButtonAction::Up, 1_399), press("main", false));
        assert_eq!(tell(main, ButtonAction::Down, 2_000), []);
        assert_eq!(tell(main, ButtonAction::Up, 2_400), press("main", true));
        assert_eq!(tell(main, ButtonAction::Up, 2_500), []);
        assert_eq!(tell(volume, ButtonAction::Down, 3_000), []);
        assert_eq!(tell(volume, ButtonAction::Up, 3_100), []);
        // Glasses that tell no edges.
        assert_eq!(tell(main, ButtonAction::Press, 4_000), press("main", false));
        assert_eq!(tell(main, ButtonAction::LongPress, 5_000), press("main", true));
        assert_eq!(tell(volume, ButtonAction::Press, 6_000), press("volume_up", false));
        assert_eq!(tell(main, ButtonAction::DoublePress, 7_000), []);
    }

    #[test]
    fn what_is_translated_is_passed_on_whether_or_not_its_own_words_were_made_out() {
        let events = Arc::new(Feed::default());
        let mut heard = events.listen(Wants { words: true, ..Wants::default() });
        let mut feed = AppFeed::new(events, ("d", "s"), "", "es");
        for (utterance, text) in [(1, "Hola"), (2, "")] {
            feed.voice(VoiceFact::SpeechStarted { utterance, at_us: 0, voiced_us: 0 });
            feed.words(utterance, text, "es", true);
        }
        for (utterance, language) in [(2, "es"), (1, "es"), (1, "es"), (3, "es")] {
            feed.translated(utterance, "Hello", language);
        }
        let told = std::iter::from_fn(|| heard.next().now_or_never()).filter_map(|event| match event {
            Event::Translation { utterance, original, .. } => {
                Some((utterance.to_string(), original.as_deref().map(String::from)))
            }
            _ => None,
        });
        let expected = [("s-u2".to_owned(), None), ("s-u1".to_owned(), Some("Hola".to_owned()))];
        assert_eq!(told.collect::<Vec<_>>(), expected, "each once");
    }

    #[tokio::test]
    async fn words_that_turn_out_to_be_none_are_ended() {
        let events = Arc::new(Feed::default());
        let mut heard = events.listen(Wants { words: true, ..Wants::default() });
        let mut feed = AppFeed::new(events, ("d", "s"), "", Language::ENGLISH.code());
        // What is told of an utterance without any words: nothing.
        for (utterance, texts) in [(1, ["", ""]), (2, ["Thank", ""]), (3, ["Thank", "Thank you."])] {
            feed.voice(VoiceFact::SpeechStarted { utterance, at_us: 0, voiced_us: 0 });
            feed.words(utterance, texts[0], "en", false);
            feed.words(utterance, texts[1], "en", true);
        }
        let mut told = Vec::new();
        while told.len() < 4 {
            if let Event::Transcript { utterance, text, last, .. } = heard.next().await {
                told.push((utterance.to_string(), text.to_string(), last));
            }
        }
        let expected =
            [("s-u2", "Thank", false), ("s-u2", "", true), ("s-u3", "Thank", false), ("s-u3", "Thank you.", true)];
        assert_eq!(told, expected.map(|(utterance, text, last)| (utterance.to_owned(), text.to_owned(), last)));
    }
}
