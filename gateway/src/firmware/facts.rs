//! The state of firmware as facts, for the command line, the console and tools.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    hex,
    images::Stored,
    rollouts::{Candidate, Counts, Report, Rollouts, Scope, Stage},
};

/// Everything about firmware.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Facts {
    /// Stored images, by model and version; last those that nobody is offered.
    pub images: Vec<ImageFacts>,
    /// Roll-outs, by model.
    pub rollouts: Vec<RolloutFacts>,
    /// Devices that are connected and can be updated, or that have reported about a stored image.
    pub devices: Vec<DeviceFacts>,
}

/// A stored image, by its maker's manifest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImageFacts {
    /// Maker and model.
    pub model: String,
    /// Of the firmware in it.
    pub version: String,
    /// Its SHA-256.
    pub hash: String,
    /// Size of the image.
    pub bytes: u32,
    /// Lowest and highest revision of the hardware.
    pub hardware: (u16, u16),
    /// Lowest version from which a device may change to it, if there is one.
    pub version_min: Option<String>,
    /// Whether a device may change to it from a later version.
    pub downgrade: bool,
    /// Whether no maker that is configured has signed it: then nobody is offered it.
    #[serde(default)]
    pub unsigned: bool,
}

/// A roll-out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RolloutFacts {
    /// Maker and model.
    pub model: String,
    /// Version of the image.
    pub version: String,
    /// To whom.
    pub scope: Scope,
    /// Where it stands.
    pub stage: Stage,
    /// What devices have reported.
    pub counts: Counts,
}

/// How far a device is with its update: what runs, what it is being sent, what it said.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Fingerprint of its key.
    pub device: String,
    /// What its owner calls it.
    #[serde(default)]
    pub name: String,
    /// The version that runs, as it said last.
    pub version: String,
    /// Whether it is connected.
    pub connected: bool,
    /// What it is being sent.
    pub transfer: Option<Transfer>,
    /// Its last reports: version of the image, and what it said.
    pub reports: Vec<(String, Report)>,
}

/// What a device is being sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Version of the image.
    pub version: String,
    /// Bytes that it has stored.
    pub stored: u32,
    /// Bytes of the image.
    pub bytes: u32,
    /// What the device answered if it did not accept: a name of PROTOCOL.md, section 16.
    pub refused: Option<String>,
}

impl Facts {
    pub(super) fn of(
        (images, unsigned): (&[Stored], &[Stored]),
        rollouts: &Rollouts,
        present: &BTreeMap<String, (Candidate, Option<Transfer>)>,
        names: &BTreeMap<String, String>,
    ) -> Self {
        let version_of = |id: &str| {
            let found = images.iter().chain(unsigned).find(|image| hex(&image.id) == id);
            found.map(|image| image.version.to_string()).unwrap_or_default()
        };
        // What a device that is not paired any more has reported is nobody's.
        let devices = names.iter().filter_map(|(device, name)| {
            let of_device = |(image, reports): (&String, &BTreeMap<String, Report>)| {
                reports.get(device).map(|report| (version_of(image), report.clone()))
            };
            let mut reports: Vec<_> = rollouts.reports.iter().filter_map(of_device).collect();
            reports.sort_by_key(|(_, report)| report.wall_ms);
            let there = present.get(device);
            let version = match (there, reports.last()) {
                (Some((candidate, _)), _) => candidate.version.to_string(),
                (None, Some((_, last))) => last.version.clone(),
                (None, None) => return None,
            };
            Some(DeviceFacts {
                device: device.clone(),
                name: name.clone(),
                version,
                connected: there.is_some(),
                transfer: there.and_then(|(_, transfer)| transfer.clone()),
                reports,
            })
        });
        Self {
            images: images
                .iter()
                .map(|image| ImageFacts::of(image, false))
                .chain(unsigned.iter().map(|image| ImageFacts::of(image, true)))
                .collect(),
            rollouts: rollouts
                .rollouts
                .iter()
                .map(|(model, rollout)| RolloutFacts {
                    model: model.clone(),
                    version: version_of(&rollout.image),
                    scope: rollout.scope.clone(),
                    stage: rollout.stage.clone(),
                    counts: rollouts.counts(&rollout.image),
                })
                .collect(),
            devices: devices.collect(),
        }
    }
}

impl ImageFacts {
    fn of(image: &Stored, unsigned: bool) -> Self {
        Self {
            model: image.model.clone(),
            version: image.version.to_string(),
            hash: hex(&image.id),
            bytes: image.size,
            hardware: image.hardware,
            version_min: image.version_min.map(|version| version.to_string()),
            downgrade: image.downgrade,
            unsigned,
        }
    }
}
