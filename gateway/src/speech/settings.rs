//! The sections `[hearing]` and `[voice]`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use audio::asr::{self, Spoken};
use gateway_core::{conversation, limits::SILENCE_MS_MAX};
use serde::Deserialize;
use toml::Spanned;

use super::{
    elsewhere::settings::{Other, RawOther, RawRecognitionServer, RecognitionServer},
    language::Languages,
    wake::{self, WakeHeads},
};
use crate::{
    environment::Machine,
    problems::{Problems, unwritten},
};

/// The second model if the configuration names none: used if it was fetched.
pub(crate) const SECOND_MODEL: &str = "whisper-base.bin";
/// The model that is fetched by default.
pub(crate) const MODEL: &str = "whisper-tiny.en.bin";
/// Maximum number of wake phrases.
const WAKE_PHRASES_MAX: usize = 16;
/// Maximum number of users with a language of their own.
const LANGUAGES_MAX: usize = 1_000;

/// How wake phrases are known.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WakeBy {
    /// By their sound if each of them has a file with its name in the folder of heads, otherwise by their text.
    Auto,
    /// By the text of everything that is said.
    Text,
    /// By their sound; the text of what was heard verifies it.
    Acoustic,
}

/// `[hearing]`, unchecked.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawHearing {
    wake_phrases: Spanned<Vec<String>>,
    wake: WakeBy,
    wake_heads: Spanned<Vec<PathBuf>>,
    device_wake: bool,
    always_listening: bool,
    follow_up_ms: Spanned<u32>,
    silence_ms: Spanned<u32>,
    silence_command_ms: Spanned<u32>,
    silence_complete_ms: Spanned<u32>,
    silence_incomplete_ms: Spanned<u32>,
    silence_trailing_ms: Spanned<u32>,
    partial_interval_ms: Spanned<u32>,
    end_of_turn: bool,
    dead_microphone_s: Spanned<u32>,
    workers: Spanned<usize>,
    language: Option<Spanned<String>>,
    languages: BTreeMap<String, Spanned<String>>,
    model: Option<PathBuf>,
    second_model: Option<PathBuf>,
    remote: Option<RawRecognitionServer>,
}

impl Default for RawHearing {
    fn default() -> Self {
        let core = conversation::Config::default();
        Self {
            wake_phrases: unwritten(core.wake_phrases),
            wake: WakeBy::Auto,
            wake_heads: unwritten(Vec::new()),
            device_wake: true,
            always_listening: core.always_listening,
            follow_up_ms: unwritten(core.follow_up_ms),
            silence_ms: unwritten(core.silence_ms),
            silence_command_ms: unwritten(core.silence_command_ms),
            silence_complete_ms: unwritten(core.silence_complete_ms),
            silence_incomplete_ms: unwritten(core.silence_incomplete_ms),
            silence_trailing_ms: unwritten(core.silence_trailing_ms),
            partial_interval_ms: unwritten(core.partial_interval_ms),
            end_of_turn: false,
            dead_microphone_s: unwritten(30),
            workers: unwritten(0),
            language: None,
            languages: BTreeMap::new(),
            model: None,
            second_model: None,
            remote: None,
        }
    }
}

/// The recogniser and the scoring of pauses. Wake phrases and silences are settings of conversations.
#[derive(Clone, Debug)]
pub struct Hearing {
    /// Recognition threads.
    pub workers: usize,
    /// Whether pauses are scored by their audio as well.
    pub end_of_turn: bool,
    /// How long a microphone may send samples of one value before it counts as dead, in microseconds; `None`: for ever.
    pub dead_microphone_us: Option<u64>,
    /// What is spoken; `None`: each device's own language.
    pub language: Option<Spoken>,
    /// The same for single users, by name.
    pub languages: BTreeMap<String, Spoken>,
    /// Path of Whisper's model.
    pub model: PathBuf,
    /// Which heads hear wake phrases in the sound; `None`: none do.
    pub wake: Option<WakeHeads>,
    /// Whether devices that hear wake phrases by themselves are taken at their word.
    pub device_wake: bool,
    /// Path of the second model, for second passes, if there is one.
    pub second_model: Option<PathBuf>,
    /// A recogniser at a server.
    pub remote: Option<RecognitionServer>,
}

