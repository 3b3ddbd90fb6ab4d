//! What is wrong with a configuration, and where.

use std::{net::SocketAddr, ops::Range};

use super::key;

/// What is wrong with a configuration, where, and what to do.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{file}{}: {what}", Line(*line))]
pub struct Problem {
    /// The file.
    pub file: String,
    /// Its line, from 1; 0: no line in particular.
    pub line: usize,
    /// What is wrong and what to do.
    pub what: String,
}

struct Line(usize);

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 == 0 { Ok(()) } else { write!(f, ":{}", self.0) }
    }
}

/// An unknown key is most often a typing error. `key`: the one that the message is about, where it does not say.
pub(super) fn remedy(message: &str, key: Option<&str>) -> String {
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
    // What the parser calls a thing is not what it looks like in a file.
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

/// What is wrong with a file, as far as it was read.
pub(super) struct Problems<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
    pub(super) found: Vec<Problem>,
}

impl Problems<'_> {
    pub(super) fn at(&mut self, span: Range<usize>, what: impl Into<String>) {
        let line = line_of(self.text, span.start);
        self.found.push(Problem { file: self.file.to_owned(), line, what: what.into() });
    }

    pub(super) fn unreadable(&mut self, error: &toml::de::Error) {
        let line = error.span().map_or(0, |span| line_of(self.text, span.start));
        let key = error.span().and_then(|span| key::at(self.text, span.start));
        let what = remedy(error.message(), key.as_deref());
        self.found.push(Problem { file: self.file.to_owned(), line, what });
    }

    pub(super) fn between<T: PartialOrd + std::fmt::Display + Copy>(
        &mut self,
        value: &toml::Spanned<T>,
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

    /// The first must not be the larger one. The line is that of the first, or of the second where only that is written.
    pub(super) fn in_order<T: PartialOrd + std::fmt::Display>(
        &mut self,
        (less, less_key): (&toml::Spanned<T>, &str),
        (more, more_key): (&toml::Spanned<T>, &str),
    ) {
        if less.get_ref() <= more.get_ref() {
            return;
        }
        let shown = |value: &toml::Spanned<T>| match value.span().is_empty() {
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

    pub(super) fn address(&mut self, value: &toml::Spanned<String>, key: &str) -> Option<SocketAddr> {
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
