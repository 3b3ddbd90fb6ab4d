//! Sentence templates: validation at registration, and example sentences for help.
//!
//! The syntax is that of the vocabulary: words; `[optional]`; `(this|that)`, also in `[this|that]`; `{property}`,
//! `{property:type}` and `{property=value}`.

use gateway_core::vocab::{ToolSpec, first_sentence};
use serde_json::Value;

use crate::limits::TEMPLATE_DEPTH_MAX;

/// Types of slots; `expression` is an arithmetic expression in words or signs.
const TYPES: [&str; 11] =
    ["expression", "text", "name", "number", "duration", "time", "date", "when", "wake", "choice", "app"];

/// What is said for slots.
struct Samples {
    duration: &'static str,
    time: &'static str,
    date: &'static str,
    when: &'static str,
    /// `None`: the schema's example is said as it stands.
    sum: Option<&'static str>,
    /// Examples of the built-in tools' schemas, which are English, and what is said instead.
    texts: &'static [(&'static str, &'static str)],
}

static ENGLISH: Samples = Samples {
    duration: "ten minutes",
    time: "seven thirty",
    date: "tomorrow",
    when: "tomorrow at nine",
    sum: None,
    texts: &[],
};

/// Those of the languages that have words of their own for them. Values in other languages are read as English.
static SAMPLES: [(&str, Samples); 3] = [
    (
        "de",
        Samples {
            duration: "zehn Minuten",
            time: "fünf Uhr",
            date: "morgen",
            when: "morgen um acht",
            sum: Some("zwölf mal sieben"),
            texts: &[
                ("check the oven", "die Nudeln fertig sind"),
                ("the oven", "die Nudeln"),
                ("buy milk", "Milch kaufen"),
                ("milk", "Milch"),
                ("pasta", "Nudeln"),
                ("my car is on level three", "mein Auto auf Ebene drei steht"),
                ("my car is on level two", "Ebene zwei"),
                ("my car", "mein Auto"),
                ("the boat", "das Boot"),
                ("keep it short", "antworte kurz"),
                ("sentence", "kurze Sätze"),
            ],
        },
    ),
    (
        "es",
        Samples {
            duration: "diez minutos",
            time: "las cinco",
            date: "mañana",
            when: "mañana a las ocho",
            sum: Some("doce por siete"),
            texts: &[
                ("check the oven", "mirar el horno"),
                ("the oven", "mirar el horno"),
                ("buy milk", "comprar leche"),
                ("milk", "la leche"),
                ("pasta", "la pasta"),
                ("my car is on level three", "mi coche está en la planta tres"),
                ("my car is on level two", "la planta dos"),
                ("my car", "mi coche"),
                ("the boat", "nuestro barco"),
                ("keep it short", "responde brevemente"),
                ("sentence", "frases cortas"),
            ],
        },
    ),
    (
        "fr",
        Samples {
            duration: "dix minutes",
            time: "cinq heures",
            date: "demain",
            when: "demain à huit heures",
            sum: Some("douze fois sept"),
            texts: &[
                ("check the oven", "regarder le four"),
                ("the oven", "regarder le four"),
                ("buy milk", "prendre du lait"),
                ("milk", "le lait"),
                ("pasta", "les pâtes"),
                ("my car is on level three", "ma voiture est au niveau trois"),
                ("my car is on level two", "le niveau deux"),
                ("my car", "ma voiture"),
                ("the boat", "notre bateau"),
                ("keep it short", "réponds brièvement"),
                ("sentence", "les phrases courtes"),
            ],
        },
    ),
];

/// The language of a tag, without script and region.
fn primary(tag: &str) -> &str {
    tag.split(['-', '_']).next().unwrap_or(tag)
}

/// Checks brackets and slots against the tool's schema. The error describes the problem.
pub fn check(template: &str, schema: &Value) -> Result<(), String> {
    let mut open = Vec::new();
    let mut slots = 0_usize;
    let mut words = false;
    let mut rest = template.chars();
    while let Some(c) = rest.next() {
        match c {
            '[' | '(' => {
                open.push(c);
                if open.len() > TEMPLATE_DEPTH_MAX {
                    return Err(format!("brackets more than {TEMPLATE_DEPTH_MAX} deep"));
                }
            }
            ']' if open.pop() == Some('[') => {}
            ')' if open.pop() == Some('(') => {}
            ']' | ')' => return Err(format!("'{c}' closes nothing")),
            '|' if !open.is_empty() => {}
            '|' => return Err("'|' stands only within brackets".into()),
            '{' => {
                let Some((slot, after)) = rest.as_str().split_once('}') else {
                    return Err("'{' is not closed".into());
                };
                words |= check_slot(slot, schema)?;
                slots += 1;
                rest = after.chars();
            }
            '}' => return Err("'}' closes nothing".into()),
            c if c.is_control() => return Err("control characters are not accepted".into()),
            c => words |= c.is_alphanumeric(),
        }
    }
    if let Some(c) = open.pop() {
        return Err(format!("'{c}' is not closed"));
    }
    if !words {
        let what = if slots > 0 { "only slots that set" } else { "no" };
        return Err(format!("{what} words to match"));
    }
    Ok(())
}

