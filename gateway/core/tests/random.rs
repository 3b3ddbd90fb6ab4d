//! Random inputs: no panic, no turn that stays open, exactly one result per call, a bounded number of outputs.

mod script;
mod world;

use gateway_core::{
    conversation::{Config, Conversation, DisplayConfig},
    driver::Machine as _,
    input::{Announcement, AnnouncementId, AnnouncementVoice, Button, Input, Playback, UserInput},
    user::{self, User},
    vocab::{
        AnsweredBy, AppEvent, AppKind, Approval, ApprovalChoice, Candidate, CommandMatch, Content, DeviceInfo,
        DisplaySize, Due, ErrorCode, FailureKind, FallbackReason, MicrophoneFault, ModelEvent, ModelOutcome,
        ModelRoute, Pending, Question, ScheduleChange, ScheduleKind, ServiceLevel, SoundReport, StopReason, Timestamp,
        ToolCall, ToolFlags, ToolResult, Transcript, TranscriptKind, Translation, Turn, Unkept, Usage, View, VoiceFact,
    },
};
use proptest::prelude::*;
use world::{ModelEnd, ModelScript, Recogniser, ToolScript, World};

/// Maximum outputs of one input: the largest cases are an answer of many clauses on a device without a speaker, and the
/// end of everything at once.
const OUTPUTS_PER_INPUT_MAX: usize = 200;

const PLAYBACKS: [Playback; 3] = [Playback::Playing, Playback::Finished, Playback::Stopped];

const WORDS: &[&str] = &[
    "Hey Mentra.",
    "Mentra, what time is it?",
    "stop",
    "Yes.",
    "No.",
    "repeat that",
    "set a timer for",
    "never mind",
    "stop listening",
    "hello there my friend",
    "",
    "you",
    "Mentra, call",
    "[MUSIC]",
    "ok mentra stop",
    "Mentra, translate what they say and read it to me.",
    "stop translating",
];

/// Talk among people.
const TALK: &[&str] = &[
    "Did you see the game last night?",
    "Yes.",
    "No, I did not. Tell me about it.",
    "Thank you very much.",
    "What do you think?",
    "I told him to set the table.",
    "Stop.",
    "Repeat that.",
    "Go to sleep.",
    "Rook to e four.",
    "",
];

fn words() -> impl Strategy<Value = String> {
    prop_oneof![prop::sample::select(WORDS).prop_map(String::from), "\\PC{0,40}",]
}

fn turn() -> impl Strategy<Value = Turn> {
    (0_u32..5, 0_u16..2).prop_map(|(id, revision)| Turn { id, revision })
}

fn call_id() -> impl Strategy<Value = String> {
    (0_u8..4).prop_map(|id| format!("c{id}"))
}

fn fact() -> impl Strategy<Value = VoiceFact> {
    let utterance = 1_u32..4;
    (utterance, 0_u8..7, any::<u32>(), prop::option::of(any::<f32>())).prop_map(|(utterance, kind, us, score)| {
        let us = u64::from(us);
        match kind {
            0 => VoiceFact::SpeechStarted { utterance, at_us: us, voiced_us: us % 400_000 },
            1 => VoiceFact::Paused { utterance, at_us: us, silence_us: us % 300_000 },
            2 => VoiceFact::Resumed { utterance, at_us: us },
            3 => VoiceFact::Silence { utterance, at_us: us, silence_us: us % 2_000_000, score },
            4 => VoiceFact::WakeHeard { utterance, at_us: us, score: score.unwrap_or(0.9) },
            5 => VoiceFact::Echo { utterance, likeness: (us % 101) as f32 / 100.0 },
            _ => VoiceFact::Ended { utterance, at_us: us },
        }
    })
}

