//! The one way in which a machine is driven: an input is handled, all that follows from it is carried out, and only then
//! comes the next input. Whatever the shell tells the machine meanwhile waits for its turn.
//!
//! ```
//! use gateway_core::{driver::Driver, input::UserInput, user::{Config, User}, vocab::Timestamp};
//!
//! let mut driver = Driver::new(User::new(Config::default()));
//! driver.push(UserInput::DeviceJoined { device: "glasses".into() });
//! let now = Timestamp::default(); // The shell reads its clocks here.
//! while let Some(output) = driver.poll_output(now) {
//!     // Carry it out. What comes of it at once is pushed, and handled when no output is left.
//! #   drop(output);
//! }
//! // Then sleep until this moment, or until something happens that is to be pushed.
//! let wake_us = driver.poll_timeout().map(|(at_us, _reason)| at_us);
//! assert_eq!(wake_us, None);
//! // When the moment has come:
//! driver.push_timeout();
//! ```

use alloc::collections::VecDeque;

use crate::vocab::Timestamp;

/// Inputs that wait at once. One event of the shell brings about far fewer: the facts of one packet, the replies to the outputs
/// that follow, an answer of the box (its events are one input). More would be a shell that answers each output with another.
const WAITING_MAX: usize = 1_024;

/// A pure state machine: inputs and the passing of time go in, outputs come out.
///
/// All outputs are taken before the next input or timeout is handled; [`Driver`] sees to it.
pub trait Machine {
    /// What may happen to it.
    type Input;
    /// What it wants to be done.
    type Output;
    /// Why it wants to be woken.
    type Timer: core::fmt::Debug;

    /// Something happened. Cannot fail: what makes no sense is ignored.
    fn handle_input(&mut self, now: Timestamp, input: Self::Input);

    /// Time has passed. Fires what is due, if anything is.
    fn handle_timeout(&mut self, now: Timestamp);

    /// What the shell is to do next; `None` when there is nothing more.
    fn poll_output(&mut self) -> Option<Self::Output>;

    /// When to call [`handle_timeout`](Self::handle_timeout), in microseconds on the monotonic clock, and why.
    fn poll_timeout(&self) -> Option<(u64, Self::Timer)>;
}

/// A machine with the queue in front of it.
///
/// The queue holds what one event of the shell and the outputs that follow bring about, at most 1,024 inputs (asserted while
/// debugging): the shell takes the next event when the queue is empty.
#[derive(Debug)]
pub struct Driver<M: Machine> {
    machine: M,
    waiting: VecDeque<Step<M::Input>>,
}

#[derive(Debug)]
enum Step<I> {
    Input(I),
    Timeout,
}

impl<M: Machine> Driver<M> {
    /// Drives this machine.
    pub fn new(machine: M) -> Self {
        Self { machine, waiting: VecDeque::new() }
    }

    /// Queues what happened. In the order of their pushes, inputs are handled by [`poll_output`](Self::poll_output).
    pub fn push(&mut self, input: M::Input) {
        debug_assert!(self.waiting.len() < WAITING_MAX, "the shell answers outputs without end");
        self.waiting.push_back(Step::Input(input));
    }

    /// Queues that time has passed.
    pub fn push_timeout(&mut self) {
        self.waiting.push_back(Step::Timeout);
    }

    /// What the shell is to do next. With `None`, every input was handled and everything that follows was taken.
    pub fn poll_output(&mut self, now: Timestamp) -> Option<M::Output> {
        loop {
            if let Some(output) = self.machine.poll_output() {
                return Some(output);
            }
            match self.waiting.pop_front()? {
                Step::Input(input) => self.machine.handle_input(now, input),
                Step::Timeout => self.machine.handle_timeout(now),
            }
        }
    }

    /// When to [`push_timeout`](Self::push_timeout), in microseconds on the monotonic clock, and why.
    pub fn poll_timeout(&self) -> Option<(u64, M::Timer)> {
        self.machine.poll_timeout()
    }

    /// Whether nothing waits to be handled.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The machine, to be looked at.
    pub fn machine(&self) -> &M {
        &self.machine
    }
}

#[cfg(test)]
mod tests {
    use alloc::{vec, vec::Vec};

    use super::*;

    /// Says each number that it is told, and all that are smaller.
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
