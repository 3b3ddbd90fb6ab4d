//! Reads the paths in Rust code: those of `use` items with their braces, and those in expressions and types.

/// A path as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path<'a> {
    pub(super) segments: Vec<&'a str>,
    /// What a `use` makes it known as.
    pub(super) name: &'a str,
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The word at the start of a text, and what follows it.
fn word(text: &str) -> (&str, &str) {
    let end = if text.starts_with('*') { 1 } else { text.find(|c| !is_word(c)).unwrap_or(text.len()) };
    text.split_at(end)
}

/// Reads the tree at the start of a text, behind a path. Returns what follows it.
fn tree<'a>(mut rest: &'a str, before: &[&'a str], out: &mut Vec<Path<'a>>) -> &'a str {
    let mut segments = before.to_vec();
    loop {
        if let Some(mut group) = rest.strip_prefix('{') {
            loop {
                group = tree(group.trim_start(), &segments, out).trim_start();
                match group.strip_prefix(',') {
                    Some(next) => group = next,
                    None => return group.strip_prefix('}').unwrap_or(group),
                }
            }
        }
        let (segment, behind) = word(rest);
        // `a::{self}` is `a`. A path may end in `::<T>`, a group in a comma: then there is no segment.
        if !segment.is_empty() && (segment != "self" || segments.is_empty()) {
            segments.push(segment);
        }
        match behind.strip_prefix("::") {
            Some(next) if !segment.is_empty() => rest = next,
            _ => {
                let renamed = behind.strip_prefix(" as ").map(word);
                if let Some(last) = segments.last().filter(|_| segments.len() > before.len() || segment == "self") {
                    out.push(Path { name: renamed.map_or(*last, |(name, _)| name), segments });
                }
                return renamed.map_or(behind, |(_, behind)| behind);
            }
        }
    }
}

/// The paths of all `use` items.
pub(super) fn uses(code: &str) -> Vec<Path<'_>> {
    let mut found = Vec::new();
    for (at, item) in code.match_indices("use ") {
        let line = code[..at].rfind('\n').map_or(0, |end| end + 1);
        let before = code[line..at].trim();
        if before.is_empty() || before.starts_with("pub") {
            tree(&code[at + item.len()..], &[], &mut found);
        }
    }
    found
}

/// The paths that begin with a name, in `use` items and elsewhere.
pub(super) fn paths<'a>(code: &'a str, name: &str) -> Vec<Path<'a>> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(&format!("{name}::")) {
        // `other::name::` and `my_name::` are other names, and what `$crate::` names is imported where the macro is used.
        if !code[..at].ends_with(|c: char| is_word(c) || c == ':' || c == '$') {
            tree(&code[at..], &[], &mut found);
        }
    }
    found
}

fn shown(paths: Vec<Path<'_>>) -> Vec<String> {
    paths.into_iter().map(|path| format!("{} = {}", path.name, path.segments.join("::"))).collect()
}

#[test]
fn trees_of_use_items_are_read() {
    for (code, expected) in [
        ("use crate::a;", &["a = crate::a"][..]),
        ("use super::super::a::B;", &["B = super::super::a::B"]),
        (
            "use crate::{a, b::C, d::{self, E as F, g::*}};",
            &["a = crate::a", "C = crate::b::C", "d = crate::d", "F = crate::d::E", "* = crate::d::g::*"],
        ),
        ("use super::{\n    a::{B, C},\n    d,\n};", &["B = super::a::B", "C = super::a::C", "d = super::d"]),
        ("pub(super) use a::{self as b, C};", &["b = a", "C = a::C"]),
        ("pub use self::a::B as C;\nuse d;", &["C = self::a::B", "d = d"]),
        ("use ::std::a;\nlet b = reuse c::d;\ncrate::e();", &[]),
    ] {
        assert_eq!(shown(uses(code)), expected, "{code}");
    }
}

#[test]
fn paths_are_read_wherever_they_stand() {
    for (code, expected) in [
        ("use crate::{a, b::C};", &["a = crate::a", "C = crate::b::C"][..]),
        (
            "let a = f(crate::b::C::new(), crate::d::<E>(), crate::g!());",
            &["new = crate::b::C::new", "d = crate::d", "g = crate::g"],
        ),
        ("fn a(b: &crate::c::D, e: Vec<crate::F>) {}", &["D = crate::c::D", "F = crate::F"]),
        ("impl crate::a::B for c::D {}", &["B = crate::a::B"]),
        ("use super::a; $crate::b(); other::crate::c(); my_crate::d();", &[]),
    ] {
        assert_eq!(shown(paths(code, "crate")), expected, "{code}");
    }
}
