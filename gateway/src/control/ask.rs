//! `ask`: glasses that are no more than text, for one request. They are a device like any other: the same device task,
//! the same conversation, history, tools and questions; only that nobody has to pair them, since whoever may open the
//! control socket may speak for any user.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Result, bail};
use device_protocol::{
    Buttons, ChannelBinding, Choice, Codecs, Decoded, DisplayAction, DisplayKind, Down, Frame, Layout, ListeningState,
    Sensors, Stamp, ToolState, Up, decode_down, encode, limits, up,
};
use gateway_core::vocab::{ApprovalChoice, Priority};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _},
    net::unix::OwnedWriteHalf,
    time::MissedTickBehavior,
};

use super::{Answer, commands::check_name, server::say};
use crate::{clock, control::admin::Admin, device_task, identity::Admitted, store::DeviceRecord, transport::memory};

/// Size of the display in characters: with it an answer of the longest that a frame carries is one page, and only
/// the answer's own line breaks break lines.
const COLUMNS: u16 = 4_000;
/// Lines of it.
const ROWS: u16 = 200;
/// Bytes of all that a client may answer: a question's number and a yes are some 30, and a turn has few questions.
const REPLIES_BYTES_MAX: u64 = 16 * 1024;

/// What the one who asked is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the variants say what their fields are")]
pub enum Event {
    /// More of the answer; `anew`: in place of what was told of it so far.
    Text {
        text: String,
        /// Whether it is told from its beginning.
        anew: bool,
    },
    /// Something else on the display.
    Shown {
        /// The line above; may be empty.
        title: String,
        text: String,
    },
    /// A tool at work.
    Tool {
        label: String,
        /// `started`, `finished` or `failed`.
        state: String,
        /// Why it failed, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A question that wants a [`Reply`].
    Question {
        id: u32,
        /// What would be done, in a line.
        title: String,
        /// With which arguments, a line each.
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
    /// The gateway ended it. Nothing follows.
    Ended {
        /// Why, in words.
        message: String,
    },
}

/// A line from the one who asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// Number of the question.
    pub question: u32,
    /// The answer.
    pub yes: bool,
}

/// Answers one request, event by event. When the client goes away, the turn is cancelled.
pub(super) async fn serve(
    read: impl AsyncBufRead + Unpin,
    mut write: OwnedWriteHalf,
    admin: &Arc<Admin>,
    user: String,
    text: &str,
) -> Result<()> {
    if let Err(message) = check_name(&user).and_then(|()| check_text(text)) {
        return say(&mut write, &Answer::Error { message }).await;
    }
    let (mut link, ends) = memory::link();
    let number = admin.sessions.admission.next_session();
    let session = async {
        // Whoever stops the gateway waits for this.
        let _open = admin.sessions.admission.open.token();
        device_task::run(admin.sessions.clone(), &mut link, admitted(user, number), number).await;
        drop(link);
    };
    let heartbeat = Duration::from_millis(admin.config.conversation.heartbeat_ms.into());
    let glasses = Glasses { ends, heartbeat, failures: BTreeMap::new(), sequence: 0, told: String::new() };
    let (_, told) = tokio::join!(session, glasses.run(admin, read, write, text));
    told
}

fn check_text(text: &str) -> Result<(), String> {
    if text.trim().is_empty() || text.len() > limits::TEXT_BYTES_MAX {
        return Err(format!("a request has 1 to {} bytes", limits::TEXT_BYTES_MAX));
    }
    Ok(())
}

/// The device as a handshake would have found it.
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
    // No fingerprint of a key has a dot.
    Admitted { id: format!("text.{number}"), record, hello }
}

/// The device's side of the link.
struct Glasses {
    ends: memory::Ends,
    /// Between two heartbeats.
    heartbeat: Duration,
    /// Why calls failed, by their numbers.
    failures: BTreeMap<u32, String>,
    sequence: u32,
    /// What was told of the answer.
    told: String,
}

impl Glasses {
    /// Until the answer is complete, the client gone or the session over.
    async fn run(
        mut self,
        admin: &Arc<Admin>,
        read: impl AsyncBufRead + Unpin,
        mut write: OwnedWriteHalf,
        text: &str,
    ) -> Result<()> {
        let mut asked = false;
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
                    for event in self.seen(&frame) {
                        // The first state is that of a session that has just opened; the next one that is no work is
                        // the end of the answer.
                        if event == Event::Done && !asked {
                            asked = true;
                            self.send(Up::TextInput(up::TextInput { text })).await?;
                            continue;
                        }
                        let last = matches!(event, Event::Done | Event::Ended { .. });
                        say(&mut write, &Answer::Asked { event }).await?;
                        if last {
                            return Ok(());
                        }
                    }
                }
                // What was read of a line stays in `line` when a frame comes first.
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
                        // Whoever may open the control socket answers as an operator does. A question that is settled
                        // already says so by its own event.
                        drop(admin.approvals.answer(reply.question.into(), choice).await);
                    }
                }
            }
        }
    }

    async fn send(&mut self, message: Up<'_>) -> Result<()> {
        self.sequence += 1;
        let stamp = Stamp { sequence: self.sequence, turn: 0, time_us: clock::mono_us() };
        let mut buffer = vec![0; limits::FRAME_BYTES_MAX];
        let length = encode(&Frame::new(stamp, message), &mut buffer)?;
        buffer.truncate(length);
        // A link that is closed says so by its other end.
        drop(self.ends.up.send(buffer.into()).await);
        Ok(())
    }

    fn seen(&mut self, frame: &[u8]) -> Vec<Event> {
        let Ok(Decoded::Frame(frame)) = decode_down(frame) else {
            return Vec::new();
        };
        match frame.message {
            // Timers that run anyway are no part of an answer.
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
                    _ => "failed",
                };
                while let Ok(failure) = self.ends.failures.try_recv() {
                    self.failures.insert(failure.call, failure.why);
                }
                // A call that fails at once has done so before its start is read here.
                let why = (state == "failed").then(|| self.failures.remove(&activity.call)).flatten();
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
            // It thinks until the answer is there, and everything of it was sent before this.
            Down::Listening(listening) => match listening.state {
                ListeningState::Thinking | ListeningState::Speaking | ListeningState::Listening => Vec::new(),
                _ => vec![Event::Done],
            },
            Down::Reject(reject) => vec![Event::Ended { message: reject.message.to_owned() }],
            Down::Goodbye(goodbye) => vec![Event::Ended { message: goodbye.message.to_owned() }],
            _ => Vec::new(),
        }
    }

    /// Says that it is alive. A heartbeat belongs to the link and is not counted.
    async fn beat(&mut self) -> Result<()> {
        let counted = self.sequence;
        self.send(Up::Heartbeat(up::Heartbeat { echo_us: 0, held_us: 0 })).await?;
        self.sequence = counted;
        Ok(())
    }

    /// What is new of a text that grows.
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
