//! One task per device: passes frames to the core as facts, and carries out its outputs.

mod calls;
mod chunks;
mod down;
mod drawing;
mod firmware;
pub(crate) mod formats;
mod incoming;
mod known;
mod messages;
mod open;
mod outgoing;
mod own_tools;
mod photos;
pub(crate) mod prepare;
mod presence;
mod progress;
mod quality;
pub(crate) mod quiet;
pub(crate) mod requests;
pub(crate) mod restart;
pub(crate) mod resume;
mod room;
mod running;
pub(crate) mod services;
mod session;
pub(crate) mod settings;
mod sound;
mod tap;
mod translations;
mod turns;
mod up;
mod update;
mod welcome;
mod window;

use std::sync::Arc;

use device_protocol::{Down, GoodbyeReason, RejectCode, down as message, limits};

use crate::{
    clock,
    identity::{self, Admitted, retry_ms},
    text::crop,
    transport::{Link, places::Place},
};

use services::{Admission, Services};
use session::Session;

/// Admits a connection and runs its session to the end.
pub(crate) async fn serve(services: &Arc<Services>, mut link: Link, place: &Place) {
    // Stopping the gateway waits for this token.
    let _open = services.admission.open.token();
    let Admission { key, pairings, .. } = &services.admission;
    let door = identity::Door { key, pairings, users_max: services.settings.limits.users_max, place: Some(place) };
    let admitted = tokio::select! {
        admitted = identity::admit(&mut link, &door, &services.store) => admitted,
        () = services.admission.stop.cancelled() => Err(identity::turn_away(
            &mut link,
            RejectCode::ShuttingDown,
            "the gateway is stopping",
        )),
    };
    match admitted {
        Ok(admitted) => {
            place.admit();
            link.up.allow(services.settings.limits.traffic);
            return run(services.clone(), link, Some(place), admitted).await;
        }
        Err(refusal) if refusal.code == RejectCode::Unspecified => {
            tracing::debug!(peer = %link.peer, %refusal, "a connection ended before its session");
        }
        Err(refusal) => {
            if let Some(left_out) = services.admission.turned_away.line() {
                let (device, code) = (refusal.device.as_deref(), refusal.code);
                tracing::info!(peer = %link.peer, device, ?code, %refusal, left_out, "turned away");
            }
        }
    }
    link.close().await;
}

/// Runs an admitted device's session: the one that it takes up again, or a new one.
/// `place`: the connection's, if it counts.
pub(crate) async fn run(services: Arc<Services>, mut link: Link, place: Option<&Place>, admitted: Admitted) {
    let (device, peer, transport) = (admitted.id.clone(), link.peer, link.transport.label);
    if let (Some(mut session), Some(resume)) =
        (services.resumption.resumable.claim(&admitted).await, &admitted.hello.resume)
    {
        tracing::info!(device, session = session.number, transport, %peer, "session resumed");
        if let Err(error) = session.resume(&link, resume) {
            session.failed(&error);
        }
        return session.run(link, place).await;
    }
    let number = services.admission.next_session();
    match Session::open(services, &mut link, admitted, number).await {
        Ok(session) => {
            tracing::info!(device, session = number, transport, %peer, "session opened");
            session.run(link, place).await;
        }
        Err((code, text)) => {
            let message = crop(&text, limits::LABEL_BYTES_MAX);
            let reject = message::Reject { code, message, retry_after_ms: retry_ms(code) };
            drop(link.down.send_last(clock::mono_us(), Down::Reject(reject)));
            tracing::info!(device, %peer, ?code, text, "turned away");
            link.close().await;
        }
    }
}

fn say_goodbye(link: &Link, reason: GoodbyeReason, text: &str) {
    let retry_after_ms = if reason == GoodbyeReason::ShuttingDown { 2_000 } else { 0 };
    let goodbye = message::Goodbye { reason, message: crop(text, limits::LABEL_BYTES_MAX), retry_after_ms };
    drop(link.down.send_last(clock::mono_us(), Down::Goodbye(goodbye)));
}