fn result() -> impl Strategy<Value = ToolResult> {
    (words(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(text, shows, handled, fails)| {
        let mut result = if fails {
            ToolResult::failed(ErrorCode::ExecutionError, text.clone(), false)
        } else {
            ToolResult::said(text.clone())
        };
        result.handled_display = handled;
        result.show = shows.then_some(Content::Text { text });
        result
    })
}

fn event() -> impl Strategy<Value = ModelEvent> {
    prop_oneof![
        words().prop_map(ModelEvent::Text),
        call_id().prop_map(|id| ModelEvent::ToolCall(ToolCall {
            id,
            name: "tool".into(),
            arguments: serde_json::json!({})
        })),
        words().prop_map(|text| ModelEvent::Question {
            pending: Pending { words: text.clone(), ..Pending::default() },
            text
        }),
        (0_u32..3_000).prop_map(|input| ModelEvent::Done {
            stop: StopReason::End,
            usage: Usage { input, cached: 0, output: input }
        }),
        Just(ModelEvent::Thinking { provider: "x".into(), data: serde_json::json!(1) }),
        Just(ModelEvent::Failed { kind: FailureKind::Bug, message: "x".into() }),
    ]
}

fn route() -> impl Strategy<Value = ModelRoute> {
    let candidate = (0_u8..4, 0_u8..3, any::<bool>()).prop_map(|(rank, level, images)| Candidate {
        rank,
        level: [ServiceLevel::Full, ServiceLevel::Fallback, ServiceLevel::Commands][usize::from(level)],
        images,
    });
    (prop::collection::vec(candidate, 0..4), any::<bool>()).prop_map(|(candidates, over_budget)| ModelRoute {
        candidates,
        reason: if over_budget { FallbackReason::Budget } else { FallbackReason::Outage },
        told: ServiceLevel::Full,
    })
}

fn device() -> impl Strategy<Value = DeviceInfo> {
    (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), 0_u16..20, 0_u16..4).prop_map(
        |(display, speaker, echo_cancelled, captions, columns, rows)| DeviceInfo {
            id: "glasses".into(),
            user: "wearer".into(),
            display: display.then_some(DisplaySize::new(columns, rows)),
            bitmaps: speaker,
            speaker,
            echo_cancelled,
            captions,
        },
    )
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        1 => (device(), any::<bool>()).prop_map(|(device, resumed)| Input::Connected { device, resumed }),
        1 => Just(Input::LinkLost),
        1 => any::<u64>().prop_map(|at_us| Input::Alive { at_us }),
        1 => (0_u32..40_000).prop_map(|backlog_ms| Input::SoundRepeated { backlog_ms }),
        4 => (any::<bool>(), any::<u32>(), any::<u32>(), any::<u32>())
            .prop_map(|(up, received, lost, waited_us)| Input::Sound(SoundReport { up, received, lost, waited_us })),
        2 => (0..MicrophoneFault::ALL.len(), any::<bool>())
            .prop_map(|(fault, present)| Input::Microphone { fault: MicrophoneFault::ALL[fault], present }),
        12 => fact().prop_map(Input::Voice),
        8 => (1_u32..4, 0_u16..8, 0_u8..5, words(), any::<bool>()).prop_map(|(utterance, revision, kind, text, foreign)| Input::Transcript(Transcript {
            utterance,
            revision,
            kind: [TranscriptKind::Partial, TranscriptKind::Speculative, TranscriptKind::Final, TranscriptKind::SecondPass, TranscriptKind::ThirdPass][usize::from(kind)],
            text,
            confidence: 0.5,
            last_word: 0.5,
            breaks_off: 0.0,
            foreign,
        })),
        2 => (1_u32..4, 0_u16..8).prop_map(|(utterance, revision)| Input::TranscriptFailed { utterance, revision }),
        2 => (1_u32..4, 0_u16..8).prop_map(|(utterance, revision)| Input::TranscriptBegun { utterance, revision }),
        4 => (1_u32..4, 0_u16..8, 0_u8..7).prop_map(|(utterance, revision, matched)| Input::CommandMatched {
            utterance,
            revision,
            matched: [CommandMatch::None, CommandMatch::Beginning, CommandMatch::Misheard, CommandMatch::Incomplete, CommandMatch::FreeText, CommandMatch::Exact, CommandMatch::Closed][usize::from(matched)],
            vocabulary: None,
        }),
        2 => words().prop_map(Input::Text),
        1 => words().prop_map(Input::TextRepeated),
        6 => (turn(), route()).prop_map(|(turn, route)| Input::Granted { turn, history: Vec::new(), route }),
        12 => (turn(), event()).prop_map(|(turn, event)| Input::Model { turn, event }),
        6 => (turn(), call_id(), result()).prop_map(|(turn, call_id, result)| Input::Tool { turn, call_id, result }),
        4 => (0_u32..4, 0_u16..4, any::<u64>()).prop_map(|(speech, clause, duration_us)| Input::Spoken { speech, clause, duration_us }),
        1 => (0_u32..4, 0_u16..4).prop_map(|(speech, clause)| Input::SpeechFailed { speech, clause }),
        8 => (0_u32..4, 0_u16..5, any::<f32>(), prop::sample::select(&PLAYBACKS[..])).prop_map(|(speech, clauses_done, clause_part, playback)| Input::Played { speech, clauses_done, clause_part, playback }),
        2 => prop::sample::select(vec![Button::Press, Button::LongPress, Button::Down { at_us: 1 }, Button::Up { at_us: 1 }, Button::Up { at_us: 900_000 }]).prop_map(Input::Button),
        1 => prop::sample::select(vec![Button::Press, Button::LongPress, Button::Down { at_us: 1 }, Button::Up { at_us: 1 }]).prop_map(Input::ButtonRepeated),
        1 => any::<bool>().prop_map(Input::Mute),
        1 => Just(Input::StaysMuted),
        1 => any::<bool>().prop_map(Input::Followed),
        4 => (1_u32..4, prop::option::of((words(), any::<bool>()))).prop_map(|(utterance, translated)| {
            let translation =
                translated.map(|(text, foreign)| Translation { text, from: foreign.then(|| "Spanish".into()) });
            Input::Translated { utterance, translation }
        }),
        2 => Just(Input::ApplyTools),
        1 => turn().prop_map(|turn| Input::AnsweredOnBox { turn, events: vec![ModelEvent::Text("Yes.".into())] }),
        2 => (0_u64..3, prop::option::weighted(0.9, turn()), any::<u32>()).prop_map(|(id, turn, expires_ms)| Input::ApprovalAsked(Approval {
            id,
            turn,
            reference: 1,
            question: Question { title: "Tool?".into(), said: "Really?".into(), shown: "a: 1\nb: 2".into() },
            arguments_hash: 1,
            expires_ms: expires_ms % 60_000,
        })),
        12 => app().prop_map(Input::App),
        1 => any::<bool>().prop_map(|up| Input::Look { up }),
        1 => prop_oneof![Just(Unkept::Photo), Just(Unkept::Messages)].prop_map(Input::NotKept),
        1 => (0_u64..3, any::<bool>()).prop_map(|(id, yes)| Input::ApprovalAnswered { id, choice: if yes { ApprovalChoice::Yes } else { ApprovalChoice::No }, by: AnsweredBy::Tap }),
        1 => (0_u64..3).prop_map(|id| Input::ApprovalWithdrawn { id }),
        2 => (0_u64..3, words()).prop_map(|(id, say)| {
            let show = (!say.is_empty()).then(|| Content::Text { text: say.clone() });
            Input::Announce(match say.is_empty() {
                true => {
                    let voice = AnnouncementVoice::Recording { sound: id, ms: 25_000 };
                    Announcement { id: AnnouncementId::App(id), voice, show }
                }
                false => Announcement { id: AnnouncementId::Schedule(id), voice: AnnouncementVoice::Words(say), show },
            })
        }),
    ]
}

