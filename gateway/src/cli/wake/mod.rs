//! `lorgnette wake`: heads of wake phrases, made and tried on this machine.

mod enrol;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result, bail};
use audio::{
    frame::RATE_HZ,
    tts::Voice,
    wake::{
        Detector, Head, Models,
        train::{self, Plan, Progress, Tools, clips::Clip, judge, plot, stored, voices::Speaker},
    },
    wav,
};

use crate::{
    config::Config,
    speech::wake::{FOLDER, file_of},
};

/// Embeddings of real speech in that folder, which training uses if it is there; and of other real speech, which judges.
const REAL_SPEECH: &str = "real-speech.f16";
const OTHER_SPEECH: &str = "real-speech-held-out.f16";
/// Parts of a stage after which its progress is told.
const PARTS: usize = 10;

/// Make and try wake phrases that are recognised by their sound.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make the head of a phrase from synthetic speech, and judge it by voices that it has not heard.
    Train(Train),
    /// Make a personal head from a few recordings of the wearer.
    Enrol(enrol::Enrol),
    /// Say where a head hears its phrase in WAV files.
    Test(Test),
}

#[derive(clap::Args)]
struct Train {
    /// The words, such as "hey mentra".
    phrase: String,
    /// Voices with commas between them: hibari, flite-NAME, espeak-NAME. Default: all that are installed.
    #[arg(long, value_delimiter = ',')]
    voices: Vec<String>,
    /// Embeddings of real speech without the phrase. Default: real-speech.f16 beside the heads, if it is there.
    #[arg(long)]
    real: Option<PathBuf>,
    /// Where the head goes. Default: the folder `wake` in the models folder.
    #[arg(long, short)]
    out: Option<PathBuf>,
    /// Real speech that training must not hear, which counts false accepts. Default: real-speech-held-out.f16 there.
    #[arg(long)]
    real_held_out: Option<PathBuf>,
    /// Times that the phrase is said, and times that something else is; each is heard two or three times.
    #[arg(long, default_value_t = train::SAYINGS, value_parser = clap::value_parser!(u16).range(50..=20_000))]
    sayings: u16,
    /// Everything random follows from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Keep the head only where it reaches the aims: 98 % of the phrases of held-out voices, 92 % in noise 10 dB below them.
    #[arg(long)]
    only_good: bool,
}

#[derive(clap::Args)]
struct Test {
    /// The head: an ONNX file.
    head: PathBuf,
    /// 16-bit WAV files of any rate and number of channels.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Also print the highest score of each file.
    #[arg(long)]
    scores: bool,
}

pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<()> {
    let models = Models::load(&config.models_dir)?;
    match &arguments.command {
        Command::Train(arguments) => train(config, &models, arguments),
        Command::Enrol(arguments) => enrol::run(config, &models, arguments),
        Command::Test(arguments) => test(&models, arguments),
    }
}

/// A folder that is gone when it is no longer used.
struct Scratch(PathBuf);

