//! The lines of a scenario that cause events.

use gateway_core::{
    input::{Announcement, AnnouncementId, AnnouncementVoice, Button, Input, UserInput},
    vocab::{
        AnsweredBy, AppEvent, AppKind, Approval, ApprovalChoice, Attachment, Bitmap, CommandMatch, Content,
        DeviceFacts, DrawingDuration, Due, ErrorCode, FailureKind, LostCall, LostTurn, MicrophoneFault, Question,
        Remains, ScheduleChange, ScheduleKind, ToolFlags, ToolResult, Translation, Turn, Unkept, Usage, View,
        VoiceFact,
    },
};

use super::{Run, given::given, seconds};
use crate::world::{ModelEnd, ModelScript, Recogniser, ToolScript, World};

/// A line split into words; quoted text is one word.
pub(super) struct Words {
    pub(super) words: Vec<(String, bool)>,
}

impl Words {
    fn new(line: &str) -> Self {
        let mut words = Vec::new();
        for (index, piece) in line.split('"').enumerate() {
            if index % 2 == 1 {
                words.push((piece.to_string(), true));
            } else {
                words.extend(piece.split_whitespace().map(|word| (word.to_string(), false)));
            }
        }
        Self { words }
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|(known, quoted)| !quoted && known == word)
    }

    /// The word after `word`.
    pub(super) fn after(&self, word: &str) -> Option<&str> {
        let index = self.words.iter().position(|(known, quoted)| !quoted && known == word)?;
        self.words.get(index + 1).map(|(next, _)| next.as_str())
    }

    pub(super) fn number_after(&self, word: &str) -> Result<Option<u64>, String> {
        self.after(word).map(seconds).transpose()
    }

    pub(super) fn get(&self, index: usize) -> &str {
        self.words.get(index).map_or("", |(word, _)| word.as_str())
    }

    pub(super) fn quoted(&self) -> Option<&str> {
        self.words.iter().find(|(_, quoted)| *quoted).map(|(word, _)| word.as_str())
    }
}

