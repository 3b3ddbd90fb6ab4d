//! How long the end of a turn is waited for, by what was said before the pause: real words, the real command engine and
//! the real core, without sound. `tests/data/end_of_turn` has the rows, and tells which of them are held out.

use std::collections::BTreeMap;

use chat_models::{
    ChatModel,
    intents::{Decision, Engine},
};
use gateway_core::{
    conversation::{Config, Conversation},
    driver::Driver,
    input::{Input, Playback},
    output::Output,
    vocab::{DeviceInfo, ModelEvent, ModelRoute, StopReason, Timestamp, Transcript, TranscriptKind, Usage, VoiceFact},
};

use super::{fixture::request, tools_once};

/// A pause is known of so early, and then with each window of the voice detector, in milliseconds.
const KNOWN_MS: u64 = 96;
const WINDOW_MS: u64 = 32;
/// A decode of the words so far: what it takes on the machine of docs/measurements.md.
const DECODE_MS: u64 = 120;

/// What a row is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Rules may be made from it.
    Tuning,
    HeldOut,
    /// Held out as well: all rows of a later file.
    Fresh,
}

impl Part {
    fn of_line(index: usize) -> Self {
        if index % 2 == 1 { Self::HeldOut } else { Self::Tuning }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Tuning => "tuning",
            Self::HeldOut => "held out",
            Self::Fresh => "fresh",
        }
    }
}

struct Row {
    kind: &'static str,
    asked: &'static str,
    text: &'static str,
    part: Part,
}

fn rows() -> Vec<Row> {
    let file = |text: &'static str, part: fn(usize) -> Part| {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
        lines.map(move |(index, line)| {
            let mut fields = line.split('\t');
            let mut field = || fields.next().expect("four fields");
            Row { kind: field(), asked: field(), text: field(), part: part(index) }
        })
    };
    let fresh = file(include_str!("../../data/end_of_turn/fresh.tsv"), |_| Part::Fresh);
    file(include_str!("../../data/end_of_turn/pauses.tsv"), Part::of_line).chain(fresh).collect()
}

/// A command with a pause in it: before it, all of it, and the tool that it is for (`-`: a model's).
struct Hesitation {
    kind: &'static str,
    before: &'static str,
    merged: &'static str,
    tool: &'static str,
    part: Part,
}

fn hesitations() -> Vec<Hesitation> {
    let file = include_str!("../../data/end_of_turn/hesitations.tsv");
    let lines = file.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    lines
        .map(|(index, line)| {
            let fields: Vec<&str> = line.split('\t').collect();
            let &[kind, before, _, merged, tool] = fields.as_slice() else { panic!("five fields: {line}") };
            Hesitation { kind, before, merged, tool, part: Part::of_line(index) }
        })
        .collect()
}

/// Glasses on which a sentence is said.
struct Wearer {
    conversation: Driver<Conversation>,
    engine: Engine,
    now_ms: u64,
    /// The words so far.
    text: String,
    /// Decodes that are under way: when they are done, and what they give.
    decodes: Vec<(u64, Input)>,
    is_closed: bool,
}

impl Wearer {
    fn new() -> Self {
        let mut wearer = Self {
            conversation: Driver::new(Conversation::new(Config::default())),
            engine: Engine::new(),
            now_ms: 1_000_000,
            text: String::new(),
            decodes: Vec::new(),
            is_closed: false,
        };
        let device = DeviceInfo {
            id: "glasses".to_owned(),
            user: "wearer".to_owned(),
            display: None,
            bitmaps: false,
            speaker: true,
            echo_cancelled: true,
            captions: false,
        };
        wearer.input(Input::Connected { device, resumed: false });
        wearer
    }

    fn now(&self) -> Timestamp {
        Timestamp { mono_us: self.now_ms * 1_000, wall_ms: 1_800_000_000_000, offset_s: 0 }
    }

    fn input(&mut self, input: Input) {
        self.conversation.push(input);
        self.settle();
    }

    /// Does what follows from what was pushed.
    fn settle(&mut self) {
        let now = self.now();
        while let Some(output) = self.conversation.poll_output(now) {
            self.carry_out(output).into_iter().for_each(|input| self.conversation.push(input));
        }
    }

