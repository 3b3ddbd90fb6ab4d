//! What stands drawn of an app, for glasses that connect later.

use gateway_core::vocab::{AppEvent, DrawingDuration, View};

/// An app's drawings that stay until it draws something else.
#[derive(Default)]
pub(super) struct Drawn {
    /// Its line of the dashboard.
    line: Option<AppEvent>,
    /// The main view.
    main: Option<AppEvent>,
}

impl Drawn {
    /// Keeps a drawing that stays until the next one. One with a duration is not kept: it would be shown for too long.
    pub(super) fn keep(&mut self, event: &AppEvent) {
        match event {
            AppEvent::DashboardLine { .. } => self.line = Some(event.clone()),
            AppEvent::Draw { view: View::Main, content, duration, .. } => {
                let stands = content.is_some() && !matches!(duration, DrawingDuration::Ms(_));
                self.main = stands.then(|| event.clone());
            }
            _ => {}
        }
    }

    /// What is drawn now.
    pub(super) fn events(&self) -> impl Iterator<Item = &AppEvent> {
        self.line.iter().chain(&self.main)
    }
}
