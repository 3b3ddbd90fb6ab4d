//! How glasses take an image: what they answer, what they write, and what they report.

use device_protocol::firmware::{Device, Download, Release, Taken};
use device_protocol::{UpdateAnswer, UpdateFailure, UpdateOutcome, down, up};
use ed25519_dalek::{Signature, VerifyingKey};

use super::flash::{Outcome, Slot};
use super::{Error, Flash, Updates};

/// What follows from a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    Nothing,
    /// An answer, now or later.
    Answer(up::FirmwareAnswer),
    /// More is stored.
    Progress(up::FirmwareProgress),
    /// The power is gone: so many bytes are stored.
    PowerLost(u32),
}

/// The updating part of the glasses.
pub(crate) struct Updater {
    options: Updates,
    model: String,
    maker: VerifyingKey,
    flash: Flash,
    download: Option<Download>,
    /// Bytes in the slot.
    stored: u32,
}

impl Updater {
    /// For glasses of this model.
    ///
    /// # Errors
    /// The flash or the maker's key cannot be used.
    pub(crate) fn open(options: Updates, model: &str) -> Result<Self, Error> {
        let flash = Flash::open(&options.flash, &options.version)?;
        let maker = VerifyingKey::from_bytes(&options.maker).map_err(|_| Error::Key)?;
        flash.running().ok_or_else(|| Error::Version(flash.version().to_owned()))?;
        Ok(Self { model: model.to_owned(), options, maker, flash, download: None, stored: 0 })
    }

    /// The version that runs.
    pub(crate) fn version(&self) -> &str {
        self.flash.version()
    }

    /// A new session has begun: offers of the last one mean nothing.
    pub(crate) fn reset(&mut self) {
        self.download = None;
    }

    /// Answers an offer.
    pub(crate) fn offer(&mut self, offer: &down::FirmwareOffer<'_>, battery_percent: u8) -> Reaction {
        self.download = None;
        let (answer, offset) = match self.judge(offer, battery_percent) {
            Ok(offset) => (UpdateAnswer::Accepted, offset),
            Err(refusal) => (refusal, 0),
        };
        Reaction::Answer(up::FirmwareAnswer { update: offer.update, answer, offset })
    }

    fn judge(&mut self, offer: &down::FirmwareOffer<'_>, battery_percent: u8) -> Result<u32, UpdateAnswer> {
        let release = Release::parse(offer.manifest).map_err(|_| UpdateAnswer::BadManifest)?;
        self.maker
            .verify_strict(offer.manifest, &Signature::from_bytes(&offer.signature))
            .map_err(|_| UpdateAnswer::BadSignature)?;
        let device = Device {
            model: &self.model,
            hardware: self.options.hardware,
            version: self.flash.running().unwrap_or_default(),
            image_bytes_max: self.options.image_bytes_max,
        };
        device.accepts(&release)?;
        let manifest = release.manifest;
        if self.flash.is_known_bad(&manifest.hash) {
            return Err(UpdateAnswer::KnownBad);
        }
        if battery_percent < self.options.battery_min {
            return Err(UpdateAnswer::Battery);
        }
        let slot = Slot { image: manifest.hash, version: manifest.version.to_owned(), size: manifest.size };
        let stored = self.flash.begin(slot).map_err(|_| UpdateAnswer::Storage)?;
        self.download = Download::new(offer.update, manifest.size, stored);
        if self.download.is_none() {
            // More than there is: it is stored anew.
            self.flash.clear().map_err(|_| UpdateAnswer::Storage)?;
            return Err(UpdateAnswer::Storage);
        }
        self.stored = stored;
        Ok(stored)
    }

    /// Takes a chunk.
    pub(crate) fn chunk(&mut self, chunk: &down::FirmwareChunk<'_>) -> Reaction {
        let Some(download) = &mut self.download else { return Reaction::Nothing };
        let update = download.update();
        let payload = match download.take(chunk) {
            Ok(Taken::Write { payload, .. }) => payload,
            Ok(Taken::Nothing) => return Reaction::Nothing,
            Err(_) => return self.withdraw(update, UpdateAnswer::BadChunk),
        };
        let left = self.options.lose_power_at.map(|at| at.saturating_sub(self.stored) as usize);
        let written = left.map_or(payload, |left| payload.get(..left).unwrap_or(payload));
        if self.flash.append(written).is_err() {
            return self.withdraw(update, UpdateAnswer::Storage);
        }
        self.stored = self.stored.saturating_add(u32::try_from(written.len()).unwrap_or(0));
        if self.options.lose_power_at == Some(self.stored) {
            return Reaction::PowerLost(self.stored);
        }
        self.download.as_mut().and_then(Download::stored).map_or(Reaction::Nothing, Reaction::Progress)
    }

