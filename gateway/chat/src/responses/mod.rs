//! OpenAI Responses: items in, items out. Nothing is stored at the provider, every request holds the whole
//! conversation.

mod parse;
mod render;
mod settings;

use std::sync::Arc;

use crate::{
    Request, Tools,
    declarations::Declarations,
    dialect::Parser,
    names::NameMap,
    provider::{Parse, Provider, Rendered},
};

pub use parse::Items;
pub use render::{Options, STYLE, render};
pub use settings::Settings;

/// Where the public API is.
pub const BASE_URL: &str = "https://api.openai.com/v1";
/// Where the backend behind ChatGPT's OAuth is.
pub const CHATGPT_URL: &str = "https://chatgpt.com/backend-api/codex";
/// As this adapter signs thoughts.
pub const PROVIDER: &str = "openai.responses";

/// The protocol, set up for one model.
#[derive(Clone, Debug)]
pub struct Responses {
    options: Options,
    declarations: Arc<Declarations>,
}

impl Responses {
    /// With these options.
    pub fn new(options: Options) -> Self {
        Self { options, declarations: Arc::new(Declarations::new(STYLE)) }
    }
}

impl Provider for Responses {
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
        Box::new(Parser::new(Items::default(), names))
    }
}