impl Hearing {
    /// All models, the first one first.
    pub fn models(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.model).chain(&self.second_model)
    }

    /// Which languages are spoken, and which its models know.
    pub fn understood(&self) -> Languages {
        let translates = self.models().any(|model| asr::is_multilingual(model).unwrap_or(false));
        let multilingual = translates || self.remote.is_some();
        Languages { usual: self.language, users: Arc::new(self.languages.clone()), multilingual, translates }
    }

    /// Checks that one of the models knows the configured languages; a recogniser elsewhere is taken to know them.
    ///
    /// # Errors
    /// [`asr::Error::Language`]; or [`asr::Error::Model`], if a model cannot be read.
    pub(crate) fn check_language(&self) -> Result<(), asr::Error> {
        let mut configured = self.language.iter().chain(self.languages.values());
        let Some(language) = configured.find(|spoken| self.remote.is_none() && !spoken.is_english()) else {
            return Ok(());
        };
        for model in self.models() {
            if asr::is_multilingual(model)? {
                return Ok(());
            }
        }
        asr::check(&self.model, language.setting())
    }
}

/// A language as it is written in the configuration, which has it under `key`.
fn spoken(problems: &mut Problems<'_>, key: &str, written: &Spanned<String>) -> Option<Spoken> {
    let known = Spoken::of(written.get_ref());
    if known.is_none() {
        let what = format!("`{key}` must be a two-letter code that Whisper knows, such as \"de\", or \"auto\"");
        problems.at(written.span(), what);
    }
    known
}

/// The words of a wake phrase, in lower case: recognisers are prompted with them, and files of heads have their names.
fn words_of(phrase: &str) -> String {
    // A mark belongs to the letter before it.
    let is_of_word =
        |letter: char| letter.is_alphanumeric() || matches!(letter, '\'' | '’' | '-' | '\u{300}'..='\u{36f}');
    let words = phrase.split(|letter: char| !is_of_word(letter)).map(|word| word.trim_matches(['\'', '’', '-']));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ").replace('’', "'").to_lowercase()
}

impl RawHearing {
    /// Checks the section; settings of conversations go into `conversation`.
    pub(crate) fn check(
        self,
        problems: &mut Problems<'_>,
        machine: &Machine,
        models_dir: &Path,
        conversation: &mut conversation::Config,
    ) -> Hearing {
        self.check_turns(problems, conversation);
        let wake = self.check_wake(problems, machine, models_dir, &conversation.wake_phrases);
        let workers = match problems.between(&self.workers, "hearing.workers", 0..=64) {
            0 => machine.processors,
            workers => workers,
        };
        let dead_s = problems.between(&self.dead_microphone_s, "hearing.dead_microphone_s", 0..=600);
        let dead_microphone_us = (dead_s > 0).then_some(u64::from(dead_s) * 1_000_000);
        let fetched = models_dir.join(SECOND_MODEL);
        let second_model = self.second_model.or_else(|| (machine.has_file)(&fetched).then_some(fetched));
        // An empty path disables it.
        let second_model = second_model.filter(|path| !path.as_os_str().is_empty());
        let language = self.language.and_then(|written| spoken(problems, "hearing.language", &written));
        let languages = self.languages.into_iter().filter_map(|(user, written)| {
            let spoken = spoken(problems, &format!("hearing.languages.{user}"), &written)?;
            Some((user, spoken))
        });
        let languages: BTreeMap<String, Spoken> = languages.collect();
        if languages.len() > LANGUAGES_MAX {
            problems.nowhere(format!("`hearing.languages` has at most {LANGUAGES_MAX} users"));
        }
        // The fetched first model knows English only.
        let (model, second_model) = match (self.model, second_model) {
            (None, Some(second)) if language.is_some_and(|spoken| !spoken.is_english()) => (second, None),
            (model, second_model) => (model.unwrap_or_else(|| models_dir.join(MODEL)), second_model),
        };
        conversation.second_model = second_model.is_some();
        let remote = self.remote.map(|remote| remote.check(problems));
        let (end_of_turn, device_wake) = (self.end_of_turn, self.device_wake);
        Hearing {
            workers,
            end_of_turn,
            dead_microphone_us,
            wake,
            device_wake,
            language,
            languages,
            model,
            second_model,
            remote,
        }
    }

