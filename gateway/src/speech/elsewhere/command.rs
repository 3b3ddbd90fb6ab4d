//! An installed program that speaks: the text on standard input, a sound file on standard output. No shell is involved, the
//! text is no argument, and the child gets none of the gateway's secrets in its environment.

use std::{process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, Command},
    time::timeout,
};

/// Most bytes of sound that are read: a minute at 48 kHz.
const BYTES_MAX: u64 = 6 * 1024 * 1024;
/// Variables that the child gets.
const INHERITED: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR"];
/// Stands for a two-letter code in an argument.
const LANGUAGE: &str = "{language}";

/// A child in a process group of its own, which is killed with it unless it has ended.
struct Group {
    child: Child,
    id: Option<Pid>,
}

impl Drop for Group {
    fn drop(&mut self) {
        // Before the child is waited for, nobody else can have this id.
        if let Some(id) = self.id {
            let _ended = kill_process_group(id, Signal::KILL);
        }
    }
}

/// Runs the program; the bytes that it wrote. `language`: two or three lower-case letters.
///
/// # Errors
/// It cannot be started, fails, writes too much or nothing, or takes too long. The text is not quoted.
pub(super) async fn run(words: &[String], language: &str, text: &str, deadline: Duration) -> Result<Vec<u8>, String> {
    let (program, arguments) = words.split_first().ok_or("there is no program")?;
    let child = Command::new(program)
        .args(arguments.iter().map(|argument| argument.replace(LANGUAGE, language)))
        .env_clear()
        .envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot be started: {error}; is it installed, and in PATH?"))?;
    let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let mut group = Group { child, id };
    let (mut input, output) = (group.child.stdin.take(), group.child.stdout.take());
    let talk = async {
        let write = async {
            if let Some(mut input) = input.take() {
                // A program that does not read to the end shows by its sound and its status whether that was enough.
                let _unread = input.write_all(text.as_bytes()).await;
            }
        };
        let read = async {
            let mut bytes = Vec::new();
            if let Some(output) = output {
                output.take(BYTES_MAX + 1).read_to_end(&mut bytes).await.map_err(|error| error.to_string())?;
            }
            if bytes.len() as u64 > BYTES_MAX {
                Err("writes more sound than a clause has".to_owned())
            } else {
                Ok(bytes)
            }
        };
        let ((), bytes) = tokio::join!(write, read);
        let bytes = bytes?;
        let status = group.child.wait().await.map_err(|error| error.to_string())?;
        group.id = None;
        if !status.success() {
            return Err(format!("ended with {status}"));
        }
        if bytes.is_empty() { Err("wrote nothing".to_owned()) } else { Ok(bytes) }
    };
    timeout(deadline, talk).await.unwrap_or_else(|_| Err(format!("took longer than {} ms", deadline.as_millis())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENT: Duration = Duration::from_secs(60);

    async fn shell(script: &str, deadline: Duration) -> Result<Vec<u8>, String> {
        let words = ["sh", "-c", script, "sh", "-v{language}"].map(str::to_owned);
        run(&words, "de", "Guten Tag; $(true)", deadline).await
    }

    #[tokio::test]
    async fn the_text_is_read_and_the_sound_is_what_was_written() {
        let said = shell("printf '%s|' \"$1\"; cat", PATIENT).await.unwrap();
        assert_eq!(String::from_utf8(said).unwrap(), "-vde|Guten Tag; $(true)");
        // Who does not read is not waited for.
        assert_eq!(shell("exec 0<&-; echo x", PATIENT).await, Ok(b"x\n".to_vec()));
    }

    #[tokio::test]
    async fn the_child_gets_no_secrets() {
        let variables = String::from_utf8(shell("env", PATIENT).await.unwrap()).unwrap();
        let names: Vec<&str> = variables.lines().filter_map(|line| line.split('=').next()).collect();
        // The shell adds some of its own.
        let others = ["PWD", "OLDPWD", "SHLVL", "_"];
        assert!(names.iter().all(|name| INHERITED.contains(name) || others.contains(name)), "{names:?}");
    }

    #[tokio::test]
    async fn a_program_is_bounded_in_time_and_bytes_and_by_its_status() {
        for (script, deadline, expected) in [
            ("exit 3", PATIENT, "exit status: 3"),
            ("echo sound; exit 3", PATIENT, "exit status: 3"),
            ("true", PATIENT, "wrote nothing"),
            ("yes", PATIENT, "more sound"),
            ("exec cat /dev/zero", PATIENT, "more sound"),
            ("exec sleep 600", Duration::from_millis(50), "longer than 50 ms"),
        ] {
            let error = shell(script, deadline).await.unwrap_err();
            assert!(error.contains(expected) && !error.contains("Guten"), "{script}: {error}");
        }
        let error = run(&["no-such-program-anywhere".to_owned()], "de", "x", PATIENT).await.unwrap_err();
        assert!(error.contains("is it installed"), "{error}");
    }

    #[tokio::test]
    async fn nothing_of_a_program_that_is_given_up_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        // A grandchild holds the pipe open for as long as it lives.
        let script = format!("(exec 3>{0}; exec sleep 600) & wait", pipe.display());
        let opened = {
            let pipe = pipe.clone();
            tokio::task::spawn_blocking(move || std::fs::File::open(pipe).unwrap())
        };
        let mut opened = tokio::select! {
            said = shell(&script, PATIENT) => panic!("{said:?}"),
            opened = opened => opened.unwrap(),
        };
        // Its end: all writers are gone.
        let end = tokio::task::spawn_blocking(move || std::io::Read::read(&mut opened, &mut [0; 1]).unwrap());
        assert_eq!(timeout(PATIENT, end).await.unwrap().unwrap(), 0);
    }
}
