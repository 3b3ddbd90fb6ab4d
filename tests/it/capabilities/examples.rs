//! The source's examples from end to end: a model writes the source's own programs, which call capabilities in
//! TypeScript, in JSON and of an MCP server.

use firmware_sim::Seen;
use gateway::control::{Answer as Told, Request};
use serde_json::{Value, json};
use tools::capabilities::{Bundle, Function, compile};

use super::{samples, servers::Servers, types::judged};
use crate::{
    assistant::provider::{Answer, Provider},
    mcp::up,
    process::binary,
    world::{USER, World, answered, pause, text, until},
};

const TRAINS: &str = include_str!("train-schedule.ts");
const CRM: &str = include_str!("company-crm.ts");

/// What the source prints for `train-schedule.ts`.
const PRINTED: &str = "declare module '@capabilities/train-schedule' {
  export interface Trip {
    id: string;
    hour: number;
    minute: number;
    destination: string;
    platform: string;
  }

  export interface TrainDetails {
    id: string;
    operator: string;
    stops: string[];
  }

  export interface GetScheduleParams {
    station?: string;
    date?: string;
  }

  export interface GetTrainDetailsParams {
    trainId: string;
  }

  export const trainSchedule: {
    getSchedule(params?: GetScheduleParams): Promise<Trip[]>;
    getTrainDetails(params: GetTrainDetailsParams): Promise<TrainDetails>;
  };
}
";

/// Uses that are refused, each in the first line after the imports.
const WRONG: [&str; 14] = [
    "await trainSchedule.getSchedule('Central');",
    "await trainSchedule.getSchedule({ sation: 'Central' });",
    "await trainSchedule.getSchedule({ station: 5 });",
    "(await trainSchedule.getSchedule())[0].hours;",
    "const hour: string = (await trainSchedule.getSchedule())[0].hour;",
    "trainSchedule.getSchedule().filter(trip => trip.hour < 12);",
    "await trainSchedule.getTrainDetails();",
    "await trainSchedule.getTrainDetails({});",
    "await trainSchedule.getTrainDetails({ trainId: 't1', extra: 1 });",
    "(await trainSchedule.getTrainDetails({ trainId: 't1' })).stops.minute;",
    "await trainSchedule.handler({});",
    "await crm.createTicket({ customerId: 'c1', subject: 's', priority: 'urgent' });",
    "await crm.createTicket({ customerId: 'c1', priority: 'low' });",
    "(await crm.searchCustomers({ query: 'a' }))[0].manager.name;",
];
const IMPORTS: &str = "import { trainSchedule } from '@capabilities/train-schedule';
import { crm, type Customer } from '@capabilities/crm';
";
const RIGHT: &str = "import { trainSchedule, type Trip } from '@capabilities/train-schedule';
import { crm, type Customer } from '@capabilities/crm';
const trips: Trip[] = await trainSchedule.getSchedule({ station: 'Central' });
const morning = trips.filter(t => t.hour < 12);
const details = await trainSchedule.getTrainDetails({ trainId: morning[0].id });
console.log(`Train operated by: ${details.operator}`, details.stops.length);
await trainSchedule.getSchedule();
const customers: Customer[] = await crm.searchCustomers({ query: 'acme corp' });
const ticket = await crm.createTicket({ customerId: customers[0].id, subject: 'Integration issue', priority: 'high' });
console.log(`Created ticket: ${ticket.id}`, customers[0].manager?.tier === 'paid');
";

/// A gateway with the source's capabilities, whose model is scripted.
pub(super) async fn world(provider: &Provider, servers: &Servers, more: &str) -> World {
    let files = [
        ("train-schedule.ts", servers.in_place(TRAINS)),
        ("company-crm.ts", CRM.to_owned()),
        ("weather.json", servers.carries_out(samples::weather()).to_string()),
    ];
    world_with(provider, servers, &files, &format!("{}{more}", servers.policy("trainSchedule"))).await
}

