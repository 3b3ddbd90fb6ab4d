//! One turn: request it, ask the model, run its tool calls and ask again, until the answer is complete.

mod asking;
mod budget;
mod calls;
pub(crate) mod history;
pub(crate) mod phrases;
mod pictures;
mod preamble;
mod progress;
pub(crate) mod reopening;
mod request_view;
mod steps;
mod turn_context;

use alloc::{collections::VecDeque, string::String, vec, vec::Vec};

use self::{calls::Step, history::Heard, pictures::ImagePolicy, progress::Progress};
use crate::{
    context::Context,
    limits::SETTLING_TURNS_MAX,
    output::{Output, Stage, TurnOutcome},
    timers::Timer,
    vocab::{Content, ErrorCode, Message, ModelEvent, ModelOutcome, ModelRoute, Pending, ToolCall, ToolResult, Turn},
};

/// Events of the answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    /// More text of the answer; `step`: index of the request to the model.
    Text { step: usize, text: String },
    /// The text so far is a unit of its own: something else comes before the answer continues.
    Pause,
    /// Something went wrong: the words for it follow.
    Trouble,
    /// A complete sentence.
    Say { step: usize, text: String },
    /// A sentence that is not part of the answer; `shown`: on the display as well.
    Aside { text: String, shown: bool },
    /// What the calls of an interrupted turn have done, to be said when nobody speaks.
    Afterwards(String),
    /// The last text asks for what an incomplete request lacks: its words, and the request.
    Asks(String, Pending),
    /// Content that a tool shows.
    Show(Content),
    /// The answer is complete.
    Complete,
}

/// Times of a spoken request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spoken {
    /// When it began, monotonic.
    pub(crate) started_us: u64,
    /// Capture time of the last voiced sample.
    pub(crate) last_voice_us: u64,
    /// The silence behind it when the end was decided.
    pub(crate) waited_us: u64,
    /// When the end was decided.
    pub(crate) decided_us: u64,
    /// Whether it is a complete command, as it is written.
    pub(crate) is_command: bool,
}

impl Spoken {
    fn mark(self, cx: &mut Context, turn: Turn) {
        for (stage, at_us) in [(Stage::LastVoice, self.last_voice_us), (Stage::EndDecided, self.decided_us)] {
            cx.push(Output::Mark { turn, stage, at_us });
        }
        cx.mark(turn, Stage::Final);
    }
}

/// The current turn: its request, its steps and what it waits for; and interrupted turns that are not settled yet.
#[derive(Debug, Default)]
pub(crate) struct Agent {
    last_turn: u32,
    active: Option<Active>,
    settling: VecDeque<Settling>,
}

/// The turn that is under way, from its request to the end of its answer.
#[derive(Debug)]
struct Active {
    turn: Turn,
    request: String,
    /// Its times, if it was spoken.
    spoken: Option<Spoken>,
    /// What the request may answer or continue.
    pending: Option<Pending>,
    /// While the wearer may be going on with the request: what the model has answered meanwhile.
    held: Option<Vec<ModelEvent>>,
    /// Calls that it takes up instead of asking a model for some, once it is granted.
    unanswered: Vec<ToolCall>,
    history: Vec<Message>,
    route: ModelRoute,
    /// Index of the asked model in the route.
    choice: usize,
    /// Whether the local engine answers the request instead of the model.
    on_box: bool,
    steps: Vec<Step>,
    phase: Phase,
    answer_chars: usize,
    calls_made: usize,
    /// Tokens used by its requests.
    tokens: u64,
    restarts: u8,
    /// Whether a model was asked a second time.
    asked_again: bool,
    failed: bool,
    shown: bool,
    /// Whether something was said that is not part of the answer.
    spoke: bool,
    follow_ups: Vec<String>,
    /// What a call is doing, as soon as it may be shown.
    progress: Option<Progress>,
    budget_us: u64,
    /// Latest end of the turn, also with tools that take long.
    budget_us_max: u64,
    /// Since when the wearer is being asked for consent: the deadlines are suspended.
    asking_since_us: Option<u64>,
}

/// What the turn waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The grant by the user's machine.
    Grant,
    /// The model; `started`: it has sent something in this step.
    Model { started: bool },
    /// Results of tools.
    Tools,
    /// The end of the answer's playback.
    Answer,
}

/// A turn that was interrupted and waits for the results of its cancelled calls.
#[derive(Debug)]
struct Settling {
    turn: Turn,
    request: String,
    steps: Vec<Step>,
    heard: Heard,
    outcome: TurnOutcome,
    deadline_us: u64,
}

