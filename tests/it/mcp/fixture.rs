//! A downstream server with exactly the tools, prompts and resources that the conformance suite
//! asks for by name. It is reached through the gateway only.

#![expect(deprecated, reason = "the suite of 2025-11-25 has sampling, roots and logging")]

use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientResult,
        CompleteRequestParams, CompleteResult, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
        InputRequest, InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
        ListToolsResult, LoggingLevel, LoggingMessageNotificationParam, PaginatedRequestParams,
        ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse, RequestStateCodec,
        ServerCapabilities, ServerConfig, ServerRequest, SetLevelRequestParams, SubscribeRequestParams,
        SubscriptionFilter, UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};

/// A PNG of one red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A WAV without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
/// The steps of a slow tool.
const STEP: Duration = Duration::from_millis(50);

/// What all sessions share.
struct Shared {
    tools: watch::Sender<u32>,
    prompts: watch::Sender<u32>,
    states: RequestStateCodec,
    watched: Mutex<Vec<String>>,
}

#[derive(Clone)]
pub struct Fixture(Arc<Shared>);

/// Serves the fixture over HTTP; its address.
pub async fn serve() -> SocketAddr {
    let shared = Shared {
        tools: watch::Sender::new(0),
        prompts: watch::Sender::new(0),
        states: RequestStateCodec::new(b"a key of at least thirty-two bytes!!".to_vec()),
        watched: Mutex::default(),
    };
    let fixture = Fixture(Arc::new(shared));
    let service = StreamableHttpService::new(
        move || Ok(fixture.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service.clone();
            tokio::spawn(async move {
                let answer = service_fn(move |request| {
                    let service = service.clone();
                    async move { Ok::<_, Infallible>(service.handle(request).await) }
                });
                drop(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await);
            });
        }
    });
    address
}

/// A question that a tool needs an answer to, under its key.
type Asked = BTreeMap<String, InputRequest>;

fn asked(questions: Value) -> Asked {
    serde_json::from_value(questions).expect("requests")
}

fn elicit(message: &str, properties: Value, required: Value) -> Value {
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": message, "requestedSchema": {
        "type": "object", "properties": properties, "required": required } } })
}

fn sample(text: &str, tokens: u32) -> Value {
    json!({ "method": "sampling/createMessage", "params": { "maxTokens": tokens, "messages": [
        { "role": "user", "content": { "type": "text", "text": text } }] } })
}

fn text(text: impl Into<String>) -> CallToolResponse {
    content(json!([{ "type": "text", "text": text.into() }]))
}

