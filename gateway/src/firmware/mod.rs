//! Firmware for devices: the stored images, their roll-outs, and what devices report. docs/firmware.md has the operator's
//! view and the threat model, PROTOCOL.md, section 19, what travels.

pub mod facts;
mod images;
mod rollouts;
pub mod settings;
#[cfg(test)]
pub(crate) mod test_support;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use anyhow::{Context as _, Result, anyhow, bail};
use tokio::sync::{oneshot, watch};

pub(crate) use self::rollouts::{Candidate, NAMED_MAX, Outcome, Report};
use self::{
    facts::{Facts, Transfer},
    images::Images,
    rollouts::Rollouts,
    settings::FirmwareSettings,
};
pub use self::{
    images::{ImageId, Stored},
    rollouts::{Counts, Scope, Stage},
};
use crate::{
    private::write_private,
    runtime::compute::{Compute, Full, Urgency},
};

/// Folder of the images within the data folder.
const FOLDER: &str = "firmware";
/// File with the roll-outs and reports, in that folder.
const STATE: &str = "rollouts.json";
/// Devices that are sent an image at once: their images are in memory.
const TRANSFERS_MAX: usize = 4;
/// Jobs that may wait for the disk: changes of roll-outs, and images to be read.
const WAITING_MAX: usize = 64;

/// Stored images and their roll-outs. One per process.
pub struct Firmware {
    settings: FirmwareSettings,
    images: Images,
    state_file: PathBuf,
    thread: Compute,
    shared: Mutex<Shared>,
    changed: watch::Sender<u64>,
}

struct Shared {
    images: Vec<Stored>,
    /// Images that no configured maker has signed: they are kept until they are removed, and nobody is offered them.
    unsigned: Vec<Stored>,
    rollouts: Rollouts,
    /// Images in memory, as long as somebody is sent them.
    loaded: BTreeMap<ImageId, Weak<Vec<u8>>>,
    /// Connected devices that can be updated, and what they are sent.
    present: BTreeMap<String, (Candidate, Option<Transfer>)>,
    /// Places that are taken.
    places: usize,
}

impl Shared {
    fn all(&self) -> impl Iterator<Item = &Stored> {
        self.images.iter().chain(&self.unsigned)
    }
}

/// One of the few places of devices that are sent an image. It is given back when this is dropped.
pub(crate) struct Place(Arc<Firmware>);

impl Drop for Place {
    fn drop(&mut self) {
        let mut shared = self.0.lock();
        shared.places -= 1;
        drop(shared);
        self.0.notify();
    }
}

impl Firmware {
    /// Opens the images and roll-outs of this data folder.
    ///
    /// # Errors
    /// The folder cannot be read or made, or the system cannot start a thread.
    pub(crate) fn start(data_dir: &Path, settings: FirmwareSettings) -> Result<Self> {
        let folder = data_dir.join(FOLDER);
        let images = Images::open(folder.clone(), settings.makers.clone())?;
        let state_file = folder.join(STATE);
        let (signed, unsigned) = images.load()?;
        let mut rollouts = stored_rollouts(&state_file)?;
        // A removal that could not be stored leaves a roll-out without an image.
        rollouts.keep_only(&signed.iter().chain(&unsigned).map(|image| hex(&image.id)).collect());
        let shared =
            Shared { images: signed, unsigned, rollouts, loaded: BTreeMap::new(), present: BTreeMap::new(), places: 0 };
        let thread = Compute::start("firmware", 1, WAITING_MAX).context("starting the thread for firmware")?;
        let changed = watch::Sender::new(0);
        Ok(Self { settings, images, state_file, thread, shared: Mutex::new(shared), changed })
    }

    /// Whether its thread runs.
    pub(crate) fn is_running(&self) -> bool {
        self.thread.is_running()
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self) {
        self.changed.send_modify(|revision| *revision = revision.wrapping_add(1));
    }

    /// Changes whenever a device may have to be offered something else.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Bytes that one device is sent in a second, at most.
    pub(crate) fn rate_bytes_s(&self) -> u32 {
        self.settings.rate_bytes_s
    }

    /// A device that can be updated is there.
    pub(crate) fn came(&self, candidate: &Candidate) {
        self.lock().present.insert(candidate.device.clone(), (candidate.clone(), None));
    }

    /// The device has disconnected: it is not among those that can be updated.
    pub(crate) fn left(&self, device: &str) {
        self.lock().present.remove(device);
    }

