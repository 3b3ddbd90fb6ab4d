//! What the commands do.

use device_protocol::GoodbyeReason;
use gateway_core::vocab::ApprovalChoice;

use super::{Answer, Paired, Request, Waits, apps, memory, tools, turns_as_json};
use crate::{
    clock,
    gate::Gate,
    identity::pairing::Grant,
    store::{DeviceRecord, Error, Write},
};

/// Longest name of a user or device, in bytes: both are keys of the store.
const NAME_BYTES_MAX: usize = 64;

/// For the log: what was asked, without its arguments.
pub(super) fn name(request: &Request) -> &'static str {
    match request {
        Request::Devices => "devices",
        Request::PairCode { .. } | Request::PairFingerprint { .. } => "pair",
        Request::Rename { .. } => "rename",
        Request::Revoke { .. } => "revoke",
        Request::Turns { .. } => "turns",
        Request::Apps { wish } => apps::name(wish),
        Request::Memory { wish } => memory::name(wish),
        Request::Export { .. } => "users export",
        Request::Tools { .. } | Request::ToolReports => "tools list",
        Request::CallTool { .. } => "tools call",
        Request::SwitchTool { .. } => "tools allow or deny",
        Request::ApplyTools { .. } => "tools apply",
        Request::Usage { .. } => "usage",
        Request::Approvals | Request::WatchApprovals => "approvals",
        Request::Decisions { .. } => "decisions",
        Request::AnswerApproval { yes: true, .. } => "approve",
        Request::AnswerApproval { yes: false, .. } => "deny",
        Request::Ask { .. } => "ask",
        Request::Mcp { .. } => "mcp",
    }
}

/// Carries a request out.
pub(super) async fn run(gate: &Gate, request: Request) -> Answer {
    match carry_out(gate, request).await {
        Ok(answer) => answer,
        Err(message) => Answer::Error { message },
    }
}

async fn carry_out(gate: &Gate, request: Request) -> Result<Answer, String> {
    let now_us = clock::mono_us();
    match request {
        Request::Devices => devices(gate),
        Request::PairCode { code, user, name } => {
            let grant = grant(user, name)?;
            let code: String = code.chars().filter(char::is_ascii_digit).collect();
            if code.len() != 6 {
                return Err("a pairing code has six digits, as the glasses show it; this costs no try".to_owned());
            }
            let device = gate.pairings.by_code(now_us, &code, grant).map_err(|error| error.to_string())?;
            Ok(done(format!("paired {device}")))
        }
        Request::PairFingerprint { fingerprint, user, name } => {
            let grant = grant(user, name)?;
            let fingerprint = fingerprint.replace(['-', ':', ' '], "").to_lowercase();
            if fingerprint.len() != 32 || !fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err("a fingerprint has 32 hexadecimal digits; the glasses' log or box shows it".to_owned());
            }
            let paired = gate.pairings.by_fingerprint(now_us, &fingerprint, grant);
            Ok(done(if paired {
                format!("paired {fingerprint}")
            } else {
                format!("for two minutes {fingerprint} will be admitted: switch the glasses on now")
            }))
        }
        Request::Rename { device, name } => {
            check_name(&name)?;
            let (id, record) = find(gate, &device)?;
            let record = DeviceRecord { name: name.clone(), ..record };
            put(gate, &id, record).await?;
            Ok(done(format!("{id} is now called {name}")))
        }
        Request::Revoke { device } => {
            let (id, record) = find(gate, &device)?;
            put(gate, &id, DeviceRecord { revoked: true, ..record }).await?;
            let cut = gate.roster.dismiss(&id, GoodbyeReason::Revoked, "this device was revoked by the operator");
            Ok(done(format!("revoked {id}{}", if cut { "; its session was ended" } else { "" })))
        }
        Request::Apps { wish } => apps::carry_out(gate, wish).await,
        Request::Memory { wish } => memory::carry_out(gate, wish).await,
        // The server of the socket writes it after this answer.
        Request::Export { user } => check_name(&user).map(|()| Answer::Records { records: Vec::new() }),
        Request::Tools { user } => tools::list(gate, &user),
        Request::ToolReports => Ok(tools::reports(gate)),
        Request::CallTool { user, name, arguments } => tools::call(gate, user, name, arguments).await,
        Request::SwitchTool { user, name, on } => tools::switch(gate, &user, &name, on).await,
        Request::ApplyTools { user } => {
            let told = gate.apply_tools(user.as_deref());
            Ok(done(format!(
                "{told} connected device(s): a turn that has said nothing yet begins anew with the new tools"
            )))
        }
        Request::Usage { user, since_wall_ms } => tools::usage(gate, user.as_deref(), since_wall_ms).await,
        Request::Decisions { user, since_wall_ms } => tools::decisions(gate, user.as_deref(), since_wall_ms).await,
        Request::Approvals | Request::WatchApprovals => Ok(Answer::Approvals { approvals: gate.questions.list() }),
        Request::AnswerApproval { id, yes } => {
            let choice = if yes { ApprovalChoice::Yes } else { ApprovalChoice::No };
            let outcome = gate.questions.answer(id, choice).await.map_err(|error| error.to_string())?;
            Ok(done(format!("question {id} is {outcome}")))
        }
        // The server of the socket answers it, event by event.
        Request::Ask { .. } => Err("this is answered as a stream".to_owned()),
        // The server of the socket takes the connection over after this answer.
        Request::Mcp { user, .. } => check_name(&user).map(|()| done("this connection carries MCP now".to_owned())),
        Request::Turns { count } => Ok(Answer::Turns { turns: turns_as_json(&gate.turns.last(count)) }),
    }
}

fn devices(gate: &Gate) -> Result<Answer, String> {
    let paired = gate
        .store
        .disk()
        .devices()
        .map_err(|error| error.to_string())?
        .into_iter()
        .map(|(device, record)| Paired {
            connected: gate.roster.get(&device).is_some(),
            device,
            name: record.name,
            user: record.user,
            model: record.model,
            revoked: record.revoked,
        })
        .collect();
    let waiting = gate
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

pub(super) fn done(message: String) -> Answer {
    Answer::Done { message }
}

fn grant(user: String, name: String) -> Result<Grant, String> {
    check_name(&user)?;
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("a name has at most {NAME_BYTES_MAX} bytes"));
    }
    Ok(Grant { user, name })
}

pub(super) fn check_name(name: &str) -> Result<(), String> {
    if name.trim().is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(format!("a name has 1 to {NAME_BYTES_MAX} bytes and no control characters"));
    }
    Ok(())
}

/// A device by its fingerprint, the beginning of it, or its name; exactly one must fit.
fn find(gate: &Gate, wanted: &str) -> Result<(String, DeviceRecord), String> {
    let mut fitting: Vec<_> = gate
        .store
        .disk()
        .devices()
        .map_err(|error: Error| error.to_string())?
        .into_iter()
        .filter(|(id, record)| (!wanted.is_empty() && id.starts_with(wanted)) || record.name == wanted)
        .collect();
    match fitting.len() {
        1 => Ok(fitting.remove(0)),
        0 => Err(format!("no device is called `{wanted}`; `lorgnette devices list` shows them")),
        count => Err(format!("{count} devices fit `{wanted}`; give more of the fingerprint")),
    }
}

async fn put(gate: &Gate, id: &str, device: DeviceRecord) -> Result<(), String> {
    let write = Write::PutDevice { id: id.to_owned(), device };
    gate.store.write(write).await.map(drop).map_err(|error| error.to_string())
}
