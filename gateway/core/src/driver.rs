//! How a machine is driven: an input is handled, all resulting outputs are carried out, and only then the next input is
//! handled. Inputs that the shell pushes meanwhile are queued.
//!
//! ```
//! use gateway_core::{driver::Driver, input::UserInput, user::{Config, User}, vocab::Timestamp};
//!
//! let mut driver = Driver::new(User::new(Config::default()));
//! driver.push(UserInput::DeviceJoined { device: "glasses".into() });
//! let now = Timestamp::default(); // The shell reads its clocks here.
//! while let Some(output) = driver.poll_output(now) {
//!     // Carry it out. Immediate results are pushed, and handled when no output is left.
//! #   drop(output);
//! }
//! // Then sleep until this moment, or until something happens that is to be pushed.
//! let wake_us = driver.poll_timeout().map(|(at_us, _reason)| at_us);
//! assert_eq!(wake_us, None);
//! // When the moment has come:
//! driver.push_timeout();
//! ```

use alloc::{boxed::Box, collections::VecDeque};

use crate::vocab::Timestamp;

/// Queued inputs. One event of the shell causes far fewer: the facts of one packet, the replies to the resulting
/// outputs, a local answer (its events are one input). More indicates a shell that answers each output with another
/// input.
const WAITING_MAX: usize = 1_024;

/// A pure state machine: takes inputs and timeouts, produces outputs.
///
/// All outputs are taken before the next input or timeout is handled; [`Driver`] guarantees this.
pub trait Machine {
    /// What has happened outside of it: all that it may learn besides the time.
    type Input;
    /// Effects for the shell to carry out.
    type Output;
    /// Reason for a wake-up.
    type Timer: core::fmt::Debug;

    /// Handles an input. Cannot fail: an input that does not fit the state is ignored.
    fn handle_input(&mut self, now: Timestamp, input: Self::Input);

    /// Fires the timers that are due, if any.
    fn handle_timeout(&mut self, now: Timestamp);

    /// The next effect for the shell; `None` if there is none.
    fn poll_output(&mut self) -> Option<Self::Output>;

    /// When to call [`handle_timeout`](Self::handle_timeout), in microseconds on the monotonic clock, and why.
    fn poll_timeout(&self) -> Option<(u64, Self::Timer)>;
}

/// What a driver does with its machine, in order. With nothing else but its settings, a machine does the same again.
pub enum Event<'a, M: Machine> {
    /// This input is about to be handled.
    Input(&'a M::Input),
    /// The timers that are due are about to be fired.
    Timeout,
    /// The machine has put this out.
    Output(&'a M::Output),
}

/// Watches a driver, for example to record it.
pub trait Watch<M: Machine>: core::fmt::Debug + Send {
    /// Sees an event, and when it happens.
    fn see(&mut self, now: Timestamp, event: Event<'_, M>);
}

/// A machine with an input queue.
///
/// The queue holds the inputs caused by one event of the shell and the outputs that follow, at most 1,024 (a debug
/// assertion): the shell takes the next event when the queue is empty.
#[derive(Debug)]
pub struct Driver<M: Machine> {
    machine: M,
    waiting: VecDeque<Step<M::Input>>,
    watch: Option<Box<dyn Watch<M>>>,
}

#[derive(Debug)]
enum Step<I> {
    Input(I),
    Timeout,
}

impl<M: Machine> Driver<M> {
    /// Wraps this machine.
    pub fn new(machine: M) -> Self {
        Self { machine, waiting: VecDeque::new(), watch: None }
    }

    /// Has everything from now on watched.
    pub fn watch(&mut self, watch: Box<dyn Watch<M>>) {
        self.watch = Some(watch);
    }

    /// Queues an input. [`poll_output`](Self::poll_output) handles inputs in the order of their pushes.
    pub fn push(&mut self, input: M::Input) {
        debug_assert!(self.waiting.len() < WAITING_MAX, "the shell answers outputs without end");
        self.waiting.push_back(Step::Input(input));
    }

    /// Queues a timeout.
    pub fn push_timeout(&mut self) {
        self.waiting.push_back(Step::Timeout);
    }

    /// The next effect for the shell. `None`: every input was handled and every output was taken.
    pub fn poll_output(&mut self, now: Timestamp) -> Option<M::Output> {
        loop {
            if let Some(output) = self.machine.poll_output() {
                self.see(now, Event::Output(&output));
                return Some(output);
            }
            match self.waiting.pop_front()? {
                Step::Input(input) => {
                    self.see(now, Event::Input(&input));
                    self.machine.handle_input(now, input);
                }
                Step::Timeout => {
                    self.see(now, Event::Timeout);
                    self.machine.handle_timeout(now);
                }
            }
        }
    }

    fn see(&mut self, now: Timestamp, event: Event<'_, M>) {
        if let Some(watch) = &mut self.watch {
            watch.see(now, event);
        }
    }

    /// When to [`push_timeout`](Self::push_timeout), in microseconds on the monotonic clock, and why.
    pub fn poll_timeout(&self) -> Option<(u64, M::Timer)> {
        self.machine.poll_timeout()
    }

    /// Whether the queue is empty.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The machine, for inspection.
    pub fn machine(&self) -> &M {
        &self.machine
    }
}

#[cfg(test)]
mod tests {
    use alloc::{vec, vec::Vec};

    use super::*;

    /// Outputs each number that it receives, and all smaller ones.
    #[derive(Default)]
    struct Countdown {
        out: VecDeque<u32>,
        due_us: Option<u64>,
    }

    impl Machine for Countdown {
        type Input = u32;
        type Output = u32;
        type Timer = ();

        fn handle_input(&mut self, now: Timestamp, from: u32) {
            assert!(self.out.is_empty(), "an input came before all outputs were taken");
            self.out.extend((0..=from).rev());
            self.due_us = Some(now.mono_us + 1);
        }

        fn handle_timeout(&mut self, _: Timestamp) {
            assert!(self.out.is_empty(), "a timeout came before all outputs were taken");
            self.due_us = None;
            self.out.push_back(1_000);
        }

        fn poll_output(&mut self) -> Option<u32> {
            self.out.pop_front()
        }

        fn poll_timeout(&self) -> Option<(u64, ())> {
            self.due_us.map(|at_us| (at_us, ()))
        }
    }

    #[test]
    fn what_is_pushed_while_outputs_are_carried_out_waits_for_all_of_them() {
        let mut driver = Driver::new(Countdown::default());
        driver.push(2);
        driver.push_timeout();
        let mut said = Vec::new();
        while let Some(output) = driver.poll_output(Timestamp::default()) {
            if output == 2 {
                driver.push(1);
                assert!(!driver.is_idle());
            }
            said.push(output);
        }
        assert_eq!(said, vec![2, 1, 0, 1_000, 1, 0]);
        assert!(driver.is_idle());
        assert_eq!(driver.poll_timeout(), Some((1, ())));
    }
}
