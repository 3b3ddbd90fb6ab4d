//! Converts the core's drawings to their wire form.

use device_protocol::{DisplayAction, Down, Layout, View, down as message, limits};
use gateway_core::vocab::{self, Content, DisplayCommand, countdown};

use super::session::Session;
use crate::transport::LinkError;

// What the core accepts must fit the wire.
const _: () = assert!(gateway_core::limits::BITMAP_BYTES_MAX <= limits::BITMAP_BYTES_MAX);

impl Session {
    pub(super) fn display(&mut self, command: &DisplayCommand) -> Result<(), LinkError> {
        let left;
        let display = match command {
            DisplayCommand::Show { view, priority, revision, duration_ms, content } => {
                let (layout, first, second) = match content {
                    Content::Text { text } => (Layout::TextWall, text.as_str(), ""),
                    Content::Card { title, text } => (Layout::ReferenceCard, title.as_str(), text.as_str()),
                    Content::Countdown { title, left_ms } => {
                        left = countdown(u64::from(left_ms.div_ceil(1_000)));
                        (Layout::ReferenceCard, title.as_str(), left.as_str())
                    }
                    Content::Double { top, bottom } => (Layout::DoubleText, top.as_str(), bottom.as_str()),
                    Content::Dashboard { left, right } => (Layout::Dashboard, left.as_str(), right.as_str()),
                    Content::Bitmap { text, .. } => (Layout::Bitmap, text.as_str(), ""),
                };
                let bitmap = match content {
                    Content::Bitmap { bitmap, .. } => Some(message::Bitmap {
                        width_px: bitmap.width_px(),
                        height_px: bitmap.height_px(),
                        pixels: bitmap.pixels(),
                    }),
                    _ => None,
                };
                message::Display {
                    action: DisplayAction::Replace,
                    view: view_of(*view),
                    priority: *priority as u8,
                    duration_ms: duration_ms.unwrap_or(0),
                    revision: *revision,
                    content: message::Content { layout, first, second, permille: 0 },
                    bitmap,
                    countdown_ms: match content {
                        Content::Countdown { left_ms, .. } => *left_ms,
                        _ => 0,
                    },
                }
            }
            DisplayCommand::Clear { view, revision } => message::Display {
                action: DisplayAction::Clear,
                view: view_of(*view),
                priority: 0,
                duration_ms: 0,
                revision: *revision,
                content: message::Content::EMPTY,
                bitmap: None,
                countdown_ms: 0,
            },
        };
        self.link.send(self.turns.current(), Down::Display(self.link.frame_limits.fit(display)))
    }
}

fn view_of(view: vocab::View) -> View {
    match view {
        vocab::View::Main => View::Main,
        vocab::View::Dashboard => View::Dashboard,
    }
}
