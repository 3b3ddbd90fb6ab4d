//! How the fakes handle the core's outputs.

use std::sync::Arc;

use gateway_core::{
    input::{AnnouncementId, Input, Playback, UserInput},
    output::{CloseReason, Output, Record, UserOutput},
    vocab::{
        CommandMatch, DisplayCommand, ErrorCode, Message, ModelEvent, Part, Pending, PendingCall, Preference, Side,
        StopReason, ToolCall, ToolFlags, ToolResult, Transcript, TranscriptKind, Translation, Turn, Unkept, Usage,
        View, VoiceFact,
    },
};

use super::{Event, Line, ModelEnd, Ms, Recogniser, ToolScript, VANISHED_MS, World, log, machines::Wanted};

/// Speaking time of a character, for the fake voice.
const MS_PER_CHAR: u64 = 60;
/// How much sound glasses keep while the link is lost.
const KEPT_MS: Ms = 10_000;
/// Length of a packet.
const PACKET_MS: Ms = 20;
/// How much faster than real time they replay it.
const REPLAY_SPEED: Ms = 4;
/// Until the first replayed sound arrives.
const ROUND_TRIP_MS: Ms = 40;

impl World {
    pub(super) fn happen(&mut self, event: Event) {
        match event {
            Event::To(device, input) => self.input(device, input),
            Event::ToUser(input) => self.user_input(input),
            Event::Voice(device, fact) => {
                // The gateway hears a wake phrase in what it has, with a link or without.
                if matches!(fact, VoiceFact::WakeHeard { .. }) || !self.is_kept(device, fact) {
                    self.hear(device, fact);
                }
            }
            Event::Replayed(device, fact) => self.hear(device, fact),
            Event::Silence(device, utterance, silence) => {
                let state = &self.devices[device];
                let Some(said) = state.utterances.get(&utterance).filter(|said| !said.closed) else {
                    return;
                };
                let fact = VoiceFact::Silence {
                    utterance,
                    at_us: (self.now_ms - silence) * 1_000,
                    silence_us: silence * 1_000,
                    score: said.score,
                };
                if !self.is_kept(device, fact) {
                    self.hear(device, fact);
                }
            }
            Event::Decoded(device, transcript) => {
                let cancelled = self.devices[device].utterances.get(&transcript.utterance).is_some_and(|said| {
                    transcript.revision < said.cancelled.0 && !said.cancelled.1.contains(&transcript.revision)
                });
                if !cancelled || self.stale_models {
                    self.input(device, Input::Transcript(transcript));
                }
            }
            Event::Model(device, turn, generation, event) => {
                if generation == self.model_generation || self.stale_models {
                    self.input(device, Input::Model { turn, event });
                }
            }
            Event::Tool(device, turn, call_id, result) => {
                if self.results_given.insert(call_id.clone()) {
                    self.input(device, Input::Tool { turn, call_id, result });
                }
            }
            Event::Play(device, generation) => self.play(device, generation),
        }
    }

    fn hear(&mut self, device: usize, fact: VoiceFact) {
        let (VoiceFact::SpeechStarted { utterance, .. }
        | VoiceFact::Paused { utterance, .. }
        | VoiceFact::Resumed { utterance, .. }
        | VoiceFact::Silence { utterance, .. }
        | VoiceFact::Ended { utterance, .. }
        | VoiceFact::Echo { utterance, .. }
        | VoiceFact::WakeHeard { utterance, .. }) = fact;
        // It is computed beside the task, so that the utterance may be over.
        if matches!(fact, VoiceFact::WakeHeard { .. }) || !self.devices[device].utterances[&utterance].closed {
            self.input(device, Input::Voice(fact));
        } else if let VoiceFact::Resumed { at_us, .. } = fact {
            // The wearer continued after the end was decided: a new utterance.
            self.goes_on(device, utterance, at_us);
        }
    }

    /// Whether the fact is not reported now. While the link is lost the glasses keep their sound for [`KEPT_MS`], and
    /// replay it before what they hear then; of a broken microphone only its silence is known, and late.
    fn is_kept(&mut self, device: usize, fact: VoiceFact) -> bool {
        let now_ms = self.now_ms;
        let state = &mut self.devices[device];
        if !state.records {
            return !matches!(fact, VoiceFact::Silence { silence_us, .. } if silence_us >= VANISHED_MS * 1_000);
        }
        if !state.connected || !state.answers_heartbeat {
            state.kept.push((now_ms, fact));
            return true;
        }
        let behind_ms = state.replays_until_ms.saturating_sub(now_ms);
        if behind_ms > 0 {
            self.after(behind_ms, Event::Replayed(device, fact));
        }
        behind_ms > 0
    }

