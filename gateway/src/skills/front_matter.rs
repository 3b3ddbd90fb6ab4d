//! The front matter of a `SKILL.md`: a small, strict subset of YAML. Anything else is an error with its line, since a
//! guess would offer a skill under a name or a condition that its writer did not mean.

use std::collections::BTreeSet;

/// Maximum characters of a description: it is in every request.
pub(crate) const DESCRIPTION_CHARS_MAX: usize = 500;
/// Maximum characters of a name.
pub(crate) const NAME_CHARS_MAX: usize = tools::memory::SKILL_NAME_CHARS_MAX;
/// Maximum requirements of one kind.
const REQUIREMENTS_MAX: usize = 32;
/// Common keys without a meaning here; indented lines below them are skipped.
const IGNORED: [&str; 8] =
    ["license", "version", "author", "homepage", "metadata", "allowed-tools", "compatibility", "tags"];

/// The front matter of a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Its name: lower-case letters, digits and hyphens.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Tools that must be offered.
    pub tools: Vec<String>,
    /// Programs that must be found in `PATH`.
    pub programs: Vec<String>,
}

/// A problem of a file, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and what to do.
    pub what: String,
}

fn problem<T>(line: usize, what: impl Into<String>) -> Result<T, Problem> {
    Err(Problem { line, what: what.into() })
}

/// The key to which the next indented lines belong.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    Nothing,
    Ignored,
    Requires,
    Tools,
    Programs,
}

/// Parses the front matter of a file.
///
/// # Errors
/// It is missing, does not end, or contains something that is not understood.
pub(crate) fn parse(text: &str) -> Result<Head, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = (1..).zip(text.lines().map(str::trim_end));
    if lines.next().map(|(_, first)| first) != Some("---") {
        return problem(1, "the file must begin with a line `---` and its front matter");
    }
    let mut head = Head::default();
    let mut seen = BTreeSet::new();
    let mut within = Within::Nothing;
    for (number, line) in lines {
        if line == "---" {
            return finished(head, number);
        }
        let content = line.trim_start_matches(' ');
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if content.starts_with('\t') {
            return problem(number, "indent with spaces, not with tabs");
        }
        let is_indented = content.len() < line.len();
        within = match (is_indented, within) {
            (false, _) => top(&mut head, &mut seen, number, content)?,
            (true, Within::Ignored) => Within::Ignored,
            (true, Within::Nothing) => return problem(number, "nothing above takes an indented line"),
            (true, within) => requirement(&mut head, &mut seen, within, number, content)?,
        };
    }
    problem(1, "the front matter does not end: a second line `---` is missing")
}

fn finished(head: Head, number: usize) -> Result<Head, Problem> {
    for (key, value) in [("name", &head.name), ("description", &head.description)] {
        if value.is_empty() {
            return problem(number, format!("`{key}` is missing"));
        }
    }
    Ok(head)
}

fn top(head: &mut Head, seen: &mut BTreeSet<String>, number: usize, content: &str) -> Result<Within, Problem> {
    let (key, value) = pair(number, content)?;
    if !seen.insert(key.to_owned()) {
        return problem(number, format!("`{key}` stands here twice"));
    }
    match key {
        "name" => head.name = name(number, scalar(number, value)?)?,
        "description" => {
            let text = scalar(number, value)?;
            if text.chars().count() > DESCRIPTION_CHARS_MAX || text.chars().any(char::is_control) {
                return problem(
                    number,
                    format!("`description` is one line of at most {DESCRIPTION_CHARS_MAX} characters"),
                );
            }
            head.description = text;
        }
        "requires" if value.is_empty() => return Ok(Within::Requires),
        "requires" => return problem(number, "`requires` has `tools` and `programs` on indented lines below it"),
        key if IGNORED.contains(&key) => return Ok(Within::Ignored),
        key => {
            let known = "`name`, `description` and `requires`";
            return problem(number, format!("`{key}` is not known; there are {known}"));
        }
    }
    Ok(Within::Nothing)
}

fn requirement(
    head: &mut Head,
    seen: &mut BTreeSet<String>,
    within: Within,
    number: usize,
    content: &str,
) -> Result<Within, Problem> {
    if let Some(item) = content.strip_prefix("- ") {
        let list = match within {
            Within::Tools => &mut head.tools,
            Within::Programs => &mut head.programs,
            _ => return problem(number, "a list belongs below `tools:` or `programs:`"),
        };
        add(list, number, &scalar(number, item)?)?;
        return Ok(within);
    }
    let (key, value) = pair(number, content)?;
    if !seen.insert(format!("requires.{key}")) {
        return problem(number, format!("`{key}` stands here twice"));
    }
    let (next, list) = match key {
        "tools" => (Within::Tools, &mut head.tools),
        "programs" => (Within::Programs, &mut head.programs),
        key => return problem(number, format!("`{key}` is not known in `requires`; there are `tools` and `programs`")),
    };
    if value.is_empty() {
        return Ok(next);
    }
    let Some(items) = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return problem(number, format!("`{key}` is a list such as [note.add, timer.set]"));
    };
    for item in items.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        add(list, number, &scalar(number, item)?)?;
    }
    Ok(Within::Requires)
}

