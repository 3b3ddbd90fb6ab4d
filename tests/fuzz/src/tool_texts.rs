//! What others say about tools, and what their tools answer.

use gateway_core::vocab::{ToolResult, ToolSpec};
use serde_json::Value;
use tools::{
    apps::{
        answer,
        import::{self, Given},
    },
    capabilities::{self, compile, definition::read_text, offer::Offer},
    definition::{self, Naming, to_mcp},
    device, fuzzing,
    limits::{
        ATTACHMENTS_MAX, CONTENT_BYTES_MAX, DATA_BYTES_MAX, DESCRIPTION_BYTES_MAX, FOLLOW_UPS_MAX, GUIDANCE_BYTES_MAX,
        INDEX_BYTES_MAX, LOCAL_NAME_BYTES_MAX, MESSAGE_BYTES_MAX, NAME_BYTES_MAX, NOTES_MAX, PROGRESS_BYTES_MAX,
        PROPERTIES_MAX, REPLY_BYTES_MAX, SAY_BYTES_MAX,
    },
    registry, reply,
    schema::{Schema, check_depth},
    wording,
};

/// The body of an app's answer to a call of its tool.
pub fn answer(bytes: &[u8]) {
    if let Some(message) = answer::message(bytes) {
        assert!(message.len() <= MESSAGE_BYTES_MAX);
    }
    match answer::read(bytes) {
        Ok(result) => finished(result),
        Err(invalid) => assert!(invalid.0.len() <= MESSAGE_BYTES_MAX, "{}", invalid.0),
    }
}

/// What the executor does with every result, and what may then be in it.
fn finished(result: ToolResult) {
    for template in [None, Some("It is {a}, {text} and {items}.")] {
        let result = reply::finish(result.clone(), template);
        assert!(!result.content.is_empty() && result.content.len() <= CONTENT_BYTES_MAX);
        assert!(result.say.is_some() || result.handled_display, "neither words nor a drawing");
        assert!(result.say.as_ref().is_none_or(|say| !say.trim().is_empty() && say.len() <= SAY_BYTES_MAX));
        assert!(result.data.as_ref().is_none_or(|data| data.to_string().len() <= DATA_BYTES_MAX));
        assert!(result.attachments.len() <= ATTACHMENTS_MAX && result.follow_ups.len() <= FOLLOW_UPS_MAX);
        assert!(result.error.as_ref().is_none_or(|error| error.message.len() <= MESSAGE_BYTES_MAX));
        let once = reply::finish(result.clone(), template);
        assert_eq!(once, result, "a finished result stays as it is");
    }
}

/// A definition as JSON, in every form that is read.
pub fn definition(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
    for naming in [Naming::App("com.example"), Naming::Server("files"), Naming::AsIs] {
        let Ok((spec, local_name, report)) = definition::read(&value, naming) else { continue };
        assert!(!local_name.is_empty() && report.notes.len() <= NOTES_MAX);
        drop(report.to_string());
        sound(&spec);
        again(&spec);
    }
}

