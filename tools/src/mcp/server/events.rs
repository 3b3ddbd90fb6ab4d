//! The events of streams over HTTP, kept for clients whose connection breaks: they come back with the id of the last
//! event that they have (`Last-Event-ID`, MCP 2025-11-25, "Resumability and Redelivery").

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use futures_util::stream;
use rmcp::{
    model::{RequestId, ServerJsonRpcMessage},
    transport::streamable_http_server::session::{
        EventId, EventStore, EventStoreError, EventStream, ServerSseMessage, SessionId,
    },
};
use tokio::sync::watch;

/// How the library names a session's own stream, behind the session's id.
const OWN: &str = ":common";
/// Maximum events of one stream; the oldest one is dropped.
const EVENTS_MAX: usize = 64;
/// Maximum streams of a session, and bytes of all its events as JSON. Of the requests those are dropped first that have
/// been answered, and of these the oldest.
const STREAMS_MAX: usize = 256;
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// The events of one session: of each of its requests, and of its own stream.
#[derive(Clone, Default)]
pub(super) struct Events(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    /// Number of the newest event of all streams.
    last: u64,
    bytes: usize,
    streams: BTreeMap<String, Stream>,
}

/// The events of one stream.
struct Stream {
    events: VecDeque<Event>,
    /// Its request has been answered or cancelled: nothing follows.
    is_over: bool,
    /// Number of its newest event, or of the newest one of all streams when it began.
    last: u64,
    /// The request whose stream it is.
    request: Option<RequestId>,
    /// Wakes those who follow it; they end with it.
    news: watch::Sender<()>,
}

struct Event {
    number: u64,
    bytes: usize,
    message: ServerSseMessage,
}

#[async_trait]
impl EventStore for Events {
    async fn store_event(&self, stream: &str, event: &ServerSseMessage) -> Result<EventId, EventStoreError> {
        // Before anybody waits for the lock.
        let bytes = event.message.as_deref().map_or(0, json_bytes);
        Ok(self.lock().keep(stream, event, bytes))
    }

    /// The events behind this one, and those to come until the request is answered.
    async fn replay_events_after(&self, last: &str) -> Result<EventStream, EventStoreError> {
        let (stream, number) = parse(last).ok_or("this Last-Event-ID is of no event of this server")?;
        let news = self.lock().streams.get(stream).map(|stream| stream.news.subscribe());
        let news = news.ok_or("the events behind this Last-Event-ID are not kept any more")?;
        Ok(self.follow(stream, number, news))
    }
}

impl Events {
    /// All kept events of the session's own stream, and those to come.
    pub(super) fn of_session(&self, id: &SessionId) -> EventStream {
        let stream = format!("{id}{OWN}");
        let news = self.lock().stream(&stream).news.subscribe();
        self.follow(&stream, 0, news)
    }

    /// The stream of this request, of which this is an event, from its beginning on.
    pub(super) fn of_request(&self, request: RequestId, event: &str) -> Option<EventStream> {
        let (stream, _) = parse(event)?;
        let news = {
            let mut kept = self.lock();
            let stream = kept.stream(stream);
            stream.request = Some(request);
            stream.news.subscribe()
        };
        Some(self.follow(stream, 0, news))
    }

    /// The client has cancelled this request: it gets no answer.
    pub(super) fn cancel(&self, request: &RequestId) {
        let mut kept = self.lock();
        let of_request = kept.streams.values_mut().filter(|stream| stream.request.as_ref() == Some(request));
        for stream in of_request {
            stream.is_over = true;
            stream.news.send_replace(());
        }
    }

    /// Whether something may follow this event.
    pub(super) fn may_go_on(&self, last: &str) -> bool {
        parse(last).is_some_and(|(stream, number)| {
            self.lock().streams.get(stream).is_some_and(|stream| !stream.is_over || stream.last > number)
        })
    }

    /// Whether a request is under way, or somebody listens.
    pub(super) fn is_followed(&self) -> bool {
        let is_followed =
            |stream: &Stream| (stream.request.is_some() && !stream.is_over) || stream.news.receiver_count() > 0;
        self.lock().streams.values().any(is_followed)
    }

