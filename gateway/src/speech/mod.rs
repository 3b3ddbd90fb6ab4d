//! A device's ear and mouth: sound to voice facts and words, clauses to packets.

pub mod ear;
pub mod mouth;
pub mod settings;
