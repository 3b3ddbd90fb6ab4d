//! What is on the display: the one place that decides it, for both views.
//!
//! Questions, notices, the assistant and captions each claim the main view as long as they need it; the one of highest
//! priority is shown. The apps' layer is below them. A machine of its own: it receives events and provides commands and
//! the time of its next change.

mod apps;
mod captions;
mod config;
mod dashboard;
mod drawing;
mod lines;
mod timers;

use alloc::{collections::VecDeque, string::String, vec::Vec};

pub use self::config::Config;
pub(crate) use self::lines::wrap;
use self::{
    apps::{Apps, Now},
    captions::Captions,
    dashboard::Dashboard,
    drawing::{Drawing, is_empty},
    timers::Timers,
};
use crate::{
    input::RunningTimer,
    limits::DASHBOARD_LINE_CHARS_MAX,
    vocab::{AppEvent, AppKind, Content, DeviceInfo, DisplayCommand, DisplaySize, Priority, Timestamp, View},
};

/// Everything that may claim the main view, apps aside, in ascending priority.
const CLAIMANTS: usize = 4;

/// Replacement for an image without a text.
const NO_WORDS: &str = "[picture]";

/// What is on the display: views by priority, each with its owner and its end.
#[derive(Debug, Default)]
pub(crate) struct Display {
    config: Config,
    present: bool,
    /// Whether it can draw images.
    bitmaps: bool,
    /// Whether it is connected.
    linked: bool,
    looks_up: bool,
    claims: [Option<Claim>; CLAIMANTS],
    captions: Captions,
    timers: Timers,
    apps: Apps,
    dashboard: Dashboard,
    main: Sent,
    upper: Sent,
    serial: u64,
    revision: u32,
    commands: VecDeque<DisplayCommand>,
}

/// A claim to the main view, from anything but an app.
#[derive(Debug)]
struct Claim {
    serial: u64,
    content: Content,
    since_us: u64,
    ends_us: Option<u64>,
    /// How long it is to stand, while the link is lost: its time begins once it is sent.
    waits_us: Option<u64>,
    /// How long it stands in all, for one that has to begin anew.
    lasts_us: Option<u64>,
    /// The pages behind it, each with its time.
    further: VecDeque<(Content, u64)>,
    /// Whether it is one of several pages, or was the first of them.
    is_page: bool,
}

impl Claim {
    /// The next page comes when this one has been shown for its time. One that is hidden waits, and has all of its time afterwards.
    fn turn(&mut self, now_us: u64, hidden: bool, serial: &mut u64) {
        if !self.is_page {
            return;
        }
        if hidden {
            self.ends_us = None;
            self.waits_us = self.lasts_us;
            return;
        }
        if let Some(waits_us) = self.waits_us.take() {
            self.ends_us = Some(now_us.saturating_add(waits_us));
        }
        if self.ends_us.is_some_and(|ends_us| ends_us <= now_us)
            && let Some((content, lasts_us)) = self.further.pop_front()
        {
            *serial += 1;
            self.serial = *serial;
            self.content = content;
            self.since_us = now_us;
            self.lasts_us = Some(lasts_us);
            self.ends_us = Some(now_us.saturating_add(lasts_us));
        }
    }
}

/// What was last sent to the glasses for a view.
#[derive(Debug, Default)]
struct Sent {
    standing: Option<Standing>,
}

/// The content of a view.
#[derive(Clone, Debug)]
struct Standing {
    /// The number of the drawing or claim on the main view; 0 on the dashboard, where contents are compared.
    serial: u64,
    priority: Priority,
    content: Content,
    /// Since when a countdown in it runs.
    since_us: u64,
    ends_us: Option<u64>,
}

impl Standing {
    /// Whether the glasses show the same already, with the same end.
    fn looks_as(&self, other: &Self) -> bool {
        let counts = matches!(self.content, Content::Countdown { .. });
        !counts && (self.priority, self.ends_us, &self.content) == (other.priority, other.ends_us, &other.content)
    }
}

