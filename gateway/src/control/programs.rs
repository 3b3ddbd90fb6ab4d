//! Requests about programs: their runs, and routines. Their texts are sent over this socket only.

use std::{sync::Arc, time::Duration};

use gateway_core::vocab::{ClientClass, ToolCall};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tools::{
    call::CallContext,
    code::names::RUN,
    programs::{Keep, KeptRoutine, NotKept, ProgramStore as _, Run, WhichRun},
};

use super::{Answer, admin::Admin, devices::device_of, names::check_name, reply::done};
use crate::{
    clock,
    ports::routines::{Stored, StoredRoutines},
    text::quoted,
};

/// For the call's record; its own time-out is the tool's.
const CALL_TIME: Duration = Duration::from_secs(120);

/// What `lorgnette code` asks about runs and routines.
#[allow(missing_docs, reason = "the fields are the words of the command line")]
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum ProgramsRequest {
    /// A user's runs, newest first, without their programs and outputs.
    Runs { user: String },
    /// One run.
    Show { user: String, id: u64 },
    /// Run its program again.
    Run { user: String, id: u64 },
    /// Keep it as a routine.
    Keep { user: String, id: u64, name: String, phrases: Vec<String> },
    /// A user's routines, by name, without their programs.
    Routines { user: String },
    /// A routine with its versions.
    Routine { user: String, name: String },
    /// With all of its versions.
    RemoveRoutine { user: String, name: String },
    /// Make an earlier version the present one.
    RestoreRoutine { user: String, name: String, version: u32 },
}

/// The request's name for the log.
pub(super) fn name(request: &ProgramsRequest) -> &'static str {
    match request {
        ProgramsRequest::Runs { .. } => "code runs",
        ProgramsRequest::Show { .. } => "code show",
        ProgramsRequest::Run { .. } => "code run",
        ProgramsRequest::Keep { .. } => "code keep",
        ProgramsRequest::Routines { .. } => "code routines",
        ProgramsRequest::Routine { .. } => "code routine show",
        ProgramsRequest::RemoveRoutine { .. } => "code routine remove",
        ProgramsRequest::RestoreRoutine { .. } => "code routine restore",
    }
}

/// The request's user.
pub(super) fn about(request: &ProgramsRequest) -> &str {
    match request {
        ProgramsRequest::Runs { user }
        | ProgramsRequest::Show { user, .. }
        | ProgramsRequest::Run { user, .. }
        | ProgramsRequest::Keep { user, .. }
        | ProgramsRequest::Routines { user }
        | ProgramsRequest::Routine { user, .. }
        | ProgramsRequest::RemoveRoutine { user, .. }
        | ProgramsRequest::RestoreRoutine { user, .. } => user,
    }
}

/// Carries out a request; `gone` interrupts a program that is run again.
pub(super) async fn carry_out(
    admin: &Admin,
    request: ProgramsRequest,
    gone: &CancellationToken,
) -> Result<Answer, String> {
    check_name(about(&request))?;
    let services = &admin.services;
    services.store.settled().await.map_err(words)?;
    // An erasure of the user ends it.
    let lease = services.executor.in_flight().enter(about(&request));
    let erased = || "everything of this user is being erased; try again in a minute".to_owned();
    let lease = lease.ok_or_else(erased)?;
    // Boxed, and so are the others: a call's future is large.
    lease.within(Box::pin(admitted(admin, request, gone))).await.ok_or_else(erased)?
}

