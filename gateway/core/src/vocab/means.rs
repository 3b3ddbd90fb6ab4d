//! What a turn may use: which models, in which order, and what of it the wearer knows.

use alloc::{vec, vec::Vec};

/// How well the wearer is served; less and less in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// By the model that was chosen first.
    #[default]
    Full,
    /// By another model.
    Other,
    /// By the engine on the box, which knows commands only.
    Commands,
}

/// Why it is not the model that was chosen first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shortage {
    /// It does not answer.
    #[default]
    Outage,
    /// The day's money is used up.
    Money,
}

/// A model that may be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Its place in the configuration, from 0 on.
    pub rank: u8,
    /// What asking it means for the wearer.
    pub service: Service,
    /// Whether it takes pictures.
    pub images: bool,
}

/// What one turn may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Means {
    /// In the order in which they are asked: the next one where one fails. Empty: none may be asked.
    pub models: Vec<Candidate>,
    /// Why not the best one first, or why it may become so.
    pub shortage: Shortage,
    /// What the wearer was told of that shortage already.
    pub told: Service,
}

impl Default for Means {
    /// One model, and nothing known against it.
    fn default() -> Self {
        Self { models: vec![Candidate::default()], shortage: Shortage::Outage, told: Service::Full }
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
