//! Every decision of the gateway, as pure state machines: [`Conversation`](conversation) for one
//! pair of glasses, [`User`](user) for the wearer behind them, [`AppLifecycles`](app_life) for a wearer's
//! mini-apps. `no_std`, so the compiler proves
//! that there is no clock, thread, socket, file or hash-ordered map in here.
//!
//! Read [`input`] and [`output`] first: closed enums, a pair for each machine, are the whole product. [`driver`] says how a
//! machine is driven.
#![no_std]
extern crate alloc;

mod agent;
pub mod app_life;
mod approval;
mod config;
mod context;
pub mod conversation;
mod display;
pub mod driver;
mod floor;
pub mod input;
pub mod limits;
mod link;
mod notices;
pub mod output;
mod reply;
mod speech_text;
mod timers;
pub mod user;
pub mod vocab;
