//! The offline engine: recognises commands by the sentence templates that the tools declare.
//!
//! A sentence matches as a whole or not at all: every word must be part of a template, of a slot, or plain courtesy. A
//! false positive costs the wearer more than a miss, so a reading needs evidence from fixed words; free text counts
//! against it. Anything else gets a short reply and never a call.
//!
//! A recogniser writes "red my notes" and drops articles. Only a sentence that matches no template as written is read
//! again with words replaced by similar-sounding ones (`phonetic`). Each replacement reduces the evidence, and next to a
//! free text there is at most one. Words that make the opposite of a sentence or a question of it ("not", "did") are never
//! repaired: a sentence with one matches as written or not at all. Free text itself is not changed, with one exception: in a to-do that begins with
//! "by" that word becomes "buy".
//!
//! Each language has its tables (`language`), English, German, Spanish and French so far; in any other one a tool's
//! sentences are read by the rules of English. What the engine says itself is English, as the voice is.
//!
//! If tools of several sides (built-in, an app, a server) match a sentence, `sides` decides.

mod apps;
mod asking;
mod choice;
mod clock;
mod collisions;
mod courtesy;
mod date;
mod duration;
mod explain;
mod expression;
mod found;
mod grammar;
mod grammars;
mod language;
mod matcher;
mod phonetic;
mod question;
mod repetition;
mod reply;
mod sides;
mod template;
mod utterance;
mod words;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use gateway_core::vocab::{
    CommandMatch, Message, ModelEvent, Pending, Preference, Role, StopReason, ToolCall, ToolSpec, Usage,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{ChatModel, Matched, Request, Tools};
use asking::{Read, Reader, Reading};
use found::Intent;
use grammar::Grammar;
use language::Language;

pub use collisions::{Collision, collisions};
pub use explain::{Explained, Explanation, Near};
pub use grammar::{TEMPLATES_MAX, check};
pub use grammars::{Grammars, LISTS_MAX};
pub use template::{TEMPLATE_BYTES_MAX, TemplateError};

/// Longest utterance considered: a minute of fast speech.
pub const UTTERANCE_BYTES_MAX: usize = 2_000;
/// Example sentences offered after an utterance that was not understood.
const EXAMPLES: usize = 3;
/// Prefix of the ids of this engine's calls.
pub const CALL_PREFIX: &str = "intent-";

/// The offline engine. Cheap to share.
#[derive(Default)]
pub struct Engine {
    grammars: Grammars,
    calls: AtomicU64,
}

/// The engine's decision about a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Run these tools.
    Calls(Vec<ToolCall>),
    /// Ask this, and wait for the answer.
    Ask(String, Pending),
    /// Say this; empty for silence.
    Say(String),
}

/// The same, with additional information.
struct Decided {
    decision: Decision,
    /// Preferences that the wearer has expressed.
    chosen: Vec<Preference>,
    /// A shorter reply, for a wearer who has heard the examples before.
    brief: Option<&'static str>,
}

impl From<Decision> for Decided {
    fn from(decision: Decision) -> Self {
        Self { decision, chosen: Vec::new(), brief: None }
    }
}

impl Engine {
    /// An engine without compiled tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// An engine that shares compiled tools with others.
    pub fn sharing(grammars: Grammars) -> Self {
        Self { grammars, calls: AtomicU64::default() }
    }

    /// Decides about a request: the engine without the stream.
    pub fn decide(&self, request: &Request) -> Decision {
        self.decided(request).decision
    }

