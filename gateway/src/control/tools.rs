//! Commands about tools.

use std::{sync::Arc, time::Duration};

use gateway_core::vocab::{Attachment, ClientClass, ToolCall};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tools::{
    call::CallContext,
    ledger,
    limits::NAME_BYTES_MAX,
    permissions::{Switches as _, denied_by, is_denied},
    registry::{Registered, Registry},
};

use super::{Answer, Callable, Offered, admin::Admin, devices::device_of, names::check_name, reply::done};
use crate::{
    clock,
    device_task::services::Services,
    ports::records::StoredLedger,
    roster::Roster,
    store::{Kind, Store},
    text::quoted,
    units::number_of,
};

/// Timeout of tools that set none.
const CALL_TIME: Duration = Duration::from_secs(30);

/// What stands for the configuration file among the sources of reports.
const CONFIGURATION: &str = "configuration";

/// Decisions in one answer, which must stay readable and bounded.
const DECISIONS_MAX: usize = 500;

pub(super) fn list(admin: &Admin, user: &str) -> Result<Answer, String> {
    check_name(user)?;
    let snapshot = admin.services.registry.snapshot(user, device_of(&admin.services.roster, user).as_deref());
    let denied = admin.switches.denied(user);
    let offered = |tool: &Arc<Registered>| Offered {
        source: tool.source.to_string(),
        off: is_denied(&denied, &tool.spec.name),
        clients_configured: admin.services.registry.has_configured_clients(&tool.spec.name),
        spec: (*tool.spec).clone(),
    };
    Ok(Answer::Tools { tools: snapshot.tools().iter().map(offered).collect() })
}

/// The tools that the user's assistant may call now: without those that are switched off or for other clients.
pub(super) fn callable(admin: &Admin, user: &str) -> Result<Answer, String> {
    check_name(user)?;
    let (services, device) = (&admin.services, device_of(&admin.services.roster, user));
    let snapshot = services.registry.snapshot(user, device.as_deref());
    let (_, specs) = services.executor.offered(user, device.as_deref(), ClientClass::Internal);
    let callable = |tool: &Arc<Registered>| Callable {
        source: tool.source.clone(),
        local_name: tool.local_name.clone(),
        about: tool.about.as_deref().cloned(),
        spec: (*tool.spec).clone(),
    };
    let tools = specs.iter().filter_map(|spec| snapshot.find(&spec.name)).map(callable).collect();
    Ok(Answer::Callable { tools })
}

/// Has turns that have said nothing begin anew with the tools as they are now.
pub(super) fn apply(roster: &Roster, user: Option<&str>) -> Answer {
    let told = roster.apply_tools(user);
    let told = number_of(told, "connected device");
    done(format!("{told}: a turn that has said nothing yet begins anew with the new tools"))
}

pub(super) fn reports(registry: &Registry) -> Answer {
    let absent = registry.configured_but_absent();
    let note = |name: String| format!("`tools.clients` names {name}, which nobody is offered at the moment");
    let configured = (!absent.is_empty()).then(|| (CONFIGURATION.to_owned(), absent.into_iter().map(note).collect()));
    let reports = registry.reports().into_iter().map(|(source, notes)| (source.to_string(), notes));
    Answer::ToolReports { reports: configured.into_iter().chain(reports).collect() }
}

/// Calls a tool as a user; `gone` interrupts it.
pub(super) async fn call(
    services: &Services,
    user: String,
    name: String,
    arguments: Value,
    gone: &CancellationToken,
) -> Result<Answer, String> {
    check_name(&user)?;
    let context = CallContext {
        device: device_of(&services.roster, &user),
        user,
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
    let id = format!("control-{}", clock::mono_us());
    let mut result = services.executor.call(context, ToolCall { id, name, arguments }).await;
    let attachments = std::mem::take(&mut result.attachments).iter().map(describe).collect();
    Ok(Answer::ToolResult { result: Box::new(result), attachments })
}

fn describe(part: &Attachment) -> String {
    match part {
        Attachment::Image { mime, data } => format!("image, {mime}, {} bytes of base64", data.len()),
        Attachment::Audio { mime, data } => format!("audio, {mime}, {} bytes of base64", data.len()),
        Attachment::Resource { block } => format!("resource, {} bytes", block.to_string().len()),
    }
}

pub(super) async fn switch(admin: &Admin, user: &str, name: &str, on: bool) -> Result<Answer, String> {
    check_name(user)?;
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("give the full name of a tool, or the beginning of names and a `*`".to_owned());
    }
    let changed = admin.switches.set(user, name, on).await?;
    if let Some(why) = still_off(&admin.switches.denied(user), user, name).filter(|_| on) {
        return Err(why);
    }
    let state = if on { "on" } else { "off" };
    let before = if changed { "now" } else { "already" };
    let beginning = name.strip_suffix('*');
    let snapshot = admin.services.registry.snapshot(user, device_of(&admin.services.roster, user).as_deref());
    let known = match beginning {
        Some(beginning) => snapshot.tools().iter().any(|tool| tool.spec.name.starts_with(beginning)),
        None => snapshot.find(name).is_some(),
    };
    // It may belong to an app that is absent now, or be a typing error.
    let unknown = if known { "" } else { "; no tool of that name is offered at the moment" };
    Ok(done(format!("{name} is {before} {state} for {user}{unknown}")))
}

