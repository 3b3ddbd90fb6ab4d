//! Installed mini-apps: kept in the store, offered in the registry.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError, RwLock},
};

use tokio::sync::{Mutex, watch};
use tools::{
    apps::{
        client::{AppRunner, Client},
        manifest::App,
    },
    registry::{RegisterError, Registry},
    source::{Scope, Source},
};

use crate::store::{self, Kind, Store, Write};

/// Installed apps: each has tools that a model reads, and a server that someone must operate.
const APPS_MAX: usize = 64;
/// Bytes of a package's name: it is a key of the store.
const PACKAGE_BYTES_MAX: usize = 64;
/// The one row of an app.
const KEY: &[u8] = b"app";

/// Why an app was not installed or removed. Nothing was changed, unless the error says so.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The package's name is invalid.
    #[error("the package '{0}' must be 1 to {PACKAGE_BYTES_MAX} letters, digits, '.', '_' or '-'")]
    Package(String),
    /// There are too many.
    #[error("{APPS_MAX} apps are installed; remove one with `lorgnette apps remove`")]
    TooMany,
    /// One of its tools is invalid.
    #[error(transparent)]
    Tools(#[from] RegisterError),
    /// It cannot be stored.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// It is removed, but some of its session names stay stored.
    #[error("the app is removed, but not its session names of these users: {users} ({error}); repeat the command")]
    NamesLeft {
        /// Whose names, for people.
        users: String,
        /// Why the last of them stays.
        error: store::Error,
    },
}

/// All installed apps of the gateway, whomever they are for; readers take a copy, changes take turns.
pub struct Installed {
    store: Store,
    registry: Arc<Registry>,
    client: Arc<Client>,
    /// The users that the configuration leaves apps to, by package.
    users: BTreeMap<String, Vec<String>>,
    apps: RwLock<BTreeMap<String, Arc<App>>>,
    changing: Mutex<()>,
    changes: watch::Sender<u64>,
}

impl Installed {
    /// Reads the installed apps and offers their tools; `users`: those that the configuration leaves apps to. An app that can no longer be offered, for example after an
    /// update of the gateway, stays installed and is reported in the log.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn load(
        store: Store,
        registry: Arc<Registry>,
        client: Arc<Client>,
        users: BTreeMap<String, Vec<String>>,
    ) -> Result<Self, store::Error> {
        let mut apps = BTreeMap::new();
        for package in store.disk().owners(Kind::Apps)? {
            let bytes = match store.disk().row(Kind::Apps, &package, KEY) {
                Ok(Some(bytes)) => bytes,
                // The store has logged which one is damaged.
                Ok(None) | Err(store::Error::Damaged { .. }) => continue,
                Err(error) => return Err(error),
            };
            match serde_json::from_slice::<App>(&bytes) {
                Ok(app) => {
                    apps.insert(package, Arc::new(app));
                }
                Err(error) => tracing::error!(package, %error, "an installed app cannot be read; add it again"),
            }
        }
        let installed = Self {
            store,
            registry,
            client,
            users,
            apps: RwLock::default(),
            changing: Mutex::default(),
            changes: watch::Sender::new(0),
        };
        for app in apps.values() {
            if let Err(error) = installed.offer(app, None) {
                tracing::error!(package = app.package, %error, "the tools of an installed app cannot be offered");
            }
        }
        *installed.apps.write().unwrap_or_else(PoisonError::into_inner) = apps;
        Ok(installed)
    }

    /// The app of this package, whomever it is for.
    pub fn get(&self, package: &str) -> Option<Arc<App>> {
        self.apps.read().unwrap_or_else(PoisonError::into_inner).get(package).cloned()
    }

    /// An installed app that is for this user.
    pub(crate) fn get_for(&self, user: &str, package: &str) -> Option<Arc<App>> {
        self.get(package).filter(|app| self.is_for(app, user))
    }

    /// Those that are for this user, by package.
    pub(crate) fn list_for(&self, user: &str) -> Vec<Arc<App>> {
        self.list().into_iter().filter(|app| self.is_for(app, user)).collect()
    }

    /// The users that an app is for; empty: all.
    pub(crate) fn users_of(&self, app: &App) -> Vec<String> {
        let configured = self.users.get(&app.package).into_iter().flatten();
        let all: BTreeSet<&String> = app.users.iter().chain(configured).collect();
        all.into_iter().cloned().collect()
    }

    fn is_for(&self, app: &App, user: &str) -> bool {
        let users = self.users_of(app);
        users.is_empty() || users.iter().any(|name| name == user)
    }

    /// All of them, by package.
    pub fn list(&self) -> Vec<Arc<App>> {
        self.apps.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Counts changes, as a signal to recheck the running apps.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The client that calls apps, and the log of their recent events.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Installs an app, replacing one with the same package; returns once it is durable.
    ///
    /// # Errors
    /// It is not installed; the previous one stays.
    pub async fn add(&self, app: App) -> Result<Arc<App>, Error> {
        check_package(&app.package)?;
        let _changing = self.changing.lock().await;
        let before = self.get(&app.package);
        if before.is_none() && self.list().len() >= APPS_MAX {
            return Err(Error::TooMany);
        }
        let value = serde_json::to_vec(&app).map_err(|error| Error::Package(format!("{}: {error}", app.package)))?;
        let app = Arc::new(app);
        if let Err(error) = self.offer(&app, before.as_ref()) {
            self.put_back(&app, before.as_ref());
            return Err(error.into());
        }
        let write = Write::PutRow { kind: Kind::Apps, owner: app.package.clone(), key: KEY.to_vec(), value };
        if let Err(error) = self.store.write(write).await {
            self.put_back(&app, before.as_ref());
            return Err(error.into());
        }
        self.change(|apps| apps.insert(app.package.clone(), app.clone()));
        Ok(app)
    }

    /// Removes an app; returns whether it was installed.
    ///
    /// # Errors
    /// It could not be removed.
    pub async fn remove(&self, package: &str) -> Result<bool, Error> {
        check_package(package)?;
        let _changing = self.changing.lock().await;
        let write = Write::ClearRows { kind: Kind::Apps, owner: package.to_owned(), prefix: Vec::new() };
        let removed = self.store.write(write).await?;
        if let Some(app) = self.get(package) {
            self.withdraw(&self.scopes(&app), &app);
        }
        self.client.log().forget(package);
        self.change(|apps| apps.remove(package));
        Ok(removed > 0)
    }

    fn change<R>(&self, act: impl FnOnce(&mut BTreeMap<String, Arc<App>>) -> R) {
        act(&mut self.apps.write().unwrap_or_else(PoisonError::into_inner));
        self.changes.send_modify(|count| *count += 1);
    }

    /// Offers its tools to its users, and no longer to those of `before`, the app that it replaces.
    fn offer(&self, app: &Arc<App>, before: Option<&Arc<App>>) -> Result<(), RegisterError> {
        let scopes = self.scopes(app);
        let mut gone = before.map(|before| self.scopes(before)).unwrap_or_default();
        gone.retain(|scope| !scopes.contains(scope));
        self.withdraw(&gone, app);
        let source = Source::App(app.package.clone());
        for scope in scopes {
            let named = app.tools.iter().map(|tool| (tool.spec.clone(), tool.local_name.clone())).collect();
            let runner = Arc::new(AppRunner::new(app.clone(), self.client.clone()));
            self.registry.register_named(source.clone(), scope, named, runner)?;
        }
        self.registry.report(&source, app.lost.clone());
        Ok(())
    }

    /// Offers what was offered before an app that is not installed after all.
    fn put_back(&self, app: &Arc<App>, before: Option<&Arc<App>>) {
        self.withdraw(&self.scopes(app), app);
        if let Some(before) = before {
            drop(self.offer(before, None));
        }
    }

    fn scopes(&self, app: &App) -> Vec<Scope> {
        Scope::of(&self.users_of(app))
    }

    fn withdraw(&self, scopes: &[Scope], app: &App) {
        for scope in scopes {
            self.registry.unregister(&Source::App(app.package.clone()), scope);
        }
    }
}

