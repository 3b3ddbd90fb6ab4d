//! Model providers: pure render and parse, one thin HTTP shell, the offline intent engine.
//!
//! Everything that answers a wearer is a [`ChatModel`]: a [`provider`] behind [`http`], the engine that needs no
//! network ([`intents`], also in front of another model: [`commands_first`]), or a script for tests ([`scripted`]). A
//! provider is one folder: adapter, [options](settings), addresses, headers, envelope; [`kinds`] lists them. The names,
//! schemas and ids of providers exist only in this crate (a rule that a test checks, with a list of exceptions): the
//! rest of the workspace uses [`kinds::Kind`], [`Request`] and [`ModelEvent`].
//!
//! [`audio_api`] is beside all that: recognition and speech at a server.

pub mod anthropic;
pub mod audio_api;
pub mod auth;
mod azure;
pub mod body;
pub mod chat_completions;
pub mod commands_first;
pub mod declarations;
pub mod dialect;
pub mod failure;
pub mod families;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod gemini;
pub mod http;
pub mod intents;
pub mod keyring;
pub mod kinds;
pub mod names;
pub mod oauth;
pub mod provider;
pub mod responses;
pub mod schema;
pub mod scripted;
pub mod settings;
pub mod sse;
pub mod transcript;
pub mod watch;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use gateway_core::vocab::{CommandMatch, Message, ModelEvent, Pending, Scene, Timestamp, ToolSpec};
use jiff::tz::TimeZone;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use watch::Watch;

/// Most tools in one request: OpenAI's documented limit for `tools` (at most 128 functions), the lowest of all
/// providers.
pub const TOOLS_MAX: usize = 128;

/// How long a connection that was opened ahead waits for its request: as long as an utterance, and shorter than a
/// server waits for a first request.
pub const AHEAD_MAX: Duration = Duration::from_secs(10);

/// The offered tools; lists and tools are shared.
pub type Tools = Arc<[Arc<ToolSpec>]>;

/// Whether two lists contain the same tools in the same order. The lists of two devices are separate but share most
/// tools: only tools that are not shared are compared by content.
pub fn same_tools(one: &Tools, other: &Tools) -> bool {
    let same = |(one, other): (&Arc<ToolSpec>, &Arc<ToolSpec>)| Arc::ptr_eq(one, other) || one == other;
    Arc::ptr_eq(one, other) || (one.len() == other.len() && one.iter().zip(other.iter()).all(same))
}

/// Whether the last request would offer the model other tools if these were the available ones. A router may select
/// the same from both lists; where its selection is not known before the answer, any change counts.
pub fn would_differ(model: &dyn ChatModel, last: &Request, tools: Tools) -> bool {
    if same_tools(&last.tools, &tools) {
        return false;
    }
    let now = Request { tools, ..last.clone() };
    match (model.offers(last), model.offers(&now)) {
        (Some(before), Some(now)) => by_name(&before) != by_name(&now),
        _ => true,
    }
}

/// Sorted by name, since a router sorts by relevance.
fn by_name(tools: &Tools) -> Vec<&ToolSpec> {
    let mut tools: Vec<&ToolSpec> = tools.iter().map(Arc::as_ref).collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools
}

/// One request to a model, with all its context.
#[derive(Clone, Debug)]
pub struct Request {
    /// System instructions, if any.
    pub system: Option<String>,
    /// The conversation, oldest first. The last message is the wearer's, or contains tool results.
    pub messages: Vec<Message>,
    /// The tools that may be called in this answer.
    pub tools: Tools,
    /// Time of the question; local time is `wall_ms` plus `offset_s`.
    pub now: Timestamp,
    /// The wearer's time zone, for command engines, which read what is said to be hours ahead; `None`: the offset of `now`
    /// holds at any time.
    pub zone: Option<TimeZone>,
    /// BCP 47 tag of the wearer's language, for example `en`.
    pub language: String,
    /// Context of the wearer's words: apps, active sides and preferences.
    pub scene: Arc<Scene>,
    /// Longest answer in the provider's tokens; `None`: the provider's default.
    pub max_tokens: Option<u32>,
    /// Notified when the request is sent.
    pub watch: Watch,
    /// The pending command that the wearer's last words may answer or continue, for command engines. A model reads it
    /// from the messages.
    pub pending: Option<Pending>,
}

impl Default for Request {
    /// In English, without messages or tools.
    fn default() -> Self {
        Self {
            system: None,
            messages: Vec::new(),
            tools: Arc::default(),
            now: Timestamp::default(),
            zone: None,
            language: "en".to_owned(),
            scene: Arc::default(),
            max_tokens: None,
            watch: Watch::default(),
            pending: None,
        }
    }
}