#[expect(clippy::too_many_lines, reason = "a plain match, one word of the script after another")]
pub(super) fn act(run: &mut Run, line: &str) -> Result<(), String> {
    let words = Words::new(line);
    if words.get(0) == "given" {
        return given(run, &words);
    }
    let world = run.world()?;
    let device = match words.after("on") {
        Some(name) => world.devices.iter().position(|device| device.name == name).ok_or("no such device")?,
        None => 0,
    };
    match words.get(0) {
        "wearer" => wearer(world, device, &words),
        "model" => model(world, &words),
        "tool" => tool(world, &words),
        "recogniser" => recogniser(world, &words),
        "translation" => {
            let from = words.after("from").filter(|from| *from != "English").map(str::to_owned);
            let text = words.quoted().map(str::to_owned);
            let translation = text.filter(|_| !words.has("fails")).map(|text| Translation { text, from });
            world.translations.push_back((if words.has("once") { 10 } else { 500 }, translation));
            Ok(())
        }
        "third-pass" => {
            world.third_pass = words.quoted().map(str::to_owned);
            Ok(())
        }
        "second-pass" => {
            world.second_pass = words.quoted().map(str::to_owned);
            world.second_pass_fails = words.has("fails");
            world.second_pass_sure =
                words.number_after("sure")?.map_or(0.9, |thousandths| thousandths as f32 / 1_000.0);
            world.second_pass_ms =
                if words.has("never") { None } else { Some(words.number_after("after")?.unwrap_or(120)) };
            Ok(())
        }
        "none" | "beginning" | "misheard" | "incomplete" | "free-text" | "closed" => {
            let matched = match words.get(0) {
                "none" => CommandMatch::None,
                "beginning" => CommandMatch::Beginning,
                "misheard" => CommandMatch::Misheard,
                "incomplete" => CommandMatch::Incomplete,
                "closed" => CommandMatch::Closed,
                _ => CommandMatch::FreeText,
            };
            world.matched.insert(words.quoted().ok_or("which text?")?.to_owned(), matched);
            Ok(())
        }
        "voice" => {
            let clause = words.after("fails").and_then(|word| word.parse().ok()).ok_or("which clause?")?;
            world.devices[device].tts_fails.insert(clause);
            Ok(())
        }
        "speaker" => {
            if words.has("stops") {
                world.stop_playing(device);
                return Ok(());
            }
            world.devices[device].plays = words.has("works");
            Ok(())
        }
        "restarted" => {
            let mut titles = words.words.iter().filter(|(_, quoted)| *quoted).map(|(text, _)| text.clone());
            let call = titles.next().map(|title| LostCall { title, done: titles.collect() });
            let unknown = call.into_iter().collect();
            let turn = Some(LostTurn { unknown, ..LostTurn::default() });
            input(world, device, Input::Restarted(Remains { turn, ..Remains::default() }))
        }
        "repeats" => {
            let backlog_ms = words.number_after("repeats")?.and_then(|ms| u32::try_from(ms).ok()).ok_or("how much?")?;
            input(world, device, Input::SoundRepeated { backlog_ms })
        }
        "microphone" => {
            if words.has("lost") {
                return input(world, device, Input::SentenceLost);
            }
            if let Some(fault) = MicrophoneFault::ALL.into_iter().find(|fault| words.get(2) == fault.name()) {
                return input(world, device, Input::Microphone { fault, present: words.get(1) == "is" });
            }
            if let Some(packets) = words.after("misses") {
                let packets = packets.parse().map_err(|_| "how many packets?")?;
                let until_us = world.now_ms * 1_000;
                return input(world, device, Input::SoundMissed { packets, until_us });
            }
            world.devices[device].records = words.has("works");
            Ok(())
        }
        "photo" => input(world, device, Input::NotKept(Unkept::Photo)),
        "press" => input(world, device, pressed(&words, Button::Press)),
        "hold" => input(world, device, Input::Button(Button::LongPress)),
        "talk" => {
            let at_us = world.now_ms.saturating_sub(words.number_after("old")?.unwrap_or(0)) * 1_000;
            let button = if words.has("up") { Button::Up { at_us } } else { Button::Down { at_us } };
            input(world, device, pressed(&words, button))
        }
        "mute" => input(world, device, Input::Mute(true)),
        "unmute" => input(world, device, Input::Mute(false)),
        "type" => {
            let text = words.quoted().ok_or("type what?")?.to_string();
            input(world, device, if words.has("before") { Input::TextRepeated(text) } else { Input::Text(text) })
        }
        "apply" => input(world, device, Input::ApplyTools),
        "shutdown" => input(world, device, Input::Shutdown),
        "status" => input(world, device, Input::Status(status(&words)?)),
        "brief" => {
            let texts = words.words.iter().filter(|(_, quoted)| *quoted).map(|(text, _)| text.clone());
            input(world, device, Input::Briefing(texts.collect()))
        }
        "link" => link(world, device, &words),
        "clock" => {
            let jump: i64 = words.after("jumps").and_then(|word| word.parse().ok()).ok_or("how far?")?;
            world.wall_ms += jump * 1_000;
            Ok(())
        }
        "store" => {
            world.store_works = !words.has("fails");
            world.store_ms = if words.has("hangs") { None } else { Some(words.number_after("takes")?.unwrap_or(5)) };
            Ok(())
        }
        "timer" | "reminder" | "remove" | "extend" => schedule(world, &words),
        "forget" => {
            world.user_input(UserInput::ClearHistory);
            Ok(())
        }
        "new" => {
            world.user_input(UserInput::NewConversation);
            Ok(())
        }
        "restart" => {
            let down = words.number_after("after")?.unwrap_or(0);
            world.restart(down, words.has("back"));
            Ok(())
        }
        "app" => app(world, device, &words),
        "look" => input(world, device, Input::Look { up: words.has("up") }),
        "approval" => approval(world, device, &words),
        "tap" => {
            let (choice, id) = answer(&words)?;
            input(world, device, Input::ApprovalAnswered { id, choice, by: AnsweredBy::Tap })
        }
        "operator" => {
            let (choice, id) = answer(&words)?;
            match world.asked_on.get(&id).copied() {
                Some(device) => world.input(device, Input::ApprovalAnswered { id, choice, by: AnsweredBy::Operator }),
                None => world.user_input(UserInput::ApprovalAnswered { id, choice }),
            }
            Ok(())
        }
        "take" => {
            let id = words.get(2).parse().map_err(|_| "which question?")?;
            world.user_input(UserInput::ApprovalWithdrawn { id });
            input(world, device, Input::ApprovalWithdrawn { id })
        }
        "announce" => {
            let id = announcement_id(&words)?;
            let say = words.quoted().unwrap_or_default().to_string();
            let show = Some(Content::Card { title: "Notice".into(), text: say.clone() });
            let voice = AnnouncementVoice::Words(say);
            input(world, device, Input::Announce(Announcement { id, voice, show }))
        }
        "whisper" => {
            let id = announcement_id(&words)?;
            let voice = AnnouncementVoice::Words(words.quoted().unwrap_or_default().to_string());
            input(world, device, Input::Announce(Announcement { id, voice, show: None }))
        }
        "sound" => {
            let id = announcement_id(&words)?;
            let (AnnouncementId::App(sound) | AnnouncementId::Schedule(sound)) = id;
            let ms = words.number_after("for")?.unwrap_or(1_000);
            world.sounds.insert(sound, ms);
            let voice = AnnouncementVoice::Recording { sound, ms: u32::try_from(ms).map_err(|_| "how long?")? };
            input(world, device, Input::Announce(Announcement { id, voice, show: None }))
        }
        "withdraw" => {
            let id = announcement_id(&words)?;
            input(world, device, Input::Withdraw { id })
        }
        "progress" => {
            let turn = world.devices[device].turns_open.iter().next_back().copied().ok_or("no turn is under way")?;
            let (call_id, line) = (words.get(1).to_owned(), words.quoted().ok_or("what does it do?")?.to_owned());
            input(world, device, Input::ToolProgress { turn, call_id, line })
        }
        // A single voice fact: a phrase that was heard in this utterance, or one that begins out of turn.
        "fact" => {
            let at_us = world.now_ms * 1_000;
            let number = |verb| words.after(verb).and_then(|word| word.parse().ok());
            if let Some(utterance) = number("voice") {
                // As many looks as tell that it is no echo any more.
                input(world, device, Input::Voice(VoiceFact::Echo { utterance, likeness: 0.1 }))?;
                return input(world, device, Input::Voice(VoiceFact::Echo { utterance, likeness: 0.1 }));
            }
            let heard = number("heard").map(|utterance| VoiceFact::WakeHeard { utterance, at_us, score: 0.9 });
            let echo = || number("echo").map(|utterance| VoiceFact::Echo { utterance, likeness: 0.9 });
            let fact = match heard.or_else(echo) {
                Some(fact) => fact,
                None => {
                    let utterance = number("started").ok_or("which utterance?")?;
                    VoiceFact::SpeechStarted { utterance, at_us, voiced_us: 0 }
                }
            };
            input(world, device, Input::Voice(fact))
        }
        // A turn that the conversation does not know, and which therefore never ends.
        "followed" => input(world, device, Input::Followed(words.has("yes"))),
        "orphan-turn" => {
            let turn = Turn { id: 77, revision: 0 };
            let device = world.devices[device].info.id.clone();
            world.user_input(UserInput::TurnRequested { device, turn });
            Ok(())
        }
        "stale" => {
            world.stale_models = true;
            Ok(())
        }
        _ => Err("not understood".into()),
    }
}

