//! State shared by the machines of a conversation: the current time, the settings, the timers and the output queue.

use alloc::{collections::VecDeque, string::String, vec::Vec};

use crate::{
    config::{Config, Earcons},
    display::Display,
    limits::{BRIEFING_BLOCKS_MAX, BRIEFING_CHARS_MAX},
    output::{Chime, Output, Stage},
    timers::{Timer, Timers},
    vocab::{AppEvent, Content, DeviceFacts, DisplayCommand, DisplaySize, Priority, Timestamp, ToolCall, Turn},
};

/// State shared by the machines of one conversation.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) now: Timestamp,
    pub(crate) config: Config,
    /// Whether the glasses are connected.
    pub(crate) linked: bool,
    pub(crate) display: Option<DisplaySize>,
    pub(crate) speaker: bool,
    pub(crate) echo_cancelled: bool,
    /// Whether the glasses show captions.
    pub(crate) captions: bool,
    /// Whether talk is being translated: it is expected, so that nothing but a wake phrase is meant for the assistant.
    pub(crate) translating: bool,
    /// Included in every model request.
    pub(crate) briefing: Vec<String>,
    /// The calls of the last turn that have run, or may have.
    pub(crate) done: Vec<ToolCall>,
    /// Whether the wearer was informed in this session of what works without a model.
    pub(crate) told_of_commands: bool,
    facts: DeviceFacts,
    /// Whether the microphone is off.
    muted: bool,
    screen: Display,
    timers: Timers<{ Timer::ALL.len() }>,
    out: VecDeque<Output>,
}

impl Context {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            now: Timestamp::default(),
            screen: Display::new(config.display, config.display_interval_ms),
            config,
            linked: false,
            display: None,
            speaker: false,
            echo_cancelled: false,
            captions: false,
            translating: false,
            briefing: Vec::new(),
            done: Vec::new(),
            told_of_commands: false,
            facts: DeviceFacts::default(),
            muted: false,
            timers: Timers::new(),
            out: VecDeque::new(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.now.mono_us
    }

    pub(crate) fn push(&mut self, output: Output) {
        let caption = match &output {
            Output::Caption { utterance, text, .. } if self.config.display.captions && !self.translating => {
                Some((*utterance, text.clone()))
            }
            _ => None,
        };
        self.out.push_back(output);
        if let (Some((utterance, text)), Some(size)) = (caption, self.display) {
            self.screen(|screen, now| screen.handle_caption(now, utterance, &text, size));
        }
    }

    /// Asks for a short sound, where the operator wants it and there is a speaker.
    pub(crate) fn chime(&mut self, chime: Chime) {
        let wanted = match chime {
            Chime::Notice | Chime::Attention => true,
            Chime::Attentive => self.config.earcons != Earcons::None,
            Chime::Done | Chime::Trouble => self.speaker && self.config.earcons != Earcons::None,
            Chime::Understood | Chime::Working => self.speaker && self.config.earcons == Earcons::All,
        };
        if wanted {
            self.push(Output::Chime(chime));
        }
    }

    /// The captioned words begin this turn.
    pub(crate) fn name_turn(&mut self, begun: Option<Turn>) {
        let last = self.out.iter_mut().rev().find_map(|output| match output {
            Output::Caption { turn, last: true, .. } => Some(turn),
            _ => None,
        });
        if let Some(turn) = last {
            *turn = begun;
        }
    }

    /// Claims the main view, replacing an earlier claim of the same claimant. Returns whether the wearer sees it.
    pub(crate) fn claim(&mut self, priority: Priority, content: Content, duration_ms: Option<u32>) -> bool {
        self.screen(|screen, now| screen.handle_claim(now, priority, content, duration_ms))
    }

    /// The same with further pages, each with its time in milliseconds.
    pub(crate) fn claim_pages(
        &mut self,
        priority: Priority,
        first: (Content, Option<u32>),
        further: Vec<(Content, u32)>,
    ) -> bool {
        self.screen(|screen, now| screen.handle_paged_claim(now, priority, first, further))
    }

    /// Withdraws the claimant's claim to the main view.
    pub(crate) fn release(&mut self, priority: Priority) {
        self.screen(|screen, now| screen.handle_release(now, priority));
    }

    /// Whether the claimant's claim to the main view stands.
    pub(crate) fn is_claimed(&self, priority: Priority) -> bool {
        self.screen.is_claimed(priority)
    }

    pub(crate) fn app(&mut self, event: AppEvent) {
        self.screen(|screen, now| screen.handle_app(now, event));
    }

