//! What a provider's adapter is: a pure way from a [`Request`] to an HTTP request, and a pure way from the bytes of
//! the answer to [`ModelEvent`]s. One HTTP shell serves them all.

use gateway_core::vocab::ModelEvent;

use crate::{Request, Tools, body::Body, names::NameMap};

/// A request as a provider takes it, without what only the shell knows: base address and credentials.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// Behind the base address, with its query: for example `/chat/completions`.
    pub path: String,
    /// Further headers that the provider's protocol wants; no secrets.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Body,
    /// The names that the answer will use.
    pub names: NameMap,
    /// How many tools it declares.
    pub tools: usize,
}

/// One provider's protocol, set up for one model. Pure.
pub trait Provider: Send + Sync {
    /// The model's name, for logs and measurements.
    fn model(&self) -> &str;

    /// The request for this moment's conversation and tools.
    fn render(&self, request: &Request) -> Rendered;

    /// Does ahead what only depends on the tools of a request.
    fn prepare(&self, tools: &Tools);

    /// A parser of one answer to a request with these names.
    fn parser(&self, names: NameMap) -> Box<dyn Parse>;
}

/// An incremental parser of one answer. It gives exactly one `Done` or `Failed`, as the last event.
pub trait Parse: Send {
    /// The next bytes of a streamed answer.
    fn push(&mut self, bytes: &[u8]) -> Vec<ModelEvent>;

    /// A whole answer from a server that does not stream.
    fn push_document(&mut self, document: &[u8]) -> Vec<ModelEvent>;

    /// The connection has ended; what was not said by now never will be.
    fn finish(&mut self) -> Vec<ModelEvent>;

    /// Whether the last event was given.
    fn is_finished(&self) -> bool;
}
