//! `lorgnette-sim script`.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use anyhow::{Context as _, Result};
use audio::wav;
use firmware_sim::microphone::{CLIP_HZ, Clip};
use firmware_sim::script::{self, STEPS, Saying, Voice};

use super::options::Common;
use super::{pair, say};

/// Longest script in bytes: a person's patience ends earlier.
const SCRIPT_BYTES_MAX: u64 = 1024 * 1024;

/// What the list of steps does not say.
const REMARKS: &str = "\
`wait-for` and `expect` look at everything since the last thing that the wearer did. `idle` comes when the time for
a follow-up after an answer is over (`hearing.follow_up_ms`). `expect silence` fails where anything sounds from now
on for so long, also the rest of a speech that began before; what stops one takes a moment, which a `wait` in front
gives it. `#` begins a remark.";

/// Run a script of steps: what the wearer does, and what must be seen.
#[derive(clap::Args)]
#[command(after_help = format!("Steps, one a line:\n{STEPS}\n{REMARKS}"))]
pub(super) struct Arguments {
    /// The script.
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
    let name = arguments.file.display();
    let bytes = std::fs::metadata(&arguments.file).with_context(|| name.to_string())?.len();
    anyhow::ensure!(bytes <= SCRIPT_BYTES_MAX, "{name}: longer than {SCRIPT_BYTES_MAX} bytes");
    let text = std::fs::read_to_string(&arguments.file).with_context(|| name.to_string())?;
    let steps = script::parse(&text).with_context(|| name.to_string())?;
    let voice = Speaking { folder: arguments.file.parent().unwrap_or(Path::new("")).to_path_buf() };
    let glasses = pair::connect(common.options()?, common.json).await?;
    let mut printer = say::Printer::new(common);
    let result = {
        let running = script::run(&glasses, &steps, &voice, |_| {});
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
    glasses.goodbye().await;
    result.with_context(|| name.to_string())?;
    if common.json {
        println!("{}", serde_json::json!({ "summary": { "steps": steps.len() } }));
    } else if !common.quiet {
        println!("{name}: all {} steps passed", steps.len());
    }
    Ok(())
}
