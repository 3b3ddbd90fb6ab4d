//! The state around the wearer's words, as far as it decides whom they address.

use alloc::{string::String, sync::Arc, vec::Vec};

use super::side::{Preference, Side};

/// The state at the moment of speech. Facts, not decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scene {
    /// The installed mini-apps.
    pub apps: Vec<SceneApp>,
    /// Groups of built-in tools with something active, such as a running timer.
    pub busy: Vec<Side>,
    /// The wearer's choices between sides.
    pub preferences: Arc<[Preference]>,
}

/// A mini-app that the wearer may refer to or address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SceneApp {
    /// Its unique name, such as `com.example.todo`.
    pub package: String,
    /// Its name, for people.
    pub name: String,
    /// State of its life cycle.
    pub presence: AppPresence,
}

/// How present an app is, in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AppPresence {
    /// It does not run.
    #[default]
    Idle,
    /// It runs alongside others.
    Running,
    /// It runs in the foreground.
    InFront,
}
