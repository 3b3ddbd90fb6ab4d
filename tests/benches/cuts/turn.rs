//! One turn whose link breaks, and what became of it.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use audio::asr::normalise::for_commands;
use device_protocol::Choice;
use firmware_sim::microphone::Clip;
use firmware_sim::random::Random;
use firmware_sim::transport::{Scheme, Target};
use firmware_sim::{Event, Glasses, Seen};
use tokio::time::{sleep, timeout};

use super::stage::{Asked, Done, POLISH, SESSIONS, SHELVE, SLOW_MS, WIPE};
use crate::common::{FRAME_US, House, until};

/// When in a spoken turn the link may break, in milliseconds from the first sample: the answer is over by then.
const TURN_MS: u64 = 7_000;
/// How long a turn may take beyond its cut.
pub const TURN_MAX: Duration = Duration::from_secs(60);
/// What comes twice comes soon.
const TWICE: Duration = Duration::from_millis(1_500);
/// How long the wearer waits before the answer to a question is given once more, and how often.
const AGAIN: Duration = Duration::from_secs(3);
const ANSWERS_MAX: u32 = 8;
/// Words of the sentences by which a wearer is told of a loss.
const TOLD: [&str; 3] = ["did not catch that", "connection was lost", "did not reach you"];
/// What is said while a tool takes its time.
const FILLER: &str = "Let me check.";

/// How long links stay broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Not longer than glasses keep their sound.
    Kept,
    /// Longer, but the session waits.
    Long,
    /// Longer than the session waits.
    Expired,
}

/// What goes on when the link breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Anywhere in a spoken turn: this sentence, up to the end of its answer.
    Spoken(usize),
    /// The answer to this sentence is owed: it was understood, and its answer not heard.
    Owed(usize),
    /// The wearer is asked.
    Question,
    /// A tool takes its time.
    SlowTool,
    /// A mini-app carries out a call.
    App,
    /// The microphone is muted.
    Muted,
}

impl State {
    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spoken(_) => "spoken",
            Self::Owed(_) => "owed",
            Self::Question => "question",
            Self::SlowTool => "slow tool",
            Self::App => "app",
            Self::Muted => "muted",
        }
    }

    fn asked(self) -> Option<Asked> {
        match self {
            Self::Question => Some(WIPE),
            Self::SlowTool => Some(POLISH),
            Self::App => Some(SHELVE),
            Self::Spoken(_) | Self::Owed(_) | Self::Muted => None,
        }
    }
}

/// What happens soon after the return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    Nothing,
    /// The link breaks again, so long after the attempt to come back began: perhaps in the middle of the handshake or of the
    /// replay.
    Cut(Duration),
    /// The address changes, so long after the welcome: in the middle of the replay. Over WebSocket nothing happens.
    Move(Duration),
}

/// When the link breaks, for how long, and how it comes back.
#[derive(Clone, Debug)]
pub struct Plan {
    pub state: State,
    /// From the moment at which the state holds.
    pub cut: Duration,
    pub gap: Duration,
    pub over: Scheme,
    /// Over what the glasses come back after a second cut.
    pub over_then: Scheme,
    pub after: After,
    /// Whether a question is answered while the link is lost.
    pub answers_in_gap: bool,
}

impl Plan {
    /// `gap_ms`: least and most; `sentences`: how many there are.
    pub fn drawn(random: &mut Random, group: Group, gap_ms: [u64; 2], sentences: u64) -> Self {
        let sentence = random.below(sentences) as usize;
        let (state, within_ms) = match random.below(10) {
            _ if group == Group::Expired => (State::Owed(sentence), 600),
            0..=5 => (State::Spoken(sentence), TURN_MS),
            6 => (State::Question, 1_500),
            7 => (State::SlowTool, SLOW_MS - 500),
            8 => (State::App, 1_500),
            _ => (State::Muted, 1_000),
        };
        let soon = Duration::from_millis(random.below(300));
        let after = match random.below(5) {
            // A return in the middle would be in time.
            0 if group != Group::Expired => After::Cut(soon),
            1 => After::Move(soon),
            _ => After::Nothing,
        };
        Self {
            state,
            cut: Duration::from_millis(random.below(within_ms)),
            gap: Duration::from_millis(gap_ms[0] + random.below(gap_ms[1] - gap_ms[0])),
            over: scheme(random),
            over_then: scheme(random),
            after,
            answers_in_gap: random.below(2) == 0,
        }
    }
}

/// One of both transports.
pub fn scheme(random: &mut Random) -> Scheme {
    if random.below(2) == 0 { Scheme::Wss } else { Scheme::Quic }
}

/// What became of a turn.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub plan: Option<Plan>,
    /// Over what the glasses came back in the end.
    pub over: &'static str,
    /// From the moment at which the network was there again to the welcome, in microseconds.
    pub back_us: i64,
    pub resumed: bool,
    pub transcripts: Vec<String>,
    /// Speeches: how much was played, and whether it was all.
    pub heard: Vec<(u64, bool)>,
    /// Answers of a tool that were heard to their end, and how often it ran.
    pub answers: usize,
    pub runs: u64,
    /// What is not as it has to be.
    pub broken: Vec<String>,
    /// The wearer was told that something was not heard, or that the answer was cut.
    pub told: bool,
    /// An answer was under way when the link broke, and had not been heard to its end.
    pub owed: bool,
}