fn content(blocks: Value) -> CallToolResponse {
    CallToolResponse::Complete(serde_json::from_value(json!({ "content": blocks })).expect("a result"))
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

/// A name as accepted by an elicitation; anything else is no answer.
fn accepted(answer: &Value, field: &str) -> Option<Value> {
    (answer.get("action")? == "accept").then(|| answer.pointer(&format!("/content/{field}")).cloned()).flatten()
}

impl Fixture {
    /// Answers to questions: those that came along, else by asking back the way of the revision.
    async fn ask(
        &self,
        questions: Value,
        given: &Option<BTreeMap<String, Value>>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Result<BTreeMap<String, Value>, Asked>, ErrorData> {
        let questions = asked(questions);
        if is_modern(context) {
            let given = given.clone().unwrap_or_default();
            let answered = questions.keys().all(|key| given.get(key).is_some_and(Value::is_object));
            return Ok(if answered { Ok(given) } else { Err(questions) });
        }
        let mut answers = BTreeMap::new();
        for (key, question) in questions {
            let request = match question {
                InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
                InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
                InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
                _ => return Err(ErrorData::internal_error("an unknown question", None)),
            };
            let answer = context.peer.send_request(request).await;
            let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            let answer = match answer {
                ClientResult::ElicitResult(result) => serde_json::to_value(result),
                ClientResult::CreateMessageResult(result) => serde_json::to_value(result),
                ClientResult::ListRootsResult(result) => serde_json::to_value(result),
                _ => return Err(ErrorData::internal_error("an unknown answer", None)),
            };
            answers.insert(key, answer.expect("JSON"));
        }
        Ok(Ok(answers))
    }

    async fn log(&self, message: &str, context: &RequestContext<RoleServer>) {
        if is_modern(context) && context.meta.log_level().is_none() {
            return;
        }
        let params = LoggingMessageNotificationParam::new(LoggingLevel::Info, message.into());
        drop(context.peer.notify_logging_message(params).await);
    }

    async fn progress(&self, done: f64, context: &RequestContext<RoleServer>) {
        if let Some(token) = context.meta.get_progress_token() {
            let params = ProgressNotificationParam::new(token, done).with_total(100.0);
            drop(context.peer.notify_progress(params).await);
        }
    }

    /// The tools that ask something back.
    async fn asking_tool(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<CallToolResponse>, ErrorData> {
        let argument = |name: &str| {
            let arguments = request.arguments.as_ref();
            arguments.and_then(|all| all.get(name)).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let name_form = || elicit("What is your name?", json!({ "name": { "type": "string" } }), json!(["name"]));
        let confirm = || elicit("Please confirm", json!({ "ok": { "type": "boolean" } }), json!(["ok"]));
        let capabilities = context.client_capabilities().unwrap_or_default();
        let mut state = None;
        let questions = match &*request.name {
            "test_sampling" => json!({ "sample": sample(&argument("prompt"), 100) }),
            "test_elicitation" => json!({ "user": elicit(&argument("message"), json!({
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" } }),
                json!(["username", "email"])) }),
            "test_elicitation_sep1034_defaults" => json!({ "user": elicit("Your data", json!({
                "name": { "type": "string", "default": "John Doe" },
                "age": { "type": "integer", "default": 30 },
                "score": { "type": "number", "default": 95.5 },
                "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
                "verified": { "type": "boolean", "default": true } }), json!([])) }),
            "test_elicitation_sep1330_enums" => json!({ "user": elicit("Your choice", enums(), json!([])) }),
            "test_input_required_result_elicitation" | "test_streaming_elicitation" => {
                json!({ "user_name": name_form() })
            }
            "test_input_required_result_sampling" => {
                json!({ "capital_question": sample("What is the capital of France?", 100) })
            }
            "test_input_required_result_list_roots" => json!({ "client_roots": { "method": "roots/list" } }),
            "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
                state = Some("confirmed");
                json!({ "confirm": confirm() })
            }
            "test_input_required_result_multiple_inputs" => {
                state = Some("three");
                json!({ "user_name": name_form(), "greeting": sample("Generate a greeting", 50),
                        "client_roots": { "method": "roots/list" } })
            }
            "test_input_required_result_capabilities" => {
                let mut questions = json!({});
                if capabilities.sampling.is_some() {
                    questions["sample"] = sample("Say something", 50);
                }
                if capabilities.elicitation.is_some() {
                    questions["user_name"] = name_form();
                }
                questions
            }
            "test_missing_capability" => {
                if capabilities.sampling.is_none() {
                    let needed = ClientCapabilities::builder().enable_sampling().build();
                    return Err(ErrorData::missing_required_client_capability(needed));
                }
                return Ok(Some(text("sampling is there")));
            }
            "test_input_required_result_multi_round" => {
                return self.rounds(request).map(Some);
            }
            _ => return Ok(None),
        };
        if let Some(sealed) = &request.request_state {
            let opened = self.0.states.open(sealed);
            if opened.ok().as_deref() != state.map(str::as_bytes) {
                return Err(ErrorData::invalid_params("requestState fails its integrity check", None));
            }
        }
        let answers = match self.ask(questions, &request.input_responses, context).await? {
            Ok(answers) => answers,
            Err(questions) => {
                let state = state.map(|state| self.0.states.seal(state.as_bytes()));
                return Ok(Some(CallToolResponse::InputRequired(InputRequiredResult::new(Some(questions), state))));
            }
        };
        let all = serde_json::to_string(&answers).expect("JSON");
        Ok(Some(match &*request.name {
            "test_sampling" => {
                let said = answers.get("sample").and_then(|answer| answer.pointer("/content/text")).cloned();
                text(format!("LLM response: {}", said.unwrap_or_default()))
            }
            "test_elicitation" => text(format!("User response: {all}")),
            "test_input_required_result_elicitation" => {
                match answers.get("user_name").and_then(|answer| accepted(answer, "name")) {
                    Some(Value::String(name)) => text(format!("Hello, {name}!")),
                    _ => text("Hello, whoever you are!"),
                }
            }
            "test_input_required_result_request_state" => text("state-ok"),
            _ => text(format!("Elicitation completed: {all}")),
        }))
    }

    /// Two questions, one after the other, with a state that tells how far it is.
    fn rounds(&self, request: &CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
        let state = match &request.request_state {
            None => None,
            Some(sealed) => Some(
                self.0
                    .states
                    .open(sealed)
                    .map_err(|_| ErrorData::invalid_params("requestState fails its integrity check", None))?,
            ),
        };
        let given = |key: &str, field: &str| {
            let answer = request.input_responses.as_ref().and_then(|given| given.get(key));
            answer.and_then(|answer| accepted(answer, field)).is_some()
        };
        let (key, message, field, next) = match state.as_deref() {
            Some(b"one") if given("step1", "name") => ("step2", "Step 2: What is your favorite color?", "color", "two"),
            Some(b"two") if given("step2", "color") => return Ok(text("both steps are done")),
            _ => ("step1", "Step 1: What is your name?", "name", "one"),
        };
        let questions = json!({ key: elicit(message, json!({ field: { "type": "string" } }), json!([field])) });
        let sealed = self.0.states.seal(next.as_bytes());
        Ok(CallToolResponse::InputRequired(InputRequiredResult::new(Some(asked(questions)), Some(sealed))))
    }
}

/// The five kinds of choices of SEP-1330.
fn enums() -> Value {
    let plain = json!(["option1", "option2", "option3"]);
    let titled = |one: &str, two: &str, three: &str| json!([{ "const": "value1", "title": one }, { "const": "value2", "title": two }, { "const": "value3", "title": three }]);
    json!({
        "untitledSingle": { "type": "string", "enum": plain },
        "titledSingle": { "type": "string", "oneOf": titled("First Option", "Second Option", "Third Option") },
        "legacyEnum": { "type": "string", "enum": ["opt1", "opt2", "opt3"],
                        "enumNames": ["Option One", "Option Two", "Option Three"] },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("First Choice", "Second Choice", "Third Choice") } }
    })
}

/// The schema of the suite's scenario `json-schema-2020-12`, with every keyword that it looks for.
fn schema_2020_12() -> Value {
    json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "$defs": { "address": { "$anchor": "addressDef", "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } } } },
        "properties": { "name": { "type": "string" }, "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" }, "email": { "type": "string" } },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] }, "else": { "required": ["email"] }, "additionalProperties": false })
}