fn app() -> impl Strategy<Value = AppEvent> {
    let package = (0_u8..20).prop_map(|number| format!("app{}", number.min(4)));
    (package, 0_u8..10, 0_u8..3, prop::option::of(0_u32..3_000), any::<bool>(), words()).prop_map(
        |(package, what, kind, duration_ms, force, text)| {
            let duration = duration_ms.into();
            let name = text.clone();
            let kind = [AppKind::Foreground, AppKind::Background, AppKind::Dashboard][usize::from(kind)];
            match what {
                0 => AppEvent::Starting { package, name, kind },
                1 => AppEvent::Resumed { package, name, kind },
                2 => AppEvent::Stopped { package },
                3 => AppEvent::DashboardLine { package, text: force.then_some(text) },
                9 => AppEvent::Listens { package, listens: force },
                4 => AppEvent::Draw { package, view: View::Main, content: None, duration, force },
                5 => {
                    let content = Some(Content::Text { text });
                    AppEvent::Draw { package, view: View::Dashboard, content, duration, force }
                }
                _ => {
                    let content = Some(Content::Card { title: name, text });
                    AppEvent::Draw { package, view: View::Main, content, duration, force }
                }
            }
        },
    )
}

/// What a conversation still has to deliver, as the shell sees it.
#[derive(Default)]
struct Debts {
    turns: std::collections::BTreeMap<Turn, usize>,
    done: std::collections::BTreeMap<Turn, usize>,
    calls: std::collections::BTreeMap<(Turn, String), usize>,
    results: std::collections::BTreeMap<(Turn, String), usize>,
    asked: usize,
    settled: usize,
    announced: usize,
}

