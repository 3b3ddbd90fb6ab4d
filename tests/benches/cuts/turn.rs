//! One turn whose link breaks, and what became of it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use audio::asr::normalise::for_commands;
use device_protocol::Choice;
use firmware_sim::microphone::Clip;
use firmware_sim::transport::Scheme;
use firmware_sim::{Event, Glasses, Seen};
use tokio::time::{Instant, sleep, timeout};

use super::plan::{After, Group, Plan, State, network};
use super::stage::{Asked, Done, SESSIONS};
use crate::common::{FRAME_US, TestGateway, until};

/// How long a turn may take beyond its cut.
pub const TURN_MAX: Duration = Duration::from_secs(60);
/// What comes twice comes soon.
const TWICE: Duration = Duration::from_millis(1_500);
/// How long a link that breaks again stays broken at least: the glasses carry out a cut in their own time.
const GAP_MIN: Duration = Duration::from_millis(50);
/// How long the wearer waits before the answer to a question is given once more, and how often.
const AGAIN: Duration = Duration::from_secs(3);
const ANSWERS_MAX: u32 = 8;
/// How much of a speech may be missing where the address changed, in microseconds: less than a word. The gateway goes on
/// sending to the old address until something comes from the new one.
const MOVED_US_MAX: u64 = 400_000;
/// Words of the sentences by which a wearer is told of a loss.
const TOLD: [&str; 2] = ["did not catch that", "did not reach you"];
/// What is said while a tool takes its time.
const FILLER: &str = "Let me check.";

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
    /// How much of them was filled in for packets that did not come, in microseconds.
    pub concealed_us: u64,
    /// Answers of a tool that were heard to their end, and how often it ran.
    pub answers: usize,
    pub runs: u64,
    /// What is not as it has to be.
    pub broken: Vec<String>,
    /// The wearer was told that something was not heard, or that the answer was cut.
    pub told: bool,
    /// No answer had been heard to its end when the link was there again.
    pub owed: bool,
    /// The address changed.
    pub has_moved: bool,
    /// Of a sentence that had lost sound other words were acted upon.
    pub in_part: bool,
}

impl Outcome {
    /// Whether one sentence was understood, and answered once and to the end.
    pub fn is_plain(&self) -> bool {
        let is_heard = matches!(self.heard.as_slice(), [(_, true)]);
        self.transcripts.len() == 1 && is_heard && self.concealed_us <= FRAME_US && self.broken.is_empty()
    }

    /// Whether anything was heard to its end.
    pub fn is_answered(&self) -> bool {
        self.heard.iter().any(|(_, complete)| *complete)
    }

    /// How much of what is said may be missing, in microseconds.
    fn missing_us_max(&self) -> u64 {
        if self.has_moved { MOVED_US_MAX } else { FRAME_US }
    }
}

/// Where a turn begins in what the glasses saw and heard.
#[derive(Clone, Copy)]
struct Begin {
    event: u64,
    speech: usize,
}

/// What the end of a turn is known by.
#[derive(Clone, Copy)]
enum Awaited {
    /// Any answer.
    Answer,
    /// That of the tool.
    Of(Asked),
    /// What tells of a loss.
    Told,
}

impl Awaited {
    fn is_met(self, seen: &Seen) -> bool {
        let Seen::SpeechHeard { complete: true, text, .. } = seen else { return false };
        match self {
            Self::Answer => text != FILLER,
            Self::Of(asked) => text.contains(asked.answer),
            Self::Told => tells_of_loss(text),
        }
    }
}

fn tells_of_loss(text: &str) -> bool {
    TOLD.iter().any(|words| text.contains(words))
}

/// Someone with glasses.
pub struct Wearer<'a> {
    pub gateway: &'a TestGateway,
    pub done: &'a Done,
    pub user: &'a str,
    pub clips: &'a [Clip],
    pub glasses: &'a Glasses,
    /// One-way delay of the network.
    pub delay: Duration,
}