fn input(world: &mut World, device: usize, input: Input) -> Result<(), String> {
    world.input(device, input);
    Ok(())
}

fn pressed(words: &Words, button: Button) -> Input {
    if words.has("before") { Input::ButtonRepeated(button) } else { Input::Button(button) }
}

fn status(words: &Words) -> Result<DeviceFacts, String> {
    Ok(DeviceFacts {
        battery_percent: words.after("battery").map(str::parse).transpose().map_err(|_| "how many percent?")?,
        charging: words.has("charging").then_some(true),
        connection: words.after("by").map(Into::into),
    })
}

fn wearer(world: &mut World, device: usize, words: &Words) -> Result<(), String> {
    let score = words.after("score").map(|word| word.parse().map_err(|_| "no score")).transpose()?;
    match words.get(1) {
        "says" => {
            let mut parts: Vec<(u64, u64, String)> = Vec::new();
            let mut pause = 0;
            for (index, (word, quoted)) in words.words.iter().enumerate() {
                if *quoted {
                    let length = 300 * word.split_whitespace().count() as u64;
                    parts.push((pause, length, word.clone()));
                } else if word == "in"
                    && let Some(last) = parts.last_mut()
                {
                    last.1 = seconds(words.get(index + 1))?;
                } else if word == "pauses" {
                    pause = seconds(words.get(index + 1))?;
                }
            }
            let parts: Vec<(u64, u64, &str)> =
                parts.iter().map(|(pause, length, text)| (*pause, *length, text.as_str())).collect();
            let utterance = world.devices[device].next_utterance;
            world.speak(device, &parts, score);
            if let Some(phrase) = words.number_after("heard")? {
                let at_us = (world.now_ms + phrase) * 1_000;
                let fact = VoiceFact::WakeHeard { utterance, at_us, score: 0.9 };
                let late = words.number_after("late")?.unwrap_or(150);
                world.after(phrase + late, crate::world::Event::Voice(device, fact));
            }
            Ok(())
        }
        // Voice without words, or a noise.
        "coughs" => {
            let length = words.number_after("for")?.unwrap_or(200);
            world.speak(device, &[(0, length, "")], score);
            Ok(())
        }
        // So long that the listener ends the utterance.
        "rambles" => {
            let text = words.quoted().unwrap_or_default().to_string();
            world.speak(device, &[(0, 600_000, "")], None);
            let id = world.devices[device].next_utterance - 1;
            if let Some(said) = world.devices[device].utterances.get_mut(&id) {
                said.parts = vec![(world.now_ms, 1, text)];
            }
            let length = words.number_after("for")?.unwrap_or(30_000);
            let at_us = (world.now_ms + length) * 1_000;
            world.after(length, crate::world::Event::Voice(device, VoiceFact::Ended { utterance: id, at_us }));
            Ok(())
        }
        _ => Err("what does the wearer do?".into()),
    }
}

