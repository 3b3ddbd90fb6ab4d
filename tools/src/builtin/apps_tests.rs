//! The tools for mini-apps, with a host that only keeps records.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use gateway_core::vocab::{ErrorCode, ToolResult};
use serde_json::{Value, json};

use crate::{
    executor::Executor,
    ports::{AppEntry, AppHost, PortError, Ports},
    registry::Registry,
    test_support::{World, call, context},
};

#[derive(Default)]
struct FakeApps {
    running: Mutex<Vec<String>>,
    broken: bool,
}

const INSTALLED: [(&str, &str); 3] =
    [("com.example.todo", "Todo"), ("com.example.list", "Shopping List"), ("com.example.wish", "Wish List")];

#[async_trait]
impl AppHost for FakeApps {
    async fn activate(&self, user: &str, package: &str, deadline: Duration) -> Result<bool, PortError> {
        assert!(user == "ada" && deadline > Duration::from_secs(5));
        if self.broken {
            return Err(PortError::Unavailable("its server does not answer".into()));
        }
        let mut running = self.running.lock().unwrap();
        let new = !running.iter().any(|one| one == package);
        if new {
            running.push(package.to_owned());
        }
        Ok(new)
    }

    async fn stop(&self, _user: &str, package: &str) -> Result<bool, PortError> {
        let mut running = self.running.lock().unwrap();
        let before = running.len();
        running.retain(|one| one != package);
        Ok(running.len() < before)
    }

    async fn list(&self, _user: &str) -> Result<Vec<AppEntry>, PortError> {
        let running = self.running.lock().unwrap();
        let entry = |(package, name): &(&str, &str)| AppEntry {
            package: (*package).into(),
            name: (*name).into(),
            description: String::new(),
            running: running.iter().any(|one| one == package),
        };
        Ok(INSTALLED.iter().map(entry).collect())
    }
}

struct Fixture(Executor);

impl Fixture {
    fn new(records: FakeApps) -> Self {
        let ports = Ports { apps: Arc::new(records), ..World::usual().ports() };
        Self(Executor::new(Arc::new(Registry::with_built_ins().unwrap()), ports))
    }

    async fn run(&self, name: &str, arguments: Value) -> ToolResult {
        self.0.call(context(), call(name, arguments)).await
    }

    async fn say(&self, name: &str, app: &str) -> String {
        let arguments = if app.is_empty() { json!({}) } else { json!({"app": app}) };
        self.run(name, arguments).await.say.unwrap()
    }
}

#[tokio::test]
async fn apps_are_started_and_stopped_by_what_they_are_called() {
    let fixture = Fixture::new(FakeApps::default());
    assert_eq!(fixture.say("app.start", "the todo").await, "Todo started.");
    assert_eq!(fixture.say("app.start", "com.example.todo").await, "Todo is running.");
    assert_eq!(fixture.say("app.start", "shopping").await, "Shopping List started.");
    assert_eq!(
        fixture.say("app.list", "").await,
        "You have 3 apps. Todo and Shopping List are running. Besides: Wish List."
    );
    assert_eq!(fixture.say("app.stop", "Todo").await, "Todo stopped.");
    assert_eq!(fixture.say("app.stop", "todo").await, "Todo is not running.");
}

#[tokio::test]
async fn a_name_is_known_by_its_sound() {
    let fixture = Fixture::new(FakeApps::default());
    for (said, answer) in [
        ("to do", "Todo is not running."),
        ("shipping list", "Shopping List is not running."),
        ("today", "I have no app called today."),
    ] {
        assert_eq!(fixture.say("app.stop", said).await, answer, "{said}");
    }
}

#[tokio::test]
async fn who_is_not_understood_is_asked() {
    let fixture = Fixture::new(FakeApps::default());
    assert_eq!(fixture.say("app.start", "list").await, "Which one: Shopping List, Wish List?".replace(", ", " and "));
    assert_eq!(fixture.say("app.start", "weather").await, "I have no app called weather.");
    let result = fixture.run("app.start", json!({})).await;
    assert_eq!(result.error.unwrap().code, ErrorCode::InvalidArguments);
}

#[tokio::test]
async fn a_start_that_fails_says_why() {
    let fixture = Fixture::new(FakeApps { broken: true, ..FakeApps::default() });
    let result = fixture.run("app.start", json!({"app": "todo"})).await;
    assert_eq!(result.say.as_deref(), Some("Todo did not start: its server does not answer."));
    let error = result.error.unwrap();
    assert_eq!((error.code, error.retryable), (ErrorCode::AppNotAvailable, true));
}

#[tokio::test]
async fn a_gateway_without_apps_says_so() {
    let executor = World::usual().executor();
    let result = executor.call(context(), call("app.list", json!({}))).await;
    assert_eq!(result.say.as_deref(), Some("No apps are installed."));
}
