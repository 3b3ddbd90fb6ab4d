//! A device's ear and mouth: sound to voice facts and words, clauses to packets.

pub(crate) mod ear;
pub(crate) mod mouth;
pub(crate) mod settings;
