//! What is asked where a command lacks something, and what is made of the answer.
//!
//! The answer is read together with what was said before, as one sentence, and only then by itself: "remind me", "to
//! call Ben at five" gives the text and the time. What is a command of its own is that command. More words of a request
//! that nobody asked about are read in the same way, unless that would do something twice.

use std::sync::Arc;

use gateway_core::vocab::{Clarity, Pending, PendingCall, SceneApp, ToolCall, ToolSpec};
use jiff::civil::DateTime;
use serde_json::{Map, Value};

use super::{
    courtesy::openings,
    grammar::{Grammar, Intent, Partial},
    matcher, question,
    template::{Op, Slot},
    utterance::Utterance,
    words,
};

/// How often the same is asked.
const ASKED_MAX: u8 = 2;
/// What the fixed words of a sentence have to say, so that it is taken for the beginning of a command wherever it is said.
const EVIDENCE_SURE: f32 = 1.5;
/// Words in front of an answer that say nothing of it.
const FRONT: [&str; 26] = [
    "make it",
    "make that",
    "let us say",
    "let us make it",
    "say",
    "for",
    "to",
    "in",
    "at",
    "on",
    "of",
    "by",
    "with",
    "about",
    "it is",
    "that is",
    "the",
    "a",
    "an",
    "maybe",
    "i think",
    "use",
    "take",
    "called",
    "set it to",
    "um",
];

/// What the wearer's words come to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reading {
    /// Commands, and how sure that is.
    Calls(Vec<Intent>, Clarity),
    /// More has to be known first.
    Ask {
        /// What waits for it.
        pending: Pending,
        /// Whether the last answer told nothing.
        again: bool,
        /// Whether the words are certainly the beginning of a command, or part of one.
        sure: bool,
    },
    /// Nothing.
    Nothing,
}

/// The wearer's words against what can be asked of tools, with what they may go on with.
pub(super) struct Reader<'a> {
    pub grammar: &'a Grammar,
    pub tools: &'a [Arc<ToolSpec>],
    /// Mini-apps that may be named.
    pub apps: &'a [SceneApp],
    pub now: DateTime,
}

