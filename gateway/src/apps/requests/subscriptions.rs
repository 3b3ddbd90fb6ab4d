//! An app's list of streams: judged as it comes, and again when glasses come or go.

use audio::asr::Spoken;
use serde_json::Value;

use crate::{
    apps::{
        host::Host,
        message::AppsMessage,
        offer::Offer,
        socket::Session,
        streams::{self, Changed},
        wire,
    },
    clock,
};

/// How long a subscription list must be unchanged before it is logged for the app's author, in milliseconds: each
/// registered handler sends a new list.
const SETTLE_MS: u64 = 500;
/// How long after connecting an app's empty subscription list is ignored as part of its start, in milliseconds.
const EMPTY_IGNORED_MS: u64 = 8_000;

impl Session {
    /// Replaces the subscriptions; returns the messages to send.
    pub(super) async fn subscribe(&mut self, names: Vec<String>) -> Vec<Value> {
        let since_us = clock::mono_us().saturating_sub(self.joined_us);
        if names.is_empty() && since_us < EMPTY_IGNORED_MS * 1_000 {
            return Vec::new();
        }
        let offer = offer(&self.host, &self.user, &self.spoken);
        let changed = self.subscriptions.replace(names, &self.app.permissions, offer);
        self.subscribed(changed).await
    }

    /// Judges the list by what is spoken to the user's glasses now; returns the messages to send.
    pub(in crate::apps) async fn judge_again(&mut self, spoken: Vec<Spoken>) -> Vec<Value> {
        self.spoken = spoken;
        let before = self.subscriptions.told();
        let offer = offer(&self.host, &self.user, &self.spoken);
        let changed = self.subscriptions.judge_again(&self.app.permissions, offer);
        if self.subscriptions.told() == before {
            return Vec::new();
        }
        self.subscribed(changed).await
    }

    /// Listens to what is granted now; returns what the app is told.
    async fn subscribed(&mut self, changed: Changed) -> Vec<Value> {
        self.settled_us = Some(clock::mono_us() + SETTLE_MS * 1_000);
        let feed = self.host.feeds.of(&self.user);
        let (any, wants) = (self.subscriptions.any(), self.subscriptions.wants());
        let (package, listens) = (self.app.package.clone(), wants.words || wants.audio);
        if !any {
            self.listener = None;
        } else if self.listener.as_ref().is_none_or(|listener| *listener.wants() != wants) {
            self.listener = Some(feed.listen(wants));
        }
        self.tell(AppsMessage::Listens { package, connection: self.connection, listens }).await;
        let now = clock::wall_ms();
        let mut told = Vec::new();
        if !changed.denied.is_empty() {
            told.push(wire::permission_error(&changed.denied, now));
        }
        for (stream, why) in changed.unserved {
            told.push(wire::error("STREAM_NOT_AVAILABLE", &format!("{stream}: {why}"), now));
        }
        // A constant location is sent on subscription.
        if let Some(location) = self.host.location {
            let place = |stream: &String| wire::data_stream(&self.name, stream, streams::place(location), now);
            told.extend(changed.located.iter().map(place));
        }
        told
    }
}

/// What this user's apps can be provided with.
fn offer<'a>(host: &Host, user: &str, spoken: &'a [Spoken]) -> Offer<'a> {
    Offer { understood: host.languages.of(user), spoken, located: host.location.is_some() }
}
