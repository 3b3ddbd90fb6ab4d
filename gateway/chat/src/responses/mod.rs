//! OpenAI Responses: items in, items out. Nothing is stored at the provider, every request holds the whole
//! conversation.

mod parse;
mod render;

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
