//! Questions for missing parts of a command, and interpretation of the answers.
//!
//! The answer is first read together with the previous words as one sentence, and only then alone: "remind me", "to
//! call Ben at five" gives the text and the time. An answer that is itself a command is that command. Further words of
//! a request without a question are read in the same way, unless that would do something twice.

use std::sync::Arc;

use gateway_core::vocab::{CommandMatch, Pending, PendingCall, Preference, Scene, Side, ToolCall, ToolSpec};
use jiff::Zoned;
use serde_json::{Map, Value};

use super::{
    choice,
    courtesy::openings,
    found::{Found, Intent},
    grammar::Grammar,
    matcher, question,
    sides::{Settled, Sides},
    template::{Op, Slot, SlotKind},
    utterance::Utterance,
    words,
};

/// How often the same question is asked.
const ASKED_MAX: u8 = 2;
/// Evidence of the fixed words with which a sentence counts as the beginning of a command in any context.
const EVIDENCE_SURE: f32 = 1.5;
/// Most labels of a question which of several is meant.
const LABELS_TOLD_MAX: usize = 5;
/// Most words of a side's name in an answer.
const ANSWER_NAME_WORDS_MAX: usize = 6;
/// Result of reading the wearer's words.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reading {
    /// Commands, and the certainty of the match.
    Calls(Vec<Intent>, CommandMatch),
    /// Something is missing.
    Ask {
        /// The pending command.
        pending: Pending,
        /// Whether the last answer was not usable.
        again: bool,
        /// Certainty of the match: partial if the words are certainly the beginning or a part of a command; as for any
        /// command if they are complete and only the side is unknown.
        matched: CommandMatch,
    },
    /// The wearer does not answer a question, or wants nothing.
    Declined,
    /// No command that the engine knows.
    Nothing,
}

/// A reading with the preferences that the wearer expressed in it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Read {
    pub reading: Reading,
    pub chosen: Vec<Preference>,
}

impl From<Reading> for Read {
    fn from(reading: Reading) -> Self {
        Self { reading, chosen: Vec::new() }
    }
}

/// Reads the wearer's words against the tools' sentences and against a pending command.
pub(super) struct Reader<'a> {
    pub grammar: &'a Grammar,
    pub tools: &'a [Arc<ToolSpec>],
    /// The current context.
    pub scene: &'a Scene,
    pub now: Zoned,
}

