//! A wearer's session: drawing, listening, speaking, storing.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    sync::{broadcast, mpsc, oneshot, watch},
    time::timeout,
};

use crate::{
    Error, Layout,
    limits::{LANGUAGES_MAX, SPEAK_BYTES_MAX, SPEAK_MS_MAX, TRANSCRIPTS_MAX, WAITING_MAX},
    storage::Storage,
    target::Target,
};

/// One wearer's session with the glasses. Cheap to clone.
#[derive(Clone)]
pub struct Session(Arc<Shared>);

struct Shared {
    user: String,
    id: String,
    package: String,
    key: String,
    target: Target,
    out: mpsc::Sender<Value>,
    heard: Mutex<Heard>,
    end: watch::Sender<bool>,
}

#[derive(Default)]
struct Heard {
    streams: BTreeMap<String, broadcast::Sender<Transcript>>,
    speaking: BTreeMap<String, oneshot::Sender<Result<(), String>>>,
    requests: u64,
}

/// A piece of recognised speech.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcript {
    /// The text so far, of the whole utterance.
    pub text: String,
    /// The utterance is over and the text is final.
    pub is_final: bool,
}

/// A stream of transcripts.
pub struct Transcripts(broadcast::Receiver<Transcript>);

impl Transcripts {
    /// The next one; `None` when the session has ended. A slow reader misses the oldest.
    pub async fn next(&mut self) -> Option<Transcript> {
        loop {
            match self.0.recv().await {
                Ok(transcript) => return Some(transcript),
                Err(broadcast::error::RecvError::Lagged(missed)) => tracing::warn!(missed, "transcripts were missed"),
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

impl Session {
    pub(crate) fn new(user: &str, id: &str, package: &str, key: &str, target: Target) -> (Self, mpsc::Receiver<Value>) {
        let (out, waiting) = mpsc::channel(WAITING_MAX);
        let shared = Shared {
            user: user.to_owned(),
            id: id.to_owned(),
            package: package.to_owned(),
            key: key.to_owned(),
            target,
            out,
            heard: Mutex::default(),
            end: watch::Sender::new(false),
        };
        (Self(Arc::new(shared)), waiting)
    }

    /// The user of the session.
    pub fn user(&self) -> &str {
        &self.0.user
    }

    /// Shows a layout until something else is drawn.
    ///
    /// # Errors
    /// The session has ended, or the app draws too often.
    pub fn show(&self, layout: Layout) -> Result<(), Error> {
        self.draw(layout, None)
    }

    /// Shows a layout for the given time.
    ///
    /// # Errors
    /// The session has ended, or the app draws too often.
    pub fn show_for(&self, layout: Layout, time: Duration) -> Result<(), Error> {
        self.draw(layout, Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
    }

    fn draw(&self, layout: Layout, duration_ms: Option<u64>) -> Result<(), Error> {
        let mut event = json!({"view": "main", "layout": layout});
        if let Some(ms) = duration_ms {
            event["durationMs"] = ms.into();
        }
        self.send("display_event", event)
    }

    /// The wearer's speech in a language such as `de-DE`, or in any: `auto`. MentraOS' default, `en-US`, is any that is not asked for
    /// otherwise. Needs the permission `MICROPHONE`.
    ///
    /// # Errors
    /// The session has ended, or too many languages are subscribed to.
    pub fn transcripts(&self, language: &str) -> Result<Transcripts, Error> {
        let stream = format!("transcription:{language}");
        let receiver = {
            let mut heard = self.heard();
            if self.has_ended() {
                return Err(Error::Ended);
            }
            if !heard.streams.contains_key(&stream) && heard.streams.len() >= LANGUAGES_MAX {
                return Err(Error::TooMuch(format!("at most {LANGUAGES_MAX} languages at once")));
            }
            let sender = heard.streams.entry(stream).or_insert_with(|| broadcast::Sender::new(TRANSCRIPTS_MAX));
            sender.subscribe()
        };
        self.send("subscription_update", self.subscriptions())?;
        Ok(Transcripts(receiver))
    }

    /// Speaks a text; returns when it was played to its end.
    ///
    /// # Errors
    /// The text was not spoken, or not to its end.
    pub async fn speak(&self, text: &str) -> Result<(), Error> {
        if text.trim().is_empty() || text.len() > SPEAK_BYTES_MAX {
            return Err(Error::TooMuch(format!("what is spoken has 1 to {SPEAK_BYTES_MAX} bytes")));
        }
        let (settle, settled) = oneshot::channel();
        let request = {
            let mut heard = self.heard();
            heard.requests += 1;
            let request = format!("speak-{}", heard.requests);
            heard.speaking.insert(request.clone(), settle);
            request
        };
        let asked = self.send(
            "audio_play_request",
            json!({
                "requestId": request,
                "audioUrl": self.0.target.speech_url(text),
                "volume": 1,
                "stopOtherAudio": true,
                "trackId": 2,
            }),
        );
        let outcome = match asked {
            Ok(()) => timeout(Duration::from_millis(SPEAK_MS_MAX), settled).await,
            Err(error) => {
                self.heard().speaking.remove(&request);
                return Err(error);
            }
        };
        self.heard().speaking.remove(&request);
        match outcome {
            Ok(Ok(spoken)) => spoken.map_err(Error::NotSpoken),
            Ok(Err(_)) => Err(Error::Ended),
            Err(_) => Err(Error::Timeout(SPEAK_MS_MAX)),
        }
    }

    /// The app's storage for this wearer.
    pub fn storage(&self) -> Storage {
        Storage::new(self.0.target.clone(), &self.0.user, &self.0.package, &self.0.key)
    }

    /// Resolves when the session has ended.
    pub async fn ended(&self) {
        let mut end = self.0.end.subscribe();
        // The sender lives in `self`.
        drop(end.wait_for(|ended| *ended).await);
    }

    /// Whether the session has ended.
    pub fn has_ended(&self) -> bool {
        *self.0.end.borrow()
    }

    pub(crate) fn end(&self) {
        self.0.end.send_replace(true);
        // Drops all senders, so that waiting receivers end.
        *self.heard() = Heard::default();
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn target(&self) -> &Target {
        &self.0.target
    }

    /// The first frame on a socket. After a reconnect it states that the session goes on. Otherwise the gateway would
    /// take the app for one whose SDK has reported the loss, and call its webhook again.
    pub(crate) fn first(&self, again: bool) -> Value {
        json!({
            "type": if again { "reconnect" } else { "tpa_connection_init" },
            "sessionId": self.0.id,
            "packageName": self.0.package,
            "apiKey": self.0.key,
            "timestamp": now(),
        })
    }

    /// The full list of subscriptions, as the gateway always requires it.
    pub(crate) fn subscriptions(&self) -> Value {
        let streams: Vec<String> = self.heard().streams.keys().cloned().collect();
        json!({"subscriptions": streams})
    }

    /// Adds the common fields to a message's own fields.
    pub(crate) fn message(&self, kind: &str, mut fields: Value) -> Value {
        fields["type"] = kind.into();
        fields["packageName"] = self.0.package.as_str().into();
        fields["sessionId"] = self.0.id.as_str().into();
        fields["timestamp"] = now().into();
        fields
    }

    fn send(&self, kind: &str, fields: Value) -> Result<(), Error> {
        if self.has_ended() {
            return Err(Error::Ended);
        }
        self.0.out.try_send(self.message(kind, fields)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Error::Busy,
            mpsc::error::TrySendError::Closed(_) => Error::Ended,
        })
    }

    /// Handles a message of the gateway.
    pub(crate) fn handle(&self, message: &Value) {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        match message.get("type").and_then(Value::as_str) {
            Some("data_stream") => {
                let Some((stream, data)) = text(message.get("streamType")).zip(message.get("data")) else { return };
                if let Some(listeners) = self.heard().streams.get(&stream) {
                    let transcript = Transcript {
                        text: text(data.get("text")).unwrap_or_default(),
                        is_final: data.get("isFinal").and_then(Value::as_bool).unwrap_or_default(),
                    };
                    // There may be no receiver any more.
                    drop(listeners.send(transcript));
                }
            }
            Some("audio_play_response") => {
                let waiting = text(message.get("requestId")).and_then(|id| self.heard().speaking.remove(&id));
                let Some(waiting) = waiting else { return };
                let success = message.get("success").and_then(Value::as_bool).unwrap_or_default();
                let why = || text(message.get("error")).unwrap_or_else(|| "no reason was given".to_owned());
                drop(waiting.send(if success { Ok(()) } else { Err(why()) }));
            }
            Some("tpa_connection_error" | "connection_error" | "permission_error") => {
                tracing::warn!(message = text(message.get("message")), "the gateway complains");
            }
            // Settings, states and other messages that this kit does not use.
            _ => {}
        }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// ISO 8601.
#[expect(clippy::disallowed_methods, reason = "an app is a program of its own; nobody hands it a clock")]
fn now() -> String {
    jiff::Timestamp::now().to_string()
}
