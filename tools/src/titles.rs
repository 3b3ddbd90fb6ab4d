//! Titles of tools for display and speech.

use serde_json::Value;

use crate::{
    consent,
    limits::{PROGRESS_CHARS_MAX, TITLE_CHARS_MAX},
    registry::Registered,
    reply,
    source::Source,
    spoken,
    wording::{doing, plain, words},
};

impl Registered {
    /// Its own title, otherwise the words of its name: "Delete item".
    pub fn title(&self) -> String {
        let given = self.spec.title.as_deref().map(plain).filter(|title| !title.is_empty());
        let title = given.unwrap_or_else(|| spoken::capitalised(&words(&self.local_name)));
        title.chars().take(TITLE_CHARS_MAX).collect()
    }

    /// The name of its provider, unless that is the gateway or the glasses: "Pantry".
    pub fn owner(&self) -> Option<String> {
        let name = match &self.source {
            Source::BuiltIn | Source::Device(_) => return None,
            // The last part of a package name is the app's own name.
            Source::App(package) => package.rsplit('.').next().unwrap_or(package),
            Source::Mcp(server) => server,
            // A single tool stands for itself.
            Source::Capability(_) if self.about.is_none() => return None,
            Source::Capability(name) => name,
        };
        Some(spoken::capitalised(&words(name)).chars().take(TITLE_CHARS_MAX).collect())
    }

    /// Both on one line: "Pantry: delete item".
    pub fn headline(&self) -> String {
        self.owned(self.title())
    }

    /// What a call with these arguments does, while it runs: in its own words, if it has any and all that they name is
    /// there, otherwise made of the title: "Pantry: deleting item ...".
    pub fn doing(&self, arguments: &Value) -> String {
        let line = self.owned(self.own_words(arguments).unwrap_or_else(|| doing(&self.title())));
        line.chars().take(PROGRESS_CHARS_MAX).collect()
    }

    fn own_words(&self, arguments: &Value) -> Option<String> {
        let template = self.spec.progress.as_deref()?;
        let is_there = |property: &&str| arguments.get(*property).is_some_and(|value| !value.is_null());
        if !reply::slots(template).ok()?.iter().all(is_there) {
            return None;
        }
        let (filled, _) = consent::fill(template, arguments);
        let words = filled.trim_end_matches(['.', '…', ' ']);
        (!words.is_empty()).then(|| format!("{words} ..."))
    }

    fn owned(&self, text: String) -> String {
        let Some(owner) = self.owner() else {
            return text;
        };
        let mut letters = text.chars();
        let first: String = letters.next().map(|first| first.to_lowercase().collect()).unwrap_or_default();
        // "PDF to text" and "Delete Item" keep their capitals.
        let is_name = letters.clone().any(char::is_uppercase);
        if is_name { format!("{owner}: {text}") } else { format!("{owner}: {first}{}", letters.as_str()) }
    }
}
