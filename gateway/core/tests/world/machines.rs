//! Where the machines of a world run.

use std::sync::{Arc, Mutex};

use gateway_core::{
    conversation::{self, Conversation},
    driver::{Driver, Event, Watch},
    input::{Input, UserInput},
    output::{Output, UserOutput},
    recording::{Entry, Replay},
    user::{self, User},
    vocab::Timestamp,
};

/// An output of a machine.
#[derive(Debug)]
pub enum Wanted {
    /// Of a device, by its index.
    OfDevice(usize, Output),
    OfUser(UserOutput),
}

/// One of the machines of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Device(usize),
    User,
}

/// One user's machine and those of the devices. Inputs are handled when the next output is requested.
pub trait Machines {
    fn add_device(&mut self, config: conversation::Config);

    /// Restarts all of them, with as many devices as before.
    fn restart(&mut self, device: &conversation::Config, user: &user::Config);

    fn tell_device(&mut self, device: usize, input: Input);

    fn tell_user(&mut self, input: UserInput);

    /// The next output of one of them; `None`: all inputs are handled.
    fn next(&mut self, now: Timestamp) -> Option<Wanted>;

    /// Its next timeout, in microseconds.
    fn timeout_us(&self, which: Which) -> Option<u64>;

    /// The timeout has come.
    fn wake(&mut self, which: Which, now: Timestamp);
}

/// Lines of JSON, an entry each, as a file of them has them.
type Tape = Arc<Mutex<Vec<String>>>;

#[derive(Debug)]
struct Recorder(Tape);

impl Watch<Conversation> for Recorder {
    fn see(&mut self, now: Timestamp, event: Event<'_, Conversation>) {
        let line = serde_json::to_string(&Entry::of(now, &event)).expect("JSON");
        self.0.lock().unwrap().push(line);
    }
}

/// Machines in the world itself, one after the other.
pub struct InPlace {
    user: Driver<User>,
    devices: Vec<Driver<Conversation>>,
    /// Of the devices: with them each conversation is recorded, and replayed at the end.
    tapes: Option<Vec<Tape>>,
}

impl InPlace {
    pub fn new(user: user::Config) -> Self {
        Self { user: Driver::new(User::new(user)), devices: Vec::new(), tapes: None }
    }

    /// The same, where each conversation has to do the same again from its recording.
    pub fn recorded(user: user::Config) -> Self {
        let mut machines = Self::new(user);
        machines.tapes = Some(Vec::new());
        machines
    }

    /// A conversation, and its recording on `tape`.
    fn conversation(config: &conversation::Config, tape: Option<&Tape>) -> Driver<Conversation> {
        let mut driver = Driver::new(Conversation::new(config.clone()));
        if let Some(tape) = tape {
            let settings = serde_json::to_string(&Entry::Settings(config.clone())).expect("JSON");
            tape.lock().unwrap().push(settings);
            driver.watch(Box::new(Recorder(tape.clone())));
        }
        driver
    }
}

impl Drop for InPlace {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for tape in self.tapes.take().into_iter().flatten() {
            let lines = tape.lock().unwrap();
            let mut replay = Replay::new(conversation::Config::default());
            for line in lines.iter() {
                let entry = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
                replay.step(&entry).unwrap_or_else(|difference| panic!("at {line}: {difference:?}"));
            }
            replay.ends().unwrap();
        }
    }
}

impl Machines for InPlace {
    fn add_device(&mut self, config: conversation::Config) {
        let tape = self.tapes.as_ref().map(|_| Tape::default());
        self.devices.push(Self::conversation(&config, tape.as_ref()));
        self.tapes.iter_mut().for_each(|tapes| tapes.extend(tape.clone()));
    }

    fn restart(&mut self, device: &conversation::Config, user: &user::Config) {
        self.user = Driver::new(User::new(user.clone()));
        for (index, driver) in self.devices.iter_mut().enumerate() {
            *driver = Self::conversation(device, self.tapes.as_ref().map(|tapes| &tapes[index]));
        }
    }

    fn tell_device(&mut self, device: usize, input: Input) {
        self.devices[device].push(input);
    }

    fn tell_user(&mut self, input: UserInput) {
        self.user.push(input);
    }

    fn next(&mut self, now: Timestamp) -> Option<Wanted> {
        for (index, driver) in self.devices.iter_mut().enumerate() {
            if let Some(output) = driver.poll_output(now) {
                return Some(Wanted::OfDevice(index, output));
            }
        }
        self.user.poll_output(now).map(Wanted::OfUser)
    }

    fn timeout_us(&self, which: Which) -> Option<u64> {
        match which {
            Which::Device(index) => self.devices[index].poll_timeout().map(|(at_us, _)| at_us),
            Which::User => self.user.poll_timeout().map(|(at_us, _)| at_us),
        }
    }

    fn wake(&mut self, which: Which, _now: Timestamp) {
        match which {
            Which::Device(index) => self.devices[index].push_timeout(),
            Which::User => self.user.push_timeout(),
        }
    }
}
