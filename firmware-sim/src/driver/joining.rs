//! Connecting, opening or resuming a session, and reconnecting.

use std::sync::atomic::Ordering;

use device_protocol::{Decoded, decode_up};

use super::*;
use crate::tools;

impl Driver {
    /// Connects; `other`: over the other way, if there is one. A link that stands is kept until the new one has the
    /// session.
    pub(super) fn connect(&mut self, other: bool) {
        self.retry_us = None;
        if self.connecting.is_some() {
            // The outcome of the attempt that is under way decides.
            return;
        }
        let identity = self.identity.clone();
        let (clock, log) = (self.clock, self.log.clone());
        let (profile, network) = (self.options.profile.clone(), self.network.clone());
        self.trying_other = other && self.options.other.is_some();
        let target = self.options.other.as_ref().filter(|_| other).unwrap_or(&self.options.target).clone();
        let resume = self.welcome.as_ref().filter(|welcome| !welcome.token.is_empty() && self.sequences.can_resume());
        let (control, audio) = self.sequences.received();
        let resume = resume.map(|welcome| Resume { token: welcome.token.clone(), control, audio });
        self.attempts += 1;
        let proven_us = Arc::clone(&self.proven_us);
        let patience = if self.link.is_some() { PROBE_MAX } else { Duration::MAX };
        self.connecting = Some(Box::pin(async move {
            let connected = async {
                let mut link = transport::open_through(&target, network.as_ref()).await?;
                let (resume, proven_us) = (resume.as_ref(), proven_us.as_ref());
                let welcome = handshake::shake(&mut link, &identity, &profile, resume, clock, &log, proven_us).await?;
                Ok((link, welcome))
            };
            match timeout(patience, connected).await {
                Ok(result) => result,
                Err(_) => Err(Error::Transport(target.unreachable("no answer"))),
            }
        }));
    }

    /// When another connection is tried while the link stands: the link is silent though sound is unacknowledged, or it
    /// goes the other way.
    pub(super) fn probe_due(&self) -> Option<u64> {
        let has_other = self.options.other.is_some();
        if !(has_other || self.options.reconnect) || self.link.is_none() || self.connecting.is_some() {
            return None;
        }
        let patience_us = if has_other { SILENT_US_MAX } else { SILENT_ALONE_US_MAX };
        let silent_us = self.sequences.unacknowledged_sound_us().map(|at| at.max(self.last_received_us) + patience_us);
        let back_us = self.on_other.then_some(self.last_opened_us + micros(self.options.first_again_after));
        let due_us = silent_us.into_iter().chain(back_us).min()?;
        Some(due_us.max(self.probe_us))
    }

    /// Moves the link to another address, where its transport can.
    pub(super) fn move_link(&mut self) {
        match self.link.as_ref().and_then(|link| link.rebind().transpose()) {
            Some(Ok(address)) => self.see(Seen::Moved { address: address.to_string() }),
            Some(Err(error)) => self.see(Seen::Violation { what: format!("no other address: {error}") }),
            None => {}
        }
    }

    pub(super) fn handle_connected(&mut self, result: Result<(Link, Welcome), Error>) {
        self.probe_us = self.clock.now_us() + PROBE_EVERY_US;
        let error = match result {
            Ok((link, welcome)) => match self.open_session(link, welcome) {
                Ok(()) => {
                    // A link that is silent soon after it began is left as soon as any other.
                    self.probe_us = 0;
                    return self.settle(Ok(()));
                }
                Err(error) => error,
            },
            Err(_) if self.link.is_some() => return,
            Err(error) => error,
        };
        if let Error::Handshake(handshake::Error::Rejected { code, message, .. }) = &error {
            self.see(Seen::Rejected { code: code.clone(), message: message.clone() });
        } else {
            self.see(Seen::LinkLost { reason: error.to_string() });
        }
        // The failure of the first attempt is returned to the caller; later ones are retried with back-off.
        if self.first.is_some() || !error.may_retry() || !self.options.reconnect {
            self.over |= self.first.is_some() || !error.may_retry();
            self.settle(Err(error));
            return;
        }
        self.retry_later();
        if let Error::Handshake(handshake::Error::Rejected { retry_after_ms, .. }) = error {
            self.not_before(retry_after_ms);
        }
    }

    /// Whether the gateway may have replaced the connection by another one of these glasses: one that is being opened, or one
    /// that was given up while this one stood. Without a proof it replaces none, and where the session that it gave away has
    /// run out, somebody else has these glasses' place.
    pub(crate) fn may_replace_itself(&self) -> bool {
        let proven_us = self.proven_us.load(Ordering::Relaxed);
        let kept = self.welcome.as_ref().map_or(Duration::ZERO, |welcome| welcome.kept);
        let is_recent = proven_us > 0 && self.clock.now_us() < proven_us + micros(PROBE_MAX + kept);
        is_recent && (self.connecting.is_some() || self.options.reconnect)
    }

