//! The view that is seen on looking up: the dashboard app's own drawing, or the time and one app's
//! line; every look turns to the next line.

use alloc::{format, string::String};

use super::{apps::Apps, drawing::Drawing};
use crate::vocab::{Content, Timestamp};

const MINUTES_PER_DAY: i64 = 24 * 60;

/// The view.
#[derive(Debug, Default)]
pub(super) struct Dashboard {
    /// The dashboard app's own, with its package.
    drawn: Option<(String, Drawing)>,
    /// The app whose line is seen.
    turned_to: Option<String>,
    /// The time of day as it is shown; it moves on only when the wearer looks.
    clock: Option<i64>,
}

impl Dashboard {
    pub(super) fn draw(&mut self, now_us: u64, package: String, mut drawing: Drawing) {
        drawing.show(now_us);
        self.drawn = Some((package, drawing));
    }

    /// Takes away what an app drew.
    pub(super) fn clear(&mut self, package: &str) {
        self.drawn.take_if(|(owner, _)| owner == package);
    }

    /// The wearer looks up.
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

    /// What stands on the view, and until when.
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

/// Minutes since midnight, where the wearer is.
fn minutes_of_day(now: Timestamp) -> i64 {
    (now.wall_ms / 60_000).saturating_add(i64::from(now.offset_s) / 60).rem_euclid(MINUTES_PER_DAY)
}
