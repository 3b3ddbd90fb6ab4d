//! The modules that a program may import: those that came with it, and the bridge.

use std::{collections::HashMap, rc::Rc};

use rquickjs::{
    Ctx, Error, Module, Result, Runtime,
    loader::{ImportAttributes, Loader, Resolver},
    module::Declared,
};

use super::BRIDGE;
use crate::protocol;

/// Names of modules in an error.
const NAMED_MAX: usize = 12;

struct Modules(Rc<HashMap<String, String>>);

/// Provides modules for imports.
pub fn provide(runtime: &Runtime, modules: Vec<protocol::Module>) {
    let modules = modules.into_iter().map(|module| (module.specifier, module.source)).collect();
    let modules = Rc::new(modules);
    runtime.set_loader(Modules(Rc::clone(&modules)), Modules(modules));
}

impl Resolver for Modules {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        if name == BRIDGE || self.0.contains_key(name) {
            return Ok(name.to_owned());
        }
        let mut names = self.0.keys().map(String::as_str).collect::<Vec<_>>();
        names.sort_unstable();
        let more = if names.len() > NAMED_MAX { ", ..." } else { "" };
        names.truncate(NAMED_MAX);
        let why = format!("a program can import these modules: {}{more}", names.join(", "));
        Err(Error::new_resolving_message(base, protocol::beginning(name, protocol::NAME_BYTES_MAX), why))
    }
}

impl Loader for Modules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        let source = self.0.get(name).ok_or_else(|| Error::new_loading(name))?;
        Module::declare(ctx.clone(), name, source.as_str())
    }
}
