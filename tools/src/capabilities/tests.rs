//! The compiler: the specification's examples, names, and what is known of functions.

use std::sync::Arc;

use gateway_core::vocab::{RateLimit, ToolFlags, ToolSpec};
use serde_json::{Value, json};

use super::{
    definition::{read, tests::train_schedule},
    *,
};

pub(super) fn function(origin: Origin, tool: &str, local: &str, parameters: Value, returns: Option<Value>) -> Function {
    let spec = ToolSpec {
        name: tool.to_owned(),
        description: local.to_owned(),
        input_schema: parameters,
        output_schema: returns,
        ..ToolSpec::default()
    };
    Function { spec: Arc::new(spec), local_name: local.to_owned(), origin }
}

pub(super) fn nothing() -> Value {
    json!({"type": "object", "properties": {}})
}

pub(super) fn tool(name: &str) -> Function {
    function(Origin::Tool, name, name, nothing(), None)
}

fn mcp(server: &str, local: &str, parameters: Value, returns: Option<Value>) -> Function {
    function(Origin::Mcp(server.to_owned()), &format!("{server}.{local}"), local, parameters, returns)
}

fn slack() -> Vec<Function> {
    let channel = json!({"title": "Channel", "type": "object",
        "properties": {"id": {"type": "string"}, "name": {"type": "string"}}, "required": ["id", "name"]});
    let message = json!({"title": "Message", "type": "object", "properties": {
        "channel": {"type": "string"}, "text": {"type": "string"}, "ts": {"type": "string"}},
        "required": ["channel", "text", "ts"]});
    let list = |items: &Value| Some(json!({"type": "array", "items": items}));
    let post = json!({"type": "object", "required": ["channel", "text"],
        "properties": {"text": {"type": "string"}, "channel": {"type": "string"}}});
    let history = json!({"type": "object", "required": ["channel"],
        "properties": {"channel": {"type": "string"}, "limit": {"type": "number"}}});
    vec![
        mcp("slack", "slack_list_channels", nothing(), list(&channel)),
        mcp("slack", "slack_post_message", post, Some(message.clone())),
        mcp("slack", "slack_get_channel_history", history, list(&message)),
    ]
}

#[test]
fn the_capability_of_the_specification() {
    let bundle = compile(&read(&train_schedule()).unwrap().functions());
    let [module] = bundle.modules() else { panic!("one module") };
    assert_eq!(
        module.d_ts,
        "\
declare module '@capabilities/train-schedule' {
  export interface GetScheduleItem {
    destination: string;
    hour: number;
    id: string;
    minute: number;
    platform: string;
  }

  export interface GetScheduleParams {
    /** Date to check (YYYY-MM-DD); format: date */
    date?: string;
    /** Filter by station name */
    station?: string;
  }

  export interface GetTrainDetailsResult {
    id: string;
    operator: string;
    stops: unknown[];
  }

  export interface GetTrainDetailsParams {
    trainId: string;
  }

  /** Get train schedule information */
  export const trainSchedule: {
    /** Get all scheduled trains */
    getSchedule(params?: GetScheduleParams): Promise<GetScheduleItem[]>;
    /** Get details for a specific train */
    getTrainDetails(params: GetTrainDetailsParams): Promise<GetTrainDetailsResult>;
  };
}
"
    );
    assert_eq!(
        module.js,
        "\
import { call as $call } from '@lorgnette/bridge';
export const trainSchedule = Object.freeze({
  getSchedule: (params = {}) => $call('@capabilities/train-schedule', 'getSchedule', params),
  getTrainDetails: (params = {}) => $call('@capabilities/train-schedule', 'getTrainDetails', params),
});
"
    );
    assert_eq!(module.schema["module"], "@capabilities/train-schedule");
    let details = &module.schema["functions"]["getTrainDetails"];
    assert_eq!(details["parameters"]["required"], json!(["trainId"]));
    assert_eq!(details["returns"]["properties"]["stops"], json!({"type": "array"}));
    let meta = serde_json::to_value(&module.meta).unwrap();
    let limit = json!({"calls": 100, "per_ms": 60_000});
    let about = |tool: &str| json!({"tool": tool, "requiresApproval": false, "rateLimit": null});
    assert_eq!(
        meta,
        json!({"name": "train-schedule", "version": "1.0.0", "source": "sdk",
            "schema_sha256": module.meta.schema_sha256, "policy": {"rateLimit": limit},
            "functions": {"getSchedule": about("trainSchedule.getSchedule"),
                "getTrainDetails": about("trainSchedule.getTrainDetails")}})
    );
    assert_eq!(module.meta.schema_sha256.len(), 64);
}

