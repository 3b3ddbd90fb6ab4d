//! Recognition at a server, before or after that on this machine.

use std::sync::{Arc, atomic::AtomicBool};

use anyhow::{Context as _, Result};
use audio::{
    asr::{Error, Language, Options, SAMPLE_RATE_HZ, Spoken, Transcribe, Transcription},
    meter::Meter,
    wav,
};
use chat_models::audio_api::{AudioApi, Failed};

use super::{
    RECOGNITION, RemoteEngine, Unanswered,
    settings::{Order, RecognitionServer},
};
use crate::clock;

/// A recogniser at a server. One for all recognition threads.
pub(crate) struct RemoteRecogniser {
    api: AudioApi,
    order: Order,
    pub(super) asked: RemoteEngine,
}

impl RemoteRecogniser {
    /// Sets it up; nothing is sent.
    ///
    /// # Errors
    /// Its key cannot be read, its address is wrong, or the system cannot start a thread.
    pub(crate) fn new(remote: &RecognitionServer, meter: Arc<Meter>) -> Result<Self> {
        let api = remote.server.api().context("`hearing.remote`")?;
        let asked = RemoteEngine::new(RECOGNITION, remote.server.to_string(), meter);
        Ok(Self { api, order: remote.order, asked: asked.context("starting the thread for recognition elsewhere")? })
    }

    /// The text of sound at 16 kHz, one channel.
    fn transcribe(&self, pcm: &[i16], options: &Options, insist: bool) -> Result<Transcription, Unanswered> {
        if let Some(nothing) = Transcription::of_nothing(pcm) {
            return Ok(nothing);
        }
        // Where it is to be detected, the server does, and tells it if it can.
        let language = match options.spoken {
            Some(Spoken::Is(language)) => Some(language.code()),
            Some(Spoken::Detected) | None => None,
        };
        let began_us = clock::mono_us();
        let request = async {
            let wav = wav::encode(pcm, SAMPLE_RATE_HZ);
            let wav = wav.ok_or_else(|| Failed::Request("the sound is too long for a WAV file".to_owned()))?;
            self.api.transcribe(wav, language, &options.prompt()).await
        };
        let never = AtomicBool::new(false);
        let answer = self.asked.ask(insist, options.abort.as_deref().unwrap_or(&never), request)?;
        let decode_us = clock::mono_us().saturating_sub(began_us);
        let detected = answer.language.as_deref().and_then(Language::named);
        Ok(Transcription::written_elsewhere(&answer.text, detected, pcm, options, decode_us))
    }
}

/// What one recognition thread decodes with: weights on this machine, a server, or one after the other.
pub(crate) struct Recogniser<L> {
    local: Option<L>,
    remote: Arc<RemoteRecogniser>,
}

impl<L> Recogniser<L> {
    /// `local`: the weights on this machine, if there are any.
    pub(crate) fn new(local: Option<L>, remote: Arc<RemoteRecogniser>) -> Self {
        Self { local, remote }
    }
}

impl<L: Transcribe> Transcribe for Recogniser<L> {
    fn transcribe(&mut self, pcm: &[i16], options: &Options) -> Result<Transcription, Error> {
        let remote = &self.remote;
        // Weights that do not know the language are as good as none. But others on this machine are heard by them: passing texts hold
        // up no thread for a server that failed a short while ago.
        let alone = self.local.is_none() || !options.on_box;
        let Some(local) = self.local.as_mut().filter(|local| local.can(options)) else {
            // There is nobody else to ask, and it is asked for what was said only.
            if options.translate {
                return Err(Error::Elsewhere("translations need weights of many languages on this machine".to_owned()));
            }
            return remote.transcribe(pcm, options, alone).map_err(error_of);
        };
        match remote.order {
            _ if options.on_box || options.translate => local.transcribe(pcm, options),
            Order::Instead => match remote.transcribe(pcm, options, false) {
                Err(Unanswered::GivenUp) => Err(Error::Cancelled),
                Err(Unanswered::Rests | Unanswered::Failed(_)) => local.transcribe(pcm, options),
                Ok(text) => Ok(text),
            },
            Order::Fallback => match local.transcribe(pcm, options) {
                Err(error) if !matches!(error, Error::Cancelled | Error::TooLong { .. }) => {
                    tracing::warn!(%error, "this machine's recogniser failed; the one elsewhere is asked");
                    remote.transcribe(pcm, options, false).map_err(|unanswered| match unanswered {
                        Unanswered::GivenUp => Error::Cancelled,
                        Unanswered::Rests | Unanswered::Failed(_) => error,
                    })
                }
                done => done,
            },
        }
    }
}

fn error_of(unanswered: Unanswered) -> Error {
    match unanswered {
        Unanswered::GivenUp => Error::Cancelled,
        Unanswered::Rests => Error::Elsewhere("it failed a short while ago".to_owned()),
        Unanswered::Failed(why) => Error::Elsewhere(why),
    }
}

#[cfg(test)]
#[path = "recogniser_tests.rs"]
mod tests;
