//! Ports for tests: everything in memory, with a clock that only advances on request.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use gateway_core::vocab::{
    ApprovalOutcome, DisplaySize, Due, ErrorCode, Message, OpenEntry, Part, Role, ScheduleEntry, ScheduleKind,
    Timestamp, ToolCall, ToolResult, Turn,
};
use jiff::{civil::DateTime, tz::TimeZone};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    call::CallContext,
    executor::Executor,
    matching,
    memory::Text,
    ports::{
        Clock, Consent, ConsentRequest, Decision, DeviceCall, DeviceStatus, Note, Notes, PortError, Ports, Schedule,
        Style,
    },
    registry::Registry,
};

/// All ports and their adjustable state.
pub(crate) struct World {
    wall_ms: AtomicI64,
    mono_us: AtomicU64,
    zone: TimeZone,
    next_id: AtomicU64,
    pub(crate) entries: Mutex<Vec<(String, ScheduleEntry)>>,
    pub(crate) notes: Mutex<Vec<(String, Note)>>,
    pub(crate) failure: Mutex<Option<PortError>>,
    pub(crate) memory: crate::memory::Memory,
    pub(crate) status: Mutex<Option<DeviceStatus>>,
    pub(crate) consent: Mutex<ApprovalOutcome>,
    pub(crate) consent_after: Mutex<Duration>,
    pub(crate) asked: Mutex<Vec<ConsentRequest>>,
    pub(crate) device_calls: Mutex<Vec<(String, String, Value, Duration)>>,
}

impl World {
    /// A world at this local date and time.
    pub(crate) fn at(local: &str, zone: &str) -> Arc<Self> {
        let zone = TimeZone::get(zone).expect("zone");
        let civil: DateTime = local.parse().expect("date and time");
        let wall_ms = civil.to_zoned(zone.clone()).expect("zoned").timestamp().as_millisecond();
        Arc::new(Self {
            wall_ms: AtomicI64::new(wall_ms),
            mono_us: AtomicU64::new(0),
            zone,
            next_id: AtomicU64::new(1),
            entries: Mutex::default(),
            notes: Mutex::default(),
            failure: Mutex::default(),
            memory: crate::memory::Memory::default(),
            status: Mutex::new(Some(DeviceStatus {
                name: "kitchen".into(),
                elsewhere: false,
                model: "G1".into(),
                firmware: "1.2.3".into(),
                battery_percent: Some(80),
                charging: Some(false),
                connection: "Wi-Fi".into(),
                display: Some(DisplaySize::new(40, 5)),
                muted: false,
                microphone_faults: std::collections::BTreeSet::new(),
                speaker_silent: false,
            })),
            consent: Mutex::new(ApprovalOutcome::Approved),
            consent_after: Mutex::new(Duration::ZERO),
            asked: Mutex::default(),
            device_calls: Mutex::default(),
        })
    }

    /// Saturday, 21 November 2026, 17:20 in New York.
    pub(crate) fn usual() -> Arc<Self> {
        Self::at("2026-11-21T17:20:00", "America/New_York")
    }

    pub(crate) fn ports(self: &Arc<Self>) -> Ports {
        Ports {
            schedule: Arc::clone(self) as Arc<dyn Schedule>,
            notes: Arc::clone(self) as Arc<dyn Notes>,
            device: Arc::clone(self) as Arc<dyn DeviceCall>,
            consent: Arc::clone(self) as Arc<dyn Consent>,
            apps: Arc::new(crate::ports::NoApps),
            memory: self.memory.clone(),
            clock: Arc::clone(self) as Arc<dyn Clock>,
            style: Style::default(),
        }
    }

    /// An executor of the built-in tools in this world.
    pub(crate) fn executor(self: &Arc<Self>) -> Executor {
        let registry = Registry::with_built_ins().expect("built-ins");
        Executor::new(Arc::new(registry), self.ports())
    }

    /// Advances both clocks.
    pub(crate) fn pass(&self, seconds: u64) {
        self.mono_us.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
        let ms = i64::try_from(seconds * 1_000).expect("small");
        self.wall_ms.fetch_add(ms, Ordering::Relaxed);
    }

    fn check(&self) -> Result<(), PortError> {
        match &*self.failure.lock().unwrap() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    fn id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }
}

pub(crate) fn context() -> CallContext {
    CallContext {
        user: "ada".into(),
        device: Some("glasses".into()),
        session: Some("s".into()),
        turn: Some(Turn { id: 7, revision: 0 }),
        cancel: CancellationToken::new(),
        default_timeout: Duration::from_secs(5),
        conversation: Arc::default(),
        language: None,
        client: Default::default(),
        caller: None,
        session_lease: None,
        watcher: None,
    }
}

/// Texts with these words and ids from 1 on.
pub(crate) fn texts(all: &[&str]) -> Vec<Text> {
    let text = |(id, text): (u64, &&str)| Text { id, text: (*text).to_owned(), created_wall_ms: 0, changed_wall_ms: 0 };
    (1..).zip(all).map(text).collect()
}

/// The message with a picture of a tool, as the core adds it behind the results of a step.
pub(crate) fn picture() -> Message {
    let text = Part::Text { text: "[what the tool has seen]".into() };
    Message { role: Role::User, parts: vec![text, Part::Image { mime: "image/jpeg".into(), data: "/9j/".into() }] }
}

