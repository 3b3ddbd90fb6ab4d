//! Tests in which real speech is heard and made. The runner lets one of them run at a time.

pub mod ear;
mod privacy;
mod python_client;
mod turns;