/// A command engine's assessment of the wearer's words before they are submitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Matched {
    /// Whether they are a command.
    pub matched: CommandMatch,
    /// Sentences of the tools, as a wearer would say them: bias for the recogniser.
    pub vocabulary: Arc<[String]>,
}

/// Answers requests with a stream of events.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Name for logs and measurements.
    fn name(&self) -> &str;

    /// The complete answer that the gateway gives without a remote request; the last event is `Done`. `None` if the
    /// answer must be requested with [`stream`](Self::stream). Cheap: no network, no side effects.
    fn answer_on_box(&self, _request: &Request) -> Option<Vec<ModelEvent>> {
        None
    }

    /// Most tools accepted in one request. The caller leaves out the least relevant ones.
    fn tools_max(&self) -> usize {
        TOOLS_MAX
    }

    /// The tools of this request that its provider would be sent; `None` if only the answering model can tell.
    fn offers(&self, request: &Request) -> Option<Tools> {
        Some(request.tools.clone())
    }

    /// Whether it calls tools by programs only: then a request's context has to tell it what programs can import.
    fn calls_by_programs(&self) -> bool {
        false
    }

    /// Does in advance the work that the first request with these tools would wait for. Takes some 20 µs per tool.
    fn prepare(&self, _tools: &Tools, _language: &str) {}

    /// Whether [`answer_on_box`](Self::answer_on_box), [`match_command`](Self::match_command) and
    /// [`offers`](Self::offers) are [prepared](Self::prepare) for these tools. Otherwise they do the work themselves,
    /// which takes milliseconds. Cheap.
    fn is_ready(&self, _tools: &Tools, _language: &str) -> bool {
        true
    }

    /// Opens a connection for a request expected within seconds, and sends nothing. Returns whether one was opened. If
    /// it is not taken within [`AHEAD_MAX`], [`close_unused`](Self::close_unused) closes it.
    async fn preconnect(&self) -> bool {
        false
    }

    /// Closes a connection that was opened ahead and not taken in time.
    fn close_unused(&self) {}

    /// Whether the wearer's last words are a command; `None` if this model does not distinguish commands. Cheap: no
    /// network, no side effects.
    fn match_command(&self, _request: &Request) -> Option<Matched> {
        None
    }

    /// Streams the answer to a request without a [local answer](Self::answer_on_box) into `events`. The last event is
    /// `Done` or `Failed`, exactly one, unless `cancel` fires or the receiver is dropped first: then the stream just
    /// ends.
    async fn stream(&self, request: Request, events: mpsc::Sender<ModelEvent>, cancel: CancellationToken);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offers the tools of the zoo only, the last one first; or says that it cannot tell.
    struct Zoo {
        tells: bool,
    }

    #[async_trait]
    impl ChatModel for Zoo {
        fn name(&self) -> &str {
            "zoo"
        }

        fn offers(&self, request: &Request) -> Option<Tools> {
            let zoo = request.tools.iter().rev().filter(|tool| tool.name.starts_with("zoo."));
            self.tells.then(|| zoo.cloned().collect())
        }

        async fn stream(&self, _: Request, _: mpsc::Sender<ModelEvent>, _: CancellationToken) {}
    }

    fn tools(names: &[(&str, &str)]) -> Tools {
        let tool = |(name, description): &(&str, &str)| {
            Arc::new(ToolSpec { name: (*name).into(), description: (*description).into(), ..ToolSpec::default() })
        };
        names.iter().map(tool).collect()
    }

    #[test]
    fn a_request_differs_where_other_tools_would_be_offered() {
        let before = [("car.park", "Parks."), ("zoo.feed", "Feeds."), ("zoo.paint", "Paints.")];
        let last = Request { tools: tools(&before), ..Request::default() };
        let [park, feed, paint] = before;
        // The tools of now, and whether they count: where the model tells what it offers, and where it does not.
        for (now, tells, mute) in [
            (vec![park, feed, paint], false, false),
            (vec![feed, paint], false, true),
            (vec![park, paint, feed], false, true),
            (vec![park, feed], true, true),
            (vec![park, feed, ("zoo.paint", "Paints twice.")], true, true),
            (vec![], true, true),
        ] {
            let differs = |tells| would_differ(&Zoo { tells }, &last, tools(&now));
            assert_eq!((differs(true), differs(false)), (tells, mute), "{now:?}");
        }
    }
}