fn check_package(package: &str) -> Result<(), Error> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if package.is_empty() || package.len() > PACKAGE_BYTES_MAX || !package.chars().all(fits) {
        return Err(Error::Package(tools::reply::cut(package, PACKAGE_BYTES_MAX)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tools::apps::manifest::AppTool;

    use super::*;

    fn app(tool: &str) -> App {
        App {
            package: "com.example.todo".into(),
            name: "Todo".into(),
            public_url: "http://127.0.0.1:1".into(),
            tools: vec![AppTool { local_name: "add".into(), spec: spec(tool) }],
            ..App::default()
        }
    }

    fn spec(name: &str) -> gateway_core::vocab::ToolSpec {
        gateway_core::vocab::ToolSpec {
            name: name.into(),
            description: "Adds.".into(),
            input_schema: json!({"type": "object"}),
            ..Default::default()
        }
    }

    fn load(store: &Store) -> (Installed, Arc<Registry>) {
        drop(rustls::crypto::ring::default_provider().install_default());
        let registry = Arc::new(Registry::with_built_ins().unwrap());
        let client = Arc::new(Client::new().unwrap());
        (Installed::load(store.clone(), registry.clone(), client, BTreeMap::new()).unwrap(), registry)
    }

    fn offers(registry: &Registry, name: &str) -> bool {
        registry.snapshot("ada", Some("glasses")).find(name).is_some()
    }

    #[tokio::test]
    async fn an_installed_app_is_there_after_a_restart_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let (installed, registry) = load(&store);
        let changes = installed.changes();
        installed.add(app("com.example.todo.add")).await.unwrap();
        assert!(offers(&registry, "com.example.todo.add") && changes.has_changed().unwrap());

        let (again, registry) = load(&store);
        assert_eq!(again.get("com.example.todo"), installed.get("com.example.todo"));
        assert!(offers(&registry, "com.example.todo.add"));
        assert!(again.remove("com.example.todo").await.unwrap());
        assert!(!again.remove("com.example.todo").await.unwrap());
        assert!(again.list().is_empty() && !offers(&registry, "com.example.todo.add"));
        assert!(load(&store).0.list().is_empty());
    }

    #[tokio::test]
    async fn a_wrong_app_leaves_the_former_one_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let (installed, registry) = load(&store);
        installed.add(app("com.example.todo.add")).await.unwrap();
        // The name of a built-in tool.
        let error = installed.add(app("timer.set")).await.unwrap_err();
        assert!(error.to_string().contains("timer.set"), "{error}");
        assert!(offers(&registry, "com.example.todo.add"));
        let bad = App { package: "com example/todo".into(), ..app("x.add") };
        assert!(matches!(installed.add(bad).await, Err(Error::Package(_))));
        let long = App { package: "a".repeat(65), ..app("x.add") };
        assert!(matches!(installed.add(long).await, Err(Error::Package(_))));
        assert_eq!(installed.list().len(), 1);
    }
}