impl Wearer<'_> {
    fn begin(&self) -> Begin {
        Begin { event: self.glasses.log().mark(), speech: self.glasses.heard().len() }
    }

    /// One turn: this sentence, whole, without a cut.
    pub async fn undisturbed(&self, sentence: usize) -> Result<Outcome> {
        let begin = self.begin();
        self.glasses.say(self.clips[sentence].clone()).await?;
        let mut outcome = Outcome::default();
        self.see(begin, Awaited::Answer, &mut outcome).await;
        self.violations(begin, &mut outcome);
        Ok(outcome)
    }

    /// One turn whose link breaks.
    pub async fn cut(&self, plan: &Plan) -> Result<Outcome> {
        let mut outcome = Outcome { plan: Some(plan.clone()), ..Outcome::default() };
        let begin = self.begin();
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
            let question = self.begun(plan.state, begin.event, runs).await?;
            sleep(plan.cut).await;
            self.breaks(plan, question, begin, &mut outcome).await?;
            anyhow::Ok(question)
        };
        let (said, question) = tokio::join!(saying, breaking);
        said?;
        if let Some(question) = question? {
            self.answers(question, begin.event, plan.answers_in_gap).await?;
        }
        match (plan.state, asked) {
            (State::Muted, _) => self.unmutes(&mut outcome).await?,
            (State::Owed(_), _) if outcome.owed => self.see(begin, Awaited::Told, &mut outcome).await,
            (_, Some(asked)) => self.see(begin, Awaited::Of(asked), &mut outcome).await,
            _ => self.see(begin, Awaited::Answer, &mut outcome).await,
        }
        if let Some(asked) = asked {
            outcome.runs = self.done.count(self.user, asked.tool) - runs;
        }
        if self.done.count(self.user, SESSIONS) > sessions {
            outcome.broken.push("the app's session did not go on".to_owned());
        }
        if outcome.concealed_us > outcome.missing_us_max() {
            outcome.broken.push(format!("{} ms of what was said did not come", outcome.concealed_us / 1_000));
        }
        self.violations(begin, &mut outcome);
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
    async fn breaks(&self, plan: &Plan, question: Option<u32>, begin: Begin, outcome: &mut Outcome) -> Result<()> {
        let glasses = self.glasses;
        self.loses(plan).await?;
        if let Some(question) = question.filter(|_| plan.answers_in_gap) {
            glasses.approve(question, Choice::Yes).await?;
        }
        let (mut gap, mut over) = (plan.gap, plan.over);
        if let After::Cut(soon) = plan.after {
            // Both gaps and what is between them are as long as one was to be.
            sleep(gap / 2).await;
            self.returns(plan, over).await?;
            sleep(soon).await;
            self.loses(plan).await?;
            (gap, over) = ((gap / 2).saturating_sub(soon).max(GAP_MIN), plan.over_then);
        }
        sleep(gap).await;
        // What the glasses had of a short answer is played without a link.
        let is_heard = |event: &Event| matches!(event.seen, Seen::SpeechHeard { complete: true, .. });
        outcome.owed = !glasses.log().since(begin.event).iter().any(is_heard);
        let (mark, began_us) = (glasses.log().mark(), glasses.now_us());
        self.returns(plan, over).await?;
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
            outcome.has_moved = true;
        }
        Ok(())
    }

    /// The link breaks: the gateway sees its end, or nothing passes any more.
    async fn loses(&self, plan: &Plan) -> Result<()> {
        if plan.is_silent {
            self.glasses.network(network(self.delay, true)).await?;
        }
        Ok(self.glasses.cut().await?)
    }

    /// The network is there again, and the glasses come back.
    async fn returns(&self, plan: &Plan, over: Scheme) -> Result<()> {
        if plan.is_silent {
            self.glasses.network(network(self.delay, false)).await?;
        }
        Ok(self.glasses.reconnect(Some(self.gateway.target(over)?)).await?)
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
        let begin = self.begin();
        self.glasses.mute(false).await?;
        let listens = |event: &Event| matches!(&event.seen, Seen::Listening { state, .. } if state != "muted");
        if timeout(TURN_MAX, self.glasses.log().find(begin.event, listens)).await.is_err() {
            outcome.broken.push("it stays muted".to_owned());
        }
        self.glasses.text("what is twelve times three?").await?;
        self.see(begin, Awaited::Answer, outcome).await;
        if !outcome.is_answered() {
            outcome.broken.push("no answer after the mute".to_owned());
        }
        Ok(())
    }

    /// Waits for the end of the turn and until nobody speaks, and notes what was seen and heard.
    async fn see(&self, begin: Begin, awaited: Awaited, outcome: &mut Outcome) {
        let log = self.glasses.log();
        let is_over = |event: &Event| awaited.is_met(&event.seen) || Awaited::Told.is_met(&event.seen);
        let has_ended = timeout(TURN_MAX, log.find(begin.event, is_over)).await.is_ok();
        let ends = Instant::now() + TURN_MAX;
        loop {
            sleep(TWICE).await;
            if !is_speaking(&log.since(begin.event)) || Instant::now() >= ends {
                break;
            }
        }
        for event in log.since(begin.event) {
            outcome.answers += usize::from(awaited.is_met(&event.seen));
            match event.seen {
                Seen::Transcript { is_final: true, addressed: true, text, .. } => outcome.transcripts.push(text),
                Seen::SpeechHeard { complete: true, text, .. } => outcome.told |= tells_of_loss(&text),
                _ => {}
            }
        }
        // Of a sentence that was too old to be kept nothing may come.
        let is_lost = matches!(awaited, Awaited::Answer) && outcome.transcripts.is_empty();
        if !has_ended && !is_lost {
            outcome.broken.push(format!("nothing that ends the turn within {} s", TURN_MAX.as_secs()));
        }
        for speech in self.glasses.heard().into_iter().skip(begin.speech) {
            outcome.heard.push((speech.played_us, speech.complete));
            outcome.concealed_us += speech.concealed_us;
        }
    }

    fn violations(&self, begin: Begin, outcome: &mut Outcome) {
        for event in self.glasses.log().since(begin.event) {
            if let Seen::Violation { what } = event.seen {
                outcome.broken.push(format!("the protocol was broken: {what}"));
            }
        }
    }
}

