//! A request that was let in, and the fields of queries and forms.

use crate::identity::operators::{Role, Visitor};

/// The field with the token of a form.
pub(super) const TOKEN: &str = "token";

/// The fields of a form or of a query, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        Self(form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// A field without spaces around it; empty if it is absent.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.trim())
    }

    /// A field that is there and not empty.
    pub(super) fn some(&self, name: &str) -> Option<String> {
        Some(self.get(name)).filter(|value| !value.is_empty()).map(str::to_owned)
    }
}

/// A request that was let in.
#[derive(Clone)]
pub(super) struct Visit {
    pub(super) visitor: Visitor,
    pub(super) query: Fields,
    pub(super) form: Fields,
}

impl Visit {
    pub(super) fn is_operator(&self) -> bool {
        self.visitor.role == Role::Operator
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_any_order_and_number() {
        let fields = Fields::parse(b"user=ann+lee&name=%20Brille%20&user=other&empty=&x");
        assert_eq!((fields.get("user"), fields.get("name"), fields.get("none")), ("ann lee", "Brille", ""));
        assert_eq!(
            (fields.some("empty"), fields.some("x"), fields.some("name")),
            (None, None, Some("Brille".to_owned()))
        );
        assert_eq!(Fields::parse(b"%ff=%zz&&=&a").get("a"), "");
    }
}
