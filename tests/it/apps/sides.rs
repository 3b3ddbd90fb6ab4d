//! Two apps with the same sentence: reported when the second is installed, asked once, stored, shown and removable.

use gateway::control::{
    Answer, Request,
    apps::{AppsRequest, Given},
};
use mini_app_kit::{App, Call, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::task::JoinHandle;

use crate::world::{USER, World, answered, text};

const KEY: &str = "0123456789abcdef";

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The item to add.
    item: String,
}

async fn to_lists(_: Call, add: Add) -> Result<String, ToolError> {
    Ok(format!("Lists has {}.", add.item))
}

async fn to_todo(_: Call, add: Add) -> Result<String, ToolError> {
    Ok(format!("Todo has {}.", add.item))
}

async fn request(world: &World, request: AppsRequest) -> String {
    match world.ask(Request::Apps { request }).await {
        Ok(Answer::Done { message }) => message,
        other => panic!("{other:?}"),
    }
}

/// Installs a running app; returns the text for the operator.
async fn install(world: &World, app: impl Fn() -> App) -> (String, JoinHandle<()>) {
    let bound = app().key(KEY).bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", bound.address());
    let server = tokio::spawn(bound.serve());
    let manifest = app().manifest(&url).to_string();
    (request(world, AppsRequest::Add(Given { manifest, api_key: Some(KEY.into()), ..Given::default() })).await, server)
}

async fn explained(world: &World, text: &str) -> String {
    let request = Request::ExplainSentence { text: text.into(), user: USER.into() };
    match world.ask(request).await {
        Ok(Answer::Explained { explanation }) => serde_json::to_string(&explanation).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentence_of_two_apps_goes_where_the_wearer_wants_it() {
    let world = World::start().await;
    let lists = || {
        let add = Tool::new("add", "Adds to a list.", to_lists).phrase("(add|put) {item} (to|on) my list");
        App::new("com.example.lists", "Lists").tool(add)
    };
    let todo = || {
        let add = Tool::new("add", "Adds to what is to be done.", to_todo).phrase("add {item} to my list");
        App::new("com.example.todo", "Todo").tool(add)
    };
    let (told, _lists) = install(&world, lists).await;
    assert!(!told.contains("taken"), "{told}");
    let (told, _todo) = install(&world, todo).await;
    for words in ["taken: ", "com.example.todo.add", "com.example.lists.add (Lists)", "with Todo", "apps prefer"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let mut glasses = world.glasses("ws", "glasses").await;
    let mut say = async |words: &str| {
        text(&mut glasses, words).await;
        answered(&mut glasses).await
    };
    let which = "with todo or with lists?";
    let said = say("put eggs on my list").await;
    assert!(said.contains("lists has eggs"), "only one knows it: {said}");
    assert!(say("add milk to my list").await.contains(which));
    let told = explained(&world, "add milk to my list").await;
    assert!(told.contains("With Todo or with Lists?") && told.contains("the wearer is asked"), "{told}");
    assert!(say("todo").await.contains("todo has milk"));
    assert!(say("add bread to my list").await.contains("todo has bread"), "nobody asks again");
    let told = explained(&world, "add bread to my list").await;
    assert!(told.contains("com.example.todo.add") && told.contains("Todo is preferred"), "{told}");
    assert!(say("add salt to my list with lists").await.contains("lists has salt"), "for this once");
    assert!(say("add tea to my list").await.contains("todo has tea"));
    let preferences = || AppsRequest::Preferences { user: USER.into() };
    assert_eq!(request(&world, preferences()).await, "Todo before Lists");
    glasses.goodbye().await;

    // The choice is stored.
    let world = world.again().await;
    assert_eq!(request(&world, preferences()).await, "Todo before Lists");
    let mut glasses = world.glasses("ws", "glasses").await;
    let mut say = async |words: &str| {
        text(&mut glasses, words).await;
        answered(&mut glasses).await
    };
    assert!(say("add tea to my list").await.contains("todo has tea"));
    let prefer = AppsRequest::Prefer { user: USER.into(), side: "lists".into(), over: "com.example.todo".into() };
    assert_eq!(request(&world, prefer).await, format!("{USER}: Lists before Todo"));
    assert!(say("add tea to my list").await.contains("lists has tea"));
    let forget = AppsRequest::ForgetPreferences { user: USER.into(), about: Some("Todo".into()) };
    assert_eq!(request(&world, forget).await, format!("1 choice of {USER} forgotten"));
    assert!(say("add tea to my list").await.contains(which));
    glasses.goodbye().await;
    world.stop().await;
}
