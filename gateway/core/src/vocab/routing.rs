//! Model routing: which models a turn may ask, in which order, and what the wearer was informed of a fallback.

use alloc::{vec, vec::Vec};

use serde::{Deserialize, Serialize};

/// Level of service, in descending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ServiceLevel {
    /// The first configured model.
    #[default]
    Full,
    /// Another model.
    Fallback,
    /// The built-in engine, which understands commands only.
    Commands,
}

/// Why the first configured model is not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FallbackReason {
    /// It does not answer.
    #[default]
    Outage,
    /// The day's budget is used up.
    Budget,
}

/// Rank of the operator's first choice among the models. A turn asks it first, unless it is out of order or too
/// expensive for the day.
pub const RANK_FIRST: u8 = 0;

/// A model that may be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its place in the configuration, from [`RANK_FIRST`] on.
    pub rank: u8,
    /// Its level of service.
    pub level: ServiceLevel,
    /// Whether it accepts pictures.
    pub images: bool,
}

/// The models that one turn may ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRoute {
    /// In the order in which they are asked; if one fails, the next. Empty: none may be asked.
    pub candidates: Vec<Candidate>,
    /// Why the first model is not among them, or may fail.
    pub reason: FallbackReason,
    /// The level that the wearer was already informed of, for that reason.
    pub told: ServiceLevel,
}

impl Default for ModelRoute {
    /// One model, available and within the budget.
    fn default() -> Self {
        Self { candidates: vec![Candidate::default()], reason: FallbackReason::Outage, told: ServiceLevel::Full }
    }
}

/// How a request to a model ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelOutcome {
    /// It was answered, possibly by a refusal.
    Answered,
    /// It ended with an error.
    Failed,
    /// It was cancelled before its end. Its usage is an estimate.
    Cancelled,
}
