//! The core's outputs as readable lines, which a scenario can expect.

use gateway_core::{
    input::{Announcement, AnnouncementId, AnnouncementVoice},
    output::{Output, Record, UserOutput},
    vocab::{Content, DisplayCommand, Message, Part, Pending, Preference, Role, Settlement, Side, SoundCoding, View},
};

fn side_name(side: &Side) -> &str {
    match side {
        Side::BuiltIn(None) => "",
        Side::BuiltIn(Some(name)) | Side::App(name) | Side::Mcp(name) | Side::Capability(name) => name,
    }
}

pub fn output(device: &str, output: &Output) -> Option<String> {
    let text = match output {
        Output::Transcribe { utterance, kind, from_us: None, .. } => format!("transcribe {utterance} {}", lower(kind)),
        Output::Transcribe { utterance, kind, from_us: Some(us), .. } => {
            format!("transcribe {utterance} {} from {}", lower(kind), *us as f64 / 1e6)
        }
        Output::Translate { utterance } => format!("translate {utterance}"),
        Output::Wake(outcome) => format!("wake {}", lower(outcome)),
        Output::CancelTranscribe { utterance, .. } => format!("cancel-transcribe {utterance}"),
        Output::MatchCommand { utterance, text, pending, .. } => {
            format!("match {utterance} \"{text}\"{}", pending_line(pending.as_ref()))
        }
        Output::SetVocabulary(sentences) => format!("vocabulary {}", sentences.len()),
        Output::MeasureFrom { utterance, from_us } => format!("measure {utterance} from {}", *from_us as f64 / 1e6),
        Output::PauseAfter { utterance, silence_us } => format!("pause-after {utterance} {} ms", silence_us / 1_000),
        Output::CloseUtterance { utterance } => format!("close {utterance}"),
        Output::SetMuted { muted, stays } => format!("muted {muted}{}", if *stays { " stays" } else { "" }),
        Output::Listening { state, .. } => format!("listening {}", lower(state)),
        Output::Caption { turn, revision, last, addressed, text, .. } => format!(
            "caption {} {} \"{text}\" revision {revision} of turn {}",
            if *last { "final" } else { "partial" },
            if *addressed { "addressed" } else { "overheard" },
            turn.map_or(0, |turn| turn.id),
        ),
        Output::ExpectRequest { rank } => format!("expect-request {rank}"),
        Output::RequestTurn { turn, .. } => format!("request-turn {}", turn.id),
        Output::TurnReopened { turn, request } => format!("reopen {} {request:?}", turn.id),
        Output::AskModel { turn, rank, messages, pending } => {
            let of_rank = if *rank == 0 { String::new() } else { format!(" of rank {rank}") };
            format!("ask {}{of_rank} [{}]{}", turn.id, messages_line(messages), pending_line(pending.as_ref()))
        }
        Output::ModelUsed { rank, usage, outcome, .. } => {
            format!("used {rank} {} {} {}", lower(outcome), usage.input, usage.output)
        }
        Output::FallbackTold { reason, level } => format!("told of {} {}", lower(reason), lower(level)),
        Output::FollowUpsOffered { count, .. } => format!("offers {count}"),
        Output::CancelModel { turn } => format!("cancel-model {}", turn.id),
        Output::RunTool { call, .. } => format!("run {} {}", call.name, call.id),
        Output::Prefer(Preference { side, over }) => format!("prefer {} over {}", side_name(side), side_name(over)),
        Output::CancelTool { call_id, .. } => format!("cancel-tool {call_id}"),
        Output::ToolActivity { call_id, state, .. } => {
            format!("activity {call_id} {}", lower(state))
        }
        Output::ToolProgress { call_id, line, .. } => format!("doing {call_id} \"{line}\""),
        Output::Speak { text, from, .. } => format!("speak \"{text}\"{}", from_line(*from)),
        Output::EndSpeech { clause, .. } => format!("speak-end {clause}"),
        Output::Play { sound, piece, from, .. } => format!("play {sound} piece {piece}{}", from_line(*from)),
        Output::Hush { .. } => "hush".into(),
        Output::Display(DisplayCommand::Show { view, content, priority, duration_ms, .. }) => format!(
            "{} {} \"{}\"{}",
            if *view == View::Main { "show" } else { "dashboard" },
            lower(priority),
            content_line(content),
            duration_ms.map_or(String::new(), |ms| format!(" for {ms}")),
        ),
        Output::Display(DisplayCommand::Clear { view, .. }) => {
            if *view == View::Main { "clear" } else { "dashboard-clear" }.into()
        }
        Output::Chime(chime) => format!("chime {}", lower(chime)),
        Output::AskApproval(approval) => {
            format!("ask-approval {} \"{}\"", approval.id, approval.question.said)
        }
        Output::ApprovalSettled(settled) => settled_line(settled),
        Output::TurnDone { turn, messages, outcome } => {
            format!("done {} {} [{}]", turn.id, lower(outcome), messages_line(messages))
        }
        Output::Mark { stage, turn, .. } => format!("mark {} {}", turn.id, lower(stage)),
        Output::Announced { id, heard } => {
            format!("announced {} {}", announcement_id(*id), if *heard { "heard" } else { "unheard" })
        }
        Output::Undelivered { text } => format!("undelivered \"{text}\""),
        Output::CodeSound(coding) => sound(coding),
        Output::RestartTold { .. } => "restart-told".into(),
        Output::UtterancesSettled { until } => format!("dealt-with {until}"),
        Output::Heartbeat | Output::UtteranceLost { .. } | Output::EarOpen(_) | Output::QuestionOpen(_) => {
            return None;
        }
        Output::Close { reason } => format!("bye {}", lower(reason)),
    };
    Some(format!("{device}: {text}"))
}

