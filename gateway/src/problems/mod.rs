//! The problems of a configuration, with their positions: the checks of all sections report here.

mod key;

use std::{net::SocketAddr, ops::Range, path::PathBuf};

use serde::de::DeserializeOwned;
use toml::Spanned;

/// A problem of a configuration: what is wrong, where, and what to do.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{file}{}: {what}", line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct Problem {
    /// Its path, as it is to be shown.
    pub file: String,
    /// Its line, from 1; `None`: no particular line.
    pub line: Option<usize>,
    /// What is wrong and what to do.
    pub what: String,
}

/// Errors of the parser that are told of one file: nobody mends more at once.
const UNREADABLE_MAX: usize = 20;

/// A value that is not in the file: a default.
pub(crate) fn unwritten<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

/// Names in the form for a message.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The message with a hint: an unknown key is most often a typing error. `key`: the key that the message is about, if
/// it does not name one.
pub(crate) fn remedy(message: &str, key: Option<&str>) -> String {
    let message = message.trim_end();
    let named = |text: String| match key {
        Some(key) => format!("`{key}`: {text}"),
        None => text,
    };
    if message.contains("unknown field") {
        return format!("{message}; see `lorgnette check --example` for all keys");
    }
    let Some((found, expected)) = message.split_once(", expected ") else {
        return named(message.to_owned());
    };
    // The parser's names of types differ from the notation in a file.
    let expected = match expected {
        "a sequence" => "a list such as [\"a\", \"b\"], or a section in two brackets such as [[fallback]]",
        "a map" => "a section such as [model], or { key = value }",
        "a boolean" => "true or false",
        "usize" | "u8" | "u16" | "u32" => "a whole number from 0 on, and not a huge one",
        "f32" | "f64" => "a number",
        other => other,
    };
    named(format!("{found}, expected {expected}"))
}

fn line_of(text: &str, offset: usize) -> usize {
    text.get(..offset).map_or(1, |before| before.matches('\n').count() + 1)
}

/// The problems that were found in a file so far.
pub(crate) struct Problems<'a> {
    file: &'a str,
    text: &'a str,
    found: Vec<Problem>,
}

impl<'a> Problems<'a> {
    /// An empty list for this text; `file` is for the messages.
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text, found: Vec::new() }
    }

    /// The text of the file.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// All problems: from the first line to the last, then those of no particular line.
    pub(crate) fn into_found(mut self) -> Vec<Problem> {
        self.found.sort_by_key(|problem| problem.line.unwrap_or(usize::MAX));
        self.found
    }

    /// Reports a problem at this position, in bytes of the text.
    pub(crate) fn at(&mut self, span: Range<usize>, what: impl Into<String>) {
        self.push(Some(line_of(self.text, span.start)), what.into());
    }

    /// Reports a problem without a particular line.
    pub(crate) fn nowhere(&mut self, what: impl Into<String>) {
        self.push(None, what.into());
    }

    fn push(&mut self, line: Option<usize>, what: String) {
        self.found.push(Problem { file: self.file.to_owned(), line, what });
    }

    /// Reports an error of the parser, which stops at the first one, and those behind it: they are found without the keys
    /// and sections of those before. What follows from what was left out ends the search.
    pub(crate) fn all_unreadable<T: DeserializeOwned>(&mut self, mut error: toml::de::Error) {
        let mut left = self.text.to_owned();
        for _ in 0..UNREADABLE_MAX {
            self.unreadable(&error);
            let Some(without) = error.span().and_then(|span| key::without(&left, span.start)) else { return };
            left = without;
            match toml::from_str::<T>(&left) {
                // What is missing may be what was left out.
                Err(next) if !next.message().contains("missing field") => error = next,
                _ => return,
            }
        }
    }

    /// Reports an error of the parser.
    pub(crate) fn unreadable(&mut self, error: &toml::de::Error) {
        let line = error.span().map(|span| line_of(self.text, span.start));
        let key = error.span().and_then(|span| key::at(self.text, span.start));
        self.push(line, remedy(error.message(), key.as_deref()));
    }

    /// The value; reports a problem if it is out of range.
    pub(crate) fn between<T: PartialOrd + std::fmt::Display + Copy>(
        &mut self,
        value: &Spanned<T>,
        key: &str,
        range: std::ops::RangeInclusive<T>,
    ) -> T {
        let given = *value.get_ref();
        if !range.contains(&given) {
            let what = format!("`{key}` is {given}; it must be between {} and {}", range.start(), range.end());
            self.at(value.span(), what);
        }
        given
    }

    /// Reports a problem if the first value is larger than the second. Its line is that of the first, or of the second
    /// if only that is written.
    pub(crate) fn in_order<T: PartialOrd + std::fmt::Display>(
        &mut self,
        (less, less_key): (&Spanned<T>, &str),
        (more, more_key): (&Spanned<T>, &str),
    ) {
        if less.get_ref() <= more.get_ref() {
            return;
        }
        let shown = |value: &Spanned<T>| match value.span().is_empty() {
            true => format!("{} where nothing is written", value.get_ref()),
            false => value.get_ref().to_string(),
        };
        if less.span().is_empty() {
            let what = format!(
                "`{more_key}` is {}; it must be at least `{less_key}`, which is {}",
                more.get_ref(),
                shown(less)
            );
            self.at(more.span(), what);
        } else {
            let what = format!(
                "`{less_key}` is {}; it must be at most `{more_key}`, which is {}",
                less.get_ref(),
                shown(more)
            );
            self.at(less.span(), what);
        }
    }

    /// The folder as written. A shell expands `~`, a configuration does not: a folder of that name would be created.
    pub(crate) fn folder(&mut self, folder: Option<&Spanned<PathBuf>>, key: &str) -> Option<PathBuf> {
        let given = folder?;
        if given.get_ref().starts_with("~") {
            self.at(given.span(), format!("`{key}` begins with ~, which only a shell understands; write it out"));
        }
        Some(given.get_ref().clone())
    }

    /// Parses an address and port.
    pub(crate) fn address(&mut self, value: &Spanned<String>, key: &str) -> Option<SocketAddr> {
        match value.get_ref().parse() {
            Ok(address) => Some(address),
            Err(_) => {
                let what = format!(
                    "`{key}` is `{}`; it must be an address and port such as 127.0.0.1:8460 or [::]:8460",
                    value.get_ref()
                );
                self.at(value.span(), what);
                None
            }
        }
    }
}
