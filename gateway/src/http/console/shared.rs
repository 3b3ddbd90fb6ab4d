//! Renderings that pages share: a part that several pages follow is rendered once for all of them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    sync::watch::{self, Receiver, Sender},
    time::{Instant, MissedTickBehavior, interval_at},
};

use crate::runtime::spawn;

/// The parts that are followed; the task of each has its latest rendering. There are as many as pages follow, so that the
/// places of streams bound them. Cheap to clone.
pub(super) struct Shared<K>(Arc<Mutex<Parts<K>>>);

type Parts<K> = BTreeMap<K, Weak<Sender<Bytes>>>;

impl<K> Clone for Shared<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> Default for Shared<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Clone + Ord + Send + 'static> Shared<K> {
    /// What `render` makes of this part every so often, for as long as anybody follows it. It wakes who follows each time,
    /// also where nothing has changed, since who has begun to follow meanwhile may have seen what was there for a moment only;
    /// the present state is none of that. Where the part is followed already, the first `render` goes on. If that panics, who
    /// follows is told that it is over.
    pub(super) fn follow<F>(&self, key: K, every: Duration, render: impl Fn() -> F + Send + 'static) -> Receiver<Bytes>
    where
        F: Future<Output = Bytes> + Send + 'static,
    {
        let mut all = self.all();
        if let Some(latest) = all.get(&key).and_then(Weak::upgrade) {
            return latest.subscribe();
        }
        let (latest, follower) = watch::channel(Bytes::new());
        let latest = Arc::new(latest);
        // What is left of tasks that panicked goes.
        all.retain(|_, latest| latest.strong_count() > 0);
        all.insert(key.clone(), Arc::downgrade(&latest));
        drop(all);
        spawn("console-part", self.clone().keep(key, latest, every, render));
        follower
    }

    async fn keep<F>(self, key: K, latest: Arc<Sender<Bytes>>, every: Duration, render: impl Fn() -> F + Send + 'static)
    where
        F: Future<Output = Bytes> + Send + 'static,
    {
        let mut ticks = interval_at(Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = latest.closed() => {
                    // Under the lock, under which others begin to follow.
                    let mut all = self.all();
                    if latest.is_closed() {
                        all.remove(&key);
                        return;
                    }
                }
                _ = ticks.tick() => {
                    let rendering = render();
                    let rendered = rendering.await;
                    latest.send_replace(rendered);
                }
            }
        }
    }

    fn all(&self) -> MutexGuard<'_, Parts<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::Ready,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    const EVERY: Duration = Duration::from_secs(2);
    const PAGES: usize = 32;

    /// A part with a text that changes, which counts its renderings.
    #[derive(Clone, Default)]
    struct Part {
        text: Arc<Mutex<Bytes>>,
        rendered: Arc<AtomicUsize>,
    }

    impl Part {
        fn follow(&self, all: &Shared<u32>, key: u32) -> Receiver<Bytes> {
            let part = self.clone();
            all.follow(key, EVERY, move || {
                part.rendered.fetch_add(1, Ordering::SeqCst);
                let text = part.text.lock().unwrap().clone();
                async move { text }
            })
        }

        fn becomes(&self, text: &'static str) {
            *self.text.lock().unwrap() = Bytes::from_static(text.as_bytes());
        }

        fn rendered(&self) -> usize {
            self.rendered.load(Ordering::SeqCst)
        }
    }

    fn falls() -> Ready<Bytes> {
        panic!("it cannot be rendered")
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_is_rendered_once_for_all_who_follow_it_and_wakes_them() {
        let (all, part) = (Shared::default(), Part::default());
        let mut pages: Vec<_> = (0..PAGES).map(|_| part.follow(&all, 1)).collect();
        assert_eq!((part.rendered(), all.all().len()), (0, 1), "a page has rendered its own before");
        for (turn, text) in ["one", "two", "two"].into_iter().enumerate() {
            part.becomes(text);
            for page in &mut pages {
                page.changed().await.expect("it goes on");
                assert_eq!(*page.borrow_and_update(), text.as_bytes());
            }
            assert_eq!(part.rendered(), turn + 1, "for {PAGES} pages");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_seen_what_was_there_for_a_moment_only_is_told_what_is_there() {
        let (all, part) = (Shared::default(), Part::default());
        part.becomes("one");
        let mut first = part.follow(&all, 1);
        first.changed().await.expect("it is rendered");
        // Its page was loaded while it was "two".
        let mut second = part.follow(&all, 1);
        let told = tokio::time::timeout(2 * EVERY, second.changed()).await;
        told.expect("it is woken").expect("it goes on");
        assert_eq!(*second.borrow(), b"one".as_slice());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_rendered_when_nobody_follows_and_a_part_may_be_followed_again() {
        let (all, part) = (Shared::default(), Part::default());
        let (one, mut other) = (part.follow(&all, 1), part.follow(&all, 2));
        assert_eq!(all.all().len(), 2);
        drop(one);
        part.becomes("x");
        other.changed().await.expect("it goes on");
        assert_eq!((part.rendered(), all.all().len()), (1, 1), "only the other one");
        drop(other);
        while !all.all().is_empty() {
            tokio::task::yield_now().await;
        }
        let mut again = part.follow(&all, 1);
        again.changed().await.expect("it is rendered again");
        assert_eq!(*again.borrow(), b"x".as_slice());
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_panics_is_over_and_may_be_followed_again() {
        let (all, part) = (Shared::default(), Part::default());
        let mut fallen = all.follow(1, EVERY, falls);
        assert!(fallen.changed().await.is_err());
        part.becomes("x");
        part.follow(&all, 1).changed().await.expect("it is rendered");
        assert_eq!((part.rendered(), all.all().len()), (1, 1));
    }
}
