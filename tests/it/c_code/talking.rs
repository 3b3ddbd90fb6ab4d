//! Gateways that say much: the client goes on listening, playing and telling.

use std::time::Duration;

use device_protocol::{Decoded, Frame, PlayState, Up, decode_up};
use tokio::time::{MissedTickBehavior, interval};

use super::{
    gateway::{
        CLOSE, Gateway, Inbound, RATE_HZ, display, heartbeat, hush, pairing_code, speech_chunk, speech_end,
        speech_start,
    },
    sanitized_client,
};

/// What a client sent until its goodbye.
#[derive(Debug, Default)]
pub struct Heard {
    /// Number and capture time of each packet of sound, in microseconds.
    sound: Vec<(u32, u64)>,
    /// The last packet, as it says.
    last_sound: Option<u32>,
    /// Each report: the speech, how far it was played in microseconds, and its state.
    pub played: Vec<(u32, u64, PlayState)>,
}

impl Heard {
    /// Takes in one frame; `false`: it was the goodbye.
    fn take(&mut self, frame: &[u8]) -> bool {
        let Ok(Decoded::Frame(Frame { stamp, message })) = decode_up(frame) else {
            panic!("not of this version: {frame:?}")
        };
        match message {
            Up::Audio(audio) => {
                assert_eq!((audio.duration_us, audio.payload.len()), (20_000, 640));
                self.sound.push((stamp.sequence, stamp.time_us));
            }
            Up::AudioEnd(end) => self.last_sound = Some(end.last_audio_sequence),
            Up::Played(played) => self.played.push((played.speech, played.played_us, played.state)),
            Up::Goodbye(_) => return false,
            _ => {}
        }
        true
    }
}

/// Listens until the client says goodbye.
pub async fn heard(inbound: &mut Inbound) -> Heard {
    let mut heard = Heard::default();
    while heard.take(&inbound.frame().await.expect("a goodbye first")) {}
    heard
}

/// A frame comes each 3 ms: a client that reads on while there is something to read would never send.
#[tokio::test(flavor = "multi_thread")]
async fn speech_and_displays_without_end_do_not_hold_up_the_sound() {
    let folder = tempfile::tempdir().unwrap();
    let client = sanitized_client(folder.path());
    let gateway = Gateway::start("127.0.0.1:0").await;
    let file = folder.path().join("said.wav");
    audio::wav::write(&file, &vec![100; 16_000], RATE_HZ).expect("a WAV");
    let script = async {
        let (mut inbound, mut outbound) = gateway.welcomed().await;
        let talking = async {
            let mut beat = interval(Duration::from_millis(3));
            beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
            outbound.say(speech_start(1)).await;
            for at in 0_u64.. {
                beat.tick().await;
                let message = match (at / 7, at % 7) {
                    (packet @ 0..50, 0) => speech_chunk(1, 20_000 * packet, &[1; 640]),
                    (50, 0) => speech_end(1, 1_000_000),
                    _ => display("and so on"),
                };
                outbound.say(message).await;
            }
        };
        tokio::select! {
            heard = heard(&mut inbound) => heard,
            () = talking => unreachable!("it never ends"),
        }
    };
    let words = ["--say", file.to_str().expect("UTF-8"), "--wait", "50"];
    let (ended, heard) = tokio::join!(gateway.visited(&client, &words), script);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.said.contains("1 speeches, 1000 ms\n"), "{}", ended.said);
    // A second of sound, and two of silence: all of it, in its order and at its times.
    let numbers: Vec<u32> = heard.sound.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=150).collect::<Vec<_>>());
    assert_eq!(heard.last_sound, Some(150));
    assert!(heard.sound.is_sorted_by(|(_, before), (_, behind)| before + 20_000 == *behind), "{:?}", heard.sound);
    assert_eq!(heard.played.last(), Some(&(1, 1_000_000, PlayState::Finished)), "{:?}", heard.played);
}

/// The close is behind the goodbye and has its number; then nothing follows.
#[tokio::test(flavor = "multi_thread")]
async fn a_goodbye_is_followed_by_a_close_with_its_code() {
    let folder = tempfile::tempdir().unwrap();
    let client = sanitized_client(folder.path());
    let gateway = Gateway::start("127.0.0.1:0").await;
    let script = async {
        let (mut inbound, _outbound) = gateway.welcomed().await;
        heard(&mut inbound).await;
        [inbound.next().await, inbound.next().await]
    };
    let (ended, behind) = tokio::join!(gateway.visited(&client, &["--wait", "0"]), script);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(behind, [Some((CLOSE, 4_201_u16.to_be_bytes().to_vec())), None]);
}

/// What a gateway says before the welcome counts as well.
#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_in_the_wait_for_pairing_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let client = sanitized_client(folder.path());
    let gateway = Gateway::start("127.0.0.1:0").await;
    let script = async {
        let (mut inbound, mut outbound) = gateway.proven().await;
        outbound.say(pairing_code()).await;
        outbound.say(heartbeat()).await;
        let frame = inbound.frame().await.expect("a heartbeat");
        match decode_up(&frame) {
            Ok(Decoded::Frame(Frame { message: Up::Heartbeat(beat), .. })) => beat.echo_us,
            other => panic!("{other:?}"),
        }
    };
    let (_, echo_us) = tokio::join!(gateway.visited(&client, &[]), script);
    // The time in the stamp of each frame of this gateway.
    assert_eq!(echo_us, 1);
}

/// 60 s of a session are kept for a file. What comes behind them is played like the rest.
#[tokio::test(flavor = "multi_thread")]
async fn speech_behind_what_is_kept_is_played() {
    let folder = tempfile::tempdir().unwrap();
    let client = sanitized_client(folder.path());
    let gateway = Gateway::start("127.0.0.1:0").await;
    let script = async {
        let (mut inbound, mut outbound) = gateway.welcomed().await;
        outbound.say(speech_start(1)).await;
        outbound.say(speech_chunk(1, 59_980_000, &[0; 640])).await;
        outbound.say(hush()).await;
        outbound.say(speech_start(2)).await;
        for at in 0..4 {
            outbound.say(speech_chunk(2, 20_000 * at, &[0; 640])).await;
        }
        let mut before = Heard::default();
        while before.played.last().is_none_or(|(speech, _, state)| (*speech, *state) != (2, PlayState::Playing)) {
            assert!(before.take(&inbound.frame().await.expect("it plays")), "{before:?}");
        }
        outbound.say(speech_end(2, 80_000)).await;
        heard(&mut inbound).await
    };
    let (ended, heard) = tokio::join!(gateway.visited(&client, &["--wait", "50"]), script);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(heard.played.last(), Some(&(2, 80_000, PlayState::Finished)), "{heard:?}");
}
