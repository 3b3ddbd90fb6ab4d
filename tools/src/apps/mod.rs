//! Mini-apps: what the gateway knows of one, and how its tools are called.

pub mod manifest;