impl<'a> Reader<'a> {
    pub fn utterance<'b>(&self, text: &'b str) -> Utterance<'b>
    where
        'a: 'b,
    {
        Utterance::new(text, self.now.clone(), self.grammar.language).with_apps(&self.scene.apps)
    }

    /// Whether a complete command may go on after these words.
    pub fn may_go_on(&self, text: &str) -> bool {
        self.grammar.may_go_on(&mut self.utterance(text), Sides::of(self.scene))
    }

    /// Whether a command has to go on after these words, which are no command by themselves. A single word may be
    /// all that is said.
    pub fn breaks_off(&self, text: &str) -> bool {
        let mut utterance = self.utterance(text);
        utterance.words.len() > 1 && self.grammar.breaks_off(&mut utterance, Sides::of(self.scene))
    }

    pub fn read(&self, text: &str, pending: Option<&Pending>) -> Read {
        let sides = Sides::of(self.scene);
        let mut utterance = self.utterance(text);
        if let Some(reading) = self.read_named(&utterance) {
            return reading.into();
        }
        let declines = self.declines(text, pending);
        if let Some(reading) = pending.filter(|_| !declines).and_then(|pending| self.picked(&utterance, pending)) {
            return reading.into();
        }
        let (alone, matched) = self.settle(&mut utterance, text, sides);
        if matched > CommandMatch::Misheard {
            return alone.into();
        }
        if declines {
            return Reading::Declined.into();
        }
        let more = pending.map(|pending| match pending.calls.as_slice() {
            [] => self.go_on(text, pending).into(),
            [call] => self.answer(text, pending, call).into(),
            calls => self.choose(text, pending, calls),
        });
        match more {
            Some(Read { reading: Reading::Nothing, .. }) | None => {}
            Some(read) => return read,
        }
        let partial = self.partial(&utterance, text, sides);
        // All its words were matched as written, which is better than any guess.
        if let Some((exact, _)) = partial.as_ref().filter(|(_, found)| is_sure(found) && !found.intent.free_text) {
            return exact.clone().into();
        }
        if let Some(pending) = pending.filter(|pending| !pending.calls.is_empty() && pending.asked < ASKED_MAX) {
            let asked = pending.asked.saturating_add(1);
            let pending = Pending { asked, ..pending.clone() };
            return Reading::Ask { pending, again: true, matched: CommandMatch::None }.into();
        }
        if alone != Reading::Nothing {
            return alone.into();
        }
        partial.map_or(Reading::Nothing, |(reading, _)| reading).into()
    }

    /// A sentence in which the wearer names the side: "with Todo".
    fn read_named(&self, utterance: &Utterance<'_>) -> Option<Reading> {
        self.named(utterance).map(|(_, reading)| reading)
    }

    /// The same, with the named side.
    pub fn named(&self, utterance: &Utterance<'_>) -> Option<(Side, Reading)> {
        let mut known = self.grammar.sides().to_vec();
        if !known.is_empty() {
            known.push(Side::default());
        }
        Sides::of(self.scene).named(utterance, &known).into_iter().find_map(|(side, rest)| {
            let only = Sides { scene: self.scene, only: Some(&side) };
            let mut utterance = self.utterance(rest);
            let reading = match self.settle(&mut utterance, rest, only) {
                (reading, matched) if matched > CommandMatch::Misheard => reading,
                _ => self.partial(&utterance, rest, only).filter(|(_, found)| is_sure(found))?.0,
            };
            Some((side, reading))
        })
    }

    /// Reads the words as complete commands.
    fn settle(&self, utterance: &mut Utterance<'_>, text: &str, sides: Sides<'_>) -> (Reading, CommandMatch) {
        let understood = self.grammar.understand(utterance, sides);
        let matched = understood.matched;
        if !understood.joined.is_empty() {
            return (Reading::Calls(understood.joined, matched), matched);
        }
        let found = match matched > CommandMatch::Misheard {
            true => self.with_rivals(utterance, understood.found, sides),
            false => understood.found,
        };
        let reading = match (sides.settle(found), matched) {
            (Settled::Nobody, _) => Reading::Nothing,
            (Settled::One(found, _), _) if found.missing.is_empty() => Reading::Calls(vec![found.intent], matched),
            (Settled::One(found, _), _) => ask(&found, text),
            // There is no question about a guess.
            (Settled::Doubt(mut found), CommandMatch::Misheard) => {
                found.truncate(1);
                Reading::Calls(found.into_iter().map(|found| found.intent).collect(), matched)
            }
            (Settled::Doubt(found), _) => self.doubt(&found, text, matched),
        };
        (reading, matched)
    }

    /// Adds incomplete sentences of other sides that have as much evidence. Otherwise, of two sentences about the same
    /// thing, one would go to one side and the other to another.
    pub fn with_rivals(&self, utterance: &Utterance<'_>, mut found: Vec<Found>, sides: Sides<'_>) -> Vec<Found> {
        if self.grammar.sides().is_empty() || found.is_empty() {
            return found;
        }
        let free = found.iter().map(|found| found.text_words).min().unwrap_or(0);
        let known: Vec<Side> = found.iter().map(|found| found.side.clone()).collect();
        let rivals = self.grammar.partials(utterance, sides).into_iter().filter(|rival| {
            let other = known.iter().all(|side| !side.is_with(&rival.side));
            other && is_sure(rival) && rival.text_words <= free && self.can_ask(rival)
        });
        found.extend(rivals);
        found
    }

    /// Asks which side is meant.
    fn doubt(&self, found: &[Found], words: &str, matched: CommandMatch) -> Reading {
        let sides = Sides::of(self.scene);
        let calls = found.iter().map(|found| PendingCall {
            label: sides.name(&found.side),
            side: Some(found.side.clone()),
            ..call_of(found)
        });
        let pending = Pending { words: words.to_owned(), calls: calls.collect(), done: Vec::new(), asked: 1 };
        Reading::Ask { pending, again: false, matched }
    }

    /// Reads the words as the beginning of a command whose missing parts can all be asked for: the question, and its
    /// subject.
    fn partial(&self, utterance: &Utterance<'_>, text: &str, sides: Sides<'_>) -> Option<(Reading, Found)> {
        let mut found = self.grammar.partials(utterance, sides);
        found.retain(|found| self.can_ask(found));
        let first = found.first()?.clone();
        // For one side a likely match suffices; for several it has to be certain.
        found.retain(is_sure);
        if found.is_empty() {
            return Some((ask(&first, text), first));
        }
        match sides.settle(found) {
            Settled::Nobody => None,
            Settled::One(found, _) => Some((ask(&found, text), found)),
            Settled::Doubt(found) => {
                let first = found.first()?.clone();
                Some((self.doubt(&found, text, CommandMatch::Incomplete), first))
            }
        }
    }

    /// Whether everything missing can be said in a few words.
    fn can_ask(&self, partial: &Found) -> bool {
        let Some(tool) = self.tool(&partial.intent.name) else {
            return false;
        };
        let can_say = |name: &String| question::may_ask(tool, name) && !self.slots(tool, name).is_empty();
        partial.missing.iter().all(|one_of| one_of.iter().any(can_say))
    }

    /// Further words of a request that was already accepted.
    fn go_on(&self, text: &str, pending: &Pending) -> Reading {
        let joined = joined(&pending.words, text);
        let mut utterance = self.utterance(&joined);
        let sides = Sides::of(self.scene);
        match self.settle(&mut utterance, &joined, sides) {
            (Reading::Calls(intents, matched), _) if matched > CommandMatch::Misheard => match intents.as_slice() {
                [intent] if self.may_follow(&pending.done, intent) => Reading::Calls(intents, matched),
                _ => Reading::Nothing,
            },
            (reading @ Reading::Ask { .. }, _) if pending.done.is_empty() => reading,
            (Reading::Nothing, _) if pending.done.is_empty() => {
                self.partial(&utterance, &joined, sides).map_or(Reading::Nothing, |(reading, _)| reading)
            }
            _ => Reading::Nothing,
        }
    }

    /// Whether a call corrects the calls before and repeats none of them: it changes nothing, it sets what the call
    /// before has set, or it states the same in another way (a level in place of a step up).
    fn may_follow(&self, done: &[ToolCall], intent: &Intent) -> bool {
        done.iter().all(|call| {
            let same = call.name == intent.name;
            let Some(tool) = self.tool(&call.name).filter(|_| call.arguments != intent.arguments) else {
                return false;
            };
            let flags = tool.flags;
            let grave = flags.destructive || flags.requires_approval;
            flags.read_only
                || (same && (flags.idempotent || (!grave && tells_otherwise(&call.arguments, &intent.arguments))))
        })
    }

    /// The answer to a question about one call.
    fn answer(&self, text: &str, pending: &Pending, call: &PendingCall) -> Reading {
        let Some((tool, first)) = self.tool(&call.name).zip(call.missing.first()) else {
            return Reading::Nothing;
        };
        let wanted = call.missing.concat();
        let joined = joined(&pending.words, text);
        let mut utterance = self.utterance(&joined);
        // The side is known.
        let sides = Sides { scene: self.scene, only: Some(&tool.side) };
        if let (Reading::Calls(intents, matched), _) = self.settle(&mut utterance, &joined, sides)
            && matched > CommandMatch::Misheard
            && let [intent] = intents.as_slice()
            && intent.name == call.name
            && tells(&intent.arguments, &wanted)
        {
            return Reading::Calls(intents, matched);
        }
        if let Some((reading, more)) = self.partial(&utterance, &joined, sides)
            && more.intent.name == call.name
            && tells(&more.intent.arguments, &wanted)
        {
            return reading;
        }
        let given = first.iter().find_map(|property| {
            let slots = self.slots(tool, property).into_iter();
            slots.filter_map(|slot| self.value(&slot, text).map(|value| (slot, value))).next()
        });
        let Some((slot, value)) = given else {
            return Reading::Nothing;
        };
        let mut arguments = call.arguments.as_object().cloned().unwrap_or_default();
        let free_text = slot.kind.is_text();
        arguments.insert(slot.property, value);
        let rest: Vec<Vec<String>> = call.missing.iter().skip(1).cloned().collect();
        self.go_for(call, Value::Object(arguments), rest, joined, free_text)
    }

    /// Whether these words give no answer to a question, or ask for nothing: "no thanks", "I don't know", "stop". Where one may
    /// choose "no", it is an answer.
    fn declines(&self, text: &str, pending: Option<&Pending>) -> bool {
        let language = self.grammar.language;
        let words = |text: &str| words::cut(text, language).into_iter().map(|word| word.text).collect::<Vec<_>>();
        let said = words(text);
        let is_none = language.answer.none.iter().any(|none| words(none) == said);
        is_none && pending.is_none_or(|pending| !pending.calls.iter().any(|call| self.is_chosen(text, call)))
    }

    /// Whether these words are one of the values that the next part of a call may have.
    fn is_chosen(&self, text: &str, call: &PendingCall) -> bool {
        let Some((tool, one_of)) = self.tool(&call.name).zip(call.missing.first()) else { return false };
        let mut slots = one_of.iter().flat_map(|property| self.slots(tool, property));
        slots.any(|slot| matches!(slot.kind, SlotKind::Choice(_)) && self.value(&slot, text).is_some())
    }

    /// The call among several for which these words are a name and nothing more, even if they are a command by themselves: "the ten
    /// minute timer".
    fn picked(&self, utterance: &Utterance<'_>, pending: &Pending) -> Option<Reading> {
        let is_side = |call: &PendingCall| call.side.is_some();
        if pending.calls.len() < 2 || pending.calls.iter().any(is_side) {
            return None;
        }
        let labels: Vec<_> = pending.calls.iter().map(|call| (self.utterance(&call.label), call)).collect();
        let call = choice::by_part(utterance, &labels)?;
        Some(self.go_for(call, call.arguments.clone(), call.missing.clone(), pending.words.clone(), false))
    }

    /// The answer to the question which of several calls was meant.
    fn choose(&self, text: &str, pending: &Pending, calls: &[PendingCall]) -> Read {
        let said = words::cut(text, self.grammar.language);
        let said: Vec<&str> = said.iter().map(|word| word.text.as_str()).collect();
        let named = |call: &&PendingCall| {
            let label = words::cut(&call.label, self.grammar.language);
            let label: Vec<&str> = label.iter().map(|word| word.text.as_str()).collect();
            let so = !label.is_empty() && said.windows(label.len()).any(|words| words == label);
            so || call.side.as_ref().is_some_and(|side| self.is_named(side, &said))
        };
        let mut chosen = calls.iter().filter(named);
        let by_place = || {
            let places = self.grammar.language.answer.places;
            let place_of = |word: &&str| places.iter().find(|(name, _)| name == word).map(|(_, place)| *place);
            let place = said.iter().find_map(place_of);
            place.and_then(|place| calls.get(place))
        };
        let call = match (chosen.next(), chosen.next()) {
            (Some(call), None) => Some(call),
            (None, _) => by_place(),
            (Some(_), Some(_)) => None,
        };
        let Some(call) = call else { return Reading::Nothing.into() };
        let reading = self.go_for(call, call.arguments.clone(), call.missing.clone(), pending.words.clone(), false);
        let over = calls.iter().filter_map(|other| other.side.clone());
        let chosen = call.side.as_ref().map_or_else(Vec::new, |side| {
            let over = over.filter(|other| other != side);
            over.map(|over| Preference { side: side.clone(), over }).collect()
        });
        Read { reading, chosen }
    }

    /// Whether a side's name occurs in these words, by sound.
    fn is_named(&self, side: &Side, said: &[&str]) -> bool {
        let sides = Sides::of(self.scene);
        (0..said.len()).any(|from| {
            let mut ends = from + 1..=said.len().min(from + ANSWER_NAME_WORDS_MAX);
            ends.any(|to| sides.distance(side, &said[from..to].join(" ")).is_some())
        })
    }

    /// Continues a call with the new information.
    fn go_for(
        &self,
        call: &PendingCall,
        arguments: Value,
        missing: Vec<Vec<String>>,
        words: String,
        free_text: bool,
    ) -> Reading {
        if missing.is_empty() {
            let matched = if free_text { CommandMatch::FreeText } else { CommandMatch::Exact };
            return Reading::Calls(vec![Intent { name: call.name.clone(), arguments, free_text }], matched);
        }
        let call = PendingCall { arguments, missing, side: None, ..call.clone() };
        Reading::Ask {
            pending: Pending { words, calls: vec![call], done: Vec::new(), asked: 1 },
            again: false,
            matched: CommandMatch::Incomplete,
        }
    }

    /// The value of a slot in an answer, all of which has to belong to it.
    fn value(&self, slot: &Slot, text: &str) -> Option<Value> {
        let utterance = self.utterance(text);
        let end = utterance.words.len();
        if slot.kind.is_text() {
            let words = utterance.words.get(..end).filter(|words| !words.is_empty())?;
            return Some(Value::String(words::original(text, words)));
        }
        let program = [Op::Slot(slot.clone()), Op::End];
        super::courtesy::endings(&utterance, 0, end).into_iter().find_map(|end| {
            let view = utterance.view(end.at);
            let mut starts = openings(view, 0);
            for index in 0.. {
                let Some(start) = starts.get(index).copied() else {
                    break;
                };
                if let Some(found) = matcher::read(&program, &utterance, (start, end), false) {
                    return found.arguments.into_iter().next().map(|(_, value)| value);
                }
                let behind =
                    self.grammar.language.answer.front.iter().filter_map(|words| view.phrase(start, words)).max();
                starts.extend(behind.filter(|behind| !starts.contains(behind)));
            }
            None
        })
    }

    fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|tool| tool.name == name).map(AsRef::as_ref)
    }

    /// The slots with which a property can be said.
    fn slots(&self, tool: &ToolSpec, property: &str) -> Vec<Slot> {
        let own = self.grammar.slots_for(&tool.name, property);
        if own.is_empty() {
            question::slot(tool, property, self.grammar.language).into_iter().collect()
        } else {
            own.into_iter().cloned().collect()
        }
    }

    /// The question for a pending command.
    pub fn question(&self, pending: &Pending, again: bool) -> String {
        let asked = match pending.calls.as_slice() {
            [call] => match (self.tool(&call.name), call.missing.first()) {
                (Some(tool), Some(one_of)) => question::of(tool, one_of),
                _ => String::new(),
            },
            calls if calls.iter().all(|call| call.side.is_some()) => {
                question::with(calls.iter().map(|call| call.label.as_str()))
            }
            calls => {
                let more = (calls.len() > LABELS_TOLD_MAX).then_some("another one");
                question::which(calls.iter().take(LABELS_TOLD_MAX).map(|call| call.label.as_str()).chain(more))
            }
        };
        if again { format!("I did not understand that. {asked}") } else { asked }
    }
}

