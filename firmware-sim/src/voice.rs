//! The simulator's own voice: speaks for the wearer when no recording is available.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use audio::tts::Voice;
use audio::wav;

use crate::sound::CLIP_HZ;

/// Folder of the voice inside the folder of the models.
const FOLDER: &str = "hibari";

static VOICE: OnceLock<Result<Arc<Voice>, String>> = OnceLock::new();

/// The models folder: `$LORGNETTE_MODELS`, else `$XDG_DATA_HOME/lorgnette/models`, else
/// `~/.local/share/lorgnette/models`.
///
/// # Errors
/// Neither that variable nor a home folder is set.
pub fn models_folder() -> Result<PathBuf, String> {
    if let Some(folder) = std::env::var_os("LORGNETTE_MODELS") {
        return Ok(folder.into());
    }
    if let Some(data) = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|data| data.is_absolute()) {
        return Ok(data.join("lorgnette/models"));
    }
    let home = std::env::var_os("HOME").ok_or("neither LORGNETTE_MODELS nor HOME is set")?;
    Ok(PathBuf::from(home).join(".local/share/lorgnette/models"))
}

/// A sentence as samples at [`CLIP_HZ`]. The first call loads the voice.
///
/// # Errors
/// The voice is not installed, or cannot say the sentence.
pub async fn speak(text: &str) -> Result<Vec<i16>, String> {
    let text = text.to_owned();
    let spoken = tokio::task::spawn_blocking(move || speak_now(&text));
    spoken.await.map_err(|error| error.to_string())?
}

fn speak_now(text: &str) -> Result<Vec<i16>, String> {
    let pcm = samples(text)?;
    wav::convert(&pcm, Voice::RATE_HZ, CLIP_HZ).map_err(|error| error.to_string())
}

/// A sentence as samples at the voice's own rate; takes its time.
pub(crate) fn samples(text: &str) -> Result<Vec<i16>, String> {
    let voice = VOICE.get_or_init(|| {
        let folder = models_folder()?.join(FOLDER);
        Voice::load(&folder).map(Arc::new).map_err(|error| error.to_string())
    });
    let voice = voice.as_ref().map_err(Clone::clone)?;
    voice.synthesize(text, 1.0).map_err(|error| error.to_string())
}
