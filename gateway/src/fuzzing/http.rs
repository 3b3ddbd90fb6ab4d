//! Requests of the web port.

use std::sync::LazyLock;

use super::{run, store};
use crate::{http::fuzzing, store::Store};

/// The bytes of a connection; the first one: from where it comes.
pub fn request(bytes: &[u8]) {
    static STORE: LazyLock<Store> = LazyLock::new(|| store("http").0);
    run(fuzzing::request(bytes, &STORE));
}
