//! Google's Gemini: `generateContent`, streamed.

mod parse;
mod render;
mod settings;
mod spelling;

use std::sync::Arc;

use crate::{
    Request, Tools,
    declarations::Declarations,
    dialect::Parser,
    names::NameMap,
    provider::{Parse, Provider, Rendered},
};

pub use parse::Candidates;
pub use render::{Flavour, Options, STYLE, TOOLS_MAX, render};
pub use settings::Settings;

/// Provider name that marks its thoughts in a conversation.
pub const PROVIDER: &str = "gemini";
/// Base URL of the public API.
pub const BASE_URL: &str = "https://generativelanguage.googleapis.com/v1beta";
/// Base URL of the Cloud Code backend.
pub const CLOUD_CODE_URL: &str = "https://cloudcode-pa.googleapis.com";
/// The header that carries a key.
pub const KEY_HEADER: &str = "x-goog-api-key";

/// The protocol, configured for one model.
#[derive(Clone, Debug)]
pub struct Gemini {
    options: Options,
    declarations: Arc<Declarations>,
}

impl Gemini {
    /// An adapter with these options.
    pub fn new(options: Options) -> Self {
        Self { options, declarations: Arc::new(Declarations::new(STYLE)) }
    }
}

impl Provider for Gemini {
    fn model(&self) -> &str {
        &self.options.model
    }

    fn render(&self, request: &Request) -> Rendered {
        render(request, &self.options, &self.declarations)
    }

    fn prepare(&self, tools: &Tools) {
        if self.options.tools {
            self.declarations.prepare(tools);
        }
    }

    fn parser(&self, names: NameMap) -> Box<dyn Parse> {
        Box::new(Parser::new(Candidates, names))
    }
}
