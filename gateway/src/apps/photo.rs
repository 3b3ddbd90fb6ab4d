//! Photos for apps: taken by the glasses' own tool, delivered to the app's server.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use gateway_core::vocab::{Attachment, ErrorCode, ToolCall};
use reqwest::{StatusCode, Url, multipart};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tools::{
    apps::manifest::App,
    ports::{DeviceCall as _, PortError},
};

use super::{host::Host, message::ToApp, wire};
use crate::{clock, ports::stores::ConnectedDevices};

/// The tool of glasses with a camera.
const CAMERA: &str = "camera.photo";
/// How long the glasses may take, in milliseconds: the SDK waits 30 s for the picture's arrival.
const TAKE_MS_MAX: u64 = 20_000;
/// How long the app may take to receive it, in milliseconds.
const DELIVER_MS_MAX: u64 = 8_000;

/// Bytes of a photo that fits into a message: the socket's buffer has room for it in base64.
const ADDRESS_BYTES_MAX: usize = 1_500_000;

/// A photo as sent by the glasses.
#[derive(Clone, Debug)]
pub(super) struct Photo {
    /// Media type.
    pub mime: String,
    /// The file as the glasses have encoded it.
    pub bytes: Bytes,
}

impl Photo {
    /// The first picture of a call.
    fn of(attachments: Vec<Attachment>) -> Option<Self> {
        attachments.into_iter().find_map(|attachment| match attachment {
            Attachment::Image { mime, data } => Some(Self { mime, bytes: STANDARD.decode(data).ok()?.into() }),
            _ => None,
        })
    }

    /// The picture as a data URL.
    ///
    /// # Errors
    /// It is too large for a message.
    fn address(&self) -> Result<String, String> {
        let bytes = self.bytes.len();
        if bytes > ADDRESS_BYTES_MAX {
            return Err(format!("the photo has {bytes} bytes; at most {ADDRESS_BYTES_MAX} fit into a message"));
        }
        Ok(format!("data:{};base64,{}", self.mime, STANDARD.encode(&self.bytes)))
    }
}

/// A photo request of an app.
#[derive(Debug)]
pub(super) struct PhotoRequest {
    /// The app's request id.
    pub request: String,
    /// Whether to keep it in the wearer's gallery.
    pub keep: bool,
    /// Destination, if not the default one.
    pub url: Option<String>,
    /// Sent with it.
    pub token: Option<String>,
}

/// The destination of a photo, which must be on the app's own server.
///
/// # Errors
/// It is elsewhere.
pub(super) fn destination(app: &App, asked: &PhotoRequest) -> Result<Url, String> {
    let usual = format!("{}/photo-upload", app.public_url.trim_end_matches('/'));
    let usual = Url::parse(&usual).map_err(|error| format!("the app's address is no URL: {error}"))?;
    let Some(wanted) = asked.url.as_deref().filter(|url| !url.is_empty()) else {
        return Ok(usual);
    };
    match Url::parse(wanted) {
        Ok(wanted) if wanted.origin() == usual.origin() => Ok(wanted),
        _ => Err("photos go to the app's own server and nowhere else".to_owned()),
    }
}

