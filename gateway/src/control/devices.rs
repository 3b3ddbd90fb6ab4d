//! Requests about devices: pairing, names, revocation; and devices as other requests find them.

use std::{sync::PoisonError, time::Duration};

use device_protocol::GoodbyeReason;
use tokio::{sync::oneshot, time::timeout};

use super::{Answer, Paired, SessionOf, Waits, names::check_name, reply::done};
use crate::{
    clock,
    device_task::services::Services,
    identity::{
        grant::{Grant, Outcome},
        pairing::REVOKED,
        typed,
    },
    roster::{Present, Roster},
    store::{DeviceRecord, Error, Store, Write, names},
};

/// How long storing a device after a granted pairing may take, in milliseconds.
const PAIRED_MS_MAX: u64 = 8_000;
/// How long a session may take to end: one round of its loop.
const ENDED_MAX: Duration = Duration::from_secs(2);

/// Paired and waiting devices.
pub(super) fn list(services: &Services) -> Result<Answer, String> {
    let paired = services
        .store
        .disk()
        .devices()
        .map_err(|error| error.to_string())?
        .into_iter()
        .map(|(device, record)| Paired {
            session: services.roster.get(&device).map(|present| session(&present)),
            left_wall_ms: services.roster.left_wall_ms(&device),
            device,
            name: record.name,
            user: record.user,
            model: record.model,
            revoked: record.revoked,
        })
        .collect();
    let waiting = services
        .admission
        .pairings
        .waiting(clock::mono_us())
        .into_iter()
        .map(|waiting| Waits {
            fingerprint: waiting.fingerprint,
            model: waiting.model,
            shows_code: waiting.has_code,
            expires_s: waiting.expires_s,
        })
        .collect();
    Ok(Answer::Devices { paired, waiting })
}

/// A device's session, for people.
pub(super) fn session(present: &Present) -> SessionOf {
    let status = present.status.lock().unwrap_or_else(PoisonError::into_inner);
    SessionOf {
        transport: present.via.transport.label.to_owned(),
        peer: present.via.peer.to_string(),
        for_s: seconds_since(present.via.since_us),
        lost_s: present.via.lost_us.map(seconds_since),
        firmware: status.firmware.clone(),
        battery_percent: status.battery_percent,
        muted: status.muted,
        microphone: status.microphone_faults.iter().map(|fault| fault.name().to_owned()).collect(),
        speaker_silent: status.speaker_silent,
        turn: present.via.turn,
    }
}

fn seconds_since(at_us: u64) -> u64 {
    clock::mono_us().saturating_sub(at_us) / 1_000_000
}

/// The user's glasses, if any are connected: their tools, and their display for questions.
pub(super) fn device_of(roster: &Roster, user: &str) -> Option<String> {
    roster.glasses_of(user).into_iter().next().map(|(id, _)| id)
}

/// Pairs the device that shows this code.
pub(super) async fn pair_code(services: &Services, code: &str, user: String, name: String) -> Result<Answer, String> {
    let grant = grant(user, name)?;
    let code = typed::code(code)?;
    can_be_paired(services, None, &grant)?;
    let user = grant.user.clone();
    let granted = services.admission.pairings.by_code(clock::mono_us(), &code, grant);
    let (device, outcome) = granted.map_err(|error| error.to_string())?;
    paired(&device, &user, outcome).await
}

/// Pairs the device with this fingerprint, if it waits, or opens a window for it.
pub(super) async fn pair_fingerprint(
    services: &Services,
    fingerprint: &str,
    user: String,
    name: String,
) -> Result<Answer, String> {
    let grant = grant(user, name)?;
    let fingerprint = typed::fingerprint(fingerprint)?;
    is_to_be_paired(services, &fingerprint)?;
    can_be_paired(services, Some(&fingerprint), &grant)?;
    let user = grant.user.clone();
    let opened = services.admission.pairings.by_fingerprint(clock::mono_us(), &fingerprint, grant);
    match opened.map_err(|error| error.to_string())? {
        Some(outcome) => paired(&fingerprint, &user, outcome).await,
        None => Ok(done(format!("for two minutes {fingerprint} will be admitted: switch the glasses on now"))),
    }
}

/// Checks that a handshake of this device would ask whether it may be paired: one that gets in as it is would never use its
/// window.
fn is_to_be_paired(services: &Services, device: &str) -> Result<(), String> {
    let known = services.store.disk().device(device).map_err(|error| error.to_string())?;
    match known.filter(|record| !record.revoked && !services.admission.pairings.is_revoked(device)) {
        Some(record) => Err(format!("{device} is paired already, for {}: revoke it first", record.user)),
        None => Ok(()),
    }
}

/// The grant of a pairing.
///
/// # Errors
/// The user or the name is none.
pub(super) fn grant(user: String, name: String) -> Result<Grant, String> {
    check_name(&user)?;
    // Without a name, the glasses are called by their model.
    if !name.is_empty() {
        check_name(&name)?;
    }
    Ok(Grant { user, name })
}

/// Checks whether this device, if it is known yet, can be paired for the user and name, before its code is used up.
pub(super) fn can_be_paired(services: &Services, device: Option<&str>, grant: &Grant) -> Result<(), String> {
    let devices = services.store.disk().devices().map_err(|error| error.to_string())?;
    if names::is_taken(&devices, device, &grant.name) {
        return Err(Error::NameTaken(grant.name.clone()).to_string());
    }
    services.users.check_room(&grant.user).map_err(|error| error.to_string())
}