fn model(world: &mut World, words: &Words) -> Result<(), String> {
    if words.get(1) == "sums" {
        world.summaries.push_back(words.quoted().unwrap_or_default().into());
        return Ok(());
    }
    let end = if words.has("silent") {
        ModelEnd::Silent
    } else if words.has("filtered") {
        ModelEnd::Filtered
    } else if words.has("fails") {
        ModelEnd::Failed(match words.after("fails").unwrap_or_default() {
            "limited" => FailureKind::Limited,
            "refused" => FailureKind::Refused,
            "auth" => FailureKind::Auth,
            "bad_call" => FailureKind::BadCall,
            "bug" => FailureKind::Bug,
            _ => FailureKind::Transient,
        })
    } else {
        ModelEnd::Done
    };
    let mut calls = Vec::new();
    for (index, (word, quoted)) in words.words.iter().enumerate() {
        if !quoted && (word == "calls" || word == "and") {
            calls.push((words.get(index + 1).to_string(), words.get(index + 2).to_string()));
        }
    }
    let once = Ok(usize::from(!words.has("adding")));
    let times = words.after("times").map_or(once, str::parse).map_err(|_| "how many times?")?;
    world.models.push_back(ModelScript {
        after: words.number_after("after")?.unwrap_or(200),
        text: words.quoted().unwrap_or_default().repeat(times),
        calls,
        adds: words.after("adding").unwrap_or_default().into(),
        end,
        usage: match words.words.iter().position(|(word, quoted)| !quoted && word == "uses") {
            Some(at) => Usage {
                input: words.get(at + 1).parse().map_err(|_| "how many tokens?")?,
                output: words.get(at + 2).parse().map_err(|_| "how many tokens?")?,
                cached: 0,
            },
            None => Usage::default(),
        },
        ponders: words.has("pondering"),
        on_box: words.has("on-box"),
        brief: words.after("briefly").map(str::to_owned),
        chooses: words.after("choosing").zip(words.after("over")).map(|(side, over)| (side.into(), over.into())),
        asks_about: words.after("about").map(str::to_owned),
    });
    Ok(())
}

