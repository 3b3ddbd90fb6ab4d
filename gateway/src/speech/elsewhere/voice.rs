//! Voices: the product's own, and another one beside it for texts in languages that it does not speak, or for all. What the
//! other one fails to say the product's own says.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::{Context as _, Result};
use audio::{
    fair::Owner,
    meter::Meter,
    sound_file,
    tts::{CLAUSE_CHARS_MAX, Voice},
};
use chat_models::audio_api::{AudioApi, Sound, SoundForm, Speech};

use super::{
    RemoteEngine, SPEECH, Unanswered, command, language,
    settings::{Other, Speaker, Texts},
};
use crate::{
    clock,
    runtime::compute::{Compute, Full, Urgency},
    speech::phrases::{Key, PhraseCache},
};

/// Clauses that are spoken elsewhere at once: threads that wait, and children of the gateway.
const THREADS: usize = 4;
/// Clauses that may wait for that: as many as wait for the product's own voice.
const WAITING_MAX: usize = 64;
/// Longest sound of one clause: as much as a device's queue takes.
const CLAUSE_S_MAX: u32 = 60;

/// A clause to be spoken.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    /// What is said.
    pub(crate) text: String,
    /// BCP 47 tag of the conversation's language, as the device gave it.
    pub(crate) language: String,
    /// 1.0 is a voice's own pace.
    pub(crate) speed: f32,
    /// Set when nobody wants to hear it any more.
    pub(crate) hushed: Arc<AtomicBool>,
}

/// Turns a clause into sound, on a thread that may compute and wait.
pub(crate) trait Speak: Send + Sync {
    /// PCM16, mono, at [`Voice::RATE_HZ`]; empty if there is nothing to say.
    fn speak(&self, clause: &Clause) -> Result<Vec<i16>, Unanswered>;
}

impl Speak for Voice {
    fn speak(&self, clause: &Clause) -> Result<Vec<i16>, Unanswered> {
        self.synthesize(&clause.text, clause.speed).map_err(|error| Unanswered::Failed(error.to_string()))
    }
}

/// A voice beside the product's own.
pub(crate) struct OtherVoice {
    engine: Engine,
    texts: Texts,
    compute: Compute,
    pub(super) asked: RemoteEngine,
}

enum Engine {
    Server { api: Box<AudioApi>, voice: Option<String>, form: SoundForm },
    Program { command: Vec<String>, deadline: std::time::Duration },
}

impl OtherVoice {
    /// Sets it up; nothing is sent or started.
    ///
    /// # Errors
    /// Its key cannot be read, its address is wrong, or the system cannot start a thread.
    pub(crate) fn new(other: &Other, meter: Arc<Meter>) -> Result<Self> {
        let engine = match &other.speaker {
            Speaker::Server { server, voice, form } => Engine::Server {
                api: Box::new(server.api().context("`voice.other`")?),
                voice: voice.clone(),
                form: *form,
            },
            Speaker::Program { command, deadline } => Engine::Program { command: command.clone(), deadline: *deadline },
        };
        let start = "starting the threads for speech elsewhere";
        Ok(Self {
            engine,
            texts: other.texts,
            compute: Compute::start("voice", THREADS, WAITING_MAX).context(start)?,
            asked: RemoteEngine::new(SPEECH, other.speaker.to_string(), meter).context(start)?,
        })
    }

    /// Jobs that wait, and those refused since the start.
    pub(crate) fn load(&self) -> (usize, u64) {
        self.compute.load()
    }

    /// Whether all threads run.
    pub(crate) fn is_running(&self) -> bool {
        self.compute.is_running()
    }

    fn is_for(&self, clause: &Clause) -> bool {
        let has_words = clause.text.chars().any(char::is_alphanumeric);
        let foreign = || !language::is_english(&language::of(&clause.text, &clause.language));
        has_words && !self.asked.rests() && (self.texts == Texts::All || foreign())
    }
}

impl Speak for OtherVoice {
    fn speak(&self, clause: &Clause) -> Result<Vec<i16>, Unanswered> {
        if clause.text.chars().nth(CLAUSE_CHARS_MAX).is_some() {
            return Err(Unanswered::Failed(format!("a clause has more than {CLAUSE_CHARS_MAX} characters")));
        }
        let spoken = async {
            let sound = match &self.engine {
                Engine::Server { api, voice, form } => {
                    let speech =
                        Speech { text: &clause.text, voice: voice.as_deref(), speed: clause.speed, form: *form };
                    api.speak(speech).await.map_err(|error| error.to_string())?
                }
                Engine::Program { command, deadline } => {
                    let language = language::of(&clause.text, &clause.language);
                    // Each line would be a sound of its own.
                    let text = clause.text.split_whitespace().collect::<Vec<_>>().join(" ");
                    Sound::File(command::run(command, &language, &text, *deadline).await?)
                }
            };
            samples(&sound)
        };
        self.asked.ask(false, &clause.hushed, spoken)
    }
}

