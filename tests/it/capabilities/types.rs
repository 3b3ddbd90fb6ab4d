//! The declarations before the compiler of TypeScript, with programs that use them rightly and wrongly; the modules in
//! an engine of JavaScript.

use std::{path::Path, process::Command, sync::Arc};

use gateway_core::vocab::{ClientClass, ToolSpec};
use serde_json::{Value, json};
use tempfile::TempDir;
use tools::{
    capabilities::{Bundle, Function, Origin, compile, offered, stub::BRIDGE},
    registry::Registry,
};

use super::samples::bundle;
use crate::{json_schema::suite, programs::Programs};

/// What a program has besides its modules.
const GLOBALS: &str = "declare const console: { log(...values: unknown[]): void };\n";

/// The specification's own programs, and others that must be accepted.
const RIGHT: [(&str, &str); 6] = [
    (
        "trains",
        "import { trainSchedule } from '@capabilities/train-schedule';
        const trips = await trainSchedule.getSchedule({ station: 'Central' });
        const morning = trips.filter(t => t.hour < 12);
        const details = await trainSchedule.getTrainDetails({ trainId: morning[0].id });
        console.log(`Train operated by: ${details.operator}`, details.stops.length);
        await trainSchedule.getSchedule();",
    ),
    (
        "weather",
        "import { getWeather } from '@capabilities/get-weather';
        const weather = await getWeather({ location: 'San Francisco', unit: 'celsius' });
        console.log(`${weather.temperature}°${weather.unit}: ${weather.description}`);
        await getWeather({ location: 'Berlin' });",
    ),
    (
        "slack",
        "import { slack } from '@capabilities/mcp-slack';
        const channels = await slack.listChannels();
        const general = channels.find(c => c.name === 'general');
        if (general) {
            const history = await slack.getChannelHistory({ channel: general.id, limit: 10 });
            const sent = await slack.postMessage({ channel: general.id, text: `Re: \"${history[0].text}\" - Got it!` });
            console.log(sent.ts, await slack.whoami());
        }",
    ),
    (
        "nested",
        "import { slack, type Block } from '@capabilities/mcp-slack';
        const inner: Block[] = [{ kind: 'divider' }, { kind: 'section', inner: [{ kind: 'divider' }] }];
        await slack.postMessage({ channel: 'c', text: 't', blocks: [{ kind: 'section', inner }] });",
    ),
    (
        "both",
        "import { trainSchedule } from '@capabilities/train-schedule';
        import { slack } from '@capabilities/mcp-slack';
        const trips = await trainSchedule.getSchedule();
        const text = trips.filter(trip => trip.hour < 12).map(t => `${t.hour}:00 - ${t.destination}`).join('\\n');
        await Promise.all([slack.postMessage({ channel: 'general', text }), slack.listChannels()]);",
    ),
    (
        "builtin",
        "import { timerSet } from '@capabilities/timer-set';
        import { clockTime } from '@capabilities/clock-time';
        await timerSet({ seconds: 300, name: 'tea' });
        console.log(await clockTime());",
    ),
];

/// Lines of which each must be refused by itself, after the imports below.
const WRONG: [&str; 18] = [
    "await trainSchedule.getTrainDetails({});",
    "await trainSchedule.getTrainDetails();",
    "await trainSchedule.getTrainDetails({ trainId: 5 });",
    "await trainSchedule.getTrainDetails({ trainId: 'a', extra: 1 });",
    "await trainSchedule.getSchedule({ sation: 'Central' });",
    "await trainSchedule.getSchedule(null);",
    "await trainSchedule.getSchedul();",
    "(await trainSchedule.getSchedule())[0].hours;",
    "const text: string = (await trainSchedule.getSchedule())[0].hour;",
    "trainSchedule.getSchedule().filter(trip => trip.hour < 12);",
    "await getWeather({ location: 'a', unit: 'kelvin' });",
    "await getWeather('Berlin');",
    "await slack.listChannels({ limit: 5 });",
    "await slack.postMessage({ channel: 'a', text: 'b', blocks: [{ kind: 'section', inner: [{ kind: 'x' }] }] });",
    "(await slack.whoami()).name;",
    "await slack.slack_list_channels();",
    "import { slack as other } from '@capabilities/slack';",
    "import { postMessage } from '@capabilities/mcp-slack';",
];
const IMPORTS: &str = "import { trainSchedule } from '@capabilities/train-schedule';
import { getWeather } from '@capabilities/get-weather';
import { slack } from '@capabilities/mcp-slack';
";

