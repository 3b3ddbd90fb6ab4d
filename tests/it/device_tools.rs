//! Tools that a device offers, over the wire: the meaning of their flags, how a call is numbered, cancelled and
//! answered, and that the device is told which offers were rejected.

use device_protocol::{
    Decoded, Down, List, PlayState, ToolFlags, ToolState, Up, decode_down, down, up,
    up::{Capabilities, ToolOffer},
};
use gateway::control::{Answer, Request};
use gateway_core::vocab::ErrorCode;
use serde_json::json;

use crate::{
    peer::{Peer, capabilities},
    world::{USER, WAIT, World},
};

/// A tool that is called by "run the bench".
fn bench(flags: ToolFlags) -> ToolOffer<'static> {
    ToolOffer {
        name: "bench.run",
        description: "Runs the bench.",
        schema: "",
        phrases: r#"{"en": ["run the bench"]}"#,
        reply_template: "",
        flags,
    }
}

/// Glasses with a display only.
fn silent() -> Capabilities {
    Capabilities { speakers: 0, audio_up_hz: 0, audio_down_hz: 0, tools: 1, ..capabilities() }
}

async fn offer(peer: &mut Peer, revision: u32, tools: &[ToolOffer<'_>]) {
    peer.control(Up::ToolList(up::ToolList { revision, tools: List::new(tools) })).await;
}

async fn say(peer: &mut Peer, text: &str) {
    peer.control(Up::TextInput(up::TextInput { text })).await;
}

async fn done(peer: &mut Peer, call: u32) {
    let result = up::ToolResult { call, ok: true, content: "The bench has run.", data: "", error: "" };
    peer.control(Up::ToolResult(result)).await;
}

/// Reads frames until one matches; returns its turn and the result.
async fn until<T>(peer: &mut Peer, what: &str, mut pick: impl FnMut(&Down<'_>) -> Option<T>) -> (u32, T) {
    let mut seen = Vec::new();
    let picked = tokio::time::timeout(WAIT, async {
        loop {
            let bytes = peer.receive().await.unwrap_or_else(|| panic!("{what}: the link ended after {seen:#?}"));
            let Ok(Decoded::Frame(frame)) = decode_down(&bytes) else { panic!("{bytes:?}") };
            if let Some(picked) = pick(&frame.message) {
                return (frame.stamp.turn, picked);
            }
            seen.push(format!("{} {:?}", frame.stamp.turn, frame.message));
        }
    });
    match picked.await {
        Ok(picked) => picked,
        Err(_) => panic!("{what} did not come"),
    }
}

fn called(message: &Down<'_>) -> Option<u32> {
    match message {
        Down::ToolCall(call) => Some(call.call),
        Down::ApprovalRequest(request) => panic!("it asks: {request:?}"),
        _ => None,
    }
}

fn idle(message: &Down<'_>) -> Option<()> {
    use device_protocol::ListeningState::{Idle, Wake};
    matches!(message, Down::Listening(listening) if matches!(listening.state, Idle | Wake)).then_some(())
}

/// The operator answers the only open question.
async fn answer(world: &World, yes: bool) {
    let Answer::Approvals { approvals } = world.ask(Request::Approvals).await.expect("a list") else { panic!("none") };
    let [open] = approvals.as_slice() else { panic!("{approvals:?}") };
    world.ask(Request::AnswerApproval { id: open.id, yes }).await.expect("taken");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_flag_means_what_the_specification_says() {
    let world = World::start().await;
    let mut peer = Peer::welcomed_with(&world, "ws", "peer", silent()).await;
    for bits in 0..16_u16 {
        let flags = ToolFlags(bits);
        offer(&mut peer, u32::from(bits) + 1, &[bench(flags)]).await;
        say(&mut peer, "run the bench").await;
        if flags.contains(ToolFlags::DESTRUCTIVE) {
            let asked = |message: &Down<'_>| match message {
                Down::ApprovalRequest(request) => Some(request.approval),
                Down::ToolCall(call) => panic!("{bits}: it is called without a word: {call:?}"),
                _ => None,
            };
            let (turn, approval) = until(&mut peer, "a question", asked).await;
            answer(&world, true).await;
            let settled = |message: &Down<'_>| match message {
                Down::ApprovalSettled(settled) => Some(settled.approval),
                Down::ToolCall(call) => panic!("{bits}: it is called before the answer is told: {call:?}"),
                _ => None,
            };
            assert_eq!(until(&mut peer, "the end of the question", settled).await, (turn, approval));
        }
        let (_, call) = until(&mut peer, "the call", called).await;
        let registry = &world.gateway().services().registry;
        let spec = registry
            .snapshot(USER, Some(&peer.identity.fingerprint()))
            .find("bench.run")
            .expect("it is offered")
            .spec
            .clone();
        let wanted = [ToolFlags::DESTRUCTIVE, ToolFlags::IDEMPOTENT, ToolFlags::SLOW].map(|flag| flags.contains(flag));
        let read_only = flags.contains(ToolFlags::READ_ONLY) && !wanted[0];
        assert_eq!(
            [spec.flags.destructive, spec.flags.idempotent, spec.flags.slow],
            [wanted[0], wanted[1] || read_only, wanted[2]]
        );
        assert_eq!((spec.flags.requires_approval, spec.flags.read_only), (wanted[0], read_only), "{bits}");
        done(&mut peer, call).await;
        until(&mut peer, "the end of the turn", idle).await;
    }
    // A call that was denied does not run.
    offer(&mut peer, 17, &[bench(ToolFlags::DESTRUCTIVE)]).await;
    say(&mut peer, "run the bench").await;
    until(&mut peer, "a question", |message| matches!(message, Down::ApprovalRequest(_)).then_some(())).await;
    answer(&world, false).await;
    let over = |message: &Down<'_>| match message {
        Down::ToolCall(call) => panic!("it is called after a no: {call:?}"),
        message => idle(message),
    };
    until(&mut peer, "the end of the turn", over).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_tool_is_announced_before_it_is_waited_for() {
    let world = World::start().await;
    let mut peer = Peer::welcomed_with(&world, "ws", "peer", Capabilities { tools: 1, ..capabilities() }).await;
    // A tool that only reads waits for no disk: its call goes out within the second after which any call is announced.
    for (revision, flags, first) in [(1, ToolFlags::SLOW, Some("Let me check.")), (2, ToolFlags::READ_ONLY, None)] {
        offer(&mut peer, revision, &[bench(flags)]).await;
        say(&mut peer, "run the bench").await;
        // Speech before the call has arrived.
        let mut said = None;
        let call = |message: &Down<'_>| {
            if let Down::SpeechStart(start) = message {
                said = Some(start.text.to_owned());
            }
            called(message)
        };
        let (_, call) = until(&mut peer, "the call", call).await;
        assert_eq!(said.as_deref(), first);
        done(&mut peer, call).await;
        hear_out(&mut peer).await;
        until(&mut peer, "the end of the turn", idle).await;
    }
}