/// Why a tool that was switched on is off all the same: another switch applies to it.
fn still_off(denied: &[String], user: &str, name: &str) -> Option<String> {
    let pattern = denied_by(denied, name)?;
    Some(format!(
        "{name} is switched off by '{pattern}': `lorgnette tools allow '{pattern}' --user {}` switches all of them on",
        quoted(user)
    ))
}

/// Recorded calls by user, newest first.
async fn records(
    store: &Store,
    user: Option<&str>,
    since_wall_ms: i64,
) -> Result<Vec<(String, Vec<ledger::Record>)>, String> {
    store.settled().await.map_err(|error| error.to_string())?;
    user.map_or(Ok(()), check_name)?;
    let user = user.map(str::to_owned);
    let read = store.read(move |store| {
        let users = match user {
            Some(user) => vec![user],
            None => store.disk().owners(Kind::Ledger)?,
        };
        let book = StoredLedger(store.clone());
        let mut all = Vec::new();
        for user in users {
            let records = book.records(&user, since_wall_ms)?;
            all.push((user, records));
        }
        Ok(all)
    });
    read.await.map_err(|error| error.to_string())
}

pub(super) async fn usage(store: &Store, user: Option<&str>, since_wall_ms: i64) -> Result<Answer, String> {
    let all = records(store, user, since_wall_ms).await?;
    let used = all.into_iter().filter(|(_, records)| !records.is_empty());
    Ok(Answer::Usage { users: used.map(|(user, records)| (user, ledger::usage(records))).collect() })
}

pub(super) async fn decisions(store: &Store, user: Option<&str>, since_wall_ms: i64) -> Result<Answer, String> {
    let all = records(store, user, since_wall_ms).await?;
    Ok(newest_decisions(all.into_iter().flat_map(|(_, records)| records)))
}

/// The decisions among these calls, the newest first, and as many as an answer has.
fn newest_decisions(records: impl Iterator<Item = ledger::Record>) -> Answer {
    let mut decisions: Vec<_> = records.filter(|record| record.approval.is_some()).collect();
    decisions.sort_by_key(|record| std::cmp::Reverse(record.wall_ms));
    let left_out = decisions.len().saturating_sub(DECISIONS_MAX);
    decisions.truncate(DECISIONS_MAX);
    Answer::Decisions { decisions, left_out }
}

#[cfg(test)]
mod tests {
    use gateway_core::vocab::{AnsweredBy, ApprovalOutcome};

    use super::*;

    #[test]
    fn a_tool_that_another_switch_keeps_off_is_not_said_to_be_on() {
        let denied = ["note.*".to_owned(), "timer.set".to_owned()];
        for name in ["note.add", "note.li*"] {
            let told = still_off(&denied, "ann", name).unwrap();
            assert!(told.contains("`lorgnette tools allow 'note.*' --user ann`"), "{told}");
        }
        assert_eq!(still_off(&denied, "ann", "timer.cancel"), None);
    }

    #[test]
    fn a_list_of_decisions_that_is_cut_says_how_many_are_missing() {
        let record = |wall_ms| ledger::Record {
            wall_ms,
            user: "ann".into(),
            device: None,
            client: ClientClass::Internal,
            turn: None,
            tool: "list.wipe".into(),
            source: "app:list".into(),
            took_ms: 1,
            error: None,
            asked: true,
            approval: Some(ledger::Approval {
                outcome: ApprovalOutcome::Approved,
                by: AnsweredBy::Tap,
                device: None,
                wall_ms,
                took_ms: 1,
            }),
            program: None,
            bytes_in: 0,
            bytes_out: 0,
        };
        for (count, missing) in [(500, 0), (503, 3)] {
            let Answer::Decisions { decisions, left_out } = newest_decisions((0..count).map(record)) else {
                panic!("no decisions");
            };
            assert_eq!((decisions.len(), left_out, decisions[0].wall_ms), (500, missing, count - 1));
        }
    }
}
