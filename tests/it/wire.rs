//! The guarantees of PROTOCOL.md, checked by a scripted device.

use device_protocol::{
    ChannelBinding, Codec, Codecs, Decoded, DisplayKind, Down, Frame, ListeningState, MicEnd, PlayState, Up,
    WarningCode, decode_down, limits, up,
    up::{Capabilities, Screen},
};
use firmware_sim::Seen;
use gateway::store::{Kind, Write};

use crate::{
    peer::{Peer, Said, capabilities, frame, frame_at},
    world::{WAIT, World, answered, floor, text},
};

/// Reads frames up to the first one that matches.
async fn next<T>(peer: &mut Peer, what: &str, mut pick: impl FnMut(&Frame<Down<'_>>) -> Option<T>) -> T {
    let picked = tokio::time::timeout(WAIT, async {
        loop {
            let bytes = peer.receive().await.unwrap_or_else(|| panic!("{what}: the link ended"));
            let Ok(Decoded::Frame(frame)) = decode_down(&bytes) else { panic!("{bytes:?}") };
            if let Down::Goodbye(goodbye) = &frame.message {
                panic!("{what}: {goodbye:?}");
            }
            if let Some(picked) = pick(&frame) {
                return picked;
            }
        }
    });
    picked.await.unwrap_or_else(|_| panic!("{what} did not come"))
}

fn sound(sequence: u32) -> Vec<u8> {
    let payload = [0; 640];
    frame(
        sequence,
        Up::Audio(up::Audio { codec: Codec::Pcm16, rate_hz: 16_000, duration_us: 20_000, payload: &payload }),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_begin_with_the_connection_and_chunks_are_a_frame_apart() {
    let world = World::start().await;
    for scheme in ["ws", "quic"] {
        world.glasses(scheme, "peer").await.goodbye().await;
        let mut peer = Peer::connect(&world, scheme, "peer").await;
        let handshake = peer.hello().await;
        peer.prove(&handshake).await;
        let welcome = |frame: &Frame<Down<'_>>| match &frame.message {
            Down::Welcome(_) => Some(frame.stamp.time_us),
            _ => None,
        };
        let welcomed_us = next(&mut peer, "a welcome", welcome).await;
        // The gateway has run for longer than a handshake takes.
        let lived_us = gateway::clock::mono_us();
        assert!(welcomed_us < lived_us / 2, "{scheme}: {welcomed_us} of {lived_us}");
        peer.control(Up::TextInput(up::TextInput { text: "what is six times seven" })).await;
        let mut planned = Vec::new();
        let whole = |frame: &Frame<Down<'_>>| match &frame.message {
            Down::SpeechChunk(chunk) => {
                planned.push((frame.stamp.time_us, chunk.position_us));
                // A device that reports no playback gets one second of audio.
                (chunk.position_us >= 600_000).then_some(())
            }
            _ => None,
        };
        next(&mut peer, "a speech", whole).await;
        planned.sort_by_key(|(_, position_us)| *position_us);
        let (begins_us, _) = planned[0];
        // They come in a burst, each with its playback time.
        let ahead = planned.iter().take_while(|(_, position_us)| *position_us < 300_000);
        for (time_us, position_us) in ahead {
            assert_eq!(time_us - begins_us, *position_us, "{scheme}");
        }
        assert!(planned.is_sorted(), "{scheme}: {planned:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_wrong_number_does_not_make_a_session_deaf() {
    let world = World::start().await;
    let mut peer = Peer::welcomed(&world, "quic", "peer").await;
    let warned = |frame: &Frame<Down<'_>>| match &frame.message {
        Down::Warning(warning) => Some((warning.code, warning.message.to_owned())),
        _ => None,
    };
    for sequence in [1, 2, 1_000_000, 3] {
        peer.raw(sound(sequence)).await;
    }
    let (code, words) = next(&mut peer, "a warning", warned).await;
    assert_eq!(code, WarningCode::SoundDropped);
    assert!(words.contains("1000000"), "{words}");
    // The session continues, and audio is processed: a tone that is no speech is counted.
    for sequence in 4..=20 {
        peer.raw(sound(sequence)).await;
    }
    let end = up::AudioEnd { last_audio_sequence: 20, reason: MicEnd::Released };
    peer.control(Up::AudioEnd(end)).await;
    peer.raw(frame(0, Up::Heartbeat(up::Heartbeat { echo_us: 0, held_us: 0 }))).await;
    let beat = |frame: &Frame<Down<'_>>| matches!(frame.message, Down::Heartbeat(_)).then_some(());
    next(&mut peer, "the session goes on", beat).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn excesses_end_the_session() {
    let world = World::start().await;
    let long = up::Audio { codec: Codec::Pcm16, rate_hz: 16_000, duration_us: 120_001, payload: &[0; 640] };
    for scheme in ["ws", "quic"] {
        let mut peer = Peer::welcomed(&world, scheme, "peer").await;
        peer.raw(frame(1, Up::Audio(long))).await;
        let said = peer.end().await;
        assert!(
            matches!(&said, Said::Goodbye(reason, words) if reason == "malformed" && words.contains("120000")),
            "{said:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_rate_of_the_specification_is_taken() {
    let world = World::start().await;
    for codecs in [Codecs::PCM16, Codecs::OPUS] {
        for rate_hz in [8_000, 12_000, 16_000, 24_000, 48_000] {
            let capabilities = Capabilities {
                codecs_up: codecs,
                codecs_down: codecs,
                audio_up_hz: rate_hz,
                audio_down_hz: rate_hz,
                ..capabilities()
            };
            world.glasses("ws", "peer").await.goodbye().await;
            let mut peer = Peer::connect(&world, "ws", "peer").await;
            peer.capabilities = capabilities;
            let handshake = peer.hello().await;
            peer.prove(&handshake).await;
            let agreed = |frame: &Frame<Down<'_>>| match &frame.message {
                Down::Welcome(welcome) => Some((welcome.audio_up.rate_hz, welcome.audio_down.rate_hz)),
                Down::Reject(reject) => panic!("{rate_hz}: {}", reject.message),
                _ => None,
            };
            assert_eq!(next(&mut peer, "a welcome", agreed).await, (rate_hz, rate_hz));
        }
    }
}

/// A device with LC3 of these frames, and nothing else.
fn lc3(rate_hz: u32, frame_us: u16, frame_bytes: u16) -> Capabilities {
    Capabilities {
        codecs_up: Codecs::LC3,
        codecs_down: Codecs::LC3,
        audio_up_hz: rate_hz,
        audio_down_hz: rate_hz,
        lc3_frame_us: frame_us,
        lc3_frame_bytes: frame_bytes,
        ..capabilities()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lc3_is_agreed_in_the_frames_that_the_device_has() {
    let world = World::start().await;
    for (can, wanted) in [
        (lc3(16_000, 10_000, 40), Ok((Codec::Lc3, (Codec::Lc3, 16_000), 10_000, 40))),
        (lc3(48_000, 7_500, 120), Ok((Codec::Lc3, (Codec::Lc3, 48_000), 7_500, 120))),
        // The encoder lacks this rate: without a speaker, with one that has another codec, and with one that has none.
        (Capabilities { speakers: 0, ..lc3(8_000, 10_000, 20) }, Ok((Codec::Lc3, (Codec::Pcm16, 0), 10_000, 20))),
        (
            Capabilities { codecs_down: Codecs::LC3.with(Codecs::PCM16), ..lc3(8_000, 7_500, 30) },
            Ok((Codec::Lc3, (Codec::Pcm16, 8_000), 7_500, 30)),
        ),
        (lc3(8_000, 10_000, 40), Ok((Codec::Lc3, (Codec::Pcm16, 0), 10_000, 40))),
        (
            Capabilities { codecs_up: Codecs::LC3.with(Codecs::OPUS), ..lc3(24_000, 10_000, 60) },
            Ok((Codec::Opus, (Codec::Lc3, 24_000), 0, 0)),
        ),
        (lc3(12_000, 10_000, 40), Err("12000 Hz")),
        (lc3(16_000, 5_000, 40), Err("5000 us")),
        (lc3(16_000, 10_000, 121), Err("121 bytes")),
        (lc3(16_000, 0, 0), Err("0 bytes")),
    ] {
        world.glasses("ws", "peer").await.goodbye().await;
        let mut peer = Peer::connect(&world, "ws", "peer").await;
        peer.capabilities = can;
        let handshake = peer.hello().await;
        peer.prove(&handshake).await;
        let answer = |frame: &Frame<Down<'_>>| match &frame.message {
            Down::Welcome(welcome) => {
                let (up, down) = (welcome.audio_up, welcome.audio_down);
                Some(Ok((up.codec, (down.codec, down.rate_hz), up.lc3_frame_us, up.lc3_frame_bytes)))
            }
            Down::Reject(reject) => Some(Err(reject.message.to_owned())),
            _ => None,
        };
        match (next(&mut peer, "an answer", answer).await, wanted) {
            (Ok(agreed), Ok(wanted)) => assert_eq!(agreed, wanted),
            (Err(words), Err(wanted)) => assert!(words.contains(wanted), "{words}"),
            (answer, wanted) => panic!("{answer:?}, wanted {wanted:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lc3_in_other_frames_ends_the_session() {
    let world = World::start().await;
    for (bytes, duration_us, words) in [(41, 10_000, "41 bytes"), (280, 70_000, "280 bytes"), (80, 10_000, "20000 us")]
    {
        let mut peer = Peer::welcomed_with(&world, "ws", "peer", lc3(16_000, 10_000, 40)).await;
        let payload = vec![0x5a; bytes];
        // Damaged frames of the right length are no offence.
        for (sequence, bytes) in [(1, 40), (2, 240)] {
            let whole = up::Audio {
                codec: Codec::Lc3,
                rate_hz: 16_000,
                duration_us: bytes * 250,
                payload: &vec![0xff; bytes as usize],
            };
            peer.raw(frame(sequence, Up::Audio(whole))).await;
        }
        let wrong = up::Audio { codec: Codec::Lc3, rate_hz: 16_000, duration_us, payload: &payload };
        peer.raw(frame(3, Up::Audio(wrong))).await;
        let said = peer.end().await;
        assert!(
            matches!(&said, Said::Goodbye(reason, why) if reason == "bad_format" && why.contains(words)),
            "{said:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_may_ask_for_slower_heartbeats_and_smaller_frames() {
    let world = World::start().await;
    for (asked, given) in [(0, 5_000), (1_000, 5_000), (30_000, 30_000), (u32::MAX, 60_000)] {
        world.glasses("quic", "peer").await.goodbye().await;
        let mut peer = Peer::connect(&world, "quic", "peer").await;
        peer.capabilities = Capabilities { heartbeat_ms: asked, frame_bytes_max: 2_048, ..capabilities() };
        let handshake = peer.hello().await;
        peer.prove(&handshake).await;
        let agreed = |frame: &Frame<Down<'_>>| match &frame.message {
            Down::Welcome(welcome) => Some(welcome.heartbeat_ms),
            _ => None,
        };
        assert_eq!(next(&mut peer, "a welcome", agreed).await, given, "{asked}");
    }
    // A long answer is split into frames that fit.
    let mut peer = Peer::welcomed_with(
        &world,
        "ws",
        "small",
        Capabilities {
            frame_bytes_max: 2_048,
            speakers: 0,
            display: Screen { kind: DisplayKind::Pixels, columns: 0, rows: 0, ..capabilities().display },
            ..capabilities()
        },
    )
    .await;
    let note = format!("remember that {}", "the penguins are in the cellar and want fish ".repeat(80));
    for request in [note.as_str(), "list my notes"] {
        peer.control(Up::TextInput(up::TextInput { text: request })).await;
        let (mut largest, mut thinks) = (0, false);
        let over = tokio::time::timeout(WAIT, async {
            loop {
                let bytes = peer.receive().await.expect("the link stands");
                largest = largest.max(bytes.len());
                let Ok(Decoded::Frame(frame)) = decode_down(&bytes) else { panic!("{bytes:?}") };
                if let Down::Listening(listening) = frame.message {
                    let thought = std::mem::replace(&mut thinks, listening.state == ListeningState::Thinking);
                    if thought && !thinks {
                        return;
                    }
                }
            }
        });
        over.await.expect("an answer in time");
        assert!(largest <= 2_048, "{request:.20}: {largest}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn glasses_that_lay_text_out_by_themselves_get_it_whole() {
    let world = World::start().await;
    let mut options = world.options("ws", "glasses");
    options.profile.display = Some((0, 0));
    let mut glasses = world.connect(options).await;
    text(&mut glasses, "what can you do").await;
    let answer = answered(&mut glasses).await;
    let shown = glasses.log().since(0).into_iter().filter_map(|event| match event.seen {
        Seen::Display { text, .. } if !text.is_empty() => Some(text),
        _ => None,
    });
    let shortest = shown.min_by_key(String::len).expect("something is shown");
    assert!(shortest.len() > 20, "it is spelt: {shortest:?} of {answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_binding_may_be_the_certificate() {
    let world = World::start().await;
    for scheme in ["ws", "wss", "quic"] {
        let mut options = world.options(scheme, scheme);
        options.profile.binding = ChannelBinding::Certificate;
        // It is paired with this binding, and reconnects with it.
        for _ in 0..2 {
            let glasses = world.connect(options.clone()).await;
            glasses.goodbye().await;
        }
        // With the other binding it is the same device.
        options.profile.binding = ChannelBinding::Exporter;
        world.connect(options).await.goodbye().await;
    }
    // A binding of a later version is refused with a reason.
    let mut peer = Peer::connect(&world, "wss", "stranger").await;
    peer.binding = ChannelBinding::Other(9);
    peer.say_hello().await;
    let said = peer.next().await;
    assert!(matches!(&said, Said::Reject(code, words) if code == "bad_proof" && words.contains('9')), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_speech_waits_for_a_device_that_starves() {
    let world = World::start().await;
    let mut peer = Peer::welcomed(&world, "ws", "peer").await;
    let hold_us = u64::from(limits::SPEECH_HOLD_MS_MAX) * 1_000;
    peer.control(Up::TextInput(up::TextInput { text: "what can you do" })).await;
    // Received and acknowledged audio: no chunk may exceed what the device can buffer.
    let (mut have_us, mut played_us) = (0, 0);
    let more = async |peer: &mut Peer, played_us: u64| {
        let chunk = |frame: &Frame<Down<'_>>| match &frame.message {
            Down::SpeechChunk(chunk) => Some((chunk.speech, chunk.position_us + u64::from(chunk.duration_us), false)),
            Down::SpeechEnd(end) => Some((end.speech, end.duration_us, true)),
            Down::Hush(_) => panic!("it was given up"),
            _ => None,
        };
        let (speech, end_us, ended) = next(peer, "more", chunk).await;
        assert!(end_us <= played_us + hold_us, "{end_us} with {played_us} played");
        (speech, end_us, ended)
    };
    // It plays nothing at first, and reports that with each chunk.
    while have_us < hold_us {
        let (speech, end_us, ended) = more(&mut peer, 0).await;
        assert!(!ended);
        have_us = end_us;
        let starved = up::Played { speech, clause: 0, played_us: 0, state: PlayState::Starved };
        peer.control(Up::Played(starved)).await;
    }
    // Playback continues, and so does the speech, to its end.
    loop {
        played_us += 20_000;
        let playing = up::Played { speech: 1, clause: 0, played_us, state: PlayState::Playing };
        peer.control(Up::Played(playing)).await;
        let (speech, end_us, ended) = more(&mut peer, played_us).await;
        assert_eq!(speech, 1);
        have_us = end_us;
        if ended {
            break;
        }
    }
    assert!(have_us > 2 * hold_us, "the answer is longer than what a device holds: {have_us}");
}

/// An answer that is complete at once is sent as one drawing, with its duration.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_whole_is_drawn_once() {
    let world = World::start().await;
    let mut glasses = world.glasses("ws", "glasses").await;
    // The first request may come before its tools are prepared: then its answer is streamed like a model's.
    text(&mut glasses, "what is two plus two").await;
    answered(&mut glasses).await;
    let from = glasses.mark();
    text(&mut glasses, "who was the first person on the moon").await;
    answered(&mut glasses).await;
    let drawn = glasses.log().since(from).into_iter().filter_map(|event| match event.seen {
        Seen::Display { text, .. } if text.contains("no command that I know") => Some(text),
        _ => None,
    });
    let drawn: Vec<String> = drawn.collect();
    assert_eq!(drawn.len(), 1, "{drawn:#?}");
}

/// Samples of a packet.
const PACKET: usize = 640;
/// Its length.
const PACKET_US: u32 = 40_000;

/// A sentence in packets, without silence around it.
async fn spoken(sentence: &str) -> Vec<Vec<i16>> {
    let pcm = firmware_sim::voice::speak(sentence).await.expect("a voice");
    let is_loud = |sample: &i16| sample.unsigned_abs() > 300;
    let from = pcm.iter().position(is_loud).expect("a voice");
    let last = pcm.iter().rposition(is_loud).expect("a voice");
    pcm[from..=last].chunks_exact(PACKET).map(<[i16]>::to_vec).collect()
}

/// Sends this sound behind the packet with this number, captured without a pause; the number of its last packet.
async fn send_sound(peer: &Peer, behind: u32, packets: &[Vec<i16>]) -> u32 {
    let mut sequence = behind;
    for pcm in packets {
        sequence += 1;
        let payload: Vec<u8> = pcm.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        let audio = up::Audio { codec: Codec::Pcm16, rate_hz: 16_000, duration_us: PACKET_US, payload: &payload };
        peer.raw(frame_at(u64::from(sequence) * u64::from(PACKET_US), sequence, Up::Audio(audio))).await;
    }
    sequence
}

/// The device does not say again where its stream ended. In what it repeats, another voice follows the first without a pause.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ended_before_a_restart_ends_there_when_it_is_repeated() {
    let _floor = floor().await;
    let note = spoken("Hey Mentra, take a note: buy oat milk.").await;
    let question = spoken("Hey Mentra, what time is it?").await;
    let end = |last_audio_sequence| Up::AudioEnd(up::AudioEnd { last_audio_sequence, reason: MicEnd::Released });
    let world = World::start().await;
    let mut peer = Peer::welcomed(&world, "ws", "peer").await;
    // Nothing is heard before the restart.
    let last = send_sound(&peer, 0, &vec![vec![0; PACKET]; note.len()]).await;
    peer.control(end(last)).await;
    let acknowledged =
        |frame: &Frame<Down<'_>>| matches!(&frame.message, Down::Ack(ack) if ack.control == 1).then_some(());
    next(&mut peer, "an acknowledgement", acknowledged).await;
    let (folder, _) = world.halted().await;
    let world = World::on(folder).await;
    let mut again = Peer::connect(&world, "ws", "peer").await;
    again.token = peer.token;
    let handshake = again.hello().await;
    again.prove(&handshake).await;
    let continued = |frame: &Frame<Down<'_>>| match &frame.message {
        Down::Welcome(welcome) => Some(welcome.continued.is_some()),
        _ => None,
    };
    assert!(next(&mut again, "a welcome", continued).await, "it goes on");
    let last = send_sound(&again, 0, &note).await;
    let last = send_sound(&again, last, &question).await;
    again.control(end(last)).await;
    // Two threads recognise them, and the shorter one may be done first.
    let of_note = |frame: &Frame<Down<'_>>| match &frame.message {
        Down::Transcript(transcript) if transcript.is_final => {
            Some(transcript.text.to_lowercase()).filter(|text| text.contains("milk"))
        }
        _ => None,
    };
    let note = next(&mut again, "the transcript of the note", of_note).await;
    assert!(!note.contains("time"), "{note}");
}

/// Waits for an acknowledgement of the sound up to this packet; the capture time before which sound was dealt with.
async fn sound_acknowledged(peer: &mut Peer, sequence: u32) -> u64 {
    let acknowledged = |frame: &Frame<Down<'_>>| match &frame.message {
        Down::Ack(ack) if ack.audio == sequence => Some(ack.sound_until_us),
        _ => None,
    };
    next(peer, "an acknowledgement", acknowledged).await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_acknowledges_nothing_is_acknowledged_all_the_same() {
    let world = World::start().await;
    let mut peer = Peer::welcomed(&world, "ws", "peer").await;
    let mut sequence = 0;
    for muted in [true, false].into_iter().cycle() {
        peer.control(Up::Mute(up::Mute { muted })).await;
        let listening = |frame: &Frame<Down<'_>>| match &frame.message {
            Down::Listening(_) => Some(frame.stamp.sequence),
            _ => None,
        };
        sequence = next(&mut peer, "what the gateway listens to", listening).await.max(sequence);
        if !muted && sequence as usize > limits::REPLAY_CONTROL_FRAMES_MAX {
            break;
        }
    }
    for sequence in 1..=limits::ACK_AUDIO_PACKETS_MAX {
        peer.raw(sound(sequence)).await;
    }
    sound_acknowledged(&mut peer, limits::ACK_AUDIO_PACKETS_MAX).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_takes_long_is_not_waited_for_with_acknowledgements() {
    let world = World::start().await;
    let mut peer = Peer::welcomed(&world, "ws", "peer").await;
    let (release, released) = std::sync::mpsc::sync_channel::<()>(1);
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let nothing = Write::RemoveRow { kind: Kind::Ledger, owner: String::new(), key: Vec::new() };
    let held = world.gateway().services().store.submit(nothing, move |_| {
        begun.send(()).expect("the test waits");
        assert!(released.recv().is_err(), "the sender is dropped");
    });
    held.expect("a place in its queue");
    has_begun.await.expect("its thread");
    peer.control(Up::Mute(up::Mute { muted: true })).await;
    for sequence in 1..=limits::ACK_AUDIO_PACKETS_MAX {
        peer.raw(sound(sequence)).await;
    }
    assert_eq!(sound_acknowledged(&mut peer, limits::ACK_AUDIO_PACKETS_MAX).await, 0, "the device is to keep it");
    drop(release);
    let last = limits::ACK_AUDIO_PACKETS_MAX + 1;
    peer.raw(sound(last)).await;
    assert!(sound_acknowledged(&mut peer, last).await > 0, "what comes into a muted microphone is dealt with");
}