fn built_ins() -> Bundle {
    let registry = Registry::with_built_ins().expect("the built-in tools");
    let snapshot = registry.snapshot("wearer", None);
    compile(&offered(&snapshot, &snapshot.for_client(ClientClass::Internal)))
}

/// The compiler's errors about these modules and programs; empty for none.
pub(super) fn judged(bundles: &[&Bundle], programs: &[(String, String)]) -> String {
    let tools = Programs::providers();
    let folder = tempfile::tempdir_in(tools.folder()).expect("a folder");
    let modules = bundles.iter().flat_map(|bundle| bundle.modules());
    let declarations = modules.map(|module| (format!("{}.d.ts", module.meta.name), module.d_ts.clone()));
    let globals = ("globals.d.ts".to_owned(), GLOBALS.to_owned());
    let files: Vec<(String, String)> = declarations
        .chain([globals])
        .chain(programs.iter().map(|(name, text)| (format!("{name}.ts"), text.clone())))
        .collect();
    for (name, text) in &files {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    let names: Vec<&String> = files.iter().map(|(name, _)| name).collect();
    // The declarations themselves are checked as well.
    let settings = json!({
        "compilerOptions": {"strict": true, "noEmit": true, "skipLibCheck": false, "module": "esnext",
            "moduleResolution": "bundler", "target": "es2022", "lib": ["es2023"], "types": [],
            "exactOptionalPropertyTypes": true},
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

#[test]
fn right_programs_are_accepted() {
    let programs: Vec<(String, String)> =
        RIGHT.iter().map(|(name, text)| (format!("{name}_program"), (*text).to_owned())).collect();
    let words = judged(&[&bundle(), &built_ins()], &programs);
    assert!(words.is_empty(), "{words}");
}

#[test]
fn descriptions_are_comments_at_every_level() {
    let bundle = bundle();
    let d_ts = &bundle.module("@capabilities/library").expect("the module").d_ts;
    for (comment, member) in [
        ("From top to bottom.", "shelves: "),
        ("From left to right.", "books: "),
        ("On its cover. *\\/ @ ts-nocheck", "title: "),
        ("To whom.", "lent?: "),
        ("What is left.", "room?: "),
        ("In centimetres.", "cm: "),
        ("Read most.", "best: Book;"),
        ("One of them.", "export interface Book {"),
    ] {
        let mut lines = d_ts.lines().map(str::trim);
        let found = lines.any(|line| line == format!("/** {comment} */"));
        assert!(found && lines.next().is_some_and(|line| line.starts_with(member)), "{comment}: {d_ts}");
    }
    let program = "import { library, type Book } from '@capabilities/library';
        const { shelves, best } = await library.look();
        const books: Book[] = [best];
        const centimetres: number[] = shelves.map((shelf) => shelf.room?.cm ?? 0);
        console.log(books, centimetres, shelves[0].books[0].lent?.length);";
    let words = judged(&[&bundle], &[("library_program".to_owned(), program.to_owned())]);
    assert!(words.is_empty(), "{words}");
}

#[test]
fn each_wrong_use_is_refused() {
    let programs: Vec<(String, String)> =
        WRONG.iter().enumerate().map(|(at, line)| (format!("wrong{at}"), format!("{IMPORTS}{line}\n"))).collect();
    let words = judged(&[&bundle()], &programs);
    for (at, line) in WRONG.iter().enumerate() {
        // In the fourth line, the first after the imports.
        assert!(words.contains(&format!("wrong{at}.ts(4,")), "accepted: {line}\n{words}");
    }
    assert!(!words.contains(".d.ts("), "{words}");
}

/// Each schema of the official suite as that of a result and of an argument.
#[test]
fn every_schema_of_the_official_suite_becomes_types() {
    let mut functions = Vec::new();
    let mut files: Vec<_> =
        std::fs::read_dir(suite()).expect("the suite").map(|entry| entry.expect("one").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    for path in files {
        let groups: Vec<Value> =
            serde_json::from_str(&std::fs::read_to_string(&path).expect("a file of the suite")).expect("JSON");
        let server = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        for group in groups {
            let schema = &group["schema"];
            let spec = ToolSpec {
                name: format!("{server}.{}", functions.len()),
                description: group["description"].to_string(),
                input_schema: json!({"type": "object", "properties": {"value": schema}, "required": ["value"]}),
                output_schema: Some(schema.clone()),
                ..ToolSpec::default()
            };
            let local_name = format!("group {}", functions.len());
            functions.push(Function { spec: Arc::new(spec), local_name, origin: Origin::Mcp(server.clone()) });
        }
    }
    let bundle = compile(&functions);
    let count = |what: &str| bundle.modules().iter().map(|module| module.d_ts.matches(what).count()).sum::<usize>();
    let (all, unknown) = (count("): Promise<"), count("): Promise<unknown>;"));
    println!("{all} schemas in {} modules, {unknown} of them unknown", bundle.modules().len());
    // Half of them name no type, such as `{"maximum": 3}`.
    assert!(all > 300 && all == functions.len() && unknown < all * 3 / 5, "{unknown} of {all}");
    let words = judged(&[&bundle], &[]);
    assert!(words.is_empty(), "{words}");
}

/// The modules as packages, beside a bridge that repeats what it gets.
fn packages(tools: &Programs, bundle: &Bundle) -> TempDir {
    let folder = tempfile::tempdir_in(tools.folder()).expect("a folder");
    let put = |specifier: &str, code: &str| {
        let package = folder.path().join("node_modules").join(specifier);
        std::fs::create_dir_all(&package).expect("a folder");
        std::fs::write(package.join("package.json"), r#"{"type": "module", "main": "index.js"}"#).expect("a file");
        std::fs::write(package.join("index.js"), code).expect("a file");
    };
    put(BRIDGE, "export const call = async (...all) => all;\n");
    bundle.modules().iter().for_each(|module| put(&module.specifier, &module.js));
    folder
}

fn run(tools: &Programs, folder: &Path, program: &str) -> Vec<Value> {
    std::fs::write(folder.join("program.mjs"), program).expect("the program");
    let output = Command::new(tools.node()).arg(folder.join("program.mjs")).output().expect("node");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn every_function_calls_its_own_tool() {
    let (tools, bundle) = (Programs::providers(), bundle());
    let folder = packages(&tools, &bundle);
    let mut program = String::new();
    for (number, module) in bundle.modules().iter().enumerate() {
        program.push_str(&format!("import * as m{number} from '{}';\n", module.specifier));
    }
    program.push_str("for (const [at, m] of [");
    (0..bundle.modules().len()).for_each(|number| program.push_str(&format!("m{number},")));
    program.push_str(
        "].entries())
        for (const [name, found] of Object.entries(m).flatMap(([name, it]) =>
            typeof it === 'function' ? [[name, it]] : Object.entries(it)))
            console.log(JSON.stringify([at, name, ...await found({ a: at }), ...await found()]));",
    );
    let lines = run(&tools, folder.path(), &program);
    let mut expected = Vec::new();
    for (at, module) in bundle.modules().iter().enumerate() {
        for name in module.meta.functions.keys() {
            expected.push(json!([at, name, module.specifier, name, {"a": at}, module.specifier, name, {}]));
        }
    }
    let sorted = |mut all: Vec<Value>| {
        all.sort_by_key(Value::to_string);
        all
    };
    assert!(expected.len() > 50, "{}", expected.len());
    assert_eq!(sorted(lines), sorted(expected));
}
