//! Tool selection by sentence embeddings (`router.by = "sentences"`), on its own thread. Tools are embedded ahead,
//! whenever the catalogue changes; the wearer's words with each request. While embeddings are missing or late, words
//! select.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use audio::meter::Meter;
use tokio::{
    sync::{Semaphore, oneshot},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tools::{
    registry::{Registry, Specs},
    router::{
        Choice, Query, Router,
        minilm::MiniLm,
        sentences::{Embedder, Sentences},
    },
};

use crate::{
    models::metered::MeteredEmbedder,
    runtime::{
        compute::{Compute, Urgency},
        on_own_thread,
    },
};

/// Requests that may be ranked at once: with more, results would be late.
const REQUESTS_MAX: usize = 8;

/// Ranks tools by meaning.
pub(crate) struct BySentences {
    sentences: Arc<Sentences>,
    compute: Compute,
    requests: Arc<Semaphore>,
    wait: Duration,
}

impl BySentences {
    /// Loads the model from the models folder; requests wait at most `wait`. The meter is made when it is loaded.
    ///
    /// # Errors
    /// A file is missing or wrong: the text says what to do.
    pub(crate) async fn load(models_dir: &Path, wait: Duration) -> Result<(Self, Arc<Meter>)> {
        let folder = models_dir.to_owned();
        let load = on_own_thread(move || MiniLm::load(&folder));
        let model =
            load.await?.context("`router.by` is \"sentences\"; run `lorgnette models fetch`, or set `models_dir`")?;
        let meter = Arc::<Meter>::default();
        let embedder = MeteredEmbedder { embedder: model, meter: meter.clone() };
        Ok((Self::new(Arc::new(embedder), wait)?, meter))
    }

    fn new(embedder: Arc<dyn Embedder>, wait: Duration) -> Result<Self> {
        // One place more than requests have, for `keep_up`, which runs one job at a time.
        let compute =
            Compute::start("sentences", 1, REQUESTS_MAX + 1).context("starting the thread of the tool router")?;
        let requests = Arc::new(Semaphore::new(REQUESTS_MAX));
        Ok(Self { sentences: Arc::new(Sentences::new(embedder)), compute, requests, wait })
    }

    /// The tools to offer, at most `tools_max`.
    pub(super) async fn choose(&self, router: &Router, tools: &Specs, said: &Query, tools_max: usize) -> Choice {
        if router.has_few(tools) {
            return router.choose(tools, said, tools_max);
        }
        let near = self.rank(tools, &said.now).await.unwrap_or_default();
        router.choose_with(tools, said, &near, tools_max)
    }

    /// The ranking by meaning, if available in time.
    async fn rank(&self, tools: &Specs, words: &str) -> Option<Vec<(usize, f32)>> {
        let place = Arc::clone(&self.requests).try_acquire_owned().ok()?;
        let (tools, words) = (Arc::clone(tools), words.to_owned());
        let ranking = self.run(Urgency::Now, move |sentences| {
            let ranked = sentences.rank(&tools, &words);
            drop(place);
            ranked
        });
        match timeout(self.wait, ranking).await {
            Ok(Some(Ok(near))) => {
                tracing::debug!(learnt = near.is_some(), "tools ranked by meaning");
                near
            }
            Ok(Some(Err(error))) => {
                tracing::warn!(%error, "words choose the tools");
                None
            }
            Ok(None) | Err(_) => {
                tracing::debug!("no ranking by meaning in time: words choose");
                None
            }
        }
    }

    /// Embeds the tools of the registry, now and whenever they change, until the gateway stops.
    pub(crate) async fn keep_up(self: Arc<Self>, registry: Arc<Registry>, stop: CancellationToken) {
        let mut changes = registry.changes();
        loop {
            changes.borrow_and_update();
            let all = registry.specs();
            let missing = self.run(Urgency::Soon, move |sentences| sentences.settle(&all)).await.unwrap_or_default();
            let count = missing.len();
            for sentence in missing {
                // A change restarts the loop; embeddings computed so far are kept.
                if stop.is_cancelled() || changes.has_changed().unwrap_or(true) {
                    break;
                }
                // One tool per job, so that a request waits for one tool at most.
                if let Some(Err(error)) = self.run(Urgency::Soon, move |sentences| sentences.learn(&sentence)).await {
                    tracing::warn!(%error, "a tool is not learnt: words choose");
                }
            }
            tracing::debug!(count, "tools learnt");
            if !matches!(stop.run_until_cancelled(changes.changed()).await, Some(Ok(()))) {
                return;
            }
        }
    }

    /// Whether its thread runs.
    pub(crate) fn is_running(&self) -> bool {
        self.compute.is_running()
    }

    /// Runs a job on the thread; `None` if the queue is full, or it panicked. A job without a waiter is not started.
    async fn run<R: Send + 'static>(
        &self,
        urgency: Urgency,
        job: impl FnOnce(&Sentences) -> R + Send + 'static,
    ) -> Option<R> {
        let (sender, result) = oneshot::channel();
        let sentences = Arc::clone(&self.sentences);
        let work = move || {
            if !sender.is_closed() {
                drop(sender.send(job(&sentences)));
            }
        };
        self.compute.submit(urgency, work).ok()?;
        result.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    };

    use gateway_core::vocab::ToolSpec;
    use tools::router::{Reason, sentences::EmbedError};

    use super::*;

    /// Recognises texts about rain. Blocks on request, and stops the gateway after a number of texts.
    #[derive(Default)]
    struct Fake {
        held: Mutex<bool>,
        free: Condvar,
        asked: AtomicUsize,
        stop: Option<(usize, CancellationToken)>,
    }

    impl Fake {
        fn hold(&self, held: bool) {
            *self.held.lock().unwrap() = held;
            self.free.notify_all();
        }
    }

    impl Embedder for Fake {
        fn embed(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
            drop(self.free.wait_while(self.held.lock().unwrap(), |held| *held).unwrap());
            assert!(!text.contains("crash"), "on purpose");
            let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some((_, stop)) = self.stop.as_ref().filter(|(count, _)| *count == asked) {
                stop.cancel();
            }
            let wet = ["rain", "wet"].iter().any(|word| text.to_lowercase().contains(word));
            Ok(if wet { vec![1.0, 0.0] } else { vec![0.0, 1.0] })
        }
    }

    fn tools() -> Specs {
        let tool = |name: String, description: &str| {
            Arc::new(ToolSpec { name, description: description.into(), ..ToolSpec::default() })
        };
        let mut tools: Vec<_> = (0..40).map(|number| tool(format!("x.{number:02}"), "Does a thing.")).collect();
        tools.push(tool("y.sky".into(), "Tells of rain."));
        tools.into()
    }

    fn learnt(wait: Duration) -> (Arc<Fake>, BySentences) {
        let fake = Arc::new(Fake::default());
        let selector = BySentences::new(fake.clone(), wait).unwrap();
        for sentence in selector.sentences.settle(&tools()) {
            selector.sentences.learn(&sentence).unwrap();
        }
        (fake, selector)
    }

    async fn chosen(selector: &BySentences, now: &str) -> (Reason, Vec<String>) {
        let said = Query { now: now.into(), ..Query::default() };
        let choice = selector.choose(&Router::default(), &tools(), &said, 128).await;
        (choice.reason, choice.tools.iter().map(|tool| tool.name.clone()).collect())
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn what_is_meant_is_offered() {
        let (_, selector) = learnt(LONG);
        assert_eq!(chosen(&selector, "Will I get wet?").await, (Reason::Words, vec!["y.sky".into()]));
    }

    #[tokio::test]
    async fn when_it_is_late_or_fails_words_choose_and_doubt_offers_all() {
        let (fake, selector) = learnt(Duration::ZERO);
        fake.hold(true);
        let (reason, names) = chosen(&selector, "Will I get wet?").await;
        assert_eq!((reason, names.len()), (Reason::Doubt, 41));
        fake.hold(false);
        let (_, selector) = learnt(LONG);
        let (reason, names) = chosen(&selector, "crash, and will I get wet?").await;
        assert_eq!((reason, names.len()), (Reason::Doubt, 41));
        // The thread survives.
        assert_eq!(chosen(&selector, "Will I get wet?").await.1, ["y.sky"]);
        let unlearnt = BySentences::new(Arc::new(Fake::default()), LONG).unwrap();
        assert_eq!(chosen(&unlearnt, "Will I get wet?").await.0, Reason::Doubt);
    }

    #[tokio::test]
    async fn the_registry_is_learnt_until_the_gateway_stops() {
        let registry = Arc::new(Registry::with_built_ins().unwrap());
        let (all, stop) = (registry.specs().len(), CancellationToken::new());
        for count in [3, all] {
            let stops = Some((count, stop.child_token()));
            let token = stops.clone().unwrap().1;
            let fake = Arc::new(Fake { stop: stops, ..Fake::default() });
            let selector = Arc::new(BySentences::new(fake.clone(), LONG).unwrap());
            selector.clone().keep_up(registry.clone(), token).await;
            assert_eq!(fake.asked.load(Ordering::Relaxed), count);
            assert_eq!(selector.sentences.settle(&registry.specs()).len(), all - count);
        }
    }
}
