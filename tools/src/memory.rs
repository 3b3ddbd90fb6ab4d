//! Stored data about a wearer beyond notes: facts, standing instructions, conversations and photos; also the skills that an
//! operator has installed. The gateway implements the ports; the tools in [`crate::builtin`] are their user interface.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;

use crate::{
    matching,
    port_error::PortError,
    programs::{NoPrograms, ProgramStore},
    workspace::{NoWorkspace, Workspace},
};

/// Maximum facts about one wearer: at ten words each, about as much as fits into a model's context.
pub const FACTS_MAX: usize = 1_000;
/// Maximum characters of a fact: a few sentences. Longer texts are notes.
pub const FACT_CHARS_MAX: usize = 500;
/// Maximum standing instructions of one wearer: each is part of every request.
pub const INSTRUCTIONS_MAX: usize = 32;
/// Maximum characters of an instruction.
pub const INSTRUCTION_CHARS_MAX: usize = 300;
/// Maximum characters of a skill's name, and of the name of one of its files.
pub const SKILL_NAME_CHARS_MAX: usize = 64;
/// Maximum characters of the path of a skill's file.
pub const SKILL_PATH_CHARS_MAX: usize = 200;
/// How long "that" refers to the last mentioned fact and a deleted fact can be restored: ten minutes, in microseconds.
pub const THAT_US_MAX: u64 = 600 * 1_000_000;
/// Maximum users whose "that" is tracked: the maximum number of users of one gateway.
const USERS_MAX: usize = 1_024;

/// A short text that is stored for a wearer: a fact, or a standing instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Unique within the user; never reused.
    pub id: u64,
    /// One line.
    pub text: String,
    /// When it was created, in milliseconds since the Unix epoch.
    pub created_wall_ms: i64,
    /// When it was last changed, in the same unit.
    pub changed_wall_ms: i64,
}

/// Stores short texts of wearers. Every change is durably stored before the call returns.
#[async_trait]
pub trait Texts: Send + Sync {
    /// Stores a text.
    async fn add(&self, user: &str, text: &str) -> Result<Text, PortError>;
    /// All texts of a user, newest first.
    async fn list(&self, user: &str) -> Result<Vec<Text>, PortError>;
    /// One text; `None` if there is none.
    async fn get(&self, user: &str, id: u64) -> Result<Option<Text>, PortError>;
    /// Replaces a text; `None` if there was none.
    async fn change(&self, user: &str, id: u64, text: &str) -> Result<Option<Text>, PortError>;
    /// Deletes a text; `None` if there was none.
    async fn remove(&self, user: &str, id: u64) -> Result<Option<Text>, PortError>;
}

/// Something that was said in an earlier conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundMessage {
    /// Number of the one in which it was said.
    pub conversation: u64,
    /// That of the conversation.
    pub title: String,
    /// Whether the wearer said it, else the assistant.
    pub by_wearer: bool,
    /// What was said.
    pub text: String,
    /// When it was stored, in milliseconds since the Unix epoch.
    pub wall_ms: i64,
}

/// Conversations of wearers.
#[async_trait]
pub trait Conversations: Send + Sync {
    /// Starts a new conversation after the current turn.
    async fn begin(&self, user: &str) -> Result<(), PortError>;
    /// Utterances that contain all words of the query, newest first, at most `limit`.
    async fn search(&self, user: &str, query: &str, limit: usize) -> Result<Vec<FoundMessage>, PortError>;
}

/// Photos of wearers.
#[async_trait]
pub trait Photos: Send + Sync {
    /// Deletes the user's last photo, unless it was taken before that time, in milliseconds since the Unix epoch.
    /// Returns whether there was one.
    async fn delete_last(&self, user: &str, since_wall_ms: i64) -> Result<bool, PortError>;
}

/// A skill that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Name from its front matter.
    pub name: String,
    /// When it is useful, in a sentence or two.
    pub description: String,
}

/// Skills: instructions in folders, written by third parties and installed by the operator.
#[async_trait]
pub trait Skills: Send + Sync {
    /// Skills whose requirements are met by the offered tools, by name.
    async fn list(&self, tools: &BTreeSet<String>) -> Result<Vec<Skill>, PortError>;
    /// The text of a skill, or of a file in its folder. `None` if there is no such skill or file.
    async fn read(&self, name: &str, file: Option<&str>) -> Result<Option<String>, PortError>;
}

/// Style instructions for the assistant.
pub trait Personality: Send + Sync {
    /// The text for a model, by the model's name; the default text if none matches or no name is given.
    fn of(&self, model: Option<&str>) -> String;
}

