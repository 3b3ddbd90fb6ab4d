//! Capabilities whose functions are carried out by handlers, in files in TypeScript or JavaScript:
//!
//! ```ts
//! import { defineTool } from '@lorgnette/capabilities';
//! export const trains = defineTool({
//!   name: 'trains',
//!   functions: { list: { returns: {} as string[], handler: async () => (await fetch('https://...')).json() } },
//! });
//! ```
//!
//! Such a file is a program: it is evaluated by the sandbox only, once for its definition ([`read`]), and once for each
//! call ([`HandlerFile::runner`]) under the capability's own policy. docs/capabilities.md has the rules.

mod definition;
mod runner;
#[cfg(test)]
mod tests;

use ::std::{collections::BTreeSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    Action, Ended, Host, HostError, Language, Limits, Outcome, Program, ProgramError, Sandbox, Task,
    std::{self, StdHost},
};
use crate::{
    capabilities::{definition::Capability, offer::Offer},
    registry::Runner,
    source::About,
};

/// The module that files import, and its other name.
const MODULE: &str = "@lorgnette/capabilities";
const MODULE_ALIAS: &str = "@agent-spaces/capabilities";
/// Time in which a file is read, and computing time in it: more than any honest one needs on a small box.
const READ_LIMITS: Limits = Limits { compute: Duration::from_secs(5), wall: Duration::from_secs(10) };

/// A file with a capability's handlers.
#[derive(Clone, Debug)]
pub struct HandlerFile {
    source: Arc<str>,
    language: Language,
    about: Arc<About>,
    /// The functions that put their questions into words themselves.
    asking: BTreeSet<String>,
}

/// Reads the definition in a file by evaluating it in the sandbox.
///
/// # Errors
/// The file is no capability; the text names the line, or the place in the definition, and the remedy.
pub async fn read(sandbox: &Sandbox, source: &str, language: Language) -> Result<(Offer, HandlerFile), String> {
    let outcome =
        open(sandbox, (source, language), Action::Define, &Nothing, READ_LIMITS, &CancellationToken::new()).await;
    let Outcome { result, cut, error, ended, .. } = outcome;
    if let Some(error) = error {
        return Err(placed(&error, ended));
    }
    if let Some((_, bytes)) = cut {
        let max = super::RESULT_BYTES_MAX;
        return Err(format!("the definition has {bytes} bytes without its handlers; at most {max} are accepted"));
    }
    let (Capability { about, functions, execution: _, notes }, asking) = definition::read(&result.unwrap_or_default())?;
    let file = HandlerFile { source: source.into(), language, about: about.clone(), asking };
    Ok((Offer::handled(Capability { about, functions, execution: None, notes }), file))
}

impl HandlerFile {
    /// The capability's name.
    pub fn name(&self) -> &str {
        &self.about.name
    }

    /// What carries out its calls: handlers run in this sandbox, with this standard library.
    pub fn runner(&self, sandbox: Arc<Sandbox>, library: StdHost) -> Arc<dyn Runner> {
        Arc::new(runner::HandlerRunner { file: self.clone(), sandbox, library })
    }
}

/// Evaluates a file, and does what is wanted with what it defines.
async fn open(
    sandbox: &Sandbox,
    (source, language): (&str, Language),
    action: Action,
    host: &dyn Host,
    limits: Limits,
    cancel: &CancellationToken,
) -> Outcome {
    let capabilities = [
        (MODULE.to_owned(), include_str!("capabilities.js").to_owned()),
        (MODULE_ALIAS.to_owned(), format!("export {{ defineTool }} from '{MODULE}';\n")),
    ];
    let program = Program {
        source: source.to_owned(),
        modules: capabilities.into_iter().chain(std::modules()).collect(),
        task: Some(Task { language, action }),
    };
    sandbox.run(program, host, limits, cancel).await
}

/// An error in a file, with its place.
fn placed(error: &ProgramError, ended: Ended) -> String {
    let ProgramError { message, line, column } = error;
    let message = match ended {
        Ended::TimedOut => format!("it did not end ({message}); what it defines must be there at once"),
        _ => message.clone(),
    };
    match (line, column) {
        (Some(line), Some(column)) => format!("line {line}, column {column}: {message}"),
        (Some(line), None) => format!("line {line}: {message}"),
        _ => message,
    }
}

/// A host for files that may call nothing.
struct Nothing;

#[async_trait]
impl Host for Nothing {
    async fn call(&self, _module: &str, function: &str, _arguments: Value) -> Result<Value, HostError> {
        let message = format!("{function} can be called by handlers only: the file itself only defines them");
        Err(HostError { code: "not_allowed".to_owned(), message, retryable: false })
    }

    fn log(&self, line: &str) {
        tracing::debug!(line, "printed by a capability while it was read");
    }
}
