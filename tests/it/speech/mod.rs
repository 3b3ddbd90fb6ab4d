//! Tests with real speech recognition and synthesis. The test runner runs them one at a time.

mod acoustics;
mod c_client;
pub mod ear;
mod elsewhere;
mod heads;
mod microphone;
mod privacy;
mod python_client;
mod spoken_length;
mod translation;
mod turns;
mod wake;