#[test]
fn the_single_tool_of_the_specification() {
    let weather = json!({"name": "get_weather", "description": "Get current weather for a location", "parameters": {
        "type": "object", "required": ["location"], "properties": {
            "location": {"type": "string", "description": "City name"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}}});
    let bundle = compile(&read(&weather).unwrap().functions());
    let module = bundle.module("@capabilities/get-weather").expect("a module of its own");
    assert_eq!(
        module.d_ts,
        "\
declare module '@capabilities/get-weather' {
  export interface GetWeatherParams {
    /** City name */
    location: string;
    unit?: 'celsius' | 'fahrenheit';
  }

  /** Get current weather for a location */
  export function getWeather(params: GetWeatherParams): Promise<unknown>;
}
"
    );
    assert_eq!(
        module.js,
        "\
import { call as $call } from '@lorgnette/bridge';
export function getWeather(params = {}) {
  return $call('@capabilities/get-weather', 'getWeather', params);
}
"
    );
    assert_eq!(bundle.tool("@capabilities/get-weather", "getWeather"), Some("get_weather"));
    assert!(module.meta.version.starts_with("0.0.0-h") && module.meta.source == SourceKind::Tool);
}

#[test]
fn the_mcp_server_of_the_specification() {
    let bundle = compile(&slack());
    let module = bundle.module("@capabilities/mcp-slack").expect("the server's module");
    assert_eq!(
        module.d_ts,
        "\
declare module '@capabilities/mcp-slack' {
  export interface Message {
    channel: string;
    text: string;
    ts: string;
  }

  export interface GetChannelHistoryParams {
    channel: string;
    limit?: number;
  }

  export interface Channel {
    id: string;
    name: string;
  }

  export interface PostMessageParams {
    channel: string;
    text: string;
  }

  export const slack: {
    getChannelHistory(params: GetChannelHistoryParams): Promise<Message[]>;
    listChannels(): Promise<Channel[]>;
    postMessage(params: PostMessageParams): Promise<Message>;
  };
}
"
    );
    assert_eq!(bundle.tool("@capabilities/mcp-slack", "listChannels"), Some("slack.slack_list_channels"));
    let (found, name) = bundle.place("slack.slack_post_message").expect("a place");
    assert_eq!((found.specifier.as_str(), name), ("@capabilities/mcp-slack", "postMessage"));
    assert_eq!(bundle.tool("@capabilities/mcp-slack", "slack_list_channels"), None);
    assert!(bundle.place("slack.listChannels").is_none() && bundle.module("@capabilities/slack").is_none());
}

#[test]
fn names_are_made_of_words() {
    // Origin, full name, own name, specifier, function.
    let app = || Origin::App("com.example.Todo-List".to_owned());
    let server = |name: &str| Origin::Mcp(name.to_owned());
    for (origin, tool, local, specifier, name) in [
        (Origin::Tool, "timer.set", "timer.set", "timer-set", "timerSet"),
        (Origin::Tool, "getURL", "getURL", "get-url", "getURL"),
        (Origin::Tool, "HTTP_GET", "HTTP_GET", "http-get", "httpGet"),
        (Origin::Tool, "delete", "delete", "delete", "delete_"),
        (Origin::Tool, "3d_print", "3d_print", "3d-print", "_3dPrint"),
        (Origin::Tool, "___", "___", "tool", "tool"),
        (app(), "com.example.Todo-List.add_item", "add_item", "app-com-example-todo-list", "addItem"),
        (app(), "com.example.Todo-List.then", "then", "app-com-example-todo-list", "then_"),
        (Origin::Device("ab12".to_owned()), "camera.photo", "camera.photo", "device", "cameraPhoto"),
        (server("git-hub"), "git-hub.git_hub_list", "git_hub_list", "mcp-git-hub", "list"),
        (server("git"), "git.github_list", "github_list", "mcp-git", "githubList"),
        (server("slack"), "slack.slack", "slack", "mcp-slack", "slack"),
        (server("größe"), "gr__e.wähle_größe", "wähle_größe", "mcp-gr-e", "wHleGrE"),
        (server("天気"), "__.予報", "予報", "mcp", "tool"),
    ] {
        let bundle = compile(&[function(origin, tool, local, nothing(), None)]);
        let (module, found) = bundle.place(tool).expect(tool);
        assert_eq!((module.specifier.as_str(), found), (format!("@capabilities/{specifier}").as_str(), name), "{tool}");
    }
}

#[test]
fn an_object_is_called_like_its_source() {
    for (origin, name) in [
        (Origin::Mcp("git-hub".to_owned()), "gitHub"),
        (Origin::App("com.example.todo".to_owned()), "todo"),
        (Origin::App("com.example.new".to_owned()), "new_"),
        (Origin::Device("ab12".to_owned()), "device"),
    ] {
        let bundle = compile(&[function(origin, "a.b", "b", nothing(), None)]);
        let [module] = bundle.modules() else { panic!("one module") };
        assert!(module.d_ts.contains(&format!("  export const {name}: {{\n")), "{}", module.d_ts);
        assert!(module.js.contains(&format!("\nexport const {name} = ")), "{}", module.js);
    }
}

