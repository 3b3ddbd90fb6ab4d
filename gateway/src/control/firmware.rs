//! Requests about firmware for devices.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{Answer, devices::find, reply::done};
use crate::{
    firmware::{Firmware, NAMED_MAX, Scope, facts::Facts},
    store::Store,
};

/// What `lorgnette firmware` and the console ask about firmware.
#[allow(missing_docs, reason = "the fields are the words of the command line")]
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum FirmwareRequest {
    /// Images, roll-outs and devices.
    State,
    /// Add an image from two files, which the gateway reads.
    Add { manifest: PathBuf, image: PathBuf },
    /// Begin or change the roll-out of an image.
    RollOut { model: String, version: String, scope: Scope, again: bool },
    /// Pause the roll-out of a model.
    Pause { model: String },
    /// Remove an image.
    Remove { model: String, version: String },
}

/// The request's name for the log.
pub(super) fn name(request: &FirmwareRequest) -> &'static str {
    match request {
        FirmwareRequest::State => "firmware status",
        FirmwareRequest::Add { .. } => "firmware add",
        FirmwareRequest::RollOut { .. } => "firmware rollout",
        FirmwareRequest::Pause { .. } => "firmware pause",
        FirmwareRequest::Remove { .. } => "firmware remove",
    }
}

/// The request's model.
pub(super) fn about(request: &FirmwareRequest) -> Option<&str> {
    match request {
        FirmwareRequest::State | FirmwareRequest::Add { .. } => None,
        FirmwareRequest::RollOut { model, .. }
        | FirmwareRequest::Pause { model }
        | FirmwareRequest::Remove { model, .. } => Some(model),
    }
}

/// The state of firmware, with the names of devices: images, roll-outs, and what each device runs, is sent and has reported.
fn facts(firmware: &Firmware, store: &Store) -> Result<Facts, String> {
    let devices = store.disk().devices().map_err(|error| error.to_string())?;
    let names: BTreeMap<String, String> = devices.into_iter().map(|(id, record)| (id, record.name)).collect();
    Ok(firmware.facts(&names))
}

pub(super) async fn carry_out(
    firmware: &Arc<Firmware>,
    store: &Store,
    request: FirmwareRequest,
) -> Result<Answer, String> {
    let because = |error: anyhow::Error| format!("{error:#}");
    match request {
        FirmwareRequest::State => {
            facts(firmware, store).map(|firmware| Answer::Firmware { firmware: Box::new(firmware) })
        }
        FirmwareRequest::Add { manifest, image } => {
            let stored = firmware.add(manifest, image).await.map_err(because)?;
            Ok(done(format!(
                "{} {} is kept, {} bytes; nobody is offered it before `lorgnette firmware rollout`",
                stored.model, stored.version, stored.size
            )))
        }
        FirmwareRequest::RollOut { model, version, scope, again } => {
            let scope = named(store, scope)?;
            let stored = firmware.roll_out(&model, &version, scope, again).await.map_err(because)?;
            Ok(done(format!("{} {} is offered from now on", stored.model, stored.version)))
        }
        FirmwareRequest::Pause { model } => {
            firmware.pause(&model).await.map_err(because)?;
            Ok(done(format!("nothing is offered to {model} any more; `lorgnette firmware rollout` offers it again")))
        }
        FirmwareRequest::Remove { model, version } => {
            firmware.remove(&model, &version).await.map_err(because)?;
            Ok(done(format!("{model} {version} is removed, with all reports about it")))
        }
    }
}

/// A scope with the fingerprints of devices in place of their names.
fn named(store: &Store, scope: Scope) -> Result<Scope, String> {
    match scope {
        Scope::Devices(devices) if devices.is_empty() || devices.len() > NAMED_MAX => {
            Err(format!("a roll-out may name 1 to {NAMED_MAX} devices"))
        }
        Scope::Devices(devices) => {
            let ids = devices.iter().map(|device| find(store, device).map(|(id, _)| id));
            ids.collect::<Result<_, _>>().map(Scope::Devices)
        }
        Scope::Percent(percent) if percent > 100 => Err("a percentage is 0 to 100".to_owned()),
        scope => Ok(scope),
    }
}
