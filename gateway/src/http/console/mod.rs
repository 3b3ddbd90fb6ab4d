//! `/console`: pages for the operators of a gateway, rendered here, with live updates where a script runs.
//!
//! Each page is a file with its route, its template and its forms. It asks and changes nothing by itself: it sends the
//! requests of the control socket ([`crate::control::Request`]). `guard` lets requests in, each as a `visit`, `session`
//! signs people in and out, `layout`, `table` and `plot` are the common parts of the pages, `live` sends changed parts of
//! them, which `shared` has rendered once for all pages.

mod approvals;
mod apps;
mod configuration;
mod conversations;
mod devices;
mod files;
mod firmware;
mod guard;
mod invitation;
mod layout;
mod live;
mod logs;
mod mcp;
mod models;
mod overview;
mod paths;
mod plot;
mod problems;
mod session;
mod sessions;
mod shared;
mod table;
mod tools;
mod turns;
mod users;
mod visit;

use std::sync::{Arc, Mutex, PoisonError};

use axum::{Router, http::StatusCode, middleware::from_fn_with_state, response::Response};

use self::{invitation::Invitations, visit::Visit};
use super::access::Names;
use crate::{
    clock,
    control::{
        self, Answer, Request,
        admin::{Admin, Console},
        gather,
    },
    findings::Findings,
    identity::operators::Operators,
    runtime::{on_own_thread, spawn},
    telemetry::LogThrottle,
};

/// How long an examination of the box counts, in microseconds: it reads some files, and looks names up.
const EXAMINED_US: u64 = 60_000_000;

/// What was found of the box, and when.
struct Examined {
    at_us: u64,
    findings: Findings,
}

/// State of the pages. Cheap to clone.
#[derive(Clone)]
struct Pages {
    admin: Arc<Admin>,
    console: Arc<Console>,
    names: Names,
    examined: Arc<Mutex<Option<Arc<Examined>>>>,
    /// Held by the one examination that runs.
    examining: Arc<tokio::sync::Mutex<()>>,
    /// Held while the turns of a long time are drawn.
    drawing: Arc<tokio::sync::Mutex<()>>,
    streams: live::Streams,
    shared: shared::Shared<live::Key>,
    invitations: Invitations,
    /// Lines of the log about wrong links.
    wrong: Arc<LogThrottle>,
}

pub(super) fn routes(admin: Arc<Admin>, names: Names) -> Router {
    let Some(console) = admin.console.clone() else { return Router::new() };
    let pages = Pages {
        admin,
        console,
        names,
        examined: Arc::default(),
        examining: Arc::default(),
        drawing: Arc::default(),
        streams: live::Streams::default(),
        shared: shared::Shared::default(),
        invitations: Invitations::default(),
        wrong: Arc::default(),
    };
    Router::new()
        .merge(files::routes())
        .merge(session::routes())
        .merge(live::routes())
        .merge(overview::routes())
        .merge(problems::routes())
        .merge(sessions::routes())
        .merge(devices::routes())
        .merge(invitation::routes())
        .merge(firmware::routes())
        .merge(turns::routes())
        .merge(logs::routes())
        .merge(tools::routes())
        .merge(approvals::routes())
        .merge(apps::routes())
        .merge(mcp::routes())
        .merge(models::routes())
        .merge(conversations::routes())
        .merge(configuration::routes())
        .route("/console/{*other}", axum::routing::any(async || layout::missing()))
        .layer(from_fn_with_state(pages.clone(), guard::guard))
        .with_state(pages)
}

impl Pages {
    fn operators(&self) -> &Operators {
        &self.console.operators
    }

    /// Reads something, as the control socket would.
    async fn ask(&self, request: Request) -> Result<Answer, String> {
        match control::run(&self.admin, request).await {
            Answer::Error { message } => Err(message),
            answer => Ok(answer),
        }
    }

    /// Changes something, or reads what wearers said, and leads to the page at `back`, which shows the result.
    async fn act(&self, visit: &Visit, request: Request, back: &str) -> Response {
        self.acted(visit, request).await;
        session::see_other(back)
    }

    /// Does what [`act`](Self::act) does, for who chooses the page by whether it was done: logged with who did it. The next page
    /// shows the result.
    ///
    /// It runs in a task of its own: hyper drops a handler when its browser disconnects, and what was begun has to be
    /// finished.
    async fn acted(&self, visit: &Visit, request: Request) -> bool {
        self.note(visit, control::name(&request), control::about(&request));
        let (pages, visitor) = (self.clone(), visit.visitor.clone());
        let task = spawn("console", async move {
            let (is_done, text) = match pages.ask(request).await {
                Ok(Answer::Done { message }) => (true, message),
                Ok(Answer::Reloaded { reloaded }) => (true, reloaded.told()),
                Ok(_) => (true, "done".to_owned()),
                Err(message) => (false, message),
            };
            pages.operators().tell(&visitor, is_done, &text);
            is_done
        });
        task.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a request of the console failed");
            self.operators().tell(&visit.visitor, false, "this failed by a fault of the gateway; see its log");
            false
        })
    }

    /// Logs what somebody does.
    fn note(&self, visit: &Visit, command: &str, about: Option<&str>) {
        tracing::info!(session = visit.visitor.number, role = visit.visitor.role.name(), command, about, "console");
    }

    /// What was found of the box last; where that is old, it is examined again meanwhile.
    fn examined(&self) -> Option<Arc<Examined>> {
        let latest = self.latest();
        if !latest.as_ref().is_some_and(|examined| examined.is_fresh()) && self.examining.try_lock().is_ok() {
            let pages = self.clone();
            spawn("examine", async move {
                pages.examine(false).await;
            });
        }
        latest
    }

    /// What is found of the box now, or was a moment ago unless `anew`.
    async fn examine(&self, anew: bool) -> Option<Arc<Examined>> {
        let _one_at_a_time = self.examining.lock().await;
        let latest = self.latest();
        if !anew && latest.as_ref().is_some_and(|examined| examined.is_fresh()) {
            return latest;
        }
        let examine = self.console.examine.clone();
        let status = gather::status(&self.admin).await;
        let findings = on_own_thread(move || examine(status)).await.ok()?;
        let examined = Arc::new(Examined { at_us: clock::mono_us(), findings });
        *self.examined.lock().unwrap_or_else(PoisonError::into_inner) = Some(examined.clone());
        Some(examined)
    }

    fn latest(&self) -> Option<Arc<Examined>> {
        self.examined.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Examined {
    fn is_fresh(&self) -> bool {
        self.at_us.saturating_add(EXAMINED_US) > clock::mono_us()
    }
}

/// The answer for somebody who may not see a page.
fn operators_only() -> Response {
    layout::refusal(
        StatusCode::FORBIDDEN,
        "This page is for operators: it may hold what wearers said. `lorgnette console` without `--viewer` prints a link.",
    )
}
