//! Machines in tasks: the product's loop, driven in step with a world.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use gateway::runtime::drive::{Shell, drive};
use gateway_core::{
    conversation::{self, Conversation},
    driver::{Driver, Machine},
    input::{Input, UserInput},
    user::{self, User},
    vocab::Timestamp,
};
use tokio::{
    runtime::Runtime,
    sync::mpsc::{Receiver, Sender, channel},
    task::yield_now,
    time::advance,
};

use crate::world::machines::{Machines, Wanted, Which};

/// Rounds of the runtime after which tasks that have anything to do have done it: each handles all that it has in one.
const ROUNDS: usize = 4;

/// More than any dialogue has under way at one moment.
const WAITING_MAX: usize = 4_096;
/// The least step of the runtime's clock.
const TICK_US: u64 = 1_000;
/// Steps by which a task may be late.
const TICKS_LATE_MAX: usize = 2;

/// The moment, as the tasks are told.
#[derive(Clone, Copy, Default)]
struct Clock {
    now: Timestamp,
    /// Whether timers of this moment are due: behind everything that is told at it, as in the world.
    wakes: bool,
}

/// The shell of a machine whose wants the world carries out.
struct Relay<M: Machine> {
    driver: Driver<M>,
    inbox: Receiver<M::Input>,
    wanted: Sender<Wanted>,
    name: fn(usize, M::Output) -> Wanted,
    index: usize,
    clock: Arc<Mutex<Clock>>,
    timeout_us: Arc<Mutex<Option<u64>>>,
    /// An event is being handled.
    handling: bool,
    ended: bool,
}

impl<M> Shell for Relay<M>
where
    M: Machine + Send,
    M::Input: Send,
{
    type Machine = M;
    type Event = Option<M::Input>;
    type End = ();

    fn driver(&mut self) -> &mut Driver<M> {
        &mut self.driver
    }

    fn now(&self) -> Timestamp {
        let clock = *self.clock.lock().unwrap();
        let early_us = if self.handling || clock.wakes { 0 } else { 1 };
        Timestamp { mono_us: clock.now.mono_us.saturating_sub(early_us), ..clock.now }
    }

    async fn next_event(&mut self) -> Option<M::Input> {
        self.inbox.recv().await
    }

    fn handle_event(&mut self, event: Option<M::Input>) {
        self.handling = true;
        match event {
            Some(input) => self.driver.push(input),
            None => self.ended = true,
        }
    }

    fn carry_out(&mut self, output: M::Output) {
        self.wanted.try_send((self.name)(self.index, output)).unwrap();
    }

    fn settled(&mut self) {
        self.handling = false;
        *self.timeout_us.lock().unwrap() = self.driver.poll_timeout().map(|(at_us, _)| at_us);
    }

    fn end(&mut self) -> Option<()> {
        self.ended.then_some(())
    }
}

/// A task with a machine.
struct Task<I> {
    inbox: Sender<I>,
    timeout_us: Arc<Mutex<Option<u64>>>,
}

/// A user's machine and those of the devices, a task each.
pub struct InTasks {
    runtime: Runtime,
    clock: Arc<Mutex<Clock>>,
    wanted: Receiver<Wanted>,
    /// For tasks that are yet to begin.
    wants: Sender<Wanted>,
    ready: VecDeque<Wanted>,
    /// How far the runtime's clock has come, in microseconds of the world's.
    at_us: u64,
    user: Task<UserInput>,
    devices: Vec<Task<Input>>,
}