    pub(super) fn settle(&mut self, outcome: Result<(), Error>) {
        if let Some(first) = self.first.take() {
            drop(first.send(outcome));
        }
    }

    pub(super) fn retry_later(&mut self) {
        let wait_us = BACK_OFF_MS[self.attempts.min(BACK_OFF_MS.len() - 1)] * 1_000;
        let more_us = self.random.below(wait_us / 4 + 1);
        self.retry_us = Some(self.clock.now_us() + wait_us + more_us);
    }

    /// The gateway names the earliest next attempt, in milliseconds from now.
    pub(crate) fn not_before(&mut self, retry_after_ms: u32) {
        let earliest_us = self.clock.now_us() + u64::from(retry_after_ms) * 1_000;
        self.retry_us = self.retry_us.map(|at_us| at_us.max(earliest_us));
    }

    pub(super) fn open_session(&mut self, link: Link, mut welcome: Welcome) -> Result<(), Error> {
        let now_us = self.clock.now_us();
        let early = std::mem::take(&mut welcome.early);
        if welcome.paired_now {
            self.identity.pin(welcome.gateway_key).map_err(handshake::Error::Identity)?;
        }
        let again = match (welcome.resumed, welcome.continued) {
            (None, Some((control, sound_until_us))) => self.sequences.not_dealt_with(control, sound_until_us),
            _ => VecDeque::new(),
        };
        let has_lost = self.has_lost(&welcome);
        if welcome.resumed.is_none() {
            self.forget_session(now_us, welcome.continued.is_some());
        }
        self.speaker.set_format(welcome.audio_down);
        if self.options.profile.microphone_hz > 0 && self.microphone.is_none() {
            let (background, seed) = (self.options.background, self.options.seed);
            let microphone = Microphone::new(welcome.audio_up, background, seed, self.options.silence.clone());
            let mut microphone = microphone.map_err(Error::Format)?;
            microphone.limit_bitrate(self.options.bitrate_max).map_err(Error::Format)?;
            if self.options.dtx {
                microphone.pause_in_silence().map_err(Error::Format)?;
            }
            let rate_hz = microphone.rate_hz();
            let wake = self.options.wake.as_ref().map(|chip| Wake::new(chip, rate_hz)).transpose();
            self.wake = wake.map_err(Error::Format)?;
            self.microphone = Some(microphone);
            self.capture_us = now_us;
            self.set_scene(&self.options.acoustics.parts());
        }
        if let (None, Some(microphone)) = (welcome.resumed, &mut self.microphone) {
            microphone.begin_session(welcome.acknowledges).map_err(Error::Format)?;
        }
        self.see(Seen::Welcome {
            session: welcome.session,
            gateway: welcome.gateway_name.clone(),
            user: welcome.user_name.clone(),
            resumed: welcome.resumed.is_some(),
            continued: welcome.continued.is_some(),
            transport: link.name,
            up: (codec_name(welcome.audio_up.codec), welcome.audio_up.rate_hz),
            down: (codec_name(welcome.audio_down.codec), welcome.audio_down.rate_hz),
        });
        self.tell_of_return(welcome.resumed.is_some() || welcome.continued.is_some(), has_lost);
        self.see(Seen::Listening { turn: self.turn, state: welcome.listening.clone() });
        let resumed = welcome.resumed;
        // A replay has all of it.
        self.missing.clear();
        self.heartbeat_us = now_us + micros(welcome.heartbeat);
        self.last_received_us = now_us;
        self.echo = None;
        // The gateway may have closed the old link before its welcome on this one was read.
        self.retry_us = None;
        self.attempts = 0;
        self.proven_us.store(0, Ordering::Relaxed);
        self.on_other = self.trying_other;
        self.last_opened_us = now_us;
        self.welcome = Some(welcome);
        self.link = Some(link);
        match resumed {
            Some((control, audio)) => {
                self.replay = self.sequences.replay(control, audio);
                self.replay_us = now_us;
                self.lag.begin(!self.replay.is_empty());
                for frame in early {
                    self.handle_frame(&frame);
                }
            }
            None => {
                self.lag.begin(!again.is_empty());
                self.introduce();
                self.say_again(again);
            }
        }
        self.order_sound();
        Ok(())
    }

    /// Whether sound was too old to be kept that this gateway lacks.
    fn has_lost(&self, welcome: &Welcome) -> bool {
        match (welcome.resumed, welcome.continued) {
            (Some((_, audio)), _) => self.sequences.has_lost_behind(audio),
            (None, Some((_, sound_until_us))) => self.sequences.has_lost_since(sound_until_us),
            (None, None) => false,
        }
    }

