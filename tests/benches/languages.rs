//! Word error rate in other languages, and translation into English, on telephone prompts.
//!
//! `cargo xtask bench languages [--clips N] [--seed N] [--only es,fr,it,ru] [--prompted] [--show]`
//!
//! Prompts of the Debian packages `asterisk-core-sounds-{es,fr,it,ru}`, one professional speaker each, decoded by
//! `whisper-base` as the gateway does, once told the language and once detecting it. The reference of a translation is the
//! English prompt of the same name. Word error rate: lower case, without punctuation and accents, number words as they
//! are written. chrF: M. Popović, "chrF: character n-gram F-score for automatic MT evaluation" (2015), n up to 6, beta 2,
//! without white space, over all texts.
//!
//! "breaks off": percent of the clips that Whisper takes for speech that breaks off, whole and cut off in the middle. Some prompts are
//! no whole sentences ("to call back, press"). With `--prompted` only it is asked for, as the gateway does.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use audio::asr::wer::{Wer, wer};
use audio::asr::{self, Decoder, Engine, Language, Options, Spoken};
use common::argument;
use common::clips::{self, CLIP_HZ, Clip};
use firmware_sim::random::Random;
use gateway_core::vocab::accents::folded;

/// Clips of each language.
const CLIPS: usize = 40;
/// How much of a clip is left where it is cut off, and the silence behind it, in samples.
const CUT_PART: f64 = 0.55;
const SILENCE: usize = CLIP_HZ as usize / 10;
/// Least probability of an ellipsis at which the core waits for more.
const BREAKS_OFF_MIN: f32 = 0.25;
/// Longest n-gram of chrF, and the weight of recall over precision.
const ORDER: usize = 6;
const BETA: f64 = 2.0;

/// A language, and the folder of its speaker.
const LANGUAGES: [(&str, &str); 4] =
    [("es", "es_MX_f_Allison"), ("fr", "fr_CA_f_June"), ("it", "it_IT_m_Carlo"), ("ru", "ru_RU_f_IvrvoiceRU")];

fn main() -> Result<()> {
    let count = argument("--clips").map_or(Ok(CLIPS), |count| count.parse())?;
    let seed: u64 = argument("--seed").map_or(Ok(1), |seed| seed.parse())?;
    let only = argument("--only");
    let prompted = std::env::args().any(|argument| argument == "--prompted");
    let show = std::env::args().any(|argument| argument == "--show");
    let model = audio::models::default_dir().join("whisper-base.bin");
    ensure!(model.exists(), "{} is missing: run `lorgnette models fetch whisper-base`", model.display());
    let mut decoder = Engine::load(&model, asr::Config::default())?.decoder()?;
    let wake_phrases: Arc<[String]> =
        if prompted { ["hey mentra", "ok mentra", "mentra"].map(str::to_owned).into() } else { [].into() };
    common::calibrate("before")?;
    let english: BTreeMap<String, String> = clips::texts("en")?.into_iter().collect();
    println!(
        "language  clips  seconds  word error rate  the same, detected  right language  chrF  ms per clip  breaks off, cut off"
    );
    for (code, voice) in LANGUAGES.into_iter().filter(|(code, _)| only.as_ref().is_none_or(|only| only.contains(code)))
    {
        let mut clips = clips::prompts_of(code, voice)?;
        clips.retain(|clip| english.contains_key(&clip.name));
        let clips = sample(clips, count, seed);
        let row = judge(&mut decoder, code, &clips, (&english, &wake_phrases, show))?;
        println!(
            "{code:8}  {:5}  {:7.0}  {:13.1} %  {:16.1} %  {:12.1} %  {:4.1}  {:11.0}  {:10.0}, {:7.0}",
            clips.len(),
            clips.iter().map(Clip::seconds).sum::<f64>(),
            row.told.rate() * 100.0,
            row.detected.rate() * 100.0,
            row.right as f64 * 100.0 / clips.len().max(1) as f64,
            row.chrf.score() * 100.0,
            row.decode_ms / clips.len().max(1) as f64,
            row.break_off as f64 * 100.0 / clips.len().max(1) as f64,
            row.cut_break_off as f64 * 100.0 / clips.len().max(1) as f64,
        );
    }
    common::calibrate("after")
}

