//! The state of one wearer that outlives a connection: history, timers and reminders, and which device has the turn.

mod approvals;
mod compaction;
mod entries;
mod history;
mod routing;
mod schedule;
pub mod summary;
mod turns;
mod unkept;
mod wording;

use alloc::{collections::VecDeque, string::String, vec::Vec};

use self::{
    approvals::PendingApprovals,
    compaction::StoredSummary,
    history::History,
    routing::ModelRouter,
    schedule::{Schedule, State},
    turns::Turns,
    unkept::UnkeptMessages,
};
pub use self::{
    compaction::Config as Compaction,
    routing::{Model, Price},
};
use crate::{
    driver::Machine,
    input::{RunningTimer, Spending, UserInput},
    limits::DEVICES_MAX,
    output::{Record, UserOutput},
    timers::UserTimer,
    vocab::{AnsweredBy, Approval, ApprovalOutcome, Message, OpenEntry, ScheduleChange, Timestamp, Turn},
};

/// Settings of a user. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// A device that has held the turn for this long counts as gone. Must exceed the longest answer.
    pub turn_ms_max: u32,
    /// A device that was given an announcement and has reported nothing for this long counts as gone.
    pub offer_ms_max: u32,
    /// Time until an announcement that no device delivered is offered again.
    pub offer_again_ms: u32,
    /// How much of a long conversation a model is given.
    pub compaction: Compaction,
    /// The models that may be asked, best first; at most [`MODELS_MAX`](crate::limits::MODELS_MAX) are used. Empty: one
    /// with default settings.
    pub models: Vec<Model>,
    /// The budget of one day, in billionths of the currency unit; `None`: unlimited.
    pub nano_per_day: Option<u64>,
    /// A pause of this length ends the conversation.
    pub pause_ms: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            turn_ms_max: 300_000,
            offer_ms_max: 300_000,
            offer_again_ms: 30_000,
            compaction: Compaction::default(),
            models: Vec::new(),
            nano_per_day: None,
            pause_ms: 1_800_000,
        }
    }
}

/// What a user's machine waits for while no device is connected and nothing is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quiescence {
    /// For nothing. A new machine that is restored from the store takes its place at any time.
    Idle,
    /// For a timer or reminder that is stored, or for the first words of a new conversation.
    Pending,
}

/// The machine of one user, to be driven by a [`Driver`](crate::driver::Driver).
#[derive(Debug)]
pub struct User {
    config: Config,
    now: Timestamp,
    out: VecDeque<UserOutput>,
    restored: bool,
    next_id: u64,
    last_ticket: u64,
    history: History,
    models: ModelRouter,
    schedule: Schedule,
    turns: Turns,
    unkept: UnkeptMessages,
    approvals: PendingApprovals,
    /// Connected devices, the most recently active first.
    devices: Vec<String>,
    /// The timers that were last reported to them.
    running: Vec<RunningTimer>,
}

impl User {
    /// A user without history, entries or devices.
    pub fn new(config: Config) -> Self {
        Self {
            models: ModelRouter::new(&config.models, config.nano_per_day),
            config,
            now: Timestamp::default(),
            out: VecDeque::new(),
            restored: false,
            next_id: 1,
            last_ticket: 0,
            history: History::default(),
            schedule: Schedule::default(),
            turns: Turns::default(),
            unkept: UnkeptMessages::default(),
            approvals: PendingApprovals::default(),
            devices: Vec::new(),
            running: Vec::new(),
        }
    }

    /// Timers and reminders that are pending or ringing.
    pub fn entries(&self, now: Timestamp) -> Vec<OpenEntry> {
        self.schedule.open(now)
    }

    /// What it waits for while it is quiescent; `None`: a device is connected, or something is in progress that is not
    /// stored.
    pub fn quiescence(&self) -> Option<Quiescence> {
        let at_rest = self.restored
            && self.out.is_empty()
            && self.devices.is_empty()
            && self.turns.is_empty()
            && self.approvals.deadline().is_none()
            && self.schedule.is_stored();
        let pending = !self.schedule.items.is_empty() || self.history.has_wish();
        at_rest.then_some(if pending { Quiescence::Pending } else { Quiescence::Idle })
    }

