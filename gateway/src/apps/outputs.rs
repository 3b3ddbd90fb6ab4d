//! Carries out what the life cycles want, and says what of it an app's author may want to know.

use std::{sync::Arc, time::Duration};

use gateway_core::{
    app_life,
    input::AppInput,
    output::AppOutput,
    vocab::{AppConnection, AppEvent, AppStopReason, ErrorCode, WebhookCall},
};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;
use tools::apps::manifest::App;

use super::{
    host::{Host, ToApp, User},
    webhook, wire,
};
use crate::{clock, runtime::spawn};

impl Host {
    pub(super) fn carry_out(&self, name: &str, user: &mut User, output: AppOutput) {
        match output {
            AppOutput::Call { package, session, call, afresh, old } => {
                let (Some(app), Some(url)) = (self.installed.get(&package), self.url.get().cloned()) else {
                    return not_installed(user, package, call);
                };
                let old = old.and_then(|connection| user.sockets.get(&connection).cloned());
                self.call(name, (app, url), session, call, afresh, old);
            }
            AppOutput::CallStop { package, session, call, reason } => {
                self.note(name, &package, "stop", format!("told to stop: {}", reason.as_str()));
                let Some(app) = self.installed.get(&package) else { return not_installed(user, package, call) };
                self.call_stop(name, app, session, call, reason);
            }
            AppOutput::Close { connection, heard } => tell(user, connection, ToApp::Close { heard }),
            AppOutput::Drop { connection } => tell(user, connection, ToApp::Drop),
            AppOutput::Glasses(event) => {
                if let AppEvent::Stopped { package } = &event {
                    user.drawn.remove(package);
                    user.listening.remove(package);
                    self.speeches.withdraw(&self.roster, name, package);
                }
                self.show(name, &event);
            }
            AppOutput::Started { package } => {
                tracing::info!(user = name, package, "a mini-app runs");
                self.note(name, &package, "start", "it runs".to_owned());
                for waiting in user.starting.remove(&package).unwrap_or_default() {
                    drop(waiting.send(Ok(())));
                }
            }
            AppOutput::Failed { package, why, again_ms } => {
                match again_ms {
                    // The first time says it; every minute again would say no more.
                    Some(ms) if ms > app_life::RETRY_MS_MIN => {
                        tracing::debug!(user = name, package, why, again_ms, "a mini-app still does not run");
                    }
                    again_ms => tracing::warn!(user = name, package, why, again_ms, "a mini-app does not run"),
                }
                self.note_failed(name, &package, &why);
                let again = again_ms.map_or_else(String::new, |_| "; it is tried again until it is stopped".to_owned());
                for waiting in user.starting.remove(&package).unwrap_or_default() {
                    drop(waiting.send(Err(format!("{why}{again}"))));
                }
            }
            AppOutput::Asleep { package } => {
                let why = "no glasses are connected";
                self.note(name, &package, "stop", format!("it waits: {why}"));
                for waiting in user.starting.remove(&package).unwrap_or_default() {
                    drop(waiting.send(Err(why.to_owned())));
                }
            }
            AppOutput::Stopped { package } => {
                tracing::info!(user = name, package, "a mini-app has stopped");
                self.note(name, &package, "stop", "it has stopped".to_owned());
                for waiting in user.stopping.remove(&package).unwrap_or_default() {
                    let _ = waiting.send(());
                }
            }
            AppOutput::Remember(card) => self.remember(name, card),
            AppOutput::Forget { package } => self.forget(name, package),
        }
    }

    /// `afresh`: with a stop before it, after which the socket `old` is closed.
    fn call(
        &self,
        user: &str,
        (app, url): (Arc<App>, String),
        session: String,
        call: WebhookCall,
        afresh: bool,
        old: Option<mpsc::Sender<ToApp>>,
    ) {
        let Some(host) = self.me.upgrade() else { return };
        let (user, package) = (user.to_owned(), app.package.clone());
        self.note(&user, &package, "start", if afresh { "called anew" } else { "called" }.to_owned());
        let underway = self.stops_lock().get(&(user.clone(), package.clone())).cloned();
        spawn("app-start", async move {
            if let Some(underway) = underway {
                let limit = Duration::from_millis(app_life::STOP_MS_MAX);
                drop(timeout(limit, underway.cancelled()).await);
            }
            let http = host.installed.client().http();
            if afresh {
                let body = wire::stop_request(&session, &user, AppStopReason::System.as_str(), clock::wall_ms());
                // Whatever comes of it: its server may be a new one, which knows of no session.
                drop(webhook::stop(http, &app, &body).await);
                if let Some(old) = old {
                    close(&old).await;
                }
            }
            let body = wire::session_request(&session, &user, &url, clock::wall_ms());
            let outcome = webhook::start(http, &app, &body).await;
            host.input(&user, AppInput::Answered { package, call, outcome });
        });
    }

    fn call_stop(&self, user: &str, app: Arc<App>, session: String, call: WebhookCall, reason: AppStopReason) {
        let Some(host) = self.me.upgrade() else { return };
        let done = CancellationToken::new();
        let key = (user.to_owned(), app.package.clone());
        self.stops_lock().insert(key.clone(), done.clone());
        spawn("app-stop", async move {
            let body = wire::stop_request(&session, &key.0, reason.as_str(), clock::wall_ms());
            let told = webhook::stop(host.installed.client().http(), &app, &body).await;
            done.cancel();
            host.stops_lock().remove(&key);
            let (user, package) = key;
            if let Some((code, why)) = told.wrong {
                let request = format!("POST {}/webhook {body}", app.public_url);
                host.complain(&user, &package, "stop", code, why, request);
            }
            let outcome = if told.heard { Ok(()) } else { Err("it was not told".to_owned()) };
            host.input(&user, AppInput::Answered { package, call, outcome });
        });
    }

    /// An app did not start, unless the reason stands in its log already.
    fn note_failed(&self, user: &str, package: &str, why: &str) {
        let known = self.installed.client().log().faults(package);
        if known.last().is_some_and(|fault| fault.user == user && fault.what == "socket" && fault.message.contains(why))
        {
            return;
        }
        let request = self.installed.get(package).map_or_else(String::new, |app| {
            format!("POST {}/webhook session_request for {user}, whose server is to dial the gateway", app.public_url)
        });
        self.complain(user, package, "start", ErrorCode::AppNotAvailable, why.to_owned(), request);
    }
}

/// Closes the socket of an app that has taken its stop, where it does not do so itself. The app hears of it before it is
/// called again: what it does then is by the name of the session, and the next one has the same.
async fn close(socket: &mpsc::Sender<ToApp>) {
    let limit = Duration::from_millis(app_life::CLOSE_MS);
    if timeout(limit, socket.closed()).await.is_err() && socket.try_send(ToApp::Close { heard: true }).is_ok() {
        drop(timeout(limit, socket.closed()).await);
    }
}

fn tell(user: &User, connection: AppConnection, what: ToApp) {
    let Some(socket) = user.sockets.get(&connection) else { return };
    if socket.try_send(what).is_err() {
        tracing::debug!(connection, "an app's socket does not take what it is told");
    }
}

/// Nobody is there to be called.
fn not_installed(user: &mut User, package: String, call: WebhookCall) {
    let outcome = Err("it is not installed any more".to_owned());
    user.driver.push(AppInput::Answered { package, call, outcome });
}
