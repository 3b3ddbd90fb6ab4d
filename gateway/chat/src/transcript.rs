//! The conversation in a form that every provider accepts: whatever providers reject is removed or repaired before
//! rendering. Pure.
//!
//! A stored conversation may have gaps: a turn was interrupted between a call and its result, old messages were
//! trimmed, another provider's ids contain characters that this one rejects. In the result every call has exactly one
//! result, immediately after it; no message is empty; adjacent messages of one role are merged; and ids are safe for
//! the strictest provider.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use gateway_core::vocab::{Message, Part, Role, Timestamp, ToolError, ToolResult, ToolSpec};
use serde_json::{Map, Value, json};

use crate::{Request, names::NameMap};

/// What differs between providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The provider whose thoughts are sent back, by its adapter's name.
    pub provider: &'static str,
    /// The model accepts pictures. Otherwise a text replaces them.
    pub images: bool,
    /// System messages may occur within the conversation. Otherwise they become notes in the wearer's messages.
    pub system_inside: bool,
    /// The conversation has to begin with the wearer.
    pub user_first: bool,
}

/// Adjacent messages of one role, merged. An assistant turn with calls is followed by their results.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn<'a> {
    /// A system message within the conversation.
    System(String),
    /// The wearer's texts and pictures.
    User(Vec<UserPart<'a>>),
    /// The model; calls come last.
    Assistant(Vec<AssistantPart<'a>>),
    /// One for each call of the preceding turn, in the same order.
    Results(Vec<Outcome<'a>>),
}

/// A part of the wearer's message.
#[derive(Clone, Debug, PartialEq)]
pub enum UserPart<'a> {
    /// Never blank.
    Text(Cow<'a, str>),
    /// A picture.
    Image {
        /// Media type.
        mime: &'a str,
        /// Base64.
        data: &'a str,
    },
}

/// A part of the model's message.
#[derive(Clone, Debug, PartialEq)]
pub enum AssistantPart<'a> {
    /// A thought of this provider, before the parts that follow from it.
    Thinking(&'a Value),
    /// Never blank.
    Text(&'a str),
    /// A tool call.
    Call(Called<'a>),
}

/// A tool call in the provider's terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Called<'a> {
    /// The id in the conversation.
    pub canonical: &'a str,
    /// Unique in the request, of `[A-Za-z0-9_-]`, at most 40 characters.
    pub id: String,
    /// The provider's name of the tool.
    pub name: String,
    /// A JSON object.
    pub arguments: Cow<'a, Value>,
}

/// A result in the provider's terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome<'a> {
    /// Id of the call.
    pub id: String,
    /// The provider's name of the tool.
    pub name: String,
    /// What the tool returned.
    pub result: &'a ToolResult,
}

/// Replaces the missing beginning of the conversation.
pub const BEGINNING: &str = "[The beginning of this conversation is left out.]";
/// Replaces a picture for a model that accepts none.
pub const UNSEEN: &str = "[A picture that you cannot see.]";

/// The turns of a conversation. Tools and call ids in it are added to `names`.
pub fn turns<'a>(messages: &'a [Message], rules: &Rules, names: &mut NameMap) -> Vec<Turn<'a>> {
    let results = results(messages, names);
    let mut turns = Turns { rules: *rules, ids: BTreeSet::new(), out: Vec::new() };
    for (index, message) in messages.iter().enumerate() {
        match message.role {
            Role::Assistant => turns.push_assistant(index, message, &results, names),
            Role::System => turns.push_system(&message.plain_text()),
            // Text in a tool message belongs to no call.
            Role::User | Role::Tool => turns.push_user(message),
        }
    }
    let mut out = turns.out;
    let at = out.iter().take_while(|turn| matches!(turn, Turn::System(_))).count();
    if rules.user_first && !matches!(out.get(at), Some(Turn::User(_))) {
        out.insert(at, Turn::User(vec![UserPart::Text(BEGINNING.into())]));
    }
    out
}

/// Position of a call: message and part.
type Place = (usize, usize);

