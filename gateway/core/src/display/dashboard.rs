//! The view that is shown when the wearer looks up: the dashboard app's own drawing, or the time and the line of one
//! app. Each look shows the next line.

use alloc::{format, string::String};

use super::{apps::Apps, drawing::Drawing};
use crate::vocab::{Content, Timestamp};

const MINUTES_PER_DAY: i64 = 24 * 60;

#[derive(Debug, Default)]
pub(super) struct Dashboard {
    /// The dashboard app's own drawing, with its package.
    drawn: Option<(String, Drawing)>,
    /// The app whose line is shown.
    turned_to: Option<String>,
    /// The time of day as shown, in minutes; updated only when the wearer looks up.
    clock: Option<i64>,
}

impl Dashboard {
    pub(super) fn draw(&mut self, now_us: u64, package: String, mut drawing: Drawing) {
        drawing.show(now_us);
        self.drawn = Some((package, drawing));
    }

    /// Removes the drawing of an app.
    pub(super) fn clear(&mut self, package: &str) {
        self.drawn.take_if(|(owner, _)| owner == package);
    }

    /// The wearer looks up: the next line is shown.
    pub(super) fn handle_look(&mut self, apps: &Apps) {
        self.clock = None;
        let after = |package: &str| apps.lines().skip_while(|(owner, _)| *owner != package).nth(1);
        let next = self.turned_to.as_deref().and_then(after).or_else(|| apps.lines().next());
        self.turned_to = next.map(|(package, _)| String::from(package));
    }

    pub(super) fn handle_time(&mut self, now_us: u64) {
        self.drawn.take_if(|(_, drawing)| drawing.has_ended(now_us));
    }

    pub(super) fn poll_timeout(&self) -> Option<u64> {
        self.drawn.as_ref().and_then(|(_, drawing)| drawing.ends_us())
    }

    /// The content of the view, and until when it is shown.
    pub(super) fn standing(&mut self, now: Timestamp, apps: &Apps) -> Option<(Content, Option<u64>)> {
        if let Some((_, drawing)) = &self.drawn {
            return Some((drawing.content.clone(), drawing.ends_us()));
        }
        let turned_to = self.turned_to.as_deref();
        let (package, line) =
            apps.lines().find(|(package, _)| Some(*package) == turned_to).or_else(|| apps.lines().next())?;
        let minutes = *self.clock.get_or_insert_with(|| minutes_of_day(now));
        let content =
            Content::Dashboard { left: format!("{:02}:{:02}", minutes / 60, minutes % 60), right: String::from(line) };
        self.turned_to = Some(String::from(package));
        Some((content, None))
    }
}

/// Minutes since local midnight.
fn minutes_of_day(now: Timestamp) -> i64 {
    (now.wall_ms / 60_000).saturating_add(i64::from(now.offset_s) / 60).rem_euclid(MINUTES_PER_DAY)
}
