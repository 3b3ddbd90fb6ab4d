//! One Whisper state: sound in, text out.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use whisper_rs::{FullParams, SamplingStrategy, WhisperError, WhisperState};

use super::{
    Engine, Error, Heard, Language, Options, Pcm, SAMPLE_RATE_HZ, Spoken, Transcription, context, filter,
    prompt::{self, Tails},
    watch::{self, Watched},
};

/// The shortest time that whisper.cpp decodes; of no more than this it decodes nothing.
const DECODED_MS_MIN: i32 = 100;
/// Most tokens of prompt: the last ones of a longer one. Each costs decoding time; Whisper itself accepts 223.
const PROMPT_TOKENS_MAX: usize = 220;
/// Step between the temperatures that whisper.cpp tries when a decoding loops or is improbable.
const TEMPERATURE_STEP: f32 = 0.2;

/// A state of the shared model. Used by one thread at a time; nothing of one utterance influences
/// the next.
pub struct Decoder {
    engine: Engine,
    state: WhisperState,
    /// By language, each made once: whisper-rs leaks the name of the language.
    parameters: Vec<(Language, FullParams<'static, 'static>)>,
    prompt: CachedPrompt,
}

#[derive(Default)]
struct CachedPrompt {
    /// The language of the prompt, which has sentences.
    language: Option<Language>,
    tails: Tails,
    phrases: Arc<[String]>,
    vocabulary: Arc<[String]>,
    tokens: Vec<i32>,
}

/// How a pass is decoded.
#[derive(Clone, Copy)]
struct How<'a> {
    options: &'a Options,
    language: Language,
    tails: Tails,
}

impl How<'_> {
    /// Whether one of the first `count` prompted sentences is echoed in a text.
    fn is_echoed(self, text: &str, count: usize) -> bool {
        prompt::sentences_of(self.language).is_some_and(|set| self.tails.is_echoed(text, count, set))
    }
}

/// One pass of Whisper.
struct Pass {
    text: String,
    mean_log_probability: f32,
    last_word_log_probability: f32,
    breaks_off: f32,
    capped: bool,
}

impl Engine {
    /// A new state: 21 MB, growing to 44 MB with a small context and 125 MB after a full one.
    pub fn decoder(&self) -> Result<Decoder, Error> {
        let state = self.shared.context.create_state().map_err(inference)?;
        let engine = self.clone();
        Ok(Decoder { engine, state, parameters: Vec::new(), prompt: CachedPrompt::default() })
    }
}