/// Samples at [`Voice::RATE_HZ`], which is that of bare ones.
fn samples(sound: &Sound) -> Result<Vec<i16>, String> {
    let bytes = match sound {
        Sound::Samples(bytes) => bytes,
        Sound::File(bytes) => {
            return sound_file::decode(bytes, Voice::RATE_HZ, CLAUSE_S_MAX).map_err(|error| error.to_string());
        }
    };
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("the sound ends in half a sample".to_owned());
    }
    if pairs.len() as u64 > u64::from(Voice::RATE_HZ) * u64::from(CLAUSE_S_MAX) {
        return Err(sound_file::Error::TooLong { seconds_max: CLAUSE_S_MAX }.to_string());
    }
    Ok(pairs.iter().map(|pair| i16::from_le_bytes(*pair)).collect())
}

/// What the mouths of all devices speak with.
#[derive(Clone)]
pub(crate) struct Voices {
    pub(crate) own: Arc<dyn Speak>,
    /// Threads of the product's own voice.
    pub(crate) compute: Compute,
    pub(crate) other: Option<Arc<OtherVoice>>,
    /// Fixed phrases that either voice has said before.
    pub(crate) phrases: Arc<PhraseCache>,
}

/// The sound of a clause, and when a thread began with it.
pub(crate) struct Synthesis {
    /// As of [`Voice::synthesize`]; `None`: nobody could say it.
    pub(crate) pcm: Option<Vec<i16>>,
    /// When it was begun, of [`clock::mono_us`].
    pub(crate) began_us: u64,
}

impl Voices {
    /// Has a clause spoken. `reply` is called once, on another thread, unless the clause is hushed before; for a fixed phrase
    /// that was said before it is called at once, on this one.
    ///
    /// # Errors
    /// Too many wait; `reply` is not called.
    pub(crate) fn say(
        &self,
        place: (Owner, Urgency),
        clause: Clause,
        reply: impl FnOnce(Synthesis) + Clone + Send + 'static,
    ) -> Result<(), Full> {
        let Some(other) = self.other.clone().filter(|other| other.is_for(&clause)) else {
            return self.say_ourselves(place, clause, reply);
        };
        let key = self.phrases.key(&clause.text, clause.speed, Some(&clause.language));
        if let Some(said) = self.said_before(key.as_ref()) {
            reply(said);
            return Ok(());
        }
        let (compute, (owner, urgency)) = (other.compute.clone(), place);
        let (this, to_say, to_reply) = (self.clone(), clause.clone(), reply.clone());
        let submitted = compute.submit_for(owner, urgency, move || {
            if to_say.hushed.load(Ordering::Relaxed) {
                return;
            }
            let began_us = clock::mono_us();
            match other.speak(&to_say) {
                Ok(pcm) => {
                    if let Some(key) = key {
                        this.phrases.keep(key, &pcm);
                    }
                    to_reply(Synthesis { pcm: Some(pcm), began_us });
                }
                Err(Unanswered::GivenUp) => {}
                // It was logged where it arose.
                Err(Unanswered::Rests | Unanswered::Failed(_)) => this.say_instead(place, to_say, to_reply),
            }
        });
        // The own voice has a queue of its own.
        submitted.or_else(|Full| self.say_ourselves(place, clause, reply))
    }

    fn say_ourselves(
        &self,
        (owner, urgency): (Owner, Urgency),
        clause: Clause,
        reply: impl FnOnce(Synthesis) + Send + 'static,
    ) -> Result<(), Full> {
        let key = self.phrases.key(&clause.text, clause.speed, None);
        if let Some(said) = self.said_before(key.as_ref()) {
            reply(said);
            return Ok(());
        }
        let (own, phrases) = (self.own.clone(), self.phrases.clone());
        self.compute.submit_for(owner, urgency, move || {
            let Some(said) = speak_ourselves(own.as_ref(), &clause) else { return };
            if let (Some(key), Some(pcm)) = (key, &said.pcm) {
                phrases.keep(key, pcm);
            }
            reply(said);
        })
    }

    /// The sound of a fixed phrase that this voice has said before, in this manner.
    fn said_before(&self, key: Option<&Key>) -> Option<Synthesis> {
        let pcm = self.phrases.find(key?)?;
        Some(Synthesis { pcm: Some(pcm), began_us: clock::mono_us() })
    }

    /// On a thread that has failed to have it said elsewhere: the reply is owed.
    fn say_instead(
        &self,
        place: (Owner, Urgency),
        clause: Clause,
        reply: impl FnOnce(Synthesis) + Clone + Send + 'static,
    ) {
        if self.say_ourselves(place, clause, reply.clone()).is_err() {
            reply(Synthesis { pcm: None, began_us: clock::mono_us() });
        }
    }
}

/// `None`: nobody wants to hear it any more.
fn speak_ourselves(own: &dyn Speak, clause: &Clause) -> Option<Synthesis> {
    if clause.hushed.load(Ordering::Relaxed) {
        return None;
    }
    let began_us = clock::mono_us();
    let pcm = if clause.text.trim().is_empty() { Ok(Vec::new()) } else { own.speak(clause) };
    let pcm = pcm.inspect_err(|error| tracing::warn!(?error, "a clause could not be synthesised")).ok();
    Some(Synthesis { pcm, began_us })
}

#[cfg(test)]
#[path = "voice_tests.rs"]
mod tests;