    fn follow(&self, stream: &str, number: u64, news: watch::Receiver<()>) -> EventStream {
        let after = Follower { events: self.clone(), stream: stream.to_owned(), number, news };
        Box::pin(stream::unfold(after, Follower::next))
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn keep(&mut self, id: &str, event: &ServerSseMessage, bytes: usize) -> EventId {
        self.last += 1;
        let event_id = format!("{id}.{}", self.last);
        let mut message = event.clone();
        message.event_id = Some(event_id.clone());
        let number = self.last;
        let stream = self.stream(id);
        let answer = |message: &ServerJsonRpcMessage| {
            matches!(message, ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))
        };
        // The answer of a request that was cancelled meanwhile comes in the session's stream, which goes on.
        stream.is_over |= !is_own(id) && message.message.as_deref().is_some_and(answer);
        stream.last = number;
        stream.events.push_back(Event { number, bytes, message });
        let dropped = if stream.events.len() > EVENTS_MAX { stream.events.pop_front() } else { None };
        stream.news.send_replace(());
        self.bytes += bytes;
        self.bytes -= dropped.map_or(0, |event| event.bytes);
        self.make_room(id);
        event_id
    }

    fn stream(&mut self, id: &str) -> &mut Stream {
        let last = self.last;
        self.streams.entry(id.to_owned()).or_insert_with(|| Stream {
            events: VecDeque::new(),
            is_over: false,
            last,
            request: None,
            news: watch::Sender::new(()),
        })
    }

    /// Drops streams until the bounds hold, but neither the newest nor the session's own.
    fn make_room(&mut self, newest: &str) {
        while self.streams.len() > STREAMS_MAX || self.bytes > BYTES_MAX {
            let frees = |stream: &Stream| self.bytes <= BYTES_MAX || stream.bytes() > 0;
            let others = self.streams.iter().filter(|(id, stream)| *id != newest && !is_own(id) && frees(stream));
            let first = others.min_by_key(|(_, stream)| (!stream.is_over, stream.last));
            let Some(id) = first.map(|(id, _)| id.clone()) else { return };
            self.bytes -= self.streams.remove(&id).map_or(0, |stream| stream.bytes());
        }
    }
}

impl Stream {
    fn bytes(&self) -> usize {
        self.events.iter().map(|event| event.bytes).sum()
    }
}

/// A client that came back to a stream.
struct Follower {
    events: Events,
    stream: String,
    /// The last event that it has.
    number: u64,
    news: watch::Receiver<()>,
}

impl Follower {
    /// The next event; `None` behind the answer, or if the stream is not kept any more.
    async fn next(mut self) -> Option<(ServerSseMessage, Self)> {
        loop {
            self.news.mark_unchanged();
            match self.look() {
                Some(message) => return Some((message?, self)),
                None => self.news.changed().await.ok()?,
            }
        }
    }

    /// `None`: not yet; `Some(None)`: nothing follows.
    fn look(&mut self) -> Option<Option<ServerSseMessage>> {
        let kept = self.events.lock();
        let Some(stream) = kept.streams.get(&self.stream) else { return Some(None) };
        match stream.events.iter().find(|event| event.number > self.number) {
            Some(event) => {
                self.number = event.number;
                Some(Some(event.message.clone()))
            }
            None => stream.is_over.then_some(None),
        }
    }
}

/// Whether it is the session's own stream, of what belongs to no request.
fn is_own(stream: &str) -> bool {
    stream.ends_with(OWN)
}

/// Stream and number of an event's id.
fn parse(id: &str) -> Option<(&str, u64)> {
    let (stream, number) = id.rsplit_once('.')?;
    Some((stream, number.parse().ok()?))
}

