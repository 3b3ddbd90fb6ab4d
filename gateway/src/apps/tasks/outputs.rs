//! Carries out the outputs of the life cycles, and logs what an app's author needs to know about them.

use std::{sync::Arc, time::Duration};

use gateway_core::{
    app_lifecycle,
    input::AppInput,
    output::AppOutput,
    vocab::{AppConnection, AppEvent, AppStopReason, ErrorCode, WebhookCall},
};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;
use tools::apps::{log::Fault, manifest::App};

use super::task::Task;
use crate::{
    apps::{
        message::{AppsMessage, ToApp},
        webhook, wire,
    },
    clock,
    runtime::spawn,
};

impl Task {
    pub(super) fn fulfil(&mut self, output: AppOutput) {
        match output {
            AppOutput::Call { package, session, call, afresh, old } => {
                let (Some(app), Some(url)) = (self.common().installed.get(&package), self.tasks.url.get().cloned())
                else {
                    return self.not_installed(package, call);
                };
                let old = old.and_then(|connection| self.sockets.get(&connection).cloned());
                self.call((app, url), session, call, afresh, old);
            }
            AppOutput::CallStop { package, session, call, reason } => {
                self.note(&package, "stop", format!("told to stop: {}", reason.as_str()));
                let Some(app) = self.common().installed.get(&package) else {
                    return self.not_installed(package, call);
                };
                self.call_stop(app, session, call, reason);
            }
            AppOutput::Close { connection, heard } => self.tell(connection, ToApp::Close { heard }),
            AppOutput::Drop { connection } => self.tell(connection, ToApp::Drop),
            AppOutput::Glasses(event) => {
                if let AppEvent::Stopped { package } = &event {
                    self.drawn.stop(package);
                    self.listening.remove(package);
                    let common = self.common();
                    common.speeches.withdraw(&common.roster, &self.user, package);
                }
                self.show(&event);
            }
            AppOutput::Started { package } => {
                tracing::info!(user = self.user, package, "a mini-app runs");
                self.note(&package, "start", "it runs".to_owned());
                self.answer_starts(&package, &Ok(true));
            }
            AppOutput::Failed { package, why, again_ms } => {
                let user = &self.user;
                match again_ms {
                    // Logged the first time only: repetitions every minute add nothing.
                    Some(ms) if ms > app_lifecycle::RETRY_MS_MIN => {
                        tracing::debug!(user, package, why, again_ms, "a mini-app still does not run");
                    }
                    again_ms => tracing::warn!(user, package, why, again_ms, "a mini-app does not run"),
                }
                self.note_failed(&package, &why);
                let again = again_ms.map_or_else(String::new, |_| "; it is tried again until it is stopped".to_owned());
                self.answer_starts(&package, &Err(format!("{why}{again}")));
            }
            AppOutput::Asleep { package } => {
                let why = "no glasses are connected";
                self.note(&package, "stop", format!("it waits: {why}"));
                self.answer_starts(&package, &Err(why.to_owned()));
            }
            AppOutput::Stopped { package } => {
                tracing::info!(user = self.user, package, "a mini-app has stopped");
                self.note(&package, "stop", "it has stopped".to_owned());
                for waiting in self.stopping.remove(&package).unwrap_or_default() {
                    let _ = waiting.send(true);
                }
            }
            AppOutput::Remember(card) => self.remember(card),
            AppOutput::Forget { package } => self.forget(package),
        }
    }

    fn answer_starts(&mut self, package: &str, outcome: &Result<bool, String>) {
        for waiting in self.starting.remove(package).unwrap_or_default() {
            drop(waiting.send(outcome.clone()));
        }
    }

