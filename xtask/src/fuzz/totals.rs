//! What was run of each target, over all runs: `tests/fuzz/totals.tsv`.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use crate::process::Failure;

const HEAD: &str = "target\twanted minutes\tminutes\texecutions\tedges\tinputs\tfaults found";

/// What was run of one target: a line of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Total {
    target: String,
    /// Minutes that are wanted in all.
    wanted: u64,
    /// Minutes that were run.
    minutes: u64,
    executions: u64,
    /// Branches of the workspace's code that the inputs reach, as of the last run.
    edges: u64,
    /// Committed inputs.
    inputs: u64,
    /// Faults that were found and mended; written by hand.
    found: u64,
}

/// All lines.
pub(super) struct Totals {
    file: PathBuf,
    rows: Vec<Total>,
}

impl Totals {
    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(file).map_err(Failure::at(file))?;
        let rows = text.lines().skip(1).map(|line| {
            let [target, numbers @ ..] = &line.split('\t').collect::<Vec<_>>()[..] else { return None };
            let numbers: Vec<u64> = numbers.iter().map(|number| number.parse().ok()).collect::<Option<_>>()?;
            let [wanted, minutes, executions, edges, inputs, found] = numbers[..] else { return None };
            Some(Total { target: (*target).to_owned(), wanted, minutes, executions, edges, inputs, found })
        });
        let rows = rows.collect::<Option<_>>();
        let rows = rows.ok_or_else(|| Failure::new(format!("{}: a line is not like `{HEAD}`", file.display())))?;
        Ok(Self { file: file.to_owned(), rows })
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.target.clone()).collect()
    }

    pub(super) fn get(&self, target: &str) -> Option<&Total> {
        self.rows.iter().find(|row| row.target == target)
    }

    /// Adds a run and writes the file.
    pub(super) fn add(
        &mut self,
        target: &str,
        minutes: u64,
        executions: u64,
        edges: u64,
        inputs: usize,
    ) -> Result<(), Failure> {
        // Another run may have written meanwhile.
        self.rows = Self::read(&self.file)?.rows;
        if let Some(row) = self.rows.iter_mut().find(|row| row.target == target) {
            row.minutes += minutes;
            row.executions += executions;
            row.edges = edges;
            row.inputs = inputs as u64;
        }
        let mut text = format!("{HEAD}\n");
        for Total { target, wanted, minutes, executions, edges, inputs, found } in &self.rows {
            text += &format!("{target}\t{wanted}\t{minutes}\t{executions}\t{edges}\t{inputs}\t{found}\n");
        }
        fs::write(&self.file, text).map_err(Failure::at(&self.file))
    }
}

/// One line for people.
pub(super) struct Row<'a>(Option<&'a Total>);

impl<'a> Row<'a> {
    pub(super) const HEAD: &'static str =
        "target                 minutes  wanted    executions  a second   edges  inputs  faults";

    pub(super) fn of(totals: &'a Totals, target: &str) -> Self {
        Self(totals.get(target))
    }
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Total { target, wanted, minutes, executions, edges, inputs, found }) = self.0 else { return Ok(()) };
        let per_s = executions / (minutes * 60).max(1);
        write!(f, "{target:22} {minutes:7} {wanted:7} {executions:13} {per_s:9} {edges:7} {inputs:7} {found:7}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_add_up() {
        let file = std::env::temp_dir().join(format!("xtask-totals-{}", std::process::id()));
        fs::write(&file, format!("{HEAD}\nwire\t60\t1\t10\t5\t3\t2\nggml\t10\t0\t0\t0\t0\t0\n")).unwrap();
        let mut totals = Totals::read(&file).unwrap();
        totals.add("wire", 2, 30, 7, 4).unwrap();
        let again = Totals::read(&file).unwrap();
        fs::write(&file, "target\nwire\tx\n").unwrap();
        assert!(Totals::read(&file).is_err());
        fs::remove_file(&file).unwrap();
        assert_eq!(again.rows, totals.rows);
        let wire = again.get("wire").unwrap();
        assert_eq!((wire.minutes, wire.executions, wire.edges, wire.inputs, wire.found), (3, 40, 7, 4, 2));
        assert_eq!(Row::of(&again, "wire").to_string().len(), Row::HEAD.len());
    }
}
