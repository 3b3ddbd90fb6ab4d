//! OpenAI Responses. Nothing is stored at the provider: every request contains the whole conversation as items.

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

/// Base URL of the public API.
pub const BASE_URL: &str = "https://api.openai.com/v1";
/// Base URL of the backend for ChatGPT's OAuth.
pub const CHATGPT_URL: &str = "https://chatgpt.com/backend-api/codex";
/// Provider name that marks its thoughts in a conversation.
pub const PROVIDER: &str = "openai.responses";

/// The protocol, configured for one model.
#[derive(Clone, Debug)]
pub struct Responses {
    options: Options,
    declarations: Arc<Declarations>,
}

impl Responses {
    /// An adapter with these options.
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