    fn decided(&self, request: &Request) -> Decided {
        if let Some(decision) = choice::after_results(&request.messages) {
            return decision.into();
        }
        let grammar = self.grammar(&request.tools, &request.language);
        let reader = reader(&grammar, request);
        let near = match wearers_words(request) {
            None => None,
            Some(text) => {
                let Read { reading, chosen } = reader.read(&text, request.pending.as_ref());
                let decision = match reading {
                    Reading::Calls(intents, _) => Some(Decision::Calls(self.calls(request, intents))),
                    Reading::Ask { pending, again, .. } => {
                        Some(Decision::Ask(reader.question(&pending, again), pending))
                    }
                    Reading::Declined => Some(Decision::Say(reply::DECLINED.to_owned())),
                    Reading::Nothing => None,
                };
                if let Some(decision) = decision {
                    return Decided { chosen, ..decision.into() };
                }
                let utterance = reader.utterance(&text);
                if let Some(reply) = courtesy::reply_to(&utterance) {
                    return Decision::Say(reply.to_owned()).into();
                }
                grammar.near_miss(&utterance)
            }
        };
        let said = Decision::Say(reply::to_unknown(near.as_deref(), &grammar.examples(EXAMPLES)));
        // A near miss is worth naming each time.
        Decided { brief: near.is_none().then_some(reply::NOT_UNDERSTOOD), ..said.into() }
    }

    /// The answer to commands and to the results of its own calls, as events of a stream; `None` for anything else.
    pub fn answer_command(&self, request: &Request) -> Option<Vec<ModelEvent>> {
        if reply::is_to_own_calls(&request.messages) {
            return Some(events(self.decided(request)));
        }
        let text = wearers_words(request)?;
        let grammar = self.grammar(&request.tools, &request.language);
        let reader = reader(&grammar, request);
        let Read { reading, chosen } = reader.read(&text, request.pending.as_ref());
        let decision = match reading {
            Reading::Calls(intents, _) => Decision::Calls(self.calls(request, intents)),
            // A question about the side only is not for a model.
            Reading::Ask { pending, again, .. } if !chosen.is_empty() || asks_whose(&pending) => {
                Decision::Ask(reader.question(&pending, again), pending)
            }
            Reading::Declined if is_asked(request) => Decision::Say(reply::DECLINED.to_owned()),
            // A model asks itself, in its own words.
            Reading::Ask { .. } | Reading::Declined | Reading::Nothing => return None,
        };
        Some(events(Decided { chosen, ..decision.into() }))
    }

    fn calls(&self, request: &Request, intents: Vec<Intent>) -> Vec<ToolCall> {
        intents.into_iter().map(|intent| intent.into_call(self.id(request))).collect()
    }

    /// Compiles the tools ahead of the first request, and returns the number of templates.
    pub fn prepare(&self, tools: &Tools, language: &str) -> usize {
        let grammar = self.grammars.prepare(tools, language);
        tracing::debug!(templates = ?grammar.sources().collect::<Vec<_>>(), "prepared");
        grammar.len()
    }

    /// Unique within the process by the counter, and across restarts by the wall clock.
    fn id(&self, request: &Request) -> String {
        let count = self.calls.fetch_add(1, Ordering::Relaxed);
        format!("{CALL_PREFIX}{:x}-{count}", request.now.wall_ms)
    }

    /// A look-up if the grammar was prepared, as during every turn.
    fn grammar(&self, tools: &Tools, language: &str) -> Arc<Grammar> {
        self.grammars.prepare(tools, language)
    }
}

/// Whether a sentence calls this tool, and nothing else, where no other tool is offered. A template of function words
/// only does not: it has too little evidence.
pub fn is_understood(tool: &Arc<ToolSpec>, language: &str, sentence: &str) -> bool {
    let messages = vec![Message::text(Role::User, sentence)];
    let tools = Arc::new([Arc::clone(tool)]);
    let request = Request { messages, tools, language: language.to_owned(), ..Request::default() };
    match Engine::new().decide(&request) {
        Decision::Calls(calls) => !calls.is_empty() && calls.iter().all(|call| call.name == tool.name),
        Decision::Ask(..) | Decision::Say(_) => false,
    }
}

fn reader<'a>(grammar: &'a Grammar, request: &'a Request) -> Reader<'a> {
    let now = utterance::local(request.now, request.zone.as_ref());
    Reader { grammar, tools: &request.tools, scene: &request.scene, now }
}

/// Whether a question of this engine waits for its answer.
fn is_asked(request: &Request) -> bool {
    request.pending.as_ref().is_some_and(|pending| !pending.calls.is_empty())
}

/// Whether the question is which side is meant.
fn asks_whose(pending: &Pending) -> bool {
    pending.calls.len() > 1 && pending.calls.iter().all(|call| call.side.is_some())
}

