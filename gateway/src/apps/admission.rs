//! Admission of sockets: an installed app, with its key, for a session that the gateway has started. Serves them to their end.

use std::{
    collections::BTreeSet,
    sync::{Arc, PoisonError},
    time::Duration,
};

use futures_util::StreamExt as _;
use gateway_core::{input::AppInput, vocab::ErrorCode};
use hyper::{HeaderMap, upgrade::Upgraded};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::{
    sync::{Semaphore, mpsc},
    time::timeout,
};
use tokio_tungstenite::tungstenite::{Message, protocol::frame::coding::CloseCode};
use tools::apps::manifest::App;

use super::{
    PATH_OLD, app_settings, glasses,
    host::Host,
    message::{AppsMessage, ToApp, WAITING_MAX},
    order::Order,
    refusals,
    relay::Relay,
    socket::{SdkVersion, Session, TRAFFIC, Ws, close, send},
    streams::Subscriptions,
    wire::{self, FromApp},
};
use crate::{
    clock,
    roster::Present,
    transport::{
        meter::Meter,
        slots::{ConnectionSlot, WRONG_KEY_WAIT},
        websocket,
    },
};

/// How long the first frame may take.
const INIT_MS_MAX: u64 = 5_000;
/// Longest reason in bytes: it contains the name that an unknown client sent.
const WHY_BYTES_MAX: usize = 300;
/// The code of a refusal for its key.
const WRONG_KEY: &str = "INVALID_API_KEY";
/// Concurrent requests of one app.
const REQUESTS_MAX: usize = 8;

/// What 3.x of the SDK sends in the headers of its upgrade instead of its first frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Headers {
    session: String,
    package: String,
    key: String,
    /// Connected at the path of 1.x.
    is_old_path: bool,
}

impl Headers {
    /// Headers of a request to this path; missing ones are empty.
    pub(crate) fn of(headers: &HeaderMap, path: &str) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        Self {
            session: text("x-session-id"),
            package: text("x-package-name"),
            key: text("x-api-key"),
            is_old_path: path == PATH_OLD,
        }
    }
}

/// Why a socket is refused.
struct Refusal {
    code: &'static str,
    message: String,
    /// It was not a first connection of 3.x.
    again: bool,
}

/// The content of a first frame, for all SDKs.
pub(super) struct Claim {
    session: String,
    package: String,
    key: String,
    sdk: SdkVersion,
    again: bool,
}

impl Claim {
    /// 3.x names its session in the headers; on a reconnected socket it sends nothing else.
    pub(super) fn read(frame: &str, headers: &Headers) -> Option<Self> {
        let or = |text: String, other: &String| if text.is_empty() { other.clone() } else { text };
        let sdk = |is_in_headers: bool| match (headers.is_old_path, is_in_headers) {
            (true, _) => SdkVersion::V1,
            (false, false) => SdkVersion::V2,
            (false, true) => SdkVersion::V3,
        };
        match serde_json::from_str(frame).ok()? {
            FromApp::TpaConnectionInit { session_id, package_name, api_key } => Some(Self {
                sdk: sdk(session_id.is_empty()),
                session: or(session_id, &headers.session),
                package: package_name,
                key: or(api_key, &headers.key),
                again: false,
            }),
            FromApp::Reconnect { session_id, package_name, api_key } => Some(Self {
                // The kit sends in the frame what 3.x sends in the headers.
                sdk: sdk(package_name.is_empty()),
                session: or(session_id, &headers.session),
                package: or(package_name, &headers.package),
                key: or(api_key, &headers.key),
                again: true,
            }),
            _ => None,
        }
    }
}

/// Serves an upgraded connection to its end.
pub(crate) async fn serve(host: Arc<Host>, upgraded: Upgraded, headers: Headers, slot: &ConnectionSlot) {
    let meter = Meter::newcomer();
    let mut ws = websocket::server_socket(upgraded, wire::FRAME_BYTES_MAX, meter.clone()).await;
    let (out, messages) = mpsc::channel(WAITING_MAX);
    match admit(&host, &mut ws, out, headers).await {
        Ok(session) => {
            slot.admit();
            meter.allow(TRAFFIC);
            session.run(ws, messages).await;
        }
        Err(Refusal { code, message, again }) => {
            if let Some(left_out) = host.refused.line() {
                tracing::info!(code, message, left_out, "an app's socket was refused");
            }
            if code == WRONG_KEY {
                tokio::time::sleep(WRONG_KEY_WAIT).await;
            }
            // Answered before closing: an SDK without an answer would wait indefinitely.
            let now = clock::wall_ms();
            let told = if again { wire::reconnect_rejected(&message, now) } else { wire::error(code, &message, now) };
            drop(send(&mut ws, &told).await);
            close(&mut ws, CloseCode::Normal, "refused").await;
        }
    }
}

