//! Wake phrases that are heard in the sound: the heads of the configured phrases, and where they run.
//!
//! The gateway listens this way only if every wake phrase has a head: one without would never be heard.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context as _, Result};
use audio::wake::{Head, Models, detector::HEADS_MAX};
use gateway_core::output::WakeOutcome;
use serde::{Deserialize, Serialize};

use crate::runtime::compute::Compute;

/// Folder of heads in the models folder.
pub(crate) const FOLDER: &str = "wake";
/// Most heads that are looked at, for the phrases of which they are.
const FILES_MAX: usize = 64;

/// Which heads there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WakeHeads {
    /// The ONNX files of this folder.
    Folder(PathBuf),
    /// No other files than these.
    Files(Vec<PathBuf>),
}

/// Wake words by their sound, for all devices.
#[derive(Clone)]
pub struct WakeWords {
    /// Shared by all heads.
    pub(crate) models: Arc<Models>,
    heads: Arc<[Arc<Head>]>,
    /// Where they run.
    pub(crate) compute: Compute,
}

/// What came of listening for wake words, since the start.
#[derive(Debug, Default)]
pub struct WakeCounts {
    heard: AtomicU64,
    verified: AtomicU64,
    vetoed: AtomicU64,
    unheard: AtomicU64,
    skipped: AtomicU64,
}

/// The same at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeTally {
    /// Phrases that were heard in the sound.
    pub heard: u64,
    /// Those that the text has as well.
    pub verified: u64,
    /// Those that the text denies.
    pub vetoed: u64,
    /// Utterances that were not decoded, because none was heard in them.
    pub unheard: u64,
    /// Utterances that were not listened to in full, for lack of time or because a model failed.
    pub skipped: u64,
}

impl WakeCounts {
    /// A phrase was heard.
    pub(crate) fn heard(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }

    /// An utterance was not listened to in full.
    pub(crate) fn skipped(&self) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
    }

    /// The core's word on an utterance.
    pub(crate) fn settled(&self, outcome: WakeOutcome) {
        let counter = match outcome {
            WakeOutcome::Unheard => &self.unheard,
            WakeOutcome::Verified => &self.verified,
            WakeOutcome::Vetoed => &self.vetoed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// All of them.
    pub fn get(&self) -> WakeTally {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        WakeTally {
            heard: of(&self.heard),
            verified: of(&self.verified),
            vetoed: of(&self.vetoed),
            unheard: of(&self.unheard),
            skipped: of(&self.skipped),
        }
    }
}

impl WakeWords {
    /// Loads the shared models and the heads, and starts `threads` threads for up to `devices` devices.
    ///
    /// # Errors
    /// What is missing or wrong, all of it, with the remedies.
    pub(crate) fn load(
        heads: &WakeHeads,
        models_dir: &Path,
        phrases: &[String],
        (threads, devices): (usize, usize),
    ) -> Result<Self> {
        let read = read_heads(heads);
        let mut problems = read.problems;
        problems.extend(without_head(&read.heads, phrases).into_iter().map(no_head));
        anyhow::ensure!(problems.is_empty(), "{}", problems.join("; "));
        Ok(Self {
            models: Models::load(models_dir)?,
            heads: read.heads.into(),
            compute: Compute::start("wake", threads, devices).context("starting the threads for wake words")?,
        })
    }

    /// The heads of these phrases; `None`: one of them has none, so that all are to be known by their text.
    pub(crate) fn heads_of(&self, phrases: &[String]) -> Option<Arc<[Arc<Head>]>> {
        let of = |phrase: &String| self.heads.iter().find(|head| is_same(&head.settings().phrase, phrase)).cloned();
        let mut heads = phrases.iter().map(of).collect::<Option<Vec<_>>>()?;
        heads.sort_unstable_by_key(Arc::as_ptr);
        heads.dedup_by(|one, other| Arc::ptr_eq(one, other));
        (heads.len() <= HEADS_MAX).then(|| heads.into())
    }
}

/// Name of the file with the head of a phrase.
pub(crate) fn file_of(phrase: &str) -> String {
    phrase.to_lowercase().replace(' ', "_") + ".onnx"
}

/// What would keep the gateway from listening for these phrases by their sound, apart from the shared models.
pub(crate) fn examine(heads: &WakeHeads, phrases: &[String]) -> Vec<String> {
    let Read { heads, mut problems } = read_heads(heads);
    problems.extend(without_head(&heads, phrases).into_iter().map(no_head));
    problems
}

/// Heads, and what is wrong with others.
struct Read {
    heads: Vec<Arc<Head>>,
    problems: Vec<String>,
}

fn read_heads(heads: &WakeHeads) -> Read {
    let (files, mut problems) = match heads {
        WakeHeads::Files(files) => (files.clone(), Vec::new()),
        WakeHeads::Folder(folder) => files_in(folder),
    };
    if files.len() > FILES_MAX {
        problems.push(format!("there are {} heads of wake phrases; only {FILES_MAX} are looked at", files.len()));
    }
    let mut read = Vec::new();
    for file in files.iter().take(FILES_MAX) {
        match Head::load(file) {
            Ok(head) => read.push(head),
            Err(error) => problems.push(error.to_string()),
        }
    }
    Read { heads: read, problems }
}

/// The ONNX files of a folder by their names; none if there is no folder.
fn files_in(folder: &Path) -> (Vec<PathBuf>, Vec<String>) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Default::default(),
        Err(error) => return (Vec::new(), vec![format!("{} cannot be read: {error}", folder.display())]),
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|end| end == "onnx")).collect();
    files.sort();
    (files, Vec::new())
}

