//! Model providers: pure render and parse, one thin HTTP shell, the offline intent engine.
//!
//! Everything that answers a wearer is a [`ChatModel`]: a [`provider`] behind [`http`], the engine that needs no network ([`intents`], also in front of another model: [`commands_first`]), or a script for tests
//! ([`scripted`]). Provider names, schemas and ids exist only in this crate; the rest of the house
//! sees [`Request`] and [`ModelEvent`].

pub mod anthropic;
pub mod auth;
pub mod chat_completions;
pub mod commands_first;
pub mod dialect;
pub mod failure;
pub mod gemini;
pub mod http;
pub mod intents;
pub mod keyring;
pub mod names;
pub mod oauth;
pub mod provider;
pub mod responses;
pub mod schema;
pub mod scripted;
pub mod sse;
pub mod transcript;

use std::sync::Arc;

use async_trait::async_trait;
use gateway_core::vocab::{Message, ModelEvent, Timestamp, ToolSpec};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Tools that are offered, shared with whoever offers them.
pub type Tools = Arc<[Arc<ToolSpec>]>;

/// One question to a model: everything that it is told.
#[derive(Clone, Debug)]
pub struct Request {
    /// Standing instructions; empty for none.
    pub system: String,
    /// The conversation, oldest first. The last message is the wearer's, or carries tool results.
    pub messages: Vec<Message>,
    /// The tools that may be called in this answer.
    pub tools: Tools,
    /// When the question was asked; local time is `wall_ms` plus `offset_s`.
    pub now: Timestamp,
    /// BCP 47 tag of the wearer's language, for example `en`.
    pub language: String,
    /// Longest answer in the provider's tokens; the provider's default where absent.
    pub max_tokens: Option<u32>,
}

/// Something that answers requests with a stream of events.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Name for logs and measurements.
    fn name(&self) -> &str;

    /// Streams the answer into `events`. The last event is `Done` or `Failed`, exactly one, unless
    /// `cancel` fires or the receiver is dropped first: then the stream just ends.
    async fn stream(&self, request: Request, events: mpsc::Sender<ModelEvent>, cancel: CancellationToken);
}