/// A gateway with these capabilities and the source's MCP server, whose model is scripted.
pub(super) async fn world_with(provider: &Provider, servers: &Servers, files: &[(&str, String)], more: &str) -> World {
    let folder = tempfile::tempdir().expect("a folder");
    let put = |(name, source): &(&str, String)| {
        let path = folder.path().join(name);
        std::fs::write(&path, source).expect("a file");
        format!("{:?}", path.display().to_string())
    };
    let files: Vec<String> = files.iter().map(put).collect();
    let settings = format!(
        "[model]\nkind = \"chat_completions\"\nbase_url = \"{}\"\nmodel = \"scripted\"\n\
         [code]\nenabled = true\nlocal_models = true\n[capabilities]\nglobal = [{}]\n\
         [mcp.servers.slack]\nurl = \"http://{}/\"\n{more}",
        provider.url("one"),
        files.join(", "),
        servers.slack
    );
    let world = World::tuned(&settings, |config| config.models.code.executable = Some(binary())).await;
    up(&world, "slack").await;
    world
}

pub(super) fn program(source: &str) -> Answer {
    Answer::Calls("code.run", json!({"code": source}))
}

/// The modules that the user's programs may import.
pub(super) async fn modules(world: &World) -> Bundle {
    let Ok(Told::Callable { tools }) = world.ask(Request::Callable { user: USER.to_owned() }).await else {
        panic!("no tools");
    };
    let function = |tool: gateway::control::Callable| {
        Function::of(tool.spec.into(), tool.local_name, &tool.source, tool.about.map(Into::into))
    };
    compile(&tools.into_iter().map(function).collect::<Vec<_>>())
}

