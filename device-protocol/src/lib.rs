//! What travels between smart glasses and the gateway.
#![no_std]