fn tool(world: &mut World, words: &Words) -> Result<(), String> {
    let mut result = ToolResult { content: "done".into(), ..ToolResult::default() };
    if words.has("fails") {
        result = ToolResult::failed(ErrorCode::ExecutionError, "it broke", words.has("passing"));
    }
    if words.has("unknown") {
        result = ToolResult::failed(ErrorCode::ToolNotFound, "no such tool", false);
    }
    if let Some(bytes) = words.after("sees") {
        let bytes: usize = bytes.parse().map_err(|_| "how many bytes?")?;
        // Base64 of the first bytes of JPEG files.
        let data = format!("/9j/{}", "A".repeat(bytes.saturating_sub(4)));
        result.attachments.push(Attachment::Image { mime: "image/jpeg".into(), data });
    }
    if let Some(bytes) = words.after("tells") {
        result.content = "x".repeat(bytes.parse().map_err(|_| "how many bytes?")?);
    }
    if words.has("withdraws") {
        result.data = Some(serde_json::json!({"withdrawsPictures": true}));
    }
    if words.has("partly") {
        result.data = Some(serde_json::json!({"partlyDone": true}));
    }
    for (index, (word, quoted)) in words.words.iter().enumerate() {
        if !quoted && word == "suggests" {
            result.follow_ups.push(words.get(index + 1).into());
        }
    }
    result.say = words.after("says").map(Into::into);
    result.show = words.after("shows").map(|text| Content::Text { text: text.into() });
    if let Some(left_ms) = words.number_after("counts")? {
        result.show = Some(Content::Countdown { title: "Timer".into(), left_ms: left_ms as u32 });
    }
    result.handled_display = words.has("silently");
    let script = ToolScript {
        after: words.number_after("after")?.unwrap_or(100),
        result: (!words.has("hangs")).then_some(result),
        cancellable: !words.has("uncancellable"),
        flags: ToolFlags { slow: words.has("slow"), read_only: words.has("reads"), ..ToolFlags::default() },
        timeout_ms: words.number_after("within")?.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX)),
    };
    world.tools.insert(words.get(1).to_string(), script);
    Ok(())
}

fn recogniser(world: &mut World, words: &Words) -> Result<(), String> {
    world.recogniser = if words.has("dead") {
        Recogniser::Dead
    } else if words.has("fails") {
        Recogniser::Fails
    } else {
        Recogniser::Works
    };
    if let Some(delay) = words.number_after("takes")? {
        world.decode_ms = delay;
    }
    if words.has("hears") {
        world.foreign = words.has("another");
    }
    if words.has("unsure") {
        // Of what it has written, or of its last word only.
        world.sure = if words.has("last") { (0.9, 0.4) } else { (0.4, 0.9) };
    }
    if words.has("ends") {
        world.text_at_end = words.quoted().map(str::to_owned);
    }
    Ok(())
}

fn link(world: &mut World, device: usize, words: &Words) -> Result<(), String> {
    match words.get(1) {
        "lost" => world.lose(device),
        "resumes" => {
            world.connect(device, true);
            world.play_on(device);
        }
        "begins" => world.connect(device, false),
        "stalls" => world.devices[device].answers_heartbeat = false,
        "recovers" => world.recover(device),
        _ => return Err("what of the link?".into()),
    }
    Ok(())
}

fn schedule(world: &mut World, words: &Words) -> Result<(), String> {
    let request = words.after("as").and_then(|word| word.parse().ok()).unwrap_or(0);
    let text = words.quoted().unwrap_or_default().to_string();
    let span = words.number_after("in")?.unwrap_or(0);
    let change = match words.get(0) {
        "timer" => ScheduleChange::Add { due: Due::In { duration_ms: span }, kind: ScheduleKind::timer(text) },
        "reminder" if words.has("countdown") => {
            ScheduleChange::Add { due: Due::In { duration_ms: span }, kind: ScheduleKind::Reminder { text } }
        }
        "reminder" => {
            let wall_ms = world.now().wall_ms + i64::try_from(span).unwrap_or(0);
            ScheduleChange::Add { due: Due::At { wall_ms }, kind: ScheduleKind::Reminder { text } }
        }
        "extend" => ScheduleChange::Extend { id: words.get(1).parse().map_err(|_| "which entry?")?, more_ms: span },
        _ => ScheduleChange::Remove { id: words.get(1).parse().map_err(|_| "which entry?")? },
    };
    world.user_input(UserInput::Schedule { request, change });
    Ok(())
}

