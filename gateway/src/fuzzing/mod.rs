//! Checks of the gateway's private parsers, for `tests/fuzz` only. Each takes any bytes, and panics where an invariant
//! does not hold.

pub mod apps;
pub mod http;
pub mod links;
pub mod mcp;
pub mod operator;
pub mod pairing;
pub mod rows;

use std::{fs, path::PathBuf, sync::LazyLock};

use tokio::runtime::Runtime;

use crate::store::Store;

/// One thread is enough: the bytes of an input come from memory.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
});

/// Runs to its end. Tasks that are left stay for the next input.
fn run<F: Future>(future: F) -> F::Output {
    RUNTIME.block_on(future)
}

/// A store of this process, in memory where the system has such a folder.
fn store(name: &str) -> (Store, PathBuf) {
    let memory = PathBuf::from("/dev/shm");
    let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let folder = parent.join(format!("lorgnette-fuzz-{}-{name}", std::process::id()));
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).expect("a folder can be made");
    let store = Store::open(&folder, 16).expect("a store can be made");
    // The open files stay usable, and nothing is left behind.
    fs::remove_dir_all(&folder).expect("a folder can be removed");
    (store, folder)
}
