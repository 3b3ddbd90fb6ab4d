//! The Model Context Protocol, both ways: [`client`] offers the tools of downstream servers to
//! everybody, [`server`] offers everybody's tools to MCP clients. Types of the protocol's library
//! stay inside this module.

pub mod client;
pub mod config;
pub mod server;
pub mod uris;
