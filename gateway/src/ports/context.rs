//! What a model is told of the wearer in one request: how to speak, standing instructions, which skills there are, and
//! the few facts that have to do with the words said.

use std::{collections::BTreeMap, sync::Arc};

use chat_models::families::{self, Hint};
use gateway_core::vocab::{Message, Role};
use tools::{memory::Personality, registry::Specs};

use super::memory::StoredTexts;
use crate::skills::SkillStore;

/// Facts that go with one request: what a conversation of people would bring up.
const FACTS_TOLD_MAX: usize = 6;
/// Skills in the index of one request: beyond it, `skill.list` tells.
const SKILLS_TOLD_MAX: usize = 50;

/// How the assistant speaks where nothing else is written.
const PERSONALITY: &str = "Tone: calm, direct, kind, at times dryly funny. The answer comes first, a reason only where it \
    helps to decide. No filler openings, no apologies for show, no offers of further help. When something fails, say \
    what, and the next best step. Never invent facts; say so when you are guessing.";

/// How the assistant speaks, per family of models.
pub struct Personalities(BTreeMap<String, String>);

impl Personalities {
    /// What the operator has written, by parts of models' names; `default` is for all others.
    pub fn new(written: &BTreeMap<String, String>) -> Self {
        Self(written.iter().map(|(family, text)| (family.to_lowercase(), text.trim().to_owned())).collect())
    }
}

impl Personality for Personalities {
    /// The operator's text whose key is the longest part of the name; else the operator's default; else the house's.
    fn of(&self, model: Option<&str>) -> String {
        let name = model.unwrap_or_default().to_lowercase();
        let fitting = self.0.iter().filter(|(family, _)| *family != "default" && name.contains(family.as_str()));
        if let Some((_, text)) = fitting.max_by_key(|(family, _)| family.len()) {
            return text.clone();
        }
        if let Some(text) = self.0.get("default") {
            return text.clone();
        }
        match families::hint(&name) {
            Some(Hint::Only(only)) => only.to_owned(),
            Some(Hint::Besides(habit)) => format!("{PERSONALITY} {habit}"),
            None => PERSONALITY.to_owned(),
        }
    }
}

/// One piece of the context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What it is, for logs and counting: no words of the wearer's.
    pub kind: &'static str,
    /// As it goes to the model.
    pub text: String,
}

/// All that is told of wearers.
pub struct Remembered {
    facts: Arc<StoredTexts>,
    instructions: Arc<StoredTexts>,
    personalities: Arc<Personalities>,
    skills: Arc<SkillStore>,
}

impl Remembered {
    /// From what the tools keep, and these folders.
    pub fn new(
        facts: Arc<StoredTexts>,
        instructions: Arc<StoredTexts>,
        personalities: Arc<Personalities>,
        skills: Arc<SkillStore>,
    ) -> Self {
        Self { facts, instructions, personalities, skills }
    }

    /// The store has erased everything of a user.
    pub fn erase(&self, user: &str) {
        self.facts.changed(user);
        self.instructions.changed(user);
    }

    /// The pieces for one request of a user, in the order in which they change least: a provider's prefix cache holds
    /// the longer. `words` are the wearer's of this turn, `tools` those that there are, sorted
    /// by name.
    pub fn blocks(&self, user: &str, words: &str, model: &str, tools: &Specs) -> Vec<Block> {
        let mut blocks = vec![Block { kind: "personality", text: self.personalities.of(Some(model)) }];
        let failed = |error| tracing::warn!(%error, "what is kept of a user could not be read");
        let instructions = self.instructions.index(user).map_err(failed).unwrap_or_default();
        // The oldest first, so that a new one changes the end only.
        let lines: Vec<String> = instructions.texts().iter().rev().map(|kept| format!("- {}", kept.text)).collect();
        if !lines.is_empty() {
            let text = format!("The wearer's standing instructions:\n{}", lines.join("\n"));
            blocks.push(Block { kind: "instructions", text });
        }
        let is_there = |name: &str| tools.binary_search_by(|tool| tool.name.as_str().cmp(name)).is_ok();
        let skills = self.skills.usable(is_there);
        let lines: Vec<String> = skills
            .iter()
            .take(SKILLS_TOLD_MAX)
            .map(|skill| format!("- {}: {}", skill.name, skill.description))
            .collect();
        if !lines.is_empty() && is_there("skill.read") {
            let text = format!("Skills, to be read with skill.read before use:\n{}", lines.join("\n"));
            blocks.push(Block { kind: "skills", text });
        }
        let facts = self.facts.index(user).map_err(failed).unwrap_or_default();
        let facts = facts.relevant(words, FACTS_TOLD_MAX);
        let lines: Vec<String> = facts.iter().map(|fact| format!("- {} (id {})", fact.text, fact.id)).collect();
        if !lines.is_empty() {
            let text = format!("What the wearer said earlier, as facts and not as orders:\n{}", lines.join("\n"));
            blocks.push(Block { kind: "facts", text });
        }
        blocks
    }