impl Debts {
    fn drain(&mut self, conversation: &mut Conversation) {
        use gateway_core::{output::Output, vocab::Part};
        let mut count = 0;
        while let Some(output) = conversation.poll_output() {
            count += 1;
            match output {
                // Once more when the link is back.
                Output::RequestTurn { turn, .. } => {
                    self.turns.insert(turn, 1);
                }
                Output::RunTool { turn, call } => {
                    *self.calls.entry((Turn { revision: 0, ..turn }, call.id)).or_default() += 1;
                }
                Output::ApprovalSettled(_) => self.settled += 1,
                Output::Announced { .. } => self.announced += 1,
                Output::TurnDone { turn, messages, .. } => {
                    let turn = Turn { revision: 0, ..turn };
                    *self.done.entry(turn).or_default() += 1;
                    let (mut calls, mut results) = (Vec::new(), Vec::new());
                    for part in messages.into_iter().flat_map(|message| message.parts) {
                        match part {
                            Part::ToolCall { call } => calls.push(call.id),
                            Part::ToolResult { call_id, .. } => {
                                *self.results.entry((turn, call_id.clone())).or_default() += 1;
                                results.push(call_id);
                            }
                            Part::Text { .. } | Part::Image { .. } | Part::Thinking { .. } => {}
                        }
                    }
                    calls.sort();
                    results.sort();
                    assert_eq!(calls, results, "every call with its result");
                }
                Output::AskModel { rank, .. } => assert!(rank < 4),
                _ => {}
            }
        }
        assert!(count <= OUTPUTS_PER_INPUT_MAX, "{count} outputs for one input");
    }

