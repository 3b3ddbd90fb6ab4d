//! Figures and what they are to be: printed, and with `--require` judged.

use anyhow::{Result, ensure};

use super::{flag, quantile};

/// The aims that were missed.
#[derive(Default)]
pub struct Aims(Vec<String>);

impl Aims {
    /// This quantile of times in microseconds is to be at most so many milliseconds.
    pub fn at_most_ms(&mut self, what: &str, us: &[i64], share: f64, most_ms: i64) {
        let found = quantile(&mut us.to_vec(), share);
        let ms = found.map_or_else(|| "no time".to_owned(), |us| format!("{:.1} ms", us as f64 / 1e3));
        let text = format!("{what}: {ms} at {:.0} %, aim {most_ms} ms", 100.0 * share);
        self.note(found.is_some_and(|us| us <= most_ms * 1_000), text);
    }

    /// At most so many percent of all are to be so; of none nothing is known, which is missed.
    pub fn at_most_percent(&mut self, what: &str, count: usize, all: usize, most: f64) {
        let percent = 100.0 * count as f64 / all as f64;
        self.note(percent <= most, format!("{what}: {count} of {all}, {percent:.1} %, aim {most} %"));
    }

    /// With something, a figure is to be at most so many times as much as without.
    pub fn at_most_times(&mut self, what: &str, with: f64, without: f64, most: f64) {
        let times = with / without;
        self.note(times <= most, format!("{what}: {times:.3} times as much as without, aim {most:.2}"));
    }

    /// A figure, beside another one of the same run, is to be so many times less at least.
    pub fn times_less(&mut self, what: &str, own: f64, other: f64, least: f64) {
        let times = other / own;
        self.note(times >= least, format!("{what}: {times:.2} times less than the other, aim {least}"));
    }

    /// Prints an aim with what was found, and whether it is met.
    pub fn note(&mut self, is_met: bool, text: String) {
        println!("  {} {text}", if is_met { "met   " } else { "MISSED" });
        if !is_met {
            self.0.push(text);
        }
    }

    /// With `--require`, an error where an aim was missed.
    pub fn judge(self) -> Result<()> {
        require(&self.0)
    }
}

/// Prints which aims were missed; with `--require`, an error where one was.
pub fn judge(missed: &[String]) -> Result<()> {
    missed.iter().for_each(|aim| println!("missed: {aim}"));
    require(missed)
}

fn require(missed: &[String]) -> Result<()> {
    ensure!(missed.is_empty() || !flag("--require"), "aims missed: {}", missed.join("; "));
    Ok(())
}
