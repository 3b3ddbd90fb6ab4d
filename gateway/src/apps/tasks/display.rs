//! What glasses show of their user's apps, and what apps are told about the glasses.

use std::{collections::BTreeSet, sync::PoisonError};

use gateway_core::{
    input::{AppInput, Input},
    vocab::{AppCard, AppConnection, AppEvent, AppState},
};
use serde_json::{Value, json};

use super::task::Task;
use crate::{
    apps::{
        glasses::{self, Glasses, state_update},
        message::ToApp,
        wire,
    },
    clock,
    mailbox::DeviceMessage,
};

impl Task {
    /// Sends an event to all of the user's glasses.
    pub(super) fn show(&self, event: &AppEvent) {
        for (_, present) in self.common().roster.all().into_iter().filter(|(_, present)| present.user == self.user) {
            drop(present.mailbox.try_send(DeviceMessage::from(Input::App(event.clone()))));
        }
    }

    /// Draws for a running app; from any other connection it is dropped.
    pub(super) fn draw(&mut self, package: &str, connection: AppConnection, event: &AppEvent) {
        let kind = self.lives().all().find(|(card, _)| card.package == package).map(|(card, _)| card.kind);
        if let Some(kind) = kind.filter(|_| self.lives().connection(package) == Some(connection)) {
            self.drawn.keep(kind, event);
            self.show(event);
        }
    }

    /// Whether a connected app receives transcripts from now on. Only a running app can begin to. It ends in any state:
    /// an app that becomes dormant no longer runs when its socket leaves.
    pub(super) fn listens(&mut self, package: String, connection: AppConnection, listens: bool) {
        let changed = if listens {
            self.lives().connection(&package) == Some(connection)
                && self.listening.insert(package.clone(), connection).is_none()
        } else {
            self.listening.get(&package) == Some(&connection) && self.listening.remove(&package).is_some()
        };
        if changed {
            self.show(&AppEvent::Listens { package, listens });
        }
    }

    /// Glasses of the user have connected.
    pub(super) fn glasses_came(&mut self, device: String, glasses: Glasses) {
        self.describe(&glasses);
        self.glasses.insert(device, glasses);
        self.tell_spoken();
        self.push(AppInput::Present(true));
    }

    /// Glasses have disconnected. Of others that are still there the apps are told.
    pub(super) fn glasses_went(&mut self, device: &str) {
        self.glasses.remove(device);
        self.tell_spoken();
        self.stale = true;
        if self.glasses.is_empty() {
            self.push(AppInput::Present(false));
            self.tell_all(&[state_update(json!({"connected": false}), false, wire::time(clock::wall_ms()))]);
        }
        let others = self.common().roster.glasses_of(&self.user);
        let remaining = others.iter().find_map(|(device, present)| Some((self.glasses.get(device)?, present)));
        if let Some((glasses, present)) = remaining {
            self.describe(glasses);
            let status = present.status.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(percent) = status.battery_percent {
                self.battery(percent, status.charging.unwrap_or_default());
            }
        }
    }

    /// Has the apps' streams judged by what is spoken to the glasses that the user has now.
    pub(super) fn tell_spoken(&self) {
        for socket in self.sockets.values() {
            drop(socket.try_send(ToApp::Spoken(glasses::spoken(self.glasses.values()))));
        }
    }

    /// Tells the apps which glasses the user has now.
    fn describe(&self, glasses: &Glasses) {
        let told = wire::time(clock::wall_ms());
        let state = json!({"connected": true, "modelName": glasses.model});
        let capabilities = json!({
            "type": "capabilities_update",
            "capabilities": glasses.capabilities(),
            "modelName": glasses.model,
            "timestamp": told,
        });
        self.tell_all(&[capabilities, state_update(state, false, told)]);
    }

    /// The battery level has changed.
    pub(super) fn battery(&self, percent: u8, charging: bool) {
        let state = json!({"batteryLevel": percent, "charging": charging});
        self.tell_all(&[state_update(state, false, wire::time(clock::wall_ms()))]);
    }

    fn tell_all(&self, messages: &[Value]) {
        for socket in self.sockets.values() {
            for message in messages {
                drop(socket.try_send(ToApp::Json(message.clone())));
            }
        }
    }

    /// Sends newly connected glasses the state of the running apps.
    pub(super) fn catch_up(&self, device: &str) {
        let Some(present) = self.common().roster.get(device) else { return };
        for event in self.news() {
            drop(present.mailbox.try_send(DeviceMessage::from(Input::App(event))));
        }
    }

    /// The apps, with what belongs to each, and then one drawing: with several, the last of them would be shown, and not
    /// that of the app in front.
    fn news(&self) -> Vec<AppEvent> {
        let (mut events, mut shown) = (Vec::new(), BTreeSet::new());
        for (card, state) in self.lives().all() {
            let AppCard { package, name, kind, .. } = card.clone();
            match state {
                AppState::Running | AppState::Grace => {
                    events.push(AppEvent::Resumed { package: package.clone(), name, kind });
                }
                AppState::Connecting | AppState::Resurrecting => {
                    events.push(AppEvent::Starting { package: package.clone(), name, kind });
                }
                AppState::Stopping | AppState::Dormant | AppState::Away => continue,
            }
            events.extend(self.drawn.line(&package).cloned());
            if self.listening.contains_key(&package) {
                events.push(AppEvent::Listens { package: package.clone(), listens: true });
            }
            shown.insert(package);
        }
        events.extend(self.drawn.main(|package| shown.contains(package)).cloned());
        events
    }
}
