//! The file of a backup: age (age-encryption.org/v1) with a passphrase, around a tar archive. Its first entry is the manifest;
//! then come the files, in the manifest's order. `age -d FILE | tar x` unpacks it without this program.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, BufWriter, ErrorKind, Read, Write},
    iter::once,
    path::Path,
};

use age::{
    DecryptError, Decryptor, Encryptor, Identity, Recipient, scrypt,
    secrecy::{ExposeSecret as _, SecretString},
    stream::StreamReader,
};
use anyhow::{Context as _, Error, Result, anyhow, bail, ensure};
use sha2::{Digest as _, Sha256};
use tar::{Archive, Builder, EntryType, Header};

use super::{
    FILES_MAX, PATH_BYTES_MAX,
    manifest::{Entry, Manifest, PIECE_BYTES, gone, in_digits},
};
use crate::private;

/// The entry with the manifest.
const MANIFEST: &str = "manifest.json";
/// Longest manifest: each file has its path, a size and a checksum.
const MANIFEST_BYTES_MAX: u64 = (FILES_MAX * 512) as u64;
/// Work that derives the key from the passphrase: 2^17 rounds of scrypt take 128 MiB of memory and about half a second on a
/// small box. Tests of this module take less.
const WORK_LOG2: u8 = if cfg!(test) { 4 } else { 17 };
/// Most work that a file may ask for: as much as the program `age` itself asks for.
const WORK_LOG2_MAX: u8 = 18;
/// How the header begins, and how its last line does: it has one recipient and fits into so many bytes.
const MAGIC: &[u8] = b"age-encryption.org/v1\n";
const HEADER_END: &[u8] = b"\n--- ";
const HEADER_BYTES_MAX: usize = 1024;
/// Shortest passphrase of a new backup, in characters: an attacker has the file and all the time in the world.
const PASSPHRASE_CHARS_MIN: usize = 10;
/// Longest passphrase, in bytes.
pub(crate) const PASSPHRASE_BYTES_MAX: usize = 1024;
/// Bytes behind the last file: an archive ends with two blocks of zeros, and may fill up its record.
const TRAILER_BYTES_MAX: usize = 64 * 1024;

/// The passphrase of a backup.
pub(crate) struct Passphrase(SecretString);

impl Passphrase {
    /// Of an existing backup.
    ///
    /// # Errors
    /// It is empty or too long.
    pub(crate) fn new(text: &str) -> Result<Self> {
        ensure!(!text.is_empty(), "the passphrase is empty");
        ensure!(text.len() <= PASSPHRASE_BYTES_MAX, "the passphrase has more than {PASSPHRASE_BYTES_MAX} bytes");
        Ok(Self(SecretString::from(text.to_owned())))
    }

    /// Checks that it is long enough for a new backup.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn check_new(&self) -> Result<()> {
        let chars = self.0.expose_secret().chars().count();
        ensure!(
            chars >= PASSPHRASE_CHARS_MIN,
            "the passphrase has {chars} characters; a backup needs {PASSPHRASE_CHARS_MIN} or more, such as five words \
             that have nothing to do with each other"
        );
        Ok(())
    }
}

/// Writes the archive of a snapshot.
pub(super) fn write(stage: &Path, manifest: &Manifest, out: File, passphrase: &Passphrase) -> Result<File> {
    let mut recipient = scrypt::Recipient::new(passphrase.0.clone());
    recipient.set_work_factor(WORK_LOG2);
    let encryptor = Encryptor::with_recipients(once(&recipient as &dyn Recipient)).context("encrypting")?;
    let mut tar = Builder::new(encryptor.wrap_output(BufWriter::new(out))?);
    let json = serde_json::to_vec(manifest)?;
    tar.append_data(&mut header(json.len() as u64, manifest), MANIFEST, json.as_slice())?;
    for entry in &manifest.files {
        let file = File::open(stage.join(&entry.path)).with_context(|| gone(&entry.path))?;
        // A file that has grown is cut to the size of its header; one that has shrunk shows when it is read back.
        tar.append_data(&mut header(entry.bytes, manifest), &entry.path, file.take(entry.bytes))?;
    }
    let out = tar.into_inner()?.finish()?;
    out.into_inner().map_err(|error| Error::from(error.into_error()))
}

fn header(bytes: u64, manifest: &Manifest) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(private::FILE_MODE);
    header.set_mtime(u64::try_from(manifest.made_wall_ms / 1000).unwrap_or_default());
    header
}