    /// The link is back: what was kept follows, at four times its speed.
    pub(super) fn replay(&mut self, device: usize) {
        let kept = std::mem::take(&mut self.devices[device].kept);
        let oldest_ms = self.now_ms.saturating_sub(KEPT_MS);
        let delay = |at_ms: Ms| (at_ms.max(oldest_ms) - oldest_ms) / REPLAY_SPEED;
        let missed_ms = kept.first().map_or(0, |(at_ms, _)| oldest_ms.saturating_sub(*at_ms));
        if missed_ms > 0 {
            let packets = u32::try_from(missed_ms.div_ceil(PACKET_MS)).unwrap();
            self.input(device, Input::SoundMissed { packets, until_us: oldest_ms * 1_000 });
        }
        let start_ms = kept.first().map_or(0, |(at_ms, _)| delay(*at_ms));
        for (at_ms, fact) in kept.into_iter().filter(|(at_ms, _)| *at_ms >= oldest_ms) {
            let after_ms = delay(at_ms) - start_ms + ROUND_TRIP_MS;
            self.devices[device].replays_until_ms = self.now_ms + after_ms;
            self.after(after_ms, Event::Replayed(device, fact));
        }
    }

    fn goes_on(&mut self, device: usize, utterance: u32, at_us: u64) {
        let said = self.devices[device].utterances[&utterance].clone();
        let Some((_, length, words)) = said.parts.iter().find(|part| part.0 * 1_000 == at_us).cloned() else {
            return;
        };
        self.speak(device, &[(0, length, &words)], said.score);
    }

    /// Handles the outputs of the machines until there are none.
    pub(super) fn drain(&mut self) {
        while let Some(wanted) = self.machines.next(self.now()) {
            match wanted {
                Wanted::OfDevice(device, output) => {
                    self.note(log::output(&self.devices[device].name, &output));
                    self.act(device, output);
                }
                Wanted::OfUser(output) => {
                    self.note(log::user_output(&output));
                    self.act_for_user(output);
                }
            }
        }
    }

    fn note(&mut self, text: Option<String>) {
        if let Some(text) = text {
            self.log.push(Line { at: self.now_ms, text });
        }
    }

