//! OpenAI-compatible chat completions, as implemented by OpenAI, Azure, Ollama, llama.cpp, vLLM and compatible servers.

mod parse;
mod render;
mod settings;
mod thoughts;

use std::sync::Arc;

use crate::{
    Request, Tools,
    declarations::Declarations,
    dialect::Parser,
    names::NameMap,
    provider::{Parse, Provider, Rendered},
};

pub use parse::Chunks;
pub use render::{Options, STYLE, render};
pub use settings::Settings;

/// The protocol, configured for one model.
#[derive(Clone, Debug)]
pub struct ChatCompletions {
    options: Options,
    declarations: Arc<Declarations>,
}

impl ChatCompletions {
    /// An adapter with these options.
    pub fn new(options: Options) -> Self {
        Self { options, declarations: Arc::new(Declarations::new(STYLE)) }
    }
}

impl Provider for ChatCompletions {
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
        Box::new(Parser::new(Chunks::default(), names))
    }
}