impl Decoder {
    /// Decodes one utterance of at most 30 s.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::EnglishOnly`], [`Error::Cancelled`] through `options.abort`, [`Error::Inference`].
    pub fn transcribe<'a>(&mut self, pcm: impl Into<Pcm<'a>>, options: &Options) -> Result<Transcription, Error> {
        let pcm = pcm.into();
        let audio_us = pcm.len() as u64 * 1_000_000 / u64::from(SAMPLE_RATE_HZ);
        if pcm.len() > context::SAMPLES_MAX {
            return Err(Error::TooLong { seconds: audio_us.div_ceil(1_000_000) });
        }
        if !self.can(options) {
            return Err(Error::EnglishOnly);
        }
        if pcm.len() < context::SAMPLES_MIN {
            return Ok(Transcription::without_text(Heard::TooShort, audio_us));
        }
        let samples = pcm.to_f32();
        if filter::is_silent(&samples) {
            return Ok(Transcription::without_text(Heard::Silence, audio_us));
        }
        let meter = self.engine.meter();
        meter.measure_unless(|error| matches!(error, Error::Cancelled), || self.decode(&samples, audio_us, options))
    }

    /// Whether its weights know how to decode like that.
    pub(super) fn can(&self, options: &Options) -> bool {
        self.engine.can(options)
    }

    fn decode(&mut self, samples: &[f32], audio_us: u64, options: &Options) -> Result<Transcription, Error> {
        #[expect(clippy::disallowed_methods, reason = "the cost of a decode is measured, nothing is decided by it")]
        let start = Instant::now();
        let duration_ms = audio_us / 1_000;
        let language = match options.spoken.unwrap_or(self.engine.shared.spoken) {
            Spoken::Is(language) => language,
            Spoken::Detected => self.detect(samples, options.context.positions(duration_ms), &options.among)?,
        };
        let with = |tails| How { options, language, tails };
        let (mut pass, mut positions, mut retried) = self.behind(samples, duration_ms, with(Tails::Usual))?;
        let sentences = self.prompt.wake_sentences(options);
        if with(Tails::Usual).is_echoed(&pass.text, sentences) {
            (pass, positions, retried) = self.behind(samples, duration_ms, with(Tails::Other))?;
            if let Some(set) = prompt::sentences_of(language) {
                let before = pass.text.len();
                Tails::Other.cut_echo(&mut pass.text, sentences, set);
                pass.breaks_off = if pass.text.len() < before { 0.0 } else { pass.breaks_off };
            }
        }
        let no_speech_probability = self.no_speech_probability()?;
        let noise = filter::is_no_speech(no_speech_probability);
        let is_speech = !noise && pass.text.chars().any(char::is_alphanumeric);
        Ok(Transcription {
            text: if is_speech { pass.text } else { String::new() },
            heard: if is_speech { Heard::Speech } else { Heard::NoSpeech },
            no_speech_probability,
            mean_log_probability: pass.mean_log_probability,
            last_word_log_probability: pass.last_word_log_probability,
            breaks_off: pass.breaks_off,
            audio_us,
            decode_us: u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX),
            context: positions.unsigned_abs(),
            retried,
            language: Some(language),
        })
    }

    /// Decodes with one of the prompts, and once more at full context if that loops. Returns the pass, its context and
    /// whether it was repeated. A loop that is known to come from the prompt needs no full context.
    fn behind(&mut self, samples: &[f32], duration_ms: u64, how: How<'_>) -> Result<(Pass, i32, bool), Error> {
        let options = how.options;
        let positions = options.context.positions(duration_ms);
        let mut pass = self.pass(samples, positions, duration_ms, how)?;
        if let Some(first) = prompt::first_of_loop(&pass.text, self.prompt.wake_phrases(options), pass.capped) {
            pass.text.truncate(first.len());
            pass.breaks_off = 0.0;
            return Ok((pass, positions, false));
        }
        let looped = pass.capped || filter::is_repetition(&pass.text);
        let echoes = || how.is_echoed(&pass.text, self.prompt.wake_sentences(options));
        if !looped || context::is_full(positions) || echoes() {
            return Ok((pass, positions, false));
        }
        let full = context::full();
        Ok((self.pass(samples, full, duration_ms, how)?, full, true))
    }

    fn pass(&mut self, samples: &[f32], positions: i32, duration_ms: u64, how: How<'_>) -> Result<Pass, Error> {
        let How { options, language, .. } = how;
        if !options.without_prompt {
            self.prompt.update(&self.engine, how);
        }
        let is_english = language == Language::ENGLISH || options.translate;
        let tokens_max = context::tokens_max(duration_ms, is_english);
        let mut parameters: FullParams<'_, '_> = self.parameters_for(language);
        parameters.set_translate(options.translate);
        parameters.set_audio_ctx(positions);
        parameters.set_max_tokens(tokens_max);
        if !options.without_prompt && !self.prompt.tokens.is_empty() {
            parameters.set_tokens(&self.prompt.tokens);
        }
        let flag = options.abort.as_deref();
        let shared = &self.engine.shared;
        let mut ellipsis = Watched::new(&shared.ellipses, shared.vocabulary);
        let done = watch::full(&mut self.state, parameters, samples, flag, &mut ellipsis);
        if flag.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(Error::Cancelled);
        }
        done.map_err(inference)?;
        Ok(self.read(tokens_max, &ellipsis))
    }

    /// The language of the sound, by Whisper: the likeliest of these, or of all. The encoder runs once for it, with this context.
    ///
    /// whisper.cpp detects with the context of the decode before, which may have been of a shorter utterance, and sets another one
    /// only in a decode. Hence one of the shortest time that it takes: it reads all sound, sets the context, and decodes nothing.
    fn detect(&mut self, samples: &[f32], positions: i32, among: &[Language]) -> Result<Language, Error> {
        let mut parameters = self.parameters_for(Language::ENGLISH);
        parameters.set_audio_ctx(positions);
        parameters.set_duration_ms(DECODED_MS_MIN);
        self.state.full(parameters, samples).map_err(inference)?;
        let threads = usize::from(self.engine.shared.config.threads.max(1));
        let (id, probabilities) = self.state.lang_detect(0, threads).map_err(inference)?;
        let detected = Language::likeliest(among, &probabilities).or_else(|| Language::of_id(id));
        Ok(detected.unwrap_or(Language::ENGLISH))
    }

    fn parameters_for(&mut self, language: Language) -> FullParams<'static, 'static> {
        if let Some((_, known)) = self.parameters.iter().find(|(of, _)| *of == language) {
            return known.clone();
        }
        let new = parameters(&self.engine, language);
        self.parameters.push((language, new.clone()));
        new
    }

    /// Probability of Whisper's no-speech token for the sound of the last pass: one step of the decoder on the existing
    /// encoding, without a prompt.
    ///
    /// whisper.cpp computes its own value after the tokens it decodes from; with a prompt, or without timestamps, it is
    /// near 0 even for pure noise.
    fn no_speech_probability(&mut self) -> Result<f32, Error> {
        let context = &self.engine.shared.context;
        let (start, no_speech) = (context.token_sot(), context.token_nosp());
        self.state.decode(&[start], 0, 1).map_err(inference)?;
        let logits = self.state.get_logits().map_err(inference)?;
        Ok(usize::try_from(no_speech).map_or(1.0, |index| filter::probability_of(index, logits)))
    }

    /// The result of the last pass.
    fn read(&self, tokens_max: i32, ellipsis: &Watched<'_>) -> Pass {
        let shared = &self.engine.shared;
        let end_of_text = shared.context.token_eot();
        let mut text = Vec::new();
        let mut log_probabilities = Vec::new();
        let mut last_word = 0.0;
        let mut behind_last_word = 0;
        let mut tokens = 0;
        let mut ended = true;
        for segment in self.state.as_iter() {
            // Bytes, because a token can end within a character.
            text.extend_from_slice(segment.to_bytes().unwrap_or_default());
            for index in 0..segment.n_tokens() {
                let Some(token) = segment.get_token(index) else {
                    continue;
                };
                let data = token.token_data();
                log_probabilities.push(data.plog);
                ended = data.id == end_of_text;
                let bytes = token.to_bytes().unwrap_or_default();
                // Punctuation has tokens of its own, and those from the end of the text on are no text.
                let is_word = bytes.iter().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
                let is_ellipsis = || usize::try_from(data.id).is_ok_and(|id| shared.ellipses.contains(&id));
                if data.id < end_of_text && is_word && !is_ellipsis() {
                    last_word = if bytes.starts_with(b" ") { data.plog } else { last_word + data.plog };
                    behind_last_word = log_probabilities.len();
                }
                tokens += 1;
            }
        }
        let mean = log_probabilities.iter().sum::<f32>() / log_probabilities.len().max(1) as f32;
        Pass {
            text: String::from_utf8_lossy(&text).trim().to_owned(),
            mean_log_probability: if mean.is_finite() { mean } else { f32::MIN },
            last_word_log_probability: if last_word.is_finite() { last_word } else { f32::MIN },
            breaks_off: ellipsis.at(behind_last_word),
            capped: !ended && tokens >= tokens_max,
        }
    }
}

