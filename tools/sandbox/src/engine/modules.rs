//! The modules that a program may import: those that came with it, and the bridge.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use rquickjs::{
    Ctx, Error, Module, Result, Runtime,
    loader::{ImportAttributes, Loader, Resolver},
    module::Declared,
};

use super::{BRIDGE, Stop};
use crate::{failure::PROGRAM, protocol};

/// Names of modules in an error.
const NAMED_MAX: usize = 12;
/// Why the import of a capability is refused. The engine cuts what is longer.
const FOR_CAPABILITIES: &str = "bundle it into one ES module, without modules of Node.js; a capability can import \
                                @lorgnette/capabilities and @lorgnette/std";

/// Who imports.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Importer {
    /// A program of a model.
    Program,
    /// A file that defines a capability.
    Capability,
}

/// The import of the program itself that failed, if one did.
pub type Refused = Rc<RefCell<Option<String>>>;

struct Modules {
    all: Rc<HashMap<String, String>>,
    importer: Importer,
    refused: Refused,
}

/// Provides modules for imports.
pub fn provide(runtime: &Runtime, modules: Vec<protocol::Module>, importer: Importer) -> Refused {
    let all = modules.into_iter().map(|module| (module.specifier, module.source)).collect();
    let (all, refused) = (Rc::new(all), Refused::default());
    let modules = || Modules { all: Rc::clone(&all), importer, refused: Rc::clone(&refused) };
    runtime.set_loader(modules(), modules());
    refused
}

/// A failure with the line of the import that was refused, which the engine does not know.
pub fn placed(stop: Stop, refused: &Refused, source: &str) -> Stop {
    let Stop::Failed(mut failure) = stop else { return stop };
    if failure.line.is_none()
        && let Some(name) = refused.borrow().as_deref()
    {
        let is_named = |line: &str| [format!("'{name}'"), format!("\"{name}\"")].iter().any(|it| line.contains(it));
        let at = source.lines().position(is_named);
        failure.line = at.and_then(|at| u32::try_from(at + 1).ok());
    }
    Stop::Failed(failure)
}

impl Modules {
    fn why(&self) -> String {
        if self.importer == Importer::Capability {
            return FOR_CAPABILITIES.to_owned();
        }
        let mut names = self.all.keys().map(String::as_str).collect::<Vec<_>>();
        names.sort_unstable();
        let more = if names.len() > NAMED_MAX { ", ..." } else { "" };
        names.truncate(NAMED_MAX);
        format!("a program can import these modules: {}{more}", names.join(", "))
    }
}

impl Resolver for Modules {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        if name == BRIDGE || self.all.contains_key(name) {
            return Ok(name.to_owned());
        }
        let shown = protocol::beginning(name, protocol::NAME_BYTES_MAX);
        if base == PROGRAM {
            self.refused.replace(Some(shown.to_owned()));
        }
        Err(Error::new_resolving_message(base, shown, self.why()))
    }
}

impl Loader for Modules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        let source = self.all.get(name).ok_or_else(|| Error::new_loading(name))?;
        Module::declare(ctx.clone(), name, source.as_str())
    }
}
