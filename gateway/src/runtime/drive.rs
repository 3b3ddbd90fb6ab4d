//! The loop of a task that drives a machine: an event, all outputs of the machine for it, the next event.

use std::{future::Future, time::Duration};

use gateway_core::{
    driver::{Driver, Machine},
    vocab::Timestamp,
};

/// The environment of a machine: supplies its events and carries out its outputs.
///
/// Inputs that arise while an event is handled or an output is carried out are pushed to the driver, and handled in
/// order.
pub trait Shell {
    /// The core's part of the task, which decides what is done.
    type Machine: Machine;
    /// What the task waits for: a message, a frame, or the stop.
    type Event;
    /// Why the loop ends.
    type End;

    /// The machine's driver.
    fn driver(&mut self) -> &mut Driver<Self::Machine>;

    /// The time that the machine is given; read again for each step.
    fn now(&self) -> Timestamp;

    /// Waits for the next event. Cancel safe: no event is lost.
    fn next_event(&mut self) -> impl Future<Output = Self::Event> + Send;

    /// Turns an event into inputs of the machine, which are pushed to the driver.
    fn handle_event(&mut self, event: Self::Event);

    /// Carries out an output of the machine.
    fn carry_out(&mut self, output: <Self::Machine as Machine>::Output);

    /// All outputs are carried out: the shell does its own due work.
    fn settled(&mut self) {}

    /// When [`tick`](Self::tick) is due, in microseconds on the monotonic clock.
    fn next_tick_us(&self) -> Option<u64> {
        None
    }

    /// Time has passed; called before the machine is informed.
    fn tick(&mut self) {}

    /// The reason to end the loop, if any.
    fn end(&mut self) -> Option<Self::End>;
}

/// Runs until the shell ends the loop.
pub async fn drive<S: Shell>(shell: &mut S) -> S::End {
    loop {
        settle(shell);
        if let Some(end) = shell.end() {
            return end;
        }
        let tick_us = shell.next_tick_us();
        let timeout_us = shell.driver().poll_timeout().map(|(at_us, _)| at_us);
        let wake_us = tick_us.into_iter().chain(timeout_us).min();
        let wait = wake_us.map(|at_us| Duration::from_micros(at_us.saturating_sub(shell.now().mono_us)));
        tokio::select! {
            biased;
            event = shell.next_event() => shell.handle_event(event),
            () = sleep(wait) => {
                // Read first: for `tick`, which runs later, all is due that is due here.
                let now_us = shell.now().mono_us;
                shell.tick();
                if let Some((_, timer)) = shell.driver().poll_timeout().filter(|(at_us, _)| *at_us <= now_us) {
                    tracing::trace!(?timer, "due");
                    shell.driver().push_timeout();
                }
            }
        }
    }
}

/// Carries out all outputs of the pushed inputs.
pub fn settle<S: Shell>(shell: &mut S) {
    loop {
        let now = shell.now();
        while let Some(output) = shell.driver().poll_output(now) {
            shell.carry_out(output);
        }
        shell.settled();
        if shell.driver().is_idle() {
            return;
        }
    }
}

/// Sleeps for this time; `None`: indefinitely.
async fn sleep(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}