impl CachedPrompt {
    /// The wake phrases that were prompted.
    fn wake_phrases(&self, options: &Options) -> &[String] {
        let prompted = !options.without_prompt && !self.tokens.is_empty();
        if prompted { &self.phrases } else { &[] }
    }

    /// How many sentences with a wake phrase were prompted.
    fn wake_sentences(&self, options: &Options) -> usize {
        prompt::sentences(self.wake_phrases(options))
    }

    fn update(&mut self, engine: &Engine, How { options, language, tails }: How<'_>) {
        let (phrases, vocabulary) = (&options.wake_phrases, &options.vocabulary);
        let same = |a: &Arc<[String]>, b: &Arc<[String]>| Arc::ptr_eq(a, b) || a == b;
        if same(&self.phrases, phrases)
            && same(&self.vocabulary, vocabulary)
            && (self.language, self.tails) == (Some(language), tails)
        {
            return;
        }
        let set = prompt::sentences_of(language).filter(|_| !options.translate);
        let text = set.map_or_else(String::new, |set| prompt::prompt_with(vocabulary, phrases, (tails, set)));
        // A leading space, as in running text: Whisper's word tokens begin with one.
        let text = if text.is_empty() { text } else { format!(" {text}") };
        // A token has a byte at least. For too small a buffer whisper-rs 0.16 takes the negative length that whisper.cpp returns
        // for the length of a vector.
        let mut tokens = engine.shared.context.tokenize(&text, text.len() + 1).unwrap_or_default();
        tokens.drain(..tokens.len().saturating_sub(PROMPT_TOKENS_MAX));
        self.tokens = tokens;
        (self.language, self.tails) = (Some(language), tails);
        self.phrases = phrases.clone();
        self.vocabulary = vocabulary.clone();
    }
}

fn parameters(engine: &Engine, language: Language) -> FullParams<'static, 'static> {
    // With more candidates per temperature whisper.cpp replaces the state's cache; if that fails, it frees the state
    // that whisper-rs still uses.
    let mut parameters = FullParams::new(SamplingStrategy::Greedy { best_of: 1 });
    parameters.set_n_threads(i32::from(engine.shared.config.threads.max(1)));
    // Leaks a few bytes, once per decoder and language.
    parameters.set_language(Some(language.code()));
    parameters.set_no_context(true);
    parameters.set_no_timestamps(true);
    parameters.set_single_segment(true);
    parameters.set_temperature(0.0);
    parameters.set_temperature_inc(TEMPERATURE_STEP);
    // Noise is judged by `no_speech_probability` below; whisper.cpp's own value is that of another token.
    parameters.set_no_speech_thold(1.0);
    parameters.set_suppress_blank(true);
    parameters.set_suppress_nst(true);
    parameters.set_print_special(false);
    parameters.set_print_progress(false);
    parameters.set_print_realtime(false);
    parameters.set_print_timestamps(false);
    parameters
}

fn inference(error: WhisperError) -> Error {
    Error::Inference(error.to_string())
}