/// Acknowledges a speech to its end, faster than real time.
async fn hear_out(peer: &mut Peer) {
    loop {
        let played = |message: &Down<'_>| match message {
            Down::SpeechChunk(chunk) => {
                let (speech, clause, played_us) = (chunk.speech, chunk.clause, chunk.position_us);
                Some(up::Played { speech, clause, played_us, state: PlayState::Playing })
            }
            Down::SpeechEnd(end) => {
                let (speech, played_us) = (end.speech, end.duration_us);
                Some(up::Played { speech, clause: 0, played_us, state: PlayState::Finished })
            }
            _ => None,
        };
        let (_, played) = until(peer, "more of the answer", played).await;
        peer.control(Up::Played(played)).await;
        if played.state == PlayState::Finished {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_has_one_number_and_its_turn() {
    let world = World::start().await;
    let mut peer = Peer::welcomed_with(&world, "ws", "peer", silent()).await;
    offer(&mut peer, 1, &[bench(ToolFlags::EMPTY)]).await;
    // Another request first, so that the numbers of the device's calls and of turns differ.
    for (text, turn) in [("what is six times seven", 1), ("run the bench", 2), ("run the bench", 3)] {
        say(&mut peer, text).await;
        let started = |message: &Down<'_>| match message {
            Down::ToolActivity(activity) if activity.state == ToolState::Started => Some(activity.call),
            _ => None,
        };
        let thinks = |message: &Down<'_>| {
            matches!(message, Down::Listening(listening) if listening.state == device_protocol::ListeningState::Thinking)
                .then_some(())
        };
        assert_eq!(until(&mut peer, "thinking", thinks).await.0, turn);
        let (of, number) = until(&mut peer, "a tool at work", started).await;
        assert_eq!((of, number), (turn, turn), "one call a turn");
        if text == "run the bench" {
            assert_eq!(until(&mut peer, "the call", called).await, (turn, number));
            done(&mut peer, number).await;
            let finished = |message: &Down<'_>| match message {
                Down::ToolActivity(activity) if activity.state == ToolState::Finished => Some(activity.call),
                _ => None,
            };
            assert_eq!(until(&mut peer, "its end", finished).await, (turn, number));
        }
        until(&mut peer, "the end of the turn", idle).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_is_told_that_a_call_is_not_wanted_any_more() {
    let world = World::start().await;
    let cancelled = |message: &Down<'_>| match message {
        Down::ToolCancel(cancel) => Some(cancel.call),
        _ => None,
    };
    let mut peer = Peer::welcomed_with(&world, "ws", "peer", silent()).await;
    for flags in [ToolFlags::EMPTY, ToolFlags::READ_ONLY] {
        offer(&mut peer, 1 + u32::from(flags.is_empty()), &[bench(flags)]).await;
        say(&mut peer, "run the bench").await;
        let (turn, call) = until(&mut peer, "the call", called).await;
        let press =
            up::Button { button: device_protocol::ButtonId::Main, action: device_protocol::ButtonAction::Press };
        peer.control(Up::Button(press)).await;
        assert_eq!(until(&mut peer, "the cancellation", cancelled).await, (turn, call), "{flags:?}");
        done(&mut peer, call).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_not_taken_is_told_to_the_device() {
    let world = World::start().await;
    let mut peer = Peer::welcomed_with(&world, "quic", "peer", silent()).await;
    let odd = |name, schema, phrases| ToolOffer { name, schema, phrases, ..bench(ToolFlags::EMPTY) };
    let tools = [
        odd("bad.schema", "[]", ""),
        odd("bad.phrases", "", r#"{"en": ["say {nothing}"]}"#),
        odd("timer.set", "", ""),
        odd("Bench.Twice", "", ""),
        odd("Bench.Twice", "", ""),
        odd("odd.type", r#"{"properties": {}}"#, ""),
        bench(ToolFlags::EMPTY),
    ];
    offer(&mut peer, 1, &tools).await;
    let warning = |message: &Down<'_>| match message {
        Down::Warning(down::Warning { code, name, message }) => {
            Some(((*name).to_owned(), code.name().expect("a code of today"), (*message).to_owned()))
        }
        _ => None,
    };
    for (name, code, words) in [
        ("bad.schema", "tool_left_out", "/inputSchema"),
        ("bad.phrases", "tool_left_out", "no property 'nothing'"),
        ("timer.set", "tool_left_out", "everybody"),
        ("Bench.Twice", "tool_left_out", "twice"),
        ("odd.type", "tool_changed", "has no type"),
    ] {
        let (_, (about, of, why)) = until(&mut peer, name, warning).await;
        assert_eq!((about.as_str(), of), (name, code), "{why}");
        assert!(why.contains(words), "{why}");
    }
    // The other tools are offered.
    say(&mut peer, "run the bench").await;
    let (_, call) = until(&mut peer, "the call", called).await;
    done(&mut peer, call).await;
    until(&mut peer, "the end of the turn", idle).await;
}

/// Two sessions of one device do not overlap: messages of the older one are handled before the newer one begins.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_replaced_offers_nothing_any_more() {
    let world = World::start().await;
    let named = |name| ToolOffer { name, ..bench(ToolFlags::EMPTY) };
    let mut old = Peer::welcomed_with(&world, "ws", "peer", silent()).await;
    // A first frame behind the hello of the new connection would show that the device goes on over this one.
    offer(&mut old, 1, &[named("bench.old")]).await;
    until(&mut old, "an ack", |message| matches!(message, Down::Ack(_)).then_some(())).await;
    for round in 0..5 {
        let mut new = Peer::connect(&world, "ws", "peer").await;
        new.capabilities = silent();
        let shake = async {
            new.shake().await;
            offer(&mut new, 1, &[named("bench.new")]).await;
            new
        };
        // The older session sends offers without end.
        let chatter = async {
            for revision in 1..100 {
                offer(&mut old, revision, &[named("bench.old")]).await;
            }
            while old.receive().await.is_some() {}
        };
        (old, ()) = tokio::time::timeout(WAIT, async { tokio::join!(shake, chatter) }).await.expect("in time");
        // Messages are handled in order.
        say(&mut old, "run the bench").await;
        let name = |message: &Down<'_>| match message {
            Down::ToolCall(call) => Some(call.name.to_owned()),
            _ => None,
        };
        assert_eq!(until(&mut old, "the call", name).await.1, "bench.new", "{round}");
    }
}

/// The caller gets the device's own text about a failure.
#[tokio::test(flavor = "multi_thread")]
async fn the_error_of_a_device_is_taken_at_its_word() {
    let world = World::start().await;
    let mut peer = Peer::welcomed_with(&world, "ws", "peer", silent()).await;
    offer(&mut peer, 1, &[bench(ToolFlags::READ_ONLY)]).await;
    // The call uses another path than the offer and must not arrive before it.
    let known = async {
        let mut every = tokio::time::interval(std::time::Duration::from_millis(10));
        loop {
            every.tick().await;
            let listed = world.ask(Request::Tools { user: USER.to_owned() }).await.expect("a list");
            if matches!(listed, Answer::Tools { tools } if tools.iter().any(|tool| tool.spec.name == "bench.run")) {
                break;
            }
        }
    };
    tokio::time::timeout(WAIT, known).await.expect("the tool");
    for (error, code) in [
        ("unknown_tool", ErrorCode::ToolNotFound),
        ("invalid_arguments", ErrorCode::InvalidArguments),
        ("on_fire", ErrorCode::ExecutionError),
    ] {
        let calling = async {
            let call = Request::CallTool { user: USER.to_owned(), name: "bench.run".to_owned(), arguments: json!({}) };
            match world.ask(call).await.expect("an answer") {
                Answer::ToolResult { result, .. } => result.error.expect("it failed").code,
                answer => panic!("{answer:?}"),
            }
        };
        let device = async {
            let (turn, call) = until(&mut peer, "the call", called).await;
            assert_eq!(turn, 0, "a call from outside is of no turn");
            let result = up::ToolResult { call, ok: false, content: "It did not work.", data: "", error };
            peer.control(Up::ToolResult(result)).await;
        };
        let (told, ()) = tokio::time::timeout(WAIT, async { tokio::join!(calling, device) }).await.expect("in time");
        assert_eq!(told, code, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_runs_while_the_link_is_lost_is_called_once_and_its_result_counts() {
    let world = World::start().await;
    let mut peer = Peer::welcomed_with(&world, "ws", "peer", silent()).await;
    offer(&mut peer, 1, &[bench(ToolFlags::EMPTY)]).await;
    say(&mut peer, "run the bench").await;
    let (turn, number) = until(&mut peer, "the call", called).await;
    let (token, sent) = (std::mem::take(&mut peer.token), peer.control);
    drop(peer);
    let mut peer = Peer::connect(&world, "wss", "peer").await;
    (peer.capabilities, peer.token, peer.control) = (silent(), token, sent);
    peer.shake().await;
    // This device has acknowledged nothing: all frames come again, the call under its number.
    assert_eq!(until(&mut peer, "the frame of the call", called).await, (turn, number));
    done(&mut peer, number).await;
    let finished = |message: &Down<'_>| match message {
        Down::ToolActivity(activity) if activity.state == ToolState::Finished => Some(activity.call),
        Down::ToolCall(call) => panic!("it is called twice: {call:?}"),
        _ => None,
    };
    assert_eq!(until(&mut peer, "its end", finished).await, (turn, number));
    until(&mut peer, "the end of the turn", idle).await;
}

/// Glasses offer their tools late after a restart: the wearer, who was being asked about one, is asked again nevertheless.
#[tokio::test(flavor = "multi_thread")]
async fn who_was_asked_about_a_tool_of_the_glasses_is_asked_again_once_it_is_offered() {
    let asked = |message: &Down<'_>| match message {
        Down::ApprovalRequest(request) => Some(request.approval),
        Down::ToolCall(call) => panic!("it is called without a word: {call:?}"),
        _ => None,
    };
    let world = World::start().await;
    let mut peer = Peer::welcomed_with(&world, "ws", "peer", silent()).await;
    offer(&mut peer, 1, &[bench(ToolFlags::DESTRUCTIVE)]).await;
    say(&mut peer, "run the bench").await;
    until(&mut peer, "a question", asked).await;
    let token = std::mem::take(&mut peer.token);
    let world = world.again().await;
    let mut peer = Peer::connect(&world, "ws", "peer").await;
    (peer.capabilities, peer.token) = (silent(), token);
    peer.shake().await;
    let told = |message: &Down<'_>| match message {
        Down::Display(shown) => format!("{shown:?}").contains("restarted").then_some(()),
        message => asked(message).map(|_| panic!("the tool is not offered yet")),
    };
    until(&mut peer, "the news", told).await;
    offer(&mut peer, 1, &[bench(ToolFlags::DESTRUCTIVE)]).await;
    until(&mut peer, "the question again", asked).await;
    answer(&world, true).await;
    let (_, call) = until(&mut peer, "the call", called).await;
    done(&mut peer, call).await;
    until(&mut peer, "the end of the turn", idle).await;
}