    /// Everything that follows from the state and the time; runs after every input.
    fn go_on(&mut self) {
        for entry in self.schedule.corrected(self.now) {
            self.persist(Record::Entry(entry));
        }
        self.turns.expire(self.now.mono_us);
        let expired = self.approvals.expire(self.now.mono_us);
        self.out.extend(expired.into_iter().map(UserOutput::ApprovalSettled));
        let until_us = self.after(self.config.turn_ms_max);
        if let Some((device, turn)) = self.turns.grant(until_us) {
            self.history.pause(self.now.wall_ms, self.config.pause_ms);
            let (history, route) = (self.history.for_model(&self.config.compaction), self.models.route(self.now));
            self.out.push_back(UserOutput::Grant { device, turn, history, route });
        }
        self.schedule.ring(self.now);
        self.tell_timers();
        self.drop_heard();
        self.offer();
    }

    fn persist(&mut self, record: Record) -> u64 {
        self.last_ticket = self.last_ticket.saturating_add(1);
        let ticket = self.last_ticket;
        self.out.push_back(UserOutput::Persist { ticket, record });
        ticket
    }

    fn after(&self, delay_ms: u32) -> u64 {
        self.now.mono_us.saturating_add(u64::from(delay_ms).saturating_mul(1_000))
    }
}

impl Machine for User {
    type Input = UserInput;
    type Output = UserOutput;
    type Timer = UserTimer;

    fn handle_input(&mut self, now: Timestamp, input: UserInput) {
        debug_assert!(self.out.is_empty(), "an input came before all outputs were taken");
        self.now = now;
        match input {
            UserInput::Restored { summary, history, last_wall_ms, schedule, next_id, spending } if !self.restored => {
                self.restored = true;
                self.history.restore(summary, history, last_wall_ms);
                self.next_id = self.next_id.max(next_id);
                self.schedule.restore(now, schedule);
                self.models.restore(spending);
            }
            UserInput::Restored { .. } => {}
            UserInput::DeviceJoined { device } => self.device_joined(device),
            UserInput::DeviceLeft { device } => self.device_left(&device),
            UserInput::Undelivered { text } => self.undelivered(text),
            UserInput::TurnRequested { device, turn } => {
                self.active(&device);
                self.turns.request(device, turn);
            }
            UserInput::TurnDone { device, turn, messages } => self.turn_done(&device, turn, messages),
            UserInput::Schedule { request, change: ScheduleChange::Add { due, kind } } => {
                self.schedule_add(request, due, kind);
            }
            UserInput::Schedule { request, change: ScheduleChange::Remove { id } } => self.schedule_remove(request, id),
            UserInput::Schedule { request, change: ScheduleChange::Extend { id, more_ms } } => {
                self.schedule_extend(request, id, more_ms);
            }
            UserInput::Persisted { ticket } => self.persisted(ticket),
            UserInput::PersistFailed { ticket, reason } => self.persist_failed(ticket, reason),
            UserInput::Announced { device, id, heard } => self.announced(&device, id, heard),
            UserInput::ModelUsed { rank, usage, outcome } => {
                let spent = self.models.used(now, rank, usage, outcome);
                self.spent(spent);
            }
            UserInput::FallbackTold { reason, level } => self.models.told(reason, level),
            UserInput::Summarised { request, text, rank, usage } => {
                let spent = self.models.spent(now, rank, usage);
                self.spent(spent);
                let kept = self.history.handle_summarised(now.mono_us, &self.config.compaction, request, text);
                if let Some(StoredSummary { text, behind }) = kept {
                    self.persist(Record::Summary { text, behind });
                }
            }
            UserInput::ClearHistory => {
                self.history.clear();
                self.persist(Record::HistoryCleared);
            }
            // During a turn: the request was made in that turn, which still belongs to the old conversation.
            UserInput::NewConversation if self.turns.deadline().is_some() => self.history.end(),
            UserInput::NewConversation => self.history.begin(),
            UserInput::HistoryErased => self.history.begin(),
            UserInput::ApprovalAsked { approval, watched } => self.approval_asked(approval, watched),
            UserInput::ApprovalAnswered { id, choice } => {
                let settled = self.approvals.settle(id, choice.into(), AnsweredBy::Operator);
                self.out.extend(settled.map(UserOutput::ApprovalSettled));
            }
            UserInput::ApprovalWithdrawn { id } => {
                let settled = self.approvals.settle(id, ApprovalOutcome::Cancelled, AnsweredBy::Nobody);
                self.out.extend(settled.map(UserOutput::ApprovalSettled));
            }
        }
        self.go_on();
    }