impl Display {
    /// A display with these settings; `interval_ms`: minimum time between two drawings of a stream.
    pub(crate) fn new(mut config: Config, interval_ms: u32) -> Self {
        config.app_interval_ms = config.app_interval_ms.max(interval_ms);
        Self { config, ..Self::default() }
    }

    /// Glasses have connected. `fresh`: they show nothing yet.
    pub(crate) fn handle_connected(&mut self, now: Timestamp, device: &DeviceInfo, fresh: bool) {
        self.present = device.display.is_some();
        self.bitmaps = device.bitmaps;
        self.linked = true;
        if fresh {
            self.main = Sent::default();
            self.upper = Sent::default();
            self.claims = Default::default();
        }
        for claim in self.claims.iter_mut().flatten() {
            if let Some(lasts_us) = claim.waits_us.take() {
                claim.ends_us = Some(now.mono_us.saturating_add(lasts_us));
            }
        }
        self.settle(now);
    }

    /// The link is lost. The current content, and what is claimed until then, is sent when they reconnect.
    pub(crate) fn handle_lost(&mut self) {
        self.linked = false;
    }

    /// Claims the main view, in place of an earlier claim of the same priority. Returns whether the claim is visible.
    /// Apps use [`Self::handle_app`].
    pub(crate) fn handle_claim(
        &mut self,
        now: Timestamp,
        priority: Priority,
        content: Content,
        duration_ms: Option<u32>,
    ) -> bool {
        self.handle_paged_claim(now, priority, (content, duration_ms), Vec::new())
    }

    /// The same with further pages, each with its time in milliseconds.
    pub(crate) fn handle_paged_claim(
        &mut self,
        now: Timestamp,
        priority: Priority,
        (content, duration_ms): (Content, Option<u32>),
        further: Vec<(Content, u32)>,
    ) -> bool {
        let Some(index) = claimant(priority).filter(|_| self.present) else {
            return false;
        };
        self.serial += 1;
        let serial = self.serial;
        let lasts_us = duration_ms.map(|ms| u64::from(ms) * 1_000);
        let ends_us = lasts_us.filter(|_| self.linked).map(|lasts_us| now.mono_us.saturating_add(lasts_us));
        let waits_us = lasts_us.filter(|_| !self.linked);
        if let Some(claim) = self.claims.get_mut(index) {
            let further: VecDeque<_> =
                further.into_iter().map(|(content, ms)| (content, u64::from(ms) * 1_000)).collect();
            let (since_us, is_page) = (now.mono_us, !further.is_empty());
            *claim = Some(Claim { serial, content, since_us, ends_us, waits_us, lasts_us, further, is_page });
        }
        self.settle(now);
        self.main.standing.as_ref().is_some_and(|standing| standing.serial == serial)
    }

    /// Releases a claim.
    pub(crate) fn handle_release(&mut self, now: Timestamp, priority: Priority) {
        if let Some(claim) = claimant(priority).and_then(|index| self.claims.get_mut(index)) {
            *claim = None;
        }
        self.settle(now);
    }

    /// Whether a claim of this priority stands, visible or below another one.
    pub(crate) fn is_claimed(&self, priority: Priority) -> bool {
        claimant(priority).and_then(|index| self.claims.get(index)).is_some_and(Option::is_some)
    }

    /// Shows all words of an utterance so far, below those of earlier ones that still stand; none: it had none after all.
    pub(crate) fn handle_caption(&mut self, now: Timestamp, utterance: u32, text: &str, size: DisplaySize) {
        let claim = claimant(Priority::Caption).and_then(|index| self.claims.get(index)?.as_ref());
        if claim.is_none_or(|claim| claim.ends_us.is_some_and(|ends_us| ends_us <= now.mono_us)) {
            self.captions.clear();
        }
        if !self.captions.take(utterance, text) {
            return;
        }
        let text = self.captions.layout(size);
        if text.is_empty() {
            self.handle_release(now, Priority::Caption);
        } else {
            self.handle_claim(now, Priority::Caption, Content::Text { text }, Some(self.config.caption_ms));
        }
    }

