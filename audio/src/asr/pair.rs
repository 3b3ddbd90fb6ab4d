//! Two sets of weights on one recognition thread: the usual ones, and larger ones for a second look.

use super::{Decoder, Engine, Error, Options, Transcribe, Transcription};

/// Decodes with the usual weights, or with the larger ones where that is asked for and there are any.
pub struct Pair {
    usual: Decoder,
    larger: Option<Larger>,
}

struct Larger {
    engine: Engine,
    /// Made when it is first needed: most threads never need one, and its memory is the larger, too.
    decoder: Option<Decoder>,
}

impl Pair {
    /// A decoder of `usual`, and soon one of `larger`.
    ///
    /// # Errors
    /// No state can be made.
    pub fn new(usual: &Engine, larger: Option<&Engine>) -> Result<Self, Error> {
        let larger = larger.map(|engine| Larger { engine: engine.clone(), decoder: None });
        Ok(Self { usual: usual.decoder()?, larger })
    }

    /// Whether the larger decoder was needed so far.
    pub fn has_larger(&self) -> bool {
        self.larger.as_ref().is_some_and(|larger| larger.decoder.is_some())
    }
}

impl Transcribe for Pair {
    fn transcribe(&mut self, pcm: &[i16], options: &Options) -> Result<Transcription, Error> {
        let Some(larger) = self.larger.as_mut().filter(|_| options.larger) else {
            return self.usual.transcribe(pcm, options);
        };
        let decoder = match larger.decoder.take() {
            Some(decoder) => decoder,
            None => larger.engine.decoder()?,
        };
        larger.decoder.insert(decoder).transcribe(pcm, options)
    }
}