impl InTasks {
    pub fn new(config: user::Config) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (wants, wanted) = channel(WAITING_MAX);
        let clock = Arc::default();
        let user = start(&runtime, User::new(config), &wants, &clock, 0, |_, output| Wanted::OfUser(output));
        Self { runtime, clock, wanted, wants, ready: VecDeque::new(), at_us: 0, user, devices: Vec::new() }
    }

    fn device(&self, index: usize, config: conversation::Config) -> Task<Input> {
        start(&self.runtime, Conversation::new(config), &self.wants, &self.clock, index, Wanted::OfDevice)
    }

    /// Lets the tasks do what they have to do at this moment.
    fn settle(&mut self) {
        self.runtime.block_on(async {
            for _ in 0..ROUNDS {
                yield_now().await;
            }
        });
        while let Ok(wanted) = self.wanted.try_recv() {
            self.ready.push_back(wanted);
        }
    }

    /// Moves the runtime's clock on.
    fn catch_up(&mut self, at_us: u64) {
        if at_us > self.at_us {
            self.advance(at_us - self.at_us);
            self.at_us = at_us;
        }
    }

    fn advance(&mut self, us: u64) {
        self.runtime.block_on(advance(Duration::from_micros(us)));
        self.settle();
    }

    fn timeout(&self, which: Which) -> &Mutex<Option<u64>> {
        match which {
            Which::Device(index) => &self.devices[index].timeout_us,
            Which::User => &self.user.timeout_us,
        }
    }
}

fn start<M>(
    runtime: &Runtime,
    machine: M,
    wanted: &Sender<Wanted>,
    clock: &Arc<Mutex<Clock>>,
    index: usize,
    name: fn(usize, M::Output) -> Wanted,
) -> Task<M::Input>
where
    M: Machine + Send + 'static,
    M::Input: Send,
    M::Output: Send,
{
    let (inbox, messages) = channel(WAITING_MAX);
    let timeout_us = Arc::<Mutex<Option<u64>>>::default();
    let mut relay = Relay {
        driver: Driver::new(machine),
        inbox: messages,
        wanted: wanted.clone(),
        name,
        index,
        clock: clock.clone(),
        timeout_us: timeout_us.clone(),
        handling: false,
        ended: false,
    };
    #[allow(clippy::disallowed_methods)] // a runtime of the test's own
    runtime.spawn(async move { drive(&mut relay).await });
    Task { inbox, timeout_us }
}

impl Machines for InTasks {
    fn add_device(&mut self, config: conversation::Config) {
        let task = self.device(self.devices.len(), config);
        self.devices.push(task);
    }

    fn restart(&mut self, device: &conversation::Config, user: &user::Config) {
        // The channels of the older ones close, and with them the tasks end.
        let user = User::new(user.clone());
        self.user = start(&self.runtime, user, &self.wants, &self.clock, 0, |_, output| Wanted::OfUser(output));
        self.devices = (0..self.devices.len()).map(|index| self.device(index, device.clone())).collect();
        self.settle();
        self.ready.clear();
    }

    fn tell_device(&mut self, device: usize, input: Input) {
        self.devices[device].inbox.try_send(input).unwrap();
    }

    fn tell_user(&mut self, input: UserInput) {
        self.user.inbox.try_send(input).unwrap();
    }

    fn next(&mut self, now: Timestamp) -> Option<Wanted> {
        if self.ready.is_empty() {
            *self.clock.lock().unwrap() = Clock { now, wakes: false };
            self.settle();
            self.catch_up(now.mono_us.saturating_sub(TICK_US));
        }
        self.ready.pop_front()
    }

    fn timeout_us(&self, which: Which) -> Option<u64> {
        *self.timeout(which).lock().unwrap()
    }

    fn wake(&mut self, which: Which, now: Timestamp) {
        let due_us = self.timeout_us(which);
        *self.clock.lock().unwrap() = Clock { now, wakes: true };
        self.catch_up(now.mono_us);
        // The runtime counts in whole milliseconds of its own. What it is ahead by is not counted as time of the world's: else
        // each of several timeouts in a row would be later than the one before.
        let mut ticks = 0;
        while self.timeout_us(which) == due_us && self.ready.is_empty() {
            assert!(ticks < TICKS_LATE_MAX, "{which:?} sleeps through its timeout");
            self.advance(TICK_US);
            ticks += 1;
        }
    }
}
