//! Sessions of foreign clients: consent by elicitation, resources of servers behind the gateway, and the tools of each
//! class.

use std::{path::Path, time::Duration};

use gateway::control::{Answer, Request};
use gateway_core::vocab::{AnsweredBy, ApprovalOutcome};
use serde_json::Value;
use tokio::process::Command;

use super::up;
use crate::{
    programs::Programs,
    world::{USER, WAIT, World, write_secret},
};

const SESSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/mcp_sessions.py");
const FAULTY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/mcp_faulty.py");
/// A secret that the server behind the gateway receives and repeats everywhere.
const PLANTED: &str = "sk-planted-4711";
/// Class, key, and what its entry says besides.
const ENTRIES: [(&str, &str, &str); 5] = [
    ("internal", KEYS[0].1, ""),
    ("copilot", KEYS[1].1, ""),
    ("external", KEYS[2].1, ""),
    ("external", "an outsider who is trusted", "approves = \"client\", "),
    ("internal", "an insider who is not", "approves = \"wearer\", "),
];
const KEYS: [(&str, &str); 3] = [
    ("internal", "the inner key of sixteen"),
    ("copilot", "the copilot's own key"),
    ("external", "a key for outsiders"),
];

/// A gateway with the faulty server, once for all classes and once for the internal class only.
async fn world(notes: &Path) -> World {
    let folder = notes.parent().expect("a folder");
    let mut keys = Vec::new();
    for (at, (class, key, more)) in ENTRIES.into_iter().enumerate() {
        let file = folder.join(format!("{class} {at}"));
        write_secret(&file, key);
        keys.push(format!("{{ user = {USER:?}, class = {class:?}, {more}file = {:?} }}", file.display().to_string()));
    }
    let server = format!(
        "command = \"python3\", args = [{FAULTY:?}, \"\", {:?}], env = {{ FAULTY_KEY = {PLANTED:?} }}",
        notes.display().to_string()
    );
    let world = World::with(&format!(
        "[mcp]\nwithout_key = true\nkeys = [{}]\nservers.faulty = {{ {server} }}\n\
         servers.inner = {{ {server}, clients = [\"internal\"] }}\n",
        keys.join(", ")
    ))
    .await;
    up(&world, "faulty").await;
    up(&world, "inner").await;
    world
}

/// The client's output, and its error output.
async fn told(arguments: &[&str]) -> (Vec<Value>, String) {
    let mut command = Command::new(Programs::mcp().python());
    let output = command.arg(SESSIONS).args(arguments).kill_on_drop(true).output().await.expect("it runs");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {words}");
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    (lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect(), words)
}

#[tokio::test(flavor = "multi_thread")]
async fn consent_is_asked_of_the_client_and_only_a_yes_runs() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let world = world(&notes).await;
    let erased = || std::fs::read_to_string(&notes).unwrap().lines().filter(|line| *line == "erased").count();
    let (told, complaints) = told(&["approvals", &format!("http://{}/mcp", world.web())]).await;
    assert_eq!(told.len(), 15, "{told:#?}");
    for line in &told {
        let (answer, asked) = (line["answer"].as_str().unwrap(), line["asked"].as_array().unwrap());
        assert_eq!(asked.len(), usize::from(answer != "cannot"), "{line}");
        assert!(asked.iter().all(|words| words.as_str().unwrap().contains("Erase with Faulty?")), "{line}");
        assert_eq!(line["error"] == false, answer == "accept", "{line}");
        // No glasses are connected, and no operator watches.
        let why = match answer {
            "accept" => "did erase",
            "cancel" => "nothing was done",
            "cannot" => "nobody could be asked",
            _ => "said no",
        };
        assert!(line["said"].as_str().unwrap().contains(why), "{line}");
    }
    assert_eq!(erased(), 3);
    // Older clients terminate their sessions, without an error.
    assert!(!complaints.contains("termination failed"), "{complaints}");
    let request = Request::Decisions { user: Some(USER.to_owned()), since_wall_ms: i64::MIN };
    let Answer::Decisions { decisions, .. } = world.ask(request).await.expect("decisions") else { panic!("none") };
    let made: Vec<_> = decisions.iter().filter_map(|record| record.approval.as_ref()).collect();
    let count = |outcome, by| made.iter().filter(|made| (made.outcome, made.by) == (outcome, by)).count();
    assert_eq!(count(ApprovalOutcome::Approved, AnsweredBy::Client), 3);
    assert_eq!(count(ApprovalOutcome::Denied, AnsweredBy::Client), 6);
    assert_eq!(count(ApprovalOutcome::Cancelled, AnsweredBy::Client), 3);
    assert_eq!(count(ApprovalOutcome::Unasked, AnsweredBy::Nobody), 3);
}

