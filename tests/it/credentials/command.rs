//! `lorgnette login` as a process that prints, waits, and ends.

use std::{
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines},
    process::{Child, ChildStderr, ChildStdout, Command},
    time::timeout,
};

use crate::{process::binary, world::WAIT};

/// A running login.
pub struct Login {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    errors: ChildStderr,
    printed: String,
}

/// The result of a login.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    /// Everything that it printed, on both streams.
    pub told: String,
}

impl Login {
    /// Starts `lorgnette login house` with further arguments.
    pub fn start(config: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(binary())
            .args(["login", "house"])
            .args(arguments)
            .arg("--config")
            .arg(config)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the command");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let errors = child.stderr.take().expect("its errors");
        Self { child, lines, errors, printed: String::new() }
    }

    /// The next line that it prints.
    pub async fn line(&mut self) -> String {
        let line = timeout(WAIT, self.lines.next_line()).await.expect("a line in time").expect("its output");
        let Some(line) = line else {
            let mut errors = String::new();
            self.errors.read_to_string(&mut errors).await.expect("its errors");
            panic!("it ended: {}{errors}", self.printed);
        };
        self.printed += &line;
        self.printed.push('\n');
        line
    }

    /// Interrupts it as Ctrl-C does.
    pub async fn interrupt(&self) {
        let id = self.child.id().expect("it runs").to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().await.expect("kill").success());
    }

    /// Waits for its end.
    pub async fn end(mut self) -> Ended {
        let mut told = self.printed;
        let read = async {
            while let Some(line) = self.lines.next_line().await.expect("its output") {
                told += &line;
                told.push('\n');
            }
            self.errors.read_to_string(&mut told).await.expect("its errors");
            self.child.wait().await.expect("a status")
        };
        let status = timeout(WAIT, read).await.expect("it ends");
        Ended { status, told }
    }
}

/// The files in the folder of the keyring; none if there is no folder.
pub fn kept(data: &Path) -> Vec<PathBuf> {
    let Ok(folder) = std::fs::read_dir(data.join("credentials")) else {
        return Vec::new();
    };
    folder.map(|entry| entry.expect("an entry").path()).collect()
}
