//! `ask`: text-only glasses for one request. They are a device like any other: the same device task, conversation,
//! history, tools and questions. Only pairing is omitted, since any process with access to the control socket may act
//! for any user.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Result, bail};
use device_protocol::{
    Buttons, ChannelBinding, Choice, Codecs, Decoded, DisplayAction, DisplayKind, Down, Frame, Layout, Sensors, Stamp,
    ToolState, Up, decode_down, encode, limits, up,
};
use gateway_core::vocab::{ApprovalChoice, Priority};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _},
    net::unix::OwnedWriteHalf,
    time::MissedTickBehavior,
};

use super::{Answer, names::check_name, reply::say};
use crate::{
    clock,
    device_task::{self, services::Services},
    identity::{Admitted, Asked},
    store::DeviceRecord,
    transport::memory,
};

/// Width of the display in characters: the longest answer that fits a frame is one page, and only the answer's own line
/// breaks break lines.
const COLUMNS: u16 = 4_000;
/// Lines of it.
const ROWS: u16 = 200;
/// Longest input from a client in bytes: an answer to a question takes about 30, and a turn has few questions.
const REPLIES_BYTES_MAX: u64 = 16 * 1024;

/// Events for the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the variants say what their fields are")]
pub enum Event {
    /// More of the answer; `anew`: it replaces the answer sent so far.
    Text {
        text: String,
        /// Whether it starts from the beginning.
        anew: bool,
    },
    /// Something else on the display.
    Shown {
        /// The line above; may be empty.
        title: String,
        text: String,
    },
    /// The state of a tool call.
    Tool {
        label: String,
        /// `started`, `finished`, `failed` or `cancelled`.
        state: String,
        /// Why it failed or was cancelled, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A question that requires a [`Reply`].
    Question {
        id: u32,
        /// The action in one line.
        title: String,
        /// Its arguments, one per line.
        text: String,
        /// Milliseconds until it counts as a no.
        expires_ms: u32,
    },
    /// The question was settled, here or elsewhere.
    Settled {
        id: u32,
        /// Whether it was a yes.
        yes: bool,
    },
    /// The answer is complete. Nothing follows.
    Done,
    /// The gateway ended the session. Nothing follows.
    Ended {
        /// Why, as text.
        message: String,
    },
}

/// A line from the client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// By the number that it was sent with.
    pub question: u32,
    /// Whether the call may be made.
    pub yes: bool,
}

/// Answers one request with its events. If the client disconnects, the turn is cancelled.
pub(super) async fn serve(
    read: impl AsyncBufRead + Unpin,
    mut write: OwnedWriteHalf,
    services: &Arc<Services>,
    user: String,
    text: &str,
) -> Result<()> {
    if let Err(message) = check_name(&user).and_then(|()| check_text(text)) {
        return say(&mut write, &Answer::Error { message }).await;
    }
    let (link, ends) = memory::link();
    let number = services.admission.next_session();
    let session = async {
        // Stopping the gateway waits for this token.
        let _open = services.admission.open.token();
        device_task::run(services.clone(), link, None, admitted(user, number)).await;
    };
    let heartbeat = Duration::from_millis(services.settings.now().conversation.heartbeat_ms.into());
    let glasses =
        Glasses { ends, heartbeat, is_connected: false, failures: BTreeMap::new(), sequence: 0, told: String::new() };
    let (_, told) = tokio::join!(session, glasses.run(services, read, write, text));
    told
}

fn check_text(text: &str) -> Result<(), String> {
    if text.trim().is_empty() || text.len() > limits::TEXT_BYTES_MAX {
        return Err(format!("a request has 1 to {} bytes", limits::TEXT_BYTES_MAX));
    }
    Ok(())
}

/// The device as if admitted by a handshake.
fn admitted(user: String, number: u32) -> Admitted {
    let record = DeviceRecord {
        key: [0; 32],
        name: "text".to_owned(),
        user,
        model: "text".to_owned(),
        paired_wall_ms: clock::wall_ms(),
        revoked: false,
    };
    let capabilities = up::Capabilities {
        codecs_up: Codecs::EMPTY,
        codecs_down: Codecs::EMPTY,
        audio_up_hz: 0,
        audio_down_hz: 0,
        display: up::Screen {
            kind: DisplayKind::Text,
            width_px: 0,
            height_px: 0,
            columns: COLUMNS,
            rows: ROWS,
            colour_bits: 0,
            captions: false,
        },
        speakers: 0,
        buttons: Buttons::EMPTY,
        sensors: Sensors::EMPTY,
        echo_cancelled: false,
        tools: 0,
        frame_bytes_max: 0,
        heartbeat_ms: 0,
        image_bytes_max: 0,
        hardware: 0,
        lc3_frame_us: 0,
        lc3_frame_bytes: 0,
    };
    let hello = up::HelloOwned {
        device_key: [0; 32],
        nonce_commitment: [0; 32],
        device_id: String::new(),
        model: record.model.clone(),
        firmware: String::new(),
        language: String::new(),
        capabilities,
        resume: None,
        binding: ChannelBinding::Exporter,
    };
    // A fingerprint never contains a dot.
    let asked = Asked { hello, sent_us: 0, received_us: clock::mono_us() };
    Admitted { id: format!("text.{number}"), record, asked }
}

/// The device's side of the link.
struct Glasses {
    ends: memory::Ends,
    /// Interval of heartbeats.
    heartbeat: Duration,
    /// Whether the conversation takes requests.
    is_connected: bool,
    /// Why calls failed, by number.
    failures: BTreeMap<u32, String>,
    sequence: u32,
    /// The part of the answer that was sent.
    told: String,
}

