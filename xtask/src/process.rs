//! Child processes: printed when started, checked by exit status, with descriptive errors.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Why a command failed, in words for the user.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// For `map_err`: prefixes the system's error with the file or folder.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |error| Self(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The command as a user would type it; of the program's path only the name.
pub(crate) fn spelled(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut words = vec![program.file_name().unwrap_or_default().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| {
        let word = word.to_string_lossy();
        if word.is_empty() || word.contains([' ', '"', '(', '&', '|']) {
            format!("'{word}'")
        } else {
            word.into_owned()
        }
    }));
    words.join(" ")
}

/// Runs with the terminal's input and output; anything but success is a failure.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    eprintln!("  $ {}", spelled(command));
    let status = command.status().map_err(|error| not_started(command, &error))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("`{}` ended with {status}", spelled(command))))
}

/// Runs silently and returns standard output; what it wrote to standard error is shown on failure.
pub(crate) fn read(command: &mut Command) -> Result<String, Failure> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| not_started(command, &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Failure::new(format!(
        "`{}` ended with {}\n{}{}",
        spelled(command),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )))
}

/// Whether a program of that name is on the search path.
pub(crate) fn on_path(program: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else {
        return false;
    };
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn not_started(command: &Command, error: &io::Error) -> Failure {
    Failure::new(format!("`{}` could not be started: {error}", spelled(command)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_is_named_with_what_it_said() {
        let failure = read(Command::new("sh").args(["-c", "echo reason >&2; exit 3"])).unwrap_err();
        let text = failure.to_string();
        assert!(text.contains("reason") && text.contains('3'), "{text}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let failure = read(&mut Command::new("no-such-program-at-all")).unwrap_err();
        assert!(failure.to_string().contains("no-such-program-at-all"));
        assert!(!on_path("no-such-program-at-all"));
        assert!(on_path("sh"));
    }

    #[test]
    fn words_with_spaces_are_quoted() {
        let mut command = Command::new("folder/a");
        command.args(["b c", "d"]);
        assert_eq!(spelled(&command), "a 'b c' d");
    }
}
