//! Model routing: which models a turn may ask, in which order, and what the wearer knows of a fallback.

use alloc::{vec, vec::Vec};

/// How well the wearer is served, in descending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServiceLevel {
    /// By the model that was chosen first.
    #[default]
    Full,
    /// By another model.
    Fallback,
    /// By the engine on the box, which knows commands only.
    Commands,
}

/// Why the model that is configured first does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FallbackReason {
    /// It does not answer.
    #[default]
    Outage,
    /// The day's budget is used up.
    Budget,
}

/// A model that may be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Its place in the configuration, from 0 on.
    pub rank: u8,
    /// The level of service that it gives.
    pub level: ServiceLevel,
    /// Whether it takes pictures.
    pub images: bool,
}

/// The models that one turn may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRoute {
    /// In the order in which they are asked: the next one where one fails. Empty: none may be asked.
    pub candidates: Vec<Candidate>,
    /// Why the first model is not among them, or may fail.
    pub reason: FallbackReason,
    /// What the wearer was told of that reason already.
    pub told: ServiceLevel,
}

impl Default for ModelRoute {
    /// One model, which answers and is paid for.
    fn default() -> Self {
        Self { candidates: vec![Candidate::default()], reason: FallbackReason::Outage, told: ServiceLevel::Full }
    }
}

/// How a request to a model ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelOutcome {
    /// It was answered, if only by a refusal.
    Answered,
    /// It was not.
    Failed,
    /// Nobody waited for the end. What it has used is an estimate.
    Cancelled,
}
