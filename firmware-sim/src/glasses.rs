//! One pair of simulated glasses: the handle for tests and the command line.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use device_protocol::{ButtonAction, ButtonId, Choice, Gesture};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::acoustics::{Ambience, Change};
use crate::clock::Clock;
use crate::command::Command;
use crate::driver::Driver;
use crate::error::Error;
use crate::firmware::Updater;
use crate::identity::Identity;
use crate::microphone::{Clip, ClipTimes};
use crate::network;
use crate::options::Options;
use crate::record::{self, Interruption};
use crate::seen::{Event, Log, Seen};
use crate::speaker::Heard;
use crate::transport::Target;

/// Most queued commands.
const COMMANDS_MAX: usize = 64;

/// Simulated glasses. Dropping them sends a goodbye.
pub struct Glasses {
    commands: mpsc::Sender<Command>,
    log: Log,
    clock: Clock,
    cursor: u64,
    heard: Arc<Mutex<Vec<Heard>>>,
    first: Option<oneshot::Receiver<Result<(), Error>>>,
    fingerprint: String,
    task: tokio::task::JoinHandle<()>,
}

impl Glasses {
    /// Starts the glasses: they connect in the background.
    ///
    /// # Errors
    /// The identity or the flash cannot be loaded.
    pub fn start(mut options: Options) -> Result<Self, Error> {
        let updater = match options.updates.clone() {
            None => None,
            Some(updates) => {
                options.profile.hardware = updates.hardware;
                options.profile.image_bytes_max = updates.image_bytes_max;
                Some(Updater::open(updates, &options.profile.model)?)
            }
        };
        if let Some(updater) = &updater {
            options.profile.firmware = updater.version().to_owned();
        }
        let identity = Identity::load_or_make(&options.state)?.trusting(options.trust.clone());
        let fingerprint = identity.fingerprint();
        let (commands, queue) = mpsc::channel(COMMANDS_MAX);
        let (settled, first) = oneshot::channel();
        let (log, clock) = (Log::default(), Clock::start());
        let heard = Arc::default();
        let mut driver = Driver::new(options, identity, clock, log.clone(), Arc::clone(&heard), queue, settled);
        driver.updater = updater;
        let task = tokio::spawn(driver.run());
        Ok(Self { commands, log, clock, cursor: 0, heard, first: Some(first), fingerprint, task })
    }

    /// Starts the glasses and waits for the session.
    ///
    /// # Errors
    /// The session cannot be opened.
    pub async fn connect(options: Options) -> Result<Self, Error> {
        let mut glasses = Self::start(options)?;
        glasses.welcomed().await?;
        Ok(glasses)
    }

    /// Waits for the first session.
    ///
    /// # Errors
    /// The first attempt failed.
    pub async fn welcomed(&mut self) -> Result<(), Error> {
        match self.first.take() {
            Some(first) => first.await.map_err(|_| Error::Over)?,
            None => Ok(()),
        }
    }

    /// Fingerprint of the key of the glasses.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Current time of the session clock in microseconds.
    pub fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// The log of events, for readers with their own position.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Waits for the next event from the reader's position on that `wanted` selects; the position moves past it.
    ///
    /// # Errors
    /// [`Error::TimedOut`].
    pub async fn wait_for(&mut self, within: Duration, wanted: impl FnMut(&Event) -> bool) -> Result<Event, Error> {
        let found = timeout(within, self.log.find(self.cursor, wanted)).await;
        let (event, next) = found.map_err(|_| Error::TimedOut(within))?;
        self.cursor = next;
        Ok(event)
    }

    /// Moves the reader's position past all events so far.
    pub fn forget(&mut self) {
        self.cursor = self.log.mark();
    }

    /// Number of the event at the reader's position.
    pub fn mark(&self) -> u64 {
        self.cursor
    }

    /// Says samples at 16 kHz and waits until the last voiced one was captured. `voiced_us` is the end of the voice
    /// from an annotation of the clip; without it, the end is detected by energy.
    ///
    /// # Errors
    /// The session is over, or the glasses have no microphone.
    pub async fn say_pcm(&self, label: &str, pcm: &[i16], voiced_us: Option<u64>) -> Result<ClipTimes, Error> {
        self.say(Clip::new(label, pcm, voiced_us)).await
    }

    /// Says a sentence with the simulator's own voice.
    ///
    /// # Errors
    /// The voice cannot be loaded, or as [`Glasses::say_pcm`].
    #[cfg(feature = "tts")]
    pub async fn say_text(&self, text: &str) -> Result<ClipTimes, Error> {
        let pcm = crate::voice::speak(text).await.map_err(Error::Voice)?;
        self.say_pcm(text, &pcm, None).await
    }

