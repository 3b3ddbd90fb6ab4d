//! The JavaScript of the standard library (`tools/src/code/std/std.js`) in an engine, with a scripted parent.

use std::collections::VecDeque;

use serde_json::json;

use super::{tests::Script, *};
use crate::protocol::Module as Given;

const STD: &str = include_str!("../../../src/code/std/std.js");
const IMPORT: &str = "import { fs, http, json, csv, crypto, time } from '@lorgnette/std';\n";

/// What the gateway would answer. A path says what a file holds.
fn answer(call: &Call) -> Result<Json, CallError> {
    assert_eq!(call.module, "@lorgnette/std");
    let arguments = &call.arguments;
    Ok(match call.function.as_str() {
        "fs.readBytes" => arguments["path"].clone(),
        "http.request" if arguments["url"] == "bytes" => {
            json!({"status": 404, "url": "u", "headers": {}, "bytes": "/wA="})
        }
        "http.request" => json!({"status": 200, "url": "u", "headers": {"a": "b"}, "text": arguments.to_string()}),
        "crypto.randomBytes" | "crypto.hash" | "crypto.hmac" => json!("/+8A/+8A/+8A/+8A/+8A/w=="),
        "crypto.decrypt" => arguments["sealed"].clone(),
        "time.now" => json!(1_795_299_600_000_i64),
        // New York in 2026.
        "time.zone" => json!({"name": "America/New_York",
            "offsets": [[0, -18_000], [1_772_953_200, -14_400], [1_793_512_800, -18_000]]}),
        "fs.stat" => return Err(CallError { code: "not_found".into(), message: "nothing".into(), retryable: false }),
        _ => json!([call.function, arguments]),
    })
}

/// The default export of a program, or why it has none.
fn run(source: &str) -> Result<Json, String> {
    ended(source).map_err(|failure| failure.message)
}

fn ended(source: &str) -> Result<Json, Failure> {
    let script = Script { sent: Rc::default(), open: VecDeque::new(), answer };
    let alias = "export * from '@lorgnette/std';\n";
    let modules = [("@lorgnette/std", STD), ("@agent-spaces/std", alias)]
        .map(|(specifier, source)| Given { specifier: specifier.into(), source: source.into() });
    let run = Run { source: format!("{IMPORT}{source}"), modules: modules.into(), compute_ms: 30_000, task: None };
    match Engine::new(script).unwrap().run(run).unwrap() {
        ToParent::Done(Done { result: Some(result), cut: None }) => Ok(result),
        ToParent::Failed(failure) => Err(failure),
        other => panic!("{other:?}"),
    }
}