    fn carry_out(&mut self, output: Output) -> Vec<Input> {
        match output {
            Output::Transcribe { utterance, revision, kind: TranscriptKind::Speculative, .. } => {
                let (text, kind) = (self.text.clone(), TranscriptKind::Speculative);
                let transcript = Transcript {
                    utterance,
                    revision,
                    kind,
                    text,
                    confidence: 0.9,
                    last_word: 0.9,
                    breaks_off: 0.0,
                    foreign: false,
                };
                self.decodes.push((self.now_ms + DECODE_MS, Input::Transcript(transcript)));
                Vec::new()
            }
            // A second pass finds nothing better.
            Output::Transcribe { utterance, revision, .. } => vec![Input::TranscriptFailed { utterance, revision }],
            Output::MatchCommand { utterance, revision, text, pending } => {
                let request = chat_models::Request { pending, ..request(&text, &tools_once()) };
                let found = self.engine.match_command(&request).expect("there are words");
                let (matched, vocabulary) = (found.matched, Some(found.vocabulary));
                vec![Input::CommandMatched { utterance, revision, matched, vocabulary }]
            }
            Output::RequestTurn { turn, .. } => {
                vec![Input::Granted { turn, history: Vec::new(), route: ModelRoute::default() }]
            }
            // A model that asks back.
            Output::AskModel { turn, .. } if !self.is_closed => {
                let done = ModelEvent::Done { stop: StopReason::End, usage: Usage::default() };
                let events = [ModelEvent::Text("Shall I?".to_owned()), done];
                events.into_iter().map(|event| Input::Model { turn, event }).collect()
            }
            Output::Speak { speech, clause, last, .. } => {
                let playback = if last { Playback::Finished } else { Playback::Playing };
                let played = Input::Played { speech, clauses_done: clause + 1, clause_part: 0.0, playback };
                vec![Input::Spoken { speech, clause, duration_us: 500_000 }, played]
            }
            Output::CloseUtterance { .. } => {
                self.is_closed = true;
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// The silence in milliseconds after which a turn with this text is over.
    fn silence_ms(mut self, asked: &str, text: &str) -> u64 {
        self.text = text.to_owned();
        match asked {
            "none" => self.text = format!("Mentra, {text}"),
            _ => self.input(Input::Text("go".to_owned())),
        }
        self.now_ms += 2_000;
        let (began_us, at_us) = (self.now_ms * 1_000, self.now_ms * 1_000 + 1_000_000);
        self.input(Input::Voice(VoiceFact::SpeechStarted { utterance: 1, at_us: began_us, voiced_us: 0 }));
        self.now_ms += 1_000;
        let ended_ms = self.now_ms;
        for silent_ms in 1_u64..5_000 {
            self.now_ms = ended_ms + silent_ms;
            let due = |(at_ms, _): &(u64, Input)| *at_ms <= ended_ms + silent_ms;
            while let Some(index) = self.decodes.iter().position(due) {
                let (_, input) = self.decodes.remove(index);
                self.input(input);
            }
            let silence_us = silent_ms * 1_000;
            if silent_ms == KNOWN_MS {
                self.input(Input::Voice(VoiceFact::Paused { utterance: 1, at_us, silence_us }));
            } else if silent_ms > KNOWN_MS && silent_ms % WINDOW_MS == 0 {
                self.input(Input::Voice(VoiceFact::Silence { utterance: 1, at_us, silence_us, score: None }));
            }
            if self.conversation.poll_timeout().is_some_and(|(at_us, _)| at_us <= self.now_ms * 1_000) {
                self.conversation.push_timeout();
                self.settle();
            }
            if self.is_closed {
                return silent_ms;
            }
        }
        panic!("{text}: it never ends");
    }
}

/// Share of turns that are over after a pause of so many milliseconds.
fn over_after(silences_ms: &[u64], pause_ms: u64) -> f64 {
    silences_ms.iter().filter(|silence_ms| **silence_ms <= pause_ms).count() as f64 / silences_ms.len() as f64
}

/// Rows of the tuning half that are judged wrongly are printed; of the held-out half only the rates are.
#[test]
fn a_pause_ends_a_command_soon_and_a_sentence_that_lacks_its_end_late() {
    let mut silences: BTreeMap<(&str, Part), Vec<u64>> = BTreeMap::new();
    for row in rows() {
        let silence_ms = Wearer::new().silence_ms(row.asked, row.text);
        silences.entry((row.kind, row.part)).or_default().push(silence_ms);
        let wrong = match row.kind {
            "command" => silence_ms > 250,
            "going-on" | "answer-going-on" => silence_ms < 1_000,
            _ => silence_ms > 700,
        };
        if wrong && row.part == Part::Tuning {
            println!("  {}: {:?} ends after {silence_ms} ms", row.kind, row.text);
        }
    }
    println!("kind             part      rows  median  over after 250   400   700  1000  1500 ms");
    for ((kind, part), all) in &mut silences {
        all.sort_unstable();
        let shares: Vec<String> =
            [250, 400, 700, 1_000, 1_500].iter().map(|ms| format!("{:5.1}", 100.0 * over_after(all, *ms))).collect();
        println!(
            "{kind:<16} {:<8} {:5} {:7}           {} %",
            part.name(),
            all.len(),
            all[all.len() / 2],
            shares.join(" ")
        );
    }
    let of = |kind| silences[&(kind, Part::HeldOut)].as_slice();
    let fresh = |kind| silences[&(kind, Part::Fresh)].as_slice();
    // Measured, not tuned: 73.8, 30.3, 30.3 and 98.0 % of the held-out half; some rows more or less are allowed. ("How much time is
    // left?" may go on: "on the pasta timer".)
    assert!(over_after(of("command"), 250) >= 0.72, "commands end soon");
    assert!(over_after(of("going-on"), 700) <= 0.33, "half a sentence is waited for");
    assert!(over_after(of("going-on"), 1_500) <= 0.33, "long");
    assert!(over_after(of("whole"), 700) >= 0.95, "a whole one is not");
    // The same of the fresh table: 100, 14.0, 14.0, 52.9 and 100 %.
    assert!(over_after(fresh("command"), 700) >= 0.93, "commands end soon");
    assert!(over_after(fresh("going-on"), 700) <= 0.16, "half a command is waited for");
    assert!(over_after(fresh("going-on"), 1_500) <= 0.16, "long");
    assert!(over_after(fresh("request-going-on"), 700) <= 0.59, "and half a request to a model");
    assert!(over_after(fresh("whole"), 700) >= 0.93, "a whole one is not");
    for kind in ["going-on", "answer-going-on", "open", "whole"] {
        let soon = over_after(of(kind), 250);
        assert!(soon <= 0.10, "{kind}: {soon} have as little time as a command");
    }
}

/// Pauses within commands, behind which the recogniser writes a full stop. What goes on within 700 ms, and before anything
/// is done, is put together again (gateway/core/tests/dialogues/endpoint.txt); the sentence as a whole is a command.
#[test]
fn a_pause_within_a_command_ends_it_seldom() {
    let engine = Engine::new();
    let mut silences: BTreeMap<(&str, Part), Vec<u64>> = BTreeMap::new();
    let (mut right, mut commands) = (0, 0);
    for row in hesitations() {
        let silence_ms = Wearer::new().silence_ms("none", &format!("{}.", row.before));
        silences.entry((row.kind, row.part)).or_default().push(silence_ms);
        if row.kind == "plain" && silence_ms <= 1_000 && row.part == Part::Tuning {
            println!("  {:?} ends after {silence_ms} ms", row.before);
        }
        if row.tool != "-" {
            commands += 1;
            let decided = engine.decide(&request(row.merged, &tools_once()));
            let is_right = matches!(&decided, Decision::Calls(calls) if calls.iter().all(|call| call.name == row.tool));
            right += usize::from(is_right);
            if !is_right && row.part == Part::Tuning {
                println!("  {:?}: {decided:?}", row.merged);
            }
        }
    }
    println!("kind             part      rows  over after 400   700  1000  1500 ms");
    for ((kind, part), all) in &silences {
        let shares: Vec<String> =
            [400, 700, 1_000, 1_500].iter().map(|ms| format!("{:5.1}", 100.0 * over_after(all, *ms))).collect();
        println!("{kind:<16} {:<8} {:5}           {} %", part.name(), all.len(), shares.join(" "));
    }
    println!("{right} of {commands} whole sentences lead to their tool");
    let plain = &silences[&("plain", Part::HeldOut)];
    assert!(
        over_after(plain, 400) == 0.0,
        "half a command is never taken for a whole one that nothing can be added to"
    );
    // Measured, not tuned: none of 21.
    assert!(over_after(plain, 1_000) <= 0.05, "half a command is waited for");
    assert!(over_after(plain, 1_500) <= 0.10, "long");
    assert!(right * 100 >= commands * 90, "{right} of {commands}");
}
