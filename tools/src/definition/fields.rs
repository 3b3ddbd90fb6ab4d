//! The fields of a JSON object, each read once and by its pointer.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::DefinitionError;

/// An object of a definition. Field names are compared without case and underscores, since
/// `requiresApproval` is `requires_approval` in TOML.
pub(crate) struct Fields<'a> {
    tool: String,
    pointer: String,
    map: &'a Map<String, Value>,
    taken: BTreeSet<&'a str>,
}

/// A value and its location.
pub(crate) struct At<'a> {
    pub(crate) value: &'a Value,
    pub(crate) pointer: String,
    tool: String,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(tool: &str, pointer: &str, value: &'a Value) -> Result<Self, DefinitionError> {
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
    pub(crate) fn take(&mut self, field: &str) -> Option<At<'a>> {
        let (key, value) = match self.map.get_key_value(field) {
            Some(exact) => exact,
            None => self.map.iter().find(|(key, _)| same(key, field))?,
        };
        self.taken.insert(key);
        let pointer = format!("{}/{}", self.pointer, escape(key));
        (!value.is_null()).then(|| At { value, pointer, tool: self.tool.clone() })
    }

    pub(crate) fn text(&mut self, field: &str) -> Result<Option<String>, DefinitionError> {
        self.take(field).map(|at| at.text()).transpose()
    }

    pub(crate) fn flag(&mut self, field: &str) -> Result<Option<bool>, DefinitionError> {
        self.take(field).map(|at| at.flag()).transpose()
    }

    /// The object in a field.
    pub(crate) fn object(&mut self, field: &str) -> Result<Option<Fields<'a>>, DefinitionError> {
        self.take(field).map(|at| at.object()).transpose()
    }

    /// All fields, in their order, whether read or not; those that are `null` are absent.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, At<'a>)> {
        let entry = |(key, value): (&'a String, &'a Value)| {
            let pointer = format!("{}/{}", self.pointer, escape(key));
            (!value.is_null()).then(|| (key.as_str(), At { value, pointer, tool: self.tool.clone() }))
        };
        self.map.iter().filter_map(entry)
    }

    /// Pointers of the fields that were not read.
    pub(crate) fn left_over(&self) -> impl Iterator<Item = String> {
        let unread = self.map.iter().filter(|(key, value)| !value.is_null() && !self.taken.contains(key.as_str()));
        unread.map(|(key, _)| format!("{}/{}", self.pointer, escape(key)))
    }
}

impl<'a> At<'a> {
    pub(crate) fn error(&self, reason: impl Into<String>) -> DefinitionError {
        DefinitionError { tool: self.tool.clone(), pointer: self.pointer.clone(), reason: reason.into() }
    }

    pub(crate) fn text(&self) -> Result<String, DefinitionError> {
        self.value.as_str().map(ToOwned::to_owned).ok_or_else(|| self.error("must be a text"))
    }

    /// A text of at most the given number of bytes.
    pub(crate) fn text_within(&self, bytes_max: usize) -> Result<String, DefinitionError> {
        let text = self.text()?;
        if text.len() > bytes_max {
            return Err(self.error(format!("{} bytes; at most {bytes_max} are accepted", text.len())));
        }
        Ok(text)
    }

    pub(crate) fn flag(&self) -> Result<bool, DefinitionError> {
        self.value.as_bool().ok_or_else(|| self.error("must be true or false"))
    }

    /// A whole number of at least 1.
    pub(crate) fn count(&self) -> Result<u32, DefinitionError> {
        let count = self.value.as_u64().and_then(|count| u32::try_from(count).ok()).filter(|count| *count > 0);
        count.ok_or_else(|| self.error("must be a whole number of at least 1"))
    }

    pub(crate) fn object(&self) -> Result<Fields<'a>, DefinitionError> {
        Fields::new(&self.tool, &self.pointer, self.value)
    }

    /// The items of a list.
    pub(crate) fn list(&self, max: usize) -> Result<Vec<At<'a>>, DefinitionError> {
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
    pub(crate) fn entries(&self) -> Result<Vec<(&'a str, At<'a>)>, DefinitionError> {
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

/// Whether two names are equal without case and underscores.
pub(crate) fn same(key: &str, field: &str) -> bool {
    let plain = |text: &str| text.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect::<String>();
    plain(key) == plain(field)
}

/// RFC 6901 section 3.
fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