#[derive(Default)]
struct Row {
    told: Wer,
    detected: Wer,
    /// Clips whose language was detected.
    right: usize,
    chrf: Chrf,
    /// Of the decodes that were told the language.
    decode_ms: f64,
    /// Clips that are taken for speech that breaks off, as they are and cut off in the middle.
    break_off: usize,
    cut_break_off: usize,
}

fn judge(
    decoder: &mut Decoder,
    code: &str,
    clips: &[Clip],
    (english, wake_phrases, show): (&BTreeMap<String, String>, &Arc<[String]>, bool),
) -> Result<Row> {
    let language = Language::of(code).context("a language of Whisper")?;
    let mut row = Row::default();
    for clip in clips {
        let options =
            Options { spoken: Some(Spoken::Is(language)), wake_phrases: wake_phrases.clone(), ..Options::default() };
        let told = decoder.transcribe(clip.pcm.as_slice(), &options)?;
        let mut beginning = clip.pcm.get(..(clip.pcm.len() as f64 * CUT_PART) as usize).unwrap_or_default().to_vec();
        beginning.resize(beginning.len() + SILENCE, 0);
        let cut_off = decoder.transcribe(beginning.as_slice(), &options)?;
        let detecting = Options { spoken: Some(Spoken::Detected), ..options.clone() };
        let detected = decoder.transcribe(clip.pcm.as_slice(), &detecting)?;
        let translating = Options { translate: true, wake_phrases: [].into(), ..detecting };
        let translated = decoder.transcribe(clip.pcm.as_slice(), &translating)?;
        let reference = folded(&clip.text);
        row.told += wer(&reference, &folded(&told.text));
        row.detected += wer(&reference, &folded(&detected.text));
        row.right += usize::from(detected.language == Some(language));
        row.break_off += usize::from(told.breaks_off >= BREAKS_OFF_MIN);
        row.cut_break_off += usize::from(cut_off.breaks_off >= BREAKS_OFF_MIN);
        row.decode_ms += told.decode_us as f64 / 1e3;
        row.chrf.add(&english[&clip.name], &translated.text);
        if show {
            println!("  {}: {}\n    told {}\n    any  {}", clip.name, clip.text, told.text, detected.text);
            println!("    en   {}\n    said {}", english[&clip.name], translated.text);
        }
    }
    Ok(row)
}

/// Some of these, by seed, in a fixed order.
fn sample(mut clips: Vec<Clip>, count: usize, seed: u64) -> Vec<Clip> {
    clips.sort_by(|a, b| a.name.cmp(&b.name));
    let mut random = Random::new(seed);
    while clips.len() > count {
        let index = random.below(clips.len() as u64) as usize;
        clips.remove(index);
    }
    clips
}

/// Counts of character n-grams, by their length: matched, of the hypothesis, of the reference.
#[derive(Default)]
struct Chrf([(usize, usize, usize); ORDER]);

impl Chrf {
    fn add(&mut self, reference: &str, hypothesis: &str) {
        let letters =
            |text: &str| folded(text).chars().filter(|letter| letter.is_alphanumeric()).collect::<Vec<char>>();
        let (reference, hypothesis) = (letters(reference), letters(hypothesis));
        for (order, counts) in (1..).zip(&mut self.0) {
            let mut known: BTreeMap<&[char], usize> = BTreeMap::new();
            for gram in reference.windows(order) {
                *known.entry(gram).or_default() += 1;
            }
            counts.1 += hypothesis.windows(order).count();
            counts.2 += reference.windows(order).count();
            for gram in hypothesis.windows(order) {
                if let Some(left) = known.get_mut(gram).filter(|left| **left > 0) {
                    *left -= 1;
                    counts.0 += 1;
                }
            }
        }
    }

    /// From 0 to 1.
    fn score(&self) -> f64 {
        let share = |part: usize, whole: usize| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let mean = |rate: fn(&(usize, usize, usize)) -> (usize, usize)| {
            self.0.iter().map(|counts| share(rate(counts).0, rate(counts).1)).sum::<f64>() / ORDER as f64
        };
        let (precision, recall) = (mean(|counts| (counts.0, counts.1)), mean(|counts| (counts.0, counts.2)));
        let weight = BETA * BETA;
        if precision + recall == 0.0 {
            0.0
        } else {
            (1.0 + weight) * precision * recall / (weight * precision + recall)
        }
    }
}
