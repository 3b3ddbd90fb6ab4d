//! The source's own programs from end to end: a model writes them, and capabilities in JSON, a single tool and an MCP
//! server carry their calls out.

use firmware_sim::Glasses;
use gateway::control::{Answer as Told, Request};
use gateway_core::vocab::ClientClass;
use serde_json::{Value, json};

use super::{
    examples::{program, world_with},
    handlers::result,
    samples,
    servers::Servers,
};
use crate::{
    assistant::provider::{Answer, Provider},
    world::{USER, World, answered, text},
};

/// "Usage" of `trainSchedule` in the source, line by line.
pub(super) const TRAINS: &str = "import { trainSchedule } from '@capabilities/train-schedule';

// Full type inference and autocomplete
const trips = await trainSchedule.getSchedule({ station: 'Central' });

// Filter locally (not in AI's context)
const morning = trips.filter(t => t.hour < 12);

// Further operations
const details = await trainSchedule.getTrainDetails({
  trainId: morning[0].id
});

console.log(`Train operated by: ${details.operator}`);
";
/// Its example 1, but for the module's name.
const WEATHER: &str = "import { getWeather } from '@capabilities/get-weather';

const weather = await getWeather({
  location: 'San Francisco',
  unit: 'celsius'
});

console.log(`${weather.temperature}°${weather.unit}: ${weather.description}`);
";
/// Its example 2.
const SLACK: &str = "import { slack } from '@capabilities/mcp-slack';

// Find channel
const channels = await slack.listChannels();
const general = channels.find(c => c.name === 'general');

// Get recent messages
const history = await slack.getChannelHistory({
  channel: general.id,
  limit: 10
});

// Reply to the latest
await slack.postMessage({
  channel: general.id,
  text: `Re: \"${history[0].text}\" - Got it!`
});
";
/// Its first example, with the `await` that it lacks, and a module for each capability.
pub(super) const BOTH: &str = "import { trainSchedule } from '@capabilities/train-schedule';
import { notes } from '@capabilities/notes';

// AI doesn't need to read the full schedule
const morningTrips = (await trainSchedule.getSchedule())
  .filter(trip => trip.hour < 12);

// Compose multiple capabilities
await notes.create({
  title: 'Morning Trains',
  content: morningTrips.map(t => `${t.hour}:00 - ${t.destination}`).join('\\n')
});
";

/// What its first example creates notes with.
fn notes() -> Value {
    let text = json!({"type": "string"});
    json!({"name": "notes", "description": "Notes of the company", "functions": [{"name": "create",
        "description": "Create a note", "parameters": {"type": "object", "required": ["title", "content"],
            "properties": {"title": text, "content": text}}}]})
}

/// A gateway with the source's capabilities in JSON.
pub(super) async fn world(provider: &Provider, servers: &Servers) -> World {
    let files = [("trains.json", samples::trains()), ("weather.json", samples::weather()), ("notes.json", notes())];
    let files = files.map(|(name, definition)| (name, servers.carries_out(definition).to_string()));
    world_with(provider, servers, &files, "").await
}

/// The model answers the next words with this program, and then with these.
pub(super) fn answers(provider: &Provider, source: &str, words: &'static str) {
    provider.then("one", program(source));
    provider.then("one", Answer::Says(words, 60, 6));
}

/// What the model reads of the program that it wrote in its `turn`, counted from 1.
pub(super) async fn read(provider: &Provider, turn: usize) -> String {
    let asked = provider.until(2 * turn).await;
    let messages = asked.body["messages"].as_array().expect("messages").clone();
    messages.last().expect("a result")["content"].as_str().expect("a text").to_owned()
}

/// Types these words, which are answered with that.
pub(super) async fn asks(glasses: &mut Glasses, words: &str, answer: &str) {
    text(glasses, words).await;
    let told = answered(glasses).await;
    assert!(told.contains(answer), "{told}");
}

async fn calls(world: &World) -> Vec<(String, u64)> {
    let Told::Usage { users } = world.ask(Request::Usage { user: None, since_wall_ms: 0 }).await.expect("records")
    else {
        panic!("no records");
    };
    users.into_values().flatten().map(|usage| (usage.tool, usage.calls)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_tool_and_an_mcp_server_are_called_by_the_sources_programs() {
    let (provider, servers) = (Provider::start().await, Servers::start().await);
    let world = world(&provider, &servers).await;
    let mut glasses = world.glasses("quic", "glasses").await;
    answers(&provider, WEATHER, "It is foggy.");
    asks(&mut glasses, "how is the weather in San Francisco", "foggy").await;
    assert_eq!(read(&provider, 1).await, "18°celsius: fog");
    answers(&provider, SLACK, "I have replied.");
    asks(&mut glasses, "reply to the latest message in general", "replied").await;
    assert!(read(&provider, 2).await.contains("without printing"), "nothing was printed");
    assert_eq!(*servers.posted.lock().unwrap(), ["Re: \"Any trains?\" - Got it!"]);
    assert_eq!(*servers.called.lock().unwrap(), [r#"get_weather {"location":"San Francisco","unit":"celsius"}"#]);
    let calls = calls(&world).await;
    for tool in
        ["get_weather", "slack.slack_list_channels", "slack.slack_get_channel_history", "slack.slack_post_message"]
    {
        assert!(calls.contains(&(tool.to_owned(), 1)), "{tool}: {calls:?}");
    }
    world.stop().await;
}

/// The examples that each request of a model has are programs that run.
#[tokio::test(flavor = "multi_thread")]
async fn the_worked_examples_run() {
    let (provider, servers) = (Provider::start().await, Servers::start().await);
    let world = world(&provider, &servers).await;
    let executor = &world.gateway().services().executor;
    let (_, offered) = executor.offered(USER, None, ClientClass::Internal);
    let run = offered.iter().find(|tool| tool.name == "code.run").expect("the tool");
    let (_, examples) = run.guidance.as_deref().and_then(|text| text.split_once(":\n")).expect("examples");
    let examples: Vec<&str> = examples.split("\n---\n").collect();
    assert_eq!(examples.len(), 3);
    for example in examples {
        let ran = result(&world, "code.run", json!({"code": example})).await;
        assert!(ran.error.is_none() && ran.data.is_some_and(|data| data["logs"] == json!([])), "{example}");
    }
    assert_eq!(*servers.posted.lock().unwrap(), ["Late"]);
    let calls = calls(&world).await;
    assert!(calls.contains(&("timer.set".to_owned(), 2)), "{calls:?}");
    world.stop().await;
}
