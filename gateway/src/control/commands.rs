//! Carries out the commands.

use std::{path::Path, sync::PoisonError, time::Duration};

use device_protocol::GoodbyeReason;
use gateway_core::vocab::ApprovalChoice;
use tokio::{sync::oneshot, time::timeout};

use super::{
    Answer, Paired, Request, SessionOf, Waits, apps, attempt, firmware, logs, mcp, memory, programs, status, tools,
    turns_as_json,
};
use crate::{
    clock,
    control::admin::Admin,
    device_task::services::Services,
    identity::{
        grant::{Grant, Outcome},
        operators::{LINK_US, Role},
        pairing::REVOKED,
        typed,
    },
    roster::Present,
    store::{
        DeviceRecord, Error, Write,
        names::{self, NAME_BYTES_MAX},
    },
    text::is_plain,
    upgrade::Version,
};

/// How long storing a device after a granted pairing may take, in milliseconds.
const PAIRED_MS_MAX: u64 = 8_000;
/// How long a session may take to end: one round of its loop.
const ENDED_MAX: Duration = Duration::from_secs(2);

/// The request's name for the log, without its arguments.
pub(crate) fn name(request: &Request) -> &'static str {
    match request {
        Request::Devices => "devices",
        Request::PairCode { .. } | Request::PairFingerprint { .. } => "pair",
        Request::Invite { .. } => "invite",
        Request::Rename { .. } => "rename",
        Request::Revoke { .. } => "revoke",
        Request::Turns { .. } | Request::StoredTurns { .. } => "turns",
        Request::Apps { request } => apps::name(request),
        Request::FollowApp { .. } => "apps logs",
        Request::Memory { request } => memory::name(request),
        Request::Programs { request } => programs::name(request),
        Request::Firmware { request } => firmware::name(request),
        Request::Export { .. } => "users export",
        Request::Tools { .. } | Request::ToolReports => "tools list",
        Request::Callable { .. } => "capabilities",
        Request::CallTool { .. } => "tools call",
        Request::SwitchTool { .. } => "tools allow or deny",
        Request::ExplainSentence { .. } => "tools explain",
        Request::ApplyTools { .. } => "tools apply",
        Request::Usage { .. } => "usage",
        Request::Approvals | Request::WatchApprovals => "approvals",
        Request::Decisions { .. } => "decisions",
        Request::AnswerApproval { yes: true, .. } => "approve",
        Request::AnswerApproval { yes: false, .. } => "deny",
        Request::Ask { .. } => "ask",
        Request::Mcp { .. } => "mcp",
        Request::McpServers => "mcp list",
        Request::RestartMcpServer { .. } => "mcp restart",
        Request::McpServerLogs { .. } => "mcp logs",
        Request::Status => "status",
        Request::Logs { .. } | Request::FollowLogs { .. } => "logs",
        Request::Version => "version",
        Request::Upgrade { .. } => "upgrade",
        Request::Backup { .. } => "backup",
        Request::ConsoleLink { .. } => "console",
        Request::Reload => "reload",
    }
}

/// The request's subject for the log. Codes and texts are not logged.
pub(crate) fn about(request: &Request) -> Option<&str> {
    match request {
        Request::PairCode { user, .. }
        | Request::Invite { user, .. }
        | Request::Tools { user }
        | Request::Callable { user }
        | Request::ExplainSentence { user, .. }
        | Request::Export { user }
        | Request::Ask { user, .. }
        | Request::Mcp { user, .. } => Some(user),
        Request::PairFingerprint { fingerprint, .. } => Some(fingerprint),
        Request::Rename { device, .. } | Request::Revoke { device } => Some(device),
        Request::CallTool { name, .. }
        | Request::SwitchTool { name, .. }
        | Request::RestartMcpServer { name }
        | Request::McpServerLogs { name } => Some(name),
        Request::Memory { request } => memory::about(request),
        Request::Programs { request } => Some(programs::about(request)),
        Request::Firmware { request } => firmware::about(request),
        _ => None,
    }
}