/// Clients that approve everything themselves, of each class.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_approve_is_not_asked_and_the_wearer_is() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let world = world(&notes).await;
    let erased = || std::fs::read_to_string(&notes).unwrap().lines().filter(|line| *line == "erased").count();
    let mut before = 0;
    for ((class, key, _), approves) in ENTRIES.into_iter().zip([true, false, false, true, false]) {
        let path = if class == "internal" { "/mcp".to_owned() } else { format!("/mcp/{class}") };
        let (told, _) = told(&["hostile", &format!("http://{}{path}", world.web()), key]).await;
        assert_eq!(told.len(), 2, "{told:#?}");
        for line in &told {
            let asked = line["asked"].as_array().unwrap().len();
            assert_eq!((asked, &line["error"]), (usize::from(approves), &Value::Bool(!approves)), "{class}: {line}");
            // Nobody wears glasses here.
            assert_eq!(line["said"].as_str().unwrap().contains("nobody could be asked"), !approves, "{class}: {line}");
        }
        let now = erased();
        assert_eq!(now - before, if approves { 2 } else { 0 }, "{class} {key}");
        before = now;
    }
    let request = Request::Decisions { user: Some(USER.to_owned()), since_wall_ms: i64::MIN };
    let Answer::Decisions { decisions, .. } = world.ask(request).await.expect("decisions") else { panic!("none") };
    let made: Vec<_> = decisions.iter().filter_map(|record| record.approval.as_ref()).collect();
    let by = |by| made.iter().filter(|made| made.by == by).count();
    assert_eq!((by(AnsweredBy::Client), by(AnsweredBy::Nobody)), (4, 6));
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_have_their_servers_prefix_and_news_of_them_pass_through() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let world = world(&notes).await;
    let (told, _) = told(&["resources", &format!("http://{}/mcp", world.web())]).await;
    let [told] = told.as_slice() else { panic!("{told:?}") };
    let outer = "faulty+test://notes/today";
    assert_eq!(told["listed"], serde_json::json!([outer, "inner+test://notes/today"]));
    assert_eq!(told["templates"], serde_json::json!(["faulty+test://notes/{day}", "inner+test://notes/{day}"]));
    assert_eq!((&told["uri"], &told["updated"]), (&outer.into(), &outer.into()));
    // The server is asked for its own URI.
    assert_eq!(told["text"], "read test://notes/today");
    let noted = || std::fs::read_to_string(&notes).unwrap();
    // The client does not wait for the second.
    let both = ["subscribe test://notes/today", "unsubscribe test://notes/today"];
    let asked = async {
        while !both.iter().all(|asked| noted().lines().any(|line| line == *asked)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(WAIT, asked).await.is_ok(), "{}", noted());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_class_sees_its_tools_and_nobody_sees_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(&folder.path().join("notes")).await;
    for ((class, key), path) in KEYS.into_iter().zip(["/mcp", "/mcp/copilot", "/mcp/external"]) {
        let (told, _) = told(&["classes", &format!("http://{}{path}", world.web()), key]).await;
        let [told] = told.as_slice() else { panic!("{told:?}") };
        let names: Vec<&str> =
            told["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert!(names.contains(&"faulty.before") && names.contains(&"clock.time"), "{class}: {names:?}");
        assert_eq!(names.contains(&"inner.before"), class == "internal", "{class}: {names:?}");
        let leak = told["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "faulty.leak").expect("it");
        assert_eq!(leak["description"], "Uses the key [secret].");
        assert_eq!(told["leaked"]["structuredContent"]["key"], "[secret]");
        assert!(!told.to_string().contains(PLANTED), "{told}");
    }
    // It is neither sent to a model nor on disk.
    let services = world.gateway().services();
    let (_, specs) = services.executor.offered(USER, None, gateway_core::vocab::ClientClass::Internal);
    let specs = serde_json::to_string(&specs.iter().map(|spec| (**spec).clone()).collect::<Vec<_>>()).unwrap();
    assert!(specs.contains("Uses the key [secret].") && !specs.contains(PLANTED));
    assert!(specs.contains("Leak of [secret]"), "{specs}");
    services.store.settled().await.expect("the store");
    let bytes = std::fs::read(world.data().join("store/data.mdb")).expect("the store");
    let has = |words: &str| bytes.windows(words.len()).any(|window| window == words.as_bytes());
    assert!(has("Uses the key [secret].") && !has(PLANTED));
}