    /// Checks how wake phrases are known.
    fn check_wake(
        &self,
        problems: &mut Problems<'_>,
        machine: &Machine,
        models_dir: &Path,
        phrases: &[String],
    ) -> Option<WakeHeads> {
        let files = self.wake_heads.get_ref();
        if files.len() > WAKE_PHRASES_MAX {
            problems.at(self.wake_heads.span(), format!("`hearing.wake_heads` has at most {WAKE_PHRASES_MAX} files"));
        }
        if !files.is_empty() {
            if !matches!(self.wake, WakeBy::Acoustic) {
                let what = "`hearing.wake_heads` needs `hearing.wake = \"acoustic\"`".to_owned();
                problems.at(self.wake_heads.span(), what);
            }
            return Some(WakeHeads::Files(files.clone()));
        }
        let folder = models_dir.join(wake::FOLDER);
        let has_head = |phrase: &String| (machine.has_file)(&folder.join(wake::file_of(phrase)));
        let is_by_sound = match self.wake {
            WakeBy::Auto => phrases.iter().all(has_head),
            WakeBy::Text => false,
            WakeBy::Acoustic => true,
        };
        is_by_sound.then_some(WakeHeads::Folder(folder))
    }

    /// Checks the settings of the begin and the end of a turn.
    fn check_turns(&self, problems: &mut Problems<'_>, conversation: &mut conversation::Config) {
        let phrases: Vec<String> = self.wake_phrases.get_ref().iter().map(|phrase| words_of(phrase)).collect();
        if phrases.is_empty()
            || phrases.len() > WAKE_PHRASES_MAX
            || !phrases.iter().all(|phrase| conversation::can_hear_wake_phrase(phrase))
        {
            let what = format!(
                "`hearing.wake_phrases` needs 1 to {WAKE_PHRASES_MAX} phrases, each with Latin letters: they are matched by sound"
            );
            problems.at(self.wake_phrases.span(), what);
        }
        conversation.wake_phrases = phrases;
        conversation.always_listening = self.always_listening;
        let silence = (&self.silence_ms, "hearing.silence_ms");
        // The more likely the end, the shorter the wait.
        let complete = (&self.silence_complete_ms, "hearing.silence_complete_ms");
        let incomplete = (&self.silence_incomplete_ms, "hearing.silence_incomplete_ms");
        problems.in_order((&self.silence_command_ms, "hearing.silence_command_ms"), complete);
        problems.in_order(complete, silence);
        problems.in_order(silence, incomplete);
        let trailing = (&self.silence_trailing_ms, "hearing.silence_trailing_ms");
        let is_written = |value: &Spanned<u32>| !value.span().is_empty();
        if is_written(trailing.0) {
            problems.in_order(if is_written(incomplete.0) { incomplete } else { silence }, trailing);
        }
        let mut ms = |value, key, range| problems.between(value, key, range);
        conversation.partial_interval_ms = ms(&self.partial_interval_ms, "hearing.partial_interval_ms", 50..=5_000);
        conversation.follow_up_ms = ms(&self.follow_up_ms, "hearing.follow_up_ms", 0..=300_000);
        conversation.silence_ms = ms(&self.silence_ms, "hearing.silence_ms", 250..=SILENCE_MS_MAX);
        conversation.silence_command_ms =
            ms(&self.silence_command_ms, "hearing.silence_command_ms", 100..=SILENCE_MS_MAX);
        conversation.silence_complete_ms =
            ms(&self.silence_complete_ms, "hearing.silence_complete_ms", 250..=SILENCE_MS_MAX);
        let incomplete_ms = ms(incomplete.0, incomplete.1, 250..=SILENCE_MS_MAX);
        let trailing_ms = ms(trailing.0, trailing.1, 250..=SILENCE_MS_MAX);
        // Of two that contradict each other one is not written.
        (conversation.silence_incomplete_ms, conversation.silence_trailing_ms) = match is_written(incomplete.0) {
            true => (incomplete_ms, trailing_ms.max(incomplete_ms)),
            false => (incomplete_ms.min(trailing_ms), trailing_ms),
        };
    }
}

/// `voice.earcons`: which short sounds the glasses are asked for.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Earcons {
    None,
    Usual,
    All,
}

/// `[voice]`, unchecked.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawVoice {
    earcons: Earcons,
    speed: Spanned<f32>,
    volume: Spanned<u8>,
    other: Option<RawOther>,
}

impl Default for RawVoice {
    fn default() -> Self {
        Self { earcons: Earcons::Usual, speed: unwritten(1.0), volume: unwritten(100), other: None }
    }
}

