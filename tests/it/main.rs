//! Integration tests.

mod intents;
mod tidy;