    /// Whether the foreground app listens to speech.
    pub(crate) fn app_listens(&self) -> bool {
        self.screen.app_listens()
    }

    /// Applies a change to the display and queues the resulting drawing commands.
    pub(crate) fn screen<T>(&mut self, tell: impl FnOnce(&mut Display, Timestamp) -> T) -> T {
        let told = tell(&mut self.screen, self.now);
        while let Some(command) = self.screen.poll_command() {
            self.withdraw_equal(&command);
            self.out.push_back(Output::Display(command));
        }
        match self.screen.poll_timeout(self.now) {
            Some(at_us) => self.arm_at(Timer::ScreenDue, at_us),
            None => self.disarm(Timer::ScreenDue),
        }
        told
    }

    /// Drops an equal command that is still queued: drawn again for another time, it need not be sent twice.
    fn withdraw_equal(&mut self, command: &DisplayCommand) {
        let DisplayCommand::Show { view, content, .. } = command else { return };
        let of_view = |output: &Output| match output {
            Output::Display(DisplayCommand::Show { view: drawn, .. } | DisplayCommand::Clear { view: drawn, .. }) => {
                drawn == view
            }
            _ => false,
        };
        let Some(last) = self.out.iter().rposition(of_view) else { return };
        let shows = |output: &Output| matches!(output, Output::Display(DisplayCommand::Show { content: drawn, .. }) if drawn == content);
        if self.out.get(last).is_some_and(shows) {
            self.out.remove(last);
        }
    }

    /// What the wearer sees on the main view that is not part of the conversation already.
    pub(crate) fn seen(&self) -> Option<&Content> {
        self.screen.seen()
    }

    pub(crate) fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    pub(crate) fn learn(&mut self, facts: DeviceFacts) {
        self.facts = facts;
    }

    pub(crate) fn is_muted(&self) -> bool {
        self.muted
    }

    pub(crate) fn note_muted(&mut self, muted: bool) {
        self.muted = muted;
    }

    pub(crate) fn brief(&mut self, mut blocks: Vec<String>) {
        blocks.retain(|block| !block.trim().is_empty());
        blocks.truncate(BRIEFING_BLOCKS_MAX);
        self.briefing = blocks.iter().map(|block| block.chars().take(BRIEFING_CHARS_MAX).collect()).collect();
    }

    /// Whether the shell has taken all outputs.
    pub(crate) fn is_drained(&self) -> bool {
        self.out.is_empty()
    }

    pub(crate) fn pop(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    pub(crate) fn mark(&mut self, turn: Turn, stage: Stage) {
        let at_us = self.now_us();
        self.push(Output::Mark { turn, stage, at_us });
    }

    pub(crate) fn arm(&mut self, timer: Timer, delay_ms: u32) {
        let at_us = self.after_ms(delay_ms);
        self.arm_at(timer, at_us);
    }

    pub(crate) fn arm_at(&mut self, timer: Timer, at_us: u64) {
        self.timers.arm(timer as usize, at_us);
    }

    pub(crate) fn disarm(&mut self, timer: Timer) {
        self.timers.disarm(timer as usize);
    }

    pub(crate) fn disarm_all(&mut self) {
        self.timers.clear();
    }

    pub(crate) fn armed(&self, timer: Timer) -> bool {
        self.due_us(timer).is_some()
    }

    /// When a timer fires, monotonic; `None`: it is not armed.
    pub(crate) fn due_us(&self, timer: Timer) -> Option<u64> {
        self.timers.get(timer as usize)
    }

    pub(crate) fn next_timer(&self) -> Option<(u64, Timer)> {
        let (at_us, index) = self.timers.next()?;
        Some((at_us, *Timer::ALL.get(index)?))
    }

    /// Disarms and returns the earliest due timer.
    pub(crate) fn take_due(&mut self) -> Option<Timer> {
        let (at_us, timer) = self.next_timer()?;
        if at_us > self.now_us() {
            return None;
        }
        self.disarm(timer);
        Some(timer)
    }

    /// The wall clock at a moment to come.
    pub(crate) fn wall_ms_at(&self, at_us: u64) -> i64 {
        let left_ms = at_us.saturating_sub(self.now_us()) / 1_000;
        self.now.wall_ms.saturating_add(i64::try_from(left_ms).unwrap_or(i64::MAX))
    }

    pub(crate) fn after_ms(&self, delay_ms: u32) -> u64 {
        self.now_us().saturating_add(u64::from(delay_ms).saturating_mul(1_000))
    }
}
