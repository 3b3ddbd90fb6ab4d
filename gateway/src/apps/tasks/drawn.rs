//! What stands drawn of a user's apps, for glasses that connect later.

use std::collections::BTreeMap;

use gateway_core::vocab::{AppEvent, AppKind, DrawingDuration, View};

/// The drawings that stay until something else is drawn.
#[derive(Default)]
pub(super) struct Drawn {
    /// Each app's line of the dashboard.
    lines: BTreeMap<String, AppEvent>,
    /// What stands on the main view: the drawing of the app in front, and behind it the last one of another app.
    main: Vec<Standing>,
}

/// A drawing on the main view.
struct Standing {
    package: String,
    event: AppEvent,
    /// It is shown again after another app has drawn.
    returns: bool,
}

impl Drawn {
    /// Keeps a drawing of an app of this kind that stays until the next one, and forgets what it supersedes. One with a
    /// duration is not kept: it would be shown for too long.
    pub(super) fn keep(&mut self, kind: AppKind, event: &AppEvent) {
        match event {
            AppEvent::DashboardLine { package, .. } => drop(self.lines.insert(package.clone(), event.clone())),
            AppEvent::Draw { package, view: View::Main, content, duration, .. } => {
                let draws = content.is_some();
                self.main.retain(|other| other.package != *package && (other.returns || !draws));
                if draws && !matches!(duration, DrawingDuration::Ms(_)) {
                    let returns = kind == AppKind::Foreground && *duration == DrawingDuration::UntilReplaced;
                    self.main.push(Standing { package: package.clone(), event: event.clone(), returns });
                }
            }
            _ => {}
        }
    }

    /// An app has stopped.
    pub(super) fn stop(&mut self, package: &str) {
        self.lines.remove(package);
        self.main.retain(|drawing| drawing.package != package);
    }

    /// An app's line of the dashboard.
    pub(super) fn line(&self, package: &str) -> Option<&AppEvent> {
        self.lines.get(package)
    }

    /// What glasses are to show on the main view, of these apps.
    pub(super) fn main(&self, of: impl Fn(&str) -> bool) -> Option<&AppEvent> {
        self.main.iter().find(|drawing| of(&drawing.package)).map(|drawing| &drawing.event)
    }
}
