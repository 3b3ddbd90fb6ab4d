//! What the commands do.

use std::{sync::PoisonError, time::Duration};

use device_protocol::GoodbyeReason;
use gateway_core::vocab::ApprovalChoice;
use tokio::{sync::oneshot, time::timeout};

use super::{Answer, Paired, Request, SessionOf, Waits, apps, attempt, mcp, memory, status, tools, turns_as_json};
use crate::{
    clock,
    control::admin::Admin,
    identity::pairing::{Grant, Outcome},
    roster::Present,
    store::{
        DeviceRecord, Error, Write,
        names::{self, NAME_BYTES_MAX},
    },
    text::is_plain,
};

/// How long a device that was granted its pairing may take to be stored.
const PAIRED_MS_MAX: u64 = 8_000;

/// For the log: what was asked, without its arguments.
pub(super) fn name(request: &Request) -> &'static str {
    match request {
        Request::Devices => "devices",
        Request::PairCode { .. } | Request::PairFingerprint { .. } => "pair",
        Request::Rename { .. } => "rename",
        Request::Revoke { .. } => "revoke",
        Request::Turns { .. } => "turns",
        Request::Apps { wish } => apps::name(wish),
        Request::FollowApp { .. } => "apps logs",
        Request::Memory { wish } => memory::name(wish),
        Request::Export { .. } => "users export",
        Request::Tools { .. } | Request::ToolReports => "tools list",
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
    }
}

/// For the log: whom or what it is about. Codes and texts are nobody's business.
pub(super) fn about(request: &Request) -> Option<&str> {
    match request {
        Request::PairCode { user, .. }
        | Request::Tools { user }
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
        Request::Memory { wish } => memory::about(wish),
        _ => None,
    }
}

/// Carries a request out.
pub(super) async fn run(admin: &Admin, request: Request) -> Answer {
    match carry_out(admin, request).await {
        Ok(answer) => answer,
        Err(message) => Answer::Error { message },
    }
}

async fn carry_out(admin: &Admin, request: Request) -> Result<Answer, String> {
    let now_us = clock::mono_us();
    match request {
        Request::Devices => devices(admin),
        Request::PairCode { code, user, name } => {
            let grant = grant(user, name)?;
            let code: String = code.chars().filter(char::is_ascii_digit).collect();
            if code.len() != 6 {
                return Err("a pairing code has six digits, as the glasses show it; this costs no try".to_owned());
            }
            can_be_paired(admin, "", &grant)?;
            let (device, outcome) = admin.pairings.by_code(now_us, &code, grant).map_err(|error| error.to_string())?;
            paired(&device, outcome).await
        }
        Request::PairFingerprint { fingerprint, user, name } => {
            let grant = grant(user, name)?;
            let fingerprint = fingerprint.replace(['-', ':', ' '], "").to_lowercase();
            if fingerprint.len() != 32 || !fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err("a fingerprint has 32 hexadecimal digits; the glasses' log or box shows it".to_owned());
            }
            can_be_paired(admin, &fingerprint, &grant)?;
            match admin.pairings.by_fingerprint(now_us, &fingerprint, grant) {
                Some(outcome) => paired(&fingerprint, outcome).await,
                None => Ok(done(format!("for two minutes {fingerprint} will be admitted: switch the glasses on now"))),
            }
        }
        Request::Rename { device, name } => {
            check_name(&name)?;
            let (id, record) = find(admin, &device)?;
            let record = DeviceRecord { name: name.clone(), ..record };
            put(admin, &id, record).await?;
            Ok(done(format!("{id} is now called {name}")))
        }
        Request::Revoke { device } => {
            let (id, record) = find(admin, &device)?;
            put(admin, &id, DeviceRecord { revoked: true, ..record }).await?;
            tracing::info!(device = id, "revoked");
            let cut = admin.roster.dismiss(&id, GoodbyeReason::Revoked, "this device was revoked by the operator");
            Ok(done(format!("revoked {id}{}", if cut { "; its session was ended" } else { "" })))
        }
        Request::Apps { wish } => apps::carry_out(admin, wish).await,
        Request::Memory { wish } => memory::carry_out(admin, wish).await,
        // The server of the socket writes it after this answer.
        Request::Export { user } => check_name(&user).map(|()| Answer::Records { records: Vec::new() }),
        Request::Tools { user } => tools::list(admin, &user),
        Request::ToolReports => Ok(tools::reports(admin)),
        Request::CallTool { user, name, arguments } => tools::call(admin, user, name, arguments).await,
        Request::SwitchTool { user, name, on } => tools::switch(admin, &user, &name, on).await,
        Request::ExplainSentence { text, user } => attempt::explain(admin, &text, &user),
        Request::ApplyTools { user } => {
            let told = admin.roster.apply_tools(user.as_deref());
            Ok(done(format!(
                "{told} connected device(s): a turn that has said nothing yet begins anew with the new tools"
            )))
        }
        Request::Usage { user, since_wall_ms } => tools::usage(admin, user.as_deref(), since_wall_ms).await,
        Request::Decisions { user, since_wall_ms } => tools::decisions(admin, user.as_deref(), since_wall_ms).await,
        Request::Approvals | Request::WatchApprovals => Ok(Answer::Approvals { approvals: admin.approvals.list() }),
        Request::AnswerApproval { id, yes } => {
            let choice = if yes { ApprovalChoice::Yes } else { ApprovalChoice::No };
            let outcome = admin.approvals.answer(id, choice).await.map_err(|error| error.to_string())?;
            Ok(done(format!("question {id} is {outcome}")))
        }
        // The server of the socket answers it, event by event.
        Request::Ask { .. } | Request::FollowApp { .. } => Err("this is answered as a stream".to_owned()),
        // The server of the socket takes the connection over after this answer.
        Request::Mcp { user, .. } => check_name(&user).map(|()| done("this connection carries MCP now".to_owned())),
        Request::McpServers => Ok(mcp::list(admin)),
        Request::RestartMcpServer { name } => mcp::restart(admin, &name).await,
        Request::McpServerLogs { name } => mcp::logs(admin, &name),
        Request::Status => status::of(admin).await,
        Request::Turns { count } => Ok(Answer::Turns { turns: turns_as_json(&admin.turns.last(count)) }),
    }
}