impl Agent {
    pub(crate) fn turn(&self) -> Option<Turn> {
        self.active.as_ref().map(|active| active.turn)
    }

    /// Whether the request that is being answered was typed.
    pub(crate) fn is_typed(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.spoken.is_none())
    }

    /// Whether the answer is still being produced, rather than only played.
    pub(crate) fn is_thinking(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.phase != Phase::Answer)
    }

    /// Begins a turn. The previous one must have ended.
    pub(crate) fn start(
        &mut self,
        cx: &mut Context,
        request: String,
        pending: Option<Pending>,
        spoken: Option<Spoken>,
    ) {
        self.begin(cx, request, spoken);
        if let Some(active) = &mut self.active {
            active.pending = pending;
        }
    }

    /// Begins a turn with calls of a turn that died with the process, instead of asking a model for them.
    pub(crate) fn take_up(&mut self, cx: &mut Context, request: String, calls: Vec<ToolCall>) {
        self.begin(cx, request, None);
        if let Some(active) = &mut self.active {
            active.unanswered = calls;
        }
    }

    fn begin(&mut self, cx: &mut Context, request: String, spoken: Option<Spoken>) {
        self.last_turn = self.last_turn.saturating_add(1);
        let turn = Turn { id: self.last_turn, revision: 0 };
        match spoken {
            Some(spoken) => spoken.mark(cx, turn),
            None => cx.mark(turn, Stage::Final),
        }
        cx.done.clear();
        let active = self.active.insert(Active {
            turn,
            request,
            spoken,
            pending: None,
            held: None,
            unanswered: Vec::new(),
            history: Vec::new(),
            route: ModelRoute::default(),
            choice: 0,
            on_box: false,
            steps: Vec::new(),
            phase: Phase::Grant,
            answer_chars: 0,
            calls_made: 0,
            tokens: 0,
            restarts: 0,
            asked_again: false,
            failed: false,
            shown: false,
            spoke: false,
            follow_ups: Vec::new(),
            progress: None,
            budget_us: u64::MAX,
            budget_us_max: u64::MAX,
            asking_since_us: None,
        });
        active.request_turn(cx);
    }

    /// The current turn, if it is this one. The one place where events of other turns are dropped.
    fn current(&mut self, turn: Turn) -> Option<&mut Active> {
        self.active.as_mut().filter(|active| active.turn == turn)
    }

    pub(crate) fn handle_granted(
        &mut self,
        cx: &mut Context,
        turn: Turn,
        history: Vec<Message>,
        route: ModelRoute,
    ) -> Vec<Event> {
        let Some(active) = self.current(turn).filter(|active| active.phase == Phase::Grant) else {
            return Vec::new();
        };
        cx.disarm(Timer::GrantMissing);
        active.history = history;
        active.route = route;
        active.set_budget(cx);
        match core::mem::take(&mut active.unanswered) {
            calls if calls.is_empty() => active.ask(cx),
            calls => active.call_again(cx, calls),
        }
    }

    /// Handles the result of a tool, of this turn or of an interrupted one.
    pub(crate) fn handle_tool(
        &mut self,
        cx: &mut Context,
        turn: Turn,
        call_id: &str,
        result: ToolResult,
    ) -> Vec<Event> {
        if let Some(active) = self.current(turn) {
            return active.take_result(cx, call_id, result);
        }
        let mut events = Vec::new();
        if let Some(index) = self.settling.iter().position(|settling| settling.turn == turn)
            && let Some(settling) = self.settling.get_mut(index)
        {
            let partly_done = result.say.clone().filter(|_| result.is_partly_done());
            events.extend(partly_done.map(Event::Afterwards));
            for step in &mut settling.steps {
                if let Some(pending) = step.waiting(call_id) {
                    pending.result = Some(result);
                    break;
                }
            }
            if !settling.steps.iter().any(Step::is_waiting)
                && let Some(settled) = self.settling.remove(index)
            {
                settled.finish(cx);
            }
            self.watch_settling(cx);
        }
        events
    }

    /// The answer has been given; `heard`: how much of it reached the wearer.
    pub(crate) fn complete(&mut self, cx: &mut Context, heard: &Heard) {
        let Some(active) = self.active.take() else {
            return;
        };
        disarm(cx);
        let outcome = if active.failed { TurnOutcome::Failed } else { TurnOutcome::Completed };
        cx.push(Output::TurnDone {
            turn: active.turn,
            messages: history::messages(&active.request, &active.steps, heard, ImagePolicy::Omit),
            outcome,
        });
    }

    /// Interrupts the turn. Running calls are cancelled; their results still count.
    pub(crate) fn interrupt(&mut self, cx: &mut Context, heard: Heard, outcome: TurnOutcome) {
        let Some(mut active) = self.active.take() else {
            return;
        };
        disarm(cx);
        active.cancel(cx, ErrorCode::Cancelled);
        let settling = Settling {
            turn: active.turn,
            request: active.request,
            steps: active.steps,
            heard,
            outcome,
            deadline_us: cx.after_ms(cx.config.settle_ms_max),
        };
        if !settling.steps.iter().any(Step::is_waiting) {
            settling.finish(cx);
            return;
        }
        if self.settling.len() >= SETTLING_TURNS_MAX
            && let Some(oldest) = self.settling.pop_front()
        {
            oldest.give_up(cx);
        }
        self.settling.push_back(settling);
        self.watch_settling(cx);
    }

    /// Ends everything now; results that are still missing are reported as unknown.
    pub(crate) fn abandon(&mut self, cx: &mut Context, heard: Heard, outcome: TurnOutcome) {
        self.interrupt(cx, heard, outcome);
        while let Some(settling) = self.settling.pop_front() {
            settling.give_up(cx);
        }
        cx.disarm(Timer::SettleExpired);
    }

    pub(crate) fn handle_settle_expired(&mut self, cx: &mut Context) {
        while let Some(settling) = self.settling.pop_front_if(|settling| settling.deadline_us <= cx.now.mono_us) {
            settling.give_up(cx);
        }
        self.watch_settling(cx);
    }

    fn watch_settling(&self, cx: &mut Context) {
        match self.settling.front() {
            Some(settling) => cx.arm_at(Timer::SettleExpired, settling.deadline_us),
            None => cx.disarm(Timer::SettleExpired),
        }
    }
}

