//! Every decision of the gateway, as pure state machines.
#![no_std]