    #[expect(clippy::too_many_lines, reason = "a plain match, one output after another")]
    fn act(&mut self, device: usize, output: Output) {
        let id = self.devices[device].info.id.clone();
        match output {
            Output::Transcribe { utterance, revision, kind, from_us, .. } => {
                self.decode(device, (utterance, revision), kind, from_us);
            }
            Output::Translate { utterance } => {
                let whole = |said: &super::Utterance| {
                    said.parts.iter().map(|(_, _, text)| text.as_str()).collect::<Vec<_>>().join(" ")
                };
                let own = || {
                    let text = self.devices[device].utterances.get(&utterance).map(whole).unwrap_or_default();
                    (500, Some(Translation { text, from: None }))
                };
                let (after, translation) = self.translations.pop_front().unwrap_or_else(own);
                self.after(after, Event::To(device, Input::Translated { utterance, translation }));
            }
            Output::MatchCommand { utterance, revision, text, .. } => {
                let matched = self.matched.get(&text).copied().unwrap_or(self.matched_else);
                // Like the command engine: a command with free text is known already.
                let known = matched == CommandMatch::FreeText;
                let vocabulary = Some(if known { Arc::default() } else { Arc::new([text]) as Arc<_> });
                let matched = Input::CommandMatched { utterance, revision, matched, vocabulary };
                self.after(0, Event::To(device, matched));
            }
            Output::CancelTranscribe { utterance, revision, except } => {
                if let Some(said) = self.devices[device].utterances.get_mut(&utterance) {
                    said.cancelled = (revision, except);
                }
            }
            Output::CloseUtterance { utterance } => {
                if let Some(said) = self.devices[device].utterances.get_mut(&utterance) {
                    said.closed = true;
                }
            }
            Output::SetMuted { stays, .. } => self.devices[device].stored_mute = stays,
            Output::EarOpen(ear) => self.devices[device].stored_ear = ear,
            Output::QuestionOpen(question) => self.devices[device].stored_question = question,
            Output::RequestTurn { turn, request } => {
                self.devices[device].stored_request = Some(request);
                assert!(!self.devices[device].turns_done.contains(&turn), "{turn:?} is used twice");
                let is_new = self.devices[device].turns_open.insert(turn);
                assert!(is_new || self.devices[device].resumes, "{turn:?} is asked for twice");
                self.after(0, Event::ToUser(UserInput::TurnRequested { device: id, turn }));
            }
            Output::RestartTold { .. } => {
                self.devices[device].stored_cut_off = None;
                self.forget_left(device);
            }
            Output::TurnReopened { request, .. } => self.devices[device].stored_request = Some(request),
            Output::AskModel { turn, messages, .. } => {
                assert_light(&messages);
                self.ask_model(device, turn);
            }
            Output::ModelUsed { rank, usage, outcome, .. } => {
                self.after(0, Event::ToUser(UserInput::ModelUsed { rank, usage, outcome }));
            }
            Output::FallbackTold { reason, level } => {
                self.after(0, Event::ToUser(UserInput::FallbackTold { reason, level }));
            }
            Output::ApprovalSettled(settled) => drop(self.devices[device].stored_asked.remove(&settled.id)),
            Output::CancelModel { .. } => self.model_generation += 1,
            Output::RunTool { turn, call } => self.run_tool(device, turn, call),
            Output::CancelTool { turn, call_id } => self.cancel_tool(device, turn, call_id),
            Output::Speak { speech, clause, text, from, last, .. } => {
                let whole = text.chars().count() as Ms * MS_PER_CHAR;
                let skipped = (whole as f32 * from) as Ms;
                self.say(device, (speech, clause), (skipped, whole - skipped), last);
            }
            Output::EndSpeech { speech, clause } => self.say(device, (speech, clause), (0, 0), true),
            Output::Play { speech, clause, sound, piece, from, last } => {
                let piece_ms = u64::from(gateway_core::limits::SOUND_PIECE_MS);
                let left = self.sounds[&sound] - u64::from(piece) * piece_ms;
                assert_eq!(last, left <= piece_ms, "the last piece is known");
                let whole = left.min(piece_ms);
                let skipped = (whole as f32 * from) as Ms;
                self.say(device, (speech, clause), (skipped, whole - skipped), last);
            }
            Output::Hush { speech } => {
                if let Some(playing) = self.devices[device].speech.take_if(|playing| playing.id == speech)
                    && let Some(since) = playing.since
                {
                    self.played(device, &playing, since, Playback::Stopped);
                }
            }
            Output::TurnDone { turn, messages, .. } => {
                assert_light(&messages);
                // The turn may have been restarted meanwhile.
                let asked = Turn { revision: 0, ..turn };
                assert!(self.devices[device].turns_open.remove(&asked), "{turn:?} ends twice");
                self.devices[device].turns_done.insert(asked);
                self.devices[device].stored_request = None;
                self.forget_left(device);
                for part in messages.iter().flat_map(|message| &message.parts) {
                    if let Part::ToolResult { call_id, .. } = part {
                        *self.results_kept.entry(call_id.clone()).or_default() += 1;
                    }
                }
                self.after(0, Event::ToUser(UserInput::TurnDone { device: id, turn, messages }));
            }
            Output::Display(DisplayCommand::Show { view, revision, .. } | DisplayCommand::Clear { view, revision }) => {
                let last = self.devices[device].revisions.insert(view == View::Main, revision);
                assert!(last < Some(revision), "revision {revision} after {last:?}");
            }
            Output::Undelivered { text } => self.after(0, Event::ToUser(UserInput::Undelivered { text })),
            Output::Announced { id: AnnouncementId::App(_), .. } => {}
            Output::Announced { id: AnnouncementId::Schedule(entry), heard } => {
                self.after(0, Event::ToUser(UserInput::Announced { device: id, id: entry, heard }));
            }
            Output::Heartbeat if self.devices[device].answers_heartbeat => {
                let at_us = self.now().mono_us + 20_000;
                self.after(20, Event::To(device, Input::Alive { at_us }));
            }
            Output::Close { reason } => {
                self.devices[device].connected = false;
                if reason == CloseReason::Silent {
                    self.after(0, Event::ToUser(UserInput::DeviceLeft { device: id }));
                }
            }
            _ => {}
        }
    }

