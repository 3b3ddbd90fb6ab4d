//! A downstream server with the tools, prompts and resources that the conformance suite expects by name. It is used
//! through the gateway only.

#![expect(deprecated, reason = "the suite of 2025-11-25 has sampling, roots and logging")]

mod asking;
mod definitions;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequiredResult, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, RequestStateCodec, ServerCapabilities, ServerConfig,
        SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::http;

use self::{
    asking::{content, elicit, text},
    definitions::tools,
};

/// A PNG of one red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A WAV without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
/// Interval of a slow tool's steps.
const STEP: Duration = Duration::from_millis(50);

/// State shared by all sessions.
struct Shared {
    tools: watch::Sender<u32>,
    prompts: watch::Sender<u32>,
    states: RequestStateCodec,
    watched: Mutex<Vec<String>>,
}

#[derive(Clone)]
pub struct Fixture(Arc<Shared>);

/// Serves the fixture over HTTP; returns its address.
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
    let (listener, address) = http::bind().await;
    http::serve(listener, move |request| {
        let service = service.clone();
        async move { service.handle(request).await }
    });
    address
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