/// A file with definitions of capabilities: what is read can be registered and compiled, and each function has its place.
pub fn capability(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(definitions) = read_text(text) else { return };
    let functions: Vec<capabilities::Function> = definitions.iter().flat_map(|one| one.functions()).collect();
    let bundle = compile(&functions);
    for function in &functions {
        sound(&function.spec);
        registry::check(&function.spec).expect("what is read can be registered");
        let (module, name) = bundle.place(&function.spec.name).expect("a place");
        assert_eq!(bundle.tool(&module.specifier, name), Some(function.spec.name.as_str()));
        assert!(!module.d_ts.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')), "{:?}", module.d_ts);
    }
    let index = capabilities::index(&bundle);
    assert!(index.len() < INDEX_BYTES_MAX + 64 && index.lines().count() <= bundle.modules().len() + 1, "{index:?}");
    let variable = |name: &str| name.starts_with('A').then(|| "planted-4711".to_owned());
    for offer in definitions.into_iter().filter_map(|one| Offer::new(one, &variable).ok()) {
        assert!(offer.tools().next().is_some() && offer.secrets().iter().all(|secret| !secret.expose().is_empty()));
    }
}

/// What a definition that was taken may contain.
fn sound(spec: &ToolSpec) {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    assert!((1..=NAME_BYTES_MAX).contains(&spec.name.len()) && spec.name.chars().all(legal), "{:?}", spec.name);
    assert!(!spec.description.is_empty() && spec.description.len() <= DESCRIPTION_BYTES_MAX);
    let lines = [Some(&spec.description), spec.guidance.as_ref()];
    for text in lines.into_iter().flatten() {
        assert!(!text.contains(|c: char| c.is_control() && !c.is_whitespace()), "{text:?}");
    }
    let line = [&spec.title, &spec.reply, &spec.approval, &spec.category, &spec.progress].map(Option::as_ref);
    for text in line.into_iter().flatten() {
        assert!(!text.contains(char::is_control), "{text:?}");
    }
    assert!(spec.guidance.as_ref().is_none_or(|text| text.len() <= GUIDANCE_BYTES_MAX));
    assert!(spec.reply.as_ref().is_none_or(|text| text.len() <= REPLY_BYTES_MAX));
    assert!(spec.progress.as_ref().is_none_or(|text| text.len() <= PROGRESS_BYTES_MAX));
    check_depth(&spec.input_schema).expect("a schema within limits");
    let properties = spec.input_schema.get("properties").and_then(Value::as_object);
    assert!(properties.is_none_or(|properties| properties.len() <= PROPERTIES_MAX));
    // What is spoken to is made of the phrases.
    for phrases in &spec.phrases {
        assert!(!phrases.templates.iter().any(|text| text.contains(char::is_control)), "{phrases:?}");
    }
    drop(chat_models::intents::check(spec));
}

/// What is exported is read again as the same tool, if its full name is short enough for the name of an MCP tool.
fn again(spec: &ToolSpec) {
    if spec.name.len() > LOCAL_NAME_BYTES_MAX || registry::check(spec).is_err() {
        return;
    }
    let exported = to_mcp(spec);
    let (read, _, _) = definition::read(&exported, Naming::AsIs).expect("what is exported is read");
    let same = |spec: &ToolSpec| ToolSpec { app: None, ..spec.clone() };
    assert_eq!(same(&read), same(spec), "{exported}");
}

/// A schema and, behind a zero byte, arguments.
pub fn schema(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let mut next = || parts.next().and_then(|part| serde_json::from_slice::<Value>(part).ok());
    let Some(schema) = next() else { return };
    let arguments = next().unwrap_or_default();
    drop(wording::said(&arguments));
    let told = wording::line("the_name", &arguments);
    assert!(!told.contains(wording::is_hidden), "{told:?}");
    let Ok(compiled) = Schema::compile_any(&schema) else {
        assert!(Schema::compile(&schema).is_err(), "only the second is of any type");
        return;
    };
    if let Err(violation) = compiled.check(&arguments) {
        drop(violation);
    } else {
        assert!(arguments.is_object());
    }
}

/// The four texts of a tool of the glasses, each behind a zero byte.
pub fn device_tools(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.split('\0').map(str::to_owned);
    let mut next = || parts.next().unwrap_or_default();
    let offer = device::Offer {
        name: next(),
        description: next(),
        schema_json: next(),
        phrases_json: next(),
        reply: next(),
        ..device::Offer::default()
    };
    let name = offer.name.clone();
    match device::spec(offer) {
        Ok((spec, _)) => {
            assert_eq!(spec.name, name);
            sound(&spec);
        }
        Err(why) => assert!(!why.is_empty()),
    }
}

/// The manifest of a mini-app.
pub fn manifest(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let given = Given { api_key_sha256: "0".repeat(64), ..Given::default() };
    match import::read(text, &given) {
        Ok((app, notes)) => {
            drop(notes.iter().map(ToString::to_string).collect::<Vec<_>>());
            for text in [&app.package, &app.name, &app.description, &app.version, &app.public_url] {
                assert!(!text.contains(char::is_control), "{text:?}");
            }
            app.tools.iter().for_each(|tool| sound(&tool.spec));
            // As it is stored.
            let stored = serde_json::to_vec(&app).expect("an app has a stored form");
            assert_eq!(serde_json::from_slice::<tools::apps::manifest::App>(&stored).ok(), Some(app));
        }
        Err(problems) => assert!((1..=64).contains(&problems.len()), "{} problems", problems.len()),
    }
}

/// A definition or a result of an MCP server, by the first byte; and the names that clients use for a server's things.
pub fn mcp(bytes: &[u8]) {
    let Some((kind, json)) = bytes.split_first() else { return };
    if kind & 1 == 0 {
        if let Some(spec) = fuzzing::mcp_tool(json) {
            assert!(spec.description.len() <= DESCRIPTION_BYTES_MAX);
            for text in [spec.title.as_ref(), Some(&spec.description)].into_iter().flatten() {
                assert!(!text.contains(char::is_control), "{text:?}");
            }
            // The registry takes it, or says why not.
            if registry::check(&spec).is_ok() {
                sound(&spec);
                drop(to_mcp(&spec));
            }
        }
    } else if let Some(result) = fuzzing::mcp_result(json) {
        finished(result);
    }
    names(&String::from_utf8_lossy(json));
}

fn names(text: &str) {
    let prefixes = tools::mcp::uris::Prefixes::new(vec!["a_b".into(), "files".into()], Some("files".into()));
    for server in ["a_b", "files"] {
        let (name, uri) = (prefixes.name_out(server, text), prefixes.uri_out(server, text));
        // A name of the server that stands unrenamed may look like one of the others.
        if server == "a_b" {
            assert_eq!(prefixes.name_in(&name), Some((server, text)));
            assert_eq!(prefixes.uri_in(&uri), Some((server, text)));
        }
    }
    let _ = (prefixes.name_in(text), prefixes.uri_in(text));
}