impl<'a> Reader<'a> {
    pub fn utterance<'b>(&self, text: &'b str) -> Utterance<'b>
    where
        'a: 'b,
    {
        Utterance::new(text, self.now).with_apps(self.apps)
    }

    pub fn read(&self, text: &str, pending: Option<&Pending>) -> Reading {
        let mut utterance = self.utterance(text);
        let alone = self.grammar.understand(&mut utterance);
        if alone.clarity > Clarity::Guessed {
            return Reading::Calls(alone.intents, alone.clarity);
        }
        let more = pending.map(|pending| match pending.calls.as_slice() {
            [] => self.go_on(text, pending),
            [call] => self.answer(text, pending, call),
            calls => self.choose(text, pending, calls),
        });
        match more {
            Some(Reading::Nothing) | None => {}
            Some(reading) => return reading,
        }
        let partial = self.partial(&utterance);
        // Its words were all understood as they are written, which no guess can say.
        if let Some(exact) = partial.as_ref().filter(|partial| is_sure(partial.evidence) && !partial.intent.free_text) {
            return ask(exact, text);
        }
        if let Some(pending) = pending.filter(|pending| !pending.calls.is_empty() && pending.asked < ASKED_MAX) {
            let asked = pending.asked.saturating_add(1);
            let pending = Pending { asked, ..pending.clone() };
            return Reading::Ask { pending, again: true, sure: false };
        }
        if !alone.intents.is_empty() {
            return Reading::Calls(alone.intents, alone.clarity);
        }
        partial.map_or(Reading::Nothing, |partial| ask(&partial, text))
    }

    /// The words as the beginning of a command of which everything else can be asked.
    fn partial(&self, utterance: &Utterance<'_>) -> Option<Partial> {
        self.grammar.partial(utterance).filter(|partial| self.can_ask(partial))
    }

    /// Whether everything that is missing can be said in a few words.
    fn can_ask(&self, partial: &Partial) -> bool {
        let Some(tool) = self.tool(&partial.intent.name) else {
            return false;
        };
        partial.missing.iter().all(|one_of| one_of.iter().any(|property| !self.slots(tool, property).is_empty()))
    }

    /// More words of a request that was taken already.
    fn go_on(&self, text: &str, pending: &Pending) -> Reading {
        let joined = joined(&pending.words, text);
        let mut utterance = self.utterance(&joined);
        let understood = self.grammar.understand(&mut utterance);
        match understood.intents.as_slice() {
            [intent] if understood.clarity > Clarity::Guessed && self.may_follow(&pending.done, intent) => {
                Reading::Calls(understood.intents, understood.clarity)
            }
            [] if pending.done.is_empty() => {
                self.partial(&utterance).map_or(Reading::Nothing, |partial| ask(&partial, &joined))
            }
            _ => Reading::Nothing,
        }
    }

    /// Whether a call makes good what was done before, and does nothing of it twice: it changes nothing, it sets what the
    /// one before has set, or it tells in another way what that one was told (a level in place of a step up).
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

    /// The answer to what was asked of one call.
    fn answer(&self, text: &str, pending: &Pending, call: &PendingCall) -> Reading {
        let Some((tool, first)) = self.tool(&call.name).zip(call.missing.first()) else {
            return Reading::Nothing;
        };
        let joined = joined(&pending.words, text);
        let mut utterance = self.utterance(&joined);
        let understood = self.grammar.understand(&mut utterance);
        if let [intent] = understood.intents.as_slice()
            && understood.clarity > Clarity::Guessed
            && intent.name == call.name
            && tells(&intent.arguments, first)
        {
            return Reading::Calls(understood.intents, understood.clarity);
        }
        if let Some(more) = self.partial(&utterance)
            && more.intent.name == call.name
            && tells(&more.intent.arguments, first)
        {
            return ask(&more, &joined);
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

    /// The answer to which of several calls was meant.
    fn choose(&self, text: &str, pending: &Pending, calls: &[PendingCall]) -> Reading {
        let said = words::cut(text);
        let said: Vec<&str> = said.iter().map(|word| word.text.as_str()).collect();
        let named = |call: &&PendingCall| {
            let label = words::cut(&call.label);
            let label: Vec<&str> = label.iter().map(|word| word.text.as_str()).collect();
            !label.is_empty() && said.windows(label.len()).any(|words| words == label)
        };
        let mut chosen = calls.iter().filter(named);
        let by_place = || {
            let place = said.iter().find_map(|word| match *word {
                "first" | "former" => Some(0),
                "second" | "latter" | "other" => Some(1),
                "third" => Some(2),
                _ => None,
            });
            place.and_then(|place| calls.get(place))
        };
        let call = match (chosen.next(), chosen.next()) {
            (Some(call), None) => call,
            (None, _) => match by_place() {
                Some(call) => call,
                None => return Reading::Nothing,
            },
            (Some(_), Some(_)) => return Reading::Nothing,
        };
        self.go_for(call, call.arguments.clone(), call.missing.clone(), pending.words.clone(), false)
    }

    /// A call of which more is known now.
    fn go_for(
        &self,
        call: &PendingCall,
        arguments: Value,
        missing: Vec<Vec<String>>,
        words: String,
        free_text: bool,
    ) -> Reading {
        if missing.is_empty() {
            let clarity = if free_text { Clarity::Free } else { Clarity::Clear };
            return Reading::Calls(vec![Intent { name: call.name.clone(), arguments, free_text }], clarity);
        }
        let call = PendingCall { arguments, missing, ..call.clone() };
        Reading::Ask {
            pending: Pending { words, calls: vec![call], done: Vec::new(), asked: 1 },
            again: false,
            sure: true,
        }
    }

    /// What a slot takes of an answer, all of which has to belong to it.
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
                let behind = FRONT.iter().filter_map(|words| view.phrase(start, words)).max();
                starts.extend(behind.filter(|behind| !starts.contains(behind)));
            }
            None
        })
    }

    fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|tool| tool.name == name).map(AsRef::as_ref)
    }

    /// How a property may be said.
    fn slots(&self, tool: &ToolSpec, property: &str) -> Vec<Slot> {
        let own = self.grammar.slots_for(&tool.name, property);
        if own.is_empty() {
            question::slot(tool, property).into_iter().collect()
        } else {
            own.into_iter().cloned().collect()
        }
    }

    /// How the wearer is asked for what waits.
    pub fn question(&self, pending: &Pending, again: bool) -> String {
        let asked = match pending.calls.as_slice() {
            [call] => match (self.tool(&call.name), call.missing.first()) {
                (Some(tool), Some(one_of)) => question::of(tool, one_of),
                _ => String::new(),
            },
            calls => question::which(calls.iter().map(|call| call.label.as_str())),
        };
        if again { format!("I did not understand that. {asked}") } else { asked }
    }
}

/// Whether words with this evidence are the beginning of a command wherever they are said.
fn is_sure(evidence: f32) -> bool {
    evidence >= EVIDENCE_SURE
}

fn ask(Partial { intent, missing, evidence }: &Partial, words: &str) -> Reading {
    let sure = is_sure(*evidence);
    let Intent { name, arguments, .. } = intent.clone();
    let call = PendingCall { name, arguments, missing: missing.clone(), ..PendingCall::default() };
    let pending = Pending { words: words.to_owned(), calls: vec![call], done: Vec::new(), asked: 1 };
    Reading::Ask { pending, again: false, sure }
}

/// Two pieces of one request. A full stop between them is the recogniser's.
fn joined(before: &str, text: &str) -> String {
    format!("{} {}", before.trim_end_matches(|letter: char| !letter.is_alphanumeric()), text.trim_start())
}

/// Whether arguments hold one of these properties.
fn tells(arguments: &Value, one_of: &[String]) -> bool {
    one_of.iter().any(|property| arguments.get(property).is_some())
}

/// Whether there are arguments on both sides and none in common.
fn tells_otherwise(before: &Value, now: &Value) -> bool {
    let empty = Map::new();
    let (before, now) = (before.as_object().unwrap_or(&empty), now.as_object().unwrap_or(&empty));
    !before.is_empty() && !now.is_empty() && before.keys().all(|key| !now.contains_key(key))
}
