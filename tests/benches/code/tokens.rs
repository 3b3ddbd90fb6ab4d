//! The tokens of one request: with all tools, with those that a router chooses, and with programs instead of tools.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use chat_models::{
    Request,
    chat_completions::{ChatCompletions, Options},
    provider::Provider,
};
use gateway_core::vocab::{ClientClass, Message, Role};
use tiktoken_rs::CoreBPE;
use tools::{
    code::{
        modules::Modules,
        tools::{Programs, offered_to},
    },
    personality::Personalities,
    registry::Specs,
    router::{Query, Router},
};

use super::test_gateway::{TestGateway, USER};

/// What the wearer says: the mean of these is told.
const SAID: [&str; 6] = [
    "Set a timer for ten minutes.",
    "Which of my pull requests wait for a review, and since when?",
    "Close all issues that are labelled as duplicates, and add a note about each.",
    "What is twelve times thirty-four?",
    "Good evening, how are you?",
    "Search the code of my repositories for the old key, and open an issue where it is.",
];

/// Prints a line for each number of tools and each way.
pub fn print(gateway: &TestGateway) -> Result<()> {
    let tokens = tiktoken_rs::o200k_base()?;
    println!("tokens of a request (mean of {} sentences; {:.0} without any tool)", SAID.len(), {
        let none = Specs::default();
        mean(&tokens, |said| request(&none, None, said))?
    });
    let (modules, router) = (Modules::default(), Router::default());
    let built_in = gateway.offer(60)?;
    for (count, aim) in [(60, 5.0), (built_in + 60, 5.0), (500, 1.0)] {
        gateway.offer(count)?;
        let (_, specs) = gateway.executor.offered(USER, Some("glasses"), ClientClass::Internal);
        let (tools, instead) = (offered_to(Programs::None, &specs), offered_to(Programs::Instead, &specs));
        let direct = mean(&tokens, |said| request(&tools, None, said))?;
        let routed = mean(&tokens, |said| {
            let said_now = Query { now: said.to_owned(), ..Query::default() };
            request(&router.choose(&tools, &said_now, tools.len()).tools, None, said)
        })?;
        let by_programs = mean(&tokens, |said| {
            let messages = [Message::text(Role::User, said)];
            let told = modules.told(&gateway.executor, USER, "glasses", &messages);
            request(&instead, told.map(|list| list.text), said)
        })?;
        let without = mean(&tokens, |said| request(&instead, None, said))?;
        let share = |part: f64| 100.0 * part / direct;
        println!(
            "  {} tools, {built_in} of them built in: direct {direct:.0}, routed {routed:.0} ({:.1} %), instead {by_programs:.0} ({:.1} %, aim {aim} %), \
             of which the modules are {:.0}",
            tools.len(),
            share(routed),
            share(by_programs),
            by_programs - without,
        );
    }
    Ok(())
}

/// The mean of what the requests for all sentences take.
fn mean(tokens: &CoreBPE, request: impl Fn(&str) -> Request) -> Result<f64> {
    let provider = ChatCompletions::new(Options::new("m"));
    let mut sum = 0;
    for said in SAID {
        let body = provider.render(&request(said)).body;
        let value = body.to_value().map_err(|error| anyhow!("{error}"))?;
        // What a model reads: not the names of fields such as `messages`, but their order and marks cost about as much.
        let mut read = String::new();
        for part in ["messages", "tools"] {
            read.push_str(&value.get(part).map(ToString::to_string).unwrap_or_default());
        }
        sum += tokens.encode_with_special_tokens(&read).len();
    }
    Ok(sum as f64 / SAID.len() as f64)
}

fn request(tools: &Specs, modules: Option<String>, said: &str) -> Request {
    let personality = Personalities::new(&Default::default()).text(Some("m"), None);
    let system = [Some(personality), modules].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
    Request {
        system: Some(system),
        messages: vec![Message::text(Role::User, said)],
        tools: Arc::clone(tools),
        ..Request::default()
    }
}