    /// The image that a device is to be offered now.
    pub(crate) fn offer(&self, candidate: &Candidate) -> Option<Stored> {
        let shared = self.lock();
        shared.rollouts.offer(&shared.images, candidate).cloned()
    }

    /// A place for a transfer; `None`: all are taken, and a change tells when one is free.
    pub(crate) fn place(self: &Arc<Self>) -> Option<Place> {
        let mut shared = self.lock();
        if shared.places >= TRANSFERS_MAX {
            return None;
        }
        shared.places += 1;
        Some(Place(self.clone()))
    }

    /// What a device is being sent.
    pub(crate) fn transfers(&self, device: &str, transfer: Option<Transfer>) {
        if let Some((_, own)) = self.lock().present.get_mut(device) {
            *own = transfer;
        }
    }

    /// Reads an image and checks it, beside the caller; `told` gets it, or the reason why there is none.
    ///
    /// # Errors
    /// Too much waits for the disk: `told` gets nothing.
    pub(crate) fn load(
        self: &Arc<Self>,
        image: Stored,
        told: impl FnOnce(Result<Arc<Vec<u8>>, String>) + Send + 'static,
    ) -> Result<(), Full> {
        let firmware = self.clone();
        let read = move || told(firmware.loaded(&image).map_err(|error| format!("{error:#}")));
        self.thread.submit(Urgency::Soon, read)
    }

    fn loaded(&self, image: &Stored) -> Result<Arc<Vec<u8>>> {
        if let Some(loaded) = self.lock().loaded.get(&image.id).and_then(Weak::upgrade) {
            return Ok(loaded);
        }
        let bytes = Arc::new(self.images.read(image)?);
        let mut shared = self.lock();
        shared.loaded.retain(|_, loaded| loaded.strong_count() > 0);
        shared.loaded.insert(image.id, Arc::downgrade(&bytes));
        Ok(bytes)
    }

    /// A device reports how an update ended. One about an image that is not kept means nothing here.
    pub(crate) fn report(self: &Arc<Self>, candidate: &Candidate, image: &ImageId, report: Report) {
        let mut shared = self.lock();
        let Some(stored) = shared.images.iter().find(|stored| stored.id == *image).cloned() else { return };
        tracing::info!(
            device = candidate.device,
            version = %stored.version,
            outcome = ?report.outcome,
            failure = report.failure.as_deref(),
            "firmware report"
        );
        if shared.rollouts.report(&stored, candidate, report, self.settings.stop_percent) {
            drop(shared);
            // A report that is not stored comes again with the device's next session.
            self.store_later();
            self.notify();
        }
    }

    /// Has the roll-outs and reports stored by the thread; nobody waits for it.
    fn store_later(self: &Arc<Self>) {
        let firmware = self.clone();
        if let Err(Full) = self.thread.submit(Urgency::Now, move || drop(firmware.store())) {
            tracing::error!("the roll-outs of firmware could not be stored: too much waits for the disk");
        }
    }

    /// Stores the roll-outs and reports as they are now. Only the thread does, so that what is stored last is what came last.
    fn store(&self) -> Result<()> {
        let rollouts = self.lock().rollouts.clone();
        self.write(&rollouts)
    }

    fn write(&self, rollouts: &Rollouts) -> Result<()> {
        let bytes = serde_json::to_vec(rollouts)?;
        write_private(&self.state_file, &bytes)
            .inspect_err(|error| tracing::error!("the roll-outs of firmware could not be stored: {error:#}"))
    }

    /// Adds an image from these two files.
    ///
    /// # Errors
    /// It is not taken: why.
    pub(crate) async fn add(self: &Arc<Self>, manifest: PathBuf, image: PathBuf) -> Result<Stored> {
        self.on_thread(move |firmware| {
            // Nothing that is stored of an image which was removed may count for it when it is there again.
            firmware.store()?;
            let known: Vec<Stored> = firmware.lock().all().cloned().collect();
            let stored = firmware.images.add(&manifest, &image, &known)?;
            let mut shared = firmware.lock();
            shared.images.retain(|other| other.id != stored.id);
            shared.unsigned.retain(|other| other.id != stored.id);
            shared.images.push(stored.clone());
            shared.images.sort_by(|one, other| (&one.model, one.version).cmp(&(&other.model, other.version)));
            Ok(stored)
        })
        .await
    }

