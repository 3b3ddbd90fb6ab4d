//! The names of model providers and of their models are used in `gateway/chat` only, so that a change of a provider
//! affects no other place.

use chat_models::kinds::Kind;

use super::tree::File;
use super::{no_complaints, tree};

/// Names of providers that have another meaning as well, such as "responses".
const WORDS: [&str; 1] = ["responses"];

/// Without "google", which is also a common verb.
const NAMES: [&str; 17] = [
    "anthropic",
    "azure",
    "bedrock",
    "chat_completions",
    "chatgpt",
    "claude",
    "cloud_code",
    "codex",
    "deepseek",
    "gemini",
    "gpt",
    "llama",
    "mistral",
    "ollama",
    "openai",
    "qwen",
    "smollm",
];

/// Files outside of `gateway/chat` that may use some of them, with the reason.
const EXCEPTIONS: [(&str, &[&str], &str); 8] = [
    ("audio/src/models/convert.rs", &["gpt"], "the byte alphabet of Whisper's vocabulary has the name of GPT-2"),
    ("gateway/core/src/vocab/message.rs", &["openai"], "a source for a number"),
    ("gateway/core/src/vocab/tokens.rs", &["openai"], "the vocabularies that the figures were measured with"),
    ("tools/src/builtin/personality_get.rs", &["gpt"], "an example of a model's name, for the tool's caller"),
    ("tools/src/builtin/languages/spanish.rs", &["llama"], "\"calls\", in Spanish"),
    ("tools/src/definition/mod.rs", &["openai"], "a form of tool definitions that others write, known by this name"),
    ("xtask/src/demo.rs", &["chat_completions", "smollm"], "a configuration of the gateway, as operators write it"),
    ("xtask/src/llm.rs", &["llama", "openai", "smollm"], "names of packages, of a server and of its weights"),
];

fn names_in(line: &str) -> impl Iterator<Item = &'static str> {
    let line = line.to_lowercase();
    NAMES.into_iter().filter(move |name| line.contains(name))
}

/// Names in other places, and exceptions that are no longer needed.
fn names_elsewhere(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut unused: Vec<(&str, &str)> =
        EXCEPTIONS.iter().flat_map(|(path, names, _)| names.iter().map(|name| (*path, *name))).collect();
    let judged = files.iter().filter(|file| file.path.ends_with(".rs") && !file.is_test());
    for file in judged.filter(|file| !file.is_in(&["gateway/chat/"])) {
        for (number, line) in file.production() {
            for name in names_in(line) {
                let exception = |(path, names, _): &(&str, &[&str], &str)| file.path == *path && names.contains(&name);
                if EXCEPTIONS.iter().any(exception) {
                    unused.retain(|exception| *exception != (file.path.as_str(), name));
                } else {
                    let path = &file.path;
                    complaints.push(format!("{path}:{number}: `{name}`: names of providers belong in gateway/chat"));
                }
            }
        }
    }
    complaints.extend(unused.iter().map(|(path, name)| format!("{path} needs no exception for `{name}` any more")));
    complaints
}

#[test]
fn provider_names_stay_in_gateway_chat() {
    no_complaints(&names_elsewhere(&tree::files()));
}

#[test]
fn whoever_can_be_configured_is_looked_for() {
    for kind in Kind::ALL {
        let name = kind.name();
        assert!(NAMES.contains(&name) || WORDS.contains(&name), "NAMES lacks {name}");
    }
}

#[test]
fn a_providers_name_elsewhere_is_found() {
    let kept = tree::files();
    let with = |path: &str, text: &str| names_elsewhere(&[&kept[..], &[File::new(path, text)]].concat());
    for (path, text) in [
        ("gateway/src/a.rs", "headers.push((\"openai-beta\", beta));"),
        ("gateway/src/a.rs", "Self::Anthropic => url,"),
        ("gateway/core/src/a.rs", "/// Gemini wants it so."),
        ("tools/src/a.rs", "if model.starts_with(\"GPT-5\") {"),
        ("tools/src/definition/other.rs", "//! OpenAI's."),
    ] {
        assert_eq!(with(path, text).len(), 1, "{text}");
    }
    for (path, text) in [
        ("gateway/chat/src/a.rs", "const KEY: &str = \"OPENAI_API_KEY\";"),
        ("gateway/src/a.rs", "#[cfg(test)]\nmod tests {\n    // claude\n}"),
        ("tests/it/a.rs", "// claude"),
        ("gateway/src/a.md", "claude"),
    ] {
        no_complaints(&with(path, text));
    }
}

#[test]
fn an_exception_that_nothing_needs_is_found() {
    let all: usize = EXCEPTIONS.iter().map(|(_, names, _)| names.len()).sum();
    assert_eq!(names_elsewhere(&[]).len(), all);
    let one = File::new("gateway/core/src/vocab/tokens.rs", "//! OpenAI's vocabularies.");
    assert_eq!(names_elsewhere(&[one]).len(), all - 1);
}