/// Someone with glasses.
pub struct Wearer<'a> {
    pub house: &'a House,
    pub done: &'a Done,
    pub user: &'a str,
    pub clips: &'a [Clip],
    pub glasses: &'a Glasses,
}

impl Wearer<'_> {
    /// One turn: this sentence, whole, without a cut.
    pub async fn undisturbed(&self, sentence: usize) -> Result<Outcome> {
        let mark = self.glasses.log().mark();
        self.glasses.say(self.clips[sentence].clone()).await?;
        let mut outcome = Outcome::default();
        self.see(mark, None, &mut outcome).await;
        self.violations(mark, &mut outcome);
        Ok(outcome)
    }

    /// One turn whose link breaks.
    pub async fn cut(&self, plan: &Plan) -> Result<Outcome> {
        let mut outcome = Outcome { plan: Some(plan.clone()), ..Outcome::default() };
        let mark = self.glasses.log().mark();
        let asked = plan.state.asked();
        let runs = asked.map_or(0, |asked| self.done.count(self.user, asked.tool));
        let sessions = self.done.count(self.user, SESSIONS).max(1);
        let saying = async {
            match (plan.state, asked) {
                (State::Spoken(sentence) | State::Owed(sentence), _) => {
                    self.glasses.say(self.clips[sentence].clone()).await?;
                }
                (State::Muted, _) => self.glasses.mute(true).await?,
                (_, Some(asked)) => self.glasses.text(asked.request).await?,
                _ => {}
            }
            anyhow::Ok(())
        };
        let breaking = async {
            let question = self.begun(plan.state, mark, runs).await?;
            sleep(plan.cut).await;
            let heard = |event: &Event| matches!(event.seen, Seen::SpeechHeard { complete: true, .. });
            outcome.owed = !self.glasses.log().since(mark).iter().any(heard);
            self.breaks(plan, question, &mut outcome).await?;
            anyhow::Ok(question)
        };
        let (said, question) = tokio::join!(saying, breaking);
        said?;
        if let Some(question) = question? {
            self.answers(question, mark, plan.answers_in_gap).await?;
        }
        if plan.state == State::Muted {
            self.unmutes(&mut outcome).await?;
        } else {
            self.see(mark, asked, &mut outcome).await;
        }
        if let Some(asked) = asked {
            outcome.runs = self.done.count(self.user, asked.tool) - runs;
        }
        if self.done.count(self.user, SESSIONS) > sessions {
            outcome.broken.push("the app's session did not go on".to_owned());
        }
        self.violations(mark, &mut outcome);
        Ok(outcome)
    }

    /// Waits until the state holds; the number of the question, if there is one.
    async fn begun(&self, state: State, mark: u64, runs: u64) -> Result<Option<u32>> {
        let found = |wanted: fn(&Event) -> bool| timeout(TURN_MAX, self.glasses.log().find(mark, wanted));
        match state {
            State::Spoken(_) => {}
            State::Owed(_) => {
                let is_understood =
                    |event: &Event| matches!(event.seen, Seen::Transcript { is_final: true, addressed: true, .. });
                found(is_understood).await.context("no transcript without a cut")?;
            }
            State::Question => {
                let (event, _) =
                    found(|event| matches!(event.seen, Seen::ApprovalRequest { .. })).await.context("no question")?;
                if let Seen::ApprovalRequest { approval, .. } = event.seen {
                    return Ok(Some(approval));
                }
            }
            State::SlowTool | State::App => {
                let tool = state.asked().map_or("", |asked| asked.tool);
                let is_called = || self.done.count(self.user, tool) > runs;
                ensure!(until(TURN_MAX, is_called).await, "not called: {:#?}", self.glasses.log().since(mark));
            }
            State::Muted => {
                found(|event| matches!(&event.seen, Seen::Listening { state, .. } if state == "muted"))
                    .await
                    .context("not muted")?;
            }
        }
        Ok(None)
    }

    /// The link breaks, and comes back.
    async fn breaks(&self, plan: &Plan, question: Option<u32>, outcome: &mut Outcome) -> Result<()> {
        let glasses = self.glasses;
        glasses.cut().await?;
        if let Some(question) = question.filter(|_| plan.answers_in_gap) {
            glasses.approve(question, Choice::Yes).await?;
        }
        let (mut gap, mut over) = (plan.gap, plan.over);
        if let After::Cut(soon) = plan.after {
            // Both gaps and what is between them are as long as one was to be.
            sleep(gap / 2).await;
            glasses.reconnect(Some(self.target(over)?)).await?;
            sleep(soon).await;
            glasses.cut().await?;
            (gap, over) = ((gap / 2).saturating_sub(soon), plan.over_then);
        }
        sleep(gap).await;
        let (mark, began_us) = (glasses.log().mark(), glasses.now_us());
        glasses.reconnect(Some(self.target(over)?)).await?;
        let welcome = |event: &Event| event.at_us >= began_us && matches!(event.seen, Seen::Welcome { .. });
        let found = timeout(TURN_MAX, glasses.log().find(mark, welcome)).await;
        let (event, next) = found.with_context(|| format!("no welcome; seen: {:#?}", glasses.log().since(mark)))?;
        outcome.over = over.name();
        outcome.back_us = i64::try_from(event.at_us - began_us)?;
        outcome.resumed = matches!(event.seen, Seen::Welcome { resumed: true, .. });
        if plan.state == State::Muted {
            let (event, _) = glasses.log().find(next, |event| matches!(event.seen, Seen::Listening { .. })).await;
            if !matches!(&event.seen, Seen::Listening { state, .. } if state == "muted") {
                outcome.broken.push(format!("no longer muted: {:?}", event.seen));
            }
        }
        if let (After::Move(soon), Scheme::Quic) = (plan.after, over) {
            sleep(soon).await;
            glasses.rebind().await?;
        }
        Ok(())
    }

    fn target(&self, scheme: Scheme) -> Result<Target> {
        self.house.target(scheme)
    }

    /// Presses yes, unless that was done, and again where the question is not settled soon. It counts once.
    async fn answers(&self, question: u32, mark: u64, mut is_answered: bool) -> Result<()> {
        let settled =
            |event: &Event| matches!(event.seen, Seen::ApprovalSettled { approval, .. } if approval == question);
        for _ in 0..ANSWERS_MAX {
            if !is_answered {
                self.glasses.approve(question, Choice::Yes).await?;
            }
            if timeout(AGAIN, self.glasses.log().find(mark, settled)).await.is_ok() {
                break;
            }
            is_answered = false;
        }
        Ok(())
    }

    /// Who is no longer muted is answered.
    async fn unmutes(&self, outcome: &mut Outcome) -> Result<()> {
        let mark = self.glasses.log().mark();
        self.glasses.mute(false).await?;
        let listens = |event: &Event| matches!(&event.seen, Seen::Listening { state, .. } if state != "muted");
        if timeout(TURN_MAX, self.glasses.log().find(mark, listens)).await.is_err() {
            outcome.broken.push("it stays muted".to_owned());
        }
        self.glasses.text("what is twelve times three?").await?;
        self.see(mark, None, outcome).await;
        if !outcome.heard.iter().any(|(_, complete)| *complete) {
            outcome.broken.push("no answer after the mute".to_owned());
        }
        Ok(())
    }

    /// Waits for the answer, or that of this tool, and notes what was seen from `mark` on.
    async fn see(&self, mark: u64, asked: Option<Asked>, outcome: &mut Outcome) {
        let words = asked.map_or("", |asked| asked.answer);
        let is_answer = |seen: &Seen| match seen {
            Seen::SpeechHeard { complete: true, text, .. } => text != FILLER && text.contains(words),
            _ => false,
        };
        // Of a sentence that was too old to be kept nothing may come.
        drop(timeout(TURN_MAX, self.glasses.log().find(mark, |event| is_answer(&event.seen))).await);
        sleep(TWICE).await;
        for event in self.glasses.log().since(mark) {
            outcome.answers += usize::from(is_answer(&event.seen));
            match event.seen {
                Seen::Transcript { is_final: true, addressed: true, text, .. } => outcome.transcripts.push(text),
                Seen::SpeechHeard { played_us, complete, text, .. } => {
                    outcome.told |= TOLD.iter().any(|words| text.contains(words));
                    outcome.heard.push((played_us, complete));
                }
                _ => {}
            }
        }
    }

    fn violations(&self, mark: u64, outcome: &mut Outcome) {
        for event in self.glasses.log().since(mark) {
            if let Seen::Violation { what } = event.seen {
                outcome.broken.push(format!("the protocol was broken: {what}"));
            }
        }
    }
}

/// Notes what is other than in the turn without a cut: the words of a transcript, or the length of the answer. A
/// recogniser may write "80?" and "80." of the same sound, cut into other packets.
pub fn compare(whole: &Outcome, cut: &mut Outcome) {
    let words = |outcome: &Outcome| outcome.transcripts.iter().map(|text| for_commands(text)).collect::<Vec<_>>();
    if words(whole) != words(cut) {
        cut.broken.push(format!("transcripts {:?}, without a cut {:?}", cut.transcripts, whole.transcripts));
    }
    let is_same = match (whole.heard.as_slice(), cut.heard.as_slice()) {
        ([(whole_us, true)], [(cut_us, true)]) => whole_us.abs_diff(*cut_us) <= FRAME_US,
        _ => false,
    };
    if !is_same {
        cut.broken.push(format!("heard {:?}, without a cut {:?}", cut.heard, whole.heard));
    }
}