fn without_head(heads: &[Arc<Head>], phrases: &[String]) -> Vec<String> {
    let has_none = |phrase: &&String| !heads.iter().any(|head| is_same(&head.settings().phrase, phrase));
    phrases.iter().filter(has_none).cloned().collect()
}

fn no_head(phrase: String) -> String {
    format!(
        "the wake phrase {phrase:?} has no head; `lorgnette wake train {phrase:?}` makes one, or take the phrase out of \
         `hearing.wake_phrases`"
    )
}

/// Whether the words are the same.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    fn words(text: &str) -> impl Iterator<Item = String> {
        text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
    }
    words(one).eq(words(other))
}

#[cfg(test)]
pub(super) mod tests {
    use audio::wake::{EMBEDDING, EMBEDDINGS, WINDOW, onnx::Graph};

    use super::*;

    /// The file of a head that hears its phrase always.
    pub(crate) fn always(phrase: &str) -> Vec<u8> {
        let graph = Graph::new()
            .tensor("weights", &[WINDOW, 1], &[0.0; WINDOW])
            .tensor("bias", &[1], &[5.0])
            .node("Flatten", &["window"], "flat", &[("axis", 1)])
            .node("Gemm", &["flat", "weights", "bias"], "logit", &[])
            .node("Sigmoid", &["logit"], "score", &[]);
        let metadata = [("lorgnette.phrase", phrase)];
        graph.file(("window", &[1, EMBEDDINGS, EMBEDDING]), ("score", &[1, 1]), &metadata)
    }

    fn phrases(phrases: &[&str]) -> Vec<String> {
        phrases.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_phrase_needs_a_head_that_can_be_used() {
        let folder = tempfile::tempdir().unwrap();
        let heads = WakeHeads::Folder(folder.path().to_owned());
        let found = |wanted: &[&str]| examine(&heads, &phrases(wanted));
        assert_eq!(found(&["hey mentra"]).len(), 1);
        fs::write(folder.path().join("a.onnx"), always("hey mentra")).unwrap();
        fs::write(folder.path().join("b.onnx"), always("Okay, Mentra")).unwrap();
        fs::write(folder.path().join("real-speech.f16"), b"something else").unwrap();
        assert_eq!(found(&["hey mentra", "okay mentra"]), Vec::<String>::new());
        let problems = found(&["hey mentra", "computer", "mentra"]);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("\"computer\"") && problems[0].contains("wake train"), "{problems:?}");
        fs::write(folder.path().join("c.onnx"), &always("computer")[..900]).unwrap();
        let problems = found(&["computer"]);
        assert!(problems.len() == 2 && problems[0].contains("c.onnx"), "{problems:?}");
        let listed = WakeHeads::Files(vec![folder.path().join("a.onnx"), folder.path().join("none.onnx")]);
        let problems = examine(&listed, &phrases(&["hey mentra"]));
        assert!(problems.len() == 1 && problems[0].contains("none.onnx"), "{problems:?}");
        let absent = WakeHeads::Folder(folder.path().join("absent"));
        assert_eq!(examine(&absent, &phrases(&["mentra"])).len(), 1);
    }

    #[test]
    fn a_session_gets_the_heads_of_its_phrases_or_none() {
        let folder = tempfile::tempdir().unwrap();
        for (file, phrase) in [("a.onnx", "hey mentra"), ("b.onnx", "mentra"), ("c.onnx", "computer")] {
            fs::write(folder.path().join(file), always(phrase)).unwrap();
        }
        let heads = WakeHeads::Folder(folder.path().to_owned());
        let models_dir = audio::models::default_dir();
        let words = WakeWords::load(&heads, &models_dir, &phrases(&["hey mentra", "mentra"]), (1, 4)).unwrap();
        let of = |wanted: &[&str]| words.heads_of(&phrases(wanted)).map(|heads| heads.len());
        assert_eq!(of(&["hey mentra", "mentra"]), Some(2));
        assert_eq!(of(&["Mentra!", "mentra"]), Some(1), "twice the same");
        // After a reload.
        assert_eq!((of(&["computer"]), of(&["computer", "jarvis"])), (Some(1), None));
        let error = WakeWords::load(&heads, &models_dir, &phrases(&["jarvis"]), (1, 4)).err().unwrap();
        assert!(error.to_string().contains("jarvis"), "{error}");
        let error = WakeWords::load(&heads, folder.path(), &phrases(&["mentra"]), (1, 4)).err().unwrap();
        assert!(error.to_string().contains("models fetch wake-embedding"), "{error}");
    }
}