impl Active {
    /// Cancels the model's request and the running calls; `code`: why.
    fn cancel(&mut self, cx: &mut Context, code: ErrorCode) {
        if matches!(self.phase, Phase::Model { .. }) {
            self.model_dropped(cx, ModelOutcome::Cancelled);
        }
        for pending in self.steps.iter().flat_map(|step| &step.calls) {
            if pending.result.is_none() {
                cx.push(Output::CancelTool { turn: self.turn, call_id: pending.call.id.clone() });
                cx.push(Output::ToolActivity {
                    turn: self.turn,
                    call_id: pending.call.id.clone(),
                    tool: pending.call.name.clone(),
                    state: calls::state_after(Some(code)),
                });
            }
        }
    }

    /// Ends the work with a fixed sentence.
    fn fail(&mut self, cx: &mut Context, sentence: &str, code: ErrorCode) -> Vec<Event> {
        self.cancel(cx, code);
        for step in &mut self.steps {
            step.give_up(code, "no result in time; the outcome is unknown");
        }
        self.failed = true;
        let mut events = vec![Event::Trouble];
        events.extend(self.last_words(cx, sentence));
        events
    }

    /// Adds a sentence to the answer and ends it.
    fn last_words(&mut self, cx: &mut Context, sentence: &str) -> Vec<Event> {
        if self.steps.last().is_none_or(|step| !step.calls.is_empty()) {
            self.steps.push(Step::default());
        }
        if let Some(step) = self.steps.last_mut() {
            if !step.text.is_empty() {
                step.push_text(" ");
            }
            step.push_text(sentence);
        }
        let say = Event::Say { step: self.steps.len().saturating_sub(1), text: String::from(sentence) };
        self.end(cx);
        vec![say, Event::Complete]
    }

    fn end(&mut self, cx: &mut Context) {
        self.phase = Phase::Answer;
        disarm(cx);
    }
}

impl Settling {
    fn give_up(mut self, cx: &mut Context) {
        for step in &mut self.steps {
            step.give_up(ErrorCode::Cancelled, "interrupted by the wearer; the outcome is unknown");
        }
        self.finish(cx);
    }

    fn finish(self, cx: &mut Context) {
        cx.push(Output::TurnDone {
            turn: self.turn,
            messages: history::messages(&self.request, &self.steps, &self.heard, ImagePolicy::Omit),
            outcome: self.outcome,
        });
    }
}

fn disarm(cx: &mut Context) {
    for timer in [
        Timer::GrantMissing,
        Timer::ModelSilent,
        Timer::TurnBudget,
        Timer::ToolMissing,
        Timer::PreambleDue,
        Timer::ProgressDue,
    ] {
        cx.disarm(timer);
    }
}