async fn admitted(admin: &Admin, request: ProgramsRequest, gone: &CancellationToken) -> Result<Answer, String> {
    let (services, routines) = (&admin.services, &admin.routines);
    let device = device_of(&services.roster, about(&request));
    let kept = |kept: Result<KeptRoutine, NotKept>| kept.map(|kept| done(told(&kept))).map_err(why);
    let records = match request {
        ProgramsRequest::Runs { user } => {
            let (all, store) = (routines.clone(), services.store.clone());
            let list = store.read(move |_| all.runs.list(&user)).await.map_err(words)?;
            list.iter().map(brief).collect()
        }
        ProgramsRequest::Show { user, id } => vec![whole(&find(routines, &user, id)?)],
        ProgramsRequest::Run { user, id } => vec![Box::pin(again(admin, user, id, gone)).await?],
        ProgramsRequest::Keep { user, id, name, phrases } => {
            let keep = Keep { run: WhichRun::Number(id), name, phrases };
            return kept(routines.keep(&user, device.as_deref(), keep).await);
        }
        ProgramsRequest::Routines { user } => routines.of(&user).values().map(listed).collect(),
        ProgramsRequest::Routine { user, name } => {
            let found = routines.of(&user).remove(&name).ok_or_else(|| no_routine(&user, &name))?;
            vec![serde_json::to_value(found).map_err(words)?]
        }
        ProgramsRequest::RemoveRoutine { user, name } => {
            return match routines.remove(&user, &name).await.map_err(why)? {
                true => Ok(done(format!("{name} is no routine of {user} any more"))),
                false => Err(no_routine(&user, &name)),
            };
        }
        ProgramsRequest::RestoreRoutine { user, name, version } => {
            return kept(routines.restore(&user, device.as_deref(), &name, version).await);
        }
    };
    Ok(Answer::Records { records })
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn why(error: NotKept) -> String {
    match error {
        NotKept::Refused(why) => why,
        NotKept::Port(error) => error.to_string(),
    }
}

fn no_routine(user: &str, name: &str) -> String {
    format!("{user} has no routine `{name}`; `lorgnette code routines --user {}` shows them", quoted(user))
}

fn find(routines: &Arc<StoredRoutines>, user: &str, id: u64) -> Result<Run, String> {
    let found = routines.runs.get(user, id).map_err(words)?;
    found.ok_or_else(|| {
        format!(
            "{user} has no run {id}; `lorgnette code runs --user {}` shows them, those of seven days are kept",
            quoted(user)
        )
    })
}

/// A run without its texts.
fn brief(run: &Run) -> Value {
    json!({
        "id": run.id,
        "wall_ms": run.wall_ms,
        "call": run.call,
        "device": run.device,
        "lines": run.source.lines().count(),
        "calls": run.calls.len(),
        "error": run.error.as_ref().map(|error| error.code),
        "took_ms": run.took_ms,
        "cut_off": run.cut_off,
        "again_of": run.again_of,
        "routine": run.routine,
    })
}

fn whole(run: &Run) -> Value {
    let mut value = serde_json::to_value(run).unwrap_or_default();
    value["id"] = run.id.into();
    value
}

/// A routine without its program.
fn listed(routine: &Stored) -> Value {
    let last = routine.versions.last();
    json!({
        "name": routine.name,
        "version": last.map(|last| last.number),
        "kept_wall_ms": last.map(|last| last.kept_wall_ms),
        "phrases": last.map(|last| &last.phrases),
        "may_call": last.map(|last| last.tools.keys().collect::<Vec<_>>()),
        "versions": routine.versions.iter().map(|version| version.number).collect::<Vec<_>>(),
    })
}

fn told(kept: &KeptRoutine) -> String {
    let KeptRoutine { of, phrases, tools } = kept;
    let phrases: Vec<String> = phrases.iter().map(|phrase| format!("\"{phrase}\"")).collect();
    let tools = if tools.is_empty() { "nothing".to_owned() } else { tools.join(", ") };
    format!("kept as {}, version {}; said as {}; may call {tools}", of.name, of.version, phrases.join(" or "))
}

/// Runs a program again as its user, through the executor: with limits, questions and records like any other call.
async fn again(admin: &Admin, user: String, id: u64, gone: &CancellationToken) -> Result<Value, String> {
    let (services, runs) = (&admin.services, &admin.routines.runs);
    let run = find(&admin.routines, &user, id)?;
    let call = format!("control-{}", clock::mono_us());
    let context = CallContext {
        device: device_of(&services.roster, &user),
        user: user.clone(),
        // A repeated command of an operator is intended.
        session: None,
        turn: None,
        cancel: gone.clone(),
        default_timeout: CALL_TIME,
        conversation: Arc::default(),
        language: None,
        client: ClientClass::Internal,
        caller: None,
        session_lease: None,
        watcher: None,
    };
    let arguments = json!({"code": run.source});
    let repeats = runs.repeats(&call, id);
    let call_again = ToolCall { id: call.clone(), name: RUN.to_owned(), arguments };
    let result = Box::pin(services.executor.call(context, call_again)).await;
    runs.repeated(&call);
    if !repeats {
        tracing::warn!("too many programs are run by hand at once: the new run does not name the old one");
    }
    services.store.settled().await.map_err(words)?;
    let newest = runs.latest(&user, |run| run.call == call).map_err(words)?;
    match (newest, result.error) {
        (Some(run), _) => Ok(whole(&run)),
        (None, Some(error)) => Err(error.message),
        (None, None) => Err("the program ran, and there is no record of it".to_owned()),
    }
}
