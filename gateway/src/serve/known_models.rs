//! What is told of the models: those that were loaded, and those that were set up.

use std::{fs, path::Path, sync::Arc};

use audio::{
    asr::Spoken,
    models::{CATALOGUE, Entry, catalogue},
};
use serde_json::{Value, json};
use tools::inspection::models::{ModelFile, ModelInfo};

use super::engines::{FIRST_WHISPER, OTHER_VOICE, REMOTE_RECOGNISER, SECOND_WHISPER};
use crate::{
    config::Config,
    device_task::services::Engines,
    models::{
        metered::{Meters, OFFLINE, SELECTING, name_of},
        settings::{KeySource, Model, ProviderConfig, RouterBy},
    },
    ports::models::OwnModels,
};

/// The models of this configuration, whose engines are loaded.
pub(super) fn of(config: &Config, engines: &Engines, meters: &Meters) -> Arc<OwnModels> {
    let hearing = &config.hearing;
    let recognition = json!({"language": hearing.language.map(Spoken::setting), "workers": hearing.workers});
    let whisper = |file: &Path, pass: &str| {
        let mut model = local(file, &config.models_dir, "speech_recognition");
        model.settings = recognition.clone();
        model.settings["pass"] = pass.into();
        model
    };
    let mut models = Vec::new();
    if !engines.elsewhere.is_alone() {
        models.push((whisper(&hearing.model, "first"), meters.of(FIRST_WHISPER)));
        models.extend(hearing.second_model.as_deref().map(|file| (whisper(file, "second"), meters.of(SECOND_WHISPER))));
    }
    models.extend(hearing.remote.as_ref().map(|remote| {
        let place = remote.server.to_string();
        (without_weights(REMOTE_RECOGNISER, &place, "speech_recognition"), meters.of(REMOTE_RECOGNISER))
    }));
    let known = |id: &str, model_type: &str| {
        let entry = CATALOGUE.iter().find(|entry| entry.id == id);
        entry.map(|entry| of_catalogue(entry, &config.models_dir, model_type))
    };
    models.extend(known(catalogue::SILERO, "voice_activity").map(|model| (model, engines.silero.meter())));
    models.push((
        without_weights("webrtc-vad", "the gate before voice activity", "voice_activity"),
        engines.silero.gate_meter(),
    ));
    if let Some(judge) = &engines.judge {
        models.extend(known(catalogue::SMART_TURN, "end_of_turn").map(|model| (model, judge.model.meter())));
    }
    if let Some(wake) = &engines.wake {
        models.extend(known(catalogue::WAKE_EMBEDDING, "wake_words").map(|model| (model, wake.models.meter())));
    }
    models.extend(known(catalogue::HIBARI, "speech_synthesis").map(|model| (model, engines.voice.meter())));
    models.extend(config.other_voice.as_ref().map(|other| {
        let place = other.speaker.to_string();
        (without_weights(OTHER_VOICE, &place, "speech_synthesis"), meters.of(OTHER_VOICE))
    }));
    match &config.models.tools.by {
        RouterBy::Sentences { wait_ms } => {
            models.extend(known(catalogue::MINILM, "sentence_embedding").map(|model| {
                (ModelInfo { settings: json!({"wait_ms": wait_ms}), ..model }, meters.of(catalogue::MINILM))
            }))
        }
        RouterBy::Model(Model::Provider(provider)) => {
            models.push((served(SELECTING.to_owned(), provider), meters.of(SELECTING)));
        }
        RouterBy::Model(Model::Offline) | RouterBy::Words => {}
    }
    let chain = config.models.chain.iter();
    let has_engine = |model: &Model| match model {
        Model::Offline => true,
        Model::Provider(provider) => provider.commands_offline,
    };
    if chain.clone().any(has_engine) {
        models
            .push((without_weights(OFFLINE, "the offline engine for commands", "command_engine"), meters.of(OFFLINE)));
    }
    models.extend(chain.enumerate().filter_map(|(rank, model)| match model {
        Model::Offline => None,
        Model::Provider(provider) => Some((served(name_of(rank), provider), meters.of(&name_of(rank)))),
    }));
    Arc::new(OwnModels::new(models))
}