/// Where a clause goes on of which a part was heard.
fn from_line(from: f32) -> String {
    if from > 0.0 { format!(" from {:.0} %", from * 100.0) } else { String::new() }
}

fn sound(coding: &SoundCoding) -> String {
    format!("code {} bit/s, {} ms, {} % lost", coding.bitrate, coding.packet_ms, coding.loss_percent)
}

pub fn user_output(output: &UserOutput) -> Option<String> {
    let text = match output {
        UserOutput::Grant { device, turn, history, .. } => {
            format!("grant {device} {} after {}", turn.id, history.len())
        }
        UserOutput::Summarise { request, messages, .. } => format!("summarise {request} [{}]", messages_line(messages)),
        UserOutput::Persist { record, .. } => match record {
            Record::Messages(messages) => format!("persist messages {}", messages.len()),
            Record::Spending(spending) => {
                format!("persist spending {} {} {}", spending.nano, spending.input, spending.output)
            }
            Record::Summary { text, behind } => format!("persist summary {text:?} behind {behind}"),
            Record::HistoryCleared => "persist cleared".into(),
            Record::ConversationBegan => "persist new conversation".into(),
            Record::Entry(entry) => {
                format!("persist entry {} due {}", entry.id, (entry.due_wall_ms - 1_800_000_000_000) / 1_000)
            }
            Record::EntryRemoved { id } => format!("persist removed {id}"),
        },
        UserOutput::Scheduled { request, entry } => {
            format!("scheduled {request} entry {}", entry.id)
        }
        UserOutput::Unscheduled { request, entry } => {
            format!("unscheduled {request} {}", if entry.is_some() { "gone" } else { "none" })
        }
        UserOutput::ScheduleFailed { request, reason } => {
            format!("schedule-failed {request} {reason}")
        }
        // Its effect is visible on the display.
        UserOutput::Timers { .. } => return None,
        UserOutput::Announce { device, announcement } => {
            let Announcement { id, voice: AnnouncementVoice::Words(say), .. } = announcement else {
                return Some(format!("user: announce {device} a recording"));
            };
            format!("announce {device} {} \"{say}\"", announcement_id(*id))
        }
        UserOutput::Withdraw { device, id } => format!("withdraw {device} {id}"),
        UserOutput::MessagesNotKept { device } => format!("not-kept {device}"),
        UserOutput::Ask { device, approval } => {
            format!("ask-on {} {}", device.as_deref().unwrap_or("nobody"), approval.id)
        }
        UserOutput::ApprovalSettled(settled) => settled_line(settled),
    };
    Some(format!("user: {text}"))
}

fn announcement_id(id: AnnouncementId) -> String {
    match id {
        AnnouncementId::Schedule(id) => id.to_string(),
        AnnouncementId::App(id) => format!("app-{id}"),
    }
}

fn settled_line(settled: &Settlement) -> String {
    let Settlement { id, outcome, by, arguments_hash, .. } = settled;
    format!("approval {id} {} by {} #{arguments_hash}", lower(outcome), lower(by))
}

/// Messages in one line: `user "..." | assistant "..." | call c1 | result c1 ok`.
pub fn messages_line(messages: &[Message]) -> String {
    let mut parts = Vec::new();
    for message in messages {
        for part in &message.parts {
            parts.push(match part {
                Part::Text { text } => format!("{} \"{text}\"", role(message.role)),
                Part::Image { mime, .. } => mime.clone(),
                Part::Thinking { provider, .. } => format!("thinking of {provider}"),
                Part::ToolCall { call } => format!("call {}", call.id),
                Part::ToolResult { call_id, result } => match &result.error {
                    Some(error) => format!("result {call_id} {:?}", error.code),
                    None if result.content.starts_with("[Left out") => format!("result {call_id} left-out"),
                    None => format!("result {call_id} ok"),
                },
            });
        }
    }
    parts.join(" | ")
}

/// What an utterance continues: `answering "..."` if a question was asked, `after "..."` otherwise.
fn pending_line(pending: Option<&Pending>) -> String {
    match pending {
        None => String::new(),
        Some(pending) if pending.calls.is_empty() => format!(" after {:?}", pending.words),
        Some(pending) => format!(" answering {:?}", pending.words),
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

fn content_line(content: &Content) -> String {
    match content {
        Content::Text { text } => text.replace('\n', "/"),
        Content::Card { title, text } => format!("{title}: {}", text.replace('\n', "/")),
        Content::Countdown { title, left_ms } => format!("{title} {left_ms} ms"),
        Content::Double { top, bottom } => format!("{top} | {bottom}"),
        Content::Dashboard { left, right } => format!("{left} | {right}"),
        Content::Bitmap { bitmap, text } => format!("{}x{} {text}", bitmap.width_px(), bitmap.height_px()),
    }
}

fn lower(value: &impl core::fmt::Debug) -> String {
    format!("{value:?}").to_lowercase()
}
