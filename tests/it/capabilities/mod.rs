//! Capabilities: the commands, and what a compiler of TypeScript and an engine of JavaScript make of the modules.

mod command;
mod files;
mod library;
mod samples;
mod types;