    fn act_for_user(&mut self, output: UserOutput) {
        match output {
            UserOutput::Grant { device, turn, history, route } => {
                let index = self.device(&device);
                self.after(0, Event::To(index, Input::Granted { turn, history, route }));
            }
            UserOutput::Persist { ticket, record } => {
                let Some(delay) = self.store_ms else {
                    return;
                };
                if self.store_works {
                    self.store(record);
                }
                let answer = if self.store_works {
                    UserInput::Persisted { ticket }
                } else {
                    UserInput::PersistFailed { ticket, reason: "disk full".into() }
                };
                self.after(delay, Event::ToUser(answer));
            }
            UserOutput::Summarise { request, rank, messages } => {
                if let Some(text) = self.summaries.pop_front() {
                    let text = (!text.is_empty()).then_some(text);
                    let usage = Usage { input: 700, cached: 0, output: 30 };
                    self.after(500, Event::ToUser(UserInput::Summarised { request, text, rank, usage }));
                }
                assert!(!messages.is_empty());
            }
            UserOutput::Timers { device, running } => {
                let index = self.device(&device);
                self.after(0, Event::To(index, Input::Timers(running)));
            }
            UserOutput::Announce { device, announcement } => {
                let index = self.device(&device);
                self.after(0, Event::To(index, Input::Announce(announcement)));
            }
            UserOutput::Withdraw { device, id } => {
                let index = self.device(&device);
                self.after(0, Event::To(index, Input::Withdraw { id: AnnouncementId::Schedule(id) }));
            }
            UserOutput::MessagesNotKept { device } => {
                let index = self.device(&device);
                self.after(0, Event::To(index, Input::NotKept(Unkept::Messages)));
            }
            UserOutput::Ask { device: Some(device), approval } => {
                let index = self.device(&device);
                self.asked_on.insert(approval.id, index);
                self.after(0, Event::To(index, Input::ApprovalAsked(approval)));
            }
            _ => {}
        }
    }

    fn store(&mut self, record: Record) {
        match record {
            Record::Messages(messages) => self.stored_messages.extend(messages),
            Record::Spending(spending) => self.stored_spending = spending,
            Record::Summary { text, behind } => {
                self.stored_summary = Some((text, self.stored_messages.len().saturating_sub(behind)));
            }
            Record::HistoryCleared | Record::ConversationBegan => {
                self.stored_messages.clear();
                self.stored_summary = None;
            }
            Record::Entry(entry) => {
                self.stored.insert(entry.id, entry);
            }
            Record::EntryRemoved { id } => {
                self.stored.remove(&id);
            }
        }
    }

    fn device(&self, id: &str) -> usize {
        self.devices.iter().position(|device| device.info.id == id).unwrap()
    }

    fn decode(&mut self, device: usize, (utterance, revision): (u32, u16), kind: TranscriptKind, from_us: Option<u64>) {
        let from = from_us.map_or(0, |us| us / 1_000);
        if kind == TranscriptKind::Partial && !self.partials {
            return;
        }
        if matches!(kind, TranscriptKind::SecondPass | TranscriptKind::ThirdPass) {
            return self.decode_again(device, (utterance, revision), kind, from);
        }
        match self.recogniser {
            Recogniser::Dead => return,
            Recogniser::Fails => {
                self.after(self.decode_ms, Event::To(device, Input::TranscriptFailed { utterance, revision }));
                return;
            }
            Recogniser::Works => {}
        }
        let text = match self.devices[device].utterances.get_mut(&utterance) {
            Some(said) => {
                // What was cancelled are older ones.
                said.cancelled.0 = said.cancelled.0.min(revision);
                heard(&said.parts, from, self.now_ms)
            }
            None => String::new(),
        };
        let at_end = self.text_at_end.clone().filter(|_| kind != TranscriptKind::Partial);
        let text = at_end.unwrap_or(text);
        let ((confidence, last_word), foreign) = (self.sure, self.foreign);
        let transcript =
            Transcript { utterance, revision, kind, text, confidence, last_word, breaks_off: 0.0, foreign };
        self.after(0, Event::To(device, Input::TranscriptBegun { utterance, revision }));
        self.after(self.decode_ms, Event::Decoded(device, transcript));
    }

    fn decode_again(&mut self, device: usize, (utterance, revision): (u32, u16), kind: TranscriptKind, from: Ms) {
        let Some(delay) = self.second_pass_ms else {
            return;
        };
        if self.second_pass_fails {
            return self.after(delay, Event::To(device, Input::TranscriptFailed { utterance, revision }));
        }
        let said = self.devices[device].utterances.get(&utterance);
        let same = said.map_or(String::new(), |said| heard(&said.parts, from, self.now_ms));
        let third = self.third_pass.clone().filter(|_| kind == TranscriptKind::ThirdPass);
        let text = third.or_else(|| self.second_pass.clone()).unwrap_or(same);
        let (confidence, last_word, foreign) = (self.second_pass_sure, 0.9, self.foreign);
        let transcript =
            Transcript { utterance, revision, kind, text, confidence, last_word, breaks_off: 0.0, foreign };
        self.after(delay, Event::Decoded(device, transcript));
    }

