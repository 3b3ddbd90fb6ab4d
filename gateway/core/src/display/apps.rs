//! The apps' layer of the main view: one app is visible at a time, and which one is decided here.
//!
//! The foreground app draws freely. A background app takes a lock by drawing, which keeps other background apps out. A
//! drawing that may not be shown yet waits, the latest of each app.

use alloc::{string::String, vec::Vec};

use super::{Config, drawing::Drawing};
use crate::{
    limits::{APP_NAME_CHARS_MAX, APPS_MAX},
    vocab::AppKind,
};

/// The apps' layer.
#[derive(Debug, Default)]
pub(super) struct Apps {
    /// In the order of their start.
    list: Vec<App>,
    /// The app whose drawing is shown, unless something of higher priority is.
    current: Option<String>,
    lock: Option<Lock>,
    /// When an app's drawing was last sent.
    sent_us: Option<u64>,
}

#[derive(Debug)]
struct App {
    package: String,
    name: String,
    kind: AppKind,
    boots_until_us: Option<u64>,
    drawing: Option<Drawing>,
    waiting: Option<Waiting>,
    line: Option<String>,
    /// Whether it receives transcripts.
    listens: bool,
}

/// A drawing that may not be shown yet.
#[derive(Debug)]
struct Waiting {
    drawing: Drawing,
    /// Since when the app waits; a newer drawing keeps the place of the older one in the queue.
    since_us: u64,
}

/// A background app's lock on the display.
#[derive(Debug)]
struct Lock {
    package: String,
    taken_us: u64,
    drew_us: u64,
}

/// The time and the settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) us: u64,
    pub(super) config: Config,
    /// Whether nothing of higher priority covers the layer and the glasses are connected.
    pub(super) on_top: bool,
}

impl Apps {
    /// Starts an app. One that runs already restarts; beyond [`APPS_MAX`] the app is ignored.
    pub(super) fn start(&mut self, now: Now, package: String, name: &str, kind: AppKind, boots: bool) {
        self.stop(now, &package);
        if self.list.len() >= APPS_MAX {
            return;
        }
        let boots_until_us = (boots && kind != AppKind::Dashboard).then(|| after(now.us, now.config.boot_ms));
        let name = if name.trim().is_empty() { &package } else { name };
        let name = name.chars().filter(|letter| !letter.is_control()).take(APP_NAME_CHARS_MAX).collect();
        let (drawing, waiting, line) = (None, None, None);
        self.list.push(App { package, name, kind, boots_until_us, drawing, waiting, line, listens: false });
    }

    /// An app has stopped: removes it with its drawings.
    pub(super) fn stop(&mut self, now: Now, package: &str) {
        let booted = self.is_booting();
        self.list.retain(|app| app.package != package);
        self.lock.take_if(|lock| lock.package == package);
        if self.current.take_if(|current| current == package).is_some() {
            self.next(now);
        }
        if booted && !self.is_booting() {
            self.boot_ended(now);
        }
    }

    /// Sets whether an app receives transcripts.
    pub(super) fn set_listens(&mut self, package: &str, listens: bool) {
        if let Some(app) = self.list.iter_mut().find(|app| app.package == package) {
            app.listens = listens;
        }
    }

    /// Whether the foreground app receives transcripts.
    pub(super) fn front_listens(&self) -> bool {
        self.front().and_then(|front| self.list.get(front)).is_some_and(|app| app.listens)
    }

    pub(super) fn kind(&self, package: &str) -> Option<AppKind> {
        self.list.iter().find(|app| app.package == package).map(|app| app.kind)
    }

    /// An app draws: shown now, or kept until it may be; dropped if another app holds the view.
    pub(super) fn draw(&mut self, now: Now, package: &str, drawing: Drawing, force: bool) {
        let Some(index) = self.index(package) else {
            return;
        };
        if self.is_booting() || self.blocked_until_us(now, index).is_some() {
            return self.wait(now, index, drawing);
        }
        if !self.take_lock(now, index) {
            return;
        }
        if !force && now.on_top && now.us < self.free_us(now.config) {
            return self.wait(now, index, drawing);
        }
        self.put(now, index, drawing);
    }

    /// An app removes its drawing.
    pub(super) fn clear(&mut self, now: Now, package: &str) {
        if let Some(app) = self.list.iter_mut().find(|app| app.package == package) {
            app.drawing = None;
            app.waiting = None;
        }
        if self.current.take_if(|current| current == package).is_some() {
            self.next(now);
        }
    }