    /// A new session begins; `continued`: with what is left of the old one.
    fn forget_session(&mut self, now_us: u64, continued: bool) {
        // The last reports on the old session's speech use its sequence numbers, not the new ones.
        self.speaker.reset(now_us);
        self.take_reports();
        if continued {
            self.sequences.continue_with_new_numbers();
        } else {
            self.sequences = Sequences::default();
        }
        self.turn = 0;
        self.screen.reset();
        self.answers.clear();
        self.approvals.clear();
        self.replay.clear();
    }

    /// Sends what a restarted gateway has not dealt with, as frames of the new session.
    fn say_again(&mut self, frames: VecDeque<Replayed>) {
        let now_us = self.clock.now_us();
        for frame in frames {
            let Ok(Decoded::Frame(Frame { stamp, message })) = decode_up(&frame.bytes) else { continue };
            let of_the_wearer = matches!(
                message,
                Up::Audio(_)
                    | Up::AudioEnd(_)
                    | Up::Button(_)
                    | Up::Touch(_)
                    | Up::Mute(_)
                    | Up::HeadPosition(_)
                    | Up::TextInput(_)
                    | Up::Wake(_)
            );
            if of_the_wearer {
                let message = match message {
                    Up::AudioEnd(end) => {
                        Up::AudioEnd(up::AudioEnd { last_audio_sequence: self.sequences.audio_sent(), ..end })
                    }
                    message => message,
                };
                // From the first sound on everything waits behind it.
                self.queue(message, stamp.time_us, 0);
            }
        }
        self.replay_us = now_us;
        // Behind what was said before.
        if self.muted {
            self.control(up::Mute { muted: true });
        }
    }

    pub(super) fn introduce(&mut self) {
        if self.options.profile.offer_tools {
            let mut offers = tools::offers();
            // In the wearer's language: on a thin link all of them would take seconds.
            let language = &self.options.profile.language;
            let phrases = offers.each_ref().map(|offer| tools::phrases_in(offer.phrases, language));
            offers.iter_mut().zip(&phrases).for_each(|(offer, phrases)| offer.phrases = phrases);
            self.control(up::ToolList { revision: 1, tools: device_protocol::List::new(&offers) });
        }
        self.control(up::Battery { percent: self.options.battery_percent, charging: false });
        self.control(up::Connection { link: LinkKind::Wired, rssi_dbm: 0 });
        if let Some(updater) = &mut self.updater {
            updater.reset();
        }
        self.report_firmware();
    }
}

fn codec_name(codec: device_protocol::Codec) -> String {
    crate::names::named(codec.name())
}

#[cfg(test)]
mod tests {
    use device_protocol::down::AudioFormat;

    use super::*;

    /// Glasses without a microphone, with this log. Nobody commands them.
    fn glasses(log: &Log) -> Driver {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::new("ws://127.0.0.1:1".parse().unwrap(), folder.path());
        options.profile.microphone_hz = 0;
        let identity = Identity::load_or_make(&options.state).unwrap();
        let ((_, queue), (first, _)) = (mpsc::channel(1), oneshot::channel());
        Driver::new(options, identity, Clock::start(), log.clone(), Arc::default(), queue, first)
    }

    /// A link to nobody.
    fn link() -> Link {
        Link {
            up: mpsc::channel(1).0,
            down: mpsc::channel(1).1,
            binding: [0; 32],
            certificate: [0; 32],
            name: "ws",
            loses_sound: false,
            sound_in_order: Arc::default(),
            endpoint: None,
        }
    }

    fn welcome(resumed: Option<(u32, u32)>, continued: Option<(u32, u64)>) -> Welcome {
        let codec = device_protocol::Codec::Pcm16;
        let format = AudioFormat { codec, rate_hz: 16_000, frame_ms: 20, lc3_frame_us: 0, lc3_frame_bytes: 0 };
        Welcome {
            session: 1,
            token: vec![1],
            resumed,
            continued,
            gateway_name: String::new(),
            user_name: String::new(),
            acknowledges: true,
            kept: Duration::from_secs(30),
            heartbeat: Duration::from_secs(5),
            audio_up: format,
            audio_down: format,
            listening: "idle".to_owned(),
            gateway_key: [0; 32],
            paired_now: false,
            early: Vec::new(),
        }
    }

