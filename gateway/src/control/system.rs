//! The gateway's status, for the tools that tell it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use async_trait::async_trait;
use gateway_core::vocab::MicrophoneFault;
use serde::Serialize;
use serde_json::{Value, json};
use tools::{
    inspection::system::{DiskUse, Problem, System, SystemState, SystemStatus},
    ports::PortError,
};

use super::{SessionOf, admin::Admin, gather, status::Status};
use crate::transport::Transport;

/// The status of a gateway. It does not keep the gateway alive, which holds the tools that hold this.
pub(crate) struct OwnSystem(Weak<Admin>);

impl OwnSystem {
    /// Of this gateway.
    pub(crate) fn new(admin: &Arc<Admin>) -> Self {
        Self(Arc::downgrade(admin))
    }
}

#[async_trait]
impl System for OwnSystem {
    async fn state(&self) -> Result<SystemState, PortError> {
        let admin = self.0.upgrade().ok_or_else(|| PortError::Unavailable("the gateway is stopping".to_owned()))?;
        let (connections, dropped) = (admin.services.admission.open.len(), admin.logs.stats());
        let traces = admin.services.telemetry.turns.traces();
        let connections = (connections, admin.services.settings.limits.connections_max);
        let status = gather::status(&admin).await;
        Ok(SystemState {
            sessions: status
                .sessions
                .iter()
                .map(|(user, name, session)| with(session, [("user", user), ("name", name)]))
                .collect(),
            transports: transports(&status),
            servers: status.mcp.iter().map(value).collect(),
            limits: with_traces(limits(&status, connections, dropped.map_or(0, |stats| stats.dropped)), traces),
            status: summary(status),
        })
    }
}

fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

/// An object with more texts.
fn with(of: &impl Serialize, more: [(&str, &String); 2]) -> Value {
    let mut object = value(of);
    for (name, text) in more {
        object[name] = text.as_str().into();
    }
    object
}

fn summary(status: Status) -> SystemStatus {
    let problems = status.problems.into_iter().map(|problem| Problem { part: problem.part, why: problem.why });
    SystemStatus {
        version: status.version,
        uptime_s: status.up_s,
        problems: problems.collect(),
        sessions: status.sessions.len(),
        cores: status.cores,
        load: status.load,
        memory: status.memory,
        disk: status.disk.map(|(free_bytes, total_bytes)| DiskUse { free_bytes, total_bytes }),
        data_bytes: status.store.map(|(used, _)| used),
        temperature_c: status.temperature_c,
    }
}

/// Where the gateway listens; `null`: it does not.
fn transports(status: &Status) -> Vec<Value> {
    let carried = |transports: &[Transport]| {
        let used = status.sessions.iter().filter_map(|(_, _, session)| Transport::labelled(&session.transport));
        used.filter(|used| transports.contains(used)).count()
    };
    vec![
        json!({"name": "websocket", "address": status.web, "sessions": carried(&[Transport::WS, Transport::WSS])}),
        json!({"name": "quic", "address": status.quic, "sessions": carried(&[Transport::QUIC])}),
        json!({"name": "control", "address": "control.sock", "sessions": carried(&[Transport::TEXT])}),
    ]
}

/// With what became of turns that were to be sent to a collector, if there is one.
fn with_traces(mut limits: Value, traces: Option<(u64, u64)>) -> Value {
    if let Some((sent, dropped)) = traces {
        limits["traces"] = json!({"sent": sent, "dropped": dropped});
    }
    limits
}

/// In how many sessions the microphone has each fault.
fn microphone_faults(status: &Status) -> BTreeMap<&'static str, usize> {
    let with = |name: &'static str| {
        let has = |(_, _, session): &&(String, String, SessionOf)| session.microphone.iter().any(|fault| fault == name);
        (name, status.sessions.iter().filter(has).count())
    };
    MicrophoneFault::ALL.map(MicrophoneFault::name).map(with).into()
}

fn limits(status: &Status, (open, connections_max): (usize, usize), log_dropped: u64) -> Value {
    let of = |used: u64, max: u64| json!({"used": used, "max": max});
    let pair = |pair: Option<(u64, u64)>| pair.map(|(used, max)| of(used, max));
    let (heard, lost) = status.sound;
    json!({
        "sessions": of(status.sessions.len() as u64, status.sessions_max as u64),
        "users": of(status.users as u64, status.users_max as u64),
        "connections": of(open as u64, connections_max as u64),
        "store_bytes": pair(status.store),
        "descriptors": pair(status.descriptors),
        "questions_open": status.questions,
        "queues": status.queues.iter().map(value).collect::<Vec<_>>(),
        "recognition": value(&status.recogniser),
        "elsewhere": status.elsewhere.iter().map(value).collect::<Vec<_>>(),
        "packets": {"heard": heard, "lost": lost},
        "microphone_faults": microphone_faults(status),
        "damaged_records": status.damaged,
        "log_lines_dropped": log_dropped,
    })
}
