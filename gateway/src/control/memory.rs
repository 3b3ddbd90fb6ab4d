//! Requests about users and their stored data. Texts are sent over this socket only.

use std::{collections::VecDeque, path::PathBuf};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gateway_core::{
    input::{Spending, UserInput},
    vocab::{ClientClass, Role, ScheduleEntry, ScheduleKind},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{Answer, admin::Admin, names::check_name, reply::done};
use crate::{
    clock,
    erasing::Erasure,
    models::spending,
    photos,
    ports::memory::{search, spoken},
    store::{self, Conversation, KINDS, Kind, Store},
    text::quoted,
    units::number_of,
    workspace,
};

/// Results of one search.
const FOUND_MAX: usize = 100;
/// Messages that an export reads at once.
const MESSAGES_AT_ONCE: usize = 200;
/// Bytes after which an answer of an export takes no further record: a client reads far more, and a record may be as long as
/// that allows.
const ANSWER_BYTES: usize = 1024 * 1024;
/// Rows of one kind that are exported: more than are kept of any kind.
const ROWS_MAX: usize = 1_000_000;

const DAY_MS: i64 = 86_400_000;

/// What the console and `lorgnette users`, `conversations`, `skills` and `spending` ask.
#[allow(missing_docs, reason = "the fields are the words of the command line")]
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum MemoryRequest {
    /// All users with stored data.
    Users,
    /// Erase all data of a user.
    EraseUser { user: String, devices: bool },
    /// A user's conversations, oldest first.
    Conversations { user: String },
    /// One conversation with its messages.
    Conversation { user: String, id: u64 },
    /// Messages that contain these words.
    Search { user: String, query: String },
    /// Erase one conversation, or all.
    EraseConversations { user: String, id: Option<u64> },
    /// Skills, and why others are not offered.
    Skills,
    /// Usage of the models on the last days, by one user or by all.
    Spending { user: Option<String>, days: usize },
}

/// The request's name for the log.
pub(super) fn name(request: &MemoryRequest) -> &'static str {
    match request {
        MemoryRequest::Users => "users list",
        MemoryRequest::EraseUser { .. } => "users erase",
        MemoryRequest::Conversations { .. } => "conversations list",
        MemoryRequest::Conversation { .. } => "conversations show",
        MemoryRequest::Search { .. } => "conversations search",
        MemoryRequest::EraseConversations { .. } => "conversations erase",
        MemoryRequest::Skills => "skills list",
        MemoryRequest::Spending { .. } => "spending",
    }
}

/// The request's user for the log.
pub(super) fn about(request: &MemoryRequest) -> Option<&str> {
    match request {
        MemoryRequest::EraseUser { user, .. }
        | MemoryRequest::Conversations { user }
        | MemoryRequest::Conversation { user, .. }
        | MemoryRequest::Search { user, .. }
        | MemoryRequest::EraseConversations { user, .. } => Some(user),
        MemoryRequest::Spending { user, .. } => user.as_deref(),
        MemoryRequest::Users | MemoryRequest::Skills => None,
    }
}

pub(super) async fn carry_out(admin: &Admin, request: MemoryRequest) -> Result<Answer, String> {
    let services = &admin.services;
    services.store.settled().await.map_err(words)?;
    let records = match request {
        MemoryRequest::Users => services.store.read(users).await.map_err(words)?,
        MemoryRequest::EraseUser { user, devices } => return erase_user(admin, user, devices).await,
        MemoryRequest::Conversations { user } => {
            conversations(&services.store, &user).await?.iter().map(describe).collect()
        }
        MemoryRequest::Conversation { user, id } => {
            vec![services.store.read(move |store| Ok(conversation(store, &user, id))).await.map_err(words)??]
        }
        MemoryRequest::Search { user, query } => {
            check_name(&user)?;
            let found =
                services.store.read(move |store| search(store, &user, &query, FOUND_MAX)).await.map_err(words)?;
            let place = |said: tools::memory::FoundMessage| {
                let by = if said.by_wearer { Role::User } else { Role::Assistant };
                json!({"conversation": said.conversation, "title": said.title, "by": by, "text": said.text, "wall_ms": said.wall_ms})
            };
            found.into_iter().map(place).collect()
        }
        MemoryRequest::EraseConversations { user, id } => return erase_conversations(admin, user, id).await,
        MemoryRequest::Skills => {
            admin.skills.refresh();
            let specs = services.executor.common(ClientClass::Internal);
            let usable = admin.skills.usable(|tool| specs.iter().any(|spec| spec.name == tool));
            let usable = usable.iter().map(|skill| json!({"name": skill.name, "description": skill.description}));
            usable.chain(admin.skills.problems().into_iter().map(|problem| json!({"problem": problem}))).collect()
        }
        MemoryRequest::Spending { user, days } => {
            spent(&services.store, services.users.nano_per_day(), user, days).await?
        }
    };
    Ok(Answer::Records { records })
}