/// Reads, checks and acknowledges the first frame.
async fn admit(host: &Arc<Host>, ws: &mut Ws, out: mpsc::Sender<ToApp>, headers: Headers) -> Result<Session, Refusal> {
    let refusal = |code, message: &str| Refusal { code, message: message.to_owned(), again: false };
    let first = async {
        loop {
            match ws.next().await {
                Some(Ok(Message::Text(text))) => return Some(text),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return None,
            }
        }
    };
    let malformed = || refusal("MALFORMED_MESSAGE", "the first frame has to be a tpa_connection_init");
    let first = tokio::select! {
        first = timeout(Duration::from_millis(INIT_MS_MAX), first) => first.ok().flatten().ok_or_else(malformed)?,
        () = host.stop.cancelled() => return Err(refusal("INTERNAL_ERROR", "the gateway is stopping")),
    };
    let claim = Claim::read(&first, &headers).ok_or_else(malformed)?;
    let (app, user) = judge(host, &claim, &first).await?;
    let spoken = glasses::spoken(host.tasks.snapshot(&user).glasses.values());
    let session = Session {
        host: host.clone(),
        user,
        app,
        name: claim.session,
        connection: host.next_connection(),
        resumed: claim.again,
        subscriptions: Subscriptions::default(),
        spoken,
        settled_us: None,
        listener: None,
        out,
        requests: Arc::new(Semaphore::new(REQUESTS_MAX)),
        animation: None,
        order: Order::default(),
        playing: Vec::new(),
        unsent: Vec::new(),
        relay: Relay::default(),
        sdk: claim.sdk,
        told: BTreeSet::new(),
        joined_us: clock::mono_us(),
        second: (0, 0),
    };
    let (ack, state) = session.greeting(claim.again);
    let sent = send(ws, &ack).await.is_ok() && (session.sdk == SdkVersion::V1 || send(ws, &state).await.is_ok());
    if !sent {
        return Err(refusal("INTERNAL_ERROR", "the socket went away"));
    }
    Ok(session)
}

/// The app and the user of a session. From here on the connection identifies them: later frames name their session in
/// several ways.
///
/// Refusals here are the first errors of new app authors: they are reported in the app's log, and to the caller that
/// waits for the start.
async fn judge(host: &Arc<Host>, claim: &Claim, frame: &str) -> Result<(Arc<App>, String), Refusal> {
    let refusal = |code, message: String| Refusal { code, message, again: claim.again };
    let session = host.tasks.by_session(&claim.session);
    let complain = |user: Option<&str>, package: &str, code, why: &str| {
        let message = format!("{code}: {why}");
        host.installed.complain(user, package, "socket", ErrorCode::PermissionDenied, message, refusals::shown(frame));
    };
    let app = host.installed.get(&claim.package);
    let wrong = match (&session, &app) {
        (Some((_, card)), _) if card.package != claim.package => {
            let why =
                format!("its server says that it is `{}`, and it was installed as `{}`", claim.package, card.package);
            Some(("APP_NOT_STARTED", tools::reply::cut(&why, WHY_BYTES_MAX)))
        }
        (_, Some(app)) if !key_fits(app, &claim.key) => {
            Some((WRONG_KEY, "its API key is not the one that it was installed with".to_owned()))
        }
        _ => None,
    };
    if let Some((code, why)) = wrong {
        // A client that knows the session's name was called by the gateway: no other socket will come.
        match &session {
            Some((user, card)) => {
                complain(Some(user), &card.package, code, &why);
                let turned_away = AppInput::TurnedAway { package: card.package.clone(), why: why.clone() };
                host.tasks.tell(user, AppsMessage::Input(turned_away)).await;
            }
            None => complain(None, &claim.package, code, &why),
        }
        return Err(refusal(code, why));
    }
    let Some(app) = app else {
        return Err(refusal("APP_NOT_STARTED", "no such app is installed".to_owned()));
    };
    let Some((user, _)) = session else {
        let why = "this session was not started by the gateway, or is over";
        complain(None, &app.package, "SESSION_NOT_FOUND", why);
        return Err(refusal("SESSION_NOT_FOUND", why.to_owned()));
    };
    Ok((app, user))
}

impl Session {
    /// The answer to its first frame, and the state of the glasses.
    fn greeting(&self, again: bool) -> (Value, Value) {
        let settings = self.host.settings_of(&self.user, &self.app);
        let system = app_settings::system_settings(&app_settings::zone(), &self.app.permissions);
        let worn = self.host.glasses_of(&self.user).into_iter().next();
        let capabilities = worn.as_ref().map_or_else(glasses::none, |(_, _, glasses)| glasses.capabilities());
        let model = worn.as_ref().map(|(_, _, glasses)| glasses.model.clone());
        let battery = worn.and_then(|(_, present, _)| battery_of(&present));
        let mut state = json!({"connected": model.is_some(), "modelName": model});
        if let (Some(fields), Some((percent, charging))) = (state.as_object_mut(), battery) {
            fields.insert("batteryLevel".to_owned(), percent.into());
            fields.insert("charging".to_owned(), charging.into());
        }
        let now = clock::wall_ms();
        let mut ack = wire::connection_ack(&self.name, &settings, &system, &capabilities, now);
        if let (true, Some(fields)) = (again, ack.as_object_mut()) {
            fields.insert("type".to_owned(), "reconnect_ack".into());
        }
        (ack, glasses::state_update(state, true, wire::time(now)))
    }
}

impl Host {
    /// Whether a key is the one that an app was installed with.
    pub(crate) fn is_key_of(&self, package: &str, key: &str) -> bool {
        self.installed.get(package).is_some_and(|app| key_fits(&app, key))
    }
}

/// The charge that glasses have reported, and whether they are being charged.
fn battery_of(present: &Present) -> Option<(u8, bool)> {
    let status = present.status.lock().unwrap_or_else(PoisonError::into_inner);
    Some((status.battery_percent?, status.charging.unwrap_or(false)))
}

/// Whether a key is the app's, compared by hash.
fn key_fits(app: &App, key: &str) -> bool {
    let digest = Sha256::digest(key.as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    // Hashes are compared, so that the duration reveals nothing about the key.
    !app.api_key_sha256.is_empty() && hex.eq_ignore_ascii_case(&app.api_key_sha256)
}