    /// Says a clip and waits until its last voiced sample was captured.
    ///
    /// # Errors
    /// The session is over, or the glasses have no microphone.
    pub async fn say(&self, clip: Clip) -> Result<ClipTimes, Error> {
        let (done, said) = oneshot::channel();
        self.send(Command::Say(clip, done)).await?;
        said.await.map_err(|_| Error::Over)
    }

    /// Uses a button.
    ///
    /// # Errors
    /// The session is over.
    pub async fn press(&self, button: ButtonId, action: ButtonAction) -> Result<(), Error> {
        self.send(Command::Button(button, action)).await
    }

    /// Touches the temple.
    ///
    /// # Errors
    /// The session is over.
    pub async fn touch(&self, gesture: Gesture) -> Result<(), Error> {
        self.send(Command::Touch(gesture)).await
    }

    /// Mutes or unmutes the microphone.
    ///
    /// # Errors
    /// The session is over.
    pub async fn mute(&self, muted: bool) -> Result<(), Error> {
        self.send(Command::Mute(muted)).await
    }

    /// Types a request.
    ///
    /// # Errors
    /// The session is over.
    pub async fn text(&self, text: &str) -> Result<(), Error> {
        self.send(Command::Text(text.to_owned())).await
    }

    /// Answers a question; a new one only once it can have been read.
    ///
    /// # Errors
    /// The session is over.
    pub async fn approve(&self, approval: u32, choice: Choice) -> Result<(), Error> {
        self.send(Command::Approve(approval, choice)).await
    }

    /// Changes the charge of the battery.
    ///
    /// # Errors
    /// The session is over.
    pub async fn battery(&self, percent: u8) -> Result<(), Error> {
        self.send(Command::Battery(percent)).await
    }

    /// Breaks the link, and a handshake that is under way, as a network failure does; it stays down until
    /// [`Glasses::reconnect`].
    ///
    /// # Errors
    /// The session is over.
    pub async fn cut(&self) -> Result<(), Error> {
        self.send(Command::Cut).await
    }

    /// Goes on in another network, from now on. Glasses that began without one use it from their next connection on.
    ///
    /// # Errors
    /// The session is over.
    pub async fn network(&self, profile: network::Profile) -> Result<(), Error> {
        self.send(Command::Network(profile)).await
    }

    /// Changes the acoustic world around the glasses from now on.
    ///
    /// # Errors
    /// The noise has no sound, or the session is over.
    pub async fn acoustics(&self, change: Change) -> Result<(), Error> {
        let ambience = match change {
            Change::Noise(Some(noise)) => Some(Ambience::prepare(noise).await.map_err(Error::Acoustics)?),
            _ => None,
        };
        self.send(Command::Acoustics(change, ambience)).await
    }

    /// Moves to another local address, as a device that roams does. QUIC goes on; other links know no such thing.
    ///
    /// # Errors
    /// The session is over.
    pub async fn rebind(&self) -> Result<(), Error> {
        self.send(Command::Rebind).await
    }

    /// Connects again, to `target` if given, perhaps over another transport.
    ///
    /// # Errors
    /// The session is over.
    pub async fn reconnect(&self, target: Option<Target>) -> Result<(), Error> {
        self.send(Command::Reconnect(target)).await
    }

    /// Sound played so far, speech by speech.
    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes the sound played so far to a WAV file; returns its length in seconds.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_heard(&self, path: &Path) -> Result<f64, Error> {
        Ok(record::write(path, &self.heard())?)
    }

    /// The speeches that fell silent because the wearer spoke, and when.
    pub fn interruptions(&self) -> Vec<Interruption> {
        record::interruptions(&self.log.since(0), &self.heard())
    }

    /// Sends a goodbye and waits until the connection is closed.
    pub async fn goodbye(self) -> Log {
        // Fails only if the driver has already ended.
        drop(self.commands.send(Command::Goodbye).await);
        drop(self.task.await);
        self.log
    }

    /// True once the session has ended permanently.
    pub fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// The text of the latest display event of the main view.
    pub fn shown(&self) -> (String, Vec<String>) {
        let events = self.log.since(0);
        let latest = events.into_iter().rev().find_map(|event| match event.seen {
            Seen::Display { view, text, lines, .. } if view == "main" => Some((text, lines)),
            _ => None,
        });
        latest.unwrap_or_default()
    }

    async fn send(&self, command: Command) -> Result<(), Error> {
        self.commands.send(command).await.map_err(|_| Error::Over)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_cut_breaks_a_connection_that_is_being_opened() {
        let gateway = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = format!("ws://{}", gateway.local_addr().unwrap()).parse().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let glasses = Glasses::start(Options::new(target, folder.path())).unwrap();
        let (mut stream, _) = gateway.accept().await.unwrap();
        glasses.cut().await.unwrap();
        // The request, to which there is no answer.
        stream.read_to_end(&mut Vec::new()).await.unwrap();
        let events = glasses.goodbye().await.since(0);
        assert!(events.is_empty(), "nobody gave up by waiting: {events:?}");
    }
}