fn value(expression: &str) -> Json {
    run(&format!("export default {expression};")).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

fn error(expression: &str) -> String {
    run(&format!("export default {expression};")).expect_err(expression)
}

/// Tables as text, and their rows.
fn tables() -> Vec<(&'static str, Json)> {
    vec![
        ("a,b\n1,2\n", json!([["a", "b"], ["1", "2"]])),
        ("a,b\r\n1,2", json!([["a", "b"], ["1", "2"]])),
        ("a,b\r1,2\r", json!([["a", "b"], ["1", "2"]])),
        ("\"x, y\",\"he said \"\"hi\"\"\"\n", json!([["x, y", "he said \"hi\""]])),
        ("\"line\r\nbreak\",\"\n\"\r\n", json!([["line\r\nbreak", "\n"]])),
        (",,\n", json!([["", "", ""]])),
        ("a,\n,b\n", json!([["a", ""], ["", "b"]])),
        ("a,\"\"\n\"\",b", json!([["a", ""], ["", "b"]])),
        ("\"\"\n", json!([[""]])),
        ("\"\"\"\"\n", json!([["\""]])),
        ("", json!([])),
        ("\n\r\n\n", json!([])),
        ("a\n\nb\n", json!([["a"], ["b"]])),
        ("\u{feff}größe,😀\n", json!([["größe", "😀"]])),
        ("a\"b,c\"\n", json!([["a\"b", "c\""]])),
        (" a , b \n", json!([[" a ", " b "]])),
        ("__proto__,constructor\n", json!([["__proto__", "constructor"]])),
    ]
}

#[test]
fn csv_is_read_and_written() {
    for (text, rows) in tables() {
        let text = Json::from(text);
        assert_eq!(value(&format!("csv.parse({text}, {{ header: false }})")), rows, "{text}");
        let again = format!("csv.parse(csv.stringify({rows}), {{ header: false }})");
        assert_eq!(value(&again), rows, "{text}");
    }
    assert_eq!(
        value(r#"csv.parse('n;m\n1;2\n3', { separator: ';' })"#),
        json!([{"n": "1", "m": "2"}, {"n": "3", "m": ""}])
    );
    assert_eq!(value("csv.parse('__proto__,a\\n1,2').map((row) => Object.keys(row))"), json!([["__proto__", "a"]]));
    assert_eq!(
        value(r#"csv.stringify([{ a: 1, b: null }, { a: 'x,y', c: { d: 'é "' } }])"#),
        "a,b,c\r\n1,,\r\n\"x,y\",,\"{\"\"d\"\":\"\"é \\\"\"\"\"}\"\r\n"
    );
    assert_eq!(value("csv.stringify([{ a: 1, b: 2 }], { columns: ['b'], header: false, separator: ';' })"), "2\r\n");
    assert_eq!(
        value("csv.stringify([[1, ' x'], ['a;b', true]], { separator: ';', columns: ['p', 'q'] })"),
        "p;q\r\n1;\" x\"\r\n\"a;b\";true\r\n"
    );
    for (expression, expected) in [
        (r#"csv.parse('a\n"b')"#, "row 2 has a quote that is not closed"),
        (r#"csv.parse('"a"b')"#, "row 1 has a character after a closing quote"),
        (r#"csv.parse('a\n1,2')"#, "row 2 has 2 fields, the header 1"),
        (r#"csv.parse('a,a\n1,2')"#, "the header has \"a\" twice"),
        (r#"csv.parse('a', { separator: '"' })"#, "the separator is one character"),
    ] {
        assert!(error(expression).contains(expected), "{expression}: {}", error(expression));
    }
    // A long table takes neither too long nor too much memory.
    let long = "csv.parse('name,\"x, y\",3\\n'.repeat(10000), { header: false }).length";
    assert_eq!(value(long), 10_000);
}

#[test]
fn bytes_travel_as_base64() {
    for (bytes, base64) in
        [("", ""), ("0", "AA=="), ("255,239", "/+8="), ("0,255,239", "AP/v"), ("1,2,3,4", "AQIDBA==")]
    {
        let written =
            value(&format!("(await http.request({{ url: 'x', body: Uint8Array.of({bytes}) }})).json().bytes"));
        assert_eq!(written, base64);
        let expected: Json = serde_json::from_str(&format!("[{bytes}]")).unwrap();
        assert_eq!(value(&format!("[...await fs.readBytes('{base64}')]")), expected);
    }
    assert_eq!(value("[...(await http.get('bytes')).bytes()]"), json!([255, 0]));
    // What UTF-8 makes of two, three and four bytes.
    let made = value(
        "(async () => { const r = await http.get('ü€😀'); const b = r.bytes(); return [...b].slice(b.indexOf(0xc3)).slice(0, 9); })()",
    );
    assert_eq!(made, json!("ü€😀".as_bytes()));
    assert_eq!(value("await crypto.decrypt('K', 'w7zigqzwn5iA')"), "ü€😀");
    assert!(error("await crypto.decrypt('K', '/wA=')").contains("use crypto.decryptBytes"));
    assert_eq!(value("[...await crypto.decryptBytes('K', '/wA=')]"), json!([255, 0]));
}

#[test]
fn calls_have_the_arguments_of_the_gateway() {
    let call = |expression: &str| value(&format!("await {expression}"));
    assert_eq!(call("fs.readFile('a')"), json!(["fs.readFile", {"path": "a"}]));
    assert_eq!(
        call("fs.readFile('a', { offset: 1, length: 2 })"),
        json!(["fs.readFile", {"path": "a", "offset": 1, "length": 2}])
    );
    assert_eq!(call("fs.list()"), json!(["fs.list", {"path": ""}]));
    assert_eq!(call("fs.writeFile('a', 'b').then(() => 1)"), 1);
    assert!(error("await fs.writeFile('a', { b: 1 })").contains("json.stringify"));
    assert!(error("await fs.stat('a')").contains("nothing"));
    assert_eq!(
        value("(async () => { try { await fs.stat('a'); } catch (e) { return [e instanceof ToolError, e.code]; } })()"),
        json!([true, "not_found"])
    );

    let sent = |expression: &str| call(&format!("http.{expression}.then((r) => r.json())"));
    assert_eq!(
        sent("get('https://a/', { headers: { b: '${secret:C}' } })"),
        json!({"url": "https://a/", "method": "GET", "headers": {"b": "${secret:C}"}})
    );
    assert_eq!(
        sent("post('u', { a: [1] })"),
        json!({"url": "u", "method": "POST", "headers": {"content-type": "application/json"}, "text": "{\"a\":[1]}"})
    );
    assert_eq!(sent("post('u', 'text')"), json!({"url": "u", "method": "POST", "headers": {}, "text": "text"}));
    assert_eq!(
        sent("request({ url: 'u', method: 'put', json: 1, headers: { 'Content-Type': 'x' } })"),
        json!({"url": "u", "method": "PUT", "headers": {"Content-Type": "x"}, "text": "1"})
    );
    assert_eq!(call("http.get('bytes').then((r) => [r.ok, r.status])"), json!([false, 404]));
    assert_eq!(call("http.get('u').then((r) => [r.ok, r.headers.a])"), json!([true, "b"]));
    assert!(error("(await http.get('bytes')).text()").contains("use bytes()"));
    assert!(error("await http.request({ url: 'u', body: 'a', json: 1 })").contains("either body or json"));
    assert!(error("await http.get('u', { timeout: 1 })").contains("no option \"timeout\""));
    assert!(error("http.get('u').status").contains("write \"await http.get(...)\""));
    assert!(error("`${fs.readBytes('AA==')}`").contains("write \"await fs.readBytes(...)\""));
    assert!(error("fs.list().length").contains("await"));
    // The library is no place for the author to look at.
    for source in ["\nawait fs.stat('a');\n", "\nconst r = http.get('u');\nprint(r.ok);", "\nfs.writeFile('a', {});"] {
        let failure = ended(source).unwrap_err();
        assert_eq!(failure.line, Some(3), "{source}: {failure:?}");
    }

    assert_eq!(call("crypto.hash('sha256', 'a')"), "ffef00ffef00ffef00ffef00ffef00ff");
    assert_eq!(call("crypto.hmac('K', 'a')"), "ffef00ffef00ffef00ffef00ffef00ff");
    assert_eq!(call("crypto.encrypt('K', 'a')"), json!(["crypto.encrypt", {"secret": "K", "text": "a"}]));
    assert_eq!(call("crypto.uuid()"), "ffef00ff-ef00-4fef-80ff-ef00ffef00ff");
    assert_eq!(value("json.parse(json.stringify({ a: [1] }, 2))"), json!({"a": [1]}));
    let alias = "import * as other from '@agent-spaces/std';\nexport default other.csv === csv && Object.keys(other);";
    assert_eq!(run(alias), Ok(json!(["crypto", "csv", "fs", "http", "json", "time"])));
}

#[test]
fn time_is_read_written_and_added() {
    let ny = |expression: &str| {
        run(&format!("const ny = await time.zone();\nexport default {expression};")).unwrap_or_else(Json::from)
    };
    assert_eq!(value("time.format(await time.now())"), "2026-11-21T22:20:00+00:00");
    assert_eq!(ny("time.format(await time.now(), undefined, ny)"), "2026-11-21T17:20:00-05:00");
    for (text, expected) in [
        ("2026-11-21", "2026-11-21T00:00:00-05:00"),
        ("2026-07-01T12:00", "2026-07-01T12:00:00-04:00"),
        ("2026-07-01 12:00:30.5", "2026-07-01T12:00:30-04:00"),
        ("2026-07-01T12:00:00Z", "2026-07-01T08:00:00-04:00"),
        ("2026-07-01T12:00:00+05:30", "2026-07-01T02:30:00-04:00"),
        // Skipped, and there twice.
        ("2026-03-08T02:30", "2026-03-08T03:30:00-04:00"),
        ("2026-11-01T01:30", "2026-11-01T01:30:00-04:00"),
        ("2026-11-01T02:00", "2026-11-01T02:00:00-05:00"),
    ] {
        assert_eq!(ny(&format!("time.format(time.parse('{text}', ny), undefined, ny)")), expected, "{text}");
    }
    for (at, span, expected) in [
        ("2026-03-07T12:00", "{ days: 1 }", "2026-03-08T12:00:00-04:00"),
        ("2026-03-07T12:00", "{ hours: 24 }", "2026-03-08T13:00:00-04:00"),
        ("2026-01-31T10:00", "{ months: 1 }", "2026-02-28T10:00:00-05:00"),
        ("2026-01-31T10:00", "{ months: -2, days: 1 }", "2025-12-01T10:00:00-05:00"),
        ("2028-02-29T00:00", "{ years: 1 }", "2029-02-28T00:00:00-05:00"),
        ("2026-12-31T23:59", "{ weeks: 1, minutes: 1.5 }", "2027-01-08T00:00:30-05:00"),
    ] {
        let expression = format!("time.format(time.add(time.parse('{at}', ny), {span}, ny), undefined, ny)");
        assert_eq!(ny(&expression), expected, "{at} {span}");
    }
    assert_eq!(
        ny(
            "time.format('2026-11-21T05:07:09.012Z', 'dddd ddd D DD MMMM MMM M YY [at h] H:m:s hh:mm:ss.SSS A a Z', ny)"
        ),
        "Saturday Sat 21 21 November Nov 11 26 at h 0:7:9 12:07:09.012 AM am -05:00"
    );
    assert_eq!(
        value("time.parts('2026-11-21T17:20:00.5Z')"),
        json!({"year": 2026, "month": 11, "day": 21, "hour": 17,
        "minute": 20, "second": 0, "millisecond": 500, "weekday": 6, "offset": 0})
    );
    for (expression, expected) in [
        ("time.parse('2026-02-30')", "is no date or time"),
        ("time.parse('2026-01-01T24:00')", "is no date or time"),
        ("time.parse('2026-01-01T10:00+99:00')", "is no date or time"),
        ("time.parse('tomorrow')", "is no date or time"),
        ("time.format(NaN)", "not an instant"),
        ("time.add(0, { day: 1 })", "no unit \"day\""),
        ("time.add(0, { days: 0.5 })", "whole numbers"),
        ("time.add(0, { hours: 'x' })", "is no number"),
        ("time.format(0, 'YYYY', 'Europe/Berlin')", "await time.zone()"),
    ] {
        assert!(error(expression).contains(expected), "{expression}: {}", error(expression));
    }
}
