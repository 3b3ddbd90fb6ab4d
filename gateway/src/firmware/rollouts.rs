//! Roll-outs: which device is offered which image, and when a roll-out stops by itself. Plain data, without files.

use std::collections::{BTreeMap, BTreeSet};

use device_protocol::{UpdateOutcome, firmware::Version};
use gateway_core::vocab::absent;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{
    hex,
    images::{ImageId, Stored},
};

/// Devices whose reports about one image are kept: more than ever come to one gateway.
const DEVICES_MAX: usize = 4_096;
/// Devices that one roll-out may name.
pub(crate) const NAMED_MAX: usize = 256;
/// How often an image is offered to a device that verifies it and comes back with the old version, without a word.
const TRIES_MAX: u8 = 3;

/// Which devices of a model are offered an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Every one.
    All,
    /// A share of them. That of a higher percentage has all of a lower one.
    Percent(u8),
    /// These, by their fingerprints.
    Devices(Vec<String>),
}

impl Scope {
    /// Whether a device belongs to it.
    fn has(&self, device: &str, image: &ImageId) -> bool {
        match self {
            Self::All => true,
            Self::Percent(percent) => place_of(device, image) < u64::from(*percent),
            Self::Devices(devices) => devices.iter().any(|named| named == device),
        }
    }
}

/// A device's place among hundred, for this image: the same each time, and as good as random.
fn place_of(device: &str, image: &ImageId) -> u64 {
    let digest = Sha256::new().chain_update(image).chain_update(device.as_bytes()).finalize();
    let first = digest.first_chunk().copied().map_or(0, u32::from_be_bytes);
    (u64::from(first) * 100) >> 32
}

/// Where a roll-out stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The image is offered.
    Running,
    /// The operator has paused it.
    Paused,
    /// It has stopped by itself: why.
    Stopped(String),
}

/// The roll-out of one image to a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rollout {
    /// The image, by its SHA-256 in hexadecimal digits.
    pub image: String,
    /// To whom.
    pub scope: Scope,
    /// Where it stands.
    pub stage: Stage,
}

/// How an update ended on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The image is stored and verified, and does not run yet.
    Verified,
    /// It runs.
    Applied,
    /// It is not used.
    Failed,
    /// It did not work; the version before it runs again.
    RolledBack,
}

impl Outcome {
    /// From the wire; `None`: an outcome of a later version, of which nothing is known.
    pub(crate) fn of(outcome: UpdateOutcome) -> Option<Self> {
        match outcome {
            UpdateOutcome::Verified => Some(Self::Verified),
            UpdateOutcome::Applied => Some(Self::Applied),
            UpdateOutcome::Failed => Some(Self::Failed),
            UpdateOutcome::RolledBack => Some(Self::RolledBack),
            UpdateOutcome::Other(_) => None,
        }
    }

    /// For people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Applied => "applied",
            Self::Failed => "failed",
            Self::RolledBack => "rolled back",
        }
    }

    fn is_bad(self) -> bool {
        matches!(self, Self::Failed | Self::RolledBack)
    }
}

/// A device's last report about an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed, if it did.
    #[serde(with = "absent")]
    pub failure: Option<String>,
    /// The version that ran then.
    pub version: String,
    /// When it came, in milliseconds since the Unix epoch.
    pub wall_ms: i64,
    /// How often the image was verified.
    pub tries: u8,
}

/// A device that can be updated, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Fingerprint of its key.
    pub device: String,
    /// Maker and model.
    pub model: String,
    /// Revision of the hardware.
    pub hardware: u16,
    /// Version that runs.
    pub version: Version,
    /// Bytes of the largest image that it can store.
    pub image_bytes_max: u32,
}

impl Candidate {
    /// Whether an image may be offered, by its manifest.
    fn takes(&self, image: &Stored) -> bool {
        let is_for_it = image.model == self.model
            && image.hardware.0 <= self.hardware
            && self.hardware <= image.hardware.1
            && image.size <= self.image_bytes_max;
        let is_another = image.version > self.version || (image.downgrade && image.version < self.version);
        is_for_it && is_another && image.version_min.is_none_or(|least| self.version >= least)
    }
}

/// All roll-outs and reports: what is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Rollouts {
    /// By model: each has one at most.
    pub rollouts: BTreeMap<String, Rollout>,
    /// By image and device.
    pub reports: BTreeMap<String, BTreeMap<String, Report>>,
}