/// Carries out a request.
pub(crate) async fn run(admin: &Admin, request: Request) -> Answer {
    match carry_out(admin, request).await {
        Ok(answer) => answer,
        Err(message) => Answer::Error { message },
    }
}

fn version(admin: &Admin, (pid, version): (u32, Version)) -> Answer {
    Answer::Version { pid, version, started_us: admin.started.at_us }
}

async fn carry_out(admin: &Admin, request: Request) -> Result<Answer, String> {
    let (now_us, services) = (clock::mono_us(), &admin.services);
    match request {
        Request::Devices => devices(services),
        Request::PairCode { code, user, name } => {
            let grant = grant(user, name)?;
            let code = typed::code(&code)?;
            can_be_paired(services, None, &grant)?;
            let (device, outcome) =
                services.admission.pairings.by_code(now_us, &code, grant).map_err(|error| error.to_string())?;
            paired(&device, outcome).await
        }
        Request::PairFingerprint { fingerprint, user, name } => {
            let grant = grant(user, name)?;
            let fingerprint = typed::fingerprint(&fingerprint)?;
            can_be_paired(services, Some(&fingerprint), &grant)?;
            let opened = services.admission.pairings.by_fingerprint(now_us, &fingerprint, grant);
            match opened.map_err(|error| error.to_string())? {
                Some(outcome) => paired(&fingerprint, outcome).await,
                None => Ok(done(format!("for two minutes {fingerprint} will be admitted: switch the glasses on now"))),
            }
        }
        Request::Rename { device, name } => {
            check_name(&name)?;
            let (id, record) = find(services, &device)?;
            let record = DeviceRecord { name: name.clone(), ..record };
            put(services, &id, record).await?;
            Ok(done(format!("{id} is now called {name}")))
        }
        Request::Revoke { device } => revoke(services, &device).await,
        Request::Apps { request } => apps::carry_out(admin, request).await,
        Request::Memory { request } => memory::carry_out(admin, request).await,
        Request::Programs { request } => Box::pin(programs::carry_out(admin, request)).await,
        Request::Firmware { request } => firmware::carry_out(admin, request).await,
        // The socket's server writes the records after this answer.
        Request::Export { user } => check_name(&user).map(|()| Answer::Records { records: Vec::new() }),
        Request::Tools { user } => tools::list(admin, &user),
        Request::Callable { user } => tools::callable(admin, &user),
        Request::ToolReports => Ok(tools::reports(services)),
        Request::CallTool { user, name, arguments } => tools::call(services, user, name, arguments).await,
        Request::SwitchTool { user, name, on } => tools::switch(admin, &user, &name, on).await,
        Request::ExplainSentence { text, user } => attempt::explain(services, &text, &user),
        Request::ApplyTools { user } => Ok(tools::apply(services, user.as_deref())),
        Request::Usage { user, since_wall_ms } => tools::usage(services, user.as_deref(), since_wall_ms).await,
        Request::Decisions { user, since_wall_ms } => tools::decisions(services, user.as_deref(), since_wall_ms).await,
        Request::Approvals | Request::WatchApprovals => Ok(Answer::Approvals { approvals: services.approvals.list() }),
        Request::AnswerApproval { id, yes } => {
            let choice = if yes { ApprovalChoice::Yes } else { ApprovalChoice::No };
            let outcome = services.approvals.answer(id, choice).await.map_err(|error| error.to_string())?;
            Ok(done(format!("question {id} is {outcome}")))
        }
        // The socket's server answers these as long as the client stays.
        Request::Ask { .. }
        | Request::FollowApp { .. }
        | Request::FollowLogs { .. }
        | Request::Backup { .. }
        | Request::Invite { .. } => Err("this is answered as a stream".to_owned()),
        // The socket's server takes over the connection after this answer.
        Request::Mcp { user, .. } => check_name(&user).map(|()| done("this connection carries MCP now".to_owned())),
        Request::McpServers => Ok(mcp::list(&admin.mcp)),
        Request::RestartMcpServer { name } => mcp::restart(&admin.mcp, &name).await,
        Request::McpServerLogs { name } => mcp::logs(&admin.mcp, &name),
        Request::Status => status::of(admin).await,
        Request::Logs { filter, limit, cursor } => logs::page(admin, filter, limit, cursor.as_deref()).await,
        Request::StoredTurns { count, since_wall_ms, until_wall_ms } => {
            logs::turns(admin, since_wall_ms..=until_wall_ms.unwrap_or(i64::MAX), count).await
        }
        Request::Version => Ok(version(admin, (std::process::id(), Version::own()))),
        Request::Upgrade { program, wait_s } => upgrade(admin, &program, wait_s).await,
        Request::Reload => match (admin.reload)() {
            Ok(reloaded) => Ok(Answer::Reloaded { reloaded }),
            Err(problems) => Err(problems.join("\n")),
        },
        Request::ConsoleLink { role } => console_link(admin, now_us, role),
        Request::Turns { count } => Ok(Answer::Turns { turns: turns_as_json(&services.telemetry.turns.last(count)) }),
    }
}