impl Scratch {
    /// Beside this file, whose folder is made if it is not there.
    fn beside(file: &Path) -> Result<Self> {
        let folder = file.with_extension(format!("making-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left of a killed training is not in the way of another one.
        drop(fs::remove_dir_all(&self.0));
    }
}

fn train(config: &Config, models: &Arc<Models>, arguments: &Train) -> Result<()> {
    let folder = config.models_dir.join(FOLDER);
    let mut plan = Plan::of(&arguments.phrase);
    (plan.seed, plan.sayings) = (arguments.seed, arguments.sayings.into());
    if !arguments.voices.is_empty() {
        plan.speakers = arguments.voices.iter().map(|name| named(name)).collect::<Result<_>>()?;
    }
    let out = arguments.out.clone().unwrap_or_else(|| folder.join(file_of(&plan.phrase)));
    let real = speech(&folder, arguments.real.as_ref(), REAL_SPEECH)?;
    let held_out = speech(&folder, arguments.real_held_out.as_ref(), OTHER_SPEECH)?;
    if real.is_empty() {
        println!("No real speech is given (--real): the head will fire more often without its phrase.");
    }
    let scratch = Scratch::beside(&out)?;
    let voice = Voice::load(&config.models_dir.join("hibari"))?;
    let told = Mutex::new(("", 0));
    let progress = |progress| tell(&told, progress);
    let tools = Tools { models, voice: &voice, scratch: &scratch.0, progress: &progress };
    println!("{:?} in {} voices", plan.phrase, plan.speakers.len());
    let trained = train::train(&plan, &real, tools)?;
    if !arguments.only_good {
        write(&scratch, &out, &trained.file)?;
    }
    let point = trained.point;
    println!("\n{:?}: {} bytes, threshold {}", plan.phrase, trained.file.len(), point.threshold);
    println!(
        "The threshold was chosen by {} of {} clips in tuning voices, and {} false accepts in {:.0} minutes of real speech.",
        point.heard,
        point.of,
        point.false_accepts,
        point.seconds / 60.0
    );
    let real = judge::Real::of(&trained.head, &held_out)?;
    if held_out.is_empty() {
        println!("False accepts are not known: no other real speech is given (--real-held-out).");
    } else {
        let heard = real.false_accepts(point.threshold);
        println!(
            "{} false accepts in {:.0} minutes of real speech that was held out, before the text verifies: \
             below {:.1} an hour with 95 % confidence",
            heard.count,
            heard.seconds / 60.0,
            heard.per_hour_max()
        );
    }
    let recall = judge::recall(&trained.head, tools)?;
    tell_recall(&recall, point.threshold);
    if !recall.is_empty() && !held_out.is_empty() {
        let picture = out.with_extension("svg");
        fs::write(&picture, curves(&plan.phrase, &recall, &real, point.threshold))
            .with_context(|| format!("writing {}", picture.display()))?;
        println!("{}: recall against false accepts, by threshold", picture.display());
    }
    let missed = judge::missed(&recall, point.threshold);
    missed.iter().for_each(|aim| println!("aim missed: {aim}"));
    match (arguments.only_good, missed.is_empty()) {
        (true, false) => println!("{}: not kept", out.display()),
        (true, true) => {
            write(&scratch, &out, &trained.file)?;
            println!("{}: kept, all aims are reached", out.display());
        }
        (false, _) => println!("{}: kept", out.display()),
    }
    Ok(())
}

/// Embeddings of real speech: those of the file that is given, or those of this name beside the heads, if they are there.
fn speech(folder: &Path, given: Option<&PathBuf>, name: &str) -> Result<Vec<Clip>> {
    let file = given.cloned().or_else(|| Some(folder.join(name)).filter(|file| file.exists()));
    Ok(file.map(|file| stored::read(&file)).transpose()?.unwrap_or_default())
}

/// Writes a head, all of it or nothing.
fn write(scratch: &Scratch, out: &Path, file: &[u8]) -> Result<()> {
    let unfinished = scratch.0.join("head.onnx");
    fs::write(&unfinished, file).with_context(|| format!("writing {}", unfinished.display()))?;
    fs::rename(&unfinished, out).with_context(|| format!("writing {}", out.display()))
}

/// Recall against false accepts, a curve for each loudness of the noise.
fn curves(phrase: &str, recall: &[judge::Recall], real: &judge::Real, threshold: f32) -> String {
    let mut levels: Vec<Option<f32>> = recall.iter().map(|one| one.noise.map(|(_, db)| db)).collect();
    levels.dedup();
    levels.sort_by(|a, b| b.unwrap_or(f32::MAX).total_cmp(&a.unwrap_or(f32::MAX)));
    levels.dedup();
    let curve = |level: &Option<f32>| -> plot::Curve<'_> {
        let level = *level;
        let of = move |at: f32| {
            let its = recall.iter().filter(|one| one.noise.map(|(_, db)| db) == level);
            let (heard, of) = its.fold((0, 0), |sum, one| (sum.0 + one.heard(at), sum.1 + one.peaks.len()));
            heard as f64 / of.max(1) as f64
        };
        (level.map_or_else(|| "clean".to_owned(), |db| format!("{db} dB of noise")), Box::new(of))
    };
    let curves: Vec<plot::Curve<'_>> = levels.iter().map(curve).collect();
    let per_hour = |at: f32| {
        let heard = real.false_accepts(at);
        heard.count as f64 * 3_600.0 / heard.seconds.max(1.0)
    };
    plot::svg(&format!("\"{phrase}\", held-out voices and speech"), &curves, &per_hour, threshold)
}

fn named(name: &str) -> Result<Speaker> {
    let speaker = Speaker::named(name).filter(Speaker::is_installed);
    speaker
        .with_context(|| format!("no voice {name:?}: hibari, or flite-NAME and espeak-NAME where these are installed"))
}

/// Tells of each tenth of a stage.
fn tell(told: &Mutex<(&'static str, usize)>, Progress { stage, done, of }: Progress) {
    let part = done * PARTS / of.max(1);
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    if told.0 != stage || told.1 < part {
        *told = (stage, part);
        println!("{stage:12} [{}{}] {} %", "#".repeat(part), ".".repeat(PARTS - part.min(PARTS)), part * 100 / PARTS);
    }
}

/// Recall by voice, and by noise.
fn tell_recall(all: &[judge::Recall], threshold: f32) {
    if all.is_empty() {
        println!("Recall is not known: none of the held-out voices is installed (flite, espeak-ng, festival).");
        return;
    }
    println!("\nRecall on synthetic voices, requests and noises that were held out:");
    let mut by_voice: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    let mut by_noise: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    let add = |sum: &mut [usize; 2], of: &judge::Recall| *sum = [sum[0] + of.heard(threshold), sum[1] + of.peaks.len()];
    for one in all {
        let noise = one.noise.map_or_else(|| "clean".to_owned(), |(kind, db)| format!("{kind} noise, {db:2} dB"));
        add(by_voice.entry(one.voice).or_default(), one);
        add(by_noise.entry(noise).or_default(), one);
    }
    let names =
        by_noise.iter().map(|(name, sum)| (name.as_str(), sum)).chain(by_voice.iter().map(|(name, sum)| (*name, sum)));
    for (name, [heard, of]) in names {
        println!("{name:28} {heard:4} of {of:4}  {:5.1} %", *heard as f64 * 100.0 / (*of).max(1) as f64);
    }
}

fn test(models: &Arc<Models>, arguments: &Test) -> Result<()> {
    let head = Head::load(&arguments.head)?;
    let settings = head.settings().clone();
    println!("{:?}: {} steps in a row with a score of {}", settings.phrase, settings.patience, settings.threshold);
    let mut all = judge::FalseAccepts::default();
    for file in &arguments.files {
        let pcm = wav::read(file, RATE_HZ)?;
        let mut detector = Detector::new(models.clone(), [head.clone()].into());
        let (mut found, mut best) = (Vec::new(), 0.0_f32);
        // Half a second of silence behind the sound: a phrase at its end is heard after it.
        for piece in pcm.chunks(RATE_HZ as usize).chain([&[0; RATE_HZ as usize / 2][..]]) {
            detector.push(piece, &mut found)?;
        }
        if arguments.scores {
            best = best_score(models, &head, &pcm)?;
        }
        let seconds = |samples: u64| samples as f64 / f64::from(RATE_HZ);
        let places: Vec<String> =
            found.iter().map(|detection| format!("{:.2} s ({:.2})", seconds(detection.end), detection.score)).collect();
        let heard = if places.is_empty() { "not heard".to_owned() } else { format!("heard at {}", places.join(", ")) };
        let score = if arguments.scores { format!("; highest score {best:.3}") } else { String::new() };
        println!("{}: {heard}{score}", file.display());
        all.count += found.len();
        all.seconds += seconds(pcm.len() as u64);
    }
    if all.seconds <= 0.0 {
        bail!("the files hold no sound");
    }
    println!(
        "{} times in {:.1} minutes. If none of that is the phrase: below {:.1} false accepts an hour with 95 % confidence",
        all.count,
        all.seconds / 60.0,
        all.per_hour_max()
    );
    Ok(())
}

fn best_score(models: &Arc<Models>, head: &Head, pcm: &[i16]) -> Result<f32> {
    let mut stream = audio::wake::Stream::new(models.clone());
    let mut best = 0.0_f32;
    for step in pcm.as_chunks().0 {
        best = best.max(head.score(stream.push(step)?)?);
    }
    Ok(best)
}