/// Whether a speech has begun and is not over.
fn is_speaking(events: &[Event]) -> bool {
    let mut begun = BTreeSet::new();
    for event in events {
        match event.seen {
            Seen::SpeechStart { speech, .. } => {
                begun.insert(speech);
            }
            Seen::SpeechHeard { speech, .. } => {
                begun.remove(&speech);
            }
            _ => {}
        }
    }
    !begun.is_empty()
}

/// Notes what is other than in the turn without a cut: the words of a transcript, or the length of the answer. A recogniser
/// may write "80?" and "80." of the same sound, cut into other packets.
pub fn compare(group: Group, whole: &Outcome, cut: &mut Outcome) {
    let words = |outcome: &Outcome| outcome.transcripts.iter().map(|text| for_commands(text)).collect::<Vec<_>>();
    let is_understood = words(whole) == words(cut);
    if group != Group::Kept && (!is_understood || cut.told) {
        // Sound was too old to be kept.
        cut.in_part = !is_understood && !cut.transcripts.is_empty();
        return;
    }
    if !is_understood {
        cut.broken.push(format!("transcripts {:?}, without a cut {:?}", cut.transcripts, whole.transcripts));
    }
    let is_same = match (whole.heard.as_slice(), cut.heard.as_slice()) {
        ([(whole_us, true)], [(cut_us, true)]) => whole_us.abs_diff(*cut_us) <= cut.missing_us_max(),
        _ => false,
    };
    if !is_same {
        cut.broken.push(format!("heard {:?}, without a cut {:?}", cut.heard, whole.heard));
    }
}
