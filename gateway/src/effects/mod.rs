//! What runs beside a device's task.

pub mod books;
pub mod context;
pub mod intents;
pub mod memory;
pub mod ports;
pub mod preferences;
pub mod prepare;
pub mod scene;
pub mod work;
