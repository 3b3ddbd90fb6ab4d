//! Reads the wearer's data for a request to a model; `tools::request_context` selects from it.

use std::{collections::BTreeMap, sync::Arc};

use chat_models::families;
use gateway_core::vocab::Message;
use tools::{
    memory::{Index, Personality},
    personality,
    registry::Specs,
    request_context::{self, Known, ModuleList},
};

use super::memory::StoredTexts;
use crate::{skills::SkillStore, store};

/// The operator's style instructions, with the hints for families of models.
pub struct Personalities(personality::Personalities);

impl Personalities {
    /// From the configured texts, by parts of models' names; `default` is for all others.
    pub fn new(written: &BTreeMap<String, String>) -> Self {
        Self(personality::Personalities::new(written))
    }
}

impl Personality for Personalities {
    fn of(&self, model: Option<&str>) -> String {
        self.0.text(model, model.and_then(families::hint))
    }
}

/// Builds the context of a request from the stored data of its user.
pub struct ContextBuilder {
    facts: Arc<StoredTexts>,
    instructions: Arc<StoredTexts>,
    personalities: Arc<Personalities>,
    skills: Arc<SkillStore>,
}

impl ContextBuilder {
    /// From the tools' stores, and these folders.
    pub fn new(
        facts: Arc<StoredTexts>,
        instructions: Arc<StoredTexts>,
        personalities: Arc<Personalities>,
        skills: Arc<SkillStore>,
    ) -> Self {
        Self { facts, instructions, personalities, skills }
    }

    /// Drops cached data of a user who was erased from the store.
    pub fn erase(&self, user: &str) {
        self.facts.changed(user);
        self.instructions.changed(user);
    }

    /// The system text for a model of this name, for the last words in these messages; `tools` are sorted by name,
    /// `modules` is what it is told of those for its programs.
    pub fn system(
        &self,
        user: &str,
        messages: &[Message],
        model: &str,
        (tools, modules): (&Specs, Option<&ModuleList>),
    ) -> String {
        let personality = self.personalities.of(Some(model));
        let (instructions, facts) = (kept(self.instructions.index(user)), kept(self.facts.index(user)));
        let skills = self.skills.usable(|name| request_context::is_offered(tools, name));
        let known = Known {
            personality: &personality,
            instructions: instructions.texts(),
            skills: &skills,
            facts: &facts,
            tools,
            modules,
        };
        request_context::system(known, messages)
    }
}

/// Empty if the store cannot be read: the model is asked all the same.
fn kept(index: Result<Arc<Index>, store::Error>) -> Arc<Index> {
    index.inspect_err(|error| tracing::warn!(%error, "what is kept of a user could not be read")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use gateway_core::vocab::Role;
    use tools::memory::Texts as _;

    use super::*;

    #[test]
    fn a_model_of_a_family_is_told_of_its_hint() {
        let personalities = Personalities::new(&BTreeMap::new());
        assert!(personalities.of(None).starts_with("Tone: calm"));
        assert!(personalities.of(Some("claude-sonnet-4")).ends_with("think aloud."));
        assert_eq!(personalities.of(Some("SmolLM2-135M-Instruct")), "Answer in one short sentence.");
    }

    #[tokio::test]
    async fn what_is_kept_of_a_user_is_told_in_that_users_requests() {
        let folder = tempfile::tempdir().unwrap();
        let store = store::Store::open(&folder.path().join("store"), 16).unwrap();
        let facts = Arc::new(StoredTexts::facts(store.clone()));
        let instructions = Arc::new(StoredTexts::instructions(store));
        let personalities = Arc::new(Personalities::new(&BTreeMap::new()));
        let skills = Arc::new(SkillStore::new(vec![folder.path().join("skills")]));
        let context = ContextBuilder::new(facts, instructions, personalities, skills);
        context.facts.add("ann", "my car is on level three").await.unwrap();
        context.instructions.add("ann", "Always answer in one sentence").await.unwrap();
        let said = [Message::text(Role::User, "Where is my car?")];
        let told = |user: &str| context.system(user, &said, "m", (&Specs::default(), None));
        assert!(told("ann").contains("- Always answer in one sentence") && told("ann").contains("level three"));
        assert!(!told("bob").contains("level three"), "another user's");
    }
}
