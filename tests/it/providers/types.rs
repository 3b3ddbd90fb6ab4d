//! Requests of every kind against the types of the official SDKs: written as TypeScript with `satisfies`, and checked
//! by the compiler.

use std::{path::Path, process::Command, sync::Arc};

use chat_models::{Request, anthropic, chat_completions, gemini, provider::Provider, responses};
use gateway_core::vocab::{ErrorCode, Message, Part, Role, ToolCall, ToolResult, ToolSpec};
use serde_json::{Value, json};

use super::{request, tool, user};
use crate::programs::Programs;

/// All settings of providers that change their requests: name, type of the requests, protocol.
fn providers() -> Vec<(&'static str, &'static str, Arc<dyn Provider>)> {
    let chat = chat_completions::Options::new("m");
    let openai = chat_completions::Options {
        temperature: Some(0.5),
        max_tokens_field: "max_completion_tokens".into(),
        system_inside: true,
        ..chat.clone()
    };
    let plain = responses::Options::new("m");
    let reasoning = responses::Options {
        reasoning_effort: Some("low".into()),
        serial_follow_ups: true,
        temperature: Some(0.5),
        ..plain.clone()
    };
    let claude = anthropic::Options::new("m");
    let thinking = anthropic::Options { thinking_tokens: Some(2000), cache: false, ..claude.clone() };
    let google = gemini::Options::new("gemini-2.5-flash");
    let signed =
        gemini::Options { thinking_tokens: Some(100), temperature: Some(0.5), ..gemini::Options::new("gemini-3") };
    vec![
        ("chat", "ChatRequest", Arc::new(chat_completions::ChatCompletions::new(chat))),
        ("chat_openai", "ChatRequest", Arc::new(chat_completions::ChatCompletions::new(openai))),
        ("responses", "ResponsesRequest", Arc::new(responses::Responses::new(plain))),
        ("responses_reasoning", "ResponsesRequest", Arc::new(responses::Responses::new(reasoning))),
        ("anthropic", "AnthropicRequest", Arc::new(anthropic::Anthropic::new(claude))),
        ("anthropic_thinking", "AnthropicRequest", Arc::new(anthropic::Anthropic::new(thinking))),
        ("gemini", "GeminiRequest", Arc::new(gemini::Gemini::new(google))),
        ("gemini_signed", "GeminiRequest", Arc::new(gemini::Gemini::new(signed))),
    ]
}

/// One conversation for each kind of part, and one with all of them.
fn requests() -> Vec<Request> {
    let message = |role, parts| Message { role, parts };
    let image = |mime: &str| Part::Image { mime: mime.into(), data: "AAAA".into() };
    let call = |id: &str| Part::ToolCall {
        call: ToolCall { id: id.into(), name: "timer/set".into(), arguments: json!({"seconds": 5, "label": "tea"}) },
    };
    let result = |id: &str, result| Part::ToolResult { call_id: id.into(), result };
    let thought = |provider: &str, data: Value| Part::Thinking { provider: provider.into(), data };
    let thoughts = vec![
        thought(
            responses::PROVIDER,
            json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}],
                "encrypted_content": "AAAA"}),
        ),
        thought(anthropic::PROVIDER, json!({"type": "thinking", "thinking": "Hm.", "signature": "AAAA"})),
        thought(anthropic::PROVIDER, json!({"type": "redacted_thinking", "data": "AAAA"})),
        thought(gemini::PROVIDER, json!({"thoughtSignature": "AAAA"})),
        thought(gemini::PROVIDER, json!({"call": "c1", "thoughtSignature": "AAAA"})),
    ];
    let failed = ToolResult::failed(ErrorCode::Timeout, "too late", true);
    let structured = ToolResult { data: Some(json!({"left": 5})), ..ToolResult::default() };
    let called = [
        message(
            Role::Assistant,
            [vec![Part::Text { text: "Well.".into() }], thoughts, vec![call("c1"), call("c:2"), call("c3")]].concat(),
        ),
        message(
            Role::Tool,
            vec![result("c1", ToolResult::said("Set.")), result("c:2", failed), result("c3", structured)],
        ),
    ];
    let looked = message(
        Role::User,
        vec![
            Part::Text { text: "What is this?".into() },
            image("image/jpeg"),
            image("image/png"),
            image("image/x-odd"),
        ],
    );
    let noted = message(Role::System, vec![Part::Text { text: "The display is off.".into() }]);
    let mut all = vec![
        request(vec![user("hello")]),
        request(vec![user("hello"), message(Role::Assistant, vec![Part::Text { text: "Hi.".into() }]), user("so?")]),
        request(vec![looked.clone()]),
        request(vec![noted.clone(), user("dark?"), noted]),
        request([vec![user("a timer")], called.to_vec()].concat()),
        request([vec![looked], called.to_vec(), vec![user("and now?")]].concat()),
    ];
    // Without options, and with tools of all kinds.
    let bare = Request { tools: [].into(), max_tokens: None, system: None, ..request(vec![user("hello")]) };
    let odd = |name: &str, schema: Value| Arc::new(ToolSpec { input_schema: schema, ..(*tool(name)).clone() });
    let tools = [
        tool("timer/set"),
        odd("nothing", json!({"type": "object"})),
        odd("anything", json!(true)),
        odd(
            "refers",
            json!({"$defs": {"a": {"type": "string"}}, "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"anyOf": [{"type": "null"}, {"type": "number"}]},
                "c": {"type": ["string", "null"]}, "d": {"type": "array", "items": {"type": "object"}},
                "e": {"const": 5}, "f": {"type": "string", "format": "date-time", "minLength": 3}}}),
        ),
    ];
    all.extend([bare, Request { tools: tools.into(), ..request(vec![user("hello")]) }]);
    all
}

