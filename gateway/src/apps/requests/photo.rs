//! Photos.

use serde_json::Value;

use super::{BUSY, REQUEST_BYTES_MAX};
use crate::{
    apps::{
        photo::{PhotoRequest, destination},
        refusals,
        socket::{SdkVersion, Session},
        wire,
    },
    clock,
    runtime::spawn,
};

impl Session {
    /// Takes a photo with the glasses, in a separate task.
    pub(super) fn photograph(&self, asked: PhotoRequest, frame: &str) -> Vec<Value> {
        let now = clock::wall_ms();
        if !self.may("CAMERA") {
            let message = "photos need the permission CAMERA, which the app's manifest does not ask for";
            return vec![wire::error("PERMISSION_DENIED", message, now)];
        }
        if asked.request.len() > REQUEST_BYTES_MAX {
            return vec![wire::error("MALFORMED_MESSAGE", "the request's number is too long", now)];
        }
        if let Err(why) = destination(&self.app, &asked) {
            return vec![wire::error("PERMISSION_DENIED", &why, now)];
        }
        let Ok(room) = self.requests.clone().try_acquire_owned() else {
            return vec![wire::error("INTERNAL_ERROR", BUSY, now)];
        };
        // 3.x expects a message, 2.x only the upload.
        let told = (self.sdk == SdkVersion::V3).then(|| self.out.clone());
        let frame = refusals::shown(frame);
        let taking = self.host.clone().photograph(self.user.clone(), self.app.clone(), asked, told, frame);
        spawn("app-photo", async move {
            taking.await;
            drop(room);
        });
        Vec::new()
    }
}