fn devices(admin: &Admin) -> Result<Answer, String> {
    let paired = admin
        .store
        .disk()
        .devices()
        .map_err(|error| error.to_string())?
        .into_iter()
        .map(|(device, record)| Paired {
            session: admin.roster.get(&device).map(|present| session(&present)),
            left_wall_ms: admin.roster.left_wall_ms(&device),
            device,
            name: record.name,
            user: record.user,
            model: record.model,
            revoked: record.revoked,
        })
        .collect();
    let waiting = admin
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
        for_s: clock::mono_us().saturating_sub(present.via.since_us) / 1_000_000,
        firmware: status.firmware.clone(),
        battery_percent: status.battery_percent,
    }
}

pub(super) fn done(message: String) -> Answer {
    Answer::Done { message }
}

fn grant(user: String, name: String) -> Result<Grant, String> {
    check_name(&user)?;
    // Without one the glasses are called by their model.
    if !name.is_empty() {
        check_name(&name)?;
    }
    Ok(Grant { user, name })
}

pub(super) fn check_name(name: &str) -> Result<(), String> {
    if name.trim().is_empty() || name.len() > NAME_BYTES_MAX || !is_plain(name) {
        return Err(format!("a name has 1 to {NAME_BYTES_MAX} bytes, all of characters that show as themselves"));
    }
    Ok(())
}

/// Whether a device of this user and name has a place here, before its code is used up.
fn can_be_paired(admin: &Admin, id: &str, grant: &Grant) -> Result<(), String> {
    let devices = admin.store.disk().devices().map_err(|error| error.to_string())?;
    if names::is_taken(&devices, id, &grant.name) {
        return Err(Error::NameTaken(grant.name.clone()).to_string());
    }
    // The user's task, which the device's session needs.
    admin.users.mailbox(&grant.user).map(drop).map_err(|error| error.to_string())
}

/// What became of a pairing that was granted: nothing is called paired that is not stored.
async fn paired(device: &str, outcome: oneshot::Receiver<Outcome>) -> Result<Answer, String> {
    match timeout(Duration::from_millis(PAIRED_MS_MAX), outcome).await {
        Ok(Ok(Ok(name))) => Ok(done(format!("paired {device}, called {name}"))),
        Ok(Ok(Err(why))) => Err(format!("{device} is not paired: {why}")),
        Ok(Err(_gone)) => Err(format!("{device} went away before it was paired: connect it again")),
        Err(_elapsed) => Err(format!("{device} is granted, but not stored yet: see `lorgnette devices list`")),
    }
}

/// A device by its fingerprint, the beginning of it, or its name; exactly one must fit. Of those that were revoked a
/// name means none where others have it.
fn find(admin: &Admin, wanted: &str) -> Result<(String, DeviceRecord), String> {
    let mut fitting: Vec<_> = admin
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

async fn put(admin: &Admin, id: &str, device: DeviceRecord) -> Result<(), String> {
    let write = Write::PutDevice { id: id.to_owned(), device };
    admin.store.write(write).await.map(drop).map_err(|error| error.to_string())
}
