//! Carries out the commands.

use std::path::Path;

use gateway_core::vocab::ApprovalChoice;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::{
    Answer, Request,
    admin::Admin,
    apps::{self, AppsRequest},
    attempt, devices, firmware, gather, logs, mcp, memory,
    names::check_name,
    programs::{self, ProgramsRequest},
    reply::done,
    tools, turns_as_json,
};
use crate::{
    clock,
    erasing::OneAtATime,
    identity::operators::{LINK_US, Role},
    upgrade::Version,
};

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

/// Whether a request calls tools, or the server of an app. It may wait for a person, or for that server, and its client may leave
/// meanwhile.
pub(super) fn is_call(request: &Request) -> bool {
    matches!(
        request,
        Request::CallTool { .. }
            | Request::Apps { request: AppsRequest::Add(_) | AppsRequest::Try { run: true, .. } }
            | Request::Programs { request: ProgramsRequest::Run { .. } }
    )
}

/// Carries out a request.
pub(crate) async fn run(admin: &Admin, request: Request) -> Answer {
    run_for(admin, request, &CancellationToken::new()).await
}

/// As [`run`], for a client that may leave: `gone` interrupts its calls.
pub(super) async fn run_for(admin: &Admin, request: Request, gone: &CancellationToken) -> Answer {
    match carry_out(admin, request, gone).await {
        Ok(answer) => answer,
        Err(message) => Answer::Error { message },
    }
}

fn version(admin: &Admin, (pid, version): (u32, Version)) -> Answer {
    Answer::Version { pid, version, started_us: admin.started.at_us }
}

async fn carry_out(admin: &Admin, request: Request, gone: &CancellationToken) -> Result<Answer, String> {
    let services = &admin.services;
    match request {
        Request::Devices => devices::list(services),
        Request::PairCode { code, user, name } => devices::pair_code(services, &code, user, name).await,
        Request::PairFingerprint { fingerprint, user, name } => {
            devices::pair_fingerprint(services, &fingerprint, user, name).await
        }
        Request::Rename { device, name } => devices::rename(&services.store, &device, name).await,
        Request::Revoke { device } => devices::revoke(services, &device).await,
        Request::Apps { request } => apps::carry_out(admin, request, gone).await,
        Request::Memory { request } => memory::carry_out(admin, request).await,
        Request::Programs { request } => Box::pin(programs::carry_out(admin, request, gone)).await,
        Request::Firmware { request } => firmware::carry_out(&services.firmware, &services.store, request).await,
        // The socket's server writes the records after this answer.
        Request::Export { user } => check_name(&user).map(|()| Answer::Records { records: Vec::new() }),
        Request::Tools { user } => tools::list(admin, &user),
        Request::Callable { user } => tools::callable(admin, &user),
        Request::ToolReports => Ok(tools::reports(&services.registry)),
        Request::CallTool { user, name, arguments } => tools::call(services, user, name, arguments, gone).await,
        Request::SwitchTool { user, name, on } => tools::switch(admin, &user, &name, on).await,
        Request::ExplainSentence { text, user } => attempt::explain(services, &text, &user),
        Request::ApplyTools { user } => Ok(tools::apply(&services.roster, user.as_deref())),
        Request::Usage { user, since_wall_ms } => tools::usage(&services.store, user.as_deref(), since_wall_ms).await,
        Request::Decisions { user, since_wall_ms } => {
            tools::decisions(&services.store, user.as_deref(), since_wall_ms).await
        }
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
        Request::Status => gather::answer(admin).await,
        Request::Logs { filter, limit, cursor } => logs::page(&admin.logs, filter, limit, cursor.as_deref()).await,
        Request::StoredTurns { count, since_wall_ms, until_wall_ms } => {
            logs::turns(&admin.logs, since_wall_ms..=until_wall_ms.unwrap_or(i64::MAX), count).await
        }
        Request::Version => Ok(version(admin, (std::process::id(), Version::own()))),
        Request::Upgrade { program, wait_s } => upgrade(admin, &program, wait_s).await,
        Request::Reload => match (admin.reload)() {
            Ok(reloaded) => Ok(Answer::Reloaded { reloaded }),
            Err(problems) => Err(problems.join("\n")),
        },
        Request::ConsoleLink { role } => console_link(admin, role),
        Request::Turns { count } => Ok(Answer::Turns { turns: turns_as_json(&services.telemetry.turns.last(count)) }),
    }
}

/// Whether the process `pid`, in which the gateway runs, may be replaced now. Not where everything else ends with it. Not while
/// something runs that has to end before the store closes: sessions would be away that long. It is kept from beginning for as
/// long as what is returned lives.
fn replaceable(pid: u32, running: &OneAtATime) -> Result<OwnedSemaphorePermit, String> {
    if pid == 1 {
        return Err("the gateway is the first process of its container, which ends with it: stop this container, and start one \
                    of the new image on the same volumes"
            .to_owned());
    }
    running.alone_now().ok_or_else(|| {
        "an erasure, the snapshot of a backup or another upgrade is under way: upgrade again when it is over".to_owned()
    })
}

/// Starts the process that takes over, unless the disk takes nothing: that process could not open the data folder, and this one
/// could not open it again.
async fn upgrade(admin: &Admin, program: &Path, wait_s: u64) -> Result<Answer, String> {
    let upgrader = admin.upgrader.as_ref().ok_or("this gateway is part of another program")?;
    let alone = replaceable(std::process::id(), &admin.eraser.running)?;
    let services = &admin.services;
    let problems = admin.health.problems(&services.settings.data_dir, &services.store).await;
    if let Some(problem) = problems.iter().find(|problem| problem.part == "disk") {
        return Err(format!(
            "{}. No gateway starts on such a disk, so this one goes on; upgrade when that is over",
            problem.why
        ));
    }
    Ok(version(admin, upgrader.replace_by(program, wait_s, alone).await?))
}

fn console_link(admin: &Admin, role: Role) -> Result<Answer, String> {
    let off = "the console is switched off: set `listen.console = true`, and let `--only` name it";
    let console = admin.console.as_ref().ok_or(off)?;
    let token = console.operators.link(clock::mono_us(), role).map_err(|error| error.to_string())?;
    let (path, web) = (format!("/console/enter?link={token}"), admin.started.web.to_string());
    let certificate = admin.started.certificate.clone();
    Ok(Answer::ConsoleLink { path, web, expires_s: LINK_US / 1_000_000, certificate })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_upgrade_and_what_holds_up_the_store_keep_each_other_from_beginning() {
        let running = OneAtATime::default();
        let erasing = running.alone().await.unwrap();
        let refused = replaceable(2, &running).unwrap_err();
        assert!(refused.contains("is under way: upgrade again when it is over"), "{refused}");
        drop(erasing);
        let upgrading = replaceable(2, &running).unwrap();
        assert!(running.alone_now().is_none() && replaceable(2, &running).is_err());
        // It has failed.
        drop(upgrading);
        drop(running.alone().await.unwrap());
    }

    #[test]
    fn the_first_process_of_a_container_is_not_replaced() {
        let running = OneAtATime::default();
        let refused = replaceable(1, &running).unwrap_err();
        assert!(refused.contains("first process of its container, which ends with it"), "{refused}");
        assert!(running.alone_now().is_some(), "nothing is kept from beginning");
    }
}
