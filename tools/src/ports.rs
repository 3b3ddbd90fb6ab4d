//! Interfaces to everything outside of the tools. The gateway implements them; tests use fakes.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use gateway_core::vocab::{
    AnsweredBy, ApprovalOutcome, DisplaySize, Due, MicrophoneFault, OpenEntry, Question, ScheduleEntry, ScheduleKind,
    Timestamp, ToolCall, ToolResult, Turn,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::memory::Memory;
pub use crate::port_error::PortError;

/// All ports, passed to every tool.
#[derive(Clone)]
pub struct Ports {
    /// Timers and reminders.
    pub schedule: Arc<dyn Schedule>,
    /// What wearers have noted.
    pub notes: Arc<dyn Notes>,
    /// Calls to the wearer's glasses.
    pub device: Arc<dyn DeviceCall>,
    /// Questions to the wearer.
    pub consent: Arc<dyn Consent>,
    /// Mini-apps.
    pub apps: Arc<dyn AppHost>,
    /// Facts, standing instructions, conversations, skills.
    pub memory: Memory,
    /// The only source of time.
    pub clock: Arc<dyn Clock>,
    /// The wearer's preferences for spoken text.
    pub style: Style,
}

/// The wearer's preferences for spoken text.
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
    async fn add(&self, user: &str, due: Due, kind: ScheduleKind) -> Result<ScheduleEntry, PortError>;
    /// All pending entries, in any order.
    async fn list(&self, user: &str) -> Result<Vec<OpenEntry>, PortError>;
    /// Removes an entry; `None` if there was none.
    async fn remove(&self, user: &str, id: u64) -> Result<Option<ScheduleEntry>, PortError>;
    /// Gives a timer more time, in milliseconds; returns it as it is now, or `None` if there is none.
    async fn extend(&self, user: &str, id: u64, more_ms: u64) -> Result<Option<ScheduleEntry>, PortError>;
}

/// A note of the wearer, as tools read it.
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
    /// Stores a note.
    async fn add(&self, user: &str, text: &str) -> Result<Note, PortError>;
    /// The newest notes, newest first, at most `limit`.
    async fn list(&self, user: &str, limit: usize) -> Result<Vec<Note>, PortError>;
    /// Notes that match by [`crate::matching::matches`], newest first, at most `limit`.
    async fn search(&self, user: &str, query: &str, limit: usize) -> Result<Vec<Note>, PortError>;
    /// Deletes a note; `None` if there was none.
    async fn delete(&self, user: &str, id: u64) -> Result<Option<Note>, PortError>;
    /// Deletes all notes and returns their number.
    async fn clear(&self, user: &str) -> Result<usize, PortError>;
}

/// Current state of a pair of glasses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceStatus {
    /// The name that its owner gave it.
    pub name: String,
    /// Whether the request came without glasses, and these are others of the same user.
    pub elsewhere: bool,
    /// Maker and model, as the device says.
    pub model: String,
    /// Version of the firmware.
    pub firmware: String,
    /// Charge from 0 to 100, if the device reports it.
    pub battery_percent: Option<u8>,
    /// Whether it is charging, if the device reports it.
    pub charging: Option<bool>,
    /// The kind of connection, in a word or two that can be spoken: "Wi-Fi", "WebSocket".
    pub connection: String,
    /// Present if it has a display.
    pub display: Option<DisplaySize>,
    /// Whether its microphone is off.
    pub muted: bool,
    /// What is wrong with its microphone, by its sound.
    pub microphone_faults: BTreeSet<MicrophoneFault>,
    /// Whether it has a speaker for which no sound can be coded.
    pub speaker_silent: bool,
}

/// Calls to the glasses' own tools.
#[async_trait]
pub trait DeviceCall: Send + Sync {
    /// Runs a tool on the device, for this turn or for a call from outside of any turn. It always returns a result:
    /// `APP_NOT_AVAILABLE` if the device is disconnected, `TIMEOUT` if it does not answer within `deadline`. If the
    /// call is cancelled or nobody waits for it any more, the device is notified, and its result is still awaited.
    async fn call(
        &self,
        device: &str,
        turn: Option<Turn>,
        call: ToolCall,
        deadline: Duration,
        cancel: CancellationToken,
    ) -> ToolResult;
    /// State of the device; of what is no glasses that of the user's glasses. `None` if none are connected.
    fn status(&self, device: &str) -> Option<DeviceStatus>;
}

/// A question to the wearer, bound to exactly one call.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsentRequest {
    /// The user whose consent is needed.
    pub user: String,
    /// The device on which the call was requested; consent can only be given there. `None`: there is none.
    pub device: Option<String>,
    /// The turn that the call belongs to; `None`: any device of the user may be asked.
    pub turn: Option<Turn>,
    /// Id of the call that waits for it.
    pub call_id: String,
    /// Full name of the tool.
    pub tool: String,
    /// What the wearer reads and hears.
    pub question: Question,
    /// Exactly the arguments that will be used.
    pub arguments: Value,
    /// [`crate::executor::arguments_hash`] of tool and arguments.
    pub arguments_hash: u64,
    /// Id of the call whose program makes this call; `None`: no program makes it.
    pub program: Option<String>,
}

/// How a question was settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Yes, no, or neither.
    pub outcome: ApprovalOutcome,
    /// Who settled it, and how.
    pub by: AnsweredBy,
    /// The device that was asked, if any.
    pub device: Option<String>,
}

impl From<ApprovalOutcome> for Decision {
    /// An outcome that was not caused by a person.
    fn from(outcome: ApprovalOutcome) -> Self {
        Self { outcome, by: AnsweredBy::Nobody, device: None }
    }
}

/// Questions to the wearer.
#[async_trait]
pub trait Consent: Send + Sync {
    /// Asks, and waits until the question is settled. If `cancel` fires, the question is withdrawn and the outcome is
    /// `Cancelled`.
    async fn ask(&self, request: ConsentRequest, cancel: CancellationToken) -> Decision;
}

/// Starts, stops and lists mini-apps.
#[async_trait]
pub trait AppHost: Send + Sync {
    /// Ensures that a user's app runs and can draw, which is the case once its socket is acknowledged. Returns whether
    /// it had to be started for this.
    ///
    /// # Errors
    /// It is not installed, its server does not answer, or it was not ready within `deadline`.
    async fn activate(&self, user: &str, package: &str, deadline: Duration) -> Result<bool, PortError>;
    /// Stops a user's app and waits until it has stopped. Returns whether it was running.
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
    /// The list of installed apps is currently not available.
    async fn list(&self, user: &str) -> Result<Vec<AppEntry>, PortError> {
        let _ = user;
        Ok(Vec::new())
    }
}

/// An installed mini-app, as shown to people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppEntry {
    /// Its unique name.
    pub package: String,
    /// Name that the wearer says.
    pub name: String,
    /// What it does, in a sentence.
    pub description: String,
    /// Whether it runs for the user.
    pub running: bool,
}

/// An app host without mini-apps.
pub struct NoApps;

#[async_trait]
impl AppHost for NoApps {
    async fn activate(&self, _user: &str, package: &str, _deadline: Duration) -> Result<bool, PortError> {
        Err(PortError::Unavailable(format!("no mini-app {package} is installed")))
    }
}

/// The only source of time: no tool reads the system clock itself.
pub trait Clock: Send + Sync {
    /// Monotonic and wall-clock time of one moment.
    fn now(&self) -> Timestamp;
    /// The wearer's time zone.
    fn zone(&self) -> jiff::tz::TimeZone;
}
