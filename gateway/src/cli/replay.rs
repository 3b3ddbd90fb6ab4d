//! `lorgnette replay`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::conversations::date;

use crate::{
    config::Config,
    recordings::{
        Listed, Recording, list, masked,
        replay::{Line, Replayed, of_turn, replay},
    },
    text::{crop, in_one_line},
    units,
};

/// Bytes of a line that are shown, unless all are wanted.
const SHOWN_BYTES_MAX: usize = 240;

/// List recorded sessions, or play one again.
///
/// Sessions are recorded with `recordings.sessions = true`. What was said is left out, unless --words is given.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Number of a turn, as `lorgnette turns` shows it, or the file of a recording; without it, recordings are listed.
    what: Option<String>,
    /// Beginning of the device's fingerprint: whose turn it was. Default: the latest recording that has such a turn.
    #[arg(long)]
    device: Option<String>,
    /// Show what was said, and lines in full.
    #[arg(long)]
    words: bool,
}

pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<()> {
    let Some(what) = &arguments.what else {
        show_list(&list(&config.data_dir)?);
        return Ok(());
    };
    let (path, turn) = match what.parse::<u32>() {
        Ok(turn) => (find(&config.data_dir, turn, arguments.device.as_deref().unwrap_or(""))?, Some(turn)),
        Err(_) => (PathBuf::from(what), None),
    };
    let recording = Recording::read(&path)?;
    let replayed = replay(&recording);
    let shown = match turn {
        Some(turn) => of_turn(&replayed.lines, turn).context("this turn is not in the recording")?,
        None => 0..replayed.lines.len(),
    };
    println!("{}, session {} of {}", path.display(), recording.about.session, recording.about.user);
    timeline(&replayed.lines[shown], arguments.words);
    conclude(&recording, &replayed, arguments.words)
}

/// The latest recording of such a device that has this turn.
fn find(data_dir: &Path, turn: u32, device: &str) -> Result<PathBuf> {
    let all = list(data_dir)?;
    if all.is_empty() {
        bail!("nothing is recorded; `sessions = true` in [recordings] has new sessions recorded");
    }
    let found = all.into_iter().find(|one| one.about.device.starts_with(device) && one.turns.contains(&turn));
    found.map(|one| one.path).with_context(|| format!("no recording has a turn {turn}; `lorgnette replay` lists them"))
}

fn show_list(all: &[Listed]) {
    if all.is_empty() {
        println!("nothing is recorded; `sessions = true` in [recordings] has new sessions recorded");
        return;
    }
    println!("{:<16} {:<8} {:>9} {:>9}  {:<10} file", "began", "glasses", "turns", "size", "user");
    for Listed { path, about, bytes, turns } in all {
        let turns = match turns[..] {
            [] => "-".to_owned(),
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
        };
        let (began, size) = (date(about.began_wall_ms), units::bytes(*bytes));
        let (glasses, user) = (crop(&about.device, 8), &about.user);
        println!("{began:<16} {glasses:<8} {turns:>9} {size:>9}  {user:<10} {}", path.display());
    }
}

/// Seconds since the first line; `>`: what came in, `<`: what was put out.
fn timeline(lines: &[Line], words: bool) {
    let begin_us = lines.first().map_or(0, |line| line.at_us);
    for Line { at_us, mark, text } in lines {
        let seconds = at_us.saturating_sub(begin_us) as f64 / 1e6;
        let text = with_short_turns(text);
        let text = if words { text } else { masked(&text) };
        let shown = if words { text.as_str() } else { crop(&text, SHOWN_BYTES_MAX) };
        let more = if shown.len() < text.len() { " …" } else { "" };
        println!("{seconds:>9.3} {mark} {}{more}", in_one_line(shown));
    }
}

/// `#7`, or `#7.2` for the third attempt, in place of the whole form of a turn.
fn with_short_turns(text: &str) -> String {
    const TURN: &str = "Turn { id: ";
    let mut parts = text.split(TURN);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let turn = part.split_once(" }").and_then(|(turn, rest)| Some((turn.split_once(", revision: ")?, rest)));
        match turn {
            Some(((id, "0"), rest)) => out.push_str(&format!("#{id}{rest}")),
            Some(((id, revision), rest)) => out.push_str(&format!("#{id}.{revision}{rest}")),
            None => out.push_str(&format!("{TURN}{part}")),
        }
    }
    out
}

/// Whether the conversation did the same again; an error if it did not.
fn conclude(recording: &Recording, replayed: &Replayed, words: bool) -> Result<()> {
    let Replayed { given, outputs, difference, .. } = replayed;
    let cut = if recording.is_cut { "; its last line is cut off" } else { "" };
    let Some((at, difference)) = difference else {
        println!("played again: {given} inputs and timers, {outputs} outputs, all the same{cut}");
        return Ok(());
    };
    let said = |text: &Option<String>| match text {
        None => "nothing".to_owned(),
        Some(text) if words => text.clone(),
        Some(text) => masked(text),
    };
    let version = &recording.about.version;
    let other = match version == env!("CARGO_PKG_VERSION") {
        true => String::new(),
        false => format!(" It was recorded by version {version}, which may have decided otherwise."),
    };
    bail!(
        "played again, it differs before line {at}: then {}, now {}.{other}",
        said(&difference.recorded),
        said(&difference.replayed)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_short() {
        let text =
            "CancelModel { turn: Turn { id: 7, revision: 0 } }, Some(Turn { id: 12, revision: 2 }), Turn { id: x";
        let short = "CancelModel { turn: #7 }, Some(#12.2), Turn { id: x";
        assert_eq!(with_short_turns(text), short);
    }
}