    /// Removes an image, its roll-out, and all reports about it.
    ///
    /// # Errors
    /// There is none, or it cannot be removed: then it is kept, with its roll-out.
    pub(crate) async fn remove(self: &Arc<Self>, model: &str, version: &str) -> Result<()> {
        let stored = self.find(model, version)?;
        self.on_thread(move |firmware| {
            firmware.images.remove(&stored.id)?;
            let mut shared = firmware.lock();
            shared.rollouts.forget(&stored.id);
            shared.images.retain(|other| other.id != stored.id);
            shared.unsigned.retain(|other| other.id != stored.id);
            drop(shared);
            firmware.notify();
            // If it fails, the next start forgets what has no image.
            drop(firmware.store());
            Ok(())
        })
        .await
    }

    /// Begins the roll-out of an image, or changes it: on the disk first, so that nothing is offered that a restart would not go
    /// on with.
    ///
    /// # Errors
    /// There is no such image, or it could not be stored: then nothing has changed.
    pub(crate) async fn roll_out(
        self: &Arc<Self>,
        model: &str,
        version: &str,
        scope: Scope,
        again: bool,
    ) -> Result<Stored> {
        let stored = self.find(model, version)?;
        if self.lock().unsigned.iter().any(|other| other.id == stored.id) {
            bail!("no maker that is configured has signed {version} of `{model}`: `[[firmware.makers]]` names the key");
        }
        self.on_thread(move |firmware| {
            let mut begun = firmware.lock().rollouts.clone();
            begun.begin(&stored, scope.clone(), again);
            firmware.write(&begun)?;
            // Not `begun` itself: reports may have come meanwhile. They are stored after this.
            firmware.lock().rollouts.begin(&stored, scope, again);
            firmware.notify();
            Ok(stored)
        })
        .await
    }

    /// Pauses the roll-out of a model. Transfers end, and go on where they were when it is begun again. It is paused even where
    /// this cannot be stored: an image that harms devices must not be sent on because a disk is full.
    ///
    /// # Errors
    /// There is none, or it could not be stored.
    pub(crate) async fn pause(self: &Arc<Self>, model: &str) -> Result<()> {
        if !self.lock().rollouts.pause(model) {
            bail!("nothing is rolled out to `{model}`; `lorgnette firmware status` shows all roll-outs");
        }
        self.notify();
        self.on_thread(Self::store).await.with_context(|| {
            format!(
                "`{model}` is paused only until the gateway starts again, as this cannot be stored; pause it once more"
            )
        })
    }

    /// Removes what devices other than these have reported: they are not paired any more.
    pub(crate) fn keep_only(self: &Arc<Self>, devices: &BTreeSet<String>) {
        let mut shared = self.lock();
        let before = shared.rollouts.clone();
        for reports in shared.rollouts.reports.values_mut() {
            reports.retain(|device, _| devices.contains(device));
        }
        if shared.rollouts != before {
            drop(shared);
            // If it fails, the next start tries again.
            self.store_later();
        }
    }

    async fn on_thread<R: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let (told, done) = oneshot::channel();
        let firmware = self.clone();
        self.thread.submit(Urgency::Now, move || drop(told.send(work(&firmware))))?;
        done.await.context("the gateway did not get to it")?
    }

    /// The stored image for this model with this version; the error says how to add one.
    fn find(&self, model: &str, version: &str) -> Result<Stored> {
        let shared = self.lock();
        let found = shared.all().find(|image| image.model == model && image.version.to_string() == version);
        found.cloned().ok_or_else(|| {
            anyhow!("there is no image of `{model}` {version}; `lorgnette firmware list` shows all, `add` adds one")
        })
    }

    /// Everything about firmware, for people and tools. `names`: those of all paired devices, by fingerprint.
    pub(crate) fn facts(&self, names: &BTreeMap<String, String>) -> Facts {
        let shared = self.lock();
        Facts::of((&shared.images, &shared.unsigned), &shared.rollouts, &shared.present, names)
    }
}