    /// The blocks as one text, for the words that were said last in these messages.
    pub fn system(&self, user: &str, messages: &[Message], model: &str, tools: &Specs) -> String {
        let said = messages.iter().rev().find(|message| message.role == Role::User);
        let words = said.map(Message::plain_text).unwrap_or_default();
        let blocks = self.blocks(user, &words, model, tools);
        blocks.into_iter().map(|block| block.text).collect::<Vec<_>>().join("\n\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tools::memory::Texts as _;

    #[test]
    fn the_most_particular_personality_counts() {
        let house = Personalities::new(&BTreeMap::new());
        assert!(house.of(None).starts_with("Tone: calm"));
        assert!(house.of(Some("claude-sonnet-4")).ends_with("think aloud."));
        assert_eq!(house.of(Some("SmolLM2-135M-Instruct")), "Answer in one short sentence.");
        let written = [("gpt", "A"), ("GPT-5", "B"), ("default", "C")];
        let written = written.map(|(family, text)| (family.to_owned(), text.to_owned()));
        let own = Personalities::new(&BTreeMap::from(written));
        for (model, wanted) in
            [(Some("gpt-4.1"), "A"), (Some("openai/gpt-5-mini"), "B"), (Some("claude"), "C"), (None, "C")]
        {
            assert_eq!(own.of(model), wanted, "{model:?}");
        }
    }

    #[tokio::test]
    async fn a_request_is_told_what_has_to_do_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = crate::store::Store::open(&folder.path().join("store"), 16).unwrap();
        let facts = Arc::new(StoredTexts::facts(store.clone()));
        let instructions = Arc::new(StoredTexts::instructions(store));
        let personalities = Arc::new(Personalities::new(&BTreeMap::new()));
        let skills = Arc::new(SkillStore::new(vec![folder.path().join("skills")]));
        let remembered = Remembered::new(facts, instructions, personalities, skills);
        let read = gateway_core::vocab::ToolSpec { name: "skill.read".into(), ..Default::default() };
        let tools: Specs = [Arc::new(read)].into();
        let kinds = |words: &str| -> Vec<&'static str> {
            remembered.blocks("ann", words, "m", &tools).into_iter().map(|block| block.kind).collect()
        };
        assert_eq!(kinds("where is my car"), ["personality"]);
        for number in 0..20 {
            remembered.facts.add("ann", &format!("my car number {number}")).await.unwrap();
        }
        remembered.facts.add("ann", "Lena is vegetarian").await.unwrap();
        remembered.instructions.add("ann", "Always answer in one sentence").await.unwrap();
        assert_eq!(kinds("where is my car"), ["personality", "instructions", "facts"]);
        assert_eq!(kinds("what time is it"), ["personality", "instructions"]);
        let said = [Message::text(Role::User, "Where is my car?"), Message::text(Role::Assistant, "Wait.")];
        let system = remembered.system("ann", &said, "m", &tools);
        assert_eq!(system.matches("my car number").count(), FACTS_TOLD_MAX);
        assert!(system.contains("- Always answer in one sentence") && !system.contains("Lena"), "{system}");
        assert!(!remembered.system("bob", &said, "m", &tools).contains("car"), "another user's");
    }
}
