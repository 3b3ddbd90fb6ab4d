//! Programs in an engine of this process, with a scripted parent.

use std::collections::VecDeque;

use serde_json::json;

use super::*;
use crate::protocol::Module as Given;

/// Answers calls with what a function of a test says; the newest call first, so that the order of answers is not that
/// of calls.
pub(super) struct Script {
    pub(super) sent: Rc<RefCell<Vec<ToParent>>>,
    pub(super) open: VecDeque<(u32, Call)>,
    pub(super) answer: fn(&Call) -> Result<Json, CallError>,
}

impl Channel for Script {
    fn send(&mut self, message: &ToParent) -> Result<(), Closed> {
        // Each message passes through its line, as in a child.
        let line = message.line().map_err(|_| Closed)?;
        let message = ToParent::parse(line.trim_ascii_end()).map_err(|_| Closed)?;
        if let ToParent::Call { id, call } = &message {
            self.open.push_back((*id, call.clone()));
        }
        self.sent.borrow_mut().push(message);
        Ok(())
    }

    fn answer(&mut self) -> Result<(u32, Result<Json, CallError>), Closed> {
        let (id, call) = self.open.pop_back().ok_or(Closed)?;
        Ok((id, (self.answer)(&call)))
    }
}

fn respond(call: &Call) -> Result<Json, CallError> {
    match call.function.as_str() {
        "echo" => Ok(call.arguments.clone()),
        "nothing" => Ok(Json::Null),
        _ => Err(CallError { code: "not_found".into(), message: "no such train".into(), retryable: true }),
    }
}

const TRAINS: &str = "import { call } from '@lorgnette/bridge';
export const trains = Object.freeze({
  echo: (params = {}) => call('@capabilities/trains', 'echo', params),
  nothing: () => call('@capabilities/trains', 'nothing', {}),
  fails: (params = {}) => call('@capabilities/trains', 'fails', params),
});
";

/// Runs a program; returns what was sent, the end last.
fn sent(source: &str) -> Vec<ToParent> {
    sent_within(30_000, source)
}

fn sent_within(compute_ms: u64, source: &str) -> Vec<ToParent> {
    let sent = Rc::default();
    let script = Script { sent: Rc::clone(&sent), open: VecDeque::new(), answer: respond };
    let engine = Engine::new(script).unwrap();
    let modules = vec![Given { specifier: "@capabilities/trains".into(), source: TRAINS.into() }];
    let end = engine.run(Run { source: source.into(), modules, compute_ms, task: None }).unwrap();
    let mut sent = sent.take();
    sent.push(ToParent::parse(end.line().unwrap().trim_ascii_end()).unwrap());
    sent
}

fn result(source: &str) -> Json {
    match sent(source).pop() {
        Some(ToParent::Done(Done { result: Some(result), cut: None })) => result,
        other => panic!("{other:?}"),
    }
}

