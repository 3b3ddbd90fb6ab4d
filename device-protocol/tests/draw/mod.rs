//! Draws arbitrary messages in the JSON form from the schema; few bytes of entropy give simple messages.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use device_protocol::schema::{ENUMERATIONS, Field, MessageSchema, RECORDS, SETS};
use serde_json::{Map, Value, json};

struct Draw<'e>(core::slice::Iter<'e, u8>);

impl Draw<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    /// All widths are about equally frequent, so that each varint length occurs.
    fn number(&mut self, bits: u32) -> u64 {
        let width = u32::from(self.byte()) % (bits + 1);
        let value = (0..8).fold(0u64, |value, _| value << 8 | u64::from(self.byte()));
        if width == 0 { 0 } else { value >> (64 - width) }
    }

    fn length(&mut self, max: usize) -> usize {
        match self.byte() {
            255 => max,
            byte => usize::from(byte % 12).min(max),
        }
    }

    fn text(&mut self, max: usize) -> String {
        let length = self.length(max);
        let mut text = String::new();
        while text.len() < length {
            let picked = ['a', '"', '\\', '\n', '\u{1}', 'é', '語', '🕶', ' '][usize::from(self.byte()) % 9];
            if text.len() + picked.len_utf8() > length {
                text.push('x');
            } else {
                text.push(picked);
            }
        }
        text
    }

    fn bytes(&mut self, length: usize) -> Value {
        let bytes: Vec<u8> = (0..length).map(|_| self.byte()).collect();
        json!(STANDARD.encode(bytes))
    }

    fn record(&mut self, fields: &[Field]) -> Map<String, Value> {
        let drawn: Vec<(&Field, Value)> = fields.iter().map(|field| (field, self.value(field))).collect();
        // A sender omits trailing appended fields with their default value.
        let said = drawn.iter().rposition(|(field, value)| !field.appended || !is_default(field, value));
        let said = drawn.into_iter().take(said.map_or(0, |last| last + 1));
        said.map(|(field, value)| (field.name.into(), value)).collect()
    }

    fn value(&mut self, field: &Field) -> Value {
        match field.wire {
            "u8" => json!(self.number(8)),
            "u16" => json!(self.number(16)),
            "u32" => json!(self.number(32)),
            "u64" => json!(self.number(64)),
            "i16" => json!(self.number(16) as u16 as i16),
            "i32" => json!(self.number(32) as u32 as i32),
            "bool" => json!(self.byte() % 2 == 1),
            "text" => json!(self.text(field.max)),
            "bytes" => {
                let length = self.length(field.max);
                self.bytes(length)
            }
            "array" => self.bytes(field.max),
            wire => self.named(wire, field.max),
        }
    }

    fn named(&mut self, wire: &str, max: usize) -> Value {
        let fields = |name: &str| RECORDS.iter().find(|record| record.0 == name).expect("a record").1;
        if let Some(name) = wire.strip_prefix("record ") {
            return Value::Object(self.record(fields(name)));
        }
        if let Some(name) = wire.strip_prefix("option ") {
            return if self.byte() % 2 == 1 { Value::Object(self.record(fields(name))) } else { Value::Null };
        }
        if let Some(name) = wire.strip_prefix("list ") {
            let count = usize::from(self.byte() % 5).min(max);
            return (0..count).map(|_| Value::Object(self.record(fields(name)))).collect();
        }
        if let Some(known) = ENUMERATIONS.iter().find(|known| known.name == wire) {
            let number = self.number(if known.wire == "u8" { 8 } else { 16 });
            let name = known.names.iter().find(|name| u64::from(name.0) == number);
            return name.map_or(json!(number), |name| json!(name.1));
        }
        let set = SETS.iter().find(|set| set.name == wire).expect("a type of the schema");
        let mask = self.number(if set.wire == "u16" { 16 } else { 32 });
        let bits = (0..32u32).filter(|bit| mask & (1 << bit) != 0);
        bits.map(|bit| set.names.iter().find(|name| name.0 == bit).map_or(json!(bit), |name| json!(name.1))).collect()
    }
}

/// Whether an appended field has its default value: nothing, 0, false, the first name, or zeros.
fn is_default(field: &Field, value: &Value) -> bool {
    let enumeration = ENUMERATIONS.iter().find(|known| known.name == field.wire);
    // Zeros in base64.
    let is_zeros = |text: &str| text.trim_end_matches('=').bytes().all(|digit| digit == b'A');
    match enumeration.and_then(|known| known.names.first()) {
        Some((_, name)) => value == name,
        None if field.wire == "array" => value.as_str().is_some_and(is_zeros),
        None => [json!(null), json!(0), json!(false)].contains(value),
    }
}

/// A message of this kind.
pub fn message(schema: &MessageSchema, entropy: &[u8]) -> Value {
    let mut draw = Draw(entropy.iter());
    let mut object = Map::new();
    object.insert("kind".into(), json!(schema.name));
    object.insert("kind_number".into(), json!(schema.kind));
    object.insert("sequence".into(), json!(draw.number(32)));
    object.insert("turn".into(), json!(draw.number(32)));
    object.insert("time_us".into(), json!(draw.number(64)));
    object.extend(draw.record(schema.fields));
    Value::Object(object)
}
