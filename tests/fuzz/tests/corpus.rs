//! The committed inputs of the fuzzer, replayed with the same checks: a test for each target.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use fuzz::{TARGETS, Target};
use libtest_mimic::{Arguments, Failed, Trial};

/// Bytes of all inputs together: what a checkout may carry.
const BYTES_MAX: u64 = 2 * 1024 * 1024;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = TARGETS.iter().map(|target| Trial::test(target.name, || replay(target))).collect();
    trials.push(Trial::test("each_target_has_inputs_and_they_are_small", small));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn inputs(target: &str) -> Result<Vec<PathBuf>, Failed> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(corpus().join(target))? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

fn replay(target: &Target) -> Result<(), Failed> {
    (target.check)(&[]);
    for path in inputs(target.name)? {
        let bytes = fs::read(&path)?;
        // A panic's message does not name its input.
        eprintln!("{}", path.display());
        (target.check)(&bytes);
    }
    Ok(())
}

fn small() -> Result<(), Failed> {
    let named: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    let mut folders = BTreeSet::new();
    for entry in fs::read_dir(corpus())? {
        folders.insert(entry?.file_name().to_string_lossy().into_owned());
    }
    let totals = fs::read_to_string(corpus().with_file_name("totals.tsv"))?;
    let listed: BTreeSet<String> =
        totals.lines().skip(1).filter_map(|line| line.split('\t').next()).map(str::to_owned).collect();
    if folders != named || listed != named {
        return Err(format!("targets {named:?}, corpora {folders:?}, totals {listed:?}").into());
    }
    let mut bytes = 0;
    for target in TARGETS {
        let inputs = inputs(target.name)?;
        if inputs.len() < 5 {
            return Err(format!("{} has {} inputs", target.name, inputs.len()).into());
        }
        for path in inputs {
            bytes += fs::metadata(path)?.len();
        }
    }
    if bytes > BYTES_MAX {
        return Err(format!("the inputs have {bytes} bytes; at most {BYTES_MAX}").into());
    }
    Ok(())
}