/// The result of every call that has one. A result belongs to the last open call with its id before it.
fn results<'a>(messages: &'a [Message], names: &mut NameMap) -> BTreeMap<Place, &'a ToolResult> {
    let mut open: BTreeMap<&str, Vec<Place>> = BTreeMap::new();
    let mut results = BTreeMap::new();
    for (index, message) in messages.iter().enumerate() {
        for (at, part) in message.parts.iter().enumerate() {
            match part {
                Part::ToolCall { call } => {
                    // Marked as used even if this request omits the call, as the next may not.
                    names.insert_call_id(&call.id);
                    if message.role == Role::Assistant {
                        open.entry(&call.id).or_default().push((index, at));
                    }
                }
                Part::ToolResult { call_id, result } => {
                    if let Some(place) = open.get_mut(call_id.as_str()).and_then(Vec::pop) {
                        results.insert(place, result);
                    }
                }
                Part::Text { .. } | Part::Image { .. } | Part::Thinking { .. } => {}
            }
        }
    }
    results
}

struct Turns<'a> {
    rules: Rules,
    /// Call ids of this request.
    ids: BTreeSet<String>,
    out: Vec<Turn<'a>>,
}

impl<'a> Turns<'a> {
    fn push_assistant(
        &mut self,
        index: usize,
        message: &'a Message,
        results: &BTreeMap<Place, &'a ToolResult>,
        names: &mut NameMap,
    ) {
        let mut said = Vec::new();
        let mut calls = Vec::new();
        let mut outcomes = Vec::new();
        // A thought is kept only with what follows from it: providers reject one alone.
        let mut thoughts = Vec::new();
        for (at, part) in message.parts.iter().enumerate() {
            match part {
                Part::Thinking { provider, data } if provider == self.rules.provider => thoughts.push(data),
                Part::Text { text } if !is_blank(text) => {
                    said.extend(thoughts.drain(..).map(AssistantPart::Thinking));
                    said.push(AssistantPart::Text(text));
                }
                Part::ToolCall { call } => {
                    let Some(result) = results.get(&(index, at)) else {
                        thoughts.clear();
                        continue;
                    };
                    said.extend(thoughts.drain(..).map(AssistantPart::Thinking));
                    let (id, name) = (self.call_id(&call.id), names.insert(&call.name));
                    let arguments = match &call.arguments {
                        arguments @ Value::Object(_) => names.arguments_for_provider(&call.name, arguments),
                        _ => Cow::Owned(Value::Object(Map::new())),
                    };
                    outcomes.push(Outcome { id: id.clone(), name: name.clone(), result });
                    calls.push(AssistantPart::Call(Called { canonical: &call.id, id, name, arguments }));
                }
                Part::Text { .. } | Part::Thinking { .. } | Part::Image { .. } | Part::ToolResult { .. } => {}
            }
        }
        // After all other parts, so that nothing separates them from their results.
        said.append(&mut calls);
        if said.is_empty() {
            return;
        }
        match self.out.last_mut() {
            Some(Turn::Assistant(before)) => before.append(&mut said),
            _ => self.out.push(Turn::Assistant(said)),
        }
        if !outcomes.is_empty() {
            self.out.push(Turn::Results(outcomes));
        }
    }

    fn push_system(&mut self, text: &str) {
        if is_blank(text) {
            return;
        }
        if !self.rules.system_inside {
            return self.push_user_part(UserPart::Text(format!("[Note] {text}").into()));
        }
        match self.out.last_mut() {
            Some(Turn::System(before)) => {
                before.push_str("\n\n");
                before.push_str(text);
            }
            _ => self.out.push(Turn::System(text.to_owned())),
        }
    }

    fn push_user(&mut self, message: &'a Message) {
        for part in &message.parts {
            match part {
                Part::Text { text } if !is_blank(text) => self.push_user_part(UserPart::Text(text.into())),
                Part::Image { .. } if !self.rules.images => self.push_user_part(UserPart::Text(UNSEEN.into())),
                Part::Image { mime, data } if !data.is_empty() => self.push_user_part(UserPart::Image { mime, data }),
                _ => {}
            }
        }
    }

