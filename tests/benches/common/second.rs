//! The same program in processes of their own: a second one that is told line by line what to do, and one after the other.

use std::process::{ExitStatus, Stdio};

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Runs this program once for each of these values of an option, with all else that it was given: what one run leaves behind
/// is not in the memory of the next.
pub fn once_for_each(option: &str, values: &str) -> Result<()> {
    let mut failed = Vec::new();
    for value in values.split(',') {
        // Of an option that is there twice the first counts.
        let arguments = [option.to_owned(), value.to_owned()].into_iter().chain(std::env::args().skip(1));
        let ended = std::process::Command::new(std::env::current_exe()?).args(arguments).status()?;
        if !ended.success() {
            failed.push(value);
        }
    }
    ensure!(failed.is_empty(), "{option} {}: failed", failed.join(","));
    Ok(())
}

/// The second process, seen from the first. It ends with this.
pub struct Second {
    process: Child,
    commands: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
}

impl Second {
    /// Starts this program with these options and their values.
    pub fn start(options: &[(&str, String)]) -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(options.iter().flat_map(|(name, value)| [*name, value]))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let commands = process.stdin.take().context("its standard input")?;
        let said = BufReader::new(process.stdout.take().context("its standard output")?).lines();
        Ok(Self { process, commands, said })
    }

    /// Its process id.
    pub fn id(&self) -> Result<String> {
        Ok(self.process.id().context("it has ended")?.to_string())
    }

    /// The next line that it says.
    pub async fn line(&mut self) -> Result<String> {
        self.said.next_line().await?.context("the second process ended")
    }

    /// Tells it a line.
    pub async fn tell(&mut self, command: &str) -> Result<()> {
        Ok(self.commands.write_all(format!("{command}\n").as_bytes()).await?)
    }

    /// Waits for its end.
    pub async fn ended(mut self) -> Result<ExitStatus> {
        Ok(self.process.wait().await?)
    }
}