fn json_bytes(message: &ServerJsonRpcMessage) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    drop(serde_json::to_writer(&mut count, message));
    count.0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::{FutureExt as _, StreamExt as _};
    use serde_json::json;

    use super::*;

    /// A notification that says this.
    fn news(text: &str) -> ServerSseMessage {
        let params = json!({"level": "info", "data": text});
        event(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}))
    }

    fn answer(text: &str) -> ServerSseMessage {
        let content = json!([{"type": "text", "text": text}]);
        event(json!({"jsonrpc": "2.0", "id": 1, "result": {"content": content}}))
    }

    fn event(message: serde_json::Value) -> ServerSseMessage {
        ServerSseMessage::from_message(serde_json::from_value(message).expect("a message"))
    }

    fn priming() -> ServerSseMessage {
        ServerSseMessage::retry(Duration::from_secs(3))
    }

    async fn keep(events: &Events, stream: &str, event: &ServerSseMessage) -> String {
        events.store_event(stream, event).await.expect("it is kept")
    }

    fn id(event: Option<ServerSseMessage>) -> Option<String> {
        event.map(|event| event.event_id.expect("an id"))
    }

    #[tokio::test]
    async fn who_comes_back_gets_what_it_has_not_and_no_more() {
        let events = Events::default();
        let first = keep(&events, "a", &priming()).await;
        keep(&events, "b", &news("of another")).await;
        let second = keep(&events, "a", &news("one")).await;
        let mut stream = events.replay_events_after(&first).await.expect("it is known");
        assert_eq!(id(stream.next().await), Some(second.clone()));
        assert!(stream.next().now_or_never().is_none(), "the request has no answer yet");
        let last = keep(&events, "a", &answer("done")).await;
        assert_eq!(id(stream.next().await), Some(last.clone()));
        assert!(stream.next().await.is_none());
        let mut stream = events.replay_events_after(&second).await.expect("it is known");
        assert_eq!(id(stream.next().await), Some(last.clone()));
        let mut stream = events.replay_events_after(&last).await.expect("it is known");
        assert!(stream.next().await.is_none());
    }

    #[tokio::test]
    async fn a_sessions_stream_is_followed_before_it_has_an_event_and_is_over_with_no_answer() {
        let (events, session) = (Events::default(), SessionId::from("s"));
        let mut stream = events.of_session(&session);
        assert!(stream.next().now_or_never().is_none());
        let first = keep(&events, "s:common", &news("one")).await;
        assert_eq!(id(stream.next().await), Some(first.clone()));
        keep(&events, "s:common", &answer("of a request that was cancelled")).await;
        assert!(stream.next().await.is_some());
        assert!(stream.next().now_or_never().is_none());
        let last = keep(&events, "s:common", &news("two")).await;
        assert_eq!(id(stream.next().await), Some(last));
        let mut again = events.of_session(&session);
        assert_eq!(id(again.next().await), Some(first), "what a client may never have got");
    }

    #[tokio::test]
    async fn what_is_no_event_of_it_is_refused() {
        let events = Events::default();
        keep(&events, "a", &priming()).await;
        for unknown in ["", "0", "a", "a.", "a.x", "a.-1", "a.18446744073709551616", "b.1", "."] {
            assert!(events.replay_events_after(unknown).await.is_err(), "{unknown}");
        }
    }

    #[tokio::test]
    async fn the_stream_of_a_request_that_is_cancelled_is_over() {
        let events = Events::default();
        let first = keep(&events, "a", &priming()).await;
        let mut stream = events.of_request(RequestId::Number(7), &first).expect("an event");
        assert_eq!(id(stream.next().await), Some(first.clone()));
        events.cancel(&RequestId::Number(8));
        assert!(stream.next().now_or_never().is_none() && events.may_go_on(&first));
        events.cancel(&RequestId::Number(7));
        assert!(stream.next().await.is_none() && !events.may_go_on(&first));
    }

    #[tokio::test]
    async fn what_may_go_on_is_what_has_no_answer_or_one_that_is_not_told() {
        let events = Events::default();
        let first = keep(&events, "a", &priming()).await;
        assert!(events.may_go_on(&first));
        let last = keep(&events, "a", &answer("done")).await;
        assert!(events.may_go_on(&first) && !events.may_go_on(&last));
        assert!(!events.may_go_on("b.1") && !events.may_go_on("0"));
    }

    #[tokio::test]
    async fn the_bounds_hold_and_drop_the_oldest_answers_first() {
        let events = Events::default();
        let open = keep(&events, "open", &priming()).await;
        let own = keep(&events, "s:common", &news("one")).await;
        for _ in 0..2 * EVENTS_MAX {
            keep(&events, "busy", &news("x")).await;
        }
        assert_eq!(events.lock().streams["busy"].events.len(), EVENTS_MAX);
        let follower = events.replay_events_after("busy.0").await.expect("it is known");
        for number in 0..8 {
            keep(&events, &format!("large {number}"), &answer(&"x".repeat(BYTES_MAX / 5))).await;
        }
        {
            let kept = events.lock();
            let names: Vec<&str> = kept.streams.keys().map(String::as_str).collect();
            assert_eq!(names, ["busy", "large 4", "large 5", "large 6", "large 7", "open", "s:common"]);
            assert_eq!(kept.bytes, kept.streams.values().map(Stream::bytes).sum::<usize>());
        }
        // One that is larger than all together is kept beside those that take nothing.
        let huge = keep(&events, "huge", &answer(&"x".repeat(BYTES_MAX))).await;
        for kept in [&huge, &open, &own] {
            assert!(events.replay_events_after(kept).await.is_ok(), "{kept}");
        }
        assert_eq!(follower.count().await, 0, "it ends with what it follows");
        for number in 0..2 * STREAMS_MAX {
            keep(&events, &format!("request {number}"), &priming()).await;
        }
        assert_eq!(events.lock().streams.len(), STREAMS_MAX);
        assert!(events.replay_events_after(&own).await.is_ok());
    }
}
