//! What is going on around the wearer's words, as far as it decides who is meant by them.

use alloc::{string::String, sync::Arc, vec::Vec};

use super::side::{Preference, Side};

/// The moment in which something is said. Facts, not decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scene {
    /// The mini-apps that are installed.
    pub apps: Vec<SceneApp>,
    /// Groups of built-in tools of whose things some are alive, such as a timer that runs.
    pub busy: Vec<Side>,
    /// What the wearer has chosen between sides.
    pub preferences: Arc<[Preference]>,
}

/// A mini-app that the wearer may speak of or to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SceneApp {
    /// Its package.
    pub package: String,
    /// Its name, for people.
    pub name: String,
    /// Where it is in its life.
    pub life: AppLife,
}

/// How much of an app there is at a moment; more and more in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AppLife {
    /// It does not run.
    #[default]
    Idle,
    /// It runs beside others.
    Running,
    /// It runs, and is the one that the wearer works with.
    InFront,
}
