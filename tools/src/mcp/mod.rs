//! The Model Context Protocol in both directions: [`client`] offers the tools of downstream servers to the gateway's
//! clients, [`server`] offers the gateway's tools to MCP clients. Types of the protocol library stay inside this
//! module.

pub mod client;
pub mod config;
pub mod server;
pub mod uris;
