//! Types shared by core, tools and chat models.

pub mod absent;
pub mod accents;
mod app;
mod approval;
mod context_view;
mod device;
mod display;
pub mod formulas;
mod link;
mod message;
mod microphone;
mod model;
mod pending;
mod restart;
mod routing;
mod scene;
mod schedule;
mod side;
pub mod sound;
mod time;
mod tokens;
mod tool;
mod turn;
mod unkept;
mod voice;

pub use app::{AppCard, AppConnection, AppEvent, AppKind, AppState, AppStopReason, DrawingDuration, WebhookCall};
pub use approval::{AnsweredBy, Approval, ApprovalChoice, ApprovalOutcome, Question, Settlement};
pub use context_view::{ContextView, Refused};
pub use device::{DeviceFacts, DeviceInfo, DisplaySize, ListeningState};
pub use display::{Bitmap, Content, DisplayCommand, Priority, View, countdown};
pub use link::{SoundCoding, SoundReport};
pub use message::{Message, Part, Role};
pub use microphone::MicrophoneFault;
pub use model::{FailureKind, ModelEvent, PromptHint, StopReason, Usage};
pub use pending::{Pending, PendingCall};
pub use restart::{LostCall, LostTurn, OpenEar, OpenQuestion, Remains};
pub use routing::{Candidate, FallbackReason, ModelOutcome, ModelRoute, RANK_FIRST, ServiceLevel};
pub use scene::{AppPresence, Scene, SceneApp};
pub use schedule::{Due, OpenEntry, ScheduleChange, ScheduleEntry, ScheduleKind};
pub use side::{Preference, Side};
pub use time::{QuietHours, Timestamp};
pub use tokens::of_text as tokens_of;
pub use tool::{
    Attachment, ClientClass, ErrorCode, Phrases, RateLimit, ToolCall, ToolError, ToolFlags, ToolResult, ToolSpec,
    first_sentence,
};
pub use turn::Turn;
pub use unkept::Unkept;
pub use voice::{Addressing, CommandMatch, Transcript, TranscriptKind, Translation, VoiceFact};
