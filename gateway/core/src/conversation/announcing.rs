//! Announcements: due timers and reminders, what mini-apps say, and what is told once nobody has the floor.

use alloc::string::String;

use super::Conversation;
use crate::{
    input::{Announcement, AnnouncementId, AnnouncementVoice},
    limits::SETTLING_TURNS_MAX,
    output::{Chime, Output},
    reply::Purpose,
    vocab::Priority,
};

impl Conversation {
    pub(super) fn announce(&mut self, announcement: Announcement) {
        let saying = self.cut_notice == Some(announcement.id)
            || self.reply.purpose() == Some(&Purpose::Notice { id: announcement.id });
        if saying {
            return;
        }
        // One that is not shown needs a speaker.
        let can_be_told = self.cx.speaker || (self.cx.display.is_some() && announcement.show.is_some());
        if self.link.is_up() && can_be_told {
            self.notices.handle_announce(&mut self.cx, announcement);
        } else {
            self.cx.push(Output::Announced { id: announcement.id, heard: false });
        }
    }

    /// Takes an announcement back, whether it waits or is being said.
    pub(super) fn withdraw(&mut self, id: AnnouncementId) {
        self.notices.withdraw(&mut self.cx, id);
        if self.reply.purpose() == Some(&(Purpose::Notice { id })) {
            let ended = self.reply.stop(&mut self.cx);
            self.ended(ended);
        }
    }

    /// Announces what waits, where nobody else has the floor.
    pub(super) fn announce_next(&mut self) {
        while self.link.is_up() && !self.is_busy() && !self.is_notice_being_read() {
            let now_us = self.cx.now_us();
            let free = !self.floor.is_hearing() && !self.floor.is_called(now_us);
            let Some(Announcement { id, voice, show }) = self.notices.take(&mut self.cx, free) else {
                return;
            };
            if show.is_some() {
                self.cx.chime(Chime::Notice);
            }
            self.reply.begin(&mut self.cx, Purpose::Notice { id }, None);
            match show {
                Some(show) => self.reply.show(&mut self.cx, show, Priority::Notice),
                None => self.reply.say_only(),
            }
            match voice {
                AnnouncementVoice::Recording { sound, ms } => {
                    let ended = self.reply.play(&mut self.cx, sound, ms);
                    self.ended(ended);
                }
                AnnouncementVoice::Words(say) => self.say_all(&say),
            }
        }
    }

    /// Whether a notice stands that can only be read: it counts as said at once, and the next one would replace it.
    fn is_notice_being_read(&self) -> bool {
        self.notice_only_read && self.cx.is_claimed(Priority::Notice)
    }

    /// Has something said once nobody has the floor. Of too many the oldest are left out.
    pub(super) fn tell_when_free(&mut self, text: String) {
        if self.afterwards.len() >= SETTLING_TURNS_MAX {
            self.afterwards.pop_front();
        }
        self.afterwards.push_back(text);
    }

    /// Says what the calls of an interrupted turn have done: before the next answer, or by itself.
    pub(super) fn tell_afterwards(&mut self) {
        let free = !self.floor.is_hearing() && !self.floor.is_called(self.cx.now_us());
        if !self.link.is_up() || !free || self.reply.is_speaking() || self.approvals.standing().is_some() {
            return;
        }
        if self.agent.is_thinking() {
            if let Some(text) = self.next_afterwards() {
                let ended = self.reply.push_aside(&mut self.cx, &text, true);
                self.ended(ended);
            }
        } else if !self.is_busy()
            && let Some(text) = self.next_afterwards()
        {
            self.aside(&text);
        }
    }
}