/// The wearer's last words, if they are short enough to be a command.
fn wearers_words(request: &Request) -> Option<String> {
    let last = request.messages.last().filter(|message| message.is_wearers())?;
    let text = last.plain_text();
    (text.len() <= UTTERANCE_BYTES_MAX && grammar::has_words(&text, Language::of(&request.language))).then_some(text)
}

/// The decision as a model would stream it.
fn events(Decided { decision, chosen, brief }: Decided) -> Vec<ModelEvent> {
    let (more, stop): (Vec<ModelEvent>, _) = match decision {
        Decision::Calls(calls) => (calls.into_iter().map(ModelEvent::ToolCall).collect(), StopReason::ToolCalls),
        Decision::Ask(text, pending) => (vec![ModelEvent::Question { text, pending }], StopReason::End),
        Decision::Say(text) if text.is_empty() => (Vec::new(), StopReason::End),
        Decision::Say(text) => {
            let said = match brief {
                Some(brief) => ModelEvent::NotUnderstood {
                    text,
                    without_model: reply::WITHOUT_MODEL.to_owned(),
                    brief: brief.to_owned(),
                },
                None => ModelEvent::Text(text),
            };
            (vec![said], StopReason::End)
        }
    };
    let done = ModelEvent::Done { stop, usage: Usage::default() };
    chosen.into_iter().map(ModelEvent::Chosen).chain(more).chain([done]).collect()
}

#[async_trait]
impl ChatModel for Engine {
    fn name(&self) -> &str {
        "intents"
    }

    fn match_command(&self, request: &Request) -> Option<Matched> {
        let text = wearers_words(request)?;
        let grammar = self.grammar(&request.tools, &request.language);
        let reader = reader(&grammar, request);
        let matched = match reader.read(&text, request.pending.as_ref()).reading {
            Reading::Calls(calls, CommandMatch::Exact) if calls.len() == 1 && !reader.may_go_on(&text) => {
                CommandMatch::Closed
            }
            Reading::Calls(_, matched) | Reading::Ask { matched, .. } => matched,
            Reading::Declined if is_asked(request) => CommandMatch::Exact,
            Reading::Declined | Reading::Nothing => CommandMatch::None,
        };
        // A guess is worth less than words that fit as they are.
        let matched = match matched {
            CommandMatch::None | CommandMatch::Misheard if reader.breaks_off(&text) => CommandMatch::Beginning,
            matched => matched,
        };
        let vocabulary = match matched {
            // The command is recognised already; a recogniser biased towards commands writes worse free text.
            CommandMatch::FreeText => Arc::default(),
            _ => grammar.vocabulary(),
        };
        Some(Matched { matched, vocabulary })
    }

    fn answer_on_box(&self, request: &Request) -> Option<Vec<ModelEvent>> {
        Some(events(self.decided(request)))
    }

    fn is_ready(&self, tools: &Tools, language: &str) -> bool {
        self.grammars.ready(tools, language).is_some()
    }

    fn prepare(&self, tools: &Tools, language: &str) {
        Engine::prepare(self, tools, language);
    }

