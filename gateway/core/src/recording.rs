//! Recordings of conversations. A [`Conversation`] decides by its settings, its inputs and their times alone: given these
//! again, it puts out the same again. [`replay`](Replay) shows that, step by step.
//!
//! The texts in a recording are the wearer's: the operator who makes one protects it.

use alloc::{
    format,
    string::{String, ToString},
};

use serde::{Deserialize, Serialize};

use crate::{
    conversation::{Config, Conversation},
    driver::{Event, Machine},
    input::Input,
    vocab::Timestamp,
};

/// An entry of a recording. The first one is `Settings`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The settings of the conversation.
    Settings(Config),
    /// An input was handled.
    Input(Timestamp, Input),
    /// The timers that were due were fired.
    Timeout(Timestamp),
    /// The conversation put this out, as the text of its debug form.
    Output(String),
}

impl Entry {
    /// What a driver did.
    pub fn of(now: Timestamp, event: &Event<'_, Conversation>) -> Self {
        match event {
            Event::Input(input) => Self::Input(now, (*input).clone()),
            Event::Timeout => Self::Timeout(now),
            Event::Output(output) => Self::Output(format!("{output:?}")),
        }
    }
}

/// A conversation that does something else than in its recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What it put out then; `None`: nothing more.
    pub recorded: Option<String>,
    /// What it puts out now; `None`: nothing more.
    pub replayed: Option<String>,
}

/// A conversation that is given again what is recorded.
pub struct Replay(Conversation);

impl Replay {
    /// With the settings of the recording.
    pub fn new(settings: Config) -> Self {
        Self(Conversation::new(settings))
    }

    /// Does the next step, or compares the next output.
    ///
    /// # Errors
    /// The output is another one, is missing, or was not recorded.
    pub fn step(&mut self, entry: &Entry) -> Result<(), Difference> {
        match entry {
            Entry::Settings(settings) => {
                self.ends()?;
                self.0 = Conversation::new(settings.clone());
            }
            Entry::Input(now, input) => {
                self.ends()?;
                self.0.handle_input(*now, input.clone());
            }
            Entry::Timeout(now) => {
                self.ends()?;
                self.0.handle_timeout(*now);
            }
            Entry::Output(recorded) => {
                let replayed = self.0.poll_output().map(|output| format!("{output:?}"));
                if replayed.as_ref() != Some(recorded) {
                    return Err(Difference { recorded: Some(recorded.to_string()), replayed });
                }
            }
        }
        Ok(())
    }

    /// Nothing more is put out.
    ///
    /// # Errors
    /// Something is.
    pub fn ends(&mut self) -> Result<(), Difference> {
        match self.0.poll_output() {
            None => Ok(()),
            Some(output) => Err(Difference { recorded: None, replayed: Some(format!("{output:?}")) }),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use alloc::{boxed::Box, sync::Arc, vec, vec::Vec};
    use core::mem;

    use super::*;
    use crate::{
        driver::{Driver, Watch},
        input::Button,
    };

    #[derive(Debug, Default)]
    struct Tape(Arc<std::sync::Mutex<Vec<Entry>>>);

    impl Watch<Conversation> for Tape {
        fn see(&mut self, now: Timestamp, event: Event<'_, Conversation>) {
            self.0.lock().unwrap().push(Entry::of(now, &event));
        }
    }

    fn recorded() -> Vec<Entry> {
        let tape = Tape::default();
        let entries = tape.0.clone();
        let mut driver = Driver::new(Conversation::new(Config::default()));
        driver.watch(Box::new(tape));
        driver.push(Input::Button(Button::LongPress));
        while driver.poll_output(Timestamp::default()).is_some() {}
        let entries = mem::take(&mut *entries.lock().unwrap());
        assert!(entries.len() > 1, "{entries:?}");
        [vec![Entry::Settings(Config::default())], entries].concat()
    }

    fn replayed(entries: &[Entry]) -> Result<(), Difference> {
        let mut replay = Replay::new(Config::default());
        entries.iter().try_for_each(|entry| replay.step(entry))?;
        replay.ends()
    }

    #[test]
    fn a_recording_is_replayed_and_what_differs_is_found() {
        let entries = recorded();
        assert_eq!(replayed(&entries), Ok(()));
        let (_, fewer) = entries.split_last().unwrap();
        assert!(matches!(replayed(fewer), Err(Difference { recorded: None, replayed: Some(_) })));
        let more = [entries.clone(), vec![Entry::Output("Heartbeat".into())]].concat();
        let difference = Difference { recorded: Some("Heartbeat".into()), replayed: None };
        assert_eq!(replayed(&more), Err(difference));
    }
}
