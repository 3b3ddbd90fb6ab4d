//! The shell: config, transports, device tasks, effects, store, control socket. It holds no policy.

pub mod clock;
pub mod store;
