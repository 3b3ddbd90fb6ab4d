//! Dispatches an app's requests on its socket.

mod absent;
mod drawing;
mod photo;
mod place;
pub(super) mod sound;
mod subscriptions;

use gateway_core::input::AppInput;
use serde_json::{Value, json};

use super::{
    message::AppsMessage,
    photo::PhotoRequest,
    socket::Session,
    speech::Wanted,
    wire::{self, FromApp, Subscription},
};
use crate::clock;

/// Bytes of a request's id, which is echoed.
const REQUEST_BYTES_MAX: usize = 200;

const BUSY: &str = "too many requests of this app are being carried out";

impl Session {
    /// Handles a message; returns the immediate answers. `frame` is the raw message.
    pub(super) async fn handle(&mut self, message: FromApp, frame: &str) -> Vec<Value> {
        let now = clock::wall_ms();
        match message {
            FromApp::SubscriptionUpdate { subscriptions } => {
                self.subscribe(subscriptions.into_iter().map(Subscription::into_name).collect()).await
            }
            FromApp::DisplayEvent { view, layout, duration_ms, force_display } => {
                self.display(view.as_deref(), layout, duration_ms, force_display).await
            }
            FromApp::DashboardContentUpdate { content, modes } => self.dashboard_line(&content, modes).await,
            FromApp::DashboardModeChange {} | FromApp::DashboardSystemUpdate {} => vec![absent::dashboard(now)],
            FromApp::AudioPlayRequest { request_id, audio_url, volume, stop_other_audio, track_id } => {
                let (volume, track) = (volume.unwrap_or(1.0), track_id.map(sound::track));
                let wanted = Wanted { url: audio_url, volume, alone: stop_other_audio, track };
                self.play(request_id, wanted, frame)
            }
            FromApp::AudioStopRequest { track_id } => self.stop_playing(track_id.map(sound::track)),
            FromApp::AudioStreamStart { stream_id } => self.start_stream(&stream_id),
            FromApp::AudioStreamEnd { stream_id } => self.end_stream(&stream_id, frame),
            FromApp::PhotoRequest { request_id, save_to_gallery, custom_webhook_url, auth_token } => {
                let asked = PhotoRequest {
                    request: request_id,
                    keep: save_to_gallery,
                    url: custom_webhook_url,
                    token: auth_token,
                };
                self.photograph(asked, frame)
            }
            FromApp::LocationPollRequest { correlation_id } => vec![self.place(correlation_id)],
            FromApp::RgbLedControl { request_id } => vec![absent::light(&request_id)],
            FromApp::CameraFovSet {} => vec![absent::refused("the view of these cameras is fixed", now)],
            FromApp::RequestWifiSetup {} => vec![absent::refused("the WiFi of glasses is set on the glasses", now)],
            FromApp::RtmpStreamRequest {} => vec![absent::video("rtmp_stream_status", now)],
            FromApp::StreamRequest {} => vec![absent::video("stream_status", now)],
            FromApp::ManagedStreamRequest {} => vec![absent::video("managed_stream_status", now)],
            FromApp::RtmpStreamStop {} => vec![absent::video_stopped("rtmp_stream_status", now)],
            FromApp::StreamStop {} => vec![absent::video_stopped("stream_status", now)],
            FromApp::ManagedStreamStop {} => vec![absent::video_stopped("managed_stream_status", now)],
            FromApp::StreamStatusCheck { request_id } => vec![absent::no_stream(request_id)],
            FromApp::AppDirectMessage { message_id, target_user_id } => {
                vec![absent::direct_message(&message_id, &target_user_id, now)]
            }
            FromApp::AppBroadcastMessage {}
            | FromApp::AppUserDiscovery {}
            | FromApp::AppRoomJoin {}
            | FromApp::AppRoomLeave {} => vec![absent::refused(absent::MESSAGES, now)],
            FromApp::OwnershipRelease { reason } => {
                tracing::debug!(package = self.app.package, reason, "an app gives its session up");
                let (package, connection) = (self.app.package.clone(), self.connection);
                self.tell(AppsMessage::Input(AppInput::Released { package, connection })).await;
                Vec::new()
            }
            // Only on request: 2.x would take an unrequested one for an error.
            FromApp::Ping {} => vec![json!({"type": "pong", "timestamp": wire::time(now)})],
            FromApp::TpaConnectionInit { .. } | FromApp::Reconnect { .. } => {
                vec![wire::error("MALFORMED_MESSAGE", "this connection was acknowledged already", now)]
            }
            FromApp::Other => Vec::new(),
        }
    }
}
