//! The provider's options in a model's section, passed on with their positions in the file.

use std::ops::Range;

use chat_models::{
    kinds::{Kind, Settings},
    settings::keys,
};
use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue, Deserializer, Error},
};

use super::raw::{ModelKind, RawModel};
use crate::problems::{Problems, listed, remedy};

/// Position of a model's section.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// `[model]`
    Model,
    /// The `[[fallback]]` with this index, from 0.
    Fallback(usize),
    /// `router.model`
    Router,
}

impl Place {
    fn table<'a, 'i>(self, root: &'a DeTable<'i>) -> Option<&'a DeTable<'i>> {
        let section = match self {
            Self::Model => root.get("model")?,
            Self::Fallback(index) => root.get("fallback")?.get_ref().get(index)?,
            Self::Router => root.get("router")?.get_ref().get("model")?,
        };
        section.get_ref().as_table()
    }
}

/// A model's parsed options.
pub(super) struct Read {
    pub(super) settings: Settings,
    /// The option that requires a login, and its position.
    pub(super) wants_login: Option<(&'static str, Range<usize>)>,
}

/// Parses the options of a section by its provider's rules.
pub(super) fn read(problems: &mut Problems<'_>, place: Place, kind: Kind) -> Option<Read> {
    let options = known(problems, place, ModelKind::Provider(kind));
    let settings = match deserialize(kind, options.clone()) {
        Ok(settings) => settings,
        Err(error) => {
            problems.unreadable(&error);
            return None;
        }
    };
    let span = |option: &str| options.get(option).map_or(0..0, Spanned::span);
    for wrong in settings.section().wrong() {
        problems.at(span(wrong.option), wrong.what);
    }
    let wants_login = settings.section().wants_login().map(|option| (option, span(option)));
    Some(Read { settings, wants_login })
}

/// The options that this kind of model knows; reports all others. The engine on the box ignores what some provider
/// would accept.
pub(super) fn known<'a>(problems: &mut Problems<'a>, place: Place, model: ModelKind) -> DeTable<'a> {
    let mut known = DeTable::new();
    for (name, value) in own_options(problems.text(), place) {
        let takers = takers(&name, &value);
        if takers.iter().any(|kind| model.passes_to(*kind)) {
            known.insert(name, value);
        } else {
            refuse(problems, model, (&name, &value), &takers);
        }
    }
    known
}

/// Reports an option that only `takers` accept.
fn refuse(problems: &mut Problems<'_>, model: ModelKind, (key, value): (&Name<'_>, &Value<'_>), takers: &[Kind]) {
    let name = key.get_ref();
    let knows = |kind: &&Kind| model.passes_to(**kind) && kind.options().contains(&name.as_ref());
    match (Kind::ALL.iter().find(knows), takers.is_empty()) {
        // Its value is the other kind's.
        (Some(_), false) => problems.at(value.span(), format!("this `{name}` belongs to {}", kinds(takers))),
        (Some(kind), true) => {
            if let Err(error) = read_alone(*kind, key, value) {
                problems.unreadable(&error);
            }
        }
        (None, false) => {
            let own = format!("`kind = \"{}\"` has {}", model.name(), listed(model.options().iter().copied()));
            problems.at(key.span(), format!("`{name}` belongs to {}; {own}", kinds(takers)));
        }
        (None, true) => {
            let all = listed(keys::<RawModel>().iter().chain(model.options()).copied());
            problems.at(key.span(), remedy(&format!("unknown field `{name}`, expected one of {all}"), None));
        }
    }
}

type Name<'a> = Spanned<DeString<'a>>;
type Value<'a> = Spanned<DeValue<'a>>;

/// The provider-specific part of a section.
fn own_options(text: &str, place: Place) -> DeTable<'_> {
    // The text has been parsed successfully before.
    let root = DeTable::parse(text).map(Spanned::into_inner).unwrap_or_default();
    let common = keys::<RawModel>();
    let all = place.table(&root).into_iter().flatten();
    let own = all.filter(|(key, _)| !common.contains(&key.get_ref().as_ref()));
    own.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The kinds that accept this option with this value.
fn takers(key: &Name<'_>, value: &Value<'_>) -> Vec<Kind> {
    Kind::ALL.iter().copied().filter(|kind| read_alone(*kind, key, value).is_ok()).collect()
}

fn read_alone(kind: Kind, key: &Name<'_>, value: &Value<'_>) -> Result<Settings, Error> {
    deserialize(kind, DeTable::from_iter([(key.clone(), value.clone())]))
}

fn deserialize(kind: Kind, options: DeTable<'_>) -> Result<Settings, Error> {
    kind.read(Deserializer::from(Spanned::new(0..0, options)))
}