/// One record per user and day. `money` and `budget` are in the currency of the models' prices.
async fn spent(
    store: &Store,
    nano_per_day: Option<u64>,
    user: Option<String>,
    days: usize,
) -> Result<Vec<Value>, String> {
    user.as_deref().map_or(Ok(()), check_name)?;
    let now = clock::now();
    let today = now.wall_ms.saturating_add(i64::from(now.offset_s) * 1_000).div_euclid(DAY_MS);
    let budget = nano_per_day.map(whole);
    let read = store.read(move |store| spending::of(store, user.as_deref(), today, days));
    let mut records = Vec::new();
    for (user, days) in read.await.map_err(words)? {
        for Spending { day, nano, input, output } in days {
            let moment = jiff::Timestamp::from_millisecond(day.saturating_mul(DAY_MS)).map_err(words)?;
            let date = moment.to_zoned(jiff::tz::TimeZone::UTC).date().to_string();
            records.push(json!({
                "user": user, "date": date, "input_tokens": input, "output_tokens": output,
                "money": whole(nano), "budget": budget,
            }));
        }
    }
    Ok(records)
}

fn whole(nano: u64) -> f64 {
    nano as f64 / 1e9
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn describe(conversation: &Conversation) -> Value {
    json!({
        "id": conversation.id,
        "title": conversation.title,
        "began_wall_ms": conversation.began_wall_ms,
        "last_wall_ms": conversation.last_wall_ms,
        "messages": conversation.messages,
    })
}

/// A user's conversations, the oldest first.
async fn conversations(store: &Store, user: &str) -> Result<Vec<Conversation>, String> {
    check_name(user)?;
    let user = user.to_owned();
    store.read(move |store| store.disk().conversations(&user)).await.map_err(words)
}

fn find(store: &Store, user: &str, id: u64) -> Result<Conversation, String> {
    check_name(user)?;
    let found = store.disk().conversation(user, id).map_err(words)?;
    found.ok_or_else(|| {
        format!("{user} has no conversation {id}; `lorgnette conversations list --user {}` shows them", quoted(user))
    })
}

fn conversation(store: &Store, user: &str, id: u64) -> Result<Value, String> {
    let found = find(store, user, id)?;
    let messages = spoken(store, user, &found).map_err(words)?;
    let messages: Vec<Value> =
        messages.into_iter().map(|(message, wall_ms)| json!({"wall_ms": wall_ms, "message": message})).collect();
    let mut described = describe(&found);
    if let Some(summary) = &found.summary {
        described["summary"] = json!({"text": summary.text, "covers": summary.covers});
    }
    described["messages"] = messages.into();
    Ok(described)
}

async fn erase_conversations(admin: &Admin, user: String, id: Option<u64>) -> Result<Answer, String> {
    check_name(&user)?;
    let services = &admin.services;
    // Before anything is read: an erasure that this one waits for, for minutes, may erase the same.
    let _alone = admin.eraser.running.alone().await.map_err(|error| format!("nothing was erased: {error}"))?;
    let count = match id {
        Some(id) => find(&services.store, &user, id).map(|_| 1)?,
        None => conversations(&services.store, &user).await?.len(),
    };
    let (told, is_told) = oneshot::channel();
    let forget = {
        let (users, user) = (services.users.clone(), user.clone());
        move || {
            // Nobody waits any more if the gateway stops.
            let _gone = told.send(users.number(&user));
            users.tell(&user, UserInput::HistoryErased);
        }
    };
    services.store.erase_conversations(&user, id, forget).await.map_err(words)?;
    // A task that began meanwhile has read what is erased by now.
    if let Ok(number) = is_told.await
        && services.users.number(&user) != number
    {
        services.users.tell(&user, UserInput::HistoryErased);
    }
    Ok(done(format!("{user}: erased {}", number_of(count, "conversation"))))
}

async fn erase_user(admin: &Admin, user: String, devices: bool) -> Result<Answer, String> {
    check_name(&user)?;
    let known = admin.services.store.read(users).await.map_err(words)?;
    let is_known = known.iter().any(|known| known["user"] == user.as_str());
    let erasure = Erasure { user, devices };
    admin.eraser.everything(&erasure).await.map_err(|error| format!("{error:#}"))?;
    if !is_known {
        return Ok(done(format!("nothing was kept of {}; `lorgnette users list` shows everybody", erasure.user)));
    }
    let paired = if devices { "; the devices must be paired again" } else { "; the devices stay paired" };
    Ok(done(format!("everything of {} is erased{paired}", erasure.user)))
}

fn users(store: &Store) -> Result<Vec<Value>, store::Error> {
    let mut users = std::collections::BTreeMap::<String, usize>::new();
    for (_, device) in store.disk().devices()? {
        *users.entry(device.user).or_default() += 1;
    }
    let kinds = KINDS.iter().map(|(kind, _)| *kind).filter(|kind| kind.is_of_user());
    for kind in kinds {
        for user in store.disk().owners(kind)? {
            users.entry(user).or_default();
        }
    }
    Ok(users.into_iter().map(|(user, devices)| json!({"user": user, "devices": devices})).collect())
}

/// All stored data of a user, in pieces of one answer line each. `None` at the end.
pub(super) struct Export {
    store: Store,
    data_dir: PathBuf,
    user: String,
    next: Part,
    /// What was read and is still to be passed on.
    read: VecDeque<Value>,
}

enum Part {
    Head,
    Messages { from: u64 },
    Rows { kind: usize },
    Photo { at: usize },
    File { at: usize },
}

impl Export {
    pub(super) fn new(store: Store, data_dir: PathBuf, user: String) -> Result<Self, String> {
        check_name(&user)?;
        Ok(Self { store, data_dir, user, next: Part::Head, read: VecDeque::new() })
    }

    /// The next records, read on a thread of its own; and what follows them.
    pub(super) async fn next(mut self) -> Result<Option<(Vec<Value>, Self)>, String> {
        let store = self.store.clone();
        let read = store.read(move |_| Ok(self.answer().map(|records| records.map(|records| (records, self)))));
        read.await.map_err(words)?
    }

    /// The records of one answer: at least one, unless the part that was read has none.
    fn answer(&mut self) -> Result<Option<Vec<Value>>, String> {
        if self.read.is_empty() {
            let Some(part) = self.part()? else { return Ok(None) };
            self.read = part.into();
        }
        let (mut records, mut bytes) = (Vec::new(), 0);
        while bytes < ANSWER_BYTES
            && let Some(record) = self.read.pop_front()
        {
            bytes += record.to_string().len();
            records.push(record);
        }
        Ok(Some(records))
    }

    fn part(&mut self) -> Result<Option<Vec<Value>>, String> {
        let disk = self.store.disk();
        let user = &self.user;
        Ok(match self.next {
            Part::Head => {
                self.next = Part::Messages { from: 0 };
                Some(self.head()?)
            }
            Part::Messages { from } => {
                let found = disk.messages_from(user, from, MESSAGES_AT_ONCE).map_err(words)?;
                self.next = match found.last() {
                    Some((last, _)) => Part::Messages { from: last + 1 },
                    None => Part::Rows { kind: 0 },
                };
                let message = |(id, record): (u64, crate::store::MessageRecord)| {
                    let message = serde_json::from_str(&record.json).unwrap_or(Value::String(record.json));
                    json!({"kind": "message", "id": id, "wall_ms": record.wall_ms, "message": message})
                };
                Some(found.into_iter().map(message).collect())
            }
            Part::Rows { kind } => match KINDS.get(kind) {
                Some((of, name)) => {
                    self.next = Part::Rows { kind: kind + 1 };
                    Some(if of.is_of_user() { self.rows(*of, name)? } else { Vec::new() })
                }
                None => {
                    self.next = Part::Photo { at: 0 };
                    Some(Vec::new())
                }
            },
            Part::Photo { at } => {
                let photos = photos::of(&self.data_dir, user).map_err(|error| format!("{error:#}"))?;
                let Some(path) = photos.get(at) else {
                    self.next = Part::File { at: 0 };
                    return Ok(Some(Vec::new()));
                };
                self.next = Part::Photo { at: at + 1 };
                let bytes = std::fs::read(path).map_err(words)?;
                let file = path.file_name().map(|name| name.to_string_lossy().into_owned());
                Some(vec![json!({"kind": "photo", "file": file, "base64": STANDARD.encode(bytes)})])
            }
            Part::File { at } => {
                let Some((path, content)) = workspace::file(&self.data_dir, user, at).map_err(words)? else {
                    return Ok(None);
                };
                self.next = Part::File { at: at + 1 };
                Some(vec![json!({"kind": "file", "path": path, "base64": STANDARD.encode(content)})])
            }
        })
    }

    fn head(&self) -> Result<Vec<Value>, String> {
        let disk = self.store.disk();
        let user = &self.user;
        let mut out = vec![json!({"kind": "user", "name": user, "version": 1, "exported_wall_ms": clock::wall_ms()})];
        for (id, device) in disk.devices().map_err(words)?.into_iter().filter(|(_, device)| device.user == *user) {
            out.push(json!({
                "kind": "device", "id": id, "name": device.name, "model": device.model,
                "paired_wall_ms": device.paired_wall_ms, "revoked": device.revoked,
            }));
        }
        for ScheduleEntry { id, kind, due_wall_ms, .. } in disk.entries(user).map_err(words)? {
            let word = match kind {
                ScheduleKind::Timer { .. } => "timer",
                ScheduleKind::Reminder { .. } => "reminder",
                ScheduleKind::Answer { .. } => "answer",
            };
            out.push(json!({"kind": word, "id": id, "text": kind.text(), "due_wall_ms": due_wall_ms}));
        }
        for (id, note) in disk.notes(user, ROWS_MAX, |_| true).map_err(words)? {
            out.push(json!({"kind": "note", "id": id, "text": note.text, "created_wall_ms": note.created_wall_ms}));
        }
        Ok(out)
    }

    fn rows(&self, kind: Kind, name: &str) -> Result<Vec<Value>, String> {
        let rows = self.store.disk().rows(kind, &self.user, b"", ROWS_MAX).map_err(words)?;
        let text = |bytes: Vec<u8>| match String::from_utf8(bytes) {
            Ok(text) => Value::String(text),
            Err(error) => json!({"base64": STANDARD.encode(error.as_bytes())}),
        };
        let numbered =
            matches!(kind, Kind::Conversations | Kind::Facts | Kind::Instructions | Kind::Ledger | Kind::Runs);
        let record = |(key, value): (Vec<u8>, Vec<u8>)| {
            let value: Value = serde_json::from_slice(&value).unwrap_or_else(|_| text(value));
            let key = match key.as_array::<8>() {
                Some(number) if numbered => u64::from_be_bytes(*number).into(),
                // Internal rows of the store.
                None if numbered => return None,
                _ => text(key),
            };
            Some(json!({"kind": name, "key": key, "value": value}))
        };
        Ok(rows.into_iter().filter_map(record).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use futures_util::poll;

    use super::*;
    use crate::store::{MessageRecord, NoteRecord, Write};

    #[tokio::test]
    async fn scans_of_the_store_run_on_threads_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let (user, json) = ("ann".to_owned(), "{}".to_owned());
        let messages = vec![MessageRecord { wall_ms: 1, json }];
        store.write(Write::AppendMessages { user: user.clone(), messages, title: String::new() }).await.unwrap();
        let (day, nano) = (clock::now().wall_ms.div_euclid(DAY_MS), 1);
        store.write(spending::write(user, Spending { day, nano, input: 1, output: 1 })).await.unwrap();
        let busy = store.occupy_readers();
        let (mut said, mut paid) = (Box::pin(conversations(&store, "ann")), Box::pin(spent(&store, None, None, 9)));
        assert!(poll!(&mut said).is_pending() && poll!(&mut paid).is_pending());
        drop(busy);
        assert_eq!((said.await.unwrap().len(), paid.await.unwrap().len()), (1, 1));
    }

    #[tokio::test]
    async fn an_export_of_much_comes_in_answers_of_some_size() {
        let data = tempfile::tempdir().unwrap();
        let store = Store::open(&data.path().join("store"), 64).unwrap();
        for number in 0..9 {
            let (user, text) = ("ann".to_owned(), format!("{number}{}", "x".repeat(300 * 1024)));
            let json = serde_json::to_string(&text).unwrap();
            let (value, messages) = (json.clone().into_bytes(), vec![MessageRecord { wall_ms: number, json }]);
            let note = NoteRecord { text, created_wall_ms: number };
            for write in [
                Write::AddNote { user: user.clone(), note },
                Write::AddRow { kind: Kind::Facts, owner: user.clone(), value },
                Write::AppendMessages { user, messages, title: String::new() },
            ] {
                store.write(write).await.unwrap();
            }
        }
        let mut export = Export::new(store, data.path().to_owned(), "ann".to_owned()).unwrap();
        let mut kinds = BTreeMap::<String, usize>::new();
        while let Some((records, following)) = export.next().await.unwrap() {
            export = following;
            for record in &records {
                *kinds.entry(record["kind"].as_str().unwrap().to_owned()).or_default() += 1;
            }
            let bytes = serde_json::to_vec(&Answer::Records { records }).unwrap().len();
            assert!(bytes < 2 * ANSWER_BYTES, "{bytes}");
        }
        let wanted = [("conversations", 1), ("facts", 9), ("message", 9), ("note", 9), ("user", 1)];
        assert!(kinds.iter().map(|(kind, count)| (kind.as_str(), *count)).eq(wanted), "{kinds:?}");
    }
}