fn tools(changes: u32) -> Value {
    let simple = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_tool_with_logging",
        "test_logging_tool",
        "test_error_handling",
        "test_tool_with_progress",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "test_input_required_result_elicitation",
        "test_input_required_result_sampling",
        "test_input_required_result_list_roots",
        "test_input_required_result_request_state",
        "test_input_required_result_multiple_inputs",
        "test_input_required_result_multi_round",
        "test_input_required_result_tampered_state",
        "test_input_required_result_capabilities",
        "test_missing_capability",
        "test_streaming_elicitation",
        "test_trigger_tool_change",
        "test_trigger_prompt_change",
    ];
    let object = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
    let mut tools: Vec<Value> = simple
        .iter()
        .map(|name| json!({ "name": name, "description": format!("The suite's {name}."), "inputSchema": { "type": "object" } }))
        .collect();
    let word = json!({ "type": "string" });
    tools.extend([
        json!({ "name": "test_sampling", "description": "Samples.", "inputSchema": object(json!({ "prompt": word }), json!(["prompt"])) }),
        json!({ "name": "test_elicitation", "description": "Elicits.", "inputSchema": object(json!({ "message": word }), json!(["message"])) }),
        json!({ "name": "test_headers", "description": "Has a header.", "inputSchema": object(
            json!({ "region": { "type": "string", "x-mcp-header": "Region" } }), json!(["region"])) }),
        json!({ "name": "json_schema_2020_12_tool", "description": "Has a schema.", "inputSchema": schema_2020_12() }),
    ]);
    if changes > 0 {
        let name = format!("test_changed_{changes}");
        tools.push(json!({ "name": name, "description": "Came later.", "inputSchema": { "type": "object" } }));
    }
    json!({ "tools": tools })
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities)
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        let all: ListToolsResult = serde_json::from_value(tools(0)).expect("tools");
        all.tools.into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(serde_json::from_value(tools(*self.0.tools.borrow())).expect("tools"))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(answer) = self.asking_tool(&request, &context).await? {
            return Ok(answer);
        }
        let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
        Ok(match &*request.name {
            "test_simple_text" => text("This is a simple text response for testing."),
            "test_image_content" => content(json!([image])),
            "test_audio_content" => content(json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }])),
            "test_embedded_resource" => content(json!([{ "type": "resource", "resource": {
                "uri": "test://embedded-resource", "mimeType": "text/plain",
                "text": "This is an embedded resource content." } }])),
            "test_multiple_content_types" => content(json!([
                { "type": "text", "text": "Multiple content types test:" }, image,
                { "type": "resource", "resource": { "uri": "test://mixed-content-resource",
                    "mimeType": "application/json", "text": "{\"test\":\"data\",\"value\":123}" } }])),
            "test_tool_with_logging" | "test_logging_tool" => {
                for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                    self.log(message, &context).await;
                    tokio::time::sleep(STEP).await;
                }
                text("The tool has logged.")
            }
            "test_tool_with_progress" => {
                for done in [0.0, 50.0, 100.0] {
                    self.progress(done, &context).await;
                    tokio::time::sleep(STEP).await;
                }
                text("The tool has told its progress.")
            }
            "test_error_handling" => {
                let words = "This tool intentionally returns an error for testing";
                let result = json!({ "isError": true, "content": [{ "type": "text", "text": words }] });
                CallToolResponse::Complete(serde_json::from_value::<CallToolResult>(result).expect("a result"))
            }
            "test_trigger_tool_change" => {
                self.0.tools.send_modify(|changes| *changes += 1);
                text("The tools have changed.")
            }
            "test_trigger_prompt_change" => {
                self.0.prompts.send_modify(|changes| *changes += 1);
                text("The prompts have changed.")
            }
            "test_headers" | "json_schema_2020_12_tool" => text("It was called."),
            other => return Err(ErrorData::invalid_params(format!("unknown tool: {other}"), None)),
        })
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let argument = |name: &str| json!({ "name": name, "description": "An argument.", "required": true });
        let mut prompts = vec![
            json!({ "name": "test_simple_prompt", "description": "Simple." }),
            json!({ "name": "test_prompt_with_arguments", "description": "Two.", "arguments": [argument("arg1"), argument("arg2")] }),
            json!({ "name": "test_prompt_with_embedded_resource", "description": "One.", "arguments": [argument("resourceUri")] }),
            json!({ "name": "test_prompt_with_image", "description": "A picture." }),
            json!({ "name": "test_input_required_result_prompt", "description": "Asks." }),
        ];
        let changes = *self.0.prompts.borrow();
        if changes > 0 {
            prompts.push(json!({ "name": format!("test_changed_{changes}"), "description": "Came later." }));
        }
        Ok(serde_json::from_value(json!({ "prompts": prompts })).expect("prompts"))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let argument = |name: &str| {
            let arguments = request.arguments.as_ref();
            arguments.and_then(|all| all.get(name)).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let user = |content: Value| json!({ "role": "user", "content": content });
        let say = |words: String| user(json!({ "type": "text", "text": words }));
        let messages = match request.name.as_str() {
            "test_simple_prompt" => json!([say("This is a simple prompt for testing.".to_owned())]),
            "test_prompt_with_arguments" => {
                json!([say(format!("Prompt with arguments: arg1='{}', arg2='{}'", argument("arg1"), argument("arg2")))])
            }
            "test_prompt_with_embedded_resource" => json!([
                user(
                    json!({ "type": "resource", "resource": { "uri": argument("resourceUri"), "mimeType": "text/plain",
                    "text": "Embedded resource content for testing." } })
                ),
                say("Please process the embedded resource above.".to_owned())
            ]),
            "test_prompt_with_image" => json!([
                user(json!({ "type": "image", "data": PNG, "mimeType": "image/png" })),
                say("Please analyze the image above.".to_owned())
            ]),
            "test_input_required_result_prompt" => {
                let question = elicit(
                    "What context should the prompt use?",
                    json!({ "context": { "type": "string" } }),
                    json!(["context"]),
                );
                match self.ask(json!({ "user_context": question }), &request.input_responses, &context).await? {
                    Ok(answers) => json!([say(format!("Use this context: {}", json!(answers)))]),
                    Err(questions) => {
                        return Ok(GetPromptResponse::InputRequired(InputRequiredResult::from_input_requests(
                            questions,
                        )));
                    }
                }
            }
            other => return Err(ErrorData::invalid_params(format!("unknown prompt: {other}"), None)),
        };
        let result: GetPromptResult = serde_json::from_value(json!({ "messages": messages })).expect("a prompt");
        Ok(GetPromptResponse::Complete(result))
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resource = |uri: &str, mime: &str| json!({ "uri": uri, "name": uri, "description": "For the suite.", "mimeType": mime });
        let resources = json!([
            resource("test://static-text", "text/plain"),
            resource("test://static-binary", "image/png"),
            resource("test://watched-resource", "text/plain")
        ]);
        Ok(serde_json::from_value(json!({ "resources": resources })).expect("resources"))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = json!({ "uriTemplate": "test://template/{id}/data", "name": "data", "description": "By id.",
                               "mimeType": "application/json" });
        Ok(serde_json::from_value(json!({ "resourceTemplates": [template] })).expect("templates"))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let part = match (uri, id) {
            ("test://static-text", _) => {
                json!({ "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource." })
            }
            ("test://static-binary", _) => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
            ("test://watched-resource", _) => json!({ "uri": uri, "mimeType": "text/plain", "text": "Watched." }),
            (_, Some(id)) => {
                let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
                json!({ "uri": uri, "mimeType": "application/json", "text": data.to_string() })
            }
            _ => return Err(ErrorData::resource_not_found("Resource not found", Some(json!({ "uri": uri })))),
        };
        Ok(ReadResourceResponse::Complete(serde_json::from_value(json!({ "contents": [part] })).expect("contents")))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let values: Vec<&str> =
            ["paris", "park", "party"].into_iter().filter(|value| value.starts_with(&request.argument.value)).collect();
        let completion = json!({ "values": values, "total": values.len(), "hasMore": false });
        Ok(serde_json::from_value(json!({ "completion": completion })).expect("a completion"))
    }

    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.watched.lock().unwrap().push(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.watched.lock().unwrap().retain(|uri| *uri != request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let (mut tools, mut prompts) = (self.0.tools.subscribe(), self.0.prompts.subscribe());
        let wants = |flag: Option<bool>| flag == Some(true);
        let accepted = context.accepted().clone();
        loop {
            let sent = tokio::select! {
                _ = tools.changed(), if wants(accepted.tools_list_changed) => context.sink().notify_tool_list_changed().await,
                _ = prompts.changed(), if wants(accepted.prompts_list_changed) => context.sink().notify_prompt_list_changed().await,
                () = context.cancelled() => return Ok(()),
            };
            if sent.is_err() {
                return Ok(());
            }
        }
    }
}