/// Kinds as written in a message: `kind = "a"`, `"b"` or `"c"`.
fn kinds(kinds: &[Kind]) -> String {
    let [first, others @ ..] = kinds else { return String::new() };
    let mut text = format!("`kind = \"{}\"`", first.name());
    for (index, kind) in others.iter().enumerate() {
        text.push_str(if index + 1 == others.len() { " or " } else { ", " });
        text.push_str(&format!("`\"{}\"`", kind.name()));
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::config::check;

    fn problems(text: &str) -> Vec<(usize, String)> {
        let found = check(text, "x.toml").expect_err("problems");
        found.into_iter().map(|problem| (problem.line.unwrap(), problem.what)).collect()
    }

    const CHAT: &str = "kind = \"chat_completions\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n";
    const CLAUDE: &str = "kind = \"anthropic\"\nmodel = \"m\"\nkey_env = \"K\"\n";

    #[test]
    fn an_option_of_another_provider_is_told_with_those_that_count() {
        for (section, option, words) in [
            (CHAT, "thinking_tokens = 2000", "`thinking_tokens` belongs to `kind = \"anthropic\"` or `\"gemini\"`; "),
            (
                CHAT,
                "flavour = \"chatgpt\"",
                "`flavour` belongs to `kind = \"responses\"`; `kind = \"chat_completions\"` has `temperature`",
            ),
            (CLAUDE, "project = \"p\"", "`project` belongs to `kind = \"gemini\"`; "),
            (
                CLAUDE,
                "reasoning_effort = \"low\"",
                "; `kind = \"anthropic\"` has `temperature`, `max_tokens`, `thinking_tokens`, ",
            ),
            (CLAUDE, "flavour = \"cloud_code\"", "this `flavour` belongs to `kind = \"gemini\"`"),
            (CLAUDE, "account = \"a\"", "`account` belongs to `flavour = \"claude_code\"`"),
        ] {
            for (text, line) in [
                (format!("[model]\n{section}{option}\n"), 5),
                (format!("[[fallback]]\n{CHAT}[[fallback]]\n\n{section}{option}\n"), 10),
                (format!("[router.model]\n{section}{option}\n"), 5),
            ] {
                let found = problems(&text);
                assert_eq!((found.len(), found[0].0), (1, line), "{text}: {found:?}");
                assert!(found[0].1.contains(words), "{found:?}");
            }
        }
    }

    #[test]
    fn an_option_that_nobody_knows_is_told_with_all_keys() {
        for section in [CHAT, CLAUDE, "", "kind = \"offline\"\n"] {
            let found = problems(&format!("[model]\ntemprature = 0.5\n{section}"));
            assert_eq!((found.len(), found[0].0), (1, 2), "{found:?}");
            let told = &found[0].1;
            assert!(told.starts_with("unknown field `temprature`, expected one of `kind`, `base_url`, "), "{told}");
            assert!(told.ends_with("; see `lorgnette check --example` for all keys"), "{told}");
            assert_eq!(told.contains("`temperature`"), section == CHAT || section == CLAUDE, "{told}");
        }
    }

    #[test]
    fn a_value_of_another_type_is_told_where_it_stands() {
        for (option, line, words) in [
            ("temperature = \"warm\"", 5, "`model.temperature`: invalid type: string \"warm\", expected a number"),
            ("max_tokens = -1", 5, "`model.max_tokens`: invalid value: integer `-1`, expected a whole number"),
            ("flavour = \"x\"", 5, "`model.flavour`: unknown variant `x`, expected `claude_code`"),
            ("system_first = [\n\"a\",\n7]", 7, "`model.system_first`: invalid type: integer `7`, expected a string"),
        ] {
            let found = problems(&format!("[model]\n{CLAUDE}{option}\n"));
            assert_eq!((found.len(), found[0].0), (1, line), "{option}: {found:?}");
            assert!(found[0].1.starts_with(words), "{found:?}");
        }
    }

    #[test]
    fn an_engine_without_a_provider_passes_over_what_providers_know() {
        let text = "[model]\nkind = \"offline\"\ntemperature = 0.5\nflavour = \"chatgpt\"\nazure = true\n";
        check(text, "x.toml").unwrap();
        let found = problems("[model]\ntemperature = \"warm\"\n");
        assert!(found[0].0 == 2 && found[0].1.contains("expected a number"), "{found:?}");
    }

    #[test]
    fn all_wrong_options_are_told_at_once() {
        let found = problems(&format!("[model]\n{CLAUDE}azure = true\ntemperature = 3.0\nmax_tokens = 0\n"));
        let mut lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
        lines.sort_unstable();
        assert_eq!(lines, [5, 6, 7], "{found:?}");
    }
}