fn without_weights(id: &str, name: &str, model_type: &str) -> ModelInfo {
    let (id, name, model_type) = (id.to_owned(), name.to_owned(), model_type.to_owned());
    ModelInfo { id, name, model_type, settings: json!({}), ..ModelInfo::default() }
}

/// A model by its file: one of the catalogue, or an operator's own.
fn local(file: &Path, models_dir: &Path, model_type: &str) -> ModelInfo {
    let is_it = |entry: &&Entry| entry.installed.first().is_some_and(|first| models_dir.join(first.path) == file);
    if let Some(entry) = CATALOGUE.iter().find(is_it) {
        return of_catalogue(entry, models_dir, model_type);
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    ModelInfo {
        memory_usage_bytes: fs::metadata(file).ok().map(|meta| meta.len()),
        files: vec![ModelFile { path: file.display().to_string(), sha256: None }],
        ..without_weights(&name.clone(), &name, model_type)
    }
}

fn of_catalogue(entry: &Entry, models_dir: &Path, model_type: &str) -> ModelInfo {
    let sizes = entry.installed.iter().filter_map(|file| fs::metadata(models_dir.join(file.path)).ok());
    let file = |file: &catalogue::File| ModelFile { path: file.path.to_owned(), sha256: Some(file.sha256.to_owned()) };
    ModelInfo {
        memory_usage_bytes: Some(sizes.map(|meta| meta.len()).sum()),
        package: Some(entry.requirements()),
        files: entry.installed.iter().map(file).collect(),
        ..without_weights(entry.id, entry.what, model_type)
    }
}

/// A model at a server. No headers, no key: only where the key comes from.
fn served(id: String, provider: &ProviderConfig) -> ModelInfo {
    let key = match &provider.key {
        KeySource::None => "none",
        KeySource::Env(_) => "variable",
        KeySource::File(_) => "file",
        KeySource::Login(_) => "login",
    };
    let settings: Value = json!({
        "kind": provider.kind.name(),
        "base_url": shown(&provider.base_url),
        "tools": provider.tools,
        "images": provider.images,
        "commands_offline": provider.commands_offline,
        "key": key,
    });
    ModelInfo { settings, ..without_weights(&id, &provider.model, "language_model") }
}

/// An address without what may be secret in it: a user's name, a query.
fn shown(url: &str) -> &str {
    let url = url.split('?').next().unwrap_or_default();
    if url.contains('@') { "[hidden]" } else { url }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::check;

    #[test]
    fn files_of_the_catalogue_and_an_operators_own_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own.bin");
        fs::write(&own, [0; 100]).unwrap();
        fs::write(folder.path().join("whisper-tiny.en.bin"), [0; 70]).unwrap();
        let model = local(&own, folder.path(), "speech_recognition");
        assert_eq!((model.id.as_str(), model.memory_usage_bytes, model.package), ("own.bin", Some(100), None));
        assert_eq!(model.files[0].sha256, None);
        let model = local(&folder.path().join("whisper-tiny.en.bin"), folder.path(), "speech_recognition");
        assert_eq!((model.id.as_str(), model.memory_usage_bytes), (catalogue::WHISPER_TINY_EN, Some(70)));
        assert!(model.package.is_some_and(|package| package.contains("==")) && model.files[0].sha256.is_some());
    }

    #[test]
    fn no_secret_of_a_provider_is_told() {
        let text = "[model]\nkind = \"chat_completions\"\nmodel = \"m\"\nbase_url = \"http://ann:hunter2@x.example/v1\"\n\
                    key_env = \"HUNTER2\"\nheaders = { x-key = \"hunter2\" }\n";
        let config = check(text, "x.toml").unwrap_or_else(|problems| panic!("{problems:?}"));
        let Model::Provider(provider) = &config.models.chain[0] else { panic!("a provider") };
        let told = serde_json::to_string(&served(name_of(0), provider)).unwrap();
        assert!(told.contains("\"key\":\"variable\"") && !told.to_lowercase().contains("hunter2"), "{told}");
    }
}
