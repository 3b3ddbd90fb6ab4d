//! Names of users and devices, as they are given in requests.

use crate::{store::names::NAME_BYTES_MAX, text::is_plain};

/// Checks the name of a user or device.
///
/// # Errors
/// It is empty or too long, or has characters that do not show as themselves.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if name.trim().is_empty() || name.len() > NAME_BYTES_MAX || !is_plain(name) {
        return Err(format!("a name has 1 to {NAME_BYTES_MAX} bytes, all of characters that show as themselves"));
    }
    Ok(())
}
