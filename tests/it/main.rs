//! Integration tests.

mod intents;
mod tidy;
mod try_page;
