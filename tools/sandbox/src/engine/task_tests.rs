//! Files that define capabilities, in an engine of this process.

use serde_json::json;

use super::{tests::Script, *};
use crate::protocol::{Action, Language, Module as Given, Task};

const STD: &str = include_str!("../../../src/code/std/std.js");
const CAPABILITIES: &str = include_str!("../../../src/code/handlers/capabilities.js");
const IMPORT: &str = "import { defineTool } from '@agent-spaces/capabilities';\n";

fn respond(call: &Call) -> Result<Json, CallError> {
    match call.arguments["url"].as_str() {
        Some("https://trains.example/bern") => Ok(json!({"status": 200, "url": "https://trains.example/bern",
            "headers": {"content-type": "application/json"}, "text": "[{\"id\":\"1\"}]"})),
        _ => Err(CallError { code: "not_allowed".into(), message: "no such host".into(), retryable: false }),
    }
}

fn run(source: &str, language: Language, action: Action) -> ToParent {
    let script = Script { sent: Rc::default(), open: std::collections::VecDeque::new(), answer: respond };
    let engine = Engine::new(script).unwrap();
    let given = |specifier: &str, source: &str| Given { specifier: specifier.into(), source: source.into() };
    let modules = vec![
        given("@lorgnette/std", STD),
        given("@lorgnette/capabilities", CAPABILITIES),
        given("@agent-spaces/capabilities", "export { defineTool } from '@lorgnette/capabilities';\n"),
    ];
    let task = Some(Task { language, action });
    engine.run(Run { source: source.into(), modules, compute_ms: 2_000, task }).unwrap()
}

fn result(end: ToParent) -> Json {
    match end {
        ToParent::Done(done) => done.result.unwrap_or(Json::Null),
        other => panic!("{other:?}"),
    }
}

fn failed(end: ToParent) -> (String, Option<u32>) {
    match end {
        ToParent::Failed(failure) => (failure.message, failure.line),
        other => panic!("{other:?}"),
    }
}

fn define(source: &str) -> ToParent {
    run(&format!("{IMPORT}{source}"), Language::TypeScript, Action::Define)
}

fn handle(source: &str, function: &str, arguments: Json) -> ToParent {
    let action = Action::Handle { function: function.into(), arguments };
    run(&format!("{IMPORT}{source}"), Language::TypeScript, action)
}

fn ask(source: &str, compute_ms: u64) -> ToParent {
    let action = Action::Ask { function: "f".into(), arguments: json!({"path": "a.txt"}), compute_ms };
    run(&format!("{IMPORT}{source}"), Language::TypeScript, action)
}

const TRAINS: &str = "interface Trip { id: string }
export const trains = defineTool({
  name: 'trains',
  functions: {
    list: {
      description: 'Lists',
      parameters: { station: { type: 'string', optional: true } },
      returns: {} as Trip[],
      handler: async ({ station }) => {
        const response = await fetch(`https://trains.example/${station}`);
        if (!response.ok || response.status !== 200) throw new Error('no answer');
        if (response.headers.get('Content-Type') !== 'application/json') throw new Error('no JSON');
        return response.json();
      },
    },
    count(params: { n: number }) {},
  },
} as any);
";

