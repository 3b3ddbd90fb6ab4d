//! Anthropic's Messages API.

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

pub use parse::Blocks;
pub use render::{Flavour, OAUTH_BETA, Options, STYLE, THINKING_TOKENS_MIN, render};
pub use settings::Settings;

/// Provider name that marks its thoughts in a conversation.
pub const PROVIDER: &str = "anthropic";
/// Base URL of the public API.
pub const BASE_URL: &str = "https://api.anthropic.com/v1";
/// The header that carries a key.
pub const KEY_HEADER: &str = "x-api-key";

/// The protocol, configured for one model.
#[derive(Clone, Debug)]
pub struct Anthropic {
    options: Options,
    declarations: Arc<Declarations>,
}

impl Anthropic {
    /// An adapter with these options.
    pub fn new(options: Options) -> Self {
        Self { options, declarations: Arc::new(Declarations::new(STYLE)) }
    }
}

impl Provider for Anthropic {
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
        Box::new(Parser::new(Blocks::default(), names))
    }
}