    /// Sets the running timers, in any order.
    pub(crate) fn handle_timers(&mut self, now: Timestamp, running: Vec<RunningTimer>) {
        self.timers.set(if self.config.timers { running } else { Vec::new() });
        self.settle(now);
    }

    /// What the wearer sees on the main view, without the assistant's words and the wearer's own, which are in the
    /// conversation, and without timers.
    pub(crate) fn seen(&self) -> Option<&Content> {
        let standing = self.main.standing.as_ref()?;
        let words = matches!(standing.content, Content::Text { .. });
        let said = standing.priority == Priority::Caption || (words && standing.priority == Priority::Assistant);
        (!said && standing.priority != Priority::Timer).then_some(&standing.content)
    }

    /// Handles an event of an app.
    pub(crate) fn handle_app(&mut self, now: Timestamp, event: AppEvent) {
        let moment = self.moment(now);
        match event {
            AppEvent::Starting { package, name, kind } => {
                self.dashboard.clear(&package);
                self.apps.start(moment, package, &name, kind, true);
            }
            AppEvent::Resumed { package, name, kind } => {
                self.dashboard.clear(&package);
                self.apps.start(moment, package, &name, kind, false);
            }
            AppEvent::Running { .. } => {}
            AppEvent::Listens { package, listens } => self.apps.set_listens(&package, listens),
            AppEvent::Stopped { package } => {
                self.dashboard.clear(&package);
                self.apps.stop(moment, &package);
            }
            AppEvent::Draw { package, view, content, duration, force } => {
                self.serial += 1;
                let content = content.filter(|content| !is_empty(content));
                let drawing = content.map(|content| Drawing::new(self.serial, content, duration));
                let dashboard = view == View::Dashboard && self.apps.kind(&package) == Some(AppKind::Dashboard);
                match (drawing, dashboard) {
                    _ if !self.present => {}
                    (Some(drawing), true) => self.dashboard.draw(now.mono_us, package, drawing),
                    (None, true) => self.dashboard.clear(&package),
                    (Some(drawing), false) => self.apps.draw(moment, &package, drawing, force),
                    (None, false) => self.apps.clear(moment, &package),
                }
            }
            AppEvent::DashboardLine { package, text } => {
                let line = text.as_deref().and_then(|text| text.lines().next()).map(str::trim);
                let line = line.filter(|line| !line.is_empty());
                self.apps.set_line(&package, line.map(|line| line.chars().take(DASHBOARD_LINE_CHARS_MAX).collect()));
            }
        }
        self.settle(now);
    }

    /// Whether the foreground app receives transcripts.
    pub(crate) fn app_listens(&self) -> bool {
        self.apps.front_listens()
    }

    /// The wearer raises the head, which shows the dashboard's next line, or lowers it. A repetition has no effect.
    pub(crate) fn handle_look(&mut self, now: Timestamp, up: bool) {
        if up && !self.looks_up {
            self.dashboard.handle_look(&self.apps);
        }
        self.looks_up = up;
        self.settle(now);
    }

    pub(crate) fn handle_timeout(&mut self, now: Timestamp) {
        self.settle(now);
    }

    /// The next command for the glasses.
    pub(crate) fn poll_command(&mut self) -> Option<DisplayCommand> {
        self.commands.pop_front()
    }

    /// When something changes by itself, monotonic.
    pub(crate) fn poll_timeout(&self, now: Timestamp) -> Option<u64> {
        let claims = self.claims.iter().flatten().filter_map(|claim| claim.ends_us);
        let apps = self.apps.poll_timeout(self.moment(now)).into_iter();
        claims.chain(apps).chain(self.dashboard.poll_timeout()).chain(self.timers.poll_timeout(now.mono_us)).min()
    }

