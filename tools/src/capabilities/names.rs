//! Names in generated code, and how equal ones are told apart.
//!
//! A name is made of another one's ASCII letters and digits. Two tools whose names become the same both get a suffix, a
//! hash of what they are called in full, so that neither takes the other's place, and so that the suffix stays when
//! other tools come and go. No name is ever read back: [`Bundle`](super::Bundle) keeps the map.

use std::collections::HashMap;

use heck::{ToKebabCase as _, ToLowerCamelCase as _, ToPascalCase as _};
use sha2::{Digest as _, Sha256};

use crate::limits::MODULE_NAME_BYTES_MAX;

/// Hexadecimal digits of a suffix.
const HASH_DIGITS: usize = 8;
/// Those of a suffix where the shorter one was made to be the same as another's.
const HASH_DIGITS_ALL: usize = 64;

/// Words that cannot name a variable in a module, or that other code gives a meaning: a thing with a function `then`
/// is taken for a promise.
const RESERVED: [&str; 69] = [
    "abstract",
    "any",
    "arguments",
    "as",
    "await",
    "boolean",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "constructor",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "globalThis",
    "hasOwnProperty",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "isPrototypeOf",
    "let",
    "never",
    "new",
    "null",
    "number",
    "object",
    "package",
    "private",
    "propertyIsEnumerable",
    "protected",
    "prototype",
    "public",
    "return",
    "static",
    "string",
    "super",
    "switch",
    "then",
    "this",
    "throw",
    "toJSON",
    "toLocaleString",
    "toString",
    "true",
    "try",
    "typeof",
    "undefined",
    "unknown",
    "valueOf",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// The name of a module: words in lower case with hyphens.
pub(super) fn slug(name: &str) -> String {
    let slug = ascii(name).to_kebab_case();
    cut(if slug.is_empty() { "tool".to_owned() } else { slug })
}

/// The name of a function or an object: camel case. One that is so already stays as it is.
pub(super) fn identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.bytes().all(|b| b.is_ascii_alphanumeric());
    let camel = if plain { name.to_owned() } else { ascii(name).to_lower_camel_case() };
    let camel = cut(if camel.is_empty() { "tool".to_owned() } else { camel });
    if camel.starts_with(|c: char| c.is_ascii_digit()) {
        return format!("_{camel}");
    }
    if RESERVED.binary_search(&camel.as_str()).is_ok() {
        return format!("{camel}_");
    }
    camel
}

/// As [`identifier`], without the words that the name begins with if those are the name of its server.
pub(super) fn without_prefix(name: &str, server: &str) -> String {
    let (words, prefix) = (ascii(name).to_kebab_case(), ascii(server).to_kebab_case() + "-");
    match words.strip_prefix(&prefix).filter(|_| prefix.len() > 1) {
        Some(rest) => identifier(rest),
        None => identifier(name),
    }
}

/// The name of a type, out of an identifier, a title or the name of a definition; `None` if it has no letter or digit.
pub(super) fn type_name(name: &str) -> Option<String> {
    let name = name.trim_matches('_');
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let pascal = if plain { name.to_owned() } else { ascii(name).to_pascal_case() };
    let mut letters = cut(pascal).chars().collect::<Vec<_>>();
    let first = letters.first_mut()?;
    first.make_ascii_uppercase();
    let digit = first.is_ascii_digit();
    let name: String = letters.into_iter().collect();
    Some(if digit { format!("T{name}") } else { name })
}

/// A name of its own for each: the wanted one, or that with a suffix. Each is given as the wanted name and what it is
/// called in full, which is unique.
///
/// A wanted name that ends like a suffix gets one, too: otherwise it could be another's name.
pub(super) fn tell_apart(wanted: &[(String, String)], separator: char) -> Vec<String> {
    let count = |names: &[String]| {
        let mut counts = HashMap::new();
        names.iter().for_each(|name| *counts.entry(name.clone()).or_insert(0_usize) += 1);
        counts
    };
    let bases: Vec<String> = wanted.iter().map(|(base, _)| base.clone()).collect();
    let counts = count(&bases);
    let is_free = |base: &String| {
        counts.get(base) == Some(&1) && base.len() < MODULE_NAME_BYTES_MAX && !ends_like_a_suffix(base, separator)
    };
    let short: Vec<String> = wanted
        .iter()
        .map(|(base, full)| if is_free(base) { base.clone() } else { suffixed(base, separator, full, HASH_DIGITS) })
        .collect();
    let counts = count(&short);
    let all = wanted.iter().zip(&short).map(|((base, full), name)| match counts.get(name) {
        Some(1) => name.clone(),
        _ => suffixed(base, separator, full, HASH_DIGITS_ALL),
    });
    all.collect()
}

/// A name with a suffix made of what it is called in full.
pub(super) fn suffixed(base: &str, separator: char, full: &str, digits: usize) -> String {
    let hash = hex(full.as_bytes());
    format!("{base}{separator}{}", hash.get(..digits).unwrap_or(&hash))
}

/// SHA-256 in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn ends_like_a_suffix(base: &str, separator: char) -> bool {
    base.rsplit_once(separator).is_some_and(|(_, end)| {
        matches!(end.len(), HASH_DIGITS | HASH_DIGITS_ALL) && end.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Everything but ASCII letters and digits separates words.
fn ascii(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { ' ' }).collect()
}

/// All of it is ASCII.
fn cut(mut name: String) -> String {
    name.truncate(MODULE_NAME_BYTES_MAX);
    name.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserved_words_are_sorted() {
        assert!(RESERVED.is_sorted());
    }
}