    /// Whether a boot screen is shown.
    pub(super) fn is_booting(&self) -> bool {
        self.list.iter().any(|app| app.boots_until_us.is_some())
    }

    /// The names of the starting apps, and until when they are shown.
    pub(super) fn boot(&self) -> Option<(String, u64)> {
        let booting = || self.list.iter().filter(|app| app.boots_until_us.is_some());
        let until_us = booting().filter_map(|app| app.boots_until_us).max()?;
        let names: Vec<&str> = booting().map(|app| app.name.as_str()).collect();
        Some((names.join(", "), until_us))
    }

    /// The drawing of the layer, boot screens aside.
    pub(super) fn standing(&mut self) -> Option<&mut Drawing> {
        let current = self.current.as_deref()?;
        self.list.iter_mut().find(|app| app.package == current)?.drawing.as_mut()
    }

    /// A drawing was covered: it is dropped unless it may come back. `by_app`: another app's drawing replaced it.
    /// Covering by anything else is invisible to the foreground app: its drawing is kept.
    pub(super) fn covered(&mut self, now: Now, serial: u64, by_app: bool) {
        let front = self.front();
        for (index, app) in self.list.iter_mut().enumerate() {
            let Some(drawing) = app.drawing.as_mut().filter(|drawing| drawing.serial == serial) else {
                continue;
            };
            // Without a foreground app the visible app counts as one.
            let kept = !by_app && front.is_none_or(|front| front == index);
            if kept || drawing.comes_back(now.us, now.config.consumed_ms) {
                drawing.cover();
                return;
            }
            app.drawing = None;
            if self.current.take_if(|current| *current == app.package).is_some() {
                self.next(now);
            }
            return;
        }
    }

    /// Applies what is due: ends of boot screens and of drawings, and waiting drawings.
    pub(super) fn handle_time(&mut self, now: Now) {
        let booted = self.is_booting();
        for app in &mut self.list {
            app.boots_until_us.take_if(|until_us| *until_us <= now.us);
        }
        if booted && !self.is_booting() {
            self.boot_ended(now);
        }
        if self.standing().is_some_and(|drawing| drawing.has_ended(now.us)) {
            if let Some(current) = self.current.take()
                && let Some(app) = self.list.iter_mut().find(|app| app.package == current)
            {
                app.drawing = None;
            }
            self.next(now);
        }
        // Each iteration takes one waiting drawing.
        while self.due_us(now).is_some_and(|due_us| due_us <= now.us) {
            self.promote(now);
        }
    }

    /// When something is due next, monotonic.
    pub(super) fn poll_timeout(&self, now: Now) -> Option<u64> {
        let boots = self.list.iter().filter_map(|app| app.boots_until_us);
        let current = self.current.as_ref().and_then(|current| self.list.iter().find(|app| app.package == *current));
        let ends = current.and_then(|app| app.drawing.as_ref()).and_then(Drawing::ends_us);
        boots.chain(ends).chain(self.due_us(now)).min()
    }

    /// Sets an app's line for the dashboard.
    pub(super) fn set_line(&mut self, package: &str, line: Option<String>) {
        if let Some(app) = self.list.iter_mut().find(|app| app.package == package) {
            app.line = line;
        }
    }

