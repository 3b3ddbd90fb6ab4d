//! The fields of a JSON object, each read once and by its pointer.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::DefinitionError;

/// An object of a definition. Field names are compared without case and underscores, since
/// `requiresApproval` is `requires_approval` in TOML.
pub(super) struct Fields<'a> {
    tool: String,
    pointer: String,
    map: &'a Map<String, Value>,
    taken: BTreeSet<&'a str>,
}

/// A value and its location.
pub(super) struct At<'a> {
    pub(super) value: &'a Value,
    pub(super) pointer: String,
    tool: String,
}

impl<'a> Fields<'a> {
    pub(super) fn new(tool: &str, pointer: &str, value: &'a Value) -> Result<Self, DefinitionError> {
        match value.as_object() {
            Some(map) => Ok(Self { tool: tool.to_owned(), pointer: pointer.to_owned(), map, taken: BTreeSet::new() }),
            None => Err(DefinitionError {
                tool: tool.to_owned(),
                pointer: pointer.to_owned(),
                reason: "must be an object".to_owned(),
            }),
        }
    }

    /// A field's value; `null` counts as absent.
    pub(super) fn take(&mut self, field: &str) -> Option<At<'a>> {
        let (key, value) = match self.map.get_key_value(field) {
            Some(exact) => exact,
            None => self.map.iter().find(|(key, _)| same(key, field))?,
        };
        self.taken.insert(key);
        let pointer = format!("{}/{}", self.pointer, escape(key));
        (!value.is_null()).then(|| At { value, pointer, tool: self.tool.clone() })
    }

    pub(super) fn text(&mut self, field: &str) -> Result<Option<String>, DefinitionError> {
        self.take(field).map(|at| at.text()).transpose()
    }

    pub(super) fn flag(&mut self, field: &str) -> Result<Option<bool>, DefinitionError> {
        self.take(field).map(|at| at.flag()).transpose()
    }

    /// The object in a field.
    pub(super) fn object(&mut self, field: &str) -> Result<Option<Fields<'a>>, DefinitionError> {
        self.take(field).map(|at| at.object()).transpose()
    }

    /// Pointers of the fields that were not read.
    pub(super) fn left_over(&self) -> impl Iterator<Item = String> {
        let unread = self.map.iter().filter(|(key, value)| !value.is_null() && !self.taken.contains(key.as_str()));
        unread.map(|(key, _)| format!("{}/{}", self.pointer, escape(key)))
    }
}

impl<'a> At<'a> {
    pub(super) fn error(&self, reason: impl Into<String>) -> DefinitionError {
        DefinitionError { tool: self.tool.clone(), pointer: self.pointer.clone(), reason: reason.into() }
    }

    pub(super) fn text(&self) -> Result<String, DefinitionError> {
        self.value.as_str().map(ToOwned::to_owned).ok_or_else(|| self.error("must be a text"))
    }

    /// A text of at most the given number of bytes.
    pub(super) fn text_within(&self, bytes_max: usize) -> Result<String, DefinitionError> {
        let text = self.text()?;
        if text.len() > bytes_max {
            return Err(self.error(format!("{} bytes; at most {bytes_max} are accepted", text.len())));
        }
        Ok(text)
    }

    pub(super) fn flag(&self) -> Result<bool, DefinitionError> {
        self.value.as_bool().ok_or_else(|| self.error("must be true or false"))
    }

    /// A whole number of at least 1.
    pub(super) fn count(&self) -> Result<u32, DefinitionError> {
        let count = self.value.as_u64().and_then(|count| u32::try_from(count).ok()).filter(|count| *count > 0);
        count.ok_or_else(|| self.error("must be a whole number of at least 1"))
    }

    pub(super) fn object(&self) -> Result<Fields<'a>, DefinitionError> {
        Fields::new(&self.tool, &self.pointer, self.value)
    }

    /// The items of a list.
    pub(super) fn list(&self, max: usize) -> Result<Vec<At<'a>>, DefinitionError> {
        let Some(items) = self.value.as_array() else {
            return Err(self.error("must be a list"));
        };
        if items.len() > max {
            return Err(self.error(format!("{} items; at most {max} are accepted", items.len())));
        }
        let item = |(at, value)| At { value, pointer: format!("{}/{at}", self.pointer), tool: self.tool.clone() };
        Ok(items.iter().enumerate().map(item).collect())
    }

    /// The fields of an object, in their order.
    pub(super) fn entries(&self) -> Result<Vec<(&'a str, At<'a>)>, DefinitionError> {
        let Some(map) = self.value.as_object() else {
            return Err(self.error("must be an object"));
        };
        let entry = |(key, value): (&'a String, &'a Value)| {
            let pointer = format!("{}/{}", self.pointer, escape(key));
            (key.as_str(), At { value, pointer, tool: self.tool.clone() })
        };
        Ok(map.iter().map(entry).collect())
    }
}

fn same(key: &str, field: &str) -> bool {
    let plain = |text: &str| text.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect::<String>();
    plain(key) == plain(field)
}

/// RFC 6901 section 3.
fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
