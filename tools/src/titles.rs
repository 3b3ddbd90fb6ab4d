//! Titles of tools for display and speech.

use crate::{
    limits::TITLE_CHARS_MAX,
    registry::Registered,
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

    /// What a call of it does, while it runs: "Pantry: deleting item ...".
    pub fn doing(&self) -> String {
        self.owned(doing(&self.title()))
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
