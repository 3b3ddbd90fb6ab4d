//! Replaces the running gateway by another process, usually of a newer version, without dropping a session.
//!
//! The old process starts the new one with one end of a socket pair as its standard input, and sends it the listening
//! sockets over it (`SCM_RIGHTS`, unix(7)). Both then exchange lines of JSON:
//!
//! | from | message | when |
//! |---|---|---|
//! | new | `"loaded"` | its configuration is right and its models are loaded; it has not touched the data folder |
//! | old | `"go"` | its sessions have got their goodbye, which keeps their resume tokens; its store is closed, its lock given up |
//! | new | `"serving"` | it has the data folder and takes connections; the old process ends |
//! | new | `{"failed":"why"}` | in place of either |
//!
//! A new process that fails, hangs or is not `loaded` in time changes nothing. One that fails behind `"go"` is ended, and
//! the old process starts again on the sockets that it still has. If the old one is told to stop before it hears
//! `"serving"`, it ends the new one, which stops in order, and then itself. Connections that arrive between the two wait in the
//! sockets' queues; glasses come back by resuming their sessions (PROTOCOL.md, section 9).

mod channel;
mod next;
mod request;
mod take_over;
mod version;

pub(crate) use self::next::{Handover, Next, SERVING_MAX, TAKE_OVER, signal};
pub use self::{
    request::{Ready, Upgrader},
    take_over::TakeOver,
    version::Version,
};
