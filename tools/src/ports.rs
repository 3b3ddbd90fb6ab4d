//! What the tools need from outside. The gateway implements these; tests bring fakes.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use gateway_core::vocab::{
    AnsweredBy, ApprovalOutcome, DisplaySize, Due, OpenEntry, Question, ScheduleEntry, ScheduleKind, Timestamp,
    ToolCall, ToolResult, Turn,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::memory::Memory;
pub use crate::port_error::PortError;

/// Everything from outside, handed to every tool.
#[derive(Clone)]
pub struct Ports {
    /// Timers and reminders.
    pub schedule: Arc<dyn Schedule>,
    /// Notes.
    pub notes: Arc<dyn Notes>,
    /// The glasses.
    pub device: Arc<dyn DeviceCall>,
    /// Questions to the wearer.
    pub consent: Arc<dyn Consent>,
    /// Mini-apps.
    pub apps: Arc<dyn AppHost>,
    /// Facts, standing instructions, conversations, skills.
    pub memory: Memory,
    /// The only source of time.
    pub clock: Arc<dyn Clock>,
    /// How the wearer wants things said.
    pub style: Style,
}

/// How the wearer wants things said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Twelve or twenty-four hours.
    pub hours: Hours,
}

/// Twelve or twenty-four hours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hours {
    /// "5:20 PM".
    #[default]
    Twelve,
    /// "17:20".
    TwentyFour,
}

/// Timers and reminders. Every change is durably stored before the call returns.
#[async_trait]
pub trait Schedule: Send + Sync {
    /// Adds an entry.
    async fn add(&self, user: &str, due: Due, kind: ScheduleKind, text: &str) -> Result<ScheduleEntry, PortError>;
    /// All entries that are not yet done, in any order.
    async fn list(&self, user: &str) -> Result<Vec<OpenEntry>, PortError>;
    /// Removes an entry; `None` when there was none.
    async fn remove(&self, user: &str, id: u64) -> Result<Option<ScheduleEntry>, PortError>;
}

/// A note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Unique within the user.
    pub id: u64,
    /// One line of text.
    pub text: String,
    /// When it was taken, in milliseconds since the Unix epoch.
    pub created_wall_ms: i64,
}

/// Notes. Every change is durably stored before the call returns.
#[async_trait]
pub trait Notes: Send + Sync {
    /// Keeps a note.
    async fn add(&self, user: &str, text: &str) -> Result<Note, PortError>;
    /// The newest notes, newest first, at most `limit`.
    async fn list(&self, user: &str, limit: usize) -> Result<Vec<Note>, PortError>;
    /// Notes that match by [`crate::matching::matches`], newest first, at most `limit`.
    async fn search(&self, user: &str, query: &str, limit: usize) -> Result<Vec<Note>, PortError>;
    /// Deletes a note; `None` when there was none.
    async fn delete(&self, user: &str, id: u64) -> Result<Option<Note>, PortError>;
    /// Deletes all notes; how many there were.
    async fn clear(&self, user: &str) -> Result<usize, PortError>;
}

/// What is known of a pair of glasses at this moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceStatus {
    /// The name that its owner gave it.
    pub name: String,
    /// Model.
    pub model: String,
    /// Version of the firmware.
    pub firmware: String,
    /// Charge from 0 to 100, where the device tells.
    pub battery_percent: Option<u8>,
    /// Whether it is on a charger, where the device tells.
    pub charging: Option<bool>,
    /// How it is connected, in a word or two that can be spoken: "Wi-Fi", "WebSocket".
    pub connection: String,
    /// Present when it can draw.
    pub display: Option<DisplaySize>,
    /// Whether its microphone is off.
    pub muted: bool,
}

/// Calls to the glasses' own tools.
#[async_trait]
pub trait DeviceCall: Send + Sync {
    /// Runs a tool on the device, for this turn or for a call from outside. Ends in a result in any case: a device that is gone is
    /// `APP_NOT_AVAILABLE`, one that does not answer within `deadline` is `TIMEOUT`. A call that is cancelled, or
    /// that nobody waits for any more, is told to the device, whose result is still waited for.
    async fn call(
        &self,
        device: &str,
        turn: Option<Turn>,
        call: ToolCall,
        deadline: Duration,
        cancel: CancellationToken,
    ) -> ToolResult;
    /// What is known of the device; `None` when it is not connected.
    fn status(&self, device: &str) -> Option<DeviceStatus>;
}

/// A question to the wearer, bound to exactly one call.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsentRequest {
    /// Whose consent.
    pub user: String,
    /// The device on which the call was wished for; only there it can be agreed to.
    pub device: String,
    /// The turn that the call belongs to; `None`: any device of the user may be asked.
    pub turn: Option<Turn>,
    /// Id of the call that waits for it.
    pub call_id: String,
    /// Full name of the tool.
    pub tool: String,
    /// The question.
    pub question: Question,
    /// Exactly the arguments that would be used.
    pub arguments: Value,
    /// [`crate::executor::arguments_hash`] of tool and arguments.
    pub arguments_hash: u64,
}

/// How a question was settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Yes, no, or neither.
    pub outcome: ApprovalOutcome,
    /// By whom, and how.
    pub by: AnsweredBy,
    /// The device that was asked, where one was.
    pub device: Option<String>,
}

impl From<ApprovalOutcome> for Decision {
    /// An outcome that nobody brought about.
    fn from(outcome: ApprovalOutcome) -> Self {
        Self { outcome, by: AnsweredBy::Nobody, device: None }
    }
}

/// Questions to the wearer.
#[async_trait]
pub trait Consent: Send + Sync {
    /// Asks, and waits until the question is settled. When `cancel` fires, the question is taken
    /// back and the outcome is `Cancelled`.
    async fn ask(&self, request: ConsentRequest, cancel: CancellationToken) -> Decision;
}

/// The life of mini-apps.
#[async_trait]
pub trait AppHost: Send + Sync {
    /// Makes sure that a user's app runs and can draw: its socket has been acknowledged. Answers
    /// whether it had to be started for this.
    ///
    /// # Errors
    /// It is not installed, its server does not answer, or it was not ready within `deadline`.
    async fn activate(&self, user: &str, package: &str, deadline: Duration) -> Result<bool, PortError>;
    /// Stops a user's app and waits until it is gone. Answers whether it ran.
    ///
    /// # Errors
    /// It could not be stopped.
    async fn stop(&self, user: &str, package: &str) -> Result<bool, PortError> {
        let _ = (user, package);
        Ok(false)
    }
    /// All installed apps, by package.
    ///
    /// # Errors
    /// What is installed is not known at the moment.
    async fn list(&self, user: &str) -> Result<Vec<AppEntry>, PortError> {
        let _ = user;
        Ok(Vec::new())
    }
}

/// An installed mini-app, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppEntry {
    /// Its package.
    pub package: String,
    /// Name that the wearer says.
    pub name: String,
    /// What it does, in a sentence.
    pub description: String,
    /// Whether it runs for the user.
    pub running: bool,
}

/// A box without mini-apps.
pub struct NoApps;

#[async_trait]
impl AppHost for NoApps {
    async fn activate(&self, _user: &str, package: &str, _deadline: Duration) -> Result<bool, PortError> {
        Err(PortError::Unavailable(format!("no mini-app {package} is installed")))
    }
}

/// The only source of time: no tool reads a clock by itself.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
    /// The wearer's time zone.
    fn zone(&self) -> jiff::tz::TimeZone;
}