/// Reads an archive to its end: gives `begin` the manifest, and writes each file to what `open` returns for it.
///
/// # Errors
/// The first of: what is wrong with the file, and an error of `begin`, `open` or a write.
pub(super) fn read(
    input: File,
    passphrase: &Passphrase,
    begin: impl FnOnce(&Manifest) -> Result<()>,
    mut open: impl FnMut(&Entry) -> Result<Box<dyn Write>>,
) -> Result<Manifest> {
    let mut tar = Archive::new(decrypted(input, passphrase)?);
    // Raw: names of entries are for people, and so nothing long is read into memory for them.
    let mut entries = tar.entries().map_err(unreadable)?.raw(true);
    let mut next = || -> Result<Option<tar::Entry<'_, _>>> {
        for entry in entries.by_ref() {
            let entry = entry.map_err(unreadable)?;
            match entry.header().entry_type() {
                EntryType::Regular => return Ok(Some(entry)),
                EntryType::GNULongName if entry.size() <= PATH_BYTES_MAX as u64 + 1 => {}
                kind => bail!("the backup is damaged: it has an entry of the kind {kind:?}"),
            }
        }
        Ok(None)
    };
    let mut first = next()?.ok_or_else(|| anyhow!("the backup is empty"))?;
    ensure!(first.size() <= MANIFEST_BYTES_MAX, "the backup is damaged: its manifest is too large");
    let mut json = Vec::new();
    first.read_to_end(&mut json).map_err(unreadable)?;
    let manifest = Manifest::parse(&json).context("this backup cannot be used")?;
    begin(&manifest)?;
    for file in &manifest.files {
        let mut entry = next()?.ok_or_else(|| anyhow!("the backup is damaged: it ends before {}", file.path))?;
        ensure!(entry.size() == file.bytes, "the backup is damaged: {} has another size", file.path);
        copy(&mut entry, file, open(file)?.as_mut())?;
    }
    ensure!(next()?.is_none(), "the backup is damaged: it has more files than its manifest");
    // Only the end of the encrypted stream shows that nothing was cut off.
    let mut trailer = Vec::new();
    let limit = TRAILER_BYTES_MAX as u64 + 1;
    tar.into_inner().take(limit).read_to_end(&mut trailer).map_err(unreadable)?;
    ensure!(trailer.len() <= TRAILER_BYTES_MAX, "the backup is damaged: something follows its last file");
    Ok(manifest)
}

fn decrypted(input: File, passphrase: &Passphrase) -> Result<StreamReader<BufReader<File>>> {
    let mut input = BufReader::with_capacity(PIECE_BYTES, input);
    let start = input.fill_buf().context("reading the backup")?;
    let start = start.get(..start.len().min(HEADER_BYTES_MAX)).unwrap_or_default();
    ensure!(!start.is_empty(), "the backup is an empty file");
    ensure!(
        start.starts_with(MAGIC.get(..start.len().min(MAGIC.len())).unwrap_or_default()),
        "this is no backup of a gateway: it does not begin as an encrypted file does"
    );
    ensure!(
        start.windows(HEADER_END.len()).any(|part| part == HEADER_END),
        "the backup is damaged, or cut off in its first bytes"
    );
    let decryptor = Decryptor::new_buffered(input).map_err(refused)?;
    ensure!(decryptor.is_scrypt(), "this is no backup of a gateway: it is encrypted with a key, not with a passphrase");
    let mut identity = scrypt::Identity::new(passphrase.0.clone());
    identity.set_max_work_factor(WORK_LOG2_MAX);
    decryptor.decrypt(once(&identity as &dyn Identity)).map_err(refused)
}

fn refused(error: DecryptError) -> Error {
    match error {
        DecryptError::DecryptionFailed | DecryptError::KeyDecryptionFailed | DecryptError::NoMatchingKeys => {
            anyhow!("the passphrase is wrong")
        }
        DecryptError::ExcessiveWork { required, .. } => anyhow!(
            "this is no backup of a gateway: its passphrase takes 2^{required} rounds, and a backup 2^{WORK_LOG2} rounds"
        ),
        DecryptError::Io(error) => unreadable(error),
        _ => anyhow!("the backup is damaged in its first bytes"),
    }
}

/// What went wrong with reading. An encrypted stream that is cut off within one of its pieces does not decrypt.
fn unreadable(error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => {
            anyhow!(
                "the backup is cut off: its end is missing. Copy it once more from where it was made, or take another"
            )
        }
        ErrorKind::InvalidData | ErrorKind::Other | ErrorKind::InvalidInput => {
            anyhow!(
                "the backup is damaged, or cut off: it cannot be decrypted to its end. Copy it once more from where it was made, or take another"
            )
        }
        _ => Error::from(error).context("reading the backup"),
    }
}

fn copy(from: &mut impl Read, entry: &Entry, to: &mut dyn Write) -> Result<()> {
    let (mut sum, mut left, mut piece) = (Sha256::new(), entry.bytes, vec![0; PIECE_BYTES]);
    while left > 0 {
        let read = from.read(&mut piece).map_err(unreadable)?;
        ensure!(read > 0, "the backup is cut off within {}", entry.path);
        let read_part = piece.get(..read).unwrap_or_default();
        sum.update(read_part);
        to.write_all(read_part).with_context(|| format!("writing {}", entry.path))?;
        left = left.saturating_sub(read as u64);
    }
    to.flush().with_context(|| format!("writing {}", entry.path))?;
    ensure!(in_digits(&sum.finalize()) == entry.sha256, "the backup is damaged: {} has another checksum", entry.path);
    Ok(())
}