/// Whether the slot matches words.
fn check_slot(slot: &str, schema: &Value) -> Result<bool, String> {
    if slot.contains(char::is_control) {
        return Err("control characters are not accepted".into());
    }
    let (property, value) = match slot.split_once('=') {
        Some((property, value)) => (property, Some(value)),
        None => (slot, None),
    };
    let (property, kind) = match property.split_once(':') {
        Some((property, kind)) => (property, Some(kind)),
        None => (property, None),
    };
    if schema.get("properties").and_then(|all| all.get(property)).is_none() {
        return Err(format!("the schema has no property '{property}'"));
    }
    if let Some(kind) = kind
        && !TYPES.contains(&kind)
    {
        return Err(format!("unknown slot type '{kind}'"));
    }
    match value {
        Some("") => Err(format!("'{property}=' sets nothing")),
        other => Ok(other.is_none()),
    }
}

/// A sentence that calls the tool: its first template in the language of this tag, without optional parts, with the first of
/// each group of alternatives, and with slots filled from the schema's examples.
pub fn example(spec: &ToolSpec, language: &str) -> Option<String> {
    let language = primary(language);
    let templates = spec.phrases.iter().find(|phrases| primary(&phrases.language).eq_ignore_ascii_case(language))?;
    let own = SAMPLES.iter().find(|(code, _)| code.eq_ignore_ascii_case(language));
    let samples = own.map_or(&ENGLISH, |(_, samples)| samples);
    let template = templates.templates.first()?;
    first_sentence(template, |slot| sample(slot, &spec.input_schema, samples))
}

/// An example of what a wearer might say for a slot.
fn sample(slot: &str, schema: &Value, samples: &Samples) -> Option<String> {
    let (property, kind) = slot.split_once(':').unwrap_or((slot, ""));
    let property = schema.get("properties")?.get(property)?;
    let given = property
        .get("examples")
        .or_else(|| property.get("enum"))
        .and_then(Value::as_array)
        .and_then(|values| values.first());
    let default = match (kind, property.get("type").and_then(Value::as_str)) {
        ("duration", _) => samples.duration,
        ("time", _) => samples.time,
        ("date", _) => samples.date,
        ("when" | "wake", _) => samples.when,
        (_, Some("number" | "integer")) => "5",
        _ => "something",
    };
    Some(match (kind, given) {
        // The schema's examples of these are machine formats; a spoken form is needed.
        ("duration" | "time" | "date" | "when" | "wake", _) | (_, None) => default.to_owned(),
        ("expression", Some(Value::String(sum))) => samples.sum.unwrap_or(sum.as_str()).to_owned(),
        (_, Some(Value::String(text))) => {
            let own = samples.texts.iter().find(|(english, _)| english == text);
            own.map_or(text.as_str(), |(_, own)| own).to_owned()
        }
        (_, Some(other)) => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gateway_core::vocab::Phrases;
    use serde_json::json;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "seconds": {"type": "integer"}, "name": {"type": "string", "examples": ["pasta"]},
            "all": {"type": "boolean"}, "level": {"enum": ["low", "high"]}}})
    }

    #[test]
    fn accepts_the_syntax() {
        for template in [
            "set a timer for {seconds:duration}",
            "[please] (set|start) [(a|one)] timer [(for|of) {seconds:duration}] [now]",
            "cancel all timers {all=true}",
            "{seconds:duration} timer",
            "make it {level}",
        ] {
            assert_eq!(check(template, &schema()), Ok(()), "{template}");
        }
    }

    #[test]
    fn refuses_what_cannot_match() {
        for (template, reason) in [
            ("", "no words"),
            ("   ", "no words"),
            ("[]", "no words"),
            ("{all=true}", "only slots that set"),
            ("{all=}", "sets nothing"),
            ("(a|b", "not closed"),
            ("[a", "not closed"),
            ("a]", "closes nothing"),
            ("(a]", "closes nothing"),
            ("a|b", "only within"),
            ("say {colour}", "no property 'colour'"),
            ("say {name:song}", "unknown slot type 'song'"),
            ("say {name", "not closed"),
            ("say }", "closes nothing"),
            ("say\u{7}it", "control characters"),
            ("(((((((a)))))))", "deep"),
        ] {
            let error = check(template, &schema()).expect_err(template);
            assert!(error.contains(reason), "{template}: {error}");
        }
    }

    #[test]
    fn makes_examples() {
        let spec = |template: &str| ToolSpec {
            name: "a.b".into(),
            description: "d".into(),
            input_schema: schema(),
            phrases: vec![Phrases { language: "en".into(), templates: vec![template.into()] }],
            reply: None,
            guidance: None,
            flags: Default::default(),
            timeout_ms: None,
            ..ToolSpec::default()
        };
        for (template, example_wanted) in [
            ("[please] set a timer for {seconds:duration}", "set a timer for ten minutes"),
            ("(cancel|stop (the|my)) [the] {name} timer", "cancel pasta timer"),
            ("cancel all timers {all=true}", "cancel all timers"),
            ("make it {level}", "make it low"),
            ("count to {seconds}", "count to 5"),
            ("((one|two) a|b) c", "one a c"),
        ] {
            let made = example(&spec(template), "en");
            assert_eq!(made.as_deref(), Some(example_wanted), "{template}");
        }
        assert_eq!(example(&spec("hi"), "de"), None);
        let german = |template: &str| {
            let phrases = vec![Phrases { language: "de".into(), templates: vec![template.into()] }];
            example(&ToolSpec { phrases, ..spec("hi") }, "de-CH")
        };
        assert_eq!(german("ein timer für {seconds:duration}").as_deref(), Some("ein timer für zehn Minuten"));
        assert_eq!(german("mach {level}").as_deref(), Some("mach low"));
    }
}