/// What two tools of equal names are called: neither has the name that both want, and each keeps its own when the
/// other tools change.
#[test]
fn equal_names_get_suffixes_that_stay() {
    let named = |functions: &[Function], tool: &str| {
        let bundle = compile(functions);
        let (module, function) = bundle.place(tool).expect(tool);
        (module.specifier.clone(), function.to_owned())
    };
    let (snake, camel, dotted) = (tool("get_it"), tool("getIt"), tool("get.it"));
    let alone = named(std::slice::from_ref(&snake), "get_it");
    assert_eq!(alone, ("@capabilities/get-it".to_owned(), "getIt".to_owned()));
    let (both, all) = ([snake.clone(), camel.clone()], [dotted, camel, snake]);
    let (one, other) = (named(&both, "get_it"), named(&both, "getIt"));
    assert!(one != other && one == named(&all, "get_it") && other == named(&all, "getIt"));
    assert!(one.0.starts_with("@capabilities/get-it-") && one.0.len() == "@capabilities/get-it-12345678".len());
    // A single tool's function is alone in its module.
    assert_eq!((one.1.as_str(), other.1.as_str()), ("getIt", "getIt"));

    let server = [mcp("slack", "slack_list", nothing(), None), mcp("slack", "list", nothing(), None)];
    let (one, other) = (named(&server, "slack.slack_list"), named(&server, "slack.list"));
    assert!(one.1 != other.1 && one.1.starts_with("list_") && other.1.starts_with("list_"), "{one:?} {other:?}");

    // A name that is made to be another's with its suffix.
    let suffixed = named(&both, "get_it").0;
    let forged = suffixed.trim_start_matches("@capabilities/").to_owned();
    let with_forged = [both[0].clone(), both[1].clone(), tool(&forged)];
    assert_eq!(named(&with_forged, "get_it").0, suffixed);
    assert_ne!(named(&with_forged, &forged).0, suffixed);
}

#[test]
fn what_a_function_needs_is_told() {
    let spec = ToolSpec {
        flags: ToolFlags { requires_approval: true, ..ToolFlags::default() },
        rate_limit: Some(RateLimit { calls: 2, per_ms: 1_000 }),
        description: "Deletes a file.".to_owned(),
        ..(*tool("delete_file").spec).clone()
    };
    let deletes = Function { spec: Arc::new(spec), ..tool("delete_file") };
    let bundle = compile(&[deletes]);
    let module = bundle.module("@capabilities/delete-file").unwrap();
    assert_eq!(
        module.d_ts,
        "\
declare module '@capabilities/delete-file' {
  /**
   * Deletes a file.
   * Asks the wearer for approval.
   */
  export function deleteFile(): Promise<unknown>;
}
"
    );
    let meta = &module.meta.functions["deleteFile"];
    assert!(meta.requires_approval && meta.rate_limit == Some(RateLimit { calls: 2, per_ms: 1_000 }));
}

/// A thousand tools of 20 servers, with one type in common.
fn thousand() -> Vec<Function> {
    let make = |number: usize| {
        let server = format!("server_{}", number % 20);
        let schema = json!({"type": "object", "required": ["id"], "properties": {
            "id": {"type": "string", "description": format!("Item {number}")},
            "mode": {"enum": ["fast", "slow"]}, "limit": {"type": "integer", "default": number},
            "filter": {"$ref": "#/$defs/Filter"}},
            "$defs": {"Filter": {"type": "object", "properties": {
                "and": {"type": "array", "items": {"$ref": "#/$defs/Filter"}}, "equals": {"type": ["string", "null"]}}}}});
        let returns =
            json!({"type": "object", "properties": {"items": {"type": "array", "items": {"type": "string"}}}});
        mcp(&server, &format!("{server}_do_{number}"), schema, Some(returns))
    };
    (0..1_000).map(make).collect()
}

#[test]
fn a_thousand_tools_have_a_place_each() {
    let functions = thousand();
    let bundle = compile(&functions);
    assert_eq!(bundle.modules().len(), 20);
    let total: usize = bundle.modules().iter().map(|module| module.meta.functions.len()).sum();
    assert_eq!(total, 1_000);
    for function in &functions {
        let (module, name) = bundle.place(&function.spec.name).expect("a place");
        assert_eq!(bundle.tool(&module.specifier, name), Some(function.spec.name.as_str()));
        assert!(module.d_ts.contains(&format!("    {name}(params: ")));
    }
    // The filter of all functions of a server is one type.
    assert!(bundle.modules().iter().all(|module| module.d_ts.matches("interface Filter").count() == 1));
}