fn add(list: &mut Vec<String>, number: usize, item: &str) -> Result<(), Problem> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    if item.is_empty() || item.len() > tools::limits::NAME_BYTES_MAX || !item.chars().all(plain) {
        return problem(number, format!("`{item}` is no name of a tool or program"));
    }
    if list.len() >= REQUIREMENTS_MAX {
        return problem(number, format!("at most {REQUIREMENTS_MAX} requirements of a kind"));
    }
    list.push(item.to_owned());
    Ok(())
}

fn pair(number: usize, content: &str) -> Result<(&str, &str), Problem> {
    match content.split_once(':') {
        Some((key, value)) if !key.is_empty() && (value.is_empty() || value.starts_with(' ')) => {
            Ok((key.trim_end(), value.trim()))
        }
        _ => problem(number, "a line is `key: value`"),
    }
}

/// A value on one line: plain, or in quotation marks without escapes.
fn scalar(number: usize, value: &str) -> Result<String, Problem> {
    for mark in ['"', '\''] {
        if let Some(rest) = value.strip_prefix(mark) {
            let Some(inner) = rest.strip_suffix(mark).filter(|inner| !inner.contains([mark, '\\'])) else {
                return problem(number, "a quoted value ends with its line and has no escapes");
            };
            return Ok(inner.to_owned());
        }
    }
    match value.chars().next() {
        Some('|' | '>') => problem(number, "write the value on one line"),
        Some('{' | '[' | '&' | '*' | '!' | '@' | '`' | '%') => problem(number, "put the value in quotation marks"),
        _ if value.contains(" #") || value.contains(": ") => problem(number, "put the value in quotation marks"),
        _ => Ok(value.to_owned()),
    }
}

fn name(number: usize, text: String) -> Result<String, Problem> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if text.is_empty() || text.len() > NAME_CHARS_MAX || !text.chars().all(plain) {
        let what = format!("`name` has 1 to {NAME_CHARS_MAX} small letters, digits and hyphens");
        return problem(number, what);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_head_is_read() {
        let text = "---\nname: bike-repair\n# why not\ndescription: \"How to mend: a bike.\"\nlicense: MIT\nmetadata:\n  \
                    {\"any\": [1]}\nrequires:\n  tools: [note.add, timer.set]\n  programs:\n    - ffmpeg\n---\nText: here";
        let head = parse(text).unwrap();
        assert_eq!((head.name.as_str(), head.description.as_str()), ("bike-repair", "How to mend: a bike."));
        assert_eq!((head.tools.join(" "), head.programs.join(" ")), ("note.add timer.set".into(), "ffmpeg".into()));
        let least = parse("---\r\nname: a\r\ndescription: B\r\n---\r\n").unwrap();
        assert_eq!((least.name.as_str(), least.description.as_str()), ("a", "B"));
    }

    #[test]
    fn whatever_is_not_understood_names_its_line() {
        for (text, line, what) in [
            ("", 1, "must begin"),
            ("# Title\n", 1, "must begin"),
            ("---\nname: a\n", 1, "does not end"),
            ("---\nname: a\n---\n", 3, "`description` is missing"),
            ("---\ndescription: a\n---\n", 3, "`name` is missing"),
            ("---\nname: A b\n---\n", 2, "small letters"),
            ("---\nname: ../x\n---\n", 2, "small letters"),
            ("---\nname: a\nname: b\n---\n", 3, "twice"),
            ("---\nname: a\ncolour: red\n---\n", 3, "not known"),
            ("---\nname\n---\n", 2, "key: value"),
            ("---\nname: a\n  more: b\n---\n", 3, "nothing above"),
            ("---\n\tname: a\n---\n", 2, "tabs"),
            ("---\nname: a\ndescription: |\n  b\n---\n", 3, "one line"),
            ("---\nname: a\ndescription: \"b\n---\n", 3, "quoted"),
            ("---\nname: a\ndescription: b: c\n---\n", 3, "quotation marks"),
            ("---\nname: a\nrequires: x\n---\n", 3, "indented"),
            ("---\nname: a\nrequires:\n  tools: x\n---\n", 4, "a list"),
            ("---\nname: a\nrequires:\n  - x\n---\n", 4, "belongs below"),
            ("---\nname: a\nrequires:\n  tools: [a b]\n---\n", 4, "no name"),
            ("---\nname: a\nrequires:\n  env: [a]\n---\n", 4, "not known in"),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.line == line && problem.what.contains(what), "{text:?}: {problem:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}", body in "(---\n)?([ a-z:\\[\\]\"'#|-]{0,20}\n){0,12}(---)?") {
            drop(parse(&text));
            if let Ok(head) = parse(&body) {
                prop_assert!(!head.name.is_empty() && head.name.len() <= NAME_CHARS_MAX);
                prop_assert!(!head.description.is_empty());
            }
        }
    }
}
