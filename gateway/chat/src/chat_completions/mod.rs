//! OpenAI-compatible chat completions, as OpenAI, Azure, Ollama, llama.cpp, vLLM and everything that speaks like
//! them have it.

mod parse;
mod render;

use crate::{
    Request,
    answer::Parser,
    names::NameMap,
    provider::{Parse, Provider, Rendered},
};

pub use parse::Chunks;
pub use render::{Options, render};

/// The protocol, set up for one model.
#[derive(Clone, Debug)]
pub struct ChatCompletions {
    options: Options,
}

impl ChatCompletions {
    /// With these options.
    pub fn new(options: Options) -> Self {
        Self { options }
    }
}

impl Provider for ChatCompletions {
    fn model(&self) -> &str {
        &self.options.model
    }

    fn render(&self, request: &Request) -> Rendered {
        let (body, names) = render(request, &self.options);
        Rendered { path: "/chat/completions".into(), headers: Vec::new(), body, names }
    }

    fn parser(&self, names: NameMap) -> Box<dyn Parse> {
        Box::new(Parser::new(Chunks::default(), names))
    }
}
