//! Audio input and output of a device: audio to voice facts and text, clauses to packets.

pub(crate) mod ear;
pub(crate) mod echo;
pub(crate) mod elsewhere;
pub mod facts;
pub(crate) mod language;
pub(crate) mod mouth;
pub(crate) mod phrases;
pub(crate) mod settings;
pub(crate) mod speaking;
pub(crate) mod wake;
