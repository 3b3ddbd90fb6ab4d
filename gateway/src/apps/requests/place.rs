//! The wearer's location.

use serde_json::Value;

use crate::{
    apps::{offer, socket::Session, streams, wire},
    clock,
};

impl Session {
    /// The location, for an app that asks once.
    pub(super) fn place(&self, correlation: String) -> Value {
        let now = clock::wall_ms();
        let allowed = self.may("LOCATION");
        let mut answer = match self.host.location {
            None => wire::error("LOCATION_NOT_AVAILABLE", offer::NO_PLACE, now),
            Some(_) if !allowed => {
                let why = "the wearer's place needs the permission LOCATION, which the app's manifest does not ask for";
                wire::error("PERMISSION_DENIED", why, now)
            }
            Some(location) => {
                let mut data = streams::place(location);
                data.insert("correlationId".to_owned(), correlation.into());
                return wire::data_stream(&self.name, "location_update", data, now);
            }
        };
        if let Some(fields) = answer.as_object_mut() {
            fields.insert("correlationId".to_owned(), correlation.into());
        }
        answer
    }
}
