//! All providers that a model can be configured for: one line each, with the name of its folder.

use serde::{Deserialize, Deserializer};

use crate::{
    anthropic, chat_completions, gemini, responses,
    settings::{Section, keys},
};

/// A provider has the name of its folder.
macro_rules! providers {
    ($($kind:ident: $folder:ident;)*) => {
        /// The protocol of a model.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $(#[doc = concat!("`", stringify!($folder), "`")] $kind,)*
        }

        /// The options of a model, as read by its provider.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Settings {
            $(#[doc = concat!("`", stringify!($folder), "`")] $kind($folder::Settings),)*
        }

        impl Kind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// The name in a configuration.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => stringify!($folder),)*
                }
            }

            /// The options that it accepts, besides those common to all models.
            pub fn options(self) -> &'static [&'static str] {
                match self {
                    $(Self::$kind => keys::<$folder::Settings>(),)*
                }
            }

            /// Reads the options.
            ///
            /// # Errors
            /// An option is unknown or has the wrong type.
            pub fn read<'de, D: Deserializer<'de>>(self, options: D) -> Result<Settings, D::Error> {
                Ok(match self {
                    $(Self::$kind => Settings::$kind(Deserialize::deserialize(options)?),)*
                })
            }
        }

        impl Settings {
            /// The provider's view of the options.
            pub fn section(&self) -> &dyn Section {
                match self {
                    $(Self::$kind(section) => section,)*
                }
            }
        }
    };
}

providers! {
    ChatCompletions: chat_completions;
    Responses: responses;
    Anthropic: anthropic;
    Gemini: gemini;
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::settings::Common;

    #[test]
    fn whatever_is_left_out_has_a_default() {
        let common = Common { model: "m", tools: true, images: false };
        for kind in Kind::ALL {
            let settings = kind.read(json!({})).expect("defaults");
            let section = settings.section();
            assert_eq!(section.wrong(), Vec::new());
            assert_eq!(section.wants_login(), None);
            assert_eq!(section.provider(common).model(), "m");
            assert!(section.base_url().is_none_or(|url| url.starts_with("https://")));
            assert_eq!(section.headers().expect("headers"), Vec::new());
        }
    }

    #[test]
    fn options_are_known_by_name_and_checked() {
        for kind in Kind::ALL {
            let name = kind.name();
            assert!(!kind.options().is_empty(), "{name}");
            let error = kind.read(json!({"colour": "red"})).expect_err("unknown").to_string();
            assert!(error.contains("unknown field `colour`"), "{name}: {error}");
            assert!(kind.options().iter().all(|option| error.contains(option)), "{name}: {error}");
            for option in kind.options() {
                // No option accepts a list of lists.
                assert!(kind.read(json!({*option: [[]]})).is_err(), "{name}: {option}");
            }
        }
    }

    fn wrong(kind: Kind, options: Value) -> Vec<String> {
        let settings = kind.read(options).expect("options");
        settings.section().wrong().into_iter().map(|wrong| wrong.what).collect()
    }

    #[test]
    fn values_out_of_range_are_told_at_once() {
        for kind in Kind::ALL {
            let told = wrong(*kind, json!({"temperature": 3.0, "max_tokens": 0}));
            assert_eq!(
                told,
                [
                    "`temperature` is 3; it must be between 0 and 2",
                    "`max_tokens` is 0; it must be between 1 and 128000"
                ]
            );
        }
        for kind in [Kind::Anthropic, Kind::Gemini] {
            assert_eq!(
                wrong(kind, json!({"thinking_tokens": 1023})),
                ["`thinking_tokens` is 1023; it must be between 1024 and 128000"]
            );
        }
    }

    #[test]
    fn what_belongs_to_an_envelope_is_not_passed_over_without_it() {
        for (kind, flavour, options) in [
            (Kind::Anthropic, "claude_code", json!({"account": "a", "beta": "b", "system_first": ["s"]})),
            (Kind::Gemini, "cloud_code", json!({"project": "p"})),
            (Kind::Responses, "chatgpt", json!({"account": "a"})),
        ] {
            let mut options = options;
            let told = wrong(kind, options.clone());
            assert_eq!(told.len(), options.as_object().map_or(0, |map| map.len()), "{told:?}");
            assert!(
                told.iter().all(|what| what.ends_with(&format!("belongs to `flavour = \"{flavour}\"`"))),
                "{told:?}"
            );
            options["flavour"] = flavour.into();
            assert_eq!(wrong(kind, options.clone()), [""; 0]);
            assert_eq!(kind.read(options).expect("options").section().wants_login(), Some("flavour"));
        }
    }
}