impl Glasses {
    /// Runs until the answer is complete, the client has disconnected, or the session has ended.
    async fn run(
        mut self,
        services: &Arc<Services>,
        read: impl AsyncBufRead + Unpin,
        mut write: OwnedWriteHalf,
        text: &str,
    ) -> Result<()> {
        let mut text = Some(text);
        let mut read = read.take(REPLIES_BYTES_MAX);
        let mut line = Vec::new();
        let mut beat = tokio::time::interval(self.heartbeat);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = beat.tick() => self.beat().await?,
                frame = self.ends.down.recv() => {
                    let Some(frame) = frame else {
                        let message = "the session is over".to_owned();
                        return say(&mut write, &Answer::Asked { event: Event::Ended { message } }).await;
                    };
                    if self.pass_on(&frame, &mut write).await? {
                        return Ok(());
                    }
                    if self.is_connected && let Some(text) = text.take() {
                        self.send(Up::TextInput(up::TextInput { text })).await?;
                    }
                }
                () = self.ends.answered.notified() => {
                    while let Ok(frame) = self.ends.down.try_recv() {
                        if self.pass_on(&frame, &mut write).await? {
                            return Ok(());
                        }
                    }
                    return say(&mut write, &Answer::Asked { event: Event::Done }).await;
                }
                // If a frame arrives first, the partly read line stays in `line`.
                read = read.read_until(b'\n', &mut line) => {
                    if read? == 0 {
                        return Ok(());
                    }
                    if line.ends_with(b"\n") {
                        let Ok(reply) = serde_json::from_slice::<Reply>(&line) else {
                            bail!("a client sent what is no answer to a question");
                        };
                        line.clear();
                        let choice = if reply.yes { ApprovalChoice::Yes } else { ApprovalChoice::No };
                        // A client of the control socket answers as an operator does. If the question is already
                        // settled, that has its own event.
                        drop(services.approvals.answer(reply.question.into(), choice).await);
                    }
                }
            }
        }
    }

    /// Tells the client what a frame says; returns whether the session is over with it.
    async fn pass_on(&mut self, frame: &[u8], write: &mut OwnedWriteHalf) -> Result<bool> {
        for event in self.seen(frame) {
            let last = matches!(event, Event::Ended { .. });
            say(write, &Answer::Asked { event }).await?;
            if last {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn send(&mut self, message: Up<'_>) -> Result<()> {
        self.sequence += 1;
        let stamp = Stamp { sequence: self.sequence, turn: 0, time_us: clock::mono_us() };
        let mut buffer = vec![0; limits::FRAME_BYTES_MAX];
        let length = encode(&Frame::new(stamp, message), &mut buffer)?;
        buffer.truncate(length);
        // A closed link is noticed at its other end.
        drop(self.ends.up.send(buffer.into()).await);
        Ok(())
    }

    fn seen(&mut self, frame: &[u8]) -> Vec<Event> {
        let Ok(Decoded::Frame(frame)) = decode_down(frame) else {
            return Vec::new();
        };
        match frame.message {
            // Running timers are not part of an answer.
            Down::Display(display) if display.priority == Priority::Timer as u8 => Vec::new(),
            Down::Display(display) if display.action == DisplayAction::Replace => {
                let (first, second) = (display.content.first, display.content.second);
                match display.content.layout {
                    Layout::TextWall => self.text(first).into_iter().collect(),
                    _ => vec![Event::Shown { title: first.to_owned(), text: second.to_owned() }],
                }
            }
            Down::ToolActivity(activity) => {
                let state = match activity.state {
                    ToolState::Started => "started",
                    ToolState::Finished => "finished",
                    ToolState::Cancelled => "cancelled",
                    _ => "failed",
                };
                while let Ok(failure) = self.ends.failures.try_recv() {
                    self.failures.insert(failure.call, failure.why);
                }
                // If a call fails at once, the reason is here before its start is read.
                let is_without_result = matches!(state, "failed" | "cancelled");
                let why = is_without_result.then(|| self.failures.remove(&activity.call)).flatten();
                vec![Event::Tool { label: activity.label.to_owned(), state: state.to_owned(), why }]
            }
            Down::ApprovalRequest(request) => vec![Event::Question {
                id: request.approval,
                title: request.title.to_owned(),
                text: request.message.to_owned(),
                expires_ms: request.expires_ms,
            }],
            Down::ApprovalSettled(settled) => {
                vec![Event::Settled { id: settled.approval, yes: settled.choice == Choice::Yes }]
            }
            // The conversation reports its state as soon as it has a device.
            Down::Listening(_) => {
                self.is_connected = true;
                Vec::new()
            }
            Down::Reject(reject) => vec![Event::Ended { message: reject.message.to_owned() }],
            Down::Goodbye(goodbye) => vec![Event::Ended { message: goodbye.message.to_owned() }],
            _ => Vec::new(),
        }
    }

    /// Sends a heartbeat. Heartbeats belong to the link and are not counted.
    async fn beat(&mut self) -> Result<()> {
        let counted = self.sequence;
        self.send(Up::Heartbeat(up::Heartbeat { echo_us: 0, held_us: 0 })).await?;
        self.sequence = counted;
        Ok(())
    }

    /// The new part of a growing text.
    fn text(&mut self, text: &str) -> Option<Event> {
        let (text, anew) = match text.strip_prefix(self.told.as_str()) {
            Some("") => return None,
            Some(more) if !self.told.is_empty() => (more.to_owned(), false),
            _ => (text.to_owned(), true),
        };
        if anew {
            self.told.clear();
        }
        self.told.push_str(&text);
        Some(Event::Text { text, anew })
    }
}
