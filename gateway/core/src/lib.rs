//! Every decision of the gateway, as pure state machines: [`Conversation`](conversation) for one
//! pair of glasses, [`User`](user) for the wearer behind them. `no_std`, so the compiler proves
//! that there is no clock, thread, socket, file or hash-ordered map in here.
//!
//! Read [`input`] and [`output`] first: two closed enums are the whole product.
#![no_std]
extern crate alloc;

pub mod input;
pub mod output;
pub mod vocab;