pub(crate) fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall { id: "call-1".into(), name: name.into(), arguments }
}

#[async_trait]
impl Schedule for World {
    async fn add(&self, user: &str, due: Due, kind: ScheduleKind) -> Result<ScheduleEntry, PortError> {
        self.check()?;
        let now = self.wall_ms.load(Ordering::Relaxed);
        let (due_wall_ms, duration_ms) = match due {
            Due::In { duration_ms } => (now + i64::try_from(duration_ms).unwrap(), Some(duration_ms)),
            Due::At { wall_ms } => (wall_ms, None),
        };
        let entry = ScheduleEntry { id: self.id(), kind, due_wall_ms, duration_ms };
        let mut entries = self.entries.lock().unwrap();
        entries.push((user.into(), entry.clone()));
        Ok(entry)
    }

    async fn list(&self, user: &str) -> Result<Vec<OpenEntry>, PortError> {
        self.check()?;
        let entries = self.entries.lock().unwrap();
        let own = entries.iter().filter(|(owner, _)| owner == user);
        Ok(own.map(|(_, entry)| OpenEntry { entry: entry.clone(), left_ms: None }).collect())
    }

    async fn remove(&self, user: &str, id: u64) -> Result<Option<ScheduleEntry>, PortError> {
        self.check()?;
        let mut entries = self.entries.lock().unwrap();
        let at = entries.iter().position(|(owner, entry)| owner == user && entry.id == id);
        Ok(at.map(|at| entries.remove(at).1))
    }

    async fn extend(&self, user: &str, id: u64, more_ms: u64) -> Result<Option<ScheduleEntry>, PortError> {
        self.check()?;
        let mut entries = self.entries.lock().unwrap();
        let found = entries.iter_mut().find(|(owner, entry)| owner == user && entry.id == id);
        Ok(found.map(|(_, entry)| {
            entry.due_wall_ms += i64::try_from(more_ms).unwrap();
            entry.duration_ms = entry.duration_ms.map(|length| length + more_ms);
            entry.clone()
        }))
    }
}

#[async_trait]
impl Notes for World {
    async fn add(&self, user: &str, text: &str) -> Result<Note, PortError> {
        self.check()?;
        let note = Note { id: self.id(), text: text.into(), created_wall_ms: self.wall_ms.load(Ordering::Relaxed) };
        self.notes.lock().unwrap().push((user.into(), note.clone()));
        Ok(note)
    }

    async fn list(&self, user: &str, limit: usize) -> Result<Vec<Note>, PortError> {
        self.check()?;
        let notes = self.notes.lock().unwrap();
        let own = notes.iter().rev().filter(|(owner, _)| owner == user);
        Ok(own.take(limit).map(|(_, note)| note.clone()).collect())
    }

    async fn search(&self, user: &str, query: &str, limit: usize) -> Result<Vec<Note>, PortError> {
        let mut notes = Notes::list(self, user, usize::MAX).await?;
        notes.retain(|note| matching::matches(&note.text, query));
        notes.truncate(limit);
        Ok(notes)
    }

    async fn delete(&self, user: &str, id: u64) -> Result<Option<Note>, PortError> {
        self.check()?;
        let mut notes = self.notes.lock().unwrap();
        let at = notes.iter().position(|(owner, note)| owner == user && note.id == id);
        Ok(at.map(|at| notes.remove(at).1))
    }

    async fn clear(&self, user: &str) -> Result<usize, PortError> {
        self.check()?;
        let mut notes = self.notes.lock().unwrap();
        let before = notes.len();
        notes.retain(|(owner, _)| owner != user);
        Ok(before - notes.len())
    }
}

#[async_trait]
impl DeviceCall for World {
    async fn call(
        &self,
        device: &str,
        _turn: Option<Turn>,
        call: ToolCall,
        deadline: Duration,
        _cancel: CancellationToken,
    ) -> ToolResult {
        let ToolCall { name, arguments, .. } = call;
        if self.status.lock().unwrap().is_none() {
            return ToolResult::failed(ErrorCode::AppNotAvailable, "gone", true);
        }
        let call = (device.into(), name, arguments.clone(), deadline);
        self.device_calls.lock().unwrap().push(call);
        ToolResult { data: Some(arguments), ..ToolResult::default() }
    }

    fn status(&self, _device: &str) -> Option<DeviceStatus> {
        self.status.lock().unwrap().clone()
    }
}

#[async_trait]
impl Consent for World {
    async fn ask(&self, request: ConsentRequest, _cancel: CancellationToken) -> Decision {
        self.asked.lock().unwrap().push(request);
        let after = *self.consent_after.lock().unwrap();
        tokio::time::sleep(after).await;
        (*self.consent.lock().unwrap()).into()
    }
}

impl Clock for World {
    fn now(&self) -> Timestamp {
        Timestamp {
            mono_us: self.mono_us.load(Ordering::Relaxed),
            wall_ms: self.wall_ms.load(Ordering::Relaxed),
            offset_s: 0,
        }
    }

    fn zone(&self) -> TimeZone {
        self.zone.clone()
    }
}
