//! Integration tests.

mod bad_input;
mod cli;
mod durability;
mod identity;
mod intents;
mod mcp;
mod peer;
mod process;
mod speech;
mod tidy;
mod try_page;
mod world;