    fn poll_output(&mut self) -> Option<UserOutput> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<(u64, UserTimer)> {
        let schedule = self.schedule.deadline(self.now).map(|at_us| (at_us, UserTimer::Schedule));
        let turn = self.turns.deadline().map(|at_us| (at_us, UserTimer::TurnHeld));
        let question = self.approvals.deadline().map(|at_us| (at_us, UserTimer::ApprovalExpired));
        [schedule, turn, question].into_iter().flatten().min_by_key(|(at_us, _)| *at_us)
    }

    fn handle_timeout(&mut self, now: Timestamp) {
        debug_assert!(self.out.is_empty(), "a timeout came before all outputs were taken");
        self.now = now;
        self.go_on();
    }
}

/// Devices and their turns.
impl User {
    fn device_joined(&mut self, device: String) {
        // It begins anew, and has forgotten its turn and what it was to announce. Of the session that it has replaced nobody
        // is told that it left.
        if self.devices.contains(&device) {
            self.device_left(&device);
        }
        if self.devices.len() < DEVICES_MAX {
            self.devices.push(device.clone());
            // None as well: a device that was away may still show those that were taken back meanwhile.
            self.out.push_back(UserOutput::Timers { device: device.clone(), running: self.running.clone() });
            for approval in self.approvals.take_all() {
                self.out.push_back(UserOutput::Ask { device: Some(device.clone()), approval });
            }
        }
        for item in &mut self.schedule.items {
            if let State::Ringing(ringing) = &mut item.state {
                ringing.tried.retain(|tried| *tried != device);
            }
        }
    }

    fn device_left(&mut self, device: &str) {
        self.devices.retain(|known| known != device);
        self.turns.left(device);
        for item in &mut self.schedule.items {
            if let State::Ringing(ringing) = &mut item.state
                && ringing.offered.as_ref().is_some_and(|(to, _)| to == device)
            {
                ringing.offered = None;
            }
        }
    }

    fn active(&mut self, device: &str) {
        if let Some(index) = self.devices.iter().position(|known| known == device) {
            let device = self.devices.remove(index);
            self.devices.insert(0, device);
        }
    }

    fn turn_done(&mut self, device: &str, turn: Turn, messages: Vec<Message>) {
        self.turns.done(device, turn);
        if !messages.is_empty() {
            if self.history.add(messages.iter().cloned(), self.now.wall_ms) {
                self.persist(Record::ConversationBegan);
            }
            let ticket = self.persist(Record::Messages(messages));
            self.unkept.submitted(ticket);
        }
        // Between two turns no device waits for it.
        if let Some(rank) = self.models.summariser(self.now)
            && let Some((request, messages)) = self.history.consider(self.now.mono_us, &self.config.compaction)
        {
            self.out.push_back(UserOutput::Summarise { request, rank, messages });
        }
    }

    fn spent(&mut self, today: Option<Spending>) {
        if let Some(today) = today {
            self.persist(Record::Spending(today));
        }
    }
}

