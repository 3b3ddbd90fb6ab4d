//! A session that panics ends alone: its device begins anew, and nobody else notices.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use firmware_sim::Glasses;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::set_default,
};

use super::{comes_back, cut};
use crate::world::{WAIT, World, answered, text};

/// A log that panics, once, in the middle of the session that writes that its link is lost.
struct FailingLog {
    has_failed: Arc<AtomicBool>,
}

impl Subscriber for FailingLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::INFO
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = Message::default();
        event.record(&mut message);
        if message.0 == "link lost" && !self.has_failed.swap(true, Ordering::SeqCst) {
            panic!("on purpose");
        }
    }

    // Spans are not enabled.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The text of a line.
#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

/// Glasses without a microphone: everything here runs on one thread.
async fn glasses(world: &World, name: &str) -> Glasses {
    let mut options = world.options("wss", name);
    options.profile.microphone_hz = 0;
    world.connect(options).await
}

/// On one thread: the log is that of this thread.
#[tokio::test]
async fn a_session_that_panics_ends_alone_and_its_device_begins_anew() {
    let has_failed = Arc::new(AtomicBool::new(false));
    let _log = set_default(FailingLog { has_failed: has_failed.clone() });
    let world = World::start().await;
    let (mut broken, mut others) = (glasses(&world, "glasses").await, glasses(&world, "others").await);
    let device = broken.fingerprint().to_owned();
    let roster = &world.gateway().services().roster;
    cut(&mut broken).await;
    let gone = async {
        while roster.get(&device).is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, gone).await.expect("it leaves no ghost");
    assert!(has_failed.load(Ordering::SeqCst), "by a panic");
    assert!(!comes_back(&world, &mut broken, "wss").await, "nothing is left of it");
    for glasses in [&mut broken, &mut others] {
        text(glasses, "what is two plus two?").await;
        assert!(answered(glasses).await.contains('4'));
    }
    let health = reqwest::get(format!("http://{}/healthz", world.web())).await.expect("an answer");
    assert_eq!(health.status(), 200);
    world.stop().await;
}