    #[tokio::test]
    async fn what_was_said_too_long_ago_to_be_kept_is_told_by_a_sound() {
        // What the gateway has received of the session that goes on, or dealt with before it was restarted. Of two packets the
        // first, captured at 5 s, is too old to be kept.
        for (resumed, continued, sound) in [
            (Some((0, 0)), None, Some("error")),
            (Some((0, 1)), None, None),
            (None, Some((0, 0)), Some("error")),
            (None, Some((0, 5_000_001)), None),
            (None, None, Some("error")),
        ] {
            let log = Log::default();
            let mut driver = glasses(&log);
            driver.open_session(link(), welcome(None, None)).unwrap();
            driver.sequences.handle_dealt_with(1);
            driver.sequences.keep_sound(1, (5_000_000, 20_000), Bytes::new());
            driver.sequences.keep_sound(2, (40_000_000, 20_000), Bytes::new());
            driver.lose("cut");
            driver.open_session(link(), welcome(resumed, continued)).unwrap();
            let mut sounds = log.since(0).into_iter().filter_map(|event| match event.seen {
                Seen::LinkSound { sound } => Some(sound),
                _ => None,
            });
            assert_eq!(sounds.next_back(), sound, "{resumed:?} {continued:?}");
        }
    }

    #[tokio::test]
    async fn a_repeated_end_of_sound_names_the_last_sound_that_is_repeated_before_it() {
        // Of five packets the gateway has dealt with all before this time.
        for (sound_until_us, last) in [(60_001, 2), (0, 5), (200_000, 0)] {
            let mut driver = glasses(&Log::default());
            driver.open_session(link(), welcome(None, None)).unwrap();
            for number in 1..=5 {
                let codec = device_protocol::Codec::Pcm16;
                let packet = up::Audio { codec, rate_hz: 16_000, duration_us: 20_000, payload: &[0; 640] };
                driver.queue(Up::Audio(packet), number * 20_000, 0);
            }
            let end = up::AudioEnd { last_audio_sequence: 5, reason: MicEnd::Released };
            driver.queue(Up::AudioEnd(end), 120_000, 0);
            driver.lose("cut");
            driver.open_session(link(), welcome(None, Some((0, sound_until_us)))).unwrap();
            let named = driver.replay.iter().find_map(|frame| match decode_up(&frame.bytes) {
                Ok(Decoded::Frame(Frame { message: Up::AudioEnd(end), .. })) => Some(end.last_audio_sequence),
                _ => None,
            });
            assert_eq!(named, Some(last), "{sound_until_us}");
        }
    }

    #[tokio::test]
    async fn who_has_a_session_again_does_not_connect_once_more() {
        let mut driver = glasses(&Log::default());
        driver.open_session(link(), welcome(None, None)).unwrap();
        // Another connection is being opened, and takes the session from this one.
        driver.lose("replaced");
        assert!(driver.retry_us.is_some());
        driver.open_session(link(), welcome(Some((0, 0)), None)).unwrap();
        assert_eq!(driver.retry_us, None);
    }

    #[tokio::test]
    async fn who_is_refused_comes_back_no_earlier_than_the_gateway_says() {
        let mut driver = glasses(&Log::default());
        driver.settle(Ok(()));
        let before_us = driver.clock.now_us();
        let (code, message) = ("rate_limited".to_owned(), String::new());
        let refused = handshake::Error::Rejected { code, message, retry_after_ms: 60_000, for_good: false };
        driver.handle_connected(Err(refused.into()));
        assert!(driver.retry_us.is_some_and(|at_us| at_us >= before_us + 60_000_000), "{:?}", driver.retry_us);
    }

    #[tokio::test(start_paused = true)]
    async fn where_sound_is_not_acknowledged_for_long_another_connection_is_tried() {
        // Over the other way, and where there is none over the same one.
        for (has_other, patience_ms) in [(true, 700), (false, 2_000)] {
            let mut driver = glasses(&Log::default());
            driver.options.other = has_other.then(|| "ws://127.0.0.1:2".parse().unwrap());
            driver.open_session(link(), welcome(None, None)).unwrap();
            driver.sequences.keep_sound(1, (driver.clock.now_us(), 20_000), Bytes::new());
            driver.sequences.handle_ack(0, 1);
            tokio::time::advance(Duration::from_secs(3)).await;
            driver.run_due();
            assert!(driver.connecting.is_none(), "{has_other}: all is acknowledged");
            driver.sequences.keep_sound(2, (driver.clock.now_us(), 20_000), Bytes::new());
            tokio::time::advance(Duration::from_millis(patience_ms - 1)).await;
            driver.run_due();
            assert!(driver.connecting.is_none(), "{has_other}: too soon");
            tokio::time::advance(Duration::from_millis(1)).await;
            driver.run_due();
            assert_eq!((driver.connecting.is_some(), driver.trying_other), (true, has_other));
            assert!(driver.link.is_some(), "{has_other}: whichever has the session");
        }
    }

    #[tokio::test]
    async fn after_a_cut_nobody_connects_unasked() {
        let mut driver = glasses(&Log::default());
        // The link was lost by itself before, or an attempt has failed.
        driver.retry_later();
        assert!(driver.retry_us.is_some());
        driver.handle_command(Command::Cut);
        assert_eq!(driver.retry_us, None);
    }
}
