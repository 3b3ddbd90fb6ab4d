//! What an app asks for on its socket.

use std::time::Duration;

use gateway_core::{
    input::AppInput,
    vocab::{AppEvent, Content, ErrorCode},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tools::apps::log::Latest;

use super::{
    drawing::{self, Drawn},
    photo::Wish,
    refusals,
    relay::{Relay, Whole},
    socket::{SdkVersion, Session},
    speech::{self, Wanted},
    streams,
    tasks::message::{AppsMessage, ToApp},
    wire::{self, FromApp, Subscription},
};
use crate::{clock, runtime::spawn};

/// Characters of an app's line on the dashboard: a line and some to scroll.
const LINE_CHARS_MAX: usize = 200;
/// Bytes of a request's number, which is given back.
const REQUEST_BYTES_MAX: usize = 200;

impl Session {
    /// Carries a message out; what is to be answered at once. `frame` is the message as it came.
    pub(super) async fn handle(&mut self, message: FromApp, frame: &str) -> Vec<Value> {
        let now = clock::wall_ms();
        match message {
            FromApp::SubscriptionUpdate { subscriptions } => {
                self.subscribe(subscriptions.into_iter().map(Subscription::into_name).collect()).await
            }
            FromApp::DisplayEvent { view, layout, duration_ms, force_display } => {
                let (package, duration_ms) = (self.app.package.clone(), drawing::duration_ms(duration_ms));
                let view = drawing::view(view.as_deref(), &layout);
                let told = drawing::told(view, duration_ms, &layout);
                self.host.installed.note_latest(&self.user, &self.app.package, Latest::Drawing, told);
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
                        self.draw(draw(Some(content))).await
                    }
                    Drawn::Clear => {
                        self.animation = None;
                        self.draw(draw(None)).await
                    }
                    Drawn::Animation { frames, interval, repeat } => {
                        self.animate(frames.into_iter().map(|frame| draw(Some(frame))).collect(), interval, repeat)
                    }
                }
            }
            FromApp::DashboardContentUpdate { content, modes } => {
                if modes.is_some_and(|modes| !modes.is_empty() && !modes.iter().any(|mode| mode == "main")) {
                    let why = "the dashboard of these glasses has one form, `main`";
                    return vec![wire::error("DASHBOARD_MODE_NOT_AVAILABLE", why, now)];
                }
                let text = content.as_str().unwrap_or_default();
                let text = text.chars().filter(|c| !c.is_control()).take(LINE_CHARS_MAX).collect();
                self.draw(AppEvent::DashboardLine { package: self.app.package.clone(), text }).await
            }
            FromApp::DashboardModeChange {} | FromApp::DashboardSystemUpdate {} => {
                vec![wire::error("PERMISSION_DENIED", "the dashboard itself is the gateway's", now)]
            }
            FromApp::AudioPlayRequest { request_id, audio_url, volume, stop_other_audio, track_id } => {
                let (volume, track) = (volume.unwrap_or(1.0), track_id.map(track));
                let wanted = Wanted { url: audio_url, volume, alone: stop_other_audio, track };
                self.play(request_id, wanted, frame)
            }
            FromApp::AudioStopRequest { track_id } => self.stop_playing(track_id.map(track)),
            FromApp::AudioStreamStart { stream_id } => match self.relay.start(&stream_id) {
                Ok(url) => {
                    vec![json!({"type": "audio_stream_ready", "streamId": stream_id, "streamUrl": url})]
                }
                Err(why) => vec![wire::error("AUDIO_STREAM_NOT_AVAILABLE", &why, now)],
            },
            FromApp::AudioStreamEnd { stream_id } => {
                let whole = self.relay.end(&stream_id);
                whole.map(|whole| self.play_whole(whole, frame)).unwrap_or_default()
            }
            FromApp::PhotoRequest { request_id, save_to_gallery, custom_webhook_url, auth_token } => {
                let wish =
                    Wish { request: request_id, keep: save_to_gallery, url: custom_webhook_url, token: auth_token };
                self.photograph(wish, frame)
            }
            FromApp::LocationPollRequest { correlation_id } => vec![self.place(correlation_id)],
            FromApp::RgbLedControl { request_id } => vec![json!({
                "type": "rgb_led_control_response",
                "requestId": request_id,
                "success": false,
                "error": "these glasses have no light that apps can use",
            })],
            FromApp::CameraFovSet {} => vec![unserved("the view of these cameras is fixed", now)],
            FromApp::RequestWifiSetup {} => {
                vec![unserved("the WiFi of glasses is set on the glasses", now)]
            }
            FromApp::RtmpStreamRequest {} => vec![no_video("rtmp_stream_status", now)],
            FromApp::StreamRequest {} => vec![no_video("stream_status", now)],
            FromApp::ManagedStreamRequest {} => vec![no_video("managed_stream_status", now)],
            FromApp::RtmpStreamStop {} => vec![stopped("rtmp_stream_status", now)],
            FromApp::StreamStop {} => vec![stopped("stream_status", now)],
            FromApp::ManagedStreamStop {} => vec![stopped("managed_stream_status", now)],
            FromApp::StreamStatusCheck { request_id } => {
                vec![json!({"type": "stream_status_check_response", "requestId": request_id, "hasActiveStream": false})]
            }
            FromApp::AppDirectMessage { message_id, target_user_id } => vec![json!({
                "type": "app_direct_message_response",
                "messageId": message_id,
                "targetUserId": target_user_id,
                "success": false,
                "error": NO_MESSAGES,
                "timestamp": wire::time(now),
            })],
            FromApp::AppBroadcastMessage {}
            | FromApp::AppUserDiscovery {}
            | FromApp::AppRoomJoin {}
            | FromApp::AppRoomLeave {} => vec![unserved(NO_MESSAGES, now)],
            FromApp::OwnershipRelease { reason } => {
                tracing::debug!(package = self.app.package, reason, "an app gives its session up");
                let (package, connection) = (self.app.package.clone(), self.connection);
                self.tell(AppsMessage::Input(AppInput::Released { package, connection })).await;
                Vec::new()
            }
            // Only to whom asks: 2.x would take an unasked one for an error.
            FromApp::Ping {} => vec![json!({"type": "pong", "timestamp": wire::time(now)})],
            FromApp::TpaConnectionInit { .. } | FromApp::Reconnect { .. } => {
                vec![wire::error("MALFORMED_MESSAGE", "this connection was acknowledged already", now)]
            }
            FromApp::Other => Vec::new(),
        }
    }

    async fn draw(&self, event: AppEvent) -> Vec<Value> {
        let package = self.app.package.clone();
        self.tell(AppsMessage::Draw { package, connection: self.connection, event, over: None }).await;
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
                    let (package, event) = (package.clone(), frame.clone());
                    let draw = AppsMessage::Draw { package, connection, event, over: Some(over.clone()) };
                    let drawn = async {
                        host.tasks.tell(&user, draw).await;
                        tokio::time::sleep(interval).await;
                    };
                    if over.run_until_cancelled(drawn).await.is_none() {
                        return;
                    }
                }
                if !repeat {
                    return;
                }
            }
        });
        Vec::new()
    }

    fn play(&mut self, request: String, wanted: Wanted, frame: &str) -> Vec<Value> {
        if request.len() > REQUEST_BYTES_MAX {
            return vec![wire::error("MALFORMED_MESSAGE", "the request's number is too long", clock::wall_ms())];
        }
        if Relay::owns(&wanted.url) {
            let whole = self.relay.play(request, wanted);
            return whole.map(|whole| self.play_whole(whole, frame)).unwrap_or_default();
        }
        self.be_heard(request, wanted, None, frame)
    }

    fn play_whole(&mut self, whole: Whole, frame: &str) -> Vec<Value> {
        match whole.file {
            Ok(file) => self.be_heard(whole.request, whole.wanted, Some(file), frame),
            Err(why) => vec![wire::audio_play_response(&whole.request, Err(&why))],
        }
    }

    /// Says or plays it in a task of its own, which answers when it was heard.
    fn be_heard(&mut self, request: String, wanted: Wanted, file: Option<Vec<u8>>, frame: &str) -> Vec<Value> {
        let Ok(room) = self.requests.clone().try_acquire_owned() else {
            return vec![wire::audio_play_response(&request, Err(BUSY))];
        };
        let words = if file.is_none() { speech::words_of(&wanted.url) } else { None };
        let begun = words.map(|text| self.host.say(&self.user, &self.app, &text, &wanted));
        if wanted.alone {
            // A file that is still being fetched must not end what was asked for after it.
            self.playing.iter().for_each(|(_, earlier)| earlier.cancel());
        }
        let stop = CancellationToken::new();
        self.playing.retain(|(_, token)| !token.is_cancelled());
        self.playing.push((wanted.track, stop.clone()));
        let (host, user, app, out) = (self.host.clone(), self.user.clone(), self.app.clone(), self.out.clone());
        let frame = refusals::shown(frame);
        spawn("app-sound", async move {
            let outcome = match begun {
                Some(Ok(Some(begun))) => host.heard(begun, &stop).await,
                Some(Ok(None)) => Ok(None),
                Some(Err(why)) => Err(why),
                None => host.play(&user, &app, &wanted, file, &stop).await,
            };
            stop.cancel();
            if let Err(why) = &outcome
                && why != speech::INTERRUPTED
            {
                host.installed.complain(
                    &user,
                    &app.package,
                    "audio_play_request",
                    ErrorCode::ExecutionError,
                    why.clone(),
                    frame,
                );
            }
            let answer = wire::audio_play_response(&request, outcome.as_ref().map(|it| *it).map_err(String::as_str));
            drop(out.send(ToApp::Json(answer)).await);
            drop(room);
        });
        Vec::new()
    }

    /// Ends what the app says and plays, or one track of it.
    fn stop_playing(&mut self, track: Option<u8>) -> Vec<Value> {
        for (_, stop) in self.playing.iter().filter(|(playing, _)| track.is_none() || *playing == track) {
            stop.cancel();
        }
        let gathered = self.relay.stop(track);
        gathered.iter().map(|request| wire::audio_play_response(request, Err(speech::INTERRUPTED))).collect()
    }

    /// Where the wearer is, for an app that asks once.
    fn place(&self, correlation: String) -> Value {
        let now = clock::wall_ms();
        let allowed = self.app.permissions.iter().any(|has| has == "LOCATION" || has == "ALL");
        let mut answer = match self.host.location {
            None => wire::error("LOCATION_NOT_AVAILABLE", streams::NO_PLACE, now),
            Some(_) if !allowed => {
                let why = "the wearer's place needs the permission LOCATION, which the app's manifest does not ask for";
                wire::error("PERMISSION_DENIED", why, now)
            }
            Some(location) => {
                let mut data = streams::place(location);
                data.insert("correlationId".to_owned(), correlation.into());
                return wire::data_stream(&self.name, "location_update", data, now);
            }
        };
        if let Some(fields) = answer.as_object_mut() {
            fields.insert("correlationId".to_owned(), correlation.into());
        }
        answer
    }

    fn photograph(&self, wish: Wish, frame: &str) -> Vec<Value> {
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
        // 3.x waits for a message, 2.x for the upload alone.
        let told = (self.sdk == SdkVersion::V3).then(|| self.out.clone());
        let frame = refusals::shown(frame);
        let taking = self.host.clone().photograph(self.user.clone(), self.app.clone(), wish, told, frame);
        spawn("app-photo", async move {
            taking.await;
            drop(room);
        });
        Vec::new()
    }
}

/// The app's name for a kind of sound; what is out of range is the nearest.
fn track(number: f32) -> u8 {
    number as u8
}

fn unserved(why: &str, wall_ms: i64) -> Value {
    wire::error("NOT_AVAILABLE", why, wall_ms)
}

/// Both fields in which SDKs look for the reason.
fn no_video(kind: &str, wall_ms: i64) -> Value {
    let timestamp = wire::time(wall_ms);
    json!({"type": kind, "status": "error", "message": NO_VIDEO, "errorDetails": NO_VIDEO, "timestamp": timestamp})
}

fn stopped(kind: &str, wall_ms: i64) -> Value {
    json!({"type": kind, "status": "stopped", "timestamp": wire::time(wall_ms)})
}

const NO_MESSAGES: &str = "apps of this gateway do not write to one another";
const NO_VIDEO: &str = "this gateway carries no video";
const BUSY: &str = "too many requests of this app are being carried out";