    fn withdraw(&mut self, update: u32, answer: UpdateAnswer) -> Reaction {
        self.download = None;
        Reaction::Answer(up::FirmwareAnswer { update, answer, offset: 0 })
    }

    /// The gateway withdraws its offer.
    pub(crate) fn cancel(&mut self, update: u32) {
        self.download.take_if(|download| download.update() == update);
    }

    /// Whether all of the image is stored, and it is to be verified.
    pub(crate) fn is_complete(&self) -> bool {
        self.download.as_ref().is_some_and(Download::is_complete)
    }

    /// Verifies what is stored; the outcome is reported by [`Self::report`].
    ///
    /// # Errors
    /// The flash fails.
    pub(crate) fn verify(&mut self) -> Result<bool, Error> {
        self.download = None;
        let verified = self.flash.verified()?.cloned();
        let Some(slot) = verified else {
            let image = self.flash.begun().unwrap_or_default();
            self.flash.clear()?;
            self.note(image, UpdateOutcome::Failed, UpdateFailure::Hash, "the image has another hash")?;
            return Ok(false);
        };
        self.note(slot.image, UpdateOutcome::Verified, UpdateFailure::None, "")?;
        Ok(true)
    }

    /// Starts the verified image, or goes back.
    ///
    /// # Errors
    /// The flash fails.
    pub(crate) fn boot(&mut self) -> Result<(), Error> {
        let image = self.flash.begun().unwrap_or_default();
        match self.flash.boot()? {
            true => self.note(image, UpdateOutcome::Applied, UpdateFailure::None, ""),
            false => self.note(image, UpdateOutcome::RolledBack, UpdateFailure::Boot, "the image does not start"),
        }
    }

    fn note(
        &mut self,
        image: [u8; 32],
        outcome: UpdateOutcome,
        failure: UpdateFailure,
        message: &str,
    ) -> Result<(), Error> {
        let (outcome, failure) = (outcome.number(), failure.number());
        self.flash.note(Outcome { image, outcome, failure, message: message.to_owned() })
    }

    /// The report about the last update, if there was one.
    pub(crate) fn report(&self) -> Option<up::FirmwareReport<'_>> {
        let last = self.flash.outcome()?;
        Some(up::FirmwareReport {
            image: last.image,
            outcome: UpdateOutcome::from_number(last.outcome),
            failure: UpdateFailure::from_number(last.failure),
            version: self.flash.version(),
            message: &last.message,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::maker::{self, Wanted};
    use super::*;
    use device_protocol::limits::FIRMWARE_CHUNK_BYTES_MAX;

    const MODEL: &str = "Example One";

    fn image(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at % 251) as u8).collect()
    }

    fn updater(folder: &std::path::Path, tune: impl FnOnce(&mut Updates)) -> Updater {
        let mut options = Updates::new(folder.join("flash"), maker::public([7; 32]), "1.0.0");
        tune(&mut options);
        Updater::open(options, MODEL).unwrap()
    }

    fn signed(image: &[u8], tune: impl FnOnce(&mut Wanted)) -> Vec<u8> {
        let mut wanted = Wanted::new(MODEL, "1.1.0");
        tune(&mut wanted);
        maker::sign([7; 32], image, &wanted).unwrap()
    }

