//! Which models a configuration needs on this machine's disk, for speech and sentence embeddings.

use audio::models::{CATALOGUE, Entry, catalogue};

use super::Config;
use crate::{
    models::settings::RouterBy,
    speech::settings::{MODEL, SECOND_MODEL},
};

impl Config {
    /// The models that this configuration needs, except those that the operator provides.
    pub(crate) fn models_wanted(&self) -> Vec<&'static Entry> {
        let by_sentences = matches!(self.models.tools.by, RouterBy::Sentences { .. });
        let is_wanted = |entry: &Entry| match entry.id {
            catalogue::MINILM => by_sentences,
            catalogue::SMART_TURN => self.hearing.end_of_turn,
            catalogue::WAKE_EMBEDDING => self.hearing.wake.is_some(),
            // It is optional, but used if it was fetched.
            catalogue::WHISPER_BASE => self.hearing.models().any(|model| *model == self.models_dir.join(SECOND_MODEL)),
            catalogue::WHISPER_TINY_EN => self.hearing.models().any(|model| *model == self.models_dir.join(MODEL)),
            _ => entry.needed,
        };
        CATALOGUE.iter().filter(|entry| is_wanted(entry)).collect()
    }

    /// Whether the gateway starts without a model that it [wants](Self::models_wanted): a recogniser at a server is asked then.
    pub(crate) fn can_do_without(&self, entry: &Entry) -> bool {
        entry.id == catalogue::WHISPER_TINY_EN && self.hearing.remote.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::check;

    #[test]
    fn models_are_wanted_by_what_uses_them() {
        let ids = |text: &str| {
            let config = check(text, "x.toml").unwrap();
            config.models_wanted().iter().map(|entry| entry.id).collect::<Vec<_>>()
        };
        let always = [catalogue::WHISPER_TINY_EN, catalogue::SILERO, catalogue::HIBARI];
        // Independent of the models that are fetched on this machine.
        let alone = "models_dir = \"/x\"\n[hearing]\nsecond_model = \"\"\n";
        assert_eq!(ids(alone), always);
        let with = |more: &'static str| [&always[..], &[more]].concat();
        assert_eq!(ids(&format!("{alone}[router]\nby = \"sentences\"\n")), with(catalogue::MINILM));
        assert_eq!(ids(&format!("{alone}end_of_turn = true\n")), with(catalogue::SMART_TURN));
        assert_eq!(ids(&format!("{alone}wake = \"acoustic\"\n")), with(catalogue::WAKE_EMBEDDING));
        let remote = "[hearing]\nremote = { base_url = \"http://h\", model = \"m\", use = \"instead\" }\n";
        let spared = |text: &str| {
            let config = check(text, "x.toml").unwrap();
            CATALOGUE.iter().filter(|entry| config.can_do_without(entry)).map(|entry| entry.id).collect::<Vec<_>>()
        };
        assert_eq!((spared(remote), spared("")), (vec![catalogue::WHISPER_TINY_EN], vec![]));
        let second = "models_dir = \"/x\"\n[hearing]\nsecond_model = ";
        assert!(ids(&format!("{second}\"/x/whisper-base.bin\"\n")).contains(&catalogue::WHISPER_BASE));
        assert_eq!(ids(&format!("{second}\"/x/own.bin\"\n")), always);
    }
}