/// Consent to calls from outside.
impl User {
    fn approval_asked(&mut self, approval: Approval, watched: bool) {
        if let Some(device) = self.devices.first().cloned() {
            self.out.push_back(UserOutput::Ask { device: Some(device), approval });
        } else if !watched {
            let settled = approval.settled(ApprovalOutcome::Unasked, AnsweredBy::Nobody);
            self.out.push_back(UserOutput::ApprovalSettled(settled));
        } else {
            let asked = match self.approvals.keep(self.now, approval.clone()) {
                Ok(()) => UserOutput::Ask { device: None, approval },
                Err(settled) => UserOutput::ApprovalSettled(settled),
            };
            self.out.push_back(asked);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::{
        driver::Driver,
        input::AnnouncementId,
        vocab::{Due, ScheduleEntry, ScheduleKind},
    };

    /// Handles an input; all outputs.
    fn outputs(driver: &mut Driver<User>, input: UserInput) -> Vec<UserOutput> {
        let now = Timestamp { mono_us: 1, ..Timestamp::default() };
        driver.push(input);
        core::iter::from_fn(|| driver.poll_output(now)).collect()
    }

    /// Handles an input; the ticket of the last record that was to be stored.
    fn handle(driver: &mut Driver<User>, input: UserInput) -> u64 {
        let tickets = outputs(driver, input).into_iter().rev().find_map(|output| match output {
            UserOutput::Persist { ticket, .. } => Some(ticket),
            _ => None,
        });
        tickets.unwrap_or_default()
    }

    #[test]
    fn a_device_that_begins_anew_holds_no_turn_and_is_told_everything_again() {
        let mut driver = Driver::new(User::new(Config::default()));
        let entry = |id, kind, due_wall_ms, duration_ms| ScheduleEntry { id, kind, due_wall_ms, duration_ms };
        let schedule = vec![
            entry(1, ScheduleKind::Reminder { text: "oven".into() }, 0, None),
            entry(2, ScheduleKind::timer("tea".into()), 600_000, Some(600_000)),
        ];
        let (summary, history, last_wall_ms, next_id, spending) = (None, Vec::new(), None, 3, Vec::new());
        handle(&mut driver, UserInput::Restored { summary, history, last_wall_ms, schedule, next_id, spending });
        let joined = || UserInput::DeviceJoined { device: "glasses".into() };
        let turn = Turn { id: 1, revision: 0 };
        outputs(&mut driver, joined());
        // The reminder was not heard on them, and is told them again after a while.
        outputs(&mut driver, UserInput::Announced { device: "glasses".into(), id: 1, heard: false });
        outputs(&mut driver, UserInput::TurnRequested { device: "glasses".into(), turn });
        outputs(&mut driver, UserInput::DeviceJoined { device: "phone".into() });
        outputs(&mut driver, UserInput::Announced { device: "phone".into(), id: 1, heard: false });
        let waits = outputs(&mut driver, UserInput::TurnRequested { device: "phone".into(), turn });
        assert!(waits.is_empty(), "{waits:?}");
        // Their older session still stood.
        let told = outputs(&mut driver, joined());
        let timers = |output: &UserOutput| matches!(output, UserOutput::Timers { device, running } if device == "glasses" && running.len() == 1);
        assert!(told.iter().any(timers), "{told:?}");
        let granted = |output: &UserOutput| matches!(output, UserOutput::Grant { device, .. } if device == "phone");
        assert!(told.iter().any(granted), "{told:?}");
        let announced = |output: &UserOutput| matches!(output, UserOutput::Announce { device, announcement } if device == "glasses" && announcement.id == AnnouncementId::Schedule(1));
        assert!(told.iter().any(announced), "{told:?}");
        // What they were to announce is theirs again as well.
        assert!(outputs(&mut driver, joined()).iter().any(announced));
    }

    #[test]
    fn a_user_is_at_rest_when_nobody_is_connected_and_everything_is_stored() {
        let mut driver = Driver::new(User::new(Config::default()));
        assert_eq!(driver.machine().quiescence(), None, "not restored yet");
        let (summary, history, spending) = (None, Vec::new(), Vec::new());
        let (last_wall_ms, schedule, next_id) = (None, Vec::new(), 1);
        handle(&mut driver, UserInput::Restored { summary, history, last_wall_ms, schedule, next_id, spending });
        assert_eq!(driver.machine().quiescence(), Some(Quiescence::Idle));
        handle(&mut driver, UserInput::DeviceJoined { device: "glasses".into() });
        assert_eq!(driver.machine().quiescence(), None);
        handle(&mut driver, UserInput::DeviceLeft { device: "glasses".into() });
        assert_eq!(driver.machine().quiescence(), Some(Quiescence::Idle));
        let (due, kind) = (Due::At { wall_ms: 1_000 }, ScheduleKind::Reminder { text: "oven".into() });
        let ticket = handle(&mut driver, UserInput::Schedule { request: 1, change: ScheduleChange::Add { due, kind } });
        assert_eq!(driver.machine().quiescence(), None, "promised to nobody yet");
        handle(&mut driver, UserInput::Persisted { ticket });
        assert_eq!(driver.machine().quiescence(), Some(Quiescence::Pending));
        let ticket = handle(&mut driver, UserInput::Schedule { request: 2, change: ScheduleChange::Remove { id: 1 } });
        assert_eq!(driver.machine().quiescence(), None);
        handle(&mut driver, UserInput::Persisted { ticket });
        assert_eq!(driver.machine().quiescence(), Some(Quiescence::Idle));
        handle(&mut driver, UserInput::NewConversation);
        assert_eq!(driver.machine().quiescence(), Some(Quiescence::Pending), "the store does not know of the wish");
    }
}