impl Host {
    /// Takes a photo and delivers it. A failure is delivered likewise, and logged with the request for the app's
    /// author. `told` is the app's socket if it also expects a message.
    pub(super) async fn photograph(
        self: Arc<Self>,
        user: String,
        app: Arc<App>,
        asked: PhotoRequest,
        told: Option<mpsc::Sender<ToApp>>,
        frame: String,
    ) {
        let complain = |code, why: String| {
            self.installed.complain(Some(&user), &app.package, "photo_request", code, why, frame.clone())
        };
        let taken = self.take(&user, &asked).await;
        if let Err(error) = &taken {
            complain(ErrorCode::ExecutionError, error.to_string());
        }
        let third = told.is_some();
        if let Some(told) = told {
            let url = taken.as_ref().map_err(PortError::to_string).and_then(Photo::address);
            if let (Ok(_), Err(why)) = (&taken, &url) {
                complain(ErrorCode::ExecutionError, why.clone());
            }
            let outcome = url.as_ref().map(String::as_str).map_err(String::as_str);
            let message = wire::photo_response(&asked.request, outcome, asked.keep, clock::wall_ms());
            self.pending_outcomes.ended(&user, &app.package, &told, None, message).await;
        }
        let to = match destination(&app, &asked) {
            Ok(to) => to,
            Err(why) => return complain(ErrorCode::PermissionDenied, why),
        };
        let mut form = multipart::Form::new().text("requestId", asked.request.clone());
        match taken {
            Ok(Photo { mime, bytes }) => {
                let name = if mime == "image/png" { "photo.png" } else { "photo.jpg" };
                let length = bytes.len() as u64;
                let part = multipart::Part::stream_with_length(bytes, length).file_name(name);
                let Ok(part) = part.mime_str(&mime) else {
                    return complain(ErrorCode::ExecutionError, format!("a photo of the type {mime} cannot be sent"));
                };
                form = form.text("type", "photo_upload").text("success", "true").part("photo", part);
            }
            Err(error) => {
                // The SDK recognises a failure by the type alone: sent as text, `success` is never false to it.
                form = form
                    .text("type", "photo_error")
                    .text("success", "false")
                    .text("errorCode", "PHOTO_FAILED")
                    .text("errorMessage", error.to_string());
            }
        }
        let mut request = self.installed.client().http().post(to).multipart(form);
        if let Some(token) = &asked.token {
            request = request.bearer_auth(token);
        }
        match request.timeout(Duration::from_millis(DELIVER_MS_MAX)).send().await {
            Ok(answer) if answer.status().is_success() => {}
            // If the app expects a message, its server does not know the request.
            Ok(answer) if third && answer.status() == StatusCode::NOT_FOUND => {}
            Ok(answer) => {
                let why = format!("the app's server answered the photo with status {}", answer.status().as_u16());
                complain(ErrorCode::HttpError, why);
            }
            Err(error) => complain(
                ErrorCode::AppNotAvailable,
                format!("the photo did not reach the app's server: {}", error.without_url()),
            ),
        }
    }

    async fn take(&self, user: &str, asked: &PhotoRequest) -> Result<Photo, PortError> {
        let seeing = self.glasses_of(user).into_iter().find(|(_, _, glasses)| glasses.camera);
        let (device, ..) =
            seeing.ok_or_else(|| PortError::Unavailable("no glasses with a camera are connected".to_owned()))?;
        let limit = Duration::from_millis(TAKE_MS_MAX);
        let glasses = ConnectedDevices(self.roster.clone());
        let arguments = if asked.keep { json!({}) } else { json!({"keep": false}) };
        let call = ToolCall { id: String::new(), name: CAMERA.to_owned(), arguments };
        let result = glasses.call(&device, None, call, limit, CancellationToken::new()).await;
        if let Some(error) = result.error {
            return Err(PortError::Failed(error.message));
        }
        // The photos of a call are part of its result; one of the button, or of another call, is not.
        Photo::of(result.attachments).ok_or_else(|| PortError::Failed("the glasses sent no picture".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_photo_that_is_too_large_for_a_message_has_no_address() {
        let photo = |bytes: usize| Photo { mime: "image/jpeg".into(), bytes: vec![0; bytes].into() };
        assert_eq!(photo(3).address().as_deref(), Ok("data:image/jpeg;base64,AAAA"));
        assert!(photo(ADDRESS_BYTES_MAX).address().is_ok());
        let why = photo(ADDRESS_BYTES_MAX + 1).address().unwrap_err();
        assert_eq!(why, "the photo has 1500001 bytes; at most 1500000 fit into a message");
    }
}