/// The declarations in a module, without comments and in no order of properties: what the page leaves open.
fn declarations(d_ts: &str) -> Vec<String> {
    let lines: Vec<&str> = d_ts.lines().map(str::trim).collect();
    let code = lines.iter().filter(|line| !line.starts_with("/*") && !line.starts_with('*') && !line.is_empty());
    let (mut all, mut one) = (Vec::new(), Vec::new());
    for line in code {
        if line.starts_with("export") && !one.is_empty() {
            all.push(std::mem::take(&mut one));
        }
        one.push(*line);
    }
    all.push(one);
    let sorted = all.into_iter().map(|mut one: Vec<&str>| {
        one.retain(|line| !line.starts_with('}'));
        one.get_mut(1..).unwrap_or_default().sort_unstable();
        one.join("\n")
    });
    let mut sorted: Vec<String> = sorted.collect();
    sorted.sort();
    sorted
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_compiled_is_what_the_source_prints_and_holds_programs_to_it() {
    let (provider, servers) = (Provider::start().await, Servers::start().await);
    let world = world(&provider, &servers, "").await;
    let bundle = modules(&world).await;
    let module = bundle.module("@capabilities/train-schedule").expect("the module");
    assert_eq!(declarations(&module.d_ts), declarations(PRINTED), "{}", module.d_ts);
    assert_eq!(module.meta.policy.rate_limit.map(|limit| (limit.calls, limit.per_ms)), Some((100, 60_000)));
    let slack = bundle.module("@capabilities/mcp-slack").expect("the module");
    for line in [
        "listChannels(): Promise<unknown>;",
        "postMessage(params: PostMessageParams): Promise<unknown>;",
        "getChannelHistory(params: GetChannelHistoryParams): Promise<unknown>;",
    ] {
        assert!(slack.d_ts.contains(line), "{}", slack.d_ts);
    }
    let weather = bundle.module("@capabilities/get-weather").expect("the module");
    assert!(weather.d_ts.contains("export function getWeather(params: GetWeatherParams)"), "{}", weather.d_ts);
    assert!(weather.d_ts.contains("unit?: 'celsius' | 'fahrenheit';"), "{}", weather.d_ts);
    let crm = bundle.module("@capabilities/crm").expect("the module");
    // Comments of the file are comments of the declarations.
    for lines in [
        "  /** Who buys from us. */\n  export interface Customer {\n",
        "    /** What they pay for. */\n    tier: ",
        "    /** Who looks after them, who is a customer as well. */\n    manager?: Customer;\n",
    ] {
        assert!(crm.d_ts.contains(lines), "{lines}: {}", crm.d_ts);
    }
    for line in ["limit?: number;", "tier: 'free' | 'paid';", "manager?: Customer;", "Asks the wearer for approval."] {
        assert!(crm.d_ts.contains(line), "{line}: {}", crm.d_ts);
    }

    let mut programs = vec![("right".to_owned(), RIGHT.to_owned())];
    programs.extend(WRONG.iter().enumerate().map(|(at, line)| (format!("wrong{at}"), format!("{IMPORTS}{line}\n"))));
    let words = judged(&[&bundle], &programs);
    for (at, line) in WRONG.iter().enumerate() {
        assert!(words.contains(&format!("wrong{at}.ts(3,")), "accepted: {line}\n{words}");
    }
    assert!(!words.contains("right.ts(") && !words.contains(".d.ts("), "{words}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_composes_a_handler_and_an_mcp_server() {
    let (provider, servers) = (Provider::start().await, Servers::start().await);
    let world = world(&provider, &servers, "").await;
    let mut glasses = world.glasses("wss", "glasses").await;
    provider.then(
        "one",
        program(
            "import { trainSchedule } from '@capabilities/train-schedule';\n\
             import { slack } from '@capabilities/mcp-slack';\n\
             const trips = await trainSchedule.getSchedule({ station: 'Central' });\n\
             const morning = trips.filter(t => t.hour < 12);\n\
             const details = await trainSchedule.getTrainDetails({ trainId: morning[0].id });\n\
             console.log(`Train operated by: ${details.operator}`);\n\
             const channels = await slack.listChannels();\n\
             const general = channels.find(c => c.name === 'general');\n\
             await slack.postMessage({ channel: general.id,\n\
               text: morning.map(t => `${t.hour}:00 - ${t.destination}`).join('\\n') });\n\
             try { await trainSchedule.getTrainDetails({ trainId: 'away' }); } catch (error) { console.log(error.code); }\n\
             export default morning.length;\n",
        ),
    );
    provider.then("one", Answer::Says("One train leaves in the morning.", 60, 6));
    text(&mut glasses, "post the morning trains").await;
    let told = answered(&mut glasses).await;
    assert!(told.contains("one train"), "{told}");
    let asked = provider.until(2).await.body.to_string();
    assert!(asked.contains("Train operated by: Alpine Rail\\n"), "{asked}");
    assert_eq!(*servers.posted.lock().unwrap(), ["8:00 - Bern"]);
    let requests = servers.asked.lock().unwrap().clone();
    assert_eq!(requests[..2], ["GET /schedule?station=Central&date=undefined", "GET /trains/t1"]);
    // Requests of handlers are in the ledger.
    let Told::Usage { users } = world.ask(Request::Usage { user: None, since_wall_ms: 0 }).await.expect("records")
    else {
        panic!("no records");
    };
    let calls: Vec<_> = users.values().flatten().map(|usage| (usage.tool.as_str(), usage.calls)).collect();
    assert!(calls.contains(&("std.http.request", 3)), "{calls:?}");
    assert!(calls.contains(&("trainSchedule.getSchedule", 1)), "{calls:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_asks_in_its_own_words_and_acts_after_the_answer() {
    let (provider, servers) = (Provider::start().await, Servers::start().await);
    let world = world(&provider, &servers, "").await;
    let mut glasses = world.glasses("quic", "glasses").await;
    provider.then(
        "one",
        program(
            "import { crm } from '@capabilities/crm';\n\
             const customers = await crm.searchCustomers({ query: 'acme' });\n\
             const ticket = await crm.createTicket({ customerId: customers[0].id, subject: 'Integration issue', \
             priority: 'high' });\n\
             console.log(`${customers.length} customers, created ticket: ${ticket.id}`);\n",
        ),
    );
    provider.then("one", Answer::Says("The ticket is there.", 60, 6));
    text(&mut glasses, "create the ticket").await;
    let asked = until(&mut glasses, "the question", |event| matches!(event.seen, Seen::ApprovalRequest { .. })).await;
    let shown = format!("{asked:?}");
    assert!(shown.contains("Create high ticket for customer c1?"), "{shown}");
    assert!(shown.contains("Integration issue"), "all arguments are shown: {shown}");
    pause(&glasses).await;
    glasses.text("yes").await.expect("typed");
    let told = answered(&mut glasses).await;
    assert!(told.contains("the ticket is there"), "{told}");
    let asked = provider.until(2).await.body.to_string();
    assert!(asked.contains("2 customers, created ticket: T-1"), "{asked}");
    let file = world.data().join("workspace").join(USER).join("ticket.json");
    let ticket: Value = serde_json::from_str(&std::fs::read_to_string(file).expect("its file")).expect("JSON");
    assert_eq!(ticket["priority"], "high");
    world.stop().await;
}