fn fails(source: &str) -> Failure {
    match sent(source).pop() {
        Some(ToParent::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

fn logs(source: &str) -> Vec<String> {
    let texts = sent(source).into_iter().filter_map(|message| match message {
        ToParent::Log(line) => Some(line),
        _ => None,
    });
    texts.collect()
}

#[test]
fn the_default_export_is_the_result() {
    assert_eq!(result("export default 1 + 1;"), json!(2));
    assert_eq!(
        result("const a: number[] = [1, 2];\nexport default { a, b: a as unknown };"),
        json!({"a": [1, 2], "b": [1, 2]})
    );
    assert_eq!(result("export default (async () => ({ late: true }))();"), json!({"late": true}));
    assert_eq!(result("const a = await Promise.resolve(7);\nexport default a;"), json!(7));
    assert_eq!(result("export default null;"), json!(null));
    assert_eq!(sent("const a = 1;"), [ToParent::Done(Done::default())]);
    assert_eq!(sent("export default undefined;"), [ToParent::Done(Done::default())]);
}

#[test]
fn calls_return_and_throw() {
    let import = "import { trains } from '@capabilities/trains';\n";
    assert_eq!(
        result(&format!("{import}export default await trains.echo({{ a: [1, 'x'] }});")),
        json!({"a": [1, "x"]})
    );
    assert_eq!(result(&format!("{import}export default trains.nothing();")), json!(null));
    let both = "export default await Promise.all([trains.echo({ n: 1 }), trains.echo({ n: 2 })]);";
    assert_eq!(result(&format!("{import}{both}")), json!([{"n": 1}, {"n": 2}]));
    let caught = "try { await trains.fails(); } catch (e) {
        print(e instanceof ToolError, e instanceof Error, e.name, e.message, e.code, e.retryable);
    }";
    assert_eq!(logs(&format!("{import}{caught}")), ["true true ToolError no such train not_found true"]);
    let failure = fails(&format!("{import}\n  await trains.fails();"));
    assert_eq!(failure.message, "ToolError: no such train (not_found)");
    assert_eq!((failure.line, failure.column), (Some(3), Some(16)), "{failure:?}");
}

#[test]
fn a_forgotten_await_is_explained() {
    let program = |text: &str| fails(&format!("import {{ trains }} from '@capabilities/trains';\n{text}"));
    for text in ["const t = trains.echo(); t.station.name;", "const { station } = trains.echo();"] {
        let failure = program(text);
        let expected = "TypeError: echo() returns a promise: write \"await echo(...)\" before .station is read";
        assert_eq!(failure.message, expected);
        assert_eq!(failure.line, Some(2));
    }
    for text in ["`${trains.echo()}`", "for (const a of trains.echo()) {}", "JSON.stringify(trains.echo())"] {
        assert!(program(text).message.contains("await echo(...)"), "{text}");
    }
    assert!(program("trains.echo({ a: (async () => 1)() });").message.contains("\"a\" is a promise"));
    assert!(program("export default [(async () => 1)()];").message.contains("is a promise: await it first"));
    let unhandled = program("trains.fails();");
    assert!(unhandled.message.contains("\"await\" is missing: ToolError: no such train"), "{unhandled:?}");
    assert_eq!(unhandled.line, Some(2));
    assert!(fails("export default () => 1;").message.contains("await main()"));
}

#[test]
fn promises_are_promises() {
    let program = "import { trains } from '@capabilities/trains';
        const p = trains.echo({ n: 3 });
        const is = [p instanceof Promise, typeof p.then, Promise.resolve(p) === p, Object.prototype.toString.call(p)];
        export default [...is, await p.then((r) => r.n), await p.finally(() => 1), await Promise.race([p])];";
    assert_eq!(result(program), json!([true, "function", true, "[object Promise]", 3, {"n": 3}, {"n": 3}]));
}

#[test]
fn calls_that_nobody_awaits_are_made() {
    let sent = sent(
        "import { trains } from '@capabilities/trains';\ntrains.echo({ a: 1 }).then(() => print('later'));\nexport default 1;",
    );
    assert!(matches!(sent[0], ToParent::Call { id: 1, .. }), "{sent:?}");
    assert_eq!(sent[1], ToParent::Log("later".into()));
}

#[test]
fn other_imports_are_refused() {
    for name in
        ["node:fs", "https://example.com/x.js", "./file.js", "lodash", "fs", "std", "os", "qjs:os", "program.ts"]
    {
        for program in [format!("import x from '{name}';"), format!("await import('{name}');")] {
            let message = fails(&program).message;
            assert!(message.contains(name) && message.contains("@capabilities/trains"), "{message}");
        }
    }
}

#[test]
fn what_is_printed() {
    let program = "console.log('a', 1, { b: [2] }, null, undefined, 3n, new Map([['k', 1]]), new Error('e'));
        console.error(() => 1, Symbol('s'), '\\ud800'); print();
        const round = {}; round.round = round; print((async () => 1)());";
    let lines = logs(program);
    assert_eq!(lines[0], "a 1 {\"b\":[2]} null undefined 3n [[\"k\",1]] Error: e");
    assert_eq!(lines[1], "[function ] Symbol(s) \u{fffd}");
    assert_eq!(lines[2], "");
    assert!(lines[3].contains("await"));
}

#[test]
fn errors_have_their_place() {
    let failure = fails("const a: string = 'x';\n\nfunction f(): void {\n  throw new RangeError('far');\n}\nf();\n");
    assert_eq!((failure.message.as_str(), failure.line, failure.column), ("RangeError: far", Some(4), Some(13)));
    let failure = fails("let a = 1;\nlet a = 2;\n");
    assert!(failure.message.starts_with("SyntaxError"), "{failure:?}");
    assert_eq!(failure.line, Some(2));
    assert_eq!(fails("throw 'words';").message, "the program threw words");
    assert_eq!(fails("throw { a: 1 };").message, "the program threw something that is no text");
    assert!(fails("await new Promise(() => {});").message.contains("that nothing settles"));
    assert!(fails("undefined.x;").message.starts_with("TypeError"));
}

#[test]
fn limits_hold() {
    let over = |source: &str| {
        let compute_ms = if source.contains("for (;;)") && !source.contains("push") { 200 } else { 30_000 };
        match sent_within(compute_ms, source).pop() {
            Some(ToParent::Failed(failure)) => failure.kind,
            other => panic!("{source}: {other:?}"),
        }
    };
    assert_eq!(over("for (;;) {}"), FailureKind::TimedOut);
    assert_eq!(over("try { for (;;) {} } catch { } finally { for (;;) {} }"), FailureKind::TimedOut);
    assert_eq!(over("const f = async () => { for (;;) await null; }; await f();"), FailureKind::TimedOut);
    assert_eq!(over("/^(a+)+$/.test('a'.repeat(40) + 'b'); for (;;) {}"), FailureKind::TimedOut);
    assert_eq!(over("export default { toJSON() { for (;;) {} } };"), FailureKind::TimedOut);
    assert_eq!(over("throw { get message() { for (;;) {} } };"), FailureKind::Error);
    assert_eq!(
        over("const e = new Error(); Object.defineProperty(e, 'message', { get() { for (;;) {} } }); throw e;"),
        FailureKind::TimedOut
    );
    assert_eq!(over("const a = []; for (;;) a.push(new Array(1000).fill(1));"), FailureKind::OutOfMemory);
    assert_eq!(over("new ArrayBuffer(16 * 1024 * 1024);"), FailureKind::OutOfMemory);
    assert_eq!(over("'x'.repeat(2 ** 24);"), FailureKind::OutOfMemory);
    let deep = fails("const f = () => 1 + f(); f();");
    assert!(deep.message.contains("call stack"), "{deep:?}");
    let json = fails("let a = []; for (let i = 0; i < 200; i += 1) a = [a]; export default a;");
    assert!(json.message.contains("nests too deeply"), "{json:?}");
    assert!(fails("new ArrayBuffer(2 ** 32);").message.len() > 5);
}

#[test]
fn calls_are_counted() {
    let program = "import { trains } from '@capabilities/trains';
        const all = await Promise.allSettled(Array.from({ length: 10000 }, (_, n) => trains.echo({ n })));
        export default [all.filter((a) => a.status === 'fulfilled').length, all.at(-1).reason.code];";
    let sent = sent(program);
    assert_eq!(sent.iter().filter(|message| matches!(message, ToParent::Call { .. })).count(), 64);
    let expected = Done { result: Some(json!([64, "refused"])), cut: None };
    assert_eq!(sent.last(), Some(&ToParent::Done(expected)));
    let large = "import { trains } from '@capabilities/trains';\nawait trains.echo({ a: 'x'.repeat(70000) });";
    assert!(fails(large).message.contains("65536 are the maximum"));
}

#[test]
fn output_is_cut() {
    let lines = logs("for (let i = 0; i < 20000; i += 1) print('line', i);");
    assert_eq!(lines.len(), LOG_LINES_MAX + 1);
    assert!(lines.last().unwrap().contains("19488 lines"), "{:?}", lines.last());
    let lines = logs("for (let i = 0; i < 100; i += 1) print('x'.repeat(1024 * 1024));");
    assert_eq!(lines.iter().map(String::len).max(), Some(LOG_BYTES_MAX));
    assert_eq!(lines.len(), 2);
    match sent("export default 'é'.repeat(100000);").pop() {
        Some(ToParent::Done(Done { result: None, cut: Some(cut) })) => {
            assert_eq!(cut.bytes, 200_002);
            assert!(cut.text.len() <= RESULT_BYTES_MAX / 4);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn prototypes_that_are_changed_change_no_bridge() {
    let program = "import { trains } from '@capabilities/trains';
        import * as bridge from '@lorgnette/bridge';
        const { parse, stringify } = JSON;
        const refused = [
            () => { bridge.call = 1; }, () => { bridge.call.x = 1; }, () => { trains.echo = 1; },
            () => { console.log = 1; }, () => { ToolError.prototype.code = 1; }, () => { globalThis.print = 1; },
            () => { Object.setPrototypeOf(ToolError, Array); },
        ].map((attempt) => { try { attempt(); return 'changed'; } catch (e) { return e.constructor.name; } });
        for (const key of ['resolve', 'reject', 'code', 'message', 'get', 'value', 'error', '0', '1', '2']) {
            Object.defineProperty(Object.prototype, key, { __proto__: null, set() { throw 1; }, get() { return 'polluted'; }, configurable: true });
        }
        JSON.stringify = JSON.parse = () => 'polluted';
        Promise.prototype.then = Promise.resolve = () => 'polluted';
        String.prototype.toWellFormed = () => 'polluted';
        Object.defineProperty = Object.create = Reflect.get = Reflect.apply = () => 'polluted';
        globalThis.Promise = globalThis.Error = globalThis.String = Array;
        const answer = await trains.echo({ a: 1 });
        let failed;
        try { await trains.fails(); } catch (e) { failed = [e.message, e.code]; }
        print('still', 'here');
        export default { refused, answer, failed };";
    let sent = sent(program);
    assert!(sent.contains(&ToParent::Log("still here".into())), "{sent:?}");
    let Some(ToParent::Done(Done { result: Some(result), .. })) = sent.last() else { panic!("{sent:?}") };
    assert_eq!(result["answer"], json!({"a": 1}));
    assert_eq!(result["failed"], json!(["no such train", "not_found"]));
    assert_eq!(result["refused"], json!(vec!["TypeError"; 7]));
}

#[test]
fn code_from_text_can_do_no_more() {
    let message = |source: &str| {
        result(&format!(
            "let out; try {{ out = {source}; }} catch (e) {{ out = String(e); }} export default out ?? 'nothing';"
        ))
    };
    assert_eq!(message("eval('1 + 1')"), json!(2));
    assert_eq!(
        message("new Function('return typeof require + typeof process + typeof std + typeof os')()"),
        json!("undefinedundefinedundefinedundefined")
    );
    assert_eq!(message("typeof $bridge"), json!("undefined"));
    assert_eq!(
        message(
            "Object.getOwnPropertyNames(globalThis).filter((n) => /load|file|spawn|exec|fetch|worker/i.test(n)).join()"
        ),
        json!("")
    );
    let text = message("await eval(\"import('node:fs')\")");
    assert!(text.as_str().unwrap().contains("node:fs"), "{text}");
    let text = message("await new Function(\"return import('node:fs')\")()");
    assert!(text.as_str().unwrap().contains("node:fs"), "{text}");
    assert!(
        message("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)").as_str().unwrap().contains("TypeError")
    );
}
