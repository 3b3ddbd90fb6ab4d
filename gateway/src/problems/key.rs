//! Finds the key at a position of a file.

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
        DeValue::Array(list) if list.iter().any(|value| in_value(value, offset, path)) => true,
        _ => value.span().contains(&offset),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