/// Settings of speech synthesis.
#[derive(Clone, Copy, Debug)]
pub struct Voice {
    /// Speed of speech; 1.0 is normal.
    pub speed: f32,
    /// Volume of what is sent to devices that have no tool for it; 100: as it is.
    pub volume_percent: u8,
}

impl RawVoice {
    /// Checks the section: the product's own voice, and another one beside it. What the core is to know goes into
    /// `conversation`.
    pub(crate) fn check(
        self,
        problems: &mut Problems<'_>,
        conversation: &mut conversation::Config,
    ) -> (Voice, Option<Other>) {
        conversation.earcons = match self.earcons {
            Earcons::None => conversation::Earcons::None,
            Earcons::Usual => conversation::Earcons::Usual,
            Earcons::All => conversation::Earcons::All,
        };
        let voice = Voice {
            speed: problems.between(&self.speed, "voice.speed", 0.5..=2.0),
            volume_percent: problems.between(&self.volume, "voice.volume", 0..=100),
        };
        (voice, self.other.and_then(|other| other.check(problems)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::SECOND_MODEL;
    use crate::{
        config::{check, check_for},
        environment::Machine,
        speech::wake::WakeHeads,
    };

    fn problems(text: &str) -> Vec<(usize, String)> {
        check(text, "x.toml").unwrap_err().into_iter().map(|problem| (problem.line.unwrap(), problem.what)).collect()
    }

    #[test]
    fn what_is_not_written_follows_from_the_machine() {
        let (folder, second) = (Path::new("/m"), Path::new("/m").join(SECOND_MODEL));
        let bare = Machine {
            processors: 3,
            data_dir: "/d".into(),
            models_dir: folder.into(),
            has_file: |_| false,
            variable: |_| None,
        };
        let fetched = Machine { has_file: |file| file.ends_with(SECOND_MODEL), ..bare.clone() };
        let first = folder.join(super::MODEL);
        for (machine, text, workers, model, second_model) in [
            (&bare, "", 3, &first, None),
            (&bare, "workers = 2\nsecond_model = \"/x\"", 2, &first, Some(Path::new("/x"))),
            (&bare, "language = \"de\"", 3, &first, None),
            (&fetched, "", 3, &first, Some(&*second)),
            (&fetched, "second_model = \"\"", 3, &first, None),
            (&fetched, "language = \"de\"", 3, &second, None),
            (&fetched, "language = \"de\"\nmodel = \"/m/whisper-tiny.en.bin\"", 3, &first, Some(&*second)),
        ] {
            let config = check_for(machine, &format!("[hearing]\n{text}\n"), "x.toml").unwrap();
            let hearing = &config.hearing;
            assert_eq!((hearing.workers, &hearing.model), (workers, model), "{text}");
            assert_eq!(hearing.second_model.as_deref(), second_model, "{text}");
            assert_eq!(config.conversation.second_model, second_model.is_some(), "{text}");
            assert_eq!((config.data_dir, config.models_dir), (PathBuf::from("/d"), PathBuf::from("/m")));
        }
    }

    #[test]
    fn the_time_between_captions_is_within_its_range() {
        let config = check("[hearing]\npartial_interval_ms = 800\n", "x.toml").unwrap();
        assert_eq!(config.conversation.partial_interval_ms, 800);
        assert_eq!(check("", "x.toml").unwrap().conversation.partial_interval_ms, 100);
        for wrong in [0, 49, 5_001] {
            let found = problems(&format!("[hearing]\npartial_interval_ms = {wrong}\n"));
            assert!(found[0].0 == 2 && found[0].1.contains("between 50 and 5000"), "{wrong}: {found:?}");
        }
    }

    #[test]
    fn wake_phrases_are_prompted_however_they_are_punctuated() {
        let text =
            "[hearing]\nwake_phrases = [\"Hey,  Mentra!\", \"D’Artagnan\", \"ok-computer\", \"“Yo” - Évie...\"]\n";
        let phrases = check(text, "x.toml").unwrap().conversation.wake_phrases;
        assert_eq!(phrases, ["hey mentra", "d'artagnan", "ok-computer", "yo évie"]);
        let prompt = audio::asr::Options { wake_phrases: phrases.into(), ..Default::default() }.prompt();
        for written in ["Hey Mentra, ", "D'artagnan, ", "Ok-computer, ", "Yo Évie, "] {
            assert!(prompt.contains(written), "{written}: {prompt}");
        }
    }

    #[test]
    fn wake_phrases_are_known_by_their_sound_where_all_have_heads() {
        let bare = Machine {
            processors: 3,
            data_dir: "/d".into(),
            models_dir: "/m".into(),
            has_file: |_| false,
            variable: |_| None,
        };
        let one = Machine { has_file: |file| file == Path::new("/m/wake/hey_mentra.onnx"), ..bare.clone() };
        let both = Machine { has_file: |file| file.starts_with("/m/wake"), ..bare.clone() };
        let folder = || Some(WakeHeads::Folder("/m/wake".into()));
        for (machine, wake, heads) in [
            (&bare, "", None),
            (&one, "", None),
            (&both, "", folder()),
            (&both, "wake = \"auto\"", folder()),
            (&both, "wake = \"text\"", None),
            (&bare, "wake = \"acoustic\"", folder()),
        ] {
            let text = format!("[hearing]\nwake_phrases = [\"hey mentra\", \"Computer\"]\n{wake}\n");
            assert_eq!(check_for(machine, &text, "x.toml").unwrap().hearing.wake, heads, "{wake}");
        }
        let text = "[hearing]\nwake_phrases = [\"Hey, Mentra!\"]\n";
        let wake = check_for(&one, text, "x.toml").unwrap().hearing.wake;
        assert_eq!(wake, folder(), "its punctuation is in no file's name");
        let found = problems("[hearing]\nwake_heads = [\"/x/hey_mentra.onnx\"]\n");
        assert!(found[0].0 == 2 && found[0].1.contains("needs `hearing.wake = \"acoustic\"`"), "{found:?}");
    }

    #[test]
    fn a_silence_that_no_turn_is_waited_for_is_refused() {
        for key in ["command", "complete", "incomplete", "trailing"].map(|which| format!("silence_{which}_ms")) {
            let found = problems(&format!("[hearing]\n{key} = 2501\n"));
            let is_said = found.iter().any(|(line, what)| *line == 2 && what.contains("and 2500"));
            assert!(is_said, "{key}: {found:?}");
        }
        let all =
            "silence_command_ms = 2500\nsilence_complete_ms = 2500\nsilence_ms = 2500\nsilence_incomplete_ms = 2500";
        let config = check(&format!("[hearing]\n{all}\n"), "x.toml").unwrap();
        assert_eq!(config.conversation.silence_trailing_ms, 2_500);
    }

    #[test]
    fn silences_that_contradict_each_other_are_refused() {
        for (text, line, words) in [
            (
                "silence_ms = 700\nsilence_complete_ms = 800",
                3,
                "`hearing.silence_complete_ms` is 800; it must be at most `hearing.silence_ms`, which is 700",
            ),
            (
                "silence_incomplete_ms = 900\nsilence_ms = 950",
                3,
                "`hearing.silence_ms` is 950; it must be at most `hearing.silence_incomplete_ms`, which is 900",
            ),
            // Against the default of a key that is not written.
            ("silence_complete_ms = 601", 2, "at most `hearing.silence_ms`, which is 600 where nothing is written"),
            ("\nsilence_ms = 400", 3, "at least `hearing.silence_complete_ms`, which is 450 where nothing is written"),
            ("silence_ms = 1700", 2, "at most `hearing.silence_incomplete_ms`, which is 1600"),
            ("silence_incomplete_ms = 500", 2, "at least `hearing.silence_ms`, which is 600"),
            ("silence_command_ms = 451", 2, "at most `hearing.silence_complete_ms`, which is 450"),
            (
                "silence_incomplete_ms = 1000\nsilence_trailing_ms = 900",
                2,
                "at most `hearing.silence_trailing_ms`, which is 900",
            ),
            ("silence_trailing_ms = 500", 2, "at least `hearing.silence_ms`, which is 600"),
        ] {
            let found = problems(&format!("[hearing]\n{text}\n"));
            assert_eq!((found.len(), found[0].0), (1, line), "{text}: {found:?}");
            assert!(found[0].1.contains(words), "{text}: {found:?}");
        }
        for text in [
            "silence_ms = 450",
            "silence_ms = 1600",
            "silence_complete_ms = 600",
            "silence_ms = 1900\nsilence_complete_ms = 1900\nsilence_incomplete_ms = 1900",
            "silence_incomplete_ms = 2500",
            "silence_trailing_ms = 1000",
        ] {
            check(&format!("[hearing]\n{text}\n"), "x.toml").unwrap_or_else(|found| panic!("{text}: {found:?}"));
        }
    }
}
