//! Capabilities: definitions of tools in files, and which users they, mini-apps and MCP servers are for.

mod files;
pub(crate) mod settings;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use tools::{
    apps::client::Client,
    capabilities::offer::Offer,
    code::{
        Sandbox,
        handlers::HandlerFile,
        std::{StdHost, StdPolicy},
    },
    limits::SECRETS_MAX,
    registry::{Registry, Runner},
    source::{Scope, Source},
};

pub(crate) use self::files::Evaluator;
use self::{
    files::{ENDINGS, Found},
    settings::CapabilitySettings,
};
use crate::{environment, mcp::Prepared as PreparedServers};

/// The folder in the data folder that has the definitions which are referred to by name.
const FOLDER: &str = "capabilities";
/// Definitions for one audience: as many as MCP servers, four times over.
const OFFERS_MAX: usize = 128;

/// The capabilities, read and checked.
#[derive(Default)]
pub(crate) struct Prepared {
    offers: Vec<Carried>,
    /// What the handlers of capabilities may do, by name.
    policies: BTreeMap<String, StdPolicy>,
    /// Where they run; `None`: there are none.
    sandbox: Option<Arc<Sandbox>>,
    /// The users of apps that are not for all, by package.
    apps: BTreeMap<String, Vec<String>>,
    /// All apps that are named.
    named_apps: BTreeSet<String>,
}

/// A definition, for whom it is, and what carries out its calls if handlers do.
struct Carried {
    scope: Scope,
    offer: Offer,
    handlers: Option<HandlerFile>,
}

/// What a reference in the configuration names.
enum Reference {
    /// A file, or a folder with files.
    Place(PathBuf),
    App(String),
    Server(String),
}

impl Prepared {
    /// Reads the files; relative paths start at `folder`. MCP servers that are named for single users are left to
    /// these.
    ///
    /// # Errors
    /// All problems.
    pub(crate) async fn load(
        settings: &CapabilitySettings,
        (folder, data_dir): (Option<&Path>, &Path),
        mcp: &mut PreparedServers,
        evaluator: &Evaluator,
    ) -> Result<Self, Vec<String>> {
        let (mut prepared, mut problems) = (Self::default(), Vec::new());
        let mut places = Vec::new();
        let mut servers: BTreeMap<String, Vec<Option<&str>>> = BTreeMap::new();
        let mut apps: BTreeMap<String, Vec<Option<&str>>> = BTreeMap::new();
        for (key, user, text) in settings.references() {
            match reference(text, folder, data_dir) {
                Ok(Reference::Place(path)) => places.push((format!("{key} \"{text}\""), user, path)),
                Ok(Reference::App(package)) => apps.entry(package).or_default().push(user),
                Ok(Reference::Server(name)) if mcp.has_server(&name) => servers.entry(name).or_default().push(user),
                Ok(Reference::Server(name)) => problems.push(format!("{key} \"{text}\": {}", no_server(&name))),
                Err(why) => problems.push(format!("{key} \"{text}\": {why}")),
            }
        }
        for (name, users) in servers {
            match audience(&users) {
                Some(users) => mcp.leave_to(&name, &users),
                None if users.iter().any(Option::is_some) => problems.push(both(&format!("mcp:{name}"))),
                None if !mcp.users_of(&name).is_empty() => problems.push(format!(
                    "capabilities.global has \"mcp:{name}\", and [mcp.servers] leaves it to single users; keep one of both"
                )),
                None => {}
            }
        }
        for (package, users) in apps {
            match audience(&users) {
                Some(names) => drop(prepared.apps.insert(package.clone(), names)),
                None if users.iter().any(Option::is_some) => problems.push(both(&format!("app:{package}"))),
                None => {}
            }
            prepared.named_apps.insert(package);
        }
        for (at, user, path) in places {
            let scope = user.map_or(Scope::Global, |user| Scope::User(user.to_owned()));
            match files::read(&path, evaluator).await {
                Ok(all) => all.into_iter().for_each(|Found { file, offer, handlers }| {
                    if let Err(why) = prepared.add(&scope, (offer, handlers), mcp) {
                        problems.push(format!("{at}: {}: {why}", file.display()));
                    }
                }),
                Err(found) => problems.extend(found.into_iter().map(|why| format!("{at}: {why}"))),
            }
        }
        problems.extend(prepared.allow(settings));
        if prepared.offers.iter().any(|it| it.handlers.is_some()) {
            prepared.sandbox = Some(evaluator.sandbox().clone());
        }
        let of_policies: usize = prepared.policies.values().map(|policy| policy.secrets().count()).sum();
        let of_offers: usize = prepared.offers.iter().map(|it| it.offer.secrets().len()).sum();
        let secrets = mcp.secrets() + of_policies + of_offers;
        if secrets > SECRETS_MAX {
            problems.push(format!(
                "capabilities and MCP servers have {secrets} secrets; at most {SECRETS_MAX} can be kept out of results"
            ));
        }
        if problems.is_empty() { Ok(prepared) } else { Err(problems) }
    }