/// The roll-outs of the last run. A file that cannot be read is put aside: then nothing is rolled out, which is safe.
fn stored_rollouts(path: &Path) -> Result<Rollouts> {
    if !path.exists() {
        return Ok(Rollouts::default());
    }
    let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    match serde_json::from_slice(&bytes) {
        Ok(rollouts) => Ok(rollouts),
        Err(error) => {
            tracing::error!(%error, file = %path.display(), "the roll-outs of firmware are damaged: all of them have ended");
            fs::rename(path, path.with_extension("damaged"))?;
            Ok(Rollouts::default())
        }
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 32 bytes from their hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::{
        test_support::{MODEL, files, makers, manifest, signed},
        *,
    };

    fn start(data_dir: &Path) -> Arc<Firmware> {
        let settings = FirmwareSettings { rate_bytes_s: 1, stop_percent: 20, makers: makers(1) };
        Arc::new(Firmware::start(data_dir, settings).unwrap())
    }

    #[test]
    fn who_waits_for_an_image_is_told_that_it_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let firmware = start(folder.path());
        let (release, waits) = mpsc::sync_channel::<()>(0);
        firmware.thread.submit(Urgency::Now, move || waits.recv().unwrap_or(())).unwrap();
        let image = Stored::parse(&signed(manifest(&[7; 100], "1.0.0"), 1), &makers(1)).unwrap();
        assert!((0..=WAITING_MAX).any(|_| firmware.load(image.clone(), |_| {}).is_err()));
        drop(release);
    }

    #[tokio::test]
    async fn an_image_of_a_maker_that_is_gone_is_kept_for_nobody_and_can_be_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (signed_file, image_file) = files(folder.path(), &[7; 100], &signed(manifest(&[7; 100], "1.0.0"), 1));
        start(folder.path()).add(signed_file, image_file).await.unwrap();
        let gone = FirmwareSettings { rate_bytes_s: 1, stop_percent: 20, makers: BTreeMap::new() };
        let firmware = Arc::new(Firmware::start(folder.path(), gone).unwrap());
        let facts = firmware.facts(&BTreeMap::new());
        assert!(facts.images.len() == 1 && facts.images[0].unsigned && facts.images[0].bytes == 100, "{facts:?}");
        let refused = firmware.roll_out(MODEL, "1.0.0", Scope::All, false).await.unwrap_err().to_string();
        assert!(refused.contains("no maker that is configured"), "{refused}");
        firmware.remove(MODEL, "1.0.0").await.unwrap();
        assert!(firmware.facts(&BTreeMap::new()).images.is_empty());
        let left: Vec<_> = fs::read_dir(folder.path().join(FOLDER)).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(left.iter().all(|file| file.ends_with(STATE)), "{left:?}");
    }

    /// As the disk refuses it where there is no room.
    #[tokio::test]
    async fn what_the_disk_refuses_is_not_rolled_out_and_a_removed_image_does_not_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let (signed_file, image_file) = files(folder.path(), &[7; 100], &signed(manifest(&[7; 100], "1.1.0"), 1));
        let candidate = Candidate {
            device: "0".repeat(32),
            model: MODEL.to_owned(),
            hardware: 1,
            version: device_protocol::firmware::Version::parse("1.0.0").unwrap(),
            image_bytes_max: 1_000,
        };
        let firmware = start(folder.path());
        firmware.add(signed_file.clone(), image_file.clone()).await.unwrap();
        let in_the_way = folder.path().join(FOLDER).join("rollouts.json.new");
        fs::create_dir(&in_the_way).unwrap();
        firmware.roll_out(MODEL, "1.1.0", Scope::All, false).await.unwrap_err();
        assert!(firmware.offer(&candidate).is_none() && firmware.facts(&BTreeMap::new()).rollouts.is_empty());
        fs::remove_dir(&in_the_way).unwrap();
        firmware.roll_out(MODEL, "1.1.0", Scope::All, false).await.unwrap();
        assert!(firmware.offer(&candidate).is_some());
        fs::create_dir(&in_the_way).unwrap();
        let told = firmware.pause(MODEL).await.unwrap_err().to_string();
        assert!(told.contains("only until the gateway starts again") && firmware.offer(&candidate).is_none(), "{told}");
        firmware.remove(MODEL, "1.1.0").await.unwrap();
        assert!(firmware.facts(&BTreeMap::new()).images.is_empty());
        // The stored roll-out is still the running one, of an image that is gone.
        let again = start(folder.path());
        let facts = again.facts(&BTreeMap::new());
        assert!(facts.images.is_empty() && facts.rollouts.is_empty(), "{facts:?}");
        again.add(signed_file.clone(), image_file.clone()).await.unwrap_err();
        fs::remove_dir(&in_the_way).unwrap();
        again.add(signed_file, image_file).await.unwrap();
        let last = start(folder.path());
        assert!(last.offer(&candidate).is_none() && last.facts(&BTreeMap::new()).images.len() == 1);
    }
}
