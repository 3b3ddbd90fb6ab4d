//! `lorgnette-sim script`.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use anyhow::{Context as _, Result};
use audio::wav;
use firmware_sim::Glasses;
use firmware_sim::microphone::{CLIP_HZ, Clip};
use firmware_sim::network::{Conditions, Profile};
use firmware_sim::script::{self, Runner, STEPS, Saying, Voice};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};

use super::options::Common;
use super::{pair, say, show};

/// Longest script in bytes.
const SCRIPT_BYTES_MAX: u64 = 1024 * 1024;

/// Notes that are not in the list of steps.
const REMARKS: &str = "\
`wait-for` and `expect` look at everything since the last thing that the wearer did. Without `within` a step waits
10 s. `idle` comes when the time for a follow-up after an answer is over (`hearing.follow_up_ms`, by default 30 s):
`wait-for idle within 45s`. `expect silence` fails where anything sounds from now on for so long, also the rest of a
speech that began before; what stops one takes a moment, which a `wait` in front gives it. `echo`,
`room`, `noise`, `half-duplex` and `microphone` are as the options of the same names. `#` begins a remark.
From the standard input (`-`) each step is run as soon as it is there, and one that fails does not end the rest.";

/// Run a script of steps: what the wearer does, and what must be seen.
#[derive(clap::Args)]
#[command(after_help = format!("Steps, one a line:\n{STEPS}\n{REMARKS}"))]
pub(super) struct Arguments {
    /// The script; `-` is the standard input, and the glasses stay for as long as it is open.
    file: PathBuf,
}

struct Speaking {
    folder: PathBuf,
}

impl Voice for Speaking {
    fn clip<'a>(&'a self, saying: &'a Saying) -> Pin<Box<dyn Future<Output = Result<Clip, String>> + Send + 'a>> {
        Box::pin(async move {
            match saying {
                Saying::Text(text) => say::spoken(text).await.map_err(|error| format!("{error:#}")),
                Saying::File(file) => {
                    let pcm = wav::read(&self.folder.join(file), CLIP_HZ).map_err(|error| error.to_string())?;
                    Ok(Clip::new(&file.display().to_string(), &pcm, None))
                }
            }
        })
    }
}

pub(super) async fn run(common: &Common, arguments: &Arguments) -> Result<()> {
    let is_typed = arguments.file == Path::new("-");
    let steps = if is_typed { Vec::new() } else { read(&arguments.file)? };
    let name = if is_typed { "standard input".into() } else { arguments.file.display().to_string() };
    let voice = Speaking { folder: arguments.file.parent().unwrap_or(Path::new("")).to_path_buf() };
    let mut options = common.options()?;
    // A step may change it.
    options.network.get_or_insert_with(|| Profile::steady(Conditions::default()));
    let glasses = pair::connect(options, common).await?;
    let mut printer = say::Printer::new(common);
    let result = {
        let running = async {
            if is_typed {
                run_typed(&glasses, &voice).await
            } else {
                script::run(&glasses, &steps, &voice, |_| {}).await.map_err(Into::into).map(|()| steps.len())
            }
        };
        tokio::pin!(running);
        loop {
            tokio::select! {
                result = &mut running => break result,
                () = tokio::time::sleep(say::PRINT_EVERY) => printer.drain(&glasses, None),
            }
        }
    };
    printer.drain(&glasses, None);
    if let Some(path) = &common.heard {
        glasses.write_heard(path)?;
    }
    let interruptions = glasses.interruptions();
    glasses.goodbye().await;
    let passed = result.with_context(|| name.clone())?;
    if common.json {
        println!("{}", serde_json::json!({ "summary": { "steps": passed }, "interruptions": interruptions }));
    } else if !common.quiet {
        show::interruptions(&interruptions);
        println!("{name}: all {passed} steps passed");
    }
    Ok(())
}

fn read(file: &Path) -> Result<Vec<script::Step>> {
    let name = file.display();
    let bytes = std::fs::metadata(file).with_context(|| name.to_string())?.len();
    anyhow::ensure!(bytes <= SCRIPT_BYTES_MAX, "{name}: longer than {SCRIPT_BYTES_MAX} bytes");
    let text = std::fs::read_to_string(file).with_context(|| name.to_string())?;
    script::parse(&text).with_context(|| name.to_string())
}

/// Runs each line as it is typed. An error is printed at once, and the command fails at the end.
async fn run_typed(glasses: &Glasses, voice: &Speaking) -> Result<usize> {
    let mut lines = BufReader::new(tokio::io::stdin().take(SCRIPT_BYTES_MAX)).lines();
    let mut runner = Runner::new(glasses, voice);
    let (mut number, mut passed, mut failed) = (0, 0, 0);
    while let Some(line) = lines.next_line().await? {
        number += 1;
        let outcome = match script::parse(&line) {
            Ok(steps) => match steps.into_iter().next() {
                Some(step) => runner.step(&step).await.map_err(|failure| failure.what),
                None => continue,
            },
            Err(error) => Err(error.what),
        };
        match outcome {
            Ok(()) => passed += 1,
            Err(what) => {
                failed += 1;
                eprintln!("line {number}: {what}");
            }
        }
    }
    anyhow::ensure!(failed == 0, "{failed} of {} steps failed", passed + failed);
    Ok(passed)
}
