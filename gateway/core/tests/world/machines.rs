//! Where the machines of a world run.

use gateway_core::{
    conversation::{self, Conversation},
    driver::Driver,
    input::{Input, UserInput},
    output::{Output, UserOutput},
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

/// Machines in the world itself, one after the other.
pub struct InPlace {
    user: Driver<User>,
    devices: Vec<Driver<Conversation>>,
}

impl InPlace {
    pub fn new(user: user::Config) -> Self {
        Self { user: Driver::new(User::new(user)), devices: Vec::new() }
    }
}

impl Machines for InPlace {
    fn add_device(&mut self, config: conversation::Config) {
        self.devices.push(Driver::new(Conversation::new(config)));
    }

    fn restart(&mut self, device: &conversation::Config, user: &user::Config) {
        self.user = Driver::new(User::new(user.clone()));
        for driver in &mut self.devices {
            *driver = Driver::new(Conversation::new(device.clone()));
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