/// The result of a granted pairing: success is reported only once the device is stored.
async fn paired(device: &str, user: &str, outcome: oneshot::Receiver<Outcome>) -> Result<Answer, String> {
    match timeout(Duration::from_millis(PAIRED_MS_MAX), outcome).await {
        Ok(Ok(Ok(name))) => Ok(done(format!("paired {device} for {user}, called {name}"))),
        Ok(Ok(Err(why))) => Err(format!("{device} is not paired: {why}")),
        Ok(Err(_gone)) => Err(format!("{device} went away before it was paired: connect it again")),
        Err(_elapsed) => Err(format!("{device} is granted, but not stored yet: see `lorgnette devices list`")),
    }
}

/// A device by its fingerprint, its name, or a prefix of the fingerprint; exactly one must match. A name that is in use
/// means its device, also where the fingerprint of another begins like it; that of a revoked device is no more than a prefix.
pub(super) fn find(store: &Store, wanted: &str) -> Result<(String, DeviceRecord), String> {
    let devices = store.disk().devices().map_err(|error: Error| error.to_string())?;
    // How a device fits: the first way in which any does counts.
    let way = |id: &str, record: &DeviceRecord| {
        let is_called = record.name == wanted;
        if id == wanted {
            Some(0)
        } else if is_called && !record.revoked {
            Some(1)
        } else if is_called || (!wanted.is_empty() && id.starts_with(wanted)) {
            Some(2)
        } else {
            None
        }
    };
    let best = devices.iter().filter_map(|(id, record)| way(id, record)).min();
    let mut fitting = devices.iter().filter(|(id, record)| best.is_some() && way(id, record) == best);
    match (fitting.next(), fitting.count()) {
        (None, _) => Err(format!("no device is called `{wanted}`; `lorgnette devices list` shows them")),
        (Some(found), 0) => Ok(found.clone()),
        (Some(_), others) => Err(format!("{} devices fit `{wanted}`; give more of the fingerprint", others + 1)),
    }
}

/// Gives a device, connected or not, revoked or not, another name, by which commands find it from then on.
///
/// # Errors
/// The name is none; another device that is not revoked has it; no device fits `device`, or several do; it cannot be stored.
pub(super) async fn rename(store: &Store, device: &str, name: String) -> Result<Answer, String> {
    check_name(&name)?;
    let (id, _) = find(store, device)?;
    let write = Write::RenameDevice { id: id.clone(), name: name.clone() };
    match store.write(write).await.map_err(|error| error.to_string())? {
        0 => Err(format!("{id} was erased meanwhile")),
        _ => Ok(done(format!("{id} is now called {name}"))),
    }
}

/// Keeps a device out: first in memory, which always works, then in the store. Where that cannot be read, the device has to be
/// named by its whole fingerprint.
pub(super) async fn revoke(services: &Services, wanted: &str) -> Result<Answer, String> {
    let found = find(&services.store, wanted);
    let id = match &found {
        Ok((id, _)) => id.clone(),
        Err(_) if services.roster.get(wanted).is_some() => wanted.to_owned(),
        Err(error) => return Err(error.clone()),
    };
    services.admission.pairings.revoke(clock::mono_us(), &id);
    let cut = match services.roster.dismiss(&id, GoodbyeReason::Revoked, REVOKED) {
        None => "",
        Some(session) if timeout(ENDED_MAX, session.mailbox.closed()).await.is_ok() => "; its session was ended",
        Some(_) => "; its session was told to end and has not ended yet, see `lorgnette devices list`",
    };
    let stored = match found {
        Ok((_, record)) => put(&services.store, &id, DeviceRecord { revoked: true, ..record }).await,
        Err(error) => Err(error),
    };
    tracing::info!(device = id, cut, stored = stored.is_ok(), "revoked");
    match stored {
        Ok(()) => Ok(done(format!("revoked {id}{cut}"))),
        Err(error) => Err(format!(
            "{id} is kept out until the next start{cut}; but that it is revoked could not be stored: {error}. Revoke it again \
             when that is solved"
        )),
    }
}

async fn put(store: &Store, id: &str, device: DeviceRecord) -> Result<(), String> {
    let write = Write::PutDevice { id: id.to_owned(), device };
    store.write(write).await.map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_in_use_means_its_device_and_the_beginning_of_a_fingerprint_one_device_only() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let (fades, faded) = ("fade".repeat(8), "faded123".repeat(4));
        for (id, name, is_revoked) in [
            (fades.clone(), "Ann's", false),
            (faded.clone(), "fade", false),
            ("00".repeat(16), "old", true),
            ("01".repeat(16), "old", true),
            ("02".repeat(16), "lost", true),
            // As glasses may be called that are named by their own model.
            ("03".repeat(16), fades.as_str(), false),
        ] {
            // Only what is stored can be revoked.
            for revoked in [false, is_revoked] {
                let (name, user, model) = (name.to_owned(), "ann".to_owned(), "G1".to_owned());
                let device = DeviceRecord { key: [0; 32], name, user, model, paired_wall_ms: 0, revoked };
                store.write(Write::PutDevice { id: id.clone(), device }).await.unwrap();
            }
        }
        let found = |wanted: &str| find(&store, wanted).map(|(id, _)| id);
        assert_eq!(found("fade"), Ok(faded.clone()), "although the other's fingerprint begins with it");
        assert_eq!(found("fadef"), Ok(fades.clone()));
        assert_eq!(found(&fades), Ok(fades.clone()), "a whole fingerprint is no name");
        assert_eq!(found("Ann's"), Ok(fades.clone()));
        assert_eq!(found("lost"), Ok("02".repeat(16)));
        for (wanted, count) in [("fad", 2), ("old", 2), ("0", 4)] {
            let why = format!("{count} devices fit `{wanted}`; give more of the fingerprint");
            assert_eq!(found(wanted), Err(why));
        }
        assert!(found("").unwrap_err().contains("no device is called") && found("Bob's").is_err());
    }
}
