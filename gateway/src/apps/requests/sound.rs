//! Playback requests of an app, and streams of sound that it sends itself.

use gateway_core::vocab::ErrorCode;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{BUSY, REQUEST_BYTES_MAX};
use crate::{
    apps::{
        message::{RequestOutcome, ToApp},
        refusals,
        relay::{Relay, Whole},
        socket::{Gone, Session, Ws, send},
        speech::{self, Wanted},
        wire,
    },
    clock,
    runtime::spawn,
};

/// Why a stream was not played that had not ended when its socket was lost or closed.
const CUT_OFF: &str = "its socket was lost or closed before the stream had ended";

impl Session {
    /// Speaks or plays something.
    pub(super) fn play(&mut self, request: String, wanted: Wanted, frame: &str) -> Vec<Value> {
        if request.len() > REQUEST_BYTES_MAX {
            return vec![wire::error("MALFORMED_MESSAGE", "the request's number is too long", clock::wall_ms())];
        }
        if Relay::owns(&wanted.url) {
            let (replaced, whole) = self.relay.play(request, wanted);
            let mut answers = interrupted(replaced);
            answers.extend(whole.map(|whole| self.play_whole(whole, frame)).unwrap_or_default());
            return answers;
        }
        self.be_heard(request, wanted, None, frame)
    }

    fn play_whole(&mut self, whole: Whole, frame: &str) -> Vec<Value> {
        match whole.file {
            Ok(file) => self.be_heard(whole.request, whole.wanted, Some(file), frame),
            Err(why) => vec![wire::audio_play_response(&whole.request, Err(&why))],
        }
    }

    /// Speaks or plays it in a separate task, which answers when playback has ended.
    fn be_heard(&mut self, request: String, wanted: Wanted, file: Option<Vec<u8>>, frame: &str) -> Vec<Value> {
        let Ok(room) = self.requests.clone().try_acquire_owned() else {
            return vec![wire::audio_play_response(&request, Err(BUSY))];
        };
        if wanted.alone {
            // A file that is still being fetched must not interrupt a later request.
            self.playing.iter().for_each(|(_, earlier)| earlier.cancel());
        }
        let stop = CancellationToken::new();
        self.playing.retain(|(_, token)| !token.is_cancelled());
        self.playing.push((wanted.track, stop.clone()));
        let (host, user, app, out) = (self.host.clone(), self.user.clone(), self.app.clone(), self.out.clone());
        let (turn, frame) = (self.order.turn(), refusals::shown(frame));
        self.host.pending_outcomes.begun(&self.user, &self.app.package, &request);
        spawn("app-sound", async move {
            let outcome = host.play(&user, &app, &wanted, file, &turn, &stop).await;
            stop.cancel();
            if let Err(why) = &outcome
                && why != speech::INTERRUPTED
            {
                host.installed.complain(
                    Some(&user),
                    &app.package,
                    "audio_play_request",
                    ErrorCode::ExecutionError,
                    why.clone(),
                    frame,
                );
            }
            let answer = wire::audio_play_response(&request, outcome.as_ref().map(|it| *it).map_err(String::as_str));
            host.pending_outcomes.ended(&user, &app.package, &out, Some(request), answer).await;
            drop(room);
            turn.pass().await;
        });
        Vec::new()
    }

    /// Stops what the app is playing, or one track of it.
    pub(super) fn stop_playing(&mut self, track: Option<u8>) -> Vec<Value> {
        for (_, stop) in self.playing.iter().filter(|(playing, _)| track.is_none() || *playing == track) {
            stop.cancel();
        }
        interrupted(self.relay.stop(track))
    }

    /// Tells how a sound or a photo has ended; kept for the app's next socket where that fails.
    pub(in crate::apps) async fn tell_outcome(&mut self, ws: &mut Ws, outcome: RequestOutcome) -> Result<(), Gone> {
        let sent = send(ws, &outcome.message).await;
        match sent {
            Ok(()) => self.host.pending_outcomes.told(&self.user, &self.app.package, outcome.request.as_deref()),
            Err(Gone) => self.unsent.push(outcome),
        }
        sent
    }

    /// Nothing more comes to this socket: what waits is told on the app's next one.
    pub(in crate::apps) fn leave_outcomes(&mut self, messages: &mut mpsc::Receiver<ToApp>) {
        messages.close();
        let mut unsent = std::mem::take(&mut self.unsent);
        while let Ok(message) = messages.try_recv() {
            match message {
                ToApp::RequestOutcome(outcome) => unsent.push(outcome),
                ToApp::Json(_) | ToApp::Spoken(_) | ToApp::Close { .. } | ToApp::Drop => {}
            }
        }
        // The app cannot go on with these streams over another socket.
        for request in self.relay.stop(None) {
            // The gateway may stop before the app is back.
            self.host.pending_outcomes.begun(&self.user, &self.app.package, &request);
            let message = wire::audio_play_response(&request, Err(CUT_OFF));
            unsent.push(RequestOutcome { request: Some(request), message, wall_ms: clock::wall_ms() });
        }
        self.host.pending_outcomes.left(&self.user, &self.app.package, &self.out, unsent);
    }

    /// Starts to collect a stream.
    pub(super) fn start_stream(&mut self, number: &str) -> Vec<Value> {
        match self.relay.start(number) {
            Ok((url, replaced)) => {
                let mut answers = interrupted(replaced);
                answers.push(json!({"type": "audio_stream_ready", "streamId": number, "streamUrl": url}));
                answers
            }
            Err(why) => vec![wire::error("AUDIO_STREAM_NOT_AVAILABLE", &why, clock::wall_ms())],
        }
    }

    /// Plays a complete stream, if playback was requested.
    pub(super) fn end_stream(&mut self, number: &str, frame: &str) -> Vec<Value> {
        let whole = self.relay.end(number);
        whole.map(|whole| self.play_whole(whole, frame)).unwrap_or_default()
    }
}

/// The answers of requests for streams that are dropped before they are played.
fn interrupted(requests: impl IntoIterator<Item = String>) -> Vec<Value> {
    let answer = |request: String| wire::audio_play_response(&request, Err(speech::INTERRUPTED));
    requests.into_iter().map(answer).collect()
}

/// The track of a number; out of range: the nearest.
pub(in crate::apps) fn track(number: f32) -> u8 {
    number as u8
}
