//! `lorgnette devices invite`: the picture that glasses scan.

use std::io::{IsTerminal as _, Write as _, stderr, stdout};

use anyhow::{Context as _, Result, bail};
use qrcode::{EcLevel, QrCode, render::unicode::Dense1x2};

use crate::{
    config::Config,
    control::{Answer, Request, client::follow},
};

/// Black on white whatever the terminal's colours are: scanners want a dark code on a light ground.
const BLACK_ON_WHITE: &str = "\u{1b}[38;5;16;48;5;231m";
const RESET: &str = "\u{1b}[0m";

pub(super) fn run(config: &Config, request: Request, text_only: bool) -> Result<()> {
    let with_picture = !text_only && stdout().is_terminal();
    let mut shown = Ok(());
    let mut is_settled = false;
    follow(&config.data_dir, &request, |answer| match answer {
        Answer::Invited { text, expires_s } => {
            shown = show(&text, expires_s, with_picture);
            shown.is_ok()
        }
        Answer::Done { message } => {
            println!("{message}");
            is_settled = true;
            false
        }
        _ => false,
    })?;
    shown?;
    if !is_settled {
        bail!("the gateway stopped; the invitation is void");
    }
    Ok(())
}

fn show(text: &str, expires_s: u64, with_picture: bool) -> Result<()> {
    if with_picture {
        // Its colours are meant for the terminal: `println!` here would write them out.
        writeln!(stdout(), "{}", picture(text)?)?;
    }
    println!("{text}");
    // A script reads the line and goes on.
    stdout().flush()?;
    eprintln!(
        "Whoever scans this pairs one pair of glasses. It is good for {} minutes and once; Ctrl-C withdraws it.",
        expires_s / 60
    );
    Ok(())
}

/// Draws a text for glasses on the terminal, beside other output.
pub(super) fn draw(text: &str) -> Result<()> {
    Ok(writeln!(stderr(), "{}", picture(text)?)?)
}

/// A QR code in half blocks, two rows of it in each line.
fn picture(text: &str) -> Result<String> {
    let code =
        QrCode::with_error_correction_level(text, EcLevel::L).context("the invitation is too long for a picture")?;
    let drawn = code.render::<Dense1x2>().build();
    Ok(drawn.lines().map(|line| format!("{BLACK_ON_WHITE}{line}{RESET}")).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Brightness of each module, row by row, as a scanner sees it: both halves of each character.
    fn modules(picture: &str) -> (usize, Vec<u8>) {
        let rows = picture.lines().flat_map(|line| {
            let drawn: Vec<char> = line.chars().filter(|c| " \u{2580}\u{2584}\u{2588}".contains(*c)).collect();
            let half =
                |full: char| drawn.iter().map(|c| if [full, '\u{2588}'].contains(c) { 0 } else { 255 }).collect();
            [half('\u{2580}'), half('\u{2584}')]
        });
        let rows: Vec<Vec<u8>> = rows.collect();
        (rows[0].len(), rows.concat())
    }

    #[test]
    fn a_scanner_reads_the_text_from_the_picture() {
        let text = format!(
            "lorgnette:pair?v=1&fp={0}&code={0}&at=192.0.2.1&tcp=8460&name=Hearth",
            "0123456789abcdef".repeat(2)
        );
        let (width, modules) = modules(&picture(&text).unwrap());
        // As a camera has it: several pixels for each module.
        const PIXELS: usize = 4;
        let (across, down) = (width * PIXELS, modules.len() / width * PIXELS);
        let mut image =
            rqrr::PreparedImage::prepare_from_greyscale(across, down, |x, y| modules[y / PIXELS * width + x / PIXELS]);
        let grids = image.detect_grids();
        assert_eq!(grids.len(), 1);
        assert_eq!(grids[0].decode().unwrap().1, text);
    }

    #[test]
    fn a_long_invitation_has_a_picture_that_fits_a_terminal() {
        let text = format!("lorgnette:pair?v=1&fp={0}&code={0}&name={1}", "0".repeat(32), "x".repeat(200));
        let picture = picture(&text).unwrap();
        let width =
            picture.lines().next().unwrap().chars().filter(|c| " \u{2580}\u{2584}\u{2588}".contains(*c)).count();
        assert!(width <= 80 && picture.lines().count() <= 40, "{width} x {}", picture.lines().count());
        assert!(super::picture(&"x".repeat(4_000)).is_err());
    }
}