#[test]
fn a_definition_is_read_with_its_types_and_without_its_functions() {
    let source = TRAINS.replace("    count(params: { n: number }) {},\n", "");
    let told = result(define(&source));
    let list = json!({"name": "list", "asks": false, "fields": {"description": "Lists", "returns": {},
        "parameters": {"station": {"type": "string", "optional": true}}}});
    assert_eq!(told["fields"], json!({"name": "trains"}));
    assert_eq!(told["functions"], json!([list]));
    // A cast of the literal hides it.
    assert_eq!(told["types"], json!({}));
    let told = result(define(&source.replace("} as any);", "});")));
    assert_eq!(told["types"]["list"]["items"]["$ref"], "#/$defs/Trip");
    assert_eq!(told["lines"], json!({"list": 6}));

    assert_eq!(result(handle(&source, "list", json!({"station": "bern"}))), json!([{"id": "1"}]));
    let (message, line) = failed(handle(&source, "list", json!({"station": "x"})));
    assert_eq!((message.as_str(), line), ("ToolError: no such host (not_allowed)", Some(11)));
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let one = |rest: &str| format!("defineTool({{ name: 'a', functions: {{ f: {rest} }} }});");
    for (source, wanted, line) in [
        (TRAINS.to_owned(), "functions.count must be an object", Some(3)),
        ("const a: = 1;".to_owned(), "SyntaxError", Some(2)),
        (one("{}"), "functions.f needs a handler", Some(2)),
        (one("{ handler: 5 }"), "functions.f needs a handler", Some(2)),
        (
            one("{ handler() {}, parameters: { a: { type: String } } }"),
            "functions.f.parameters.a.type is no JSON",
            Some(2),
        ),
        (one("{ handler() {}, timeoutMs: NaN }"), "a number that JSON does not have", Some(2)),
        (one("{ handler() {}, parameters: new Map() }"), "is no JSON", Some(2)),
        ("const a: any = {}; a.a = a; defineTool(a);".to_owned(), "contains itself", Some(2)),
        ("defineTool({ name: 'a', functions: [] });".to_owned(), "functions must be a map", Some(2)),
        (format!("{0}\n{0}", one("{ handler() {} }")), "called twice", Some(3)),
        ("export default 5;".to_owned(), "calls defineTool nowhere", None),
        ("\nimport fs from 'node:fs';".to_owned(), "'node:fs'", Some(3)),
        ("import './other';".to_owned(), "bundle it into one ES module, without modules of Node.js", Some(2)),
        ("await fetch('https://trains.example/x');".to_owned(), "no such host", Some(2)),
        ("throw new Error('away');".to_owned(), "away", Some(2)),
        ("while (true) {}".to_owned(), "computed for too long", None),
        ("defineTool({ name: 'a', x: Array(30000).fill(0), functions: {} });".to_owned(), "more than 20000", Some(2)),
        ("await new Promise(() => {});".to_owned(), "nothing settles", None),
    ] {
        let (message, at) = failed(define(&source));
        assert!(message.contains(wanted), "{source}: {message}");
        if line.is_some() {
            assert_eq!(at, line, "{source}: {message}");
        }
    }
    let long = "x".repeat(100_000);
    match define(&format!("defineTool({{ name: 'a', description: '{long}', functions: {{}} }});")) {
        ToParent::Done(done) => assert!(done.cut.is_some_and(|cut| cut.bytes > 100_000)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_definition_stays_what_it_was_and_prototypes_do_not_change_it() {
    let told = result(define(
        "let n = 0;
        const definition = { get name() { n += 1; return 'name' + n; }, functions: { f: { handler: () => 1 } } };
        Object.prototype.toJSON = () => 'evil';
        Array.prototype.toJSON = () => 'evil';
        Array.prototype[Symbol.iterator] = () => { throw 1; };
        Object.defineProperty(Object.prototype, 'handler', { set() { throw 2; }, get() { return () => 3; } });
        defineTool(definition);
        definition.functions = {};
        JSON.stringify = () => 'evil'; Object.keys = () => ['evil'];",
    ));
    assert_eq!(
        told,
        json!({"fields": {"name": "name1"}, "functions": [{"name": "f", "asks": false, "fields": {}}],
        "types": {}, "lines": {}})
    );
    let odd = "defineTool({ name: 'a', functions: { ['__proto__']: { handler: () => 7 }, f: { handler() {} } } });";
    assert_eq!(result(define(odd))["functions"][0]["name"], "__proto__");
    assert_eq!(result(handle(odd, "__proto__", json!({}))), 7);
    for name in ["toString", "constructor", "g"] {
        assert!(failed(handle(odd, name, json!({}))).0.contains("has no function"), "{name}");
    }
}

#[test]
fn handlers_return_json_throw_or_are_stopped() {
    let with = |body: &str| {
        format!("defineTool({{ name: 'a', functions: {{ f: {{ handler: async (p) => {{ {body} }} }} }} }});")
    };
    let f = |body: &str| handle(&with(body), "f", json!({"a": 1}));
    assert_eq!(result(f("return p.a + 1;")), 2);
    assert_eq!(result(f("")), Json::Null);
    assert_eq!(failed(f("throw new Error('closed');")), ("Error: closed".into(), Some(2)));
    assert!(failed(f("await new Promise(() => {});")).0.contains("nothing settles"));
    assert!(failed(f("for (;;) {}")).0.contains("computed for too long"));
    assert!(failed(f("return () => 1;")).0.contains("function"));
    assert!(failed(f("fetch('https://trains.example/x', { mode: 'cors' }).a;")).0.contains("no option \"mode\""));
}

#[test]
fn a_question_is_a_text_within_its_time() {
    let with = |body: &str| {
        format!(
            "defineTool({{ name: 'a', functions: {{ f: {{ handler() {{}}, approvalMessage: (p) => {{ {body} }} }} }} }});"
        )
    };
    assert_eq!(result(ask(&with("return `Delete ${p.path}?`;"), 1_000)), "Delete a.txt?");
    assert!(failed(ask(&with("return 5;"), 1_000)).0.contains("must return a text"));
    assert!(failed(ask(&with("for (;;) {}"), 50)).0.contains("computed for too long"));
}

#[test]
fn a_bundle_is_javascript_that_nothing_parses_but_the_engine() {
    let source = "import { defineTool } from \"@lorgnette/capabilities\";
        var n = 1 < 2 ? 3 : 4; enum_ = undefined; var enum_;
        export default defineTool({ name: 'a', functions: { f: { handler: () => n } } });";
    let told = result(run(source, Language::JavaScript, Action::Define));
    assert_eq!((&told["fields"]["name"], told.get("types")), (&json!("a"), None));
    let action = Action::Handle { function: "f".into(), arguments: json!({}) };
    assert_eq!(result(run(source, Language::JavaScript, action)), 3);
    let (message, line) = failed(run("var a = 1;\nimport b from \"node:path\";", Language::JavaScript, Action::Define));
    assert!(message.contains("node:path") && line == Some(2), "{message} {line:?}");
    let typed = failed(run("const a: number = 1;", Language::JavaScript, Action::Define));
    assert!(typed.0.contains("SyntaxError"), "{typed:?}");
}