/// Whether its words are the beginning of a command in any context.
fn is_sure(found: &Found) -> bool {
    found.evidence >= EVIDENCE_SURE
}

fn call_of(found: &Found) -> PendingCall {
    let Intent { name, arguments, .. } = found.intent.clone();
    PendingCall { name, arguments, missing: found.missing.clone(), ..PendingCall::default() }
}

fn ask(found: &Found, words: &str) -> Reading {
    let matched = if is_sure(found) { CommandMatch::Incomplete } else { CommandMatch::None };
    let pending = Pending { words: words.to_owned(), calls: vec![call_of(found)], done: Vec::new(), asked: 1 };
    Reading::Ask { pending, again: false, matched }
}

/// Joins two pieces of one request. A full stop between them is the recogniser's.
fn joined(before: &str, text: &str) -> String {
    format!("{} {}", before.trim_end_matches(|letter: char| !letter.is_alphanumeric()), text.trim_start())
}

/// Whether the arguments contain one of these properties.
fn tells(arguments: &Value, one_of: &[String]) -> bool {
    one_of.iter().any(|property| arguments.get(property).is_some())
}

/// Whether both have arguments, and none in common.
fn tells_otherwise(before: &Value, now: &Value) -> bool {
    let empty = Map::new();
    let (before, now) = (before.as_object().unwrap_or(&empty), now.as_object().unwrap_or(&empty));
    !before.is_empty() && !now.is_empty() && before.keys().all(|key| !now.contains_key(key))
}
