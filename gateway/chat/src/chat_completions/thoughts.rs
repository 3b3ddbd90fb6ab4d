//! Removes thoughts from the text. Servers that run a thinking model without a parser for it (vLLM by default, older
//! llama.cpp and Ollama) send `<think>…</think>` before the answer.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";
/// Most white space held back before an answer; model templates write a line or two.
const SPACE_BYTES_MAX: usize = 64;

/// Removes thoughts from a stream of pieces. Only the beginning of an answer can be a thought, so later text about
/// these tags stays.
#[derive(Debug, Default)]
pub(super) struct Thoughts {
    state: State,
    /// Text that may be part of a tag.
    held: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Only white space so far, or the beginning of [`OPEN`].
    #[default]
    Begins,
    Thinks,
    /// The white space between thought and answer.
    Thought,
    Answers,
}

impl Thoughts {
    /// The text for the wearer in this piece, preceded by what was held back.
    pub(super) fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        if self.state == State::Begins {
            let begun = self.held.trim_start();
            if let Some(thought) = begun.strip_prefix(OPEN) {
                self.held = thought.to_owned();
                self.state = State::Thinks;
            } else if !OPEN.starts_with(begun) || self.held.len() > SPACE_BYTES_MAX {
                self.state = State::Answers;
            }
        }
        if self.state == State::Thinks {
            if let Some(end) = self.held.find(CLOSE) {
                self.held.drain(..end + CLOSE.len());
                self.state = State::Thought;
            } else {
                let kept = self.held.len().saturating_sub(CLOSE.len() - 1);
                self.held.drain(..self.held.floor_char_boundary(kept));
            }
        }
        if self.state == State::Thought {
            self.held = self.held.trim_start().to_owned();
            if !self.held.is_empty() {
                self.state = State::Answers;
            }
        }
        if self.state == State::Answers { core::mem::take(&mut self.held) } else { String::new() }
    }

    /// The answer has ended: what was held back was not a tag.
    pub(super) fn end(&mut self) -> String {
        let held = core::mem::take(&mut self.held);
        if self.state == State::Begins { held } else { String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pieces: &[&str]) -> String {
        let mut thoughts = Thoughts::default();
        let mut told: String = pieces.iter().map(|piece| thoughts.push(piece)).collect();
        told.push_str(&thoughts.end());
        told
    }

    #[test]
    fn what_is_thought_is_left_out_however_it_is_cut() {
        for (said, wanted) in [
            ("<think>Five?</think>Five.", "Five."),
            ("\n<think>\nFünf < 6, </thin…\n</think>\n\nFive.", "Five."),
            ("<think></think>Five.", "Five."),
            ("<think>Too long for what it may say", ""),
            ("<think>a</think>Say <think>b</think>.", "Say <think>b</think>."),
            ("Five <think>.", "Five <think>."),
            ("  Five.", "  Five."),
            ("<thin", "<thin"),
            ("<thing>", "<thing>"),
            (" \n", " \n"),
            ("", ""),
        ] {
            assert_eq!(told(&[said]), wanted, "{said}");
            let single: Vec<String> = said.chars().map(String::from).collect();
            assert_eq!(told(&single.iter().map(String::as_str).collect::<Vec<_>>()), wanted, "{said}");
        }
    }

    #[test]
    fn a_long_thought_is_not_kept() {
        let mut thoughts = Thoughts::default();
        thoughts.push("<think>");
        for _ in 0..1_000 {
            assert_eq!(thoughts.push("é and so on, "), "");
            assert!(thoughts.held.len() <= CLOSE.len() + 1);
        }
    }

    #[test]
    fn endless_space_is_not_kept() {
        let mut thoughts = Thoughts::default();
        let told: usize = (0..1_000).map(|_| thoughts.push(" \n ").len()).sum();
        assert!(thoughts.held.len() <= SPACE_BYTES_MAX && told + thoughts.held.len() == 3_000);
    }
}