    fn ask_model(&mut self, device: usize, turn: Turn) {
        self.model_generation += 1;
        let generation = self.model_generation;
        let Some(mut script) = self.models.pop_front() else {
            return;
        };
        let mut at = script.after;
        let thought = || ModelEvent::Thinking { provider: "fake".into(), data: serde_json::json!(1) };
        let mut said: Vec<(Ms, ModelEvent)> = Vec::new();
        if script.ponders {
            said.push((at, thought()));
        }
        if let Some(brief) = script.brief {
            let text = std::mem::take(&mut script.text);
            said.push((at, ModelEvent::NotUnderstood { text, without_model: "There are models.".into(), brief }));
        }
        if let Some((side, over)) = script.chooses {
            let preference = Preference { side: Side::App(side), over: Side::App(over) };
            said.push((at, ModelEvent::Chosen(preference)));
        }
        if let Some(words) = script.asks_about {
            let text = std::mem::take(&mut script.text);
            let calls = vec![PendingCall::default()];
            let pending = Pending { words, calls, asked: 1, ..Pending::default() };
            said.push((at, ModelEvent::Question { text, pending }));
        }
        // An answer of the local engine comes at once.
        let piece_end = |c| c == ' ' && !script.on_box;
        for word in script.text.split_inclusive(piece_end) {
            said.push((at, ModelEvent::Text(word.into())));
            at += 20;
        }
        let stop = match script.end {
            ModelEnd::Filtered => StopReason::Filtered,
            _ if script.calls.is_empty() => StopReason::End,
            _ => StopReason::ToolCalls,
        };
        for (name, id) in script.calls {
            let call = ToolCall { id, name, arguments: serde_json::json!({}) };
            if script.ponders && !script.text.is_empty() {
                said.push((at, thought()));
            }
            said.push((at, ModelEvent::ToolCall(call)));
            at += 10;
        }
        if !script.adds.is_empty() {
            said.push((at, ModelEvent::Text(script.adds)));
        }
        match script.end {
            ModelEnd::Done | ModelEnd::Filtered => said.push((at, ModelEvent::Done { stop, usage: script.usage })),
            ModelEnd::Failed(kind) => said.push((at, ModelEvent::Failed { kind, message: "scripted".into() })),
            ModelEnd::Silent => {}
        }
        if script.on_box {
            // An answer of the local engine is complete at once.
            let events = said.into_iter().map(|(_, event)| event).collect();
            return self.after(script.after, Event::To(device, Input::AnsweredOnBox { turn, events }));
        }
        for (at, event) in said {
            self.after(at, Event::Model(device, turn, generation, event));
        }
    }

    fn run_tool(&mut self, device: usize, turn: Turn, call: ToolCall) {
        *self.devices[device].calls_run.entry(call.id.clone()).or_default() += 1;
        self.devices[device].last_call = Some(call.clone());
        let script = self.tools.get(&call.id).cloned().unwrap_or(ToolScript {
            after: 50,
            result: Some(ToolResult::said("Done.")),
            cancellable: true,
            flags: ToolFlags::default(),
            timeout_ms: None,
        });
        let (flags, timeout_ms, call_id) = (script.flags, script.timeout_ms, call.id.clone());
        self.after(0, Event::To(device, Input::ToolKnown { turn, call_id, flags, timeout_ms }));
        if let Some(result) = script.result {
            self.after(script.after, Event::Tool(device, turn, call.id, result));
        }
    }

    fn cancel_tool(&mut self, device: usize, turn: Turn, call_id: String) {
        let cancellable = self.tools.get(&call_id).is_none_or(|script| script.cancellable);
        if cancellable {
            let result = ToolResult::failed(ErrorCode::Cancelled, "cancelled", false);
            self.after(50, Event::Tool(device, turn, call_id, result));
        }
    }
}

/// Checks that no kept result contains the bytes of an image.
fn assert_light(messages: &[Message]) {
    for part in messages.iter().flat_map(|message| &message.parts) {
        if let Part::ToolResult { result, .. } = part {
            let bytes = format!("{:?}", result.attachments).len();
            assert!(bytes < 500, "{bytes} bytes of attachments");
        }
    }
}

/// The words that are said whole between these two moments.
fn heard(parts: &[(Ms, Ms, String)], from: Ms, until: Ms) -> String {
    let mut heard: Vec<&str> = Vec::new();
    for (start, length, words) in parts {
        let words: Vec<&str> = words.split_whitespace().collect();
        let said_by =
            |moment: Ms| words.len() as f64 * (moment.saturating_sub(*start) as f64 / *length as f64).min(1.0);
        let (first, count) = (said_by(from).ceil() as usize, said_by(until).floor() as usize);
        heard.extend(words.iter().take(count).skip(first));
    }
    heard.join(" ")
}