/// All memory ports, passed to tools.
#[derive(Clone)]
pub struct Memory {
    /// Facts about the wearer.
    pub facts: Arc<dyn Texts>,
    /// The wearer's standing instructions.
    pub instructions: Arc<dyn Texts>,
    /// What was said earlier.
    pub conversations: Arc<dyn Conversations>,
    /// Pictures taken with the glasses.
    pub photos: Arc<dyn Photos>,
    /// Files of programs.
    pub workspace: Arc<dyn Workspace>,
    /// Runs of programs, and routines.
    pub programs: Arc<dyn ProgramStore>,
    /// Instructions in folders, installed by the operator.
    pub skills: Arc<dyn Skills>,
    /// Style instructions for the assistant.
    pub personality: Arc<dyn Personality>,
    /// The facts that "that" refers to.
    pub last_mentioned: Arc<LastMentioned>,
}

impl Default for Memory {
    /// A memory that stores nothing.
    fn default() -> Self {
        let nothing = Arc::new(Nothing);
        Self {
            facts: nothing.clone(),
            instructions: nothing.clone(),
            conversations: nothing.clone(),
            photos: nothing.clone(),
            workspace: Arc::new(NoWorkspace),
            programs: Arc::new(NoPrograms),
            skills: nothing.clone(),
            personality: nothing,
            last_mentioned: Arc::default(),
        }
    }
}

/// The fact last mentioned with each user, and the one last deleted. Held in memory only, so that a deleted fact is
/// removed from the disk.
#[derive(Default)]
pub struct LastMentioned(Mutex<BTreeMap<String, Spoken>>);

#[derive(Clone, Default)]
struct Spoken {
    fact: Option<(u64, u64)>,
    forgotten: Option<(String, u64)>,
}

impl LastMentioned {
    fn with<R>(&self, user: &str, act: impl FnOnce(&mut Spoken) -> R) -> R {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !users.contains_key(user) && users.len() >= USERS_MAX {
            users.pop_first();
        }
        act(users.entry(user.to_owned()).or_default())
    }

    /// Records that a fact was mentioned, at this time of the monotonic clock.
    pub fn mention(&self, user: &str, id: u64, now_us: u64) {
        self.with(user, |spoken| spoken.fact = Some((id, now_us)));
    }

    /// The fact that was mentioned last, if that was recent.
    pub fn mentioned(&self, user: &str, now_us: u64) -> Option<u64> {
        self.with(user, |spoken| spoken.fact).filter(|(_, at_us)| is_fresh(*at_us, now_us)).map(|(id, _)| id)
    }

    /// Records that a fact was deleted.
    pub fn forget(&self, user: &str, text: &str, now_us: u64) {
        self.with(user, |spoken| {
            spoken.fact = None;
            spoken.forgotten = Some((text.to_owned(), now_us));
        });
    }

    /// Takes the text that was deleted last, if that was recent.
    pub fn take_forgotten(&self, user: &str, now_us: u64) -> Option<String> {
        let (text, at_us) = self.with(user, |spoken| spoken.forgotten.take())?;
        is_fresh(at_us, now_us).then_some(text)
    }

    /// Removes everything about this user.
    pub fn erase(&self, user: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(user);
    }
}

fn is_fresh(at_us: u64, now_us: u64) -> bool {
    now_us.saturating_sub(at_us) <= THAT_US_MAX
}

/// The texts that are relevant to these words; see [`Index::relevant`].
pub fn relevant(texts: Vec<Text>, words: &str, limit: usize) -> Vec<Text> {
    Index::new(texts).relevant(words, limit).into_iter().cloned().collect()
}

/// An index of texts, newest first, by their words.
#[derive(Debug, Default)]
pub struct Index {
    texts: Vec<Text>,
    by_word: BTreeMap<String, Vec<usize>>,
}

impl Index {
    /// Builds an index of texts, newest first.
    pub fn new(texts: Vec<Text>) -> Self {
        let mut by_word: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, text) in texts.iter().enumerate() {
            let words: BTreeSet<String> = matching::words(&text.text).iter().map(|word| stem(word)).collect();
            for word in words {
                by_word.entry(word).or_default().push(at);
            }
        }
        Self { texts, by_word }
    }

    /// All texts, newest first.
    pub fn texts(&self) -> &[Text] {
        &self.texts
    }

    /// The texts that are relevant to these words, best first, at most `limit`. A word weighs more, the fewer texts
    /// contain it; at equal weight the newer text comes first.
    ///
    /// The weight is the inverse document frequency of Robertson and Spärck Jones in its positive form, ln(1 + n/df);
    /// term frequency and length carry no information in texts of one sentence.
    pub fn relevant(&self, words: &str, limit: usize) -> Vec<&Text> {
        let wanted = matching::words(words);
        let wanted: BTreeSet<String> = wanted.iter().filter(|word| !is_common(word)).map(|word| stem(word)).collect();
        let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
        for with in wanted.iter().filter_map(|word| self.by_word.get(word)) {
            let weight = (1.0 + self.texts.len() as f64 / with.len() as f64).ln();
            for at in with {
                *scores.entry(*at).or_default() += weight;
            }
        }
        let mut scored: Vec<(usize, f64)> = scores.into_iter().collect();
        // The sort is stable: among equals the newer one stays first.
        scored.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        scored.into_iter().take(limit).filter_map(|(at, _)| self.texts.get(at)).collect()
    }
}