    async fn stream(&self, request: Request, events: mpsc::Sender<ModelEvent>, cancel: CancellationToken) {
        let send = async {
            for event in self::events(self.decided(&request)) {
                if events.send(event).await.is_err() {
                    return;
                }
            }
        };
        cancel.run_until_cancelled(send).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gateway_core::vocab::{Phrases, Timestamp};
    use jiff::tz::TimeZone;
    use serde_json::json;

    #[test]
    fn a_text_is_clear_a_guess_or_none() {
        let tool = |name: &str, schema, template: &str| {
            let phrases = vec![Phrases { language: "en".into(), templates: vec![template.into()] }];
            Arc::new(ToolSpec { name: name.into(), input_schema: schema, phrases, ..ToolSpec::default() })
        };
        let text = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let list = tool("note.list", json!({"type": "object", "properties": {}}), "(read|show) [me] my notes");
        let tools: Tools = Arc::new([list, tool("note.add", text, "take a note [{text}]")]);
        let match_command = |text: &str| {
            let messages = vec![Message::text(Role::User, text)];
            let (system, language) = (None, "en".to_owned());
            Engine::new().match_command(&Request {
                system,
                messages,
                tools: tools.clone(),
                language,
                ..Request::default()
            })
        };
        for (text, expected) in [
            ("Read my notes.", CommandMatch::Closed),
            ("Show me my notes please.", CommandMatch::Closed),
            ("Would you mind reading my notes?", CommandMatch::Closed),
            ("Red my notes.", CommandMatch::Misheard),
            ("The weather is nice.", CommandMatch::None),
            ("Show me my.", CommandMatch::Beginning),
            // One word may be all.
            ("Show.", CommandMatch::None),
            // It may go on with its text.
            ("Take a note.", CommandMatch::Exact),
            ("Take a note buy milk.", CommandMatch::FreeText),
            ("Read my notes and take a note buy milk.", CommandMatch::FreeText),
        ] {
            let found = match_command(text).expect("there are words");
            assert_eq!(found.matched, expected, "{text}");
            // No bias is needed towards commands that are recognised already.
            let sentences = if expected == CommandMatch::FreeText { 0 } else { 2 };
            assert_eq!(found.vocabulary.len(), sentences, "{text}");
        }
        assert_eq!(match_command("..."), None);
    }

    #[test]
    fn by_before_a_thing_is_a_purchase_and_a_sign_before_it_stays_text() {
        let input_schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let phrases = vec![Phrases { language: "en".into(), templates: vec!["take a note {text}".into()] }];
        let tool = ToolSpec { name: "note.add".into(), input_schema, phrases, ..ToolSpec::default() };
        for (said, expected) in [
            ("Take a note by milk", "buy milk"),
            ("Take a note \u{20ac}by milk", "\u{20ac}by milk"),
            ("Take a note $by milk", "$by milk"),
            ("Take a note #by milk", "#by milk"),
        ] {
            let request = Request {
                messages: vec![Message::text(Role::User, said)],
                tools: Arc::new([Arc::new(tool.clone())]),
                ..Request::default()
            };
            let Decision::Calls(calls) = Engine::new().decide(&request) else { panic!("{said}") };
            assert_eq!(calls[0].arguments, json!({"text": expected}), "{said}");
        }
    }

    #[test]
    fn a_greeting_a_farewell_and_thanks_are_answered_where_they_are_all() {
        for (language, text, expected) in [
            ("en", "Good morning.", Some(reply::GREETING)),
            ("en", "Good night!", Some(reply::FAREWELL)),
            ("en", "Thank you very much.", Some(reply::WELCOME)),
            ("de", "Grüß Gott!", Some(reply::GREETING)),
            ("de", "Tschüss.", Some(reply::FAREWELL)),
            ("es", "¡Buenos días!", Some(reply::GREETING)),
            ("es", "Hasta mañana.", Some(reply::FAREWELL)),
            ("fr", "À demain !", Some(reply::FAREWELL)),
            ("fr", "Merci beaucoup.", Some(reply::WELCOME)),
            ("en", "Good morning in French.", None),
            ("en", "Guten Morgen.", None),
        ] {
            let request = Request {
                messages: vec![Message::text(Role::User, text)],
                language: language.into(),
                ..Request::default()
            };
            let said = match Engine::new().decide(&request) {
                Decision::Say(text) => text,
                other => panic!("{text}: {other:?}"),
            };
            let replies = [reply::GREETING, reply::FAREWELL, reply::WELCOME];
            assert_eq!(replies.into_iter().find(|reply| *reply == said), expected, "{text}: {said}");
        }
    }

    #[test]
    fn hours_ahead_are_counted_over_a_clock_change_and_days_keep_the_time_of_day() {
        let phrases = vec![Phrases { language: "en".into(), templates: vec!["call a taxi {at:when}".into()] }];
        let input_schema = json!({"type": "object", "properties": {"at": {"type": "string"}}});
        let tool = ToolSpec { name: "taxi.call".into(), input_schema, phrases, ..ToolSpec::default() };
        // New York, half an hour before the clocks go from two to three.
        let zone = TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").expect("a zone");
        let now: jiff::Timestamp = "2026-03-08T01:30:00-05:00".parse().expect("a moment");
        for (said, expected) in [
            ("Call a taxi in ten minutes.", "2026-03-08T01:40"),
            ("Call a taxi in two hours.", "2026-03-08T04:30"),
            ("Call a taxi in two days.", "2026-03-10T01:30"),
            ("Call a taxi in 24 hours.", "2026-03-09T02:30"),
            ("Call a taxi in one day and two hours.", "2026-03-09T03:30"),
            ("Call a taxi at five.", "2026-03-08T05:00"),
        ] {
            let request = Request {
                messages: vec![Message::text(Role::User, said)],
                tools: Arc::new([Arc::new(tool.clone())]),
                now: Timestamp { mono_us: 0, wall_ms: now.as_millisecond(), offset_s: -5 * 3_600 },
                zone: Some(zone.clone()),
                ..Request::default()
            };
            let Decision::Calls(calls) = Engine::new().decide(&request) else { panic!("{said}") };
            assert_eq!(calls[0].arguments, json!({"at": expected}), "{said}");
        }
    }

    #[test]
    fn a_negation_or_a_question_is_never_repaired_to_a_command() {
        let understood = |language: &str, template: &str, sentence: &str| {
            let phrases = vec![Phrases { language: language.into(), templates: vec![template.into()] }];
            let input_schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
            let tool = ToolSpec { name: "a.b".into(), input_schema, phrases, ..ToolSpec::default() };
            is_understood(&Arc::new(tool), language, sentence)
        };
        let english = "cancel [all] [my] timers";
        for sentence in [
            "Do not cancel my timers.",
            "Did you cancel my timers?",
            "If I cancel my timers.",
            "How to cancel my timers.",
        ] {
            assert!(!understood("en", english, sentence), "{sentence}");
        }
        for sentence in ["Cancel in my timers.", "Do cancel my timers.", "Can sell my timers."] {
            assert!(understood("en", english, sentence), "{sentence}");
        }
        let german = "lösche die notiz über {text:name}";
        assert!(understood("de", german, "Lösche die Notiz über Milch."));
        for sentence in ["Lösche nicht die Notiz über Milch.", "Lösche die Notiz über Milch nicht, bitte."] {
            assert!(!understood("de", german, sentence), "{sentence}");
        }
        for (language, template, sentence) in [
            ("en", "play {text:name} on radio", "Play Never Gonna Give You Up on radio."),
            ("fr", "joue {text:name} sur radio", "Joue Ne me quitte pas sur radio."),
            ("de", "spiel {text:name} auf radio", "Spiel Ohne dich auf radio."),
        ] {
            assert!(understood(language, template, sentence), "{sentence}");
        }
        for (language, template, sentence) in [
            ("fr", "joue {text:name} sur radio", "Joue pas Yesterday sur radio."),
            ("de", "spiel {text:name} auf radio", "Spiel nicht Yesterday auf radio."),
        ] {
            assert!(!understood(language, template, sentence), "{sentence}");
        }
        assert!(!understood("de", "zeig meine notizen", "Zeig keine Notizen."));
        assert!(!understood("es", "cancela el temporizador", "No canceles el temporizador."));
        assert!(!understood("fr", "arrête le minuteur", "N'arrête pas le minuteur."));
        // A template's own words match as written.
        assert!(understood("en", "do not wake me", "Do not wake me."));
        assert!(!understood("en", "do not wake me", "Do wake me."));
    }

    #[test]
    fn a_sentence_of_function_words_only_is_not_understood() {
        let understood = |template: &str| {
            let phrases = vec![Phrases { language: "en".into(), templates: vec![template.into()] }];
            let input_schema = json!({"type": "object", "properties": {}});
            let tool = ToolSpec { name: "a.b".into(), input_schema, phrases, ..ToolSpec::default() };
            is_understood(&Arc::new(tool), "en", template)
        };
        for template in ["run my morning summary", "summary please", "what is it", "guten morgen"] {
            assert!(understood(template), "{template}");
        }
        for template in ["i a", "a the", "the to"] {
            assert!(!understood(template), "{template}");
        }
    }
}
