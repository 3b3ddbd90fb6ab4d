//! Reads the files with definitions.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use tools::{
    capabilities::{definition, offer::Offer},
    code::{
        JAVASCRIPT_BYTES_MAX, Language, Sandbox, TYPESCRIPT_BYTES_MAX,
        handlers::{self, HandlerFile},
    },
    limits::CAPABILITY_BYTES_MAX,
};

use crate::environment;

/// Files of one folder: more are generated, and then the folder is the wrong one.
const FILES_MAX: usize = 128;
/// Endings of the files in a folder that are read.
pub(super) const ENDINGS: [&str; 4] = ["json", "ts", "js", "mjs"];
/// Declarations are no capabilities.
const DECLARATIONS: &str = ".d.ts";

/// A definition in a file.
pub(super) struct Found {
    pub(super) file: PathBuf,
    pub(super) offer: Offer,
    /// What carries out its calls, in files that are programs.
    pub(super) handlers: Option<HandlerFile>,
}

/// Evaluates files that are programs. Nothing is started for those in JSON.
pub(crate) struct Evaluator {
    executable: Option<PathBuf>,
    sandbox: OnceLock<Arc<Sandbox>>,
}

impl Evaluator {
    /// With processes of this executable; `None`: of this process's own.
    pub(crate) fn new(executable: Option<&Path>) -> Self {
        Self { executable: executable.map(Path::to_owned), sandbox: OnceLock::new() }
    }

    /// The sandbox, in which handlers run as well: another one than that of programs, which wait for them.
    pub(super) fn sandbox(&self) -> &Arc<Sandbox> {
        let new = || Arc::new(self.executable.as_deref().map_or_else(Sandbox::default, Sandbox::new));
        self.sandbox.get_or_init(new)
    }
}

/// The definitions in a file, or in all files of a folder that may have some.
///
/// # Errors
/// All problems, each with its file.
pub(super) async fn read(place: &Path, evaluator: &Evaluator) -> Result<Vec<Found>, Vec<String>> {
    let about = |why: String| vec![format!("{}: {why}", place.display())];
    let found = fs::metadata(place).map_err(|error| about(error.to_string()))?;
    if !found.is_dir() {
        return read_file(place, evaluator).await.map_err(about);
    }
    let (mut all, mut problems) = (Vec::new(), Vec::new());
    for file in files(place).map_err(about)? {
        match read_file(&file, evaluator).await {
            Ok(found) => all.extend(found),
            Err(why) => problems.push(format!("{}: {why}", file.display())),
        }
    }
    if problems.is_empty() { Ok(all) } else { Err(problems) }
}

/// The files of a folder, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_skipped = name.starts_with('.') || name.ends_with(DECLARATIONS);
        if !is_skipped && ending(&path).is_some_and(|ending| ENDINGS.contains(&ending)) && path.is_file() {
            files.push(path);
        }
        if files.len() > FILES_MAX {
            return Err(format!("more than {FILES_MAX} files; name a folder that has only definitions"));
        }
    }
    if files.is_empty() {
        return Err(
            "has no file *.json, *.ts, *.js or *.mjs; put a definition there, or remove the reference".to_owned()
        );
    }
    files.sort();
    Ok(files)
}

fn ending(path: &Path) -> Option<&str> {
    path.extension().and_then(|ending| ending.to_str())
}

async fn read_file(file: &Path, evaluator: &Evaluator) -> Result<Vec<Found>, String> {
    let found = fs::metadata(file).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("is no file".to_owned());
    }
    let (language, bytes_max) = match ending(file) {
        Some("ts") => (Some(Language::TypeScript), TYPESCRIPT_BYTES_MAX),
        Some("js" | "mjs") => (Some(Language::JavaScript), JAVASCRIPT_BYTES_MAX),
        _ => (None, CAPABILITY_BYTES_MAX),
    };
    let bytes = found.len();
    if bytes > bytes_max as u64 {
        return Err(format!("{bytes} bytes; at most {bytes_max} are accepted: make several files"));
    }
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    if let Some(language) = language {
        let (offer, handlers) = handlers::read(evaluator.sandbox(), &text, language).await?;
        return Ok(vec![Found { file: file.to_owned(), offer, handlers: Some(handlers) }]);
    }
    let definitions = definition::read_text(&text).map_err(|error| error.to_string())?;
    let found = |definition| {
        let offer = Offer::new(definition, &environment::variable).map_err(|error| error.to_string())?;
        Ok(Found { file: file.to_owned(), offer, handlers: None })
    };
    definitions.into_iter().map(found).collect()
}
