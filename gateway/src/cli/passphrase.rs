//! Passphrases of backups: from a file, or typed without being shown.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::secret;
use crate::backup::{PASSPHRASE_BYTES_MAX, Passphrase};

/// Of a new backup: typed twice.
///
/// # Errors
/// It cannot be read, is too short, or was typed in two ways.
pub(super) fn new(file: Option<&Path>) -> Result<Passphrase> {
    let text = match file {
        Some(file) => of_file(file)?,
        None => {
            let text = typed("Passphrase of the backup, ten characters or more: ")?;
            ensure!(typed("The same once more: ")? == text, "these are two different passphrases");
            text
        }
    };
    let passphrase = Passphrase::new(&text)?;
    passphrase.check_new()?;
    Ok(passphrase)
}

/// Of an existing backup.
///
/// # Errors
/// It cannot be read.
pub(super) fn existing(file: Option<&Path>) -> Result<Passphrase> {
    let text = match file {
        Some(file) => of_file(file)?,
        None => typed("Passphrase of the backup: ")?,
    };
    Passphrase::new(&text)
}

fn of_file(file: &Path) -> Result<String> {
    secret::of_file(file, PASSPHRASE_BYTES_MAX)
}

fn typed(prompt: &str) -> Result<String> {
    rpassword::prompt_password(prompt).context("there is no terminal to type a passphrase at; use --passphrase-file")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private::write_private;

    #[test]
    fn a_passphrase_is_the_first_line_of_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("passphrase");
        write_private(&file, "five words are a start\r\nnot this\n".as_bytes()).unwrap();
        assert_eq!(of_file(&file).unwrap(), "five words are a start");
        new(Some(&file)).unwrap();
        write_private(&file, b"short\n").unwrap();
        assert!(new(Some(&file)).err().unwrap().to_string().contains("5 characters"));
        existing(Some(&file)).unwrap();
        write_private(&file, b"\n").unwrap();
        assert!(existing(Some(&file)).err().unwrap().to_string().contains("empty"));
    }
}
