//! Two models on one recognition thread: the first for everything, the second for second passes.

use super::{Decoder, Engine, Error, Options, Transcribe, Transcription};

/// Decodes with the first model, or with the second where [`Options::second_model`] asks for it and there is one.
pub struct Pair {
    first: Decoder,
    second: Option<Second>,
}

struct Second {
    engine: Engine,
    /// Made when it is first needed: most threads never need one, and it takes more memory than the first.
    decoder: Option<Decoder>,
}

impl Pair {
    /// A decoder of `first` now, one of `second` when it is first needed.
    ///
    /// # Errors
    /// No state can be made.
    pub fn new(first: &Engine, second: Option<&Engine>) -> Result<Self, Error> {
        let second = second.map(|engine| Second { engine: engine.clone(), decoder: None });
        Ok(Self { first: first.decoder()?, second })
    }

    /// Whether the second model was needed so far.
    pub fn has_second(&self) -> bool {
        self.second.as_ref().is_some_and(|second| second.decoder.is_some())
    }
}

impl Transcribe for Pair {
    fn transcribe(&mut self, pcm: &[i16], options: &Options) -> Result<Transcription, Error> {
        let Some(second) = self.second.as_mut().filter(|_| options.second_model) else {
            return self.first.transcribe(pcm, options);
        };
        let decoder = match second.decoder.take() {
            Some(decoder) => decoder,
            None => second.engine.decoder()?,
        };
        second.decoder.insert(decoder).transcribe(pcm, options)
    }
}
