//! The loop of a task that drives a machine: one event, all that the machine makes of it, the next event.

use std::{future::Future, time::Duration};

use gateway_core::{
    driver::{Driver, Machine},
    vocab::Timestamp,
};

/// What a machine is driven by, and who carries out what it wants.
///
/// Whatever is learnt while an event is handled or an output is carried out is pushed to the driver, and handled when its
/// turn comes.
pub trait Shell {
    /// The machine.
    type Machine: Machine;
    /// What may happen outside of it.
    type Event;
    /// Why the loop ends.
    type End;

    /// The machine, driven.
    fn driver(&mut self) -> &mut Driver<Self::Machine>;

    /// The moment.
    fn now(&self) -> Timestamp;

    /// Waits for what happens next. May be dropped at any time without losing an event.
    fn next_event(&mut self) -> impl Future<Output = Self::Event> + Send;

    /// Something happened.
    fn handle_event(&mut self, event: Self::Event);

    /// The machine wants this.
    fn carry_out(&mut self, output: <Self::Machine as Machine>::Output);

    /// Everything that the machine wanted is done: the shell does what is due of its own.
    fn settled(&mut self) {}

    /// When [`tick`](Self::tick) is due, in microseconds on the monotonic clock.
    fn next_tick_us(&self) -> Option<u64> {
        None
    }

    /// Time has passed; the machine is told next.
    fn tick(&mut self) {}

    /// Whether the loop is to end.
    fn end(&mut self) -> Option<Self::End>;
}

/// Runs until the shell says that it ends.
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
                shell.tick();
                let now_us = shell.now().mono_us;
                if let Some((_, timer)) = shell.driver().poll_timeout().filter(|(at_us, _)| *at_us <= now_us) {
                    tracing::trace!(?timer, "due");
                    shell.driver().push_timeout();
                }
            }
        }
    }
}

/// Carries out everything that the machine makes of what was pushed.
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

/// For so long, or for ever.
async fn sleep(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}
