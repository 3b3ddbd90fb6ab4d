//! Capabilities: the commands, and what a compiler of TypeScript and an engine of JavaScript make of the modules.

mod bundles;
mod command;
mod examples;
mod files;
mod handlers;
mod library;
mod programs;
mod samples;
mod servers;
mod speech;
mod types;