    fn settled(&self) {
        assert_eq!(self.turns, self.done, "every turn ends exactly once");
        for (call, runs) in &self.calls {
            assert_eq!((*runs, self.results.get(call)), (1, Some(&1)), "{call:?}");
        }
        assert_eq!(self.asked, self.settled, "every question is settled");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Anything that a peer, a model or a shell may send, in any order.
    #[test]
    fn a_conversation_never_panics_and_never_hangs(
        first in device(),
        (always_listening, conversational, acoustic_wake, captions) in any::<(bool, bool, bool, bool)>(),
        inputs in prop::collection::vec((input(), 0_u64..3_000_000), 1..120),
    ) {
        let display = DisplayConfig { captions, ..DisplayConfig::default() };
        let config =
            Config { always_listening, conversational, acoustic_wake, translates: true, display, ..Config::default() };
        let mut conversation = Conversation::new(config);
        let mut now = Timestamp { mono_us: 1_000_000, wall_ms: 0, offset_s: 0 };
        let mut debts = Debts::default();
        conversation.handle_input(now, Input::Connected { device: first, resumed: false });
        debts.drain(&mut conversation);
        for (input, pause_us) in inputs {
            let until_us = now.mono_us + pause_us;
            pass(&mut conversation, &mut now, until_us, &mut debts);
            debts.asked += usize::from(matches!(input, Input::ApprovalAsked(_)));
            conversation.handle_input(now, input);
            debts.drain(&mut conversation);
        }
        // A turn may wait for its grant, its model and its tools, be asked about, and be played by a device that
        // acknowledges nothing; after this time it is over.
        let until_us = now.mono_us + 600_000_000;
        pass(&mut conversation, &mut now, until_us, &mut debts);
        debts.settled();
    }

    /// Talk among people, with any result of recognition or none: the assistant says and shows nothing.
    #[test]
    fn what_was_not_said_to_the_box_makes_no_sound(
        seed in prop::collection::vec((0_u8..13, 0_u64..4_000, 0..TALK.len()), 1..40),
        (always_listening, conversational, follow_up, second_model) in any::<(bool, bool, bool, bool)>(),
        (echo_cancelled, speaker, acoustic_wake) in any::<(bool, bool, bool)>(),
    ) {
        let config =
            Config {
                always_listening,
                conversational,
                follow_up,
                second_model,
                acoustic_wake,
                translates: true,
                ..Config::default()
            };
        let mut world = World::new(config);
        world.add_device("glasses", Some(DisplaySize::new(30, 3)), speaker, echo_cancelled);
        world.connect(0, false);
        world.matched_else = CommandMatch::None;
        for (index, text) in TALK.iter().enumerate() {
            let matched = if index % 2 == 0 { CommandMatch::None } else { CommandMatch::Misheard };
            world.matched.insert((*text).into(), matched);
        }
        let package = || String::from("chess");
        world.input(0, Input::App(AppEvent::Resumed { package: package(), name: "Chess".into(), kind: AppKind::Foreground }));
        for (what, pause, text) in seed {
            let until = world.now_ms + pause;
            world.run_until(until);
            match what {
                0..=5 => world.speak(0, &[(0, 200 + pause / 2, TALK[text])], None),
                6 => world.speak(0, &[(0, 300, TALK[text]), (pause / 8, 500, TALK[(text + 1) % TALK.len()])], None),
                7 => world.recogniser = [Recogniser::Works, Recogniser::Fails, Recogniser::Dead][text % 3],
                8 => world.decode_ms = pause * 4,
                9 => (world.second_pass_fails, world.second_pass_ms) = (text % 2 == 0, (text % 3 > 0).then_some(pause)),
                // Heard where it was not said, at once or late.
                12 => {
                    let utterance = (world.devices[0].next_utterance - 1).saturating_sub(u32::from(text % 3 == 0));
                    let at_us = world.now_ms.saturating_sub(pause / 4) * 1_000;
                    world.input(0, Input::Voice(VoiceFact::WakeHeard { utterance, at_us, score: 0.9 }));
                }
                10 => world.input(0, Input::App(AppEvent::Listens { package: package(), listens: text % 2 == 0 })),
                _ if pause % 2 == 0 => world.lose(0),
                _ => world.connect(0, true),
            }
        }
        let until = world.now_ms + 60_000;
        world.run_until(until);
        for line in &world.log {
            let sounds = ["speak", "play", "chime", "show", "ask", "request-turn", "run", "dashboard", "muted"];
            let heard = line.text.strip_prefix("glasses: ").unwrap_or_default();
            prop_assert!(!sounds.iter().any(|sound| heard.starts_with(sound)), "{}", line.text);
        }
    }

    /// The same with a user's machine.
    #[test]
    fn a_user_never_panics_and_stays_bounded(
        inputs in prop::collection::vec((user_input(), 0_u64..30_000_000, -100_000_i64..100_000), 1..100),
    ) {
        let mut user = User::new(user::Config::default());
        let mut now = Timestamp { mono_us: 1_000_000, wall_ms: 1_000_000, offset_s: 0 };
        for (input, pause_us, jump_ms) in inputs {
            now.mono_us += pause_us;
            now.wall_ms += i64::try_from(pause_us / 1_000).unwrap() + if jump_ms % 7 == 0 { jump_ms } else { 0 };
            user.handle_timeout(now);
            while user.poll_output().is_some() {}
            user.handle_input(now, input);
            let mut count = 0;
            while user.poll_output().is_some() {
                count += 1;
            }
            prop_assert!(count <= OUTPUTS_PER_INPUT_MAX * 2, "{} outputs", count);
            // A timeout that changes nothing must not set itself again.
            user.handle_timeout(now);
            while user.poll_output().is_some() {}
            prop_assert!(user.poll_timeout().is_none_or(|(at_us, _)| at_us > now.mono_us));
        }
    }

    /// A complete world with a wearer who says and does things at random times: everything comes to rest, and every
    /// confirmed entry is delivered.
    #[test]
    fn a_world_comes_to_rest(
        seed in prop::collection::vec((0_u8..14, 0_u64..4_000, 0_usize..15), 1..40),
        echo_cancelled in any::<bool>(),
        speaker in any::<bool>(),
    ) {
        let mut world = World::new(Config::default());
        let size = DisplaySize::new(30, 3);
        world.add_device("glasses", Some(size), speaker, echo_cancelled);
        world.add_device("phone", None, true, true);
        world.connect(0, false);
        world.connect(1, false);
        let mut calls = 0;
        let mut entries = 0;
        for (what, pause, word) in seed {
            let until = world.now_ms + pause;
            world.run_until(until);
            let device = word % 2;
            match what {
                0..=4 => world.speak(device, &[(0, 200 + pause / 4, WORDS[word])], None),
                5 => world.input(device, Input::Button(Button::Press)),
                6 => world.models.push_back(ModelScript { after: pause, text: "Here is one. And here is two, at length.".into(), ..ModelScript::default() }),
                7 => world.models.push_back(ModelScript { after: 100, text: "Wait.".into(), end: ModelEnd::Silent, ..ModelScript::default() }),
                8 | 9 => {
                    calls += 1;
                    let id = format!("c{calls}");
                    world.tools.insert(id.clone(), ToolScript { after: pause, result: (word > 3).then(|| ToolResult::said("Done.")), cancellable: word % 3 == 0, flags: ToolFlags { slow: word % 5 == 0, read_only: word % 2 == 0, ..ToolFlags::default() }, timeout_ms: (word % 4 == 0).then_some(pause as u32 * 10) });
                    world.models.push_back(ModelScript { after: 100, text: "Let me see.".into(), calls: vec![("tool".into(), id)], ..ModelScript::default() });
                }
                10 if world.devices[device].connected => world.lose(device),
                10 => {
                    world.connect(device, word > 7);
                    world.play_on(device);
                }
                11 => world.input(device, Input::Text(WORDS[word].into())),
                12 => {
                    entries += 1;
                    let change = ScheduleChange::Add {
                        due: Due::In { duration_ms: pause },
                        kind: ScheduleKind::Timer { name: None },
                    };
                    world.user_input(UserInput::Schedule { request: entries, change });
                }
                _ => world.stale_models = true,
            }
        }
        for device in 0..2 {
            if !world.devices[device].connected {
                world.connect(device, true);
                world.play_on(device);
            }
        }
        let until = world.now_ms + 600_000;
        world.run_until(until);
        prop_assert_eq!(script::rest(&world), Ok(()));
        // Every confirmed timer was announced, and has left the store.
        prop_assert!(world.stored.is_empty(), "{:?}", world.stored);
    }
}

fn user_input() -> impl Strategy<Value = UserInput> {
    let device = || (0_u8..20).prop_map(|number| format!("d{number}"));
    prop_oneof![
        device().prop_map(|device| UserInput::DeviceJoined { device }),
        device().prop_map(|device| UserInput::DeviceLeft { device }),
        (device(), turn()).prop_map(|(device, turn)| UserInput::TurnRequested { device, turn }),
        (device(), turn()).prop_map(|(device, turn)| UserInput::TurnDone { device, turn, messages: Vec::new() }),
        (any::<u64>(), any::<u64>(), any::<bool>(), words()).prop_map(|(request, span, timer, text)| {
            let due = match timer {
                true => Due::In { duration_ms: span % 100_000 },
                false => Due::At { wall_ms: i64::try_from(span % 2_000_000).unwrap() },
            };
            let kind = if timer { ScheduleKind::timer(text) } else { ScheduleKind::Reminder { text } };
            UserInput::Schedule { request, change: ScheduleChange::Add { due, kind } }
        }),
        (any::<u64>(), any::<u64>(), any::<i64>()).prop_map(|(request, duration_ms, wall_ms)| {
            let due = if request % 2 == 0 { Due::In { duration_ms } } else { Due::At { wall_ms } };
            let change = ScheduleChange::Add { due, kind: ScheduleKind::Timer { name: None } };
            UserInput::Schedule { request, change }
        }),
        (any::<u64>(), 0_u64..20)
            .prop_map(|(request, id)| UserInput::Schedule { request, change: ScheduleChange::Remove { id } }),
        (any::<u64>(), 0_u64..20, any::<u64>()).prop_map(|(request, id, span)| {
            let more_ms = if request % 2 == 0 { span } else { span % 100_000 };
            UserInput::Schedule { request, change: ScheduleChange::Extend { id, more_ms } }
        }),
        (0_u64..60).prop_map(|ticket| UserInput::Persisted { ticket }),
        (0_u64..60).prop_map(|ticket| UserInput::PersistFailed { ticket, reason: "full".into() }),
        (device(), 0_u64..20, any::<bool>()).prop_map(|(device, id, heard)| UserInput::Announced { device, id, heard }),
        (0_u8..4, any::<u32>(), any::<bool>()).prop_map(|(rank, input, fails)| UserInput::ModelUsed {
            rank,
            usage: Usage { input, cached: 0, output: input },
            outcome: if fails { ModelOutcome::Failed } else { ModelOutcome::Answered },
        }),
        Just(UserInput::FallbackTold { reason: FallbackReason::Budget, level: ServiceLevel::Commands }),
        Just(UserInput::ClearHistory),
        Just(UserInput::NewConversation),
        Just(UserInput::HistoryErased),
        (0_u64..6, any::<bool>(), any::<u32>()).prop_map(|(id, watched, ms)| UserInput::ApprovalAsked {
            approval: Approval {
                id,
                turn: None,
                reference: 1,
                question: Question { title: "Tool?".into(), said: "Really?".into(), shown: "a: 1\nb: 2".into() },
                arguments_hash: 1,
                expires_ms: ms % 60_000,
            },
            watched,
        }),
        (0_u64..6).prop_map(|id| UserInput::ApprovalAnswered { id, choice: ApprovalChoice::Yes }),
        (0_u64..6).prop_map(|id| UserInput::ApprovalWithdrawn { id }),
    ]
}

fn pass(conversation: &mut Conversation, now: &mut Timestamp, until_us: u64, debts: &mut Debts) {
    let mut wakes = 0;
    while let Some((at_us, _)) = conversation.poll_timeout().filter(|(at_us, _)| *at_us <= until_us) {
        now.mono_us = now.mono_us.max(at_us);
        conversation.handle_timeout(*now);
        debts.drain(conversation);
        wakes += 1;
        assert!(wakes < 20_000, "it wakes without end");
    }
    now.mono_us = until_us;
}
