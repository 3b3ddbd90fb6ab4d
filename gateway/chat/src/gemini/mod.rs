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

/// How thoughts of this provider are marked in a conversation.
pub const PROVIDER: &str = "gemini";
/// Where the public API is.
pub const BASE_URL: &str = "https://generativelanguage.googleapis.com/v1beta";
/// Where the Cloud Code backend is.
pub const CLOUD_CODE_URL: &str = "https://cloudcode-pa.googleapis.com";
/// The header that carries a key.
pub const KEY_HEADER: &str = "x-goog-api-key";

/// The protocol, set up for one model.
#[derive(Clone, Debug)]
pub struct Gemini {
    options: Options,
    declarations: Arc<Declarations>,
}

impl Gemini {
    /// With these options.
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
