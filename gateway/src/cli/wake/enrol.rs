//! `lorgnette wake enrol`: a head that has learned the voice of its wearer.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use anyhow::{Context as _, Result, bail};
use audio::{
    frame::RATE_HZ,
    tts::Voice,
    vad::silero,
    wake::{
        Head, Models,
        head::BYTES_MAX,
        train::{
            Plan, Tools,
            enrol::{self, Enrolled, Enrolment, SAYINGS},
            judge,
            recording::Recording,
        },
    },
    wav,
};

use super::{FOLDER, OTHER_SPEECH, REAL_SPEECH, Scratch, speech, tell, write};
use crate::config::Config;

#[derive(clap::Args)]
pub(super) struct Enrol {
    /// The words, such as "hey mentra".
    phrase: String,
    /// Three to ten recordings of the wearer who says them: 16-bit WAV files, the phrase alone.
    #[arg(required = true)]
    recordings: Vec<PathBuf>,
    /// The head to begin with. Default: the phrase's own in the folder `wake` of the models folder.
    #[arg(long)]
    from: Option<PathBuf>,
    /// A recording of other words that the wearer says, which are not to be taken for the phrase. May be given again.
    #[arg(long, value_name = "REC")]
    not: Vec<PathBuf>,
    /// Embeddings of real speech without the phrase. Default: real-speech.f16 beside the heads, if it is there.
    #[arg(long)]
    real: Option<PathBuf>,
    /// Where the head goes. Default: PHRASE-personal.onnx in the folder `wake`, which goes before PHRASE.onnx.
    #[arg(long, short)]
    out: Option<PathBuf>,
    /// Replace a head that is there.
    #[arg(long)]
    force: bool,
    /// Everything random follows from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(super) fn run(config: &Config, models: &Arc<Models>, arguments: &Enrol) -> Result<()> {
    let folder = config.models_dir.join(FOLDER);
    let mut plan = Plan::of(&arguments.phrase);
    (plan.seed, plan.sayings) = (arguments.seed, SAYINGS);
    let name = plan.phrase.replace(' ', "_");
    let out = arguments.out.clone().unwrap_or_else(|| folder.join(format!("{name}-personal.onnx")));
    if out.exists() && !arguments.force {
        bail!("{} exists; name another one with --out, or replace it with --force", out.display());
    }
    let from = arguments.from.clone().unwrap_or_else(|| folder.join(format!("{name}.onnx")));
    let size = fs::metadata(&from).map(|file| file.len());
    let size =
        size.with_context(|| format!("{}: `lorgnette wake train` makes a head to begin with", from.display()))?;
    if size > BYTES_MAX {
        bail!("{} has more than {BYTES_MAX} bytes: it is no head", from.display());
    }
    let base = fs::read(&from).with_context(|| format!("reading {}", from.display()))?;
    let silero = silero::Model::load(&config.models_dir.join(silero::FILE_NAME))?;
    let (phrases, others) = (recordings(&arguments.recordings, &silero)?, recordings(&arguments.not, &silero)?);
    let real = speech(&folder, arguments.real.as_ref(), REAL_SPEECH)?;
    if real.is_empty() {
        println!("No real speech is given (--real): the threshold is a guess, and the head may fire more often.");
    }
    let scratch = Scratch::beside(&out)?;
    let voice = Voice::load(&config.models_dir.join("hibari"))?;
    let told = Mutex::new(("", 0));
    let progress = |progress| tell(&told, progress);
    let tools = Tools { models, voice: &voice, scratch: &scratch.0, progress: &progress };
    println!("{:?} in {} recordings, from {}", plan.phrase, phrases.len(), from.display());
    let enrolment = Enrolment { plan: &plan, base: &base, phrases: &phrases, others: &others, real: &real };
    let enrolled = enrol::enrol(&enrolment, tools)?;
    write(&scratch, &out, &enrolled.file)?;
    tell_all(arguments, &out, &enrolled);
    let held_out = speech(&folder, None, OTHER_SPEECH)?;
    if !held_out.is_empty() {
        let fires = |head: &Head| -> Result<judge::FalseAccepts> {
            Ok(judge::Real::of(head, &held_out)?.false_accepts(head.settings().threshold))
        };
        let (after, before) = (fires(&enrolled.head)?, fires(&*Head::load(&from)?)?);
        println!(
            "{} false accepts in {:.0} minutes of real speech that was held out (before: {}), before the text verifies: \
             below {:.1} an hour with 95 % confidence",
            after.count,
            after.seconds / 60.0,
            before.count,
            after.per_hour_max()
        );
    }
    Ok(())
}

/// Reads and checks recordings; all that are wrong are named at once.
fn recordings(files: &[PathBuf], silero: &Arc<silero::Model>) -> Result<Vec<Recording>> {
    let (mut good, mut wrong) = (Vec::new(), Vec::new());
    for file in files {
        match Recording::checked(wav::read(file, RATE_HZ)?, silero) {
            Ok(recording) => good.push(recording),
            Err(reason) => wrong.push(format!("{}: {reason}", file.display())),
        }
    }
    if wrong.is_empty() { Ok(good) } else { bail!("{}", wrong.join("\n")) }
}

fn tell_all(arguments: &Enrol, out: &Path, enrolled: &Enrolled) {
    let point = enrolled.point;
    let count = |heard: &[bool]| heard.iter().filter(|heard| **heard).count();
    println!("\n{}: {} bytes, threshold {}", out.display(), enrolled.file.len(), point.threshold);
    println!(
        "Heard {} of {} recordings that it was not trained with (before: {}).",
        count(&enrolled.heard),
        enrolled.heard.len(),
        count(&enrolled.heard_before)
    );
    for (file, heard) in arguments.recordings.iter().zip(&enrolled.heard) {
        if !heard {
            println!(
                "{}: not heard by a head of the others; listen to it, and record it again if it is odd",
                file.display()
            );
        }
    }
    println!(
        "The threshold was chosen by {} of {} variations of them, and {} false accepts in {:.0} minutes of real speech \
         (before: {}).",
        point.heard,
        point.of,
        point.false_accepts,
        point.seconds / 60.0,
        enrolled.false_before
    );
}
