//! A test's view of a provider: it reads requests and writes answers.

use chat_models::{names::NameMap, provider::Provider};
use serde_json::Value;

use crate::conversation::Said;

/// A part of a message on the wire.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// What is said.
    Text(String),
    /// A picture: media type and Base64.
    Image(String, String),
    /// A call, with the provider's id and name.
    Call { id: String, name: String, arguments: Value },
    /// What a tool returned.
    Result { id: String, text: String },
    /// A thought of the provider.
    Thought(Value),
}

/// A message on the wire, without the system instructions at the top.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Its role, in the provider's terms.
    pub role: String,
    /// In order.
    pub items: Vec<Item>,
}

/// The server's side of a provider, written without any code of its adapter.
pub trait Witness {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;

    /// The tested adapter.
    fn provider(&self) -> Box<dyn Provider>;

    /// Names of tools may contain dots.
    fn takes_dots(&self) -> bool {
        false
    }

    /// Two adjacent messages of one role are legal.
    fn may_repeat(&self, one: &Seen, two: &Seen) -> bool {
        let _ = (one, two);
        false
    }

    /// The names of the tools that a request offers.
    fn tools(&self, body: &Value) -> Vec<String>;

    /// Its messages. Panics on anything outside the provider's API.
    fn seen(&self, body: &Value) -> Vec<Seen>;

    /// The form of a thought in a request, if the provider sends any back.
    fn thought(&self) -> Option<Value> {
        None
    }

    /// An answer as the provider streams it.
    fn stream(&self, said: &Said, names: &mut NameMap) -> String;
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

pub fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

pub fn json_text(value: &Value) -> Value {
    serde_json::from_str(&text(value)).unwrap_or_else(|error| panic!("{value}: {error}"))
}

/// The picture in a data URL.
pub fn data_url(value: &Value) -> Item {
    let url = text(value);
    let (mime, data) = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")).expect("a data URL");
    Item::Image(mime.to_owned(), data.to_owned())
}

/// Text in a few pieces, as it streams; cut between characters.
pub fn thirds(text: &str) -> Vec<&str> {
    let third = |n: usize| (text.len() * n / 3..=text.len()).find(|at| text.is_char_boundary(*at)).expect("an end");
    let (one, two) = (third(1), third(2));
    vec![&text[..one], &text[one..two], &text[two..]]
}

/// Joins adjacent texts of one message.
pub fn joined(items: Vec<Item>) -> Vec<Item> {
    let mut out: Vec<Item> = Vec::new();
    for item in items {
        match (out.last_mut(), item) {
            (Some(Item::Text(before)), Item::Text(text)) => {
                before.push_str("\n\n");
                before.push_str(&text);
            }
            (_, item) => out.push(item),
        }
    }
    out
}
