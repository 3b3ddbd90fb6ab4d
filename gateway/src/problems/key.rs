//! Finds the key at a position of a file.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The full key whose value is at this byte of the text.
pub(super) fn at(text: &str, offset: usize) -> Option<String> {
    let mut path = Vec::new();
    let table = DeTable::parse(text).ok()?;
    in_table(table.get_ref(), offset, &mut path).then(|| path.join("."))
}

fn in_table<'a>(table: &'a DeTable<'_>, offset: usize, path: &mut Vec<&'a str>) -> bool {
    table.iter().any(|(key, value)| {
        path.push(key.get_ref());
        let found = in_value(value, offset, path);
        if !found {
            path.pop();
        }
        found
    })
}

/// Searches tables wherever they are: a section may be written in several places.
fn in_value<'a>(value: &'a Spanned<DeValue<'_>>, offset: usize, path: &mut Vec<&'a str>) -> bool {
    match value.get_ref() {
        DeValue::Table(table) if in_table(table, offset, path) => true,
        // Entries of a list have no names: the key of the list is the answer.
        DeValue::Array(list) if !list.is_empty() && list.iter().any(|value| in_value(value, offset, path)) => true,
        _ => value.span().contains(&offset),
    }
}

/// Lines of one statement at most: more are not blanked for one mistake.
const LINES_MAX: usize = 100;

/// The text with blanks in place of the innermost key at this byte that stands on a line of its own, and of its value; of the section whose
/// header is there; or else of the lines from this one on: so that all else stays where it is. `None`: what is left would be no TOML, or
/// the statement begins further above.
pub(super) fn without(text: &str, offset: usize) -> Option<String> {
    let line_of = |place: usize| text.get(..place)?.rfind('\n').map_or(Some(0), |end| Some(end + 1));
    let stands_alone = |place: &Range<usize>| {
        let line = line_of(place.start)?;
        let before = text.get(line..place.start)?;
        (!before.contains(['{', '[', ','])).then_some(line..place.end)
    };
    let here = line_of(offset)?;
    let mut entries = Vec::new();
    add_entries(DeTable::parse(text).ok()?.get_ref(), offset, &mut entries);
    if let Some(left) = entries.iter().rev().filter_map(stands_alone).find_map(|place| blanked(text, place)) {
        return Some(left);
    }
    if let Some(place) = section(text, here) {
        return blanked(text, place);
    }
    DeTable::parse(text.get(..here)?).ok()?;
    let ends = text.get(here..)?.split_inclusive('\n').scan(here, |end, line| {
        *end += line.len();
        Some(*end)
    });
    ends.take(LINES_MAX).find_map(|end| blanked(text, here..end))
}

fn blanked(text: &str, place: Range<usize>) -> Option<String> {
    let blank = |byte: u8| if byte == b'\n' { '\n' } else { ' ' };
    let blanks: String = text.get(place.clone())?.bytes().map(blank).collect();
    let left = format!("{}{blanks}{}", text.get(..place.start)?, text.get(place.end..)?);
    (left != text && DeTable::parse(&left).is_ok()).then_some(left)
}

/// The section whose header begins at this byte, up to the next header that is not below it.
fn section(text: &str, line: usize) -> Option<Range<usize>> {
    let name_of = |line: &str| {
        let header = line.trim_start().strip_prefix('[')?.trim_start_matches('[');
        Some(header.split(']').next().unwrap_or_default().trim().to_owned())
    };
    let mut lines = text.get(line..)?.split_inclusive('\n');
    let header = lines.next()?;
    let below = format!("{}.", name_of(header)?);
    let is_within = |line: &&str| name_of(line).is_none_or(|name| name.starts_with(&below));
    let rest: usize = lines.take_while(is_within).map(str::len).sum();
    Some(line..line + header.len() + rest)
}

/// Where the keys at this byte are, each with its value, the outer ones first. Of a section, which may be written in several places, only
/// what is in it.
fn add_entries(table: &DeTable<'_>, offset: usize, entries: &mut Vec<Range<usize>>) {
    for (key, value) in table {
        let is_here = key.span().contains(&offset) || value.span().contains(&offset);
        if is_here && !matches!(value.get_ref(), DeValue::Table(_)) {
            entries.push(key.span().start..value.span().end);
        }
        add_within(value, offset, entries);
    }
}