/// A word without a plural "s".
fn stem(word: &str) -> String {
    word.strip_suffix('s').filter(|stem| stem.chars().count() >= 3).unwrap_or(word).to_owned()
}

/// Words of questions and small talk, which carry no topic.
fn is_common(word: &str) -> bool {
    const COMMON: &str = " i me you he she it we they is am are was were be been do does did have has had can could will \
        would should may might must what who where when why how which this that these those there here not no yes \
        please tell say know remember think get go make take want need so if or but then than as by its im ive id \
        ill dont just now today about into out up down off over again all any some one ";
    COMMON.contains(&format!(" {word} "))
}

struct Nothing;

fn nothing<T>() -> Result<T, PortError> {
    Err(PortError::Unavailable("nothing is kept here".to_owned()))
}

#[async_trait]
impl Texts for Nothing {
    async fn add(&self, _user: &str, _text: &str) -> Result<Text, PortError> {
        nothing()
    }

    async fn list(&self, _user: &str) -> Result<Vec<Text>, PortError> {
        Ok(Vec::new())
    }

    async fn get(&self, _user: &str, _id: u64) -> Result<Option<Text>, PortError> {
        Ok(None)
    }

    async fn change(&self, _user: &str, _id: u64, _text: &str) -> Result<Option<Text>, PortError> {
        nothing()
    }

    async fn remove(&self, _user: &str, _id: u64) -> Result<Option<Text>, PortError> {
        nothing()
    }
}

#[async_trait]
impl Conversations for Nothing {
    async fn begin(&self, _user: &str) -> Result<(), PortError> {
        nothing()
    }

    async fn search(&self, _user: &str, _query: &str, _limit: usize) -> Result<Vec<FoundMessage>, PortError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl Photos for Nothing {
    async fn delete_last(&self, _user: &str, _since_wall_ms: i64) -> Result<bool, PortError> {
        nothing()
    }
}

#[async_trait]
impl Skills for Nothing {
    async fn list(&self, _tools: &BTreeSet<String>) -> Result<Vec<Skill>, PortError> {
        Ok(Vec::new())
    }

    async fn read(&self, _name: &str, _file: Option<&str>) -> Result<Option<String>, PortError> {
        Ok(None)
    }
}

impl Personality for Nothing {
    fn of(&self, _model: Option<&str>) -> String {
        "Be brief.".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::texts;

    fn ids(all: &[&str], words: &str, limit: usize) -> Vec<u64> {
        relevant(texts(all), words, limit).into_iter().map(|text| text.id).collect()
    }

    #[test]
    fn what_has_to_do_with_the_words_comes_first() {
        let all = [
            "my car is on level three",
            "my sister's car is red",
            "Lena is vegetarian",
            "the keys of the car are with Paul",
            "Paul plays chess",
        ];
        assert_eq!(ids(&all, "Where is my car?", 9), [1, 2, 4]);
        assert_eq!(ids(&all, "does Paul have the car keys", 9), [4, 5, 1, 2]);
        assert_eq!(ids(&all, "what does Lena eat", 9), [3]);
        assert_eq!(ids(&all, "cars", 1), [1], "a plural, and the limit");
        for nothing in ["", "what is it", "how are you", "Who is Otto?"] {
            assert!(ids(&all, nothing, 9).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn that_is_what_was_spoken_of_and_not_for_long() {
        let last_mentioned = LastMentioned::default();
        assert_eq!(last_mentioned.mentioned("ann", 0), None);
        last_mentioned.mention("ann", 7, 1_000);
        assert_eq!(last_mentioned.mentioned("ann", 1_000 + THAT_US_MAX), Some(7));
        assert_eq!(last_mentioned.mentioned("ann", 1_001 + THAT_US_MAX), None);
        assert_eq!(last_mentioned.mentioned("bob", 1_000), None);
        last_mentioned.forget("ann", "a fact", 2_000);
        assert_eq!(last_mentioned.mentioned("ann", 2_000), None);
        assert_eq!(last_mentioned.take_forgotten("ann", 2_000).as_deref(), Some("a fact"));
        assert_eq!(last_mentioned.take_forgotten("ann", 2_000), None, "once");
        last_mentioned.forget("ann", "a fact", 2_000);
        last_mentioned.erase("ann");
        assert_eq!(last_mentioned.take_forgotten("ann", 2_000), None);
        for user in 0..2 * USERS_MAX {
            last_mentioned.mention(&user.to_string(), 1, 0);
        }
        assert_eq!(last_mentioned.0.lock().unwrap().len(), USERS_MAX);
    }
}
