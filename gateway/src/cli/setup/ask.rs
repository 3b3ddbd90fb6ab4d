//! Questions on a terminal, or to a script's standard input.

use std::io::{BufRead, Read as _, Write as _, stdout};

use anyhow::{Result, bail};

/// Longest answer.
const ANSWER_BYTES_MAX: u64 = 4_096;
/// Answers to one question until it is given up.
const TRIES_MAX: usize = 5;

/// Asks, line by line.
pub(super) struct Asker<R> {
    input: R,
    /// Every answer is the default.
    defaults: bool,
}

impl<R: BufRead> Asker<R> {
    /// Reads answers from `input`; with `defaults` none are read.
    pub(super) fn new(input: R, defaults: bool) -> Self {
        Self { input, defaults }
    }

    /// The answer to a question, unless it was `given` before; an empty one is the default.
    ///
    /// # Errors
    /// What was given is wrong, or there is no right answer.
    pub(super) fn text<T>(
        &mut self,
        question: &str,
        given: Option<&str>,
        default: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T> {
        let told = |why: String| anyhow::anyhow!("{}: {why}", question.trim());
        if let Some(given) = given {
            return read(given).map_err(told);
        }
        if self.defaults {
            return read(default).map_err(told);
        }
        for _ in 0..TRIES_MAX {
            let line = self.line(&format!("{question} [{default}]"))?;
            match read(if line.is_empty() { default } else { &line }) {
                Ok(answer) => return Ok(answer),
                Err(why) => println!("   {why}"),
            }
        }
        bail!("no answer to: {}", question.trim());
    }

    /// Whether the answer is yes; an empty one is the default, and one that is neither is asked for again.
    ///
    /// # Errors
    /// There is no answer.
    pub(super) fn yes_or_no(&mut self, question: &str, default: bool) -> Result<bool> {
        let shown = if default { "yes" } else { "no" };
        self.text(question, None, shown, |answer| match answer.to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(true),
            "n" | "no" => Ok(false),
            other => Err(format!("`{other}` is neither yes nor no")),
        })
    }

    fn line(&mut self, question: &str) -> Result<String> {
        print!("{question} ");
        drop(stdout().flush());
        let mut line = String::new();
        if self.input.by_ref().take(ANSWER_BYTES_MAX).read_line(&mut line)? == 0 {
            println!();
            bail!("the answers have ended; give them as options, or --yes for the defaults");
        }
        Ok(line.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(answer: &str) -> Result<u8, String> {
        answer.parse().map_err(|_| "no number".to_owned())
    }

    #[test]
    fn a_wrong_answer_is_asked_for_again_a_few_times() {
        let mut asker = Asker::new("x\n\n".as_bytes(), false);
        assert_eq!(asker.text("?", None, "7", number).unwrap(), 7);
        assert!(asker.text("?", None, "7", number).unwrap_err().to_string().contains("--yes"));
        let wrong = "x\n".repeat(TRIES_MAX);
        assert!(Asker::new(wrong.as_bytes(), false).text("how many?", None, "7", number).is_err());
    }

    #[test]
    fn what_is_given_is_not_asked() {
        let mut asker = Asker::new("".as_bytes(), false);
        assert_eq!(asker.text("?", Some("9"), "7", number).unwrap(), 9);
        assert_eq!(asker.text("?", Some("x"), "7", number).unwrap_err().to_string(), "?: no number");
        assert_eq!(Asker::new("".as_bytes(), true).text("?", None, "7", number).unwrap(), 7);
        assert!(Asker::new("YES\n".as_bytes(), false).yes_or_no("?", false).unwrap());
    }
}
