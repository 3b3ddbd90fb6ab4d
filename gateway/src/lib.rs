//! The shell: transports, device tasks, effects, store, control socket; the lorgnette binary.
