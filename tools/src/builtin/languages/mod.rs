//! Sentence templates of the built-in tools in languages other than English, a table for each.
//!
//! A tool that a table lacks is called by its English sentences. The first template of a tool is what help shows.

mod french;
mod german;
mod spanish;

use gateway_core::vocab::Phrases;

/// Templates by tool.
type Table = &'static [(&'static str, &'static [&'static str])];

const TABLES: [(&str, Table); 3] = [("de", german::TABLE), ("es", spanish::TABLE), ("fr", french::TABLE)];

/// The templates of a tool in all of these languages.
pub(super) fn of(name: &str) -> impl Iterator<Item = Phrases> {
    TABLES.into_iter().filter_map(move |(language, table)| {
        let (_, templates) = table.iter().find(|(tool, _)| *tool == name)?;
        let templates = templates.iter().map(ToString::to_string).collect();
        Some(Phrases { language: language.to_owned(), templates })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    #[test]
    fn every_table_is_of_the_tools_that_there_are() {
        let (specs, _) = builtin::all();
        for (language, table) in TABLES {
            for spec in specs.iter().filter(|spec| !spec.phrases.is_empty()) {
                assert!(table.iter().any(|(name, _)| *name == spec.name), "{language}: {}", spec.name);
            }
            for (name, templates) in table {
                assert!(specs.iter().any(|spec| spec.name == *name), "{language}: {name}");
                assert!(templates.len() >= 2, "{language}: {name}");
                assert_eq!(table.iter().filter(|(other, _)| other == name).count(), 1, "{language}: {name}");
            }
        }
    }
}