/// Starts the process that takes over, unless the disk takes nothing: that process could not open the data folder, and this one
/// could not open it again.
async fn upgrade(admin: &Admin, program: &Path, wait_s: u64) -> Result<Answer, String> {
    let upgrader = admin.upgrader.as_ref().ok_or("this gateway is part of another program")?;
    let services = &admin.services;
    let problems = admin.health.problems(&services.settings.data_dir, &services.store).await;
    if let Some(problem) = problems.iter().find(|problem| problem.part == "disk") {
        return Err(format!(
            "{}. No gateway starts on such a disk, so this one goes on; upgrade when that is over",
            problem.why
        ));
    }
    Ok(version(admin, upgrader.replace_by(program, wait_s).await?))
}

fn console_link(admin: &Admin, now_us: u64, role: Role) -> Result<Answer, String> {
    let off = "the console is switched off: set `listen.console = true`, and let `--only` name it";
    let console = admin.console.as_ref().ok_or(off)?;
    let token = console.operators.link(now_us, role).map_err(|error| error.to_string())?;
    let (path, web) = (format!("/console/enter?link={token}"), admin.started.web.to_string());
    let certificate = admin.started.certificate.clone();
    Ok(Answer::ConsoleLink { path, web, expires_s: LINK_US / 1_000_000, certificate })
}

fn devices(services: &Services) -> Result<Answer, String> {
    let paired = services
        .store
        .disk()
        .devices()
        .map_err(|error| error.to_string())?
        .into_iter()
        .map(|(device, record)| Paired {
            session: services.roster.get(&device).map(|present| session(&present)),
            left_wall_ms: services.roster.left_wall_ms(&device),
            device,
            name: record.name,
            user: record.user,
            model: record.model,
            revoked: record.revoked,
        })
        .collect();
    let waiting = services
        .admission
        .pairings
        .waiting(clock::mono_us())
        .into_iter()
        .map(|waiting| Waits {
            fingerprint: waiting.fingerprint,
            model: waiting.model,
            shows_code: waiting.has_code,
            expires_s: waiting.expires_s,
        })
        .collect();
    Ok(Answer::Devices { paired, waiting })
}

/// A device's session, for people.
pub(super) fn session(present: &Present) -> SessionOf {
    let status = present.status.lock().unwrap_or_else(PoisonError::into_inner);
    SessionOf {
        transport: present.via.transport.label.to_owned(),
        peer: present.via.peer.to_string(),
        for_s: seconds_since(present.via.since_us),
        lost_s: present.via.lost_us.map(seconds_since),
        firmware: status.firmware.clone(),
        battery_percent: status.battery_percent,
        microphone: status.microphone_faults.iter().map(|fault| fault.name().to_owned()).collect(),
        turn: present.via.turn,
    }
}

fn seconds_since(at_us: u64) -> u64 {
    clock::mono_us().saturating_sub(at_us) / 1_000_000
}

pub(super) fn done(message: String) -> Answer {
    Answer::Done { message }
}

pub(super) fn grant(user: String, name: String) -> Result<Grant, String> {
    check_name(&user)?;
    // Without a name, the glasses are called by their model.
    if !name.is_empty() {
        check_name(&name)?;
    }
    Ok(Grant { user, name })
}

pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if name.trim().is_empty() || name.len() > NAME_BYTES_MAX || !is_plain(name) {
        return Err(format!("a name has 1 to {NAME_BYTES_MAX} bytes, all of characters that show as themselves"));
    }
    Ok(())
}

/// Checks whether this device, if it is known yet, can be paired for the user and name, before its code is used up.
pub(super) fn can_be_paired(services: &Services, device: Option<&str>, grant: &Grant) -> Result<(), String> {
    let devices = services.store.disk().devices().map_err(|error| error.to_string())?;
    if names::is_taken(&devices, device, &grant.name) {
        return Err(Error::NameTaken(grant.name.clone()).to_string());
    }
    services.users.check_room(&grant.user).map_err(|error| error.to_string())
}

/// The result of a granted pairing: success is reported only once the device is stored.
async fn paired(device: &str, outcome: oneshot::Receiver<Outcome>) -> Result<Answer, String> {
    match timeout(Duration::from_millis(PAIRED_MS_MAX), outcome).await {
        Ok(Ok(Ok(name))) => Ok(done(format!("paired {device}, called {name}"))),
        Ok(Ok(Err(why))) => Err(format!("{device} is not paired: {why}")),
        Ok(Err(_gone)) => Err(format!("{device} went away before it was paired: connect it again")),
        Err(_elapsed) => Err(format!("{device} is granted, but not stored yet: see `lorgnette devices list`")),
    }
}

/// A device by its fingerprint, a prefix of it, or its name; exactly one must match. A name matches revoked devices
/// only if no other device has it.
pub(super) fn find(services: &Services, wanted: &str) -> Result<(String, DeviceRecord), String> {
    let mut fitting: Vec<_> = services
        .store
        .disk()
        .devices()
        .map_err(|error: Error| error.to_string())?
        .into_iter()
        .filter(|(id, record)| (!wanted.is_empty() && id.starts_with(wanted)) || record.name == wanted)
        .collect();
    if fitting.iter().any(|(_, record)| !record.revoked && record.name == wanted) {
        fitting.retain(|(id, record)| !record.revoked || id.starts_with(wanted));
    }
    match fitting.len() {
        1 => Ok(fitting.remove(0)),
        0 => Err(format!("no device is called `{wanted}`; `lorgnette devices list` shows them")),
        count => Err(format!("{count} devices fit `{wanted}`; give more of the fingerprint")),
    }
}

/// Keeps a device out: first in memory, which always works, then in the store. Where that cannot be read, the device has to be
/// named by its whole fingerprint.
async fn revoke(services: &Services, wanted: &str) -> Result<Answer, String> {
    let found = find(services, wanted);
    let id = match &found {
        Ok((id, _)) => id.clone(),
        Err(_) if services.roster.get(wanted).is_some() => wanted.to_owned(),
        Err(error) => return Err(error.clone()),
    };
    services.admission.pairings.revoke(clock::mono_us(), &id);
    let cut = match services.roster.dismiss(&id, GoodbyeReason::Revoked, REVOKED) {
        None => "",
        Some(session) if timeout(ENDED_MAX, session.mailbox.closed()).await.is_ok() => "; its session was ended",
        Some(_) => "; its session was told to end and has not ended yet, see `lorgnette devices list`",
    };
    let stored = match found {
        Ok((_, record)) => put(services, &id, DeviceRecord { revoked: true, ..record }).await,
        Err(error) => Err(error),
    };
    tracing::info!(device = id, cut, stored = stored.is_ok(), "revoked");
    match stored {
        Ok(()) => Ok(done(format!("revoked {id}{cut}"))),
        Err(error) => Err(format!(
            "{id} is kept out until the next start{cut}; but that it is revoked could not be stored: {error}. Revoke it again \
             when that is solved"
        )),
    }
}

async fn put(services: &Services, id: &str, device: DeviceRecord) -> Result<(), String> {
    let write = Write::PutDevice { id: id.to_owned(), device };
    services.store.write(write).await.map(drop).map_err(|error| error.to_string())
}