    /// Reads what handlers may do; all problems.
    fn allow(&mut self, settings: &CapabilitySettings) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, policy) in &settings.policy {
            let mut all = self.offers.iter().filter_map(|it| it.handlers.as_ref());
            if !all.any(|handlers| handlers.name() == name) {
                problems.push(format!(
                    "capabilities.policy.{name}: no file in TypeScript or JavaScript defines the capability '{name}'"
                ));
                continue;
            }
            match StdPolicy::check_for(name, policy.library(), environment::variable) {
                Ok(policy) => drop(self.policies.insert(name.clone(), policy)),
                Err(error) => problems.push(error.to_string()),
            }
        }
        problems
    }

    /// Adds a definition if its names are free and its MCP server exists for the same users.
    fn add(
        &mut self,
        scope: &Scope,
        (mut offer, handlers): (Offer, Option<HandlerFile>),
        mcp: &PreparedServers,
    ) -> Result<(), String> {
        let name = offer.name();
        if mcp.has_server(name) {
            return Err(format!("'{name}' is the name of an MCP server as well; choose another one"));
        }
        let built_in = || tools::builtin::all().0;
        if let Some(taken) = offer.tools().find(|tool| built_in().iter().any(|spec| spec.name == *tool)) {
            return Err(format!("'{taken}' is a built-in tool; choose another name"));
        }
        let near = self.offers.iter().filter(|other| other.scope == Scope::Global || other.scope == *scope);
        for Carried { offer: other, .. } in near {
            if other.name() == name {
                return Err(format!("'{name}' is defined twice for the same users; give one of both another name"));
            }
            if let Some(taken) = offer.tools().find(|tool| other.tools().any(|known| known == *tool)) {
                return Err(format!("'{taken}' is a tool of '{}' as well; choose another name", other.name()));
            }
        }
        if self.offers.iter().filter(|other| other.scope == *scope).count() >= OFFERS_MAX {
            return Err(format!("more than {OFFERS_MAX} definitions for the same users"));
        }
        if let Some(server) = offer.server().map(str::to_owned) {
            if !mcp.has_server(&server) {
                return Err(format!("'{name}' at '/mcp': {}", no_server(&server)));
            }
            let users = mcp.users_of(&server);
            let is_seen = users.is_empty() || matches!(scope, Scope::User(user) if users.contains(user));
            if !is_seen {
                return Err(format!(
                    "'{name}' needs the MCP server `{server}`, which is for {} only; name it in \
                     [capabilities.users.NAME] of these users",
                    users.join(", ")
                ));
            }
            if let Some(classes) = mcp.clients_of(&server) {
                offer.restrict(&classes);
            }
        }
        self.offers.push(Carried { scope: scope.clone(), offer, handlers });
        Ok(())
    }

    /// The users of apps that are not for all, by package.
    pub(crate) fn users_of_apps(&self) -> BTreeMap<String, Vec<String>> {
        self.apps.clone()
    }

    /// Whether a definition has this tool.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.offers.iter().any(|it| it.offer.tools().any(|tool| tool == name))
    }

    /// Offers the tools. Those whose names are taken, by a mini-app or glasses, are left out and reported.
    /// `library`: the standard library of handlers under a policy.
    ///
    /// # Errors
    /// The standard library of a capability cannot be made.
    pub(crate) fn offer(
        &self,
        registry: &Registry,
        client: &Arc<Client>,
        library: impl Fn(StdPolicy) -> anyhow::Result<StdHost>,
        is_installed: impl Fn(&str) -> bool,
    ) -> anyhow::Result<()> {
        for Carried { scope, offer, handlers } in &self.offers {
            let capability = offer.name();
            let runner: Option<Arc<dyn Runner>> = match (handlers, &self.sandbox) {
                (Some(handlers), Some(sandbox)) => {
                    let policy =
                        self.policies.get(capability).cloned().unwrap_or_else(|| StdPolicy::nothing_for(capability));
                    Some(handlers.runner(sandbox.clone(), library(policy)?))
                }
                _ => offer.runner(client),
            };
            let Some(runner) = runner else { continue };
            match offer.register(registry, runner, scope.clone()) {
                Ok(revision) => tracing::info!(capability, ?scope, revision, "tools of a capability"),
                Err(error) => {
                    tracing::error!(capability, ?scope, %error, "the tools of a capability cannot be offered");
                    let source = Source::Capability(capability.to_owned());
                    registry.report(&source, vec![format!("left out: {error}")]);
                }
            }
        }
        for package in self.named_apps.iter().filter(|package| !is_installed(package)) {
            tracing::warn!(
                package,
                "[capabilities] names an app that is not installed; `lorgnette apps add` installs it"
            );
        }
        Ok(())
    }
}