    /// All lines with their apps, in the order of their start.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&str, &str)> {
        self.list.iter().filter_map(|app| Some((app.package.as_str(), app.line.as_deref()?)))
    }

    fn index(&self, package: &str) -> Option<usize> {
        self.list.iter().position(|app| app.package == package)
    }

    /// The foreground app; of several the one that started last.
    fn front(&self) -> Option<usize> {
        self.list.iter().rposition(|app| app.kind == AppKind::Foreground)
    }

    /// Until when the foreground app has to wait because the holder of the lock is visible.
    fn blocked_until_us(&self, now: Now, index: usize) -> Option<u64> {
        let lock = self.lock.as_ref().filter(|lock| lock.ends_us(now.config) > now.us)?;
        let seen = now.on_top && !self.is_booting() && self.current.as_ref() == Some(&lock.package);
        (self.front() == Some(index) && seen).then(|| lock.ends_us(now.config))
    }

    /// Whether an app may draw. The foreground app may, and ends a background app's lock; a background app may if it
    /// has the lock or can take it.
    fn take_lock(&mut self, now: Now, index: usize) -> bool {
        if self.front() == Some(index) {
            self.lock = None;
            return true;
        }
        let Some(package) = self.list.get(index).map(|app| app.package.clone()) else {
            return false;
        };
        self.lock.take_if(|lock| lock.ends_us(now.config) <= now.us);
        let lock = self.lock.get_or_insert(Lock { package: package.clone(), taken_us: now.us, drew_us: now.us });
        if lock.package == package {
            lock.drew_us = now.us;
        }
        lock.package == package
    }

    /// When an app may draw again.
    fn free_us(&self, config: Config) -> u64 {
        self.sent_us.map_or(0, |sent_us| after(sent_us, config.app_interval_ms))
    }

    fn put(&mut self, now: Now, index: usize, drawing: Drawing) {
        if let Some(app) = self.list.get_mut(index) {
            app.drawing = Some(drawing);
            app.waiting = None;
            self.current = Some(app.package.clone());
            if now.on_top {
                self.sent_us = Some(now.us);
            }
        }
    }

    fn wait(&mut self, now: Now, index: usize, drawing: Drawing) {
        if let Some(app) = self.list.get_mut(index) {
            let since_us = app.waiting.as_ref().map_or(now.us, |waiting| waiting.since_us);
            app.waiting = Some(Waiting { drawing, since_us });
        }
    }

    /// The boot screens have ended: of the waiting drawings the foreground app's is the first.
    fn boot_ended(&mut self, now: Now) {
        let front = self.front();
        let waiting = front.and_then(|front| self.list.get_mut(front)).and_then(|app| app.waiting.take());
        if let (Some(front), Some(waiting)) = (front, waiting) {
            self.lock = None;
            return self.put(now, front, waiting.drawing);
        }
        if !self.promote(now) && self.current.is_none() {
            self.next(now);
        }
    }

    /// Shows the drawing that waits longest, if it is due and its app may draw. Returns whether it was shown.
    fn promote(&mut self, now: Now) -> bool {
        let Some((_, index)) =
            self.waits(now).filter(|(due_us, _)| *due_us <= now.us).min_by_key(|(_, at)| self.since_us(*at))
        else {
            return false;
        };
        let Some(waiting) = self.list.get_mut(index).and_then(|app| app.waiting.take()) else {
            return false;
        };
        let allowed = self.take_lock(now, index);
        if allowed {
            self.put(now, index, waiting.drawing);
        }
        allowed
    }

    /// The waiting apps by index, each with the time until which it is blocked; 0: it is not.
    fn waits(&self, now: Now) -> impl Iterator<Item = (u64, usize)> {
        let waiting = self.list.iter().enumerate().filter(|(_, app)| app.waiting.is_some());
        waiting.map(move |(index, _)| (self.blocked_until_us(now, index).unwrap_or(0), index))
    }

    fn since_us(&self, index: usize) -> Option<u64> {
        self.list.get(index)?.waiting.as_ref().map(|waiting| waiting.since_us)
    }

    /// When the next waiting drawing may be shown.
    fn due_us(&self, now: Now) -> Option<u64> {
        if self.is_booting() {
            return None;
        }
        let (due_us, _) = self.waits(now).min()?;
        Some(due_us.max(self.free_us(now.config)))
    }

    /// The visible drawing has ended: the next is the one that waits longest, then that of the lock's holder, then the
    /// foreground app's.
    fn next(&mut self, now: Now) {
        if self.is_booting() || self.promote(now) {
            return;
        }
        let config = now.config;
        self.lock.take_if(|lock| lock.ends_us(config) <= now.us);
        let holder = self.lock.as_ref().and_then(|lock| self.index(&lock.package));
        for index in [holder, self.front()].into_iter().flatten() {
            let Some(app) = self.list.get_mut(index) else {
                continue;
            };
            app.drawing.take_if(|drawing| !drawing.comes_back(now.us, config.consumed_ms));
            if app.drawing.is_some() {
                self.current = Some(app.package.clone());
                return;
            }
        }
    }
}

impl Lock {
    /// When it expires, unless its holder draws again.
    fn ends_us(&self, config: Config) -> u64 {
        after(self.drew_us, config.lock_idle_ms).min(after(self.taken_us, config.lock_ms_max))
    }
}

fn after(us: u64, ms: u32) -> u64 {
    us.saturating_add(u64::from(ms) * 1_000)
}