    /// `afresh`: preceded by a stop, after which the socket `old` is closed.
    fn call(
        &mut self,
        (app, url): (Arc<App>, String),
        session: String,
        call: WebhookCall,
        afresh: bool,
        old: Option<mpsc::Sender<ToApp>>,
    ) {
        let (user, package) = (self.user.clone(), app.package.clone());
        self.note(&package, "start", if afresh { "called anew" } else { "called" }.to_owned());
        let underway = self.stops.get(&package).cloned();
        let tasks = self.tasks.clone();
        self.calls += 1;
        spawn("app-start", async move {
            if let Some(underway) = underway {
                let limit = Duration::from_millis(app_lifecycle::STOP_MS_MAX);
                drop(timeout(limit, underway.cancelled()).await);
            }
            let http = tasks.common.installed.client().http();
            if afresh {
                let body = wire::stop_request(&session, &user, AppStopReason::System.as_str(), clock::wall_ms());
                // The result is ignored: the server may be a new one without the session.
                drop(webhook::stop(http, &app, &body).await);
                if let Some(old) = old {
                    close(&old).await;
                }
            }
            let body = wire::session_request(&session, &user, &url, clock::wall_ms());
            let outcome = webhook::start(http, &app, &body).await;
            tasks.tell(&user, AppsMessage::Input(AppInput::Answered { package, call, outcome })).await;
        });
    }

    fn call_stop(&mut self, app: Arc<App>, session: String, call: WebhookCall, reason: AppStopReason) {
        let (user, package) = (self.user.clone(), app.package.clone());
        let done = CancellationToken::new();
        self.stops.retain(|_, stop| !stop.is_cancelled());
        self.stops.insert(package.clone(), done.clone());
        let tasks = self.tasks.clone();
        self.calls += 1;
        spawn("app-stop", async move {
            let body = wire::stop_request(&session, &user, reason.as_str(), clock::wall_ms());
            let installed = &tasks.common.installed;
            let told = webhook::stop(installed.client().http(), &app, &body).await;
            done.cancel();
            if let Some((code, why)) = told.wrong {
                let request = format!("POST {}/webhook {body}", app.public_url);
                installed.complain(Some(&user), &package, "stop", code, why, request);
            }
            let outcome = if told.heard { Ok(()) } else { Err("it was not told".to_owned()) };
            tasks.tell(&user, AppsMessage::Input(AppInput::Answered { package, call, outcome })).await;
        });
    }

    /// The app to be called is not installed.
    fn not_installed(&mut self, package: String, call: WebhookCall) {
        let outcome = Err("it is not installed any more".to_owned());
        self.push(AppInput::Answered { package, call, outcome });
    }

    fn tell(&self, connection: AppConnection, what: ToApp) {
        let Some(socket) = self.sockets.get(&connection) else { return };
        if socket.try_send(what).is_err() {
            tracing::debug!(connection, "an app's socket does not take what it is told");
        }
    }

    fn note(&self, package: &str, what: &str, message: String) {
        self.common().installed.note(&self.user, package, what, message);
    }

    /// Logs that an app did not start, unless its log already contains the reason.
    fn note_failed(&self, package: &str, why: &str) {
        let (installed, user) = (&self.common().installed, &self.user);
        let known = installed.client().log().faults(package);
        let is_known =
            |fault: &Fault| fault.user.as_ref() == Some(user) && fault.what == "socket" && fault.message.contains(why);
        if known.last().is_some_and(is_known) {
            return;
        }
        let request = installed.get(package).map_or_else(String::new, |app| {
            format!("POST {}/webhook session_request for {user}, whose server is to dial the gateway", app.public_url)
        });
        installed.complain(Some(user), package, "start", ErrorCode::AppNotAvailable, why.to_owned(), request);
    }
}

/// Closes the socket of an app that has accepted its stop, if the app does not close it. The app is notified before it
/// is called again: it acts on the session's name, which the next session shares.
async fn close(socket: &mpsc::Sender<ToApp>) {
    let limit = Duration::from_millis(app_lifecycle::CLOSE_MS);
    if timeout(limit, socket.closed()).await.is_err() && socket.try_send(ToApp::Close { heard: true }).is_ok() {
        drop(timeout(limit, socket.closed()).await);
    }
}