fn add_within(value: &Spanned<DeValue<'_>>, offset: usize, entries: &mut Vec<Range<usize>>) {
    match value.get_ref() {
        DeValue::Table(inner) => add_entries(inner, offset, entries),
        DeValue::Array(list) => list.iter().for_each(|one| add_within(one, offset, entries)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_left_out_and_all_else_stays_where_it_is() {
        let text = "name = 1\n[a]\nb.c = 2 # two\nd = [\n3,\n4]\n[[f]]\ng = 5\ni = { j = 6 }\n";
        for (at, left) in [
            ("1", "        \n[a]\nb.c = 2 # two\nd = [\n3,\n4]\n[[f]]\ng = 5\ni = { j = 6 }\n"),
            ("name", "        \n[a]\nb.c = 2 # two\nd = [\n3,\n4]\n[[f]]\ng = 5\ni = { j = 6 }\n"),
            ("2", "name = 1\n[a]\n        # two\nd = [\n3,\n4]\n[[f]]\ng = 5\ni = { j = 6 }\n"),
            ("3", "name = 1\n[a]\nb.c = 2 # two\n     \n  \n  \n[[f]]\ng = 5\ni = { j = 6 }\n"),
            ("[a]", "name = 1\n   \n             \n     \n  \n  \n[[f]]\ng = 5\ni = { j = 6 }\n"),
            ("f]", "name = 1\n[a]\nb.c = 2 # two\nd = [\n3,\n4]\n     \n     \n             \n"),
            ("5", "name = 1\n[a]\nb.c = 2 # two\nd = [\n3,\n4]\n[[f]]\n     \ni = { j = 6 }\n"),
        ] {
            assert_eq!(without(text, text.find(at).unwrap()).as_deref(), Some(left), "{at}");
        }
        // In an inline table the lines are left out; a dotted key may be misspelt in its first part.
        let left = "name = 1\n[a]\nb.c = 2 # two\nd = [\n3,\n4]\n[[f]]\ng = 5\n             \n";
        assert_eq!(without(text, text.find('6').unwrap()).as_deref(), Some(left));
        for (text, left) in [
            ("x = { a = 1 }\ny = 2\n", "             \ny = 2\n"),
            ("x.z = 1\ny = 2\n", "       \ny = 2\n"),
            ("x = [\n{ a = 1 },\n{ b = 2 },\n]\ny = 2\n", "     \n          \n          \n \ny = 2\n"),
        ] {
            assert_eq!(without(text, 0).as_deref(), Some(left), "{text:?}");
        }
        // A list over several lines is left out as a whole.
        let text = "x = [\n{\na = 7,\nb = 1 } ]\ny = 2\n";
        let left = "     \n \n      \n         \ny = 2\n";
        assert_eq!(without(text, text.find('7').unwrap()).as_deref(), Some(left));
        let text = "[[x]]\na = 1\n[w]\nx = [ { a = 1 },\n{ b = 7 },\n { c = 8 } ]\ny = 2\nz = [1,\n2]\n";
        let left = "[[x]]\na = 1\n[w]\n                \n          \n            \ny = 2\nz = [1,\n2]\n";
        for mistake in ["x = ", "7", "8", "c"] {
            assert_eq!(without(text, text.find(mistake).unwrap()).as_deref(), Some(left), "{mistake}");
        }
        assert_eq!(without("a = ", 0), None);
    }

    #[test]
    fn a_place_has_its_key() {
        let text = "name = 1\n[a]\nb.c = 2\nd = { e = [3, 4] }\n[[f]]\ng = 5\n[[f]]\ng = 6\n";
        for (value, key) in [("1", "name"), ("2", "a.b.c"), ("3", "a.d.e"), ("4", "a.d.e"), ("5", "f.g"), ("6", "f.g")]
        {
            assert_eq!(at(text, text.find(value).unwrap()).as_deref(), Some(key), "{value}");
        }
        assert_eq!(at("a = ", 2), None);
        assert_eq!(at("", 0), None);
    }
}
