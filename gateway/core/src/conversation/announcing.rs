//! Announcements: due timers and reminders, and what mini-apps say.

use super::Conversation;
use crate::{
    input::{Announcement, AnnouncementId, AnnouncementVoice},
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
        if self.link.is_up() {
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
        while self.link.is_up() && !self.is_busy() {
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
                AnnouncementVoice::Words(say) => {
                    let ended = self.reply.push_sentence(&mut self.cx, 0, &say);
                    self.ended(ended);
                    let ended = self.reply.finish(&mut self.cx);
                    self.ended(ended);
                }
            }
        }
    }
}
