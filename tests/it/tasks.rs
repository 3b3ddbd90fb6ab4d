//! Twenty tasks, each with a program as a model would write it (tests/data/programs): through the executor and the
//! sandbox of the real executable, with a real server behind the tools.

use std::{path::Path, sync::Arc};

use gateway::control::{Answer, Request};
use gateway_core::vocab::{ClientClass, ToolCall, ToolResult};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tools::call::CallContext;

use crate::{
    process::binary,
    shop::{SETTINGS, Shop},
    world::{USER, WAIT, World},
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/programs");

/// A program, and what is expected of it: comments at its beginning, a JSON value each.
struct Task {
    name: String,
    source: String,
    expected: Vec<(String, Value)>,
}

impl Task {
    fn read(path: &Path) -> Self {
        let source = std::fs::read_to_string(path).expect("a program");
        let expected = |line: &str| {
            let (key, value) = line.strip_prefix("// ")?.split_once(": ")?;
            let is_text = matches!(key, "what" | "error");
            let value = if is_text { json!(value) } else { serde_json::from_str(value).expect(line) };
            Some((key.to_owned(), value))
        };
        let expected = source.lines().map_while(expected).collect();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        Self { name, source, expected }
    }

    fn expects(&self, key: &str) -> Option<&Value> {
        self.expected.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }
}

fn tasks() -> Vec<Task> {
    let files = std::fs::read_dir(FOLDER).expect("the programs").flatten();
    let mut tasks: Vec<Task> = files.map(|file| Task::read(&file.path())).collect();
    tasks.sort_by(|one, other| one.name.cmp(&other.name));
    tasks
}

async fn run(world: &World, task: &Task) -> ToolResult {
    let context = CallContext {
        session: None,
        user: USER.to_owned(),
        device: None,
        turn: None,
        cancel: CancellationToken::new(),
        default_timeout: WAIT,
        conversation: Arc::default(),
        language: None,
        client: ClientClass::Internal,
        caller: None,
        session_lease: None,
        watcher: None,
    };
    let call = ToolCall { id: task.name.clone(), name: "code.run".to_owned(), arguments: json!({"code": task.source}) };
    world.gateway().services().executor.call(context, call).await
}

/// Answers the questions of a program, in the order in which they come.
async fn answer(world: &World, answers: &[Value]) {
    let mut events = world.gateway().services().approvals.watch().expect("a place");
    for answer in answers {
        let asked = async {
            loop {
                let event = events.recv().await.expect("a question");
                if event.outcome.is_none() {
                    return event.id;
                }
            }
        };
        let id = tokio::time::timeout(WAIT, asked).await.expect("a question in time");
        world.ask(Request::AnswerApproval { id, yes: answer == "yes" }).await.expect("taken");
    }
    // An operator who watches no more is asked no more.
    std::future::pending::<()>().await;
}

/// What is not as expected of a task, of which these calls have reached the shop.
fn complaints(task: &Task, result: &ToolResult, calls: &[(String, Value)]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |what: &str, is: &Value, expected: &Value| {
        if is != expected {
            wrong.push(format!("{}: {what} is {is}, not {expected}", task.name));
        }
    };
    let none = Value::Null;
    let data = result.data.clone().unwrap_or_default();
    check("the result", &data["result"], task.expects("result").unwrap_or(&none));
    check("the line of the error", &data["error"]["line"], task.expects("line").unwrap_or(&none));
    if let Some(prints) = task.expects("prints") {
        check("what is printed", &data["logs"], prints);
    }
    let made = |function: &str, argument: &str| {
        let own = calls.iter().filter(|(known, _)| known == function);
        Value::Array(own.map(|(_, arguments)| arguments[argument].clone()).collect())
    };
    for (key, function, argument) in [("items", "addItem", "item"), ("deleted", "deleteList", "list")] {
        check(function, &made(function, argument), task.expects(key).unwrap_or(&json!([])));
    }
    let error = result.error.as_ref().map_or("", |error| error.message.as_str());
    let words = task.expects("error").and_then(Value::as_str).unwrap_or_default();
    if error.is_empty() != words.is_empty() || !error.contains(words) {
        wrong.push(format!("{}: the error is {error:?}, not {words:?}", task.name));
    }
    // What a model reads is what the program told, not what its tools returned.
    if result.content.len() > 512 {
        wrong.push(format!("{}: a model reads {} bytes", task.name, result.content.len()));
    }
    wrong
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_of_twenty_tasks_do_what_is_expected() {
    let shop = Shop::start().await;
    let world = World::tuned(&format!("[code]\nenabled = true\n{SETTINGS}"), |config| {
        config.models.code.executable = Some(binary());
        shop.put(&config.data_dir);
    })
    .await;
    let tasks = tasks();
    assert_eq!(tasks.len(), 20);
    let mut wrong = Vec::new();
    for task in &tasks {
        let before = shop.calls().len();
        let answers = task.expects("answers").and_then(Value::as_array).cloned().unwrap_or_default();
        let result = tokio::select! {
            result = run(&world, task) => result,
            () = answer(&world, &answers) => unreachable!("it never ends"),
        };
        wrong.extend(complaints(task, &result, &shop.calls()[before..]));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let Answer::Usage { users } = world.ask(Request::Usage { user: None, since_wall_ms: 0 }).await.expect("records")
    else {
        panic!("no records");
    };
    let programs = users.values().flatten().find(|usage| usage.tool == "code.run").map(|usage| usage.calls);
    assert_eq!(programs, Some(20));
}
