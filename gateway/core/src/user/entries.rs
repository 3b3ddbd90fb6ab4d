//! Processing of schedule entries: stored before they are confirmed, announced on one device after another until one of
//! them was heard.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use super::{
    User,
    schedule::{Ringing, State},
    wording,
};
use crate::{
    output::{Record, UserOutput},
    vocab::{Due, ScheduleKind},
};

impl User {
    /// Reports the running timers to all devices, if they have changed.
    pub(super) fn tell_timers(&mut self) {
        let running = self.schedule.running();
        if running == self.running {
            return;
        }
        for device in &self.devices {
            self.out.push_back(UserOutput::Timers { device: device.clone(), running: running.clone() });
        }
        self.running = running;
    }

    pub(super) fn schedule_add(&mut self, request: u64, due: Due, kind: ScheduleKind) {
        let id = self.next_id;
        let ticket = self.last_ticket.saturating_add(1);
        match self.schedule.add(self.now, id, due, kind, (Some(request), ticket)) {
            Ok(entry) => {
                self.next_id = self.next_id.saturating_add(1);
                self.persist(Record::Entry(entry));
            }
            Err(reason) => self.out.push_back(UserOutput::ScheduleFailed { request, reason: reason.to_string() }),
        }
    }

    /// An answer was not heard, and its glasses do not come back: it is told on the next device.
    pub(super) fn undelivered(&mut self, text: String) {
        let kind = ScheduleKind::Answer { text };
        let (due, ticket) = (Due::At { wall_ms: self.now.wall_ms }, self.last_ticket.saturating_add(1));
        // Where there are too many entries, the wearer hears more than enough.
        if let Ok(entry) = self.schedule.add(self.now, self.next_id, due, kind, (None, ticket)) {
            self.next_id = self.next_id.saturating_add(1);
            self.persist(Record::Entry(entry));
        }
    }

    pub(super) fn schedule_remove(&mut self, request: u64, id: u64) {
        let ticket = self.last_ticket.saturating_add(1);
        let ringing = match self.schedule.get(id).map(|item| &mut item.state) {
            Some(State::Armed) => None,
            Some(State::Ringing(ringing)) => Some(ringing.clone()),
            _ => {
                self.out.push_back(UserOutput::Unscheduled { request, entry: None });
                return;
            }
        };
        if let Some(item) = self.schedule.get(id) {
            item.state = State::Removing { request, ticket, ringing };
        }
        self.persist(Record::EntryRemoved { id });
    }

    pub(super) fn schedule_extend(&mut self, request: u64, id: u64, more_ms: u64) {
        let ticket = self.last_ticket.saturating_add(1);
        match self.schedule.extend(self.now, id, more_ms, (request, ticket)) {
            Some(entry) => drop(self.persist(Record::Entry(entry))),
            None => self.out.push_back(UserOutput::Unscheduled { request, entry: None }),
        }
    }

    /// The entry whose operation has this ticket.
    fn waiting(&mut self, ticket: u64) -> Option<u64> {
        self.schedule
            .items
            .iter()
            .find(|item| match item.state {
                State::Adding { ticket: own, .. } | State::Removing { ticket: own, .. } => own == ticket,
                State::Heard { ticket: own, .. } => own == Some(ticket),
                _ => false,
            })
            .map(|item| item.entry.id)
    }

    pub(super) fn persisted(&mut self, ticket: u64) {
        self.unkept.stored(ticket);
        if let Some(extension) = self.schedule.take_extension(ticket) {
            // It may have been removed since.
            let extended = self.schedule.get(extension.id).map(|item| item.entry.clone());
            self.withdraw(extension.offered(), extension.id);
            self.out.push_back(match extended {
                Some(entry) => UserOutput::Scheduled { request: extension.request, entry },
                None => UserOutput::Unscheduled { request: extension.request, entry: None },
            });
            return;
        }
        let Some(id) = self.waiting(ticket) else {
            return;
        };
        let Some(item) = self.schedule.get(id) else {
            return;
        };
        match &item.state {
            State::Adding { request, .. } => {
                let request = *request;
                item.state = State::Armed;
                let entry = item.entry.clone();
                self.out.extend(request.map(|request| UserOutput::Scheduled { request, entry }));
            }
            State::Removing { request, ringing, .. } => {
                let (request, offered) = (*request, ringing.as_ref().and_then(Ringing::offered_to).map(String::from));
                self.withdraw(offered.as_deref(), id);
                let entry = self.schedule.remove(id);
                self.out.push_back(UserOutput::Unscheduled { request, entry });
            }
            _ => {
                self.schedule.remove(id);
            }
        }
    }