    fn push_user_part(&mut self, part: UserPart<'a>) {
        match self.out.last_mut() {
            Some(Turn::User(before)) => before.push(part),
            _ => self.out.push(Turn::User(vec![part])),
        }
    }

    /// The canonical id if every provider accepts it. It does not depend on later messages, so that a provider's prefix
    /// cache stays valid.
    fn call_id(&mut self, canonical: &str) -> String {
        // Chat completions allow 40 characters, Responses 64, Anthropic only these characters.
        const ID_CHARS_MAX: usize = 40;
        let safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let mut id = canonical.to_owned();
        let mut count = self.ids.len();
        while !(1..=ID_CHARS_MAX).contains(&id.len()) || !id.chars().all(safe) || self.ids.contains(&id) {
            id = format!("call_{count}");
            count += 1;
        }
        self.ids.insert(id.clone());
        id
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// The text of the wearer's turn, or `None` if it contains more than text.
pub fn only_text(parts: &[UserPart<'_>]) -> Option<String> {
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| match part {
            UserPart::Text(text) => Some(text.as_ref()),
            UserPart::Image { .. } => None,
        })
        .collect();
    texts.map(|texts| texts.join("\n\n"))
}

/// The tools of a request, each name once: the first is kept.
pub fn offered(tools: &[Arc<ToolSpec>]) -> Vec<Arc<ToolSpec>> {
    let mut seen = BTreeSet::new();
    tools.iter().filter(|tool| seen.insert(tool.name.as_str())).cloned().collect()
}

/// The constant instructions first and the clock last, so that a provider's prefix cache stays valid.
pub fn instructions(request: &Request, offered: &[Arc<ToolSpec>]) -> String {
    let mut parts = vec![standing(request, offered), moment(request)];
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

/// What is equal in all requests; may be empty.
pub fn standing(request: &Request, offered: &[Arc<ToolSpec>]) -> String {
    let guidance = offered.iter().filter_map(|tool| tool.guidance.as_deref());
    let parts: Vec<&str> =
        request.system.as_deref().into_iter().chain(guidance).filter(|part| !is_blank(part)).collect();
    parts.join("\n\n")
}

/// What changes: language and time of day.
pub fn moment(request: &Request) -> String {
    format!("The wearer's language is {}. Local time is {}.", request.language, local_time(request.now))
}

fn local_time(now: Timestamp) -> String {
    let offset = jiff::tz::Offset::from_seconds(now.offset_s).unwrap_or(jiff::tz::Offset::UTC);
    jiff::Timestamp::from_millisecond(now.wall_ms)
        .unwrap_or_default()
        .to_zoned(offset.to_time_zone())
        .strftime("%A, %Y-%m-%d %H:%M, UTC%:z")
        .to_string()
}

/// A failure for a model: the error, and what the content says besides, such as what a program printed before.
pub fn failed(result: &ToolResult, error: &ToolError) -> Value {
    match result.for_model() {
        text if is_blank(&text) || text == error.message => json!({"error": error}),
        text => json!({"error": error, "content": text}),
    }
}

/// The text of a result for a model; never blank.
pub fn told(result: &ToolResult) -> String {
    match &result.error {
        Some(error) => failed(result, error).to_string(),
        None => match result.for_model() {
            text if is_blank(&text) => result.data.as_ref().map_or_else(|| "done".to_owned(), Value::to_string),
            text => text,
        },
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::vocab::ToolCall;

    use super::*;

    const RULES: Rules = Rules { provider: "p", images: true, system_inside: false, user_first: true };

    fn call(id: &str) -> Part {
        Part::ToolCall { call: ToolCall { id: id.into(), name: "t.x".into(), arguments: json!({"a": 1}) } }
    }

    fn result(id: &str, text: &str) -> Part {
        Part::ToolResult { call_id: id.into(), result: ToolResult::said(text) }
    }

    fn text(text: &str) -> Part {
        Part::Text { text: text.into() }
    }

    fn thinking(provider: &str) -> Part {
        Part::Thinking { provider: provider.into(), data: json!(1) }
    }

    /// A short notation: one letter for each kind of part.
    fn short(messages: &[(Role, Vec<Part>)], rules: &Rules) -> Vec<String> {
        let messages: Vec<Message> =
            messages.iter().map(|(role, parts)| Message { role: *role, parts: parts.clone() }).collect();
        let mut names = NameMap::default();
        let turns = turns(&messages, rules, &mut names);
        turns
            .iter()
            .map(|turn| match turn {
                Turn::System(text) => format!("S {text}"),
                Turn::User(parts) => format!(
                    "U {}",
                    parts
                        .iter()
                        .map(|part| match part {
                            UserPart::Text(text) => text.to_string(),
                            UserPart::Image { mime, .. } => (*mime).to_owned(),
                        })
                        .collect::<Vec<_>>()
                        .join("|")
                ),
                Turn::Assistant(parts) => format!(
                    "A {}",
                    parts
                        .iter()
                        .map(|part| match part {
                            AssistantPart::Text(text) => (*text).to_owned(),
                            AssistantPart::Thinking(_) => "?".to_owned(),
                            AssistantPart::Call(call) => format!("{}:{}", call.id, call.name),
                        })
                        .collect::<Vec<_>>()
                        .join("|")
                ),
                Turn::Results(all) => format!(
                    "R {}",
                    all.iter().map(|one| format!("{}={}", one.id, told(one.result))).collect::<Vec<_>>().join("|")
                ),
            })
            .collect()
    }

    #[test]
    fn calls_stand_right_before_their_results() {
        use Role::{Assistant, System, Tool, User};
        let got = short(
            &[
                (User, vec![text("go")]),
                (Assistant, vec![thinking("p"), call("a"), thinking("q"), call("b"), text("well")]),
                (User, vec![text("quick")]),
                (System, vec![text("dark")]),
                (Tool, vec![result("b", "2"), result("a", "1"), result("a", "again"), result("?", "?")]),
                (Assistant, vec![text("done")]),
            ],
            &RULES,
        );
        assert_eq!(got, ["U go", "A ?|well|a:t_x|b:t_x", "R a=1|b=2", "U quick|[Note] dark", "A done"]);
    }

    #[test]
    fn holes_are_closed() {
        use Role::{Assistant, Tool, User};
        let got = short(
            &[
                (Tool, vec![result("gone", "1")]),
                (Assistant, vec![text("hello"), thinking("p"), call("open")]),
                (Assistant, vec![text(" "), thinking("p")]),
                (Assistant, vec![text("there")]),
                (User, vec![text("")]),
                (User, vec![]),
                (User, vec![text("x"), Part::Image { mime: "image/png".into(), data: "AA".into() }]),
            ],
            &RULES,
        );
        assert_eq!(got, [&format!("U {BEGINNING}"), "A hello|there", "U x|image/png"]);
        let blind = Rules { images: false, system_inside: true, user_first: false, ..RULES };
        let got = short(
            &[
                (Role::System, vec![text("one")]),
                (Role::System, vec![text("two")]),
                (User, vec![Part::Image { mime: "image/png".into(), data: "AA".into() }]),
            ],
            &blind,
        );
        assert_eq!(got, ["S one\n\ntwo", &format!("U {UNSEEN}")]);
    }

    #[test]
    fn ids_are_safe_and_stay_apart() {
        use Role::{Assistant, Tool};
        let long = "x".repeat(41);
        let ids = ["ok-1", "call_1", "f\u{fc}nf", "", &long, "call_3", "call_1"];
        let mut messages = vec![(Role::User, vec![text("go")])];
        for id in ids {
            messages.push((Assistant, vec![call(id)]));
            messages.push((Tool, vec![result(id, "r")]));
        }
        let got = short(&messages, &RULES);
        let got: Vec<&str> = got.iter().filter_map(|turn| turn.strip_prefix("R ")?.strip_suffix("=r")).collect();
        assert_eq!(got, ["ok-1", "call_1", "call_2", "call_3", "call_4", "call_5", "call_6"]);
    }
}
