//! Reads the configuration again while the gateway runs: what may change changes, what may not is named.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use toml::Value;

use crate::{
    config::{self, Config},
    control::admin::Reloaded,
    device_task::settings::{CHANGEABLE, Current},
};

/// The key of the announced name, which is the gateway's where it is empty.
const ANNOUNCED: &str = "discovery.name";

/// Values by their keys: `hearing.wake_phrases`.
type Values = BTreeMap<String, Value>;

/// Reloads the configuration file of a running gateway.
pub(super) struct Reloader {
    /// The settings that count, and what is written of them: of those that a reload did not take over, what the gateway was
    /// started with.
    in_force: Mutex<Config>,
    current: Current,
    /// The name under which it is announced on the network until the restart; `None`: it is not.
    announced: Option<String>,
}

impl Reloader {
    /// Of the configuration that the gateway was started with; `is_announced`: on the network.
    pub(super) fn new(config: &Config, current: Current, is_announced: bool) -> Self {
        let announced = is_announced.then(|| announced_as(config).to_owned());
        Self { in_force: Mutex::new(config.clone()), current, announced }
    }

    /// The settings that count, for a gateway that starts again.
    pub(super) fn in_force(&self) -> Config {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Config> {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the file again.
    ///
    /// # Errors
    /// There is none, or it has errors: all of them. Nothing has changed.
    pub(super) fn reload(&self) -> Result<Reloaded, Vec<String>> {
        let mut in_force = self.locked();
        let Some(file) = &in_force.file else {
            return Err(vec![
                "the gateway was started without a configuration file (`--config`): there is nothing to read"
                    .to_owned(),
            ]);
        };
        let new = config::load(Some(file)).map_err(|problems| {
            let mut told: Vec<String> = problems.iter().map(ToString::to_string).collect();
            told.push("nothing was changed: correct the file and reload once more".to_owned());
            told
        })?;
        let before = self.current.get();
        let has_other_model = before.conversation.conversational != new.conversation.conversational;
        let mut reloaded = Reloaded::default();
        for key in differing(&in_force.written, &new.written) {
            // The instructions that stand where none are written depend on the model.
            let waits = has_other_model && key == "assistant.instructions";
            match may_change(&key) && !waits {
                true => reloaded.applied.push(key),
                false => reloaded.needs_restart.push(key),
            }
        }
        for key in &reloaded.applied {
            match new.written.get(key) {
                Some(value) => in_force.written.insert(key.clone(), value.clone()),
                None => in_force.written.remove(key),
            };
        }
        let keeps_announced = self.announced.as_ref().is_some_and(|name| name != announced_as(&new));
        if keeps_announced && !reloaded.needs_restart.iter().any(|key| key == ANNOUNCED) {
            reloaded.needs_restart.push(ANNOUNCED.to_owned());
        }
        let now = before.changed(new.name, new.voice, new.conversation);
        in_force.name.clone_from(&now.gateway_name);
        in_force.voice = now.voice;
        in_force.conversation = now.conversation.clone();
        self.current.put(now);
        tracing::info!(applied = ?reloaded.applied, needs_restart = ?reloaded.needs_restart, "the configuration was read again");
        Ok(reloaded)
    }
}

fn announced_as(config: &Config) -> &str {
    if config.discovery.name.is_empty() { &config.name } else { &config.discovery.name }
}

fn may_change(key: &str) -> bool {
    CHANGEABLE.iter().any(|own| key.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// Keys whose values are not the same.
fn differing(one: &Values, other: &Values) -> Vec<String> {
    let mut keys: Vec<String> = one.keys().chain(other.keys()).cloned().collect();
    keys.sort();
    keys.dedup();
    keys.retain(|key| one.get(key) != other.get(key));
    keys
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::device_task::settings::Changeable;

    fn start(file: &Path, is_announced: bool) -> Reloader {
        started(&config::load(Some(file)).unwrap(), is_announced)
    }

    fn started(config: &Config, is_announced: bool) -> Reloader {
        let (gateway_name, voice, conversation) = (config.name.clone(), config.voice, config.conversation.clone());
        Reloader::new(config, Current::new(Changeable { gateway_name, voice, conversation }), is_announced)
    }

    fn told(applied: &[&str], needs_restart: &[&str]) -> Reloaded {
        let owned = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        Reloaded { applied: owned(applied), needs_restart: owned(needs_restart) }
    }

    #[test]
    fn what_may_change_changes_and_what_may_not_is_named_until_the_restart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.toml");
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        write("name = \"One\"\n[hearing]\nworkers = 1\n");
        let reloader = start(&file, false);
        assert_eq!(reloader.reload(), Ok(Reloaded::default()));
        write("name = \"Two\"\n[hearing]\nworkers = 2\nwake_phrases = [\"hey robin\"]\n[voice]\nspeed = 1.2\n");
        let applied = ["hearing.wake_phrases", "name", "voice.speed"];
        assert_eq!(reloader.reload(), Ok(told(&applied, &["hearing.workers"])));
        let now = reloader.current.get();
        assert_eq!((now.gateway_name.as_str(), now.voice.speed), ("Two", 1.2));
        assert_eq!(now.conversation.wake_phrases, ["hey robin"]);
        // Told again, as long as it waits; what is not written any more has its default.
        write("[hearing]\nworkers = 2\n");
        assert_eq!(reloader.reload(), Ok(told(&applied, &["hearing.workers"])));
        assert_eq!(reloader.current.get().gateway_name, "Lorgnette");
        write("[hearing]\nworkers = 1\n");
        assert_eq!(reloader.reload(), Ok(Reloaded::default()));
    }

    #[test]
    fn a_gateway_that_starts_again_has_what_was_reloaded_and_the_rest_waits_on() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.toml");
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        write("name = \"One\"\n[hearing]\nworkers = 1\n");
        let reloader = start(&file, false);
        let changed = "name = \"Two\"\n[hearing]\nworkers = 2\nwake_phrases = [\"hey robin\"]\n[voice]\nspeed = 1.2\n";
        write(changed);
        reloader.reload().unwrap();
        // Written since then, and not reloaded.
        write("name = \"Three\"\n");
        let in_force = reloader.in_force();
        assert_eq!((in_force.name.as_str(), in_force.voice.speed, in_force.hearing.workers), ("Two", 1.2, 1));
        assert_eq!(in_force.conversation.wake_phrases, ["hey robin"]);
        let again = started(&in_force, false);
        write(changed);
        assert_eq!(again.reload(), Ok(told(&[], &["hearing.workers"])));
        write("");
        let applied = ["hearing.wake_phrases", "name", "voice.speed"];
        assert_eq!(again.reload(), Ok(told(&applied, &["hearing.workers"])));
    }

    #[test]
    fn a_gateway_is_announced_under_its_new_name_after_the_restart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.toml");
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        write("name = \"One\"\n");
        let reloader = start(&file, true);
        write("name = \"Two\"\n");
        assert_eq!(reloader.reload(), Ok(told(&["name"], &["discovery.name"])));
        assert_eq!(reloader.reload(), Ok(told(&[], &["discovery.name"])), "as long as it waits");
        write("name = \"Three\"\n[discovery]\nname = \"Four\"\n");
        assert_eq!(reloader.reload(), Ok(told(&["name"], &["discovery.name"])), "once");
        write("name = \"One\"\n");
        assert_eq!(reloader.reload(), Ok(told(&["name"], &[])));
    }

    #[test]
    fn a_file_with_errors_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.toml");
        std::fs::write(&file, "name = \"One\"\n").unwrap();
        let reloader = start(&file, false);
        for (text, words) in
            [("name = \"Two\"\nnam = 1\n", "nam"), ("name = \"Two\"\n[voice]\nspeed = 9.0\n", "voice.speed")]
        {
            std::fs::write(&file, text).unwrap();
            let problems = reloader.reload().unwrap_err();
            assert!(problems[0].contains(words) && problems[1].contains("nothing was changed"), "{problems:?}");
            assert_eq!(reloader.current.get().gateway_name, "One");
        }
        std::fs::remove_file(&file).unwrap();
        assert!(reloader.reload().unwrap_err()[0].contains("cannot be read"));
    }

    /// Each key of the example is of a kind, so that a new one is thought of.
    #[test]
    fn every_changeable_key_is_one_of_the_configuration() {
        for key in CHANGEABLE {
            let name = key.rsplit('.').next().unwrap();
            let stands = |line: &str| line.starts_with(&format!("{name} = ")) || line == format!("[{name}]");
            assert!(config::EXAMPLE.lines().any(stands), "{key}");
        }
    }

    #[test]
    fn settings_of_another_kind_of_model_wait_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.toml");
        std::fs::write(&file, "").unwrap();
        let reloader = start(&file, false);
        let model = "[model]\nkind = \"chat_completions\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n";
        std::fs::write(&file, format!("{model}[assistant]\ninstructions = \"Be brief.\"\nplace = \"Lisbon\"\n"))
            .unwrap();
        let waiting = ["assistant.instructions", "model.base_url", "model.kind", "model.model"];
        assert_eq!(reloader.reload(), Ok(told(&["assistant.place"], &waiting)));
        let now = reloader.current.get();
        assert_eq!((now.conversation.place.as_deref(), now.conversation.instructions.clone()), (Some("Lisbon"), None));
    }
}
