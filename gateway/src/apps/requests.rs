//! What an app asks for on its socket.

use std::time::Duration;

use gateway_core::vocab::{AppEvent, Content};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    drawing::{self, Drawn},
    host::ToApp,
    life::Input,
    photo::Wish,
    socket::Session,
    speech,
    wire::{self, FromApp, Subscription},
};
use crate::{clock, effects::spawn};

/// Characters of an app's line on the dashboard: a line and some to scroll.
const LINE_CHARS_MAX: usize = 200;
/// Bytes of a request's number, which is given back.
const REQUEST_BYTES_MAX: usize = 200;

impl Session {
    /// Carries a message out; what is to be answered at once.
    pub(super) fn handle(&mut self, message: FromApp) -> Vec<Value> {
        let now = clock::wall_ms();
        match message {
            FromApp::SubscriptionUpdate { subscriptions } => {
                self.subscribe(subscriptions.into_iter().map(Subscription::into_name).collect())
            }
            FromApp::DisplayEvent { view, layout, duration_ms, force_display } => {
                let (package, duration_ms) = (self.app.package.clone(), drawing::duration_ms(duration_ms));
                let view = drawing::view(view.as_deref(), &layout);
                let draw = move |content: Option<Content>| AppEvent::Draw {
                    package: package.clone(),
                    view,
                    content,
                    duration_ms,
                    force: force_display,
                };
                match drawing::read(&layout) {
                    Drawn::Refused(why) => vec![wire::error("LAYOUT_NOT_AVAILABLE", &why, now)],
                    Drawn::Content(content) => {
                        self.animation = None;
                        self.draw(&draw(Some(content)))
                    }
                    Drawn::Clear => {
                        self.animation = None;
                        self.draw(&draw(None))
                    }
                    Drawn::Animation { frames, interval, repeat } => {
                        self.animate(frames.into_iter().map(|frame| draw(Some(frame))).collect(), interval, repeat)
                    }
                }
            }
            FromApp::DashboardContentUpdate { content } => {
                let text = content.as_str().unwrap_or_default();
                let text = text.chars().filter(|c| !c.is_control()).take(LINE_CHARS_MAX).collect();
                self.draw(&AppEvent::DashboardLine { package: self.app.package.clone(), text })
            }
            FromApp::AudioPlayRequest { request_id, audio_url, stop_other_audio } => {
                self.play(request_id, audio_url, stop_other_audio)
            }
            FromApp::AudioStopRequest {} => {
                self.host.speeches.withdraw(&self.host.roster, &self.user, &self.app.package);
                Vec::new()
            }
            FromApp::PhotoRequest { request_id, save_to_gallery, custom_webhook_url, auth_token } => {
                let wish =
                    Wish { request: request_id, keep: save_to_gallery, url: custom_webhook_url, token: auth_token };
                self.photograph(wish)
            }
            FromApp::LocationPollRequest { correlation_id } => {
                let mut refusal =
                    wire::error("LOCATION_NOT_AVAILABLE", "this gateway does not know where the wearer is", now);
                if let Some(fields) = refusal.as_object_mut() {
                    fields.insert("correlationId".to_owned(), correlation_id.into());
                }
                vec![refusal]
            }
            FromApp::RgbLedControl { request_id } => vec![json!({
                "type": "rgb_led_control_response",
                "requestId": request_id,
                "success": false,
                "error": "these glasses have no light that apps can use",
            })],
            FromApp::RtmpStreamRequest {} => vec![json!({
                "type": "rtmp_stream_status",
                "status": "error",
                "errorDetails": NO_VIDEO,
                "timestamp": wire::time(now),
            })],
            FromApp::ManagedStreamRequest {} => vec![json!({
                "type": "managed_stream_status",
                "status": "error",
                "message": NO_VIDEO,
                "timestamp": wire::time(now),
            })],
            FromApp::StreamStatusCheck {} => {
                vec![json!({"type": "stream_status_check_response", "hasActiveStream": false})]
            }
            FromApp::OwnershipRelease { reason } => {
                tracing::debug!(package = self.app.package, reason, "an app gives its session up");
                let (package, connection) = (self.app.package.clone(), self.connection);
                self.host.input(&self.user, Input::Released { package, connection });
                Vec::new()
            }
            // Only to whom asks: 2.x would take an unasked one for an error.
            FromApp::Ping {} => vec![json!({"type": "pong", "timestamp": wire::time(now)})],
            FromApp::TpaConnectionInit { .. } => {
                vec![wire::error("MALFORMED_MESSAGE", "this connection was acknowledged already", now)]
            }
            FromApp::Other => Vec::new(),
        }
    }

    fn draw(&self, event: &AppEvent) -> Vec<Value> {
        self.host.draw(&self.user, &self.app.package, self.connection, event);
        Vec::new()
    }

    /// Draws the pictures of an animation until it is through, or something else is drawn.
    fn animate(&mut self, frames: Vec<AppEvent>, interval: Duration, repeat: bool) -> Vec<Value> {
        let over = CancellationToken::new();
        self.animation = Some(over.clone().drop_guard());
        let (host, user, package, connection) =
            (self.host.clone(), self.user.clone(), self.app.package.clone(), self.connection);
        spawn("app-animation", async move {
            loop {
                for frame in &frames {
                    host.draw(&user, &package, connection, frame);
                    tokio::select! {
                        () = over.cancelled() => return,
                        () = tokio::time::sleep(interval) => {}
                    }
                }
                if !repeat {
                    return;
                }
            }
        });
        Vec::new()
    }

    fn play(&self, request: String, url: String, alone: bool) -> Vec<Value> {
        if request.len() > REQUEST_BYTES_MAX {
            return vec![wire::error("MALFORMED_MESSAGE", "the request's number is too long", clock::wall_ms())];
        }
        let Ok(room) = self.requests.clone().try_acquire_owned() else {
            return vec![wire::audio_play_response(&request, Some(BUSY))];
        };
        let saying = speech::say(self.host.clone(), self.user.clone(), self.app.package.clone(), url, alone);
        let out = self.out.clone();
        spawn("app-speech", async move {
            let outcome = saying.await;
            let answer = wire::audio_play_response(&request, outcome.as_ref().err().map(String::as_str));
            drop(out.send(ToApp::Json(answer)).await);
            drop(room);
        });
        Vec::new()
    }

    fn photograph(&self, wish: Wish) -> Vec<Value> {
        let now = clock::wall_ms();
        if !self.app.permissions.iter().any(|has| has == "CAMERA" || has == "ALL") {
            let message = "photos need the permission CAMERA, which the app's manifest does not ask for";
            return vec![wire::error("PERMISSION_DENIED", message, now)];
        }
        if wish.request.len() > REQUEST_BYTES_MAX {
            return vec![wire::error("MALFORMED_MESSAGE", "the request's number is too long", now)];
        }
        if let Err(why) = super::photo::destination(&self.app, &wish) {
            return vec![wire::error("PERMISSION_DENIED", &why, now)];
        }
        let Ok(room) = self.requests.clone().try_acquire_owned() else {
            return vec![wire::error("INTERNAL_ERROR", BUSY, now)];
        };
        let taking = self.host.clone().photograph(self.user.clone(), self.app.clone(), wish);
        spawn("app-photo", async move {
            taking.await;
            drop(room);
        });
        Vec::new()
    }
}

const NO_VIDEO: &str = "this gateway carries no video";
const BUSY: &str = "too many requests of this app are being carried out";
