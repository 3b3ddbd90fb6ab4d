//! What must fit where one program replaces another.

use device_protocol::VERSION as WIRE;
use serde::{Deserialize, Serialize};

use crate::store::schema;

/// Versions of a program's formats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// The program's own.
    pub version: String,
    /// The device protocol's.
    pub wire: u8,
    /// The store's: it reads older ones and brings them to this one.
    pub store: u32,
}

impl Version {
    /// This program's.
    pub fn own() -> Self {
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), wire: WIRE, store: schema::SCHEMA }
    }

    /// What keeps `next` from replacing this program, in words.
    pub(crate) fn cannot_be_replaced_by(&self, next: &Self) -> Option<String> {
        let Self { version, wire, store } = next;
        if *store < self.store {
            return Some(format!(
                "version {version} reads stores up to version {store}, and this one is of version {}: to go back, stop \
                 the gateway and start the older program with a copy of the data folder from before the upgrade",
                self.store
            ));
        }
        (*wire != self.wire).then(|| {
            format!(
                "version {version} speaks version {wire} of the device protocol, and the connected glasses version {}: \
                 stop the gateway and start the other program, so that the glasses begin new sessions",
                self.wire
            )
        })
    }

    /// What will change for good, in words.
    pub(crate) fn changes_for_good(&self, next: &Self) -> Option<String> {
        (next.store > self.store).then(|| {
            format!(
                "the store is brought from version {} to {}, which older programs do not read",
                self.store, next.store
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_store_or_another_protocol_is_refused() {
        let own = Version::own();
        assert_eq!(own.cannot_be_replaced_by(&own), None);
        assert_eq!(own.changes_for_good(&own), None);
        let newer = Version { store: own.store + 1, ..own.clone() };
        assert_eq!(own.cannot_be_replaced_by(&newer), None);
        assert!(own.changes_for_good(&newer).unwrap().contains("older programs do not read"));
        assert!(newer.cannot_be_replaced_by(&own).unwrap().contains("reads stores up to version"));
        let other = Version { wire: own.wire + 1, ..own.clone() };
        assert!(own.cannot_be_replaced_by(&other).unwrap().contains("device protocol"));
    }
}