impl Rollouts {
    /// The image that a device is to be offered.
    pub(super) fn offer<'a>(&self, images: &'a [Stored], candidate: &Candidate) -> Option<&'a Stored> {
        let rollout = self.rollouts.get(&candidate.model).filter(|rollout| rollout.stage == Stage::Running)?;
        let image = images.iter().find(|image| hex(&image.id) == rollout.image)?;
        let report = self.reports.get(&rollout.image).and_then(|reports| reports.get(&candidate.device));
        let may_try = report.is_none_or(|report| !report.outcome.is_bad() && report.tries < TRIES_MAX);
        (may_try && candidate.takes(image) && rollout.scope.has(&candidate.device, &image.id)).then_some(image)
    }

    /// Begins a roll-out in place of the model's last one, or goes on with it. `again`: devices on which the image failed are
    /// offered it once more.
    pub(super) fn begin(&mut self, image: &Stored, scope: Scope, again: bool) {
        let id = hex(&image.id);
        if again && let Some(reports) = self.reports.get_mut(&id) {
            reports.retain(|_, report| report.outcome == Outcome::Applied);
        }
        self.rollouts.insert(image.model.clone(), Rollout { image: id, scope, stage: Stage::Running });
    }

    /// Pauses the roll-out of a model; `false`: there is none.
    pub(super) fn pause(&mut self, model: &str) -> bool {
        self.rollouts.get_mut(model).map(|rollout| rollout.stage = Stage::Paused).is_some()
    }

    /// Forgets an image: its roll-out and all reports about it.
    pub(super) fn forget(&mut self, image: &ImageId) {
        let id = hex(image);
        self.rollouts.retain(|_, rollout| rollout.image != id);
        self.reports.remove(&id);
    }

    /// Forgets all images but these, as [`forget`](Self::forget) does.
    pub(super) fn keep_only(&mut self, images: &BTreeSet<String>) {
        self.rollouts.retain(|_, rollout| images.contains(&rollout.image));
        self.reports.retain(|image, _| images.contains(image));
    }

    /// A device reports about a stored image. Returns whether anything has changed.
    pub(super) fn report(&mut self, image: &Stored, candidate: &Candidate, report: Report, stop_percent: u8) -> bool {
        let reports = self.reports.entry(hex(&image.id)).or_default();
        let before = reports.get(&candidate.device);
        if before.is_none() && reports.len() >= DEVICES_MAX {
            tracing::warn!(device = candidate.device, "a report about firmware is not kept: there are too many");
            return false;
        }
        let mut report = report;
        if report.outcome == Outcome::Applied && candidate.version != image.version {
            report.outcome = Outcome::Failed;
            report.failure = Some(format!("says that it runs, and runs {}", candidate.version));
        }
        let tries = before.map_or(0, |before| before.tries);
        report.tries = tries.saturating_add(u8::from(report.outcome == Outcome::Verified));
        let is_same = before.is_some_and(|before| *before == Report { wall_ms: before.wall_ms, ..report.clone() });
        if is_same {
            return false;
        }
        reports.insert(candidate.device.clone(), report);
        self.judge(image, stop_percent);
        true
    }

    /// Stops a roll-out of which too many devices report failure.
    fn judge(&mut self, image: &Stored, stop_percent: u8) {
        let id = hex(&image.id);
        let Counts { applied, bad, .. } = self.counts(&id);
        let Some(rollout) = self.rollouts.get_mut(&image.model).filter(|rollout| rollout.image == id) else { return };
        let finished = applied + bad;
        if rollout.stage == Stage::Running && bad * 100 > usize::from(stop_percent) * finished {
            let why =
                format!("{bad} of {finished} devices report failure or roll-back, more than {stop_percent} percent");
            tracing::warn!(model = image.model, version = %image.version, why, "a firmware roll-out has stopped by itself");
            rollout.stage = Stage::Stopped(why);
        }
    }

    /// How many devices have reported what about an image.
    pub(super) fn counts(&self, image: &str) -> Counts {
        let mut counts = Counts::default();
        for report in self.reports.get(image).into_iter().flat_map(BTreeMap::values) {
            match report.outcome {
                Outcome::Verified => counts.verified += 1,
                Outcome::Applied => counts.applied += 1,
                Outcome::Failed | Outcome::RolledBack => counts.bad += 1,
            }
        }
        counts
    }
}

/// Devices by their last report about an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// It is stored and does not run yet.
    pub verified: usize,
    /// It runs.
    pub applied: usize,
    /// It failed, or was rolled back.
    pub bad: usize,
}

#[cfg(test)]
#[path = "rollouts_tests.rs"]
mod tests;
