//! Integration tests.

mod approvals;
mod apps;
mod ask;
mod assistant;
mod bad_input;
mod cache;
mod cli;
mod credentials;
mod durability;
mod http;
mod identity;
mod intents;
mod json_schema;
mod mcp;
mod memory;
mod mini_apps;
mod peer;
mod process;
mod programs;
mod providers;
mod router;
mod speech;
mod tidy;
mod tools;
mod try_page;
mod world;
