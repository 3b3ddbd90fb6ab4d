//! Live updates: parts of pages, sent as server-sent events when they have changed.
//!
//! Only pages that are looked at cost anything, and each sends its part at most every two seconds. A stream ends with its
//! session, and does not keep it from being idle.

use std::{convert::Infallible, time::Duration};

use axum::{
    Extension, Router,
    body::Body,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use bytes::Bytes;
use futures_util::stream;
use maud::Markup;
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Interval, MissedTickBehavior, interval},
};

use super::{Pages, approvals, devices, guard::Visit, invitation, logs, mcp, overview, sessions, turns};
use crate::{
    apps::feed::{Event, Listener, Wants},
    clock,
    http::reply::Text,
};

/// Folder of the streams.
pub(super) const FOLDER: &str = "/console/live/";
/// How often a part is looked at.
const EVERY: Duration = Duration::from_secs(2);
/// Looks without a change after which a line is sent all the same, so that a lost connection is noticed.
const QUIET_MAX: u32 = 8;

pub(super) fn routes() -> Router<Pages> {
    Router::new().route("/console/live/{part}", get(follow)).route("/console/live/words/{device}", get(words))
}

/// A part of a page.
#[derive(Clone, Copy)]
enum Part {
    Overview,
    Sessions,
    Devices,
    Invitation,
    Approvals,
    Turns,
    Logs,
    Mcp,
}

impl Part {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "overview" => Self::Overview,
            "sessions" => Self::Sessions,
            "devices" => Self::Devices,
            "invitation" => Self::Invitation,
            "approvals" => Self::Approvals,
            "turns" => Self::Turns,
            "logs" => Self::Logs,
            "mcp" => Self::Mcp,
            _ => return None,
        })
    }

    async fn render(self, pages: &Pages, visit: &Visit) -> Markup {
        match self {
            Self::Overview => overview::part(pages).await,
            Self::Sessions => sessions::part(pages).await,
            Self::Devices => devices::part(pages, visit).await,
            Self::Invitation => invitation::part(pages, visit),
            Self::Approvals => approvals::part(pages, visit).await,
            Self::Turns => turns::part(pages).await,
            Self::Logs => logs::part(pages, visit).await,
            Self::Mcp => mcp::part(pages, visit).await,
        }
    }
}

/// A stream under way.
struct Follower {
    pages: Pages,
    visit: Visit,
    part: Part,
    ticks: Interval,
    last: String,
    quiet: u32,
    _place: OwnedSemaphorePermit,
}

impl Follower {
    /// The next bytes; `None`: the session is over, or the gateway stops.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        loop {
            tokio::select! {
                _ = self.ticks.tick() => {}
                () = self.pages.admin.services.admission.stop.cancelled() => return None,
            }
            if !self.pages.operators().goes_on(clock::mono_us(), &self.visit.visitor) {
                return None;
            }
            let part = self.part.render(&self.pages, &self.visit).await.into_string();
            if part != self.last {
                self.quiet = 0;
                let event = event(&part);
                self.last = part;
                return Some((Ok(event), self));
            }
            self.quiet += 1;
            if self.quiet >= QUIET_MAX {
                self.quiet = 0;
                return Some((Ok(Bytes::from_static(b":\n\n")), self));
            }
        }
    }
}

/// An event with these lines.
fn event(text: &str) -> Bytes {
    let mut event = String::with_capacity(text.len() + 16);
    for line in text.split(['\n', '\r']) {
        event.push_str("data: ");
        event.push_str(line);
        event.push('\n');
    }
    event.push('\n');
    event.into()
}

fn stream_of(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

const CROWDED: Text = (StatusCode::SERVICE_UNAVAILABLE, "too many pages are updated already\n");

async fn follow(State(pages): State<Pages>, Extension(visit): Extension<Visit>, Path(part): Path<String>) -> Response {
    let Some(part) = Part::named(&part) else { return super::layout::missing() };
    let Ok(place) = pages.streams.clone().try_acquire_owned() else { return CROWDED.into_response() };
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let follower = Follower { pages, visit, part, ticks, last: String::new(), quiet: 0, _place: place };
    stream_of(Body::from_stream(stream::unfold(follower, Follower::next)))
}

/// Words of a user while they are recognised.
struct Captions {
    pages: Pages,
    visit: Visit,
    listener: Listener,
    ticks: Interval,
    _place: OwnedSemaphorePermit,
}

impl Captions {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        loop {
            let event = tokio::select! {
                event = self.listener.next() => Some(event),
                _ = self.ticks.tick() => None,
                () = self.pages.admin.services.admission.stop.cancelled() => return None,
            };
            if !self.pages.operators().goes_on(clock::mono_us(), &self.visit.visitor) {
                return None;
            }
            if let Some(Event::Transcript { utterance, text, last, .. }) = event {
                let words = serde_json::json!({"utterance": *utterance, "text": *text, "last": last}).to_string();
                return Some((Ok(self::event(&words)), self));
            }
        }
    }
}

/// The words of a device's user: those that are recognised anyway. For operators who ask for them; that is logged.
async fn words(State(pages): State<Pages>, Extension(visit): Extension<Visit>, Path(device): Path<String>) -> Response {
    if !visit.is_operator() {
        return super::operators_only();
    }
    let services = &pages.admin.services;
    let Some(present) = services.roster.get(&device) else {
        return (StatusCode::NOT_FOUND, "this device is not connected\n").into_response();
    };
    let Ok(place) = pages.streams.clone().try_acquire_owned() else { return CROWDED.into_response() };
    pages.note(&visit, "read words", Some(&present.user));
    let listener = services.apps.feeds.of(&present.user).listen(Wants::default());
    let captions = Captions { pages, visit, listener, ticks: interval(EVERY), _place: place };
    stream_of(Body::from_stream(stream::unfold(captions, Captions::next)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_ends_where_it_ends_whatever_is_in_it() {
        assert_eq!(event("a\nb\r\n\nevent: x"), "data: a\ndata: b\ndata: \ndata: \ndata: event: x\n\n");
    }
}
