//! Names of devices. Two devices that may connect never share a name, so that an operator's command is unambiguous. And
//! how many users they belong to.

use std::collections::BTreeSet;

use super::{DeviceRecord, Error};

/// Longest name of a user or device, in bytes: both are keys of the store.
pub(crate) const NAME_BYTES_MAX: usize = 64;

/// Whether a device has the name, other than this one, if there is one. The names of revoked devices are free.
pub(crate) fn is_taken(devices: &[(String, DeviceRecord)], id: Option<&str>, name: &str) -> bool {
    devices.iter().any(|(other, device)| Some(other.as_str()) != id && !device.revoked && device.name == name)
}

/// Users with a device that may connect.
pub(crate) fn users(devices: &[(String, DeviceRecord)]) -> BTreeSet<&str> {
    devices.iter().filter(|(_, device)| !device.revoked).map(|(_, device)| device.user.as_str()).collect()
}

/// Whether this user may have a device.
///
/// # Errors
/// `users_max` others have one.
pub(crate) fn check_users(devices: &[(String, DeviceRecord)], user: &str, users_max: usize) -> Result<(), Error> {
    let users = users(devices);
    if users.len() >= users_max && !users.contains(user) {
        return Err(Error::TooManyUsers(users_max));
    }
    Ok(())
}

/// The name for this device, with a number appended if others have it already.
pub(crate) fn free(devices: &[(String, DeviceRecord)], id: &str, wanted: &str) -> String {
    let mut name = wanted.to_owned();
    let mut number = 1;
    while is_taken(devices, Some(id), &name) {
        number += 1;
        let end = format!(" {number}");
        let fits = wanted.floor_char_boundary(NAME_BYTES_MAX.saturating_sub(end.len()));
        name = format!("{}{end}", wanted.get(..fits).unwrap_or_default());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(id: &str, name: &str, revoked: bool) -> (String, DeviceRecord) {
        let (user, model) = ("wearer".to_owned(), "G1".to_owned());
        (id.to_owned(), DeviceRecord { key: [0; 32], name: name.to_owned(), user, model, paired_wall_ms: 0, revoked })
    }

    #[test]
    fn every_device_has_a_name_of_its_own() {
        let devices = [device("a", "G1", false), device("b", "G1 2", false), device("c", "Old", true)];
        assert_eq!(free(&devices, "d", "G1"), "G1 3");
        assert_eq!(free(&devices, "b", "G1"), "G1 2", "its own name is no other's");
        assert_eq!(free(&devices, "a", "G1"), "G1");
        assert_eq!(free(&devices, "d", "Old"), "Old");
        let long = "é".repeat(32);
        let devices = [device("a", &long, false)];
        let next = free(&devices, "d", &long);
        assert!(next.len() <= NAME_BYTES_MAX && next.ends_with("é 2"), "{next}");
    }
}
