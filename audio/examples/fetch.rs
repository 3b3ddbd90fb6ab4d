//! Fetches the models that are needed by default, or the ones named on the command line.

use std::io::Write;
use std::path::Path;

use audio::models::{self, CATALOGUE, Progress, Stage, catalogue};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = models::default_dir();
    let ids: Vec<String> = std::env::args().skip(1).collect();
    let entries = if ids.is_empty() {
        CATALOGUE.iter().filter(|entry| entry.needed).collect()
    } else {
        ids.iter().map(|id| catalogue::find(id)).collect::<Result<Vec<_>, _>>()?
    };
    for entry in entries {
        models::fetch(entry, &dir, &mut |progress| show(&dir, progress))?;
    }
    Ok(())
}

fn show(dir: &Path, progress: Progress) {
    let id = progress.entry.id;
    match progress.stage {
        Stage::Downloading { bytes, total } => {
            print!("\r{id}: {:.1} of {:.1} MB", bytes as f64 / 1e6, total as f64 / 1e6);
            let _ = std::io::stdout().flush();
        }
        Stage::AlreadyThere => println!("{id}: already there, verified"),
        Stage::Installed => println!("\n{id}: {}", models::path_of(progress.entry, dir).display()),
        _ => {}
    }
}
