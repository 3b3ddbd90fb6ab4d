//! Two models on one recognition thread: the first for all decodings, the second for second passes and for what the
//! first one cannot do, which is other languages if its weights are English.

use super::{Decoder, Engine, Error, Options, Transcribe, Transcription};

/// Decodes with the first model, or with the second if there is one and [`Options::second_model`] is set or the first one
/// cannot do it.
pub struct Pair {
    engine: Engine,
    first: Decoder,
    second: Option<Second>,
}

struct Second {
    engine: Engine,
    /// Created on first use: most threads never need it, and it takes more memory than the first.
    decoder: Option<Decoder>,
}

impl Pair {
    /// Creates the decoder of `first` now, that of `second` on first use.
    ///
    /// # Errors
    /// A state cannot be created.
    pub fn new(first: &Engine, second: Option<&Engine>) -> Result<Self, Error> {
        let second = second.map(|engine| Second { engine: engine.clone(), decoder: None });
        Ok(Self { engine: first.clone(), first: first.decoder()?, second })
    }

    /// Whether the second model was used so far.
    pub fn has_second(&self) -> bool {
        self.second.as_ref().is_some_and(|second| second.decoder.is_some())
    }
}

impl Transcribe for Pair {
    fn transcribe(&mut self, pcm: &[i16], options: &Options) -> Result<Transcription, Error> {
        let Some(second) = self.second.as_mut().filter(|_| options.second_model || !self.engine.can(options)) else {
            return self.first.transcribe(pcm, options);
        };
        let decoder = match second.decoder.take() {
            Some(decoder) => decoder,
            None => second.engine.decoder()?,
        };
        second.decoder.insert(decoder).transcribe(pcm, options)
    }

    fn can(&self, options: &Options) -> bool {
        self.engine.can(options) || self.second.as_ref().is_some_and(|second| second.engine.can(options))
    }
}