impl fmt::Display for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = self.offers.iter().map(|Carried { scope, offer, .. }| match scope {
            Scope::User(user) => format!("{} for {user}", offer.name()),
            _ => offer.name().to_owned(),
        });
        let told: Vec<String> = told.collect();
        f.write_str(&if told.is_empty() { "none".to_owned() } else { told.join(", ") })
    }
}

fn reference(text: &str, folder: Option<&Path>, data_dir: &Path) -> Result<Reference, String> {
    let is_name = |name: &str| {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(legal)
    };
    if let Some(package) = text.strip_prefix("app:") {
        let package = Some(package).filter(|name| is_name(name)).ok_or("`app:` is followed by an app's package")?;
        return Ok(Reference::App(package.to_owned()));
    }
    if let Some(name) = text.strip_prefix("mcp:") {
        return Ok(Reference::Server(name.to_owned()));
    }
    if text.starts_with('@') {
        return Err("packages of npm are not loaded; bundle them into one ES module that defines a capability, and name its file".to_owned());
    }
    let is_file = text.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending));
    if text.starts_with('.') || text.contains('/') || is_file {
        return Ok(Reference::Place(folder.unwrap_or(Path::new("")).join(text)));
    }
    if is_name(text) {
        let files = ENDINGS.map(|ending| data_dir.join(FOLDER).join(format!("{text}.{ending}")));
        let there: Vec<&PathBuf> = files.iter().filter(|file| file.is_file()).collect();
        return match there.as_slice() {
            [] => Ok(Reference::Place(data_dir.join(FOLDER).join(format!("{text}.json")))),
            [one] => Ok(Reference::Place((*one).clone())),
            [one, other, ..] => Err(format!("{} and {} are there; keep one of both", one.display(), other.display())),
        };
    }
    Err("must be ./FILE, ./FOLDER, app:PACKAGE, mcp:SERVER, or the NAME of a file in the folder `capabilities` of the \
         data folder"
        .to_owned())
}

/// The users that something is left to; `None`: it is for all, or both.
fn audience(users: &[Option<&str>]) -> Option<Vec<String>> {
    users.iter().map(|user| user.map(str::to_owned)).collect()
}

fn both(what: &str) -> String {
    format!("\"{what}\" is in capabilities.global and in [capabilities.users]; keep one of both")
}

fn no_server(name: &str) -> String {
    format!("there is no MCP server `{name}`; add it to [mcp.servers] or to mcp.file")
}

#[cfg(test)]
mod tests;
