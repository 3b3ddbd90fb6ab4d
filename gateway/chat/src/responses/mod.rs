//! OpenAI Responses: items in, items out. Nothing is stored at the provider, every request holds the whole
//! conversation.

mod parse;
mod render;

use crate::{
    Request,
    answer::Parser,
    names::NameMap,
    provider::{Parse, Provider, Rendered},
};

pub use parse::Items;
pub use render::{Options, render};

/// As this adapter signs thoughts.
pub const PROVIDER: &str = "openai.responses";

/// The protocol, set up for one model.
#[derive(Clone, Debug)]
pub struct Responses {
    options: Options,
}

impl Responses {
    /// With these options.
    pub fn new(options: Options) -> Self {
        Self { options }
    }
}

impl Provider for Responses {
    fn model(&self) -> &str {
        &self.options.model
    }

    fn render(&self, request: &Request) -> Rendered {
        let (body, names) = render(request, &self.options);
        Rendered { path: "/responses".into(), headers: Vec::new(), body, names }
    }

    fn parser(&self, names: NameMap) -> Box<dyn Parse> {
        Box::new(Parser::new(Items::default(), names))
    }
}
