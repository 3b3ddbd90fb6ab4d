//! What is done with a file that defines a capability: its definition is read, or one of its functions is called.

use std::time::Duration;

use rquickjs::{Function, Module, Object, Persistent, Promise, Value};
use serde_json::Value as Json;

use super::{Engine, Stop, done, modules};
use crate::{
    failure::failure,
    protocol::{self, Action, Done, FailureKind, Language, Task},
    returns,
    strip::strip,
};

/// The module that knows what the file defines. It comes with the file.
const MODULE: &str = "@lorgnette/capabilities";
/// What it exports for this.
const OPEN: &str = "$open";

impl Engine {
    /// Evaluates the file, then does what is wanted with what it defines.
    pub(super) fn task(&self, source: &str, given: Vec<protocol::Module>, task: Task) -> Result<Done, Stop> {
        let code = match task.language {
            Language::TypeScript => strip(source)?,
            Language::JavaScript => source.to_owned(),
        };
        let types = match (&task.action, task.language) {
            (Action::Define, Language::TypeScript) => returns::of(source),
            _ => Json::default(),
        };
        let refused = modules::provide(&self.runtime, given, modules::Importer::Capability);
        // First, for `fetch`.
        let open = self.open()?;
        self.evaluate(code).map_err(|stop| modules::placed(stop, &refused, source))?;
        let (action, function, arguments) = match task.action {
            Action::Define => ("define", String::new(), "null".to_owned()),
            Action::Handle { function, arguments } => ("handle", function, arguments.to_string()),
            Action::Ask { function, arguments, compute_ms } => {
                self.state.clock.limit(Duration::from_millis(compute_ms));
                ("ask", function, arguments.to_string())
            }
        };
        let value = self.with(|ctx| {
            let value: Value<'_> = open.restore(ctx)?.call((action, function, arguments))?;
            Ok(Persistent::save(ctx, value))
        })?;
        let mut end = done(self.finished(value)?)?;
        if let Some(Json::Object(definition)) = &mut end.result
            && let Json::Object(types) = types
        {
            definition.extend(types);
            end = done(end.result.map(|whole| whole.to_string()))?;
        }
        Ok(end)
    }

    /// The function that opens the definition.
    fn open(&self) -> Result<Persistent<Function<'static>>, Stop> {
        let imported = self.with(|ctx| Ok(Persistent::save(ctx, Module::import(ctx, MODULE)?)))?;
        self.drive(&imported)?;
        self.with(|ctx| {
            let promise: Promise<'_> = imported.restore(ctx)?;
            let exports = promise.result::<Object<'_>>().transpose()?;
            let open: Option<Function<'_>> = exports.map(|exports| exports.get(OPEN)).transpose()?;
            Ok(open.map(|open| Persistent::save(ctx, open)))
        })?
        .ok_or_else(|| Stop::Failed(failure(FailureKind::Internal, "the module of capabilities is missing")))
    }
}