fn app(world: &mut World, device: usize, words: &Words) -> Result<(), String> {
    let package = words.get(1).to_string();
    let text = words.quoted().map(str::to_string);
    let kind = match words.after("as") {
        Some("background") => AppKind::Background,
        Some("dashboard") => AppKind::Dashboard,
        _ => AppKind::Foreground,
    };
    let draw = |content: Option<Content>| -> Result<AppEvent, String> {
        let duration = words.number_after("for")?.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX));
        Ok(AppEvent::Draw {
            package: package.clone(),
            view: if words.has("dashboard") { View::Dashboard } else { View::Main },
            content,
            duration: if words.has("once") { DrawingDuration::Once } else { duration.into() },
            force: words.has("force"),
        })
    };
    let event = match words.get(2) {
        "starts" => AppEvent::Starting { package, name: text.unwrap_or_default(), kind },
        "was" => AppEvent::Resumed { package, name: text.unwrap_or_default(), kind },
        "runs" => AppEvent::Running { package },
        "stops" => AppEvent::Stopped { package },
        "listens" => AppEvent::Listens { package, listens: true },
        "hears" => AppEvent::Listens { package, listens: false },
        "draws" if words.has("picture") => {
            let bitmap = Bitmap::new(9, 2, vec![0xff; 4]).ok_or("no picture")?;
            draw(Some(Content::Bitmap { bitmap, text: text.unwrap_or_default() }))?
        }
        "draws" => draw(text.map(|text| Content::Text { text }))?,
        "clears" => draw(None)?,
        "line" => AppEvent::DashboardLine { package, text },
        _ => return Err("what does the app do?".into()),
    };
    input(world, device, Input::App(event))
}

/// `5`: entry 5 of the schedule; `app-5`: announcement 5 of the apps.
fn announcement_id(words: &Words) -> Result<AnnouncementId, String> {
    let word = words.get(1);
    let id = match word.strip_prefix("app-") {
        Some(number) => number.parse().map(AnnouncementId::App),
        None => word.parse().map(AnnouncementId::Schedule),
    };
    id.map_err(|_| "which announcement?".into())
}

fn answer(words: &Words) -> Result<(ApprovalChoice, u64), String> {
    let choice = if words.has("yes") { ApprovalChoice::Yes } else { ApprovalChoice::No };
    Ok((choice, words.get(2).parse().map_err(|_| "which question?")?))
}

/// The first quoted text is spoken, the second one shown; a single one is both. `|` separates lines.
fn question(words: &Words) -> Question {
    let texts: Vec<&String> = words.words.iter().filter(|(_, quoted)| *quoted).map(|(text, _)| text).collect();
    let said = texts.first().map(|text| (*text).clone()).unwrap_or_default();
    let shown = texts.get(1).map_or_else(|| said.clone(), |text| text.replace('|', "\n"));
    Question { title: "notes.delete".into(), said, shown }
}

fn approval(world: &mut World, device: usize, words: &Words) -> Result<(), String> {
    let outside = words.has("outside");
    let turn = match words.after("turn") {
        None if outside => None,
        Some(id) => Some(Turn { id: id.parse().map_err(|_| "which turn?")?, revision: 0 }),
        None => Some(world.devices[device].turns_open.iter().next_back().copied().ok_or("no turn is open")?),
    };
    let approval = Approval {
        id: words.get(1).parse().map_err(|_| "which question?")?,
        turn,
        reference: 1,
        question: question(words),
        arguments_hash: words.after("hash").and_then(|word| word.parse().ok()).unwrap_or(42),
        expires_ms: u32::try_from(words.number_after("for")?.unwrap_or(15_000)).unwrap_or(u32::MAX),
    };
    if outside {
        world.user_input(UserInput::ApprovalAsked { approval, watched: words.has("watched") });
    } else {
        let state = &mut world.devices[device];
        let call = state.last_call.clone();
        // The record of before is kept for it.
        state.stored_left.retain(|left| Some(left) != call.as_ref());
        state.stored_asked.extend(call.map(|call| (approval.id, call)));
        world.input(device, Input::ApprovalAsked(approval));
    }
    Ok(())
}
