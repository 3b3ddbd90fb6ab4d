//! All decisions about conversations as pure state machines: [`Conversation`](conversation) for one pair of glasses,
//! [`User`](user) for their wearer, [`AppLifecycles`](app_lifecycle) for a wearer's mini-apps. `no_std`, so that the
//! compiler rules out clocks, threads, sockets, files and randomly ordered maps.
//!
//! Read [`input`], [`output`] and [`timers`] first: closed enums, one of each per machine, define the complete behaviour.
//! [`driver`] defines how a machine is driven.
#![no_std]
extern crate alloc;

mod agent;
pub mod app_lifecycle;
mod approval;
mod config;
mod context;
pub mod conversation;
mod display;
pub mod driver;
mod floor;
pub mod input;
mod interpreter;
pub mod language;
pub mod limits;
mod link;
mod microphone;
mod notices;
pub mod output;
pub mod recording;
mod reply;
mod script;
mod speech_text;
pub mod spoken_length;
pub mod timers;
pub mod user;
pub mod vocab;

pub use agent::phrases::fixed_clauses;
pub use floor::commands::{is_backchannel, is_cancel, is_command};
