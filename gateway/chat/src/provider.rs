//! A provider's adapter: a pure conversion from a [`Request`] to an HTTP request, and from the bytes of the answer to
//! [`ModelEvent`]s. One HTTP shell serves all of them.

use gateway_core::vocab::ModelEvent;

use crate::{Request, Tools, body::Body, names::NameMap};

/// A request in a provider's format, without base address and credentials, which the HTTP shell adds.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// Path after the base address, with its query: for example `/chat/completions`.
    pub path: String,
    /// Further headers that the provider's protocol requires; no secrets.
    pub headers: Vec<(&'static str, String)>,
    /// A JSON object.
    pub body: Body,
    /// The names that the answer will use.
    pub names: NameMap,
    /// Number of declared tools.
    pub tools: usize,
}

/// One provider's protocol, configured for one model. Pure.
pub trait Provider: Send + Sync {
    /// The model's name, for logs and measurements.
    fn model(&self) -> &str;

    /// Renders a request.
    fn render(&self, request: &Request) -> Rendered;

    /// Does the work in advance that depends only on the tools of a request.
    fn prepare(&self, tools: &Tools);

    /// A parser of one answer to a request with these names.
    fn parser(&self, names: NameMap) -> Box<dyn Parse>;
}

/// An incremental parser of one answer. It returns exactly one `Done` or `Failed`, as the last event.
pub trait Parse: Send {
    /// The next bytes of a streamed answer.
    fn push(&mut self, bytes: &[u8]) -> Vec<ModelEvent>;

    /// A whole answer from a server that does not stream.
    fn push_document(&mut self, document: &[u8]) -> Vec<ModelEvent>;

    /// The connection has ended; no more bytes follow.
    fn finish(&mut self) -> Vec<ModelEvent>;

    /// Whether the last event was returned.
    fn is_finished(&self) -> bool;
}
