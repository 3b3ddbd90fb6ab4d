//! Names for numbers of the protocol.

/// The name of an enumeration's number, or `other` for one that this version does not know.
pub fn named(name: Option<&'static str>) -> String {
    name.unwrap_or("other").to_owned()
}