    fn answer(updater: &mut Updater, signed: &[u8]) -> up::FirmwareAnswer {
        let (manifest, signature) = signed.split_last_chunk().unwrap();
        let offer = down::FirmwareOffer { update: 1, manifest, signature: *signature, chunk_bytes: 1_024 };
        match updater.offer(&offer, 90) {
            Reaction::Answer(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    /// Sends chunks from this place on, until something else than progress comes of it.
    fn send(updater: &mut Updater, image: &[u8], from: u32) -> Option<Reaction> {
        let mut at = from as usize;
        for payload in image[at..].chunks(FIRMWARE_CHUNK_BYTES_MAX) {
            let chunk = down::FirmwareChunk { update: 1, offset: at as u32, payload };
            match updater.chunk(&chunk) {
                Reaction::Nothing | Reaction::Progress(_) => at += payload.len(),
                other => return Some(other),
            }
        }
        None
    }

    #[test]
    fn power_lost_in_the_middle_costs_nothing_that_was_stored() {
        let folder = tempfile::tempdir().unwrap();
        let image = image(50_000);
        let signed = signed(&image, |_| ());
        let mut first = updater(folder.path(), |options| options.lose_power_at = Some(20_500));
        assert_eq!(answer(&mut first, &signed).offset, 0);
        assert_eq!(send(&mut first, &image, 0), Some(Reaction::PowerLost(20_500)));
        drop(first);
        let mut second = updater(folder.path(), |_| ());
        assert_eq!(answer(&mut second, &signed).offset, 20_500, "in the middle of a chunk");
        assert_eq!(send(&mut second, &image, 20_500), None);
        assert!(second.is_complete() && second.verify().unwrap());
        assert_eq!(second.report().unwrap().outcome, UpdateOutcome::Verified);
        second.boot().unwrap();
        assert_eq!((second.version(), second.report().unwrap().outcome), ("1.1.0", UpdateOutcome::Applied));
        assert_eq!(updater(folder.path(), |_| ()).version(), "1.1.0");
    }

    #[test]
    fn a_flipped_byte_is_found_and_stored_anew() {
        let folder = tempfile::tempdir().unwrap();
        let whole = image(5_000);
        let signed = signed(&whole, |_| ());
        let mut updater = updater(folder.path(), |_| ());
        answer(&mut updater, &signed);
        let mut flipped = whole.clone();
        flipped[3_000] ^= 1;
        assert_eq!(send(&mut updater, &flipped, 0), None);
        assert!(updater.is_complete() && !updater.verify().unwrap());
        let report = updater.report().unwrap();
        assert_eq!((report.outcome, report.failure), (UpdateOutcome::Failed, UpdateFailure::Hash));
        assert_eq!(answer(&mut updater, &signed).offset, 0);
        assert_eq!(updater.version(), "1.0.0");
    }

    #[test]
    fn what_is_not_for_these_glasses_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut updater = updater(folder.path(), |options| options.image_bytes_max = 5_000);
        let small = image(5_000);
        let mut refused = |signed: &[u8]| answer(&mut updater, signed).answer;
        let mut forged = signed(&small, |_| ());
        *forged.last_mut().unwrap() ^= 1;
        assert_eq!(refused(&forged), UpdateAnswer::BadSignature);
        let stranger = maker::sign([8; 32], &small, &Wanted::new(MODEL, "1.1.0")).unwrap();
        assert_eq!(refused(&stranger), UpdateAnswer::BadSignature);
        assert_eq!(refused(&[0; 100]), UpdateAnswer::BadManifest);
        assert_eq!(
            refused(&signed(&small, |wanted| wanted.model = "Example Two".to_owned())),
            UpdateAnswer::OtherModel
        );
        assert_eq!(refused(&signed(&small, |wanted| wanted.hardware = (1, 9))), UpdateAnswer::OtherModel);
        assert_eq!(refused(&signed(&image(5_001), |_| ())), UpdateAnswer::TooLarge);
        assert_eq!(refused(&signed(&small, |wanted| wanted.version = "0.9.0".to_owned())), UpdateAnswer::Version);
        let down = signed(&small, |wanted| (wanted.version, wanted.downgrade) = ("0.9.0".to_owned(), true));
        assert_eq!(refused(&down), UpdateAnswer::Accepted);
    }

    #[test]
    fn an_image_that_does_not_start_is_rolled_back_and_not_taken_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut image = image(3_000);
        image[..super::super::flash::DOES_NOT_BOOT.len()].copy_from_slice(super::super::flash::DOES_NOT_BOOT);
        let signed = signed(&image, |_| ());
        let mut updater = updater(folder.path(), |_| ());
        answer(&mut updater, &signed);
        assert_eq!(send(&mut updater, &image, 0), None);
        assert!(updater.verify().unwrap());
        updater.boot().unwrap();
        let report = updater.report().unwrap();
        assert_eq!((report.outcome, report.version), (UpdateOutcome::RolledBack, "1.0.0"));
        assert_eq!(answer(&mut updater, &signed).answer, UpdateAnswer::KnownBad);
    }

    #[test]
    fn a_chunk_out_of_order_ends_the_transfer_and_keeps_what_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let image = image(50_000);
        let signed = signed(&image, |_| ());
        let mut updater = updater(folder.path(), |_| ());
        answer(&mut updater, &signed);
        assert_eq!(send(&mut updater, &image[..10_240], 0), None);
        let chunk = down::FirmwareChunk { update: 1, offset: 20_480, payload: &image[20_480..21_504] };
        let withdrawn = up::FirmwareAnswer { update: 1, answer: UpdateAnswer::BadChunk, offset: 0 };
        assert_eq!(updater.chunk(&chunk), Reaction::Answer(withdrawn));
        assert_eq!(updater.chunk(&chunk), Reaction::Nothing);
        assert_eq!(answer(&mut updater, &signed).offset, 10_240);
    }
}