    fn moment(&self, now: Timestamp) -> Now {
        let on_top = self.present && self.linked && self.claims.iter().all(Option::is_none);
        Now { us: now.mono_us, config: self.config, on_top }
    }

    /// Drops what has expired and sends what is to be shown now.
    fn settle(&mut self, now: Timestamp) {
        let mut hidden = !self.linked;
        for claim in self.claims.iter_mut().rev() {
            claim.iter_mut().for_each(|claim| claim.turn(now.mono_us, hidden, &mut self.serial));
            claim.take_if(|claim| claim.ends_us.is_some_and(|ends_us| ends_us <= now.mono_us));
            hidden |= claim.is_some();
        }
        self.apps.handle_time(self.moment(now));
        self.dashboard.handle_time(now.mono_us);
        if !self.present || !self.linked {
            return;
        }
        self.settle_main(now);
        let standing = self.dashboard.standing(now, &self.apps).map(|(content, ends_us)| Standing {
            serial: 0,
            priority: Priority::App,
            content,
            since_us: now.mono_us,
            ends_us,
        });
        let shown = |standing: &Standing| (standing.content.clone(), standing.ends_us);
        if standing.as_ref().map(shown) != self.upper.standing.as_ref().map(shown) {
            self.tell(now.mono_us, View::Dashboard, standing);
        }
    }

    fn settle_main(&mut self, now: Timestamp) {
        // The covered drawing may be dropped for good, and another app's be the next.
        let mut standing = self.stands_on_main(now.mono_us);
        if let Some(before) = self.main.standing.as_ref().map(|standing| standing.serial)
            && standing.as_ref().map(|standing| standing.serial) != Some(before)
        {
            let by_app = standing.as_ref().is_some_and(|standing| standing.priority == Priority::App);
            self.apps.covered(self.moment(now), before, by_app && !self.apps.is_booting());
            standing = self.stands_on_main(now.mono_us);
        }
        if standing.as_ref().map(|standing| standing.serial) != self.main.standing.as_ref().map(|sent| sent.serial) {
            self.tell(now.mono_us, View::Main, standing);
        }
    }

    fn stands_on_main(&mut self, now_us: u64) -> Option<Standing> {
        for priority in [Priority::Approval, Priority::Notice, Priority::Assistant, Priority::Caption] {
            if let Some(Some(claim)) = claimant(priority).and_then(|index| self.claims.get(index)) {
                let Claim { serial, since_us, .. } = *claim;
                // The next page takes its place: it does not end by itself.
                let ends_us = claim.ends_us.filter(|_| claim.further.is_empty());
                return Some(Standing { serial, priority, content: claim.content.clone(), since_us, ends_us });
            }
        }
        if let Some((names, until_us)) = self.apps.boot() {
            let content = Content::Card { title: String::from("Starting"), text: names };
            return Some(Standing {
                serial: self.boot_serial(&content),
                priority: Priority::App,
                content,
                since_us: now_us,
                ends_us: Some(until_us),
            });
        }
        let Some(drawing) = self.apps.standing() else {
            return self.timers.standing(now_us, &mut self.serial);
        };
        drawing.show(now_us);
        Some(Standing {
            serial: drawing.serial,
            priority: Priority::App,
            content: drawing.content.clone(),
            since_us: now_us,
            ends_us: drawing.ends_us(),
        })
    }

    /// A boot screen gets a new number when its content changes.
    fn boot_serial(&mut self, content: &Content) -> u64 {
        if let Some(sent) = &self.main.standing
            && sent.content == *content
        {
            return sent.serial;
        }
        self.serial += 1;
        self.serial
    }