/// The compiler's errors about these files; empty for none.
fn check(files: &[(String, String)]) -> String {
    let tools = Programs::providers();
    let folder = tempfile::tempdir_in(tools.folder()).expect("a folder");
    let types = Path::new(env!("CARGO_MANIFEST_DIR")).join("node/providers/wire.d.ts");
    std::fs::copy(types, folder.path().join("wire.d.ts")).expect("the types");
    let names: Vec<&String> = files.iter().map(|(name, _)| name).collect();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    let settings = json!({
        "compilerOptions": {"strict": true, "noEmit": true, "skipLibCheck": true, "module": "esnext",
            "moduleResolution": "bundler", "target": "es2022", "lib": ["es2023", "dom"], "types": []},
        "files": names,
    });
    std::fs::write(folder.path().join("tsconfig.json"), settings.to_string()).expect("the settings");
    let output = Command::new(tools.node())
        .arg(tools.script("typescript/bin/tsc"))
        .args(["--pretty", "false", "-p"])
        .arg(folder.path())
        .output()
        .expect("the compiler");
    let words = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.success(), words.trim().is_empty(), "{words}");
    words
}

fn file(name: &str, kind: &str, bodies: &[Value]) -> (String, String) {
    let mut text = format!("import type {{ {kind} }} from \"./wire\";\n");
    for (at, body) in bodies.iter().enumerate() {
        text.push_str(&format!("export const r{at} = {body} satisfies {kind};\n"));
    }
    (format!("{name}.ts"), text)
}

fn body(provider: &dyn Provider, request: &Request) -> Value {
    provider.render(request).body.to_value().expect("JSON")
}

#[test]
fn the_sdks_types_take_every_request() {
    let requests = requests();
    let files: Vec<(String, String)> = providers()
        .into_iter()
        .map(|(name, kind, provider)| {
            let bodies: Vec<Value> = requests.iter().map(|request| body(&*provider, request)).collect();
            file(name, kind, &bodies)
        })
        .collect();
    let complaints = check(&files);
    assert!(complaints.is_empty(), "{complaints}");
}

/// A modification of a body.
type Break = fn(&mut Value);

/// Each deliberate error is found by itself, so that the check above can fail.
#[test]
fn the_sdks_types_refuse_what_is_broken() {
    let broken: [(&str, Break); 12] = [
        ("chat", |body| body["messages"][1]["role"] = "wearer".into()),
        ("chat", |body| body["messages"][1]["content"] = json!([{"type": "image_url", "image_url": "data:"}])),
        ("chat", |body| body["tool"] = json!([])),
        ("responses", |body| body["input"][0]["content"] = json!([{"type": "text", "text": "x"}])),
        ("responses", |body| body["input"][0]["role"] = "tool".into()),
        ("responses", |body| body["tools"][0]["function"] = json!({"name": "x"})),
        ("anthropic", |body| body["messages"][0]["role"] = "tool".into()),
        ("anthropic", |body| body["tools"][0]["parameters"] = json!({})),
        ("anthropic", |body| drop(body.as_object_mut().and_then(|body| body.remove("max_tokens")))),
        ("gemini", |body| body["contents"][0]["parts"][0]["txt"] = "x".into()),
        ("gemini", |body| body["messages"] = json!([])),
        ("gemini", |body| body["tools"][0]["functionDeclarations"][0]["parameters"]["type"] = "thing".into()),
    ];
    let providers = providers();
    let files: Vec<(String, String)> = broken
        .iter()
        .enumerate()
        .map(|(at, (name, spoil))| {
            let (_, kind, provider) = providers.iter().find(|(of, ..)| of == name).expect("a provider");
            let mut body = body(&**provider, &requests()[0]);
            spoil(&mut body);
            file(&format!("broken{at}"), kind, &[body])
        })
        .collect();
    let complaints = check(&files);
    for (at, (name, _)) in broken.iter().enumerate() {
        assert!(complaints.contains(&format!("broken{at}.ts(")), "{name} {at} is not refused: {complaints}");
    }
}