    pub(super) fn persist_failed(&mut self, ticket: u64, reason: String) {
        let now = self.now;
        if self.unkept.failed(now.mono_us, ticket)
            && let Some(device) = self.devices.first().cloned()
        {
            self.unkept.told(now.mono_us);
            self.out.push_back(UserOutput::MessagesNotKept { device });
        }
        if let Some(extension) = self.schedule.take_extension(ticket) {
            let request = extension.request;
            self.schedule.take_back(now, extension);
            self.out.push_back(UserOutput::ScheduleFailed { request, reason });
            return;
        }
        let Some(id) = self.waiting(ticket) else {
            return;
        };
        let Some(item) = self.schedule.get(id) else {
            return;
        };
        let request = match &mut item.state {
            State::Adding { request, .. } => {
                let request = *request;
                self.schedule.remove(id);
                request
            }
            State::Removing { request, ringing, .. } => {
                let request = *request;
                item.state = match ringing.take() {
                    Some(ringing) => State::Ringing(ringing),
                    None => State::Armed,
                };
                Some(request)
            }
            _ => {
                item.removal_failed(now);
                return;
            }
        };
        self.out.extend(request.map(|request| UserOutput::ScheduleFailed { request, reason }));
    }

    /// Takes the announcement back from the device that was given it: it may wait there until somebody has spoken.
    fn withdraw(&mut self, device: Option<&str>, id: u64) {
        let withdrawn = device.map(|device| UserOutput::Withdraw { device: device.to_string(), id });
        self.out.extend(withdrawn);
    }

    pub(super) fn announced(&mut self, device: &str, id: u64, heard: bool) {
        if heard {
            self.active(device);
        }
        let ticket = self.last_ticket.saturating_add(1);
        let Some(item) = self.schedule.get(id) else {
            return;
        };
        let State::Ringing(ringing) = &mut item.state else {
            return;
        };
        if heard {
            item.heard(ticket);
            self.persist(Record::EntryRemoved { id });
            return;
        }
        if !ringing.tried.iter().any(|tried| tried == device) {
            ringing.tried.push(device.to_string());
        }
        if ringing.offered.as_ref().is_some_and(|(to, _)| to == device) {
            ringing.offered = None;
        }
    }

    /// Offers every ringing entry to a device that has not failed to announce it yet.
    pub(super) fn offer(&mut self) {
        let now = self.now;
        let until_us = self.after(self.config.offer_ms_max);
        let again_us = self.after(self.config.offer_again_ms);
        for item in &mut self.schedule.items {
            let State::Ringing(ringing) = &mut item.state else {
                continue;
            };
            if let Some((device, believed_us)) = &ringing.offered {
                if *believed_us > now.mono_us {
                    continue;
                }
                ringing.tried.push(device.clone());
                ringing.offered = None;
            }
            if ringing.again_us.is_some_and(|at_us| at_us <= now.mono_us) {
                ringing.again_us = None;
                ringing.tried.clear();
            }
            let Some(device) = self.devices.iter().find(|device| !ringing.tried.contains(device)) else {
                if ringing.again_us.is_none() && !self.devices.is_empty() {
                    ringing.again_us = Some(again_us);
                }
                continue;
            };
            ringing.offered = Some((device.clone(), until_us));
            ringing.again_us = None;
            self.out.push_back(UserOutput::Announce {
                device: device.clone(),
                announcement: wording::announcement(&item.entry, ringing.late_ms(now)),
            });
        }
    }

    /// Removes answers that are too old to be told, and retries to remove heard entries that the store could not remove.
    pub(super) fn drop_heard(&mut self) {
        let now = self.now;
        let unwanted = self.schedule.items.iter().filter(|item| item.wants_removal(now) || item.is_stale(now));
        let waiting: Vec<u64> = unwanted.map(|item| item.entry.id).collect();
        for id in waiting {
            let ticket = self.persist(Record::EntryRemoved { id });
            if let Some(item) = self.schedule.get(id) {
                item.heard(ticket);
            }
        }
    }
}