    /// Sends what is shown on a view now.
    fn tell(&mut self, now_us: u64, view: View, standing: Option<Standing>) {
        let sent = match view {
            View::Main => &mut self.main,
            View::Dashboard => &mut self.upper,
        };
        let before = core::mem::replace(&mut sent.standing, standing.clone());
        if let (Some(before), Some(standing)) = (&before, &standing)
            && before.looks_as(standing)
        {
            return;
        }
        // Content with a duration expires on the glasses by itself. Content of higher priority than its successor must
        // be cleared, or the glasses would keep showing it.
        let lasts = before.filter(|before| before.ends_us.is_none_or(|ends_us| ends_us > now_us));
        if let Some(before) = lasts
            && standing.as_ref().is_none_or(|standing| standing.priority < before.priority)
        {
            let revision = self.next_revision();
            self.commands.push_back(DisplayCommand::Clear { view, revision });
        }
        if let Some(Standing { priority, content, since_us, ends_us, .. }) = standing {
            let revision = self.next_revision();
            let duration_ms = ends_us.map(|ends_us| left_ms(now_us, ends_us));
            let content = counted(content, now_us.saturating_sub(since_us));
            let content = if self.bitmaps { content } else { in_words(content) };
            self.commands.push_back(DisplayCommand::Show { view, priority, revision, duration_ms, content });
        }
    }

    fn next_revision(&mut self) -> u32 {
        self.revision = self.revision.saturating_add(1);
        self.revision
    }
}

/// A countdown that was set this long ago, with the time that is left now.
fn counted(content: Content, since_us: u64) -> Content {
    match content {
        Content::Countdown { title, left_ms } => {
            let since_ms = u32::try_from(since_us / 1_000).unwrap_or(u32::MAX);
            Content::Countdown { title, left_ms: left_ms.saturating_sub(since_ms) }
        }
        other => other,
    }
}

fn claimant(priority: Priority) -> Option<usize> {
    match priority {
        Priority::Timer | Priority::App => None,
        Priority::Caption => Some(0),
        Priority::Assistant => Some(1),
        Priority::Notice => Some(2),
        Priority::Approval => Some(3),
    }
}

/// The text that glasses without image support get instead of an image.
fn in_words(content: Content) -> Content {
    match content {
        Content::Bitmap { text, .. } if text.trim().is_empty() => Content::Text { text: String::from(NO_WORDS) },
        Content::Bitmap { text, .. } => Content::Text { text },
        other => other,
    }
}

/// At least 1: 0 means "until replaced" on the wire.
fn left_ms(now_us: u64, ends_us: u64) -> u32 {
    u32::try_from(ends_us.saturating_sub(now_us).div_ceil(1_000)).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;
    use crate::limits::APPS_MAX;

    /// Claims the view for all claimants in this order; the one of highest priority is visible, not the latest.
    #[test]
    fn the_claimant_of_most_weight_is_seen_whatever_the_order() {
        let claimants = [Priority::Caption, Priority::Assistant, Priority::Notice, Priority::Approval];
        for first in claimants {
            for second in claimants {
                let (now, mut display) = (Timestamp::default(), Display::new(Config::default(), 0));
                let device = DeviceInfo {
                    id: String::new(),
                    user: String::new(),
                    display: Some(DisplaySize::new(9, 9)),
                    bitmaps: false,
                    speaker: false,
                    echo_cancelled: false,
                    captions: false,
                };
                display.handle_connected(now, &device, true);
                let content = || Content::Text { text: String::from("x") };
                assert!(display.handle_claim(now, first, content(), None));
                assert_eq!(display.handle_claim(now, second, content(), None), second >= first, "{first:?} {second:?}");
                display.handle_release(now, first.max(second));
                let seen = display.main.standing.as_ref().map(|standing| standing.priority);
                assert_eq!(seen, (first != second).then(|| first.min(second)));
            }
        }
    }

    #[test]
    fn one_app_too_many_is_not_heard_of() {
        let (now, mut display) = (Timestamp::default(), Display::new(Config::default(), 0));
        for number in 0..=APPS_MAX {
            let package = format!("app{number}");
            display.handle_app(now, AppEvent::Resumed { package, name: String::new(), kind: AppKind::Background });
        }
        let known = |number: usize| display.apps.kind(&format!("app{number}")).is_some();
        assert_eq!((known(APPS_MAX - 1), known(APPS_MAX)), (true, false));
    }
}
